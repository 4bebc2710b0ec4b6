"""How much sampled values vary, and how much of it baselines can remove.

A trajectory's estimate of a counterfactual value varies for two reasons: it visits an
infoset or not, and where it does, what comes after is sampled. Baselines act on the
second only. The two add up, because the second has mean zero whatever was visited; with
exact baselines the first alone is left.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.cfr.config import MCCFRConfig, parse_sampled
from spiel_cr.common.checks import check_iterations, check_seed, check_whole
from spiel_cr.common.jax_utils import cast, precision
from spiel_cr.common.short_repr import short_repr
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.mccfr import baselines, descent, sample_tree, trajectories
from spiel_cr.policies.conversions import (
    history_values,
    reach_from_behaviour,
    uniform_behaviour,
)

# Trajectories that are kept apart at a time.
_CHUNK = 128


class Variance(NamedTuple):
    """Variances of one trajectory's estimates, in squared units of the game.

    Attributes:
      total: for each player float64 [I], variance of the sampled counterfactual values
        about the exact ones, mean over the infoset's actions.
      visiting: for each player float64 [I], the part that is left with exact
        baselines.
      values: for each player float64 [I], the other part: what baselines can remove.
      root: for each player's updates, the variance of the estimate of the game's value.
      samples: trajectories measured for each player.
    """

    total: tuple[np.ndarray, np.ndarray]
    visiting: tuple[np.ndarray, np.ndarray]
    values: tuple[np.ndarray, np.ndarray]
    root: tuple[float, float]
    samples: int

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def mean_total(self) -> float:
        """Mean of `total` over the infosets of both players."""
        return float(np.concatenate(self.total).mean())

    @property
    def mean_visiting(self) -> float:
        """Mean of `visiting` over the infosets of both players."""
        return float(np.concatenate(self.visiting).mean())

    @property
    def mean_values(self) -> float:
        """Mean of `values` over the infosets of both players."""
        return float(np.concatenate(self.values).mean())


def action_values(
    tree: CompiledGame, behaviours: tuple[np.ndarray, np.ndarray]
) -> tuple[tuple[np.ndarray, np.ndarray], float]:
    """Exact counterfactual values of all actions, and the game's value.

    Args:
      tree: the compiled game.
      behaviours: each player's action probabilities, float64 [S].

    Returns:
      For each player float64 [S], the value of each sequence's last action in the
      player's own utility, weighted by the reach of the others (0 at the empty
      sequence); and player 0's expected utility.
    """
    histories = tree.histories
    value = history_values(tree, behaviours)
    mover = histories.player[histories.parent[1:]]
    reach = [
        reach_from_behaviour(infosets.decisions, behaviour)
        for infosets, behaviour in zip(tree.infosets, behaviours, strict=True)
    ]
    result = []
    for p, infosets in enumerate(tree.infosets):
        others = reach[1 - p][histories.sequence[1 - p]] * histories.chance
        after = 1 + np.flatnonzero(mover == p)
        weighted = (1 - 2 * p) * others[after] * value[after]
        result.append(
            np.bincount(
                histories.sequence[p][after],
                weighted,
                minlength=infosets.decisions.num_sequences,
            )
        )
    return (result[0], result[1]), float(value[0])


def estimate_variance(
    game: Game,
    algorithm: str | MCCFRConfig,
    behaviours: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    samples: int = 10_000,
    learning: int = 100_000,
    seed: int = 0,
) -> Variance:
    """Measures the variance of an algorithm's samples at fixed strategies.

    Draws are independent; targets and incremental trees play no part. For
    average-strategy sampling the past is the given strategies, counted once.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      algorithm: scheme and baseline, as in "os-mccfr(baseline=average)"; its
        trajectories are measured one by one, whatever its batch.
      behaviours: each player's action probabilities, float64 [S]; None: uniform.
      samples: trajectories to measure for each player.
      learning: trajectories for each player that baselines learn from before, in
        batches of the algorithm's size.
      seed: of all random numbers.

    Raises:
      ValueError: a full-width algorithm, or as `solve`.
    """
    config = parse_sampled(algorithm, "algorithm")
    samples = check_iterations(samples, name="samples")
    seed = check_seed(seed)
    learning = check_whole(learning, "learning", 0)
    if config.baseline in ("none", "oracle"):
        learning = 0
    tree = as_compiled(game)
    if behaviours is None:
        uniform = [uniform_behaviour(i.decisions) for i in tree.infosets]
        behaviours = uniform[0], uniform[1]
    host, plan = sample_tree.build(tree)
    width = sample_tree.max_width(plan)
    table = np.concatenate([*behaviours, host.chance, np.zeros(width)])
    exact, value = action_values(tree, behaviours)
    double = np.dtype(np.float64)
    found = []
    with precision(double):
        arrays = jax.device_put(cast(host, double))
        oracle = baselines.refresh(arrays, plan, jnp.asarray(table))
        start = baselines.init(config.baseline, host, plan, double)
        guess = oracle if config.baseline == "oracle" else jax.device_put(start)
        tables = descent.Tables(jnp.asarray(table), None, guess, None)
        if config.scheme == "average":
            tables = tables._replace(cumulative=jnp.asarray(table))
        # Apart, so that the same seed visits the same histories with any baseline.
        key, measuring = jax.random.split(jax.random.key(seed))
        for _ in range(-(-learning // config.batch)):
            key, own = jax.random.split(key)
            tables = tables._replace(
                baseline=_learn(arrays, tables, own, plan=plan, config=config)
            )
        for p, infosets in enumerate(tree.infosets):
            begin = p * len(behaviours[0])
            mine = slice(begin, begin + len(behaviours[p]))
            sums = np.zeros((3, len(behaviours[p])))
            root, done = 0.0, 0
            while done < samples:
                measuring, own = jax.random.split(measuring)
                ours, perfect, at_root = _measure(
                    arrays, tables, oracle, own, plan=plan, player=p, config=config
                )
                sampled = [np.asarray(values)[:, mine] for values in (ours, perfect)]
                offs = (sampled[0] - exact[p], sampled[1] - exact[p])
                for k, off in enumerate((*offs, sampled[0] - sampled[1])):
                    sums[k] += (off**2).sum(axis=0)
                root += float(((np.asarray(at_root) - value) ** 2).sum())
                done += _CHUNK
            owner = infosets.decisions.owner[1:]
            actions = np.bincount(owner)
            means = [np.bincount(owner, row[1:]) / actions / done for row in sums]
            found.append((*means, root / done))
    by_player: list[Any] = list(zip(*found, strict=True))
    total, visiting, values, roots = by_player
    return Variance(total, visiting, values, roots, done)


@functools.partial(jax.jit, static_argnames=("plan", "config"))
def _learn(
    tree: sample_tree.SampleTree,
    tables: descent.Tables,
    key: jax.Array,
    *,
    plan: sample_tree.Plan,
    config: MCCFRConfig,
) -> baselines.Table:
    """Baselines after a batch for each player."""
    shares = jnp.full(config.batch, 1 / config.batch)
    for p, own in enumerate(jax.random.split(key)):
        draws = jax.random.uniform(own, (len(plan), config.batch))
        sample = trajectories.sample(
            tree, tables, draws, None, shares, plan=plan, player=p, config=config
        )
        tables = tables._replace(baseline=sample.baseline)
    return tables.baseline


@functools.partial(jax.jit, static_argnames=("plan", "player", "config"))
def _measure(
    tree: sample_tree.SampleTree,
    tables: descent.Tables,
    oracle: baselines.Table,
    key: jax.Array,
    *,
    plan: sample_tree.Plan,
    player: int,
    config: MCCFRConfig,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Samples trajectories apart, with the algorithm's baselines and with exact ones.

    Returns:
      Two float64 [B, T + A] of values, and float64 [B] estimates at the root.
    """
    exact = dataclasses.replace(config, baseline="oracle")

    def run(draws: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        ours, perfect = (
            trajectories.sample(
                *(tree, given, draws[:, None], None, jnp.ones(1)),
                plan=plan,
                player=player,
                config=settings,
            )
            for given, settings in (
                (tables, config),
                (tables._replace(baseline=oracle), exact),
            )
        )
        return ours.values, perfect.values, ours.roots[0]

    return jax.vmap(run)(jax.random.uniform(key, (_CHUNK, len(plan))))
