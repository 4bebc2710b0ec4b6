"""Third stage: from sampled values to regrets, strategies and averages, and back."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from spiel_cr.cfr import cfr, regret_matching, solver
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.cfr import shared_regrets as sharing_lib
from spiel_cr.mccfr import sample_tree, trajectories
from spiel_cr.sequence_form import treeplex


def strategy_table(
    samples: sample_tree.SampleTree,
    plan: sample_tree.Plan,
    players: tuple[solver.PlayerState, solver.PlayerState],
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
    width = sample_tree.max_width(plan)
    padding = jnp.zeros(width, samples.chance.dtype)
    return jnp.concatenate([*parts, samples.chance, padding])


def cumulative_table(
    samples: sample_tree.SampleTree,
    plan: sample_tree.Plan,
    state: solver.PlayerState,
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
    entries = len(samples.row_of) + sample_tree.max_width(plan)
    after = jnp.zeros(entries - len(before) - len(total), total.dtype)
    return jnp.concatenate([before, total, after])


def update_player(
    tree: treeplex.Treeplex,
    samples: sample_tree.SampleTree,
    player: int,
    state: solver.PlayerState,
    sample: trajectories.Sample,
    rule: regret_matching.Rule,
    *,
    iteration: jax.Array,
    weight: jax.Array,
    iteration_weight: jax.Array,
    sharing: sharing_lib.Sharing | None = None,
) -> solver.PlayerState:
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
      iteration_weight: float scalar, this iteration's.
      sharing: the player's buckets.
    """
    share = iteration_weight / weight
    entries = samples.entries[player]
    values = sample.values[entries]
    actions = []
    begin = 1
    for level in tree.levels:
        here = []
        for uniform in level.uniform:
            end = begin + uniform.size
            here.append(values[begin:end].reshape(uniform.shape))
            begin = end
        actions.append(here)
    before = state.strategy, state.regrets, actions
    if sharing is None:
        regrets, strategy = _alone(rule, tree, *before, iteration)
    else:
        regrets, strategy = sharing_lib.update(rule, tree, sharing, *before, iteration)
    added = state.reach
    if sample.visits is not None:
        rows = jnp.append(samples.row_of, len(samples.row_of))
        # The visits are weighted by the iteration_weight already.
        added = sample.visits[rows[entries]] * _by_position(state) / iteration_weight
    return solver.PlayerState(
        strategy=strategy,
        regrets=regrets,
        reach=treeplex.reach(tree, strategy),
        average=state.average + share * (added - state.average),
        values=None,
    )


def _alone(
    rule: regret_matching.Rule,
    tree: treeplex.Treeplex,
    strategy: treeplex.Blocks,
    regrets: treeplex.Blocks,
    actions: Sequence[Sequence[jax.Array]],
    iteration: jax.Array,
) -> tuple[treeplex.Blocks, treeplex.Blocks]:
    """New regrets and strategy where every infoset keeps its own regrets."""
    new_regrets, new_strategy = [], []
    for level, *blocks in zip(tree.levels, strategy, regrets, actions, strict=True):
        updated = [
            cfr.update_block(rule, a, s, r, uniform, tolerance, iteration)
            for s, r, a, uniform, tolerance in zip(
                *blocks, level.uniform, level.tolerance, strict=True
            )
        ]
        new_regrets.append(tuple(u[1] for u in updated))
        new_strategy.append(tuple(u[2] for u in updated))
    return tuple(new_regrets), tuple(new_strategy)


def _by_position(state: solver.PlayerState) -> jax.Array:
    """float [size], the current strategy; 1 at the empty sequence."""
    blocks = [block.reshape(-1) for level in state.strategy for block in level]
    return jnp.concatenate([jnp.ones(1, state.reach.dtype), *blocks])
