"""Counterfactual values of public states, solved at many ranges at once.

The game below all states of a cut is one forest. CFR runs on it for B pairs of ranges
side by side: whatever a solver keeps has one more axis, the last, so that gathers move
rows of B numbers. On CPUs that is much faster than B solves, or than an axis in front.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import cast, precision
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.resolving.leaves.exact import game_below
from spiel_cr.resolving.leaves.public_states import PublicStates
from spiel_cr.solvers.cfr import regret_matching
from spiel_cr.solvers.cfr.cfr_config import CFRConfig


class _Player(NamedTuple):
    """One player of B solves.

    Attributes:
      strategy, regrets: [A, n, B] for each block.
      reach: [S, B].
      values: [J, B], mean counterfactual values of the infosets at the cut.
    """

    strategy: Any
    regrets: Any
    reach: jax.Array
    values: jax.Array


class TargetSolver:
    """Solves the game below some public states for many pairs of ranges.

    Attributes:
      states: whose values it computes.
    """

    def __init__(
        self,
        tree: CompiledGame,
        states: PublicStates,
        iterations: int,
        config: CFRConfig,
        *,
        dtype: np.typing.DTypeLike = np.float32,
    ) -> None:
        """Lays the game out.

        Args:
          tree: the compiled game.
          states: none of them below another.
          iterations: of every solve.
          config: the algorithm.
          dtype: arithmetic.
        """
        self.states = states
        self._iterations, self._config = iterations, config
        self._dtype = np.dtype(dtype)
        form = self.form = game_below(tree, states)
        self._exponent = treeplex.exponent_of(
            part.largest() for part in form.arrays[0].coupling
        )
        self._trees = cast(
            tuple(treeplex.rescale(own, self._exponent) for own in form.arrays),
            self._dtype,
        )
        counts = [len(own) for own in states.infosets]
        # Positions are those of vectors over all sequences, the empty one first.
        self._places = tuple(
            own.sequences[1 : 1 + count].astype(np.int32) - 1
            for own, count in zip(form.layouts, counts, strict=True)
        )

    def solve(
        self, ranges: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean counterfactual values over the iterates.

        Args:
          ranges: float [B, J0] and [B, J1], own reach of the infosets at the cut.

        Returns:
          float64 [B, J0] and [B, J1], each player's values, in the game's units.
        """
        with precision(self._dtype):
            tops = tuple(
                np.ascontiguousarray(_by_position(own, place).T.astype(self._dtype))
                for own, place in zip(ranges, self._places, strict=True)
            )
            found = _solve(
                self._trees, tops, np.int32(self._iterations), config=self._config
            )
            values = [
                np.ldexp(np.asarray(own, np.float64)[place].T, self._exponent)
                for own, place in zip(found, self._places, strict=True)
            ]
        return values[0], values[1]


def _by_position(ranges: np.ndarray, place: np.ndarray) -> np.ndarray:
    laid_out = np.zeros_like(ranges)
    laid_out[:, place] = ranges
    return laid_out


@functools.partial(jax.jit, static_argnames="config")
def _solve(
    trees: tuple[treeplex.Treeplex, treeplex.Treeplex],
    tops: tuple[jax.Array, jax.Array],
    iterations: jax.Array,
    *,
    config: CFRConfig,
) -> tuple[jax.Array, jax.Array]:
    """Mean values of the first level's infosets, by position.

    Args:
      trees: both players' treeplexes.
      tops: ranges [J, B], by position.
      iterations: of every solve.
      config: the algorithm.
    """

    def start(tree: treeplex.Treeplex, top: jax.Array) -> _Player:
        strategy = tuple(
            tuple(
                jnp.broadcast_to(uniform[..., None], (*shape, top.shape[1]))
                for uniform, shape in zip(level.uniform, level.shapes, strict=True)
            )
            for level in tree.levels
        )
        regrets = jax.tree.map(jnp.zeros_like, strategy)
        return _Player(strategy, regrets, _reach(tree, strategy, top), top * 0)

    def step(
        index: jax.Array, carry: tuple[tuple[_Player, _Player], jax.Array]
    ) -> tuple[tuple[_Player, _Player], jax.Array]:
        (first, second), weight = carry
        t = (index + 1).astype(weight.dtype)
        weight = 1 + weight * ((t - 1) / t) ** config.gamma
        update = functools.partial(_update, config.rule, t, 1 / weight)
        new = update(trees[0], tops[0], first, second.reach)
        seen = new.reach if config.alternating else first.reach
        return (new, update(trees[1], tops[1], second, seen)), weight

    players = start(trees[0], tops[0]), start(trees[1], tops[1])
    weight = jnp.zeros((), tops[0].dtype)
    (first, second), _ = jax.lax.fori_loop(0, iterations, step, (players, weight))
    return first.values, second.values


def _reach(tree: treeplex.Treeplex, strategy: Any, top: jax.Array) -> jax.Array:
    """[S, B], own reach of all sequences; the first level's are the ranges."""
    above, parts = top, [jnp.ones_like(top[:1]), top]
    for level, blocks in zip(tree.levels[1:], strategy[1:], strict=True):
        into = treeplex.take(level.parent, above)
        rows, begin = [], 0
        for block in blocks:
            end = begin + block.shape[1]
            rows.append((into[None, begin:end] * block).reshape(-1, top.shape[1]))
            begin = end
        above = jnp.concatenate(rows)
        parts.append(above)
    return jnp.concatenate(parts)


def _leaf_values(tree: treeplex.Treeplex, other_reach: jax.Array) -> jax.Array:
    """[R + Z, B], as `treeplex.leaf_values`."""
    parts = []
    for group in tree.coupling:
        assert isinstance(group, treeplex.RowGroup)
        total = jnp.zeros((), other_reach.dtype)
        if len(group.columns) > 16:
            total = jax.lax.fori_loop(
                0,
                len(group.columns),
                lambda row, so_far, group=group: (
                    so_far
                    + group.values[row][:, None] * other_reach[group.columns[row]]
                ),
                jnp.zeros((group.columns.shape[1], other_reach.shape[1]), total.dtype),
            )
        else:
            for values, columns in zip(group.values, group.columns, strict=True):
                total = total + values[:, None] * other_reach[columns]
        parts.append(total)
    zeros = jnp.zeros((len(tree.zeros), other_reach.shape[1]), other_reach.dtype)
    return jnp.concatenate([*parts, zeros])


def _update(
    rule: regret_matching.Rule,
    iteration: jax.Array,
    share: jax.Array,
    tree: treeplex.Treeplex,
    top: jax.Array,
    player: _Player,
    other_reach: jax.Array,
) -> _Player:
    """One player's pass up and down, as `cfr.update_player`, B times."""
    leaves = _leaf_values(tree, other_reach)
    child: treeplex.Level | None = None
    below: jax.Array | None = None
    strategy, regrets = list(player.strategy), list(player.regrets)
    for number in range(len(tree.levels) - 1, -1, -1):
        level = tree.levels[number]
        values = treeplex.leaves_of(level, leaves)
        if child is not None and below is not None:
            values = child.parent[0].add_to(values, below)
        actions, begin = [], 0
        for count, width in level.shapes:
            end = begin + count * width
            actions.append(values[begin:end].reshape(count, width, -1))
            begin = end
        means = [
            action[0] if len(action) == 1 else treeplex.sum_rows(probability * action)
            for probability, action in zip(strategy[number], actions, strict=True)
        ]
        regrets[number], strategy[number] = regret_matching.update_blocks(
            rule,
            regrets[number],
            strategy[number],
            [a - m[None] for a, m in zip(actions, means, strict=True)],
            [uniform[..., None] for uniform in level.uniform],
            [tolerance[..., None] for tolerance in level.tolerance],
            iteration,
        )
        child, below = level, treeplex.join(means)
    assert below is not None
    played = tuple(strategy)
    return _Player(
        played,
        tuple(regrets),
        _reach(tree, played, top),
        player.values + share * (below - player.values),
    )
