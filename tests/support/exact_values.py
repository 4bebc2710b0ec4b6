"""Exact values at the end of a lookahead: what lies below is solved in each iteration.

The game below some public states is one game in sequence form. Each player first has a
point with a single action for all that it may know there; the player's value of the
point is the counterfactual value that is asked for. Only the other player's range
enters it, as a factor of its reach. The other way round it is the same, so a solver
with uniform strategies at first knows both players' ranges by their effect alone.

Far dearer than no cut: a reference for other values.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.checks import check_iterations
from spiel_cr.common.jax_utils import typed
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.sequence_form import layout, treeplex
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs, sum_payoffs
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.resolving.leaves.public_states import PublicStates
from spiel_cr.resolving.leaves.values import Ranges, ValueFunction
from spiel_cr.solvers import footprint
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig

# Of XLA, where a solve runs within another one's program; fitted to peaks of processes.
_NESTED = 80e6


class ExactValues(ValueFunction):
    """Solves what lies below with a CFR algorithm, from scratch in every iteration."""

    def __init__(self, iterations: int = 100, algorithm: str = "cfr+") -> None:
        """Prepares.

        Args:
          iterations: of each solve, at least 1.
          algorithm: a full-width algorithm, see `algorithms.find`.

        Raises:
          ValueError: a bad argument.
        """
        self.iterations = check_iterations(iterations)
        self.config = find(algorithm, families=(CFR,)).config

    def lay_out(self, tree: CompiledGame, states: PublicStates) -> "ExactBelow":
        """The game below some public states; see `ValueFunction`."""
        return self.lay_out_alike(tree, states, [states])[0]

    def lay_out_alike(
        self,
        tree: CompiledGame,
        states: PublicStates,
        selections: Sequence[PublicStates],
    ) -> list["ExactBelow"]:
        """The games below several sets of public states; see `ValueFunction`."""
        games = [_below(tree, states) for states in selections]
        capacity = layout.common_shapes([layout.shapes_of(*game) for game in games])
        sizes = [
            max(len(selection.infosets[p]) for selection in selections)
            for p in range(2)
        ]
        return [
            self._laid_out(layout.build(*game, capacity=capacity), selection, sizes)
            for game, selection in zip(games, selections, strict=True)
        ]

    def peak_bytes(self, tree: CompiledGame, states: PublicStates) -> float:
        """A second solver, of a game that is no larger; see `ValueFunction`."""
        return _NESTED + footprint.solver_bytes(tree.form, np.float64)

    def _laid_out(
        self, form: SequenceForm, states: PublicStates, sizes: Sequence[int]
    ) -> "ExactBelow":
        """A game below, with ranges of some sizes."""
        points = []
        for player, size in enumerate(sizes):
            count = len(states.infosets[player])
            infosets = np.zeros(size, np.int32)
            infosets[:count] = form.layouts[player].infosets[:count]
            of_position = _points_of(form, player, size)
            state = np.full(size, max(sizes) - 1, np.int32)
            state[:count] = states.state[player]
            points.append(_Points(typed(of_position), typed(infosets), typed(state)))
        return ExactBelow(
            trees=form.arrays,
            points=(points[0], points[1]),
            config=self.config,
            iterations=self.iterations,
        )


class _Points(NamedTuple):
    """Where a player's points are in the solver's arrays.

    Attributes:
      of_position: int32 [S], the point above each position; J where there is none.
      infosets: int32 [J], where each point stands among the infosets.
      state: int32 [J], the public state of each.
    """

    of_position: jax.Array
    infosets: jax.Array
    state: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ExactBelow:
    """Values by solving the game below some public states; see `RangeValues`.

    Attributes:
      trees: each player's treeplex of the game below.
      points: where each player's points are.
      config: the algorithm.
      iterations: of each solve.
    """

    trees: cfr.Trees
    points: tuple[_Points, _Points]
    config: CFRConfig = dataclasses.field(metadata={"static": True})
    iterations: int = dataclasses.field(metadata={"static": True})

    def values(self, player: int, ranges: Ranges) -> jax.Array:
        """float [J of player]: means over the iterates of a solve at these ranges."""
        return self.solve(ranges)[player]

    def solve(self, ranges: Ranges) -> Ranges:
        """Both players' counterfactual values, float [J0], float [J1].

        Args:
          ranges: as of `values`.
        """
        # Ranges of any size are solved alike: regrets that rounding may leave, which
        # solvers leave out, are those of ranges up to 1.
        relative, largest = zip(
            *(self._relative(player, ranges[player]) for player in range(2)),
            strict=True,
        )
        first, second = (
            self._seen_by(player, relative[1 - player]) for player in range(2)
        )
        trees = first, second
        state = jax.lax.fori_loop(
            *(0, self.iterations),
            lambda _, s: cfr.step(trees, s, config=self.config),
            jax.tree.map(jnp.asarray, cfr.init(trees, values=True)),
        )
        values = []
        for points, mine, scale in zip(
            self.points, state.players, largest[::-1], strict=True
        ):
            assert mine.values is not None
            values.append(mine.values[points.infosets] * scale[points.state])
        return values[0], values[1]

    def _relative(self, player: int, reach: jax.Array) -> tuple[jax.Array, jax.Array]:
        """A range over its largest entry in each state; these entries, by state."""
        state = self.points[player].state
        count = max(len(points.state) for points in self.points)
        largest = jnp.zeros(count, reach.dtype).at[state].max(reach)
        largest = jnp.where(largest > 0, largest, 1)
        return reach / largest[state], largest

    def largest(self) -> float:
        """The sum of all |payoffs|, which no value exceeds."""
        return sum(
            float(np.abs(group.values).sum(initial=0))
            for group in self.trees[0].coupling
            if isinstance(group, treeplex.RowGroup)
        )

    def rescaled(self, exponent: int) -> "ExactBelow":
        """The same with payoffs over 2^exponent."""
        first, second = (treeplex.rescale(tree, exponent) for tree in self.trees)
        return dataclasses.replace(self, trees=(first, second))

    def _seen_by(self, player: int, other_range: jax.Array) -> treeplex.Treeplex:
        """A player's tree with payoffs weighted by the other player's range."""
        tree, points = self.trees[player], self.points[1 - player]
        factor = jnp.append(other_range, 0)[points.of_position]
        groups = []
        for group in tree.coupling:
            assert isinstance(group, treeplex.RowGroup)
            weighted = group.values * factor[group.columns]
            groups.append(group._replace(values=weighted))
        return tree._replace(coupling=tuple(groups))


def game_below(tree: CompiledGame, states: PublicStates) -> SequenceForm:
    """The game below some public states, with a point per player and infoset on top.

    Args:
      tree: the compiled game.
      states: none of them below another.

    Returns:
      A game in sequence form. Each player's first J infosets have one action each: the
      points, in the order of `states.infosets`. Payoffs are weighted by chance alone.

    Raises:
      ValueError: a state lies below another.
    """
    return layout.build(*_below(tree, states))


def _below(
    tree: CompiledGame, states: PublicStates
) -> tuple[tuple[Decisions, Decisions], Payoffs]:
    """The game of `game_below`, logical: decisions and payoffs."""
    histories = tree.histories
    root = np.full(len(histories), -1, np.int64)
    root[states.history] = np.arange(len(states.history))
    for level in histories.by_depth[1:]:
        above, here = root[histories.parent[level]], root[level]
        if ((above >= 0) & (here >= 0)).any():
            raise ValueError(
                "states: one public state lies below another; select those of one layer"
            )
        root[level] = np.maximum(above, here)
    sequences, sides = [], []
    for player in range(2):
        points = len(states.infosets[player])
        own = tree.infosets[player]
        mine = np.flatnonzero(root[own.history] >= 0)
        counts = own.decisions.num_actions[mine]
        # Sequences of the game below: the empty one, points, actions of infosets.
        number = np.zeros(own.decisions.num_sequences, np.int32)
        acts = 1 + np.flatnonzero(np.isin(own.decisions.owner[1:], mine))
        number[acts] = 1 + points + np.arange(len(acts), dtype=np.int32)

        def below(at: np.ndarray, player: int, number: np.ndarray) -> np.ndarray:
            """int32, the player's last sequence at histories below the states."""
            last, roots = histories.sequence[player], root[at]
            unmoved = last[at] == last[states.history[roots]]
            point = 1 + states.place[player, roots]
            return np.where(unmoved, point, number[last[at]]).astype(np.int32)

        parents = below(own.history[mine], player, number)
        sides.append(
            Decisions(
                np.concatenate([np.zeros(points, np.int32), parents]),
                np.concatenate([np.ones(points, np.int32), counts]),
            )
        )
        ends = np.flatnonzero((histories.player == TERMINAL) & (root >= 0))
        sequences.append(below(ends, player, number))
    worth = histories.chance[ends] * histories.utility[ends]
    return (sides[0], sides[1]), sum_payoffs(sequences[0], sequences[1], worth)


def _points_of(form: SequenceForm, player: int, none: int) -> np.ndarray:
    """int32 [S], the point above each position of a player.

    Args:
      form: the game below.
      player: 0 or 1.
      none: what there is where there is none.
    """
    decisions = form.decisions[player]
    top = np.arange(len(decisions), dtype=np.int32)
    above, levels = decisions.owner[decisions.parent], decisions.levels()
    for level in range(1, int(levels.max(initial=0)) + 1):
        mine = np.flatnonzero(levels == level)
        top[mine] = top[above[mine]]
    positions = np.full(form.layouts[player].size, none, np.int32)
    positions[form.layouts[player].sequences[1:]] = top[decisions.owner[1:]]
    return positions
