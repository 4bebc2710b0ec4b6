"""Third stage: from sampled values to regrets, strategies and averages, and back."""

import jax
import jax.numpy as jnp

from spiel_cr import algorithm as algorithm_lib
from spiel_cr import cfr, driver, regret, sampling, trajectories, treeplex

__all__ = ["cumulative_table", "strategy_table", "update_player"]


def strategy_table(
    samples: sampling.SampleTree,
    plan: sampling.Plan,
    players: tuple[driver.PlayerState, driver.PlayerState],
) -> jax.Array:
    """float [T + A], strategies and chance probabilities by entry.

    Args:
      samples: the histories.
      plan: from `sampling.build`.
      players: both players' states.
    """
    parts = []
    for player, positions in zip(players, samples.positions, strict=True):
        parts.append(_by_position(player)[positions])
    width = sampling.max_width(plan)
    padding = jnp.zeros(width, samples.chance.dtype)
    return jnp.concatenate([*parts, samples.chance, padding])


def cumulative_table(
    samples: sampling.SampleTree,
    plan: sampling.Plan,
    state: driver.PlayerState,
    weight: jax.Array,
    player: int,
    config: algorithm_lib.MCCFRConfig,
) -> jax.Array | None:
    """float [T + A], the sum of a player's past reaches, for average-strategy sampling.

    Args:
      samples: the histories.
      plan: from `sampling.build`.
      state: the player's.
      weight: float scalar, the sum of averaging weights.
      player: whose state it is.

    Returns:
      The table; None where the scheme does not need it.
    """
    if config.scheme != "average":
        return None
    sizes = [len(positions) for positions in samples.positions]
    total = weight * state.average[samples.positions[player]]
    before = jnp.zeros(player * sizes[0], total.dtype)
    entries = len(samples.row_of) + sampling.max_width(plan)
    after = jnp.zeros(entries - len(before) - len(total), total.dtype)
    return jnp.concatenate([before, total, after])


def update_player(
    tree: treeplex.Treeplex,
    samples: sampling.SampleTree,
    player: int,
    state: driver.PlayerState,
    sample: trajectories.Sample,
    rule: regret.Rule,
    *,
    iteration: jax.Array,
    weight: jax.Array,
    emphasis: jax.Array,
) -> driver.PlayerState:
    """Regrets, next strategy and averages from sampled values.

    Args:
      tree: the player's treeplex; only its blocks are used.
      samples: the histories.
      player: whose state it is.
      state: to advance.
      sample: of a batch for this player.
      rule: regret rule.
      iteration: float scalar, from 1.
      weight: float scalar, sum of averaging weights, this iteration's included.
      emphasis: float scalar, this iteration's.
    """
    share = emphasis / weight
    entries = samples.entries[player]
    values = sample.values[entries]
    strategy, regrets = [], []
    begin = 1
    levels = zip(tree.levels, state.strategy, state.regrets, strict=True)
    for level, old_strategy, old_regrets in levels:
        new_strategy, new_regrets = [], []
        blocks = zip(
            old_strategy, old_regrets, level.uniform, level.tolerance, strict=True
        )
        for old, cumulative, uniform, tolerance in blocks:
            actions = values[begin : begin + uniform.size].reshape(uniform.shape)
            begin += uniform.size
            _, block_regrets, block = cfr.update_block(
                rule, actions, old, cumulative, uniform, tolerance, iteration
            )
            new_regrets.append(block_regrets)
            new_strategy.append(block)
        strategy.append(tuple(new_strategy))
        regrets.append(tuple(new_regrets))
    added = state.reach
    if sample.visits is not None:
        rows = jnp.append(samples.row_of, len(samples.row_of))
        # The visits are weighted by the emphasis already.
        added = sample.visits[rows[entries]] * _by_position(state) / emphasis
    return driver.PlayerState(
        strategy=tuple(strategy),
        regrets=tuple(regrets),
        reach=treeplex.reach(tree, tuple(strategy)),
        average=state.average + share * (added - state.average),
        values=None,
    )


def _by_position(state: driver.PlayerState) -> jax.Array:
    """float [size], the current strategy; 1 at the empty sequence."""
    blocks = [block.reshape(-1) for level in state.strategy for block in level]
    return jnp.concatenate([jnp.ones(1, state.reach.dtype), *blocks])
