"""Arrays of a game for full-width solvers: two decision trees and a payoff coupling.

In a two-player zero-sum game with perfect recall, player p's counterfactual values
depend on the opponent only through its reach of sequences:
`leaf values = ±A · reach(opponent)`. `A[s0, s1]` is the sum of chance · utility over
the terminal nodes at which the players' last sequences are s0 and s1 (von Stengel 1996,
"Efficient computation of behavior strategies"). Solvers, subgames and gadgets all use
this form.

Logical numbers (see `games.tree.tree`) are for users and other modules. Solvers use a
player's sequences by *position*: the empty sequence first, then level by level (the
level is the number of the player's decisions before an infoset), and within a level
block by block. A block contains infosets with similar numbers of actions as a dense
[A, n] array. Actions are the major axis, so that sums over actions are sums of rows,
which compilers vectorise.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from spiel_cr.common.arrays import order_pairs
from spiel_cr.common.jax_utils import typed
from spiel_cr.common.messages import short_repr
from spiel_cr.common.pairs import pair
from spiel_cr.games.sequence_form import packing, treeplex
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs

# Cost of one more block, or one more group of payoff rows, in a solver's step,
# measured in array elements processed in the same time. Fewer, more padded blocks also
# compile faster.
_BLOCK_OVERHEAD = 1000
_ROW_GROUP_OVERHEAD = 600

# Trees with more levels than this are deep, unless they have more infosets than this
# many times the square of the levels (see `is_deep`).
_DEEP, _WIDE = 32, 6

# Regrets smaller than this share of the payoffs below an infoset are rounding errors of
# double precision (in single precision such regrets hardly occur).
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclasses.dataclass(frozen=True)
class PositionMap:
    """Positions of one player's logical sequences and infosets in the solver's arrays.

    Attributes:
      arrays: Function that returns `sequences` and `infosets`; large public-tree games
        compute them in each call and do not store them.
      size: Length of vectors over positions; more than S if blocks are padded.
      forced: Sequences that share the position of the sequence before them (see
        `forced.lay_out`), int32 [k]; None if each has a separate position.
    """

    arrays: Callable[[], tuple[np.ndarray, np.ndarray]]
    size: int
    forced: np.ndarray | None = None

    @property
    def sequences(self) -> np.ndarray:
        """Position of each logical sequence, int32 [S]."""
        return self.arrays()[0]

    @property
    def infosets(self) -> np.ndarray:
        """Position of each logical infoset in vectors over infosets, int32 [I].

        Raises:
          ValueError: If infosets with a single action (forced moves) are omitted from
            this layout, because they have no position.
        """
        if self.forced is not None:
            raise ValueError(
                "infosets with a single action (forced moves) are omitted from this "
                "layout, so they have no position; use the layout of the complete "
                "game, which includes them"
            )
        return self.arrays()[1]

    def behaviour(self, by_position: np.ndarray) -> np.ndarray:
        """Return action probabilities by logical sequence, [S].

        Args:
          by_position: Action probabilities by position.
        """
        played = by_position[self.sequences]
        if self.forced is not None:
            played[self.forced] = 1
        return played

    def by_position(self, values: np.ndarray, padding: float = 0.0) -> np.ndarray:
        """Return values of sequences [S] by position, [size].

        If sequences share a position, the value of the first one is used.
        """
        positions = np.full(self.size, padding, values.dtype)
        places = self.sequences
        if self.forced is not None:
            places = np.delete(places, self.forced)
            values = np.delete(values, self.forced)
        positions[places] = values
        return positions


def constant(arrays: Any) -> Callable[[], Any]:
    """Return a function that returns the argument, and that can be pickled."""
    return functools.partial(_unchanged, arrays)


def _unchanged(arrays: Any) -> Any:
    return arrays


@dataclasses.dataclass(repr=False)
class Once:
    """Function without arguments that computes its result when it is first called.

    Attributes:
      compute: Function that computes the result.
    """

    compute: Callable[[], Any]

    def __call__(self) -> Any:
        """Return the result, which is kept."""
        return self._result

    @functools.cached_property
    def _result(self) -> Any:
        return self.compute()


class Evaluator(Protocol):
    """Values of strategies that are computed without the arrays of a sequence form.

    Strategies are action probabilities by logical sequence, float [S] of each player.
    """

    def best_values(
        self,
        behaviours: tuple[np.ndarray, np.ndarray],
        locks: tuple[np.ndarray | None, np.ndarray | None],
    ) -> tuple[float, float]:
        """Return each player's best-response value, in its utility.

        Args:
          behaviours: The strategies.
          locks: Locked probabilities, see `SequenceForm.locks`.
        """

    def expected_value(self, behaviours: tuple[np.ndarray, np.ndarray]) -> float:
        """Return player 0's expected utility."""

    def action_values(
        self, behaviours: tuple[np.ndarray, np.ndarray], player: int, sequence: int
    ) -> dict[int, np.ndarray]:
        """Compute counterfactual values of actions, in the player's utility.

        Args:
          behaviours: The strategies.
          player: Player whose actions they are.
          sequence: First logical sequence of a public decision of the player.

        Returns:
          Values of the actions of this decision, and perhaps of others, float64 [H, A]
          by the first logical sequence of each decision; H private states.
        """

    def matrix_values(
        self, player: int, round: int, reach: np.ndarray, *, showdown: bool
    ) -> np.ndarray:
        """Apply the first payoff matrix of showdowns in a round, per unit of stake.

        Args:
          player: Player of the private states.
          round: Round of the matrix.
          reach: Reach of the opponent's private states, float64 [H'].
          showdown: Whether to subtract the reach that beats a private state from the
            reach that it beats, instead of adding all reach that is compatible with it.

        Returns:
          float64 [H].
        """


@dataclasses.dataclass(frozen=True, repr=False)
class SequenceForm:
    """A two-player game in sequence form, which is zero-sum except with rake.

    Attributes:
      list_decisions: Function that returns each player's decision points, in logical
        numbers.
      list_payoffs: Function that lists the coupling in coordinates.
      list_layouts: Function that returns `layouts`.
      list_arrays: Function that returns `arrays`. In large games, layouts and arrays
        take more memory than a solution, so solvers that do not use them do not call
        these functions.
      locks: Probabilities of locked infosets by logical sequence, for each player
        float64 [S], NaN at free ones (see `locking`); None if all are free.
      is_zero_sum: Whether both players' arrays contain the same payoffs. Otherwise
        `payoffs` is not available.
      evaluator: Values of the same game without `arrays`; None if there are none. It
        requires a zero-sum game.
    """

    __repr__ = short_repr

    list_decisions: Callable[[], tuple[Decisions, Decisions]]
    list_payoffs: Callable[[], Payoffs]
    list_layouts: Callable[[], tuple[PositionMap, PositionMap]]
    list_arrays: Callable[[], tuple[treeplex.Treeplex, treeplex.Treeplex]]
    locks: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    is_zero_sum: bool = True
    evaluator: Evaluator | None = None

    @functools.cached_property
    def decisions(self) -> tuple[Decisions, Decisions]:
        """Each player's decision points, in logical numbers."""
        return self.list_decisions()

    @property
    def layouts(self) -> tuple[PositionMap, PositionMap]:
        """Positions of logical numbers, for each player."""
        return self.list_layouts()

    @property
    def arrays(self) -> tuple[treeplex.Treeplex, treeplex.Treeplex]:
        """Arrays of the functions of `treeplex.py`, for each player; numpy."""
        return self.list_arrays()

    @property
    def is_listed(self) -> bool:
        """Whether the coupling is stored in coordinates, so that `payoffs` is free."""
        parts = self.arrays[0].coupling
        return all(isinstance(part, treeplex.RowGroup) for part in parts)

    @functools.cached_property
    def payoffs(self) -> Payoffs:
        """The coupling in coordinates, player 0's utility.

        Raises:
          GameTooLargeError: If it is not stored in coordinates, and is too large to be
            listed.
          ValueError: If the game is not zero-sum.
        """
        if not self.is_zero_sum:
            raise ValueError("a game with rake has no common payoffs; leave rake out")
        return self.list_payoffs()


class PaddedShape(NamedTuple):
    """Padded shapes of one player's arrays; games that fit share a compiled function.

    Attributes:
      levels: Numbers of actions of each level's infosets, int [n], descending.
      rows: Numbers of payoffs of the sequences that have any, descending, int [r].
    """

    levels: tuple[np.ndarray, ...]
    rows: np.ndarray


PaddedShapes = tuple[PaddedShape, PaddedShape]


def shapes_of(decisions: tuple[Decisions, Decisions], payoffs: Payoffs) -> PaddedShapes:
    """Return each player's shapes without padding."""
    result = []
    for points, ends in zip(decisions, (payoffs.rows, payoffs.columns), strict=True):
        lengths = np.bincount(ends, minlength=1)
        rows = np.sort(lengths[lengths > 0])[::-1]
        result.append(PaddedShape(_level_counts(points), rows))
    return result[0], result[1]


def common_shapes(needs: Sequence[PaddedShapes]) -> PaddedShapes:
    """Return the smallest capacity in which each of several games fits."""
    result = []
    none = np.zeros(0, np.int64)
    for sizes in zip(*needs, strict=True):
        levels = itertools.zip_longest(*(s.levels for s in sizes), fillvalue=none)
        rows = _cover([shape.rows for shape in sizes])
        result.append(PaddedShape(tuple(map(_cover, levels)), rows))
    return result[0], result[1]


def _cover(descending: Sequence[np.ndarray]) -> np.ndarray:
    """Return the elementwise maximum of descending sequences of different lengths."""
    cover = np.zeros(max(len(counts) for counts in descending), np.int64)
    for counts in descending:
        cover[: len(counts)] = np.maximum(cover[: len(counts)], counts)
    return cover


def fits(need: PaddedShapes, capacity: PaddedShapes) -> bool:
    """Return whether a game with these shapes can be built in a capacity."""
    for size, constant in zip(need, capacity, strict=True):
        if len(size.levels) > len(constant.levels):
            return False
        pairs = [
            *zip(size.levels, constant.levels, strict=False),
            (size.rows, constant.rows),
        ]
        if any(len(a) > len(b) or (a > b[: len(a)]).any() for a, b in pairs):
            return False
    return True


def build(
    decisions: tuple[Decisions, Decisions],
    payoffs: Payoffs,
    *,
    capacity: PaddedShapes | None = None,
    below: tuple[np.ndarray, np.ndarray] | None = None,
) -> SequenceForm:
    """Build the solvers' arrays of both players' decision trees and the coupling.

    Args:
      decisions: Each player's decision points, in any order.
      payoffs: Pairs of sequences, with player 0's utility times the probability of the
        chance outcomes.
      capacity: Shapes to pad to, so that games with the same capacity have arrays of
        equal shapes and share a compiled function. If None, the arrays are as small as
        possible.
      below: Sum of absolute payoffs of each sequence, for each player float64 [S],
        which determines the size of rounding errors. If None, computed from `payoffs`.

    Raises:
      ValueError: If the game does not fit into the capacity.
    """
    need = shapes_of(decisions, payoffs)
    capacity = need if capacity is None else capacity
    if not fits(need, capacity):
        raise ValueError(
            "capacity: the game does not fit into these shapes; use larger ones"
        )
    if below is None:
        below = sizes_of(decisions, payoffs)
    placed = pair(
        place(points, sizes.copy(), _merged(shape.levels))
        for points, sizes, shape in zip(decisions, below, capacity, strict=True)
    )
    layouts = placed[0][0], placed[1][0]
    rows = layouts[0].sequences[payoffs.rows]
    columns = layouts[1].sequences[payoffs.columns]
    arrays = (
        _couple(decisions[0], *placed[0], capacity[0], rows, columns, payoffs.values),
        _couple(decisions[1], *placed[1], capacity[1], columns, rows, -payoffs.values),
    )
    return SequenceForm(
        constant(decisions),
        functools.partial(Payoffs, *payoffs),
        constant(layouts),
        constant(arrays),
    )


def _level_counts(decisions: Decisions) -> tuple[np.ndarray, ...]:
    """Return for each level int [n], the actions of its infosets, descending."""
    return tuple(
        np.sort(decisions.num_actions[infosets])[::-1]
        for infosets, _ in decisions.downwards()
    )


def is_deep(levels: Sequence[np.ndarray]) -> bool:
    """Return whether a pass over a tree is a few operations on all infosets at once.

    If each level has separate operations, the time to compile them grows with the
    square of the number of levels. Otherwise the time to run them grows with the number
    of infosets (see `treeplex.expected_values`); 1,000 iterations balance the two.

    Args:
      levels: The action counts of each level, see `PaddedShape`.
    """
    infosets = sum(map(len, levels))
    return len(levels) > _DEEP and infosets < _WIDE * len(levels) ** 2


def _merged(levels: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Return the action counts of each level; of a deep tree, in one level."""
    if not is_deep(levels):
        return levels
    return (np.sort(np.concatenate(levels))[::-1],)


def _ancestors(
    decisions: Decisions,
    layout: PositionMap,
    levels: Sequence[treeplex.Level],
    shape: PaddedShape,
) -> tuple[treeplex.Slices, ...]:
    """Return `treeplex.Treeplex.ancestors` of one player's tree."""
    if not is_deep(shape.levels):
        return ()
    n = levels[0].num_infosets
    above = np.full(n + 1, n, np.int32)
    owner = decisions.owner[decisions.parent]
    follows = owner >= 0
    above[layout.infosets[follows]] = layout.infosets[owner[follows]]
    result = []
    # 1 + ... + 2^(rounds - 1) steps reach the root from the last level.
    for _ in range((len(shape.levels) - 1).bit_length()):
        result.append(treeplex.Slices(typed(above)))
        above = above[above]
    return tuple(result)


def place(
    decisions: Decisions,
    below: np.ndarray,
    capacity: Sequence[np.ndarray] | None = None,
) -> tuple[PositionMap, list[treeplex.Level]]:
    """Choose blocks and positions for one player's infosets.

    Args:
      decisions: The player's decision points.
      below: The sum of absolute payoffs of each sequence, float64 [S]; modified in
        place.
      capacity: Numbers of actions to which the infosets of each level are padded, or
        one array for all levels of a deep tree. If None, those of the levels.

    Returns:
      The positions, and the levels, in which `source` is still to be set.
    """
    first, depths = decisions.first_sequence, decisions.levels()
    scale = _scales(decisions, below)
    capacity = _level_counts(decisions) if capacity is None else capacity
    groups = decisions.downwards()
    deep = len(groups) > len(capacity)
    if deep:
        sequences = np.arange(1, decisions.num_sequences)
        groups = [(np.argsort(depths, kind="stable"), sequences)]
    empty = np.zeros(0, np.int64)
    groups += [(empty, empty)] * (len(capacity) - len(groups))
    position = np.zeros(decisions.num_sequences, np.int32)
    infoset_position = np.zeros(len(decisions), np.int32)
    # Position of a sequence within its own level: what children's `parent` refers to.
    # A deep tree's only level follows the empty sequence in one vector.
    in_level = np.zeros(decisions.num_sequences, np.int32)
    levels = []
    offset, infoset_offset, begin = 1, 0, int(deep)
    for (at_depth, infosets), counts in zip(groups, capacity, strict=True):
        # The infoset with the most actions takes the first place, and so on.
        ranked = at_depth[np.argsort(-decisions.num_actions[at_depth], kind="stable")]
        size, parents, uniform, tolerance = 0, [], [], []
        for places, high in packing.groups(counts, _BLOCK_OVERHEAD):
            members, width = ranked[places], places.stop - places.start
            by_parent = np.lexsort(
                (in_level[decisions.parent[members]], depths[members])
            )
            members = members[by_parent]
            legal = np.zeros((high, width), bool)
            legal[:, : len(members)] = (
                np.arange(len(legal))[:, None] < decisions.num_actions[members]
            )
            a, column = np.nonzero(legal)
            in_level[first[members[column]] + a] = begin + size + a * width + column
            infoset_position[members] = infoset_offset + np.arange(len(members))
            infoset_offset += width
            size += legal.size
            parent = np.zeros(width, np.int32)
            parent[: len(members)] = decisions.parent[members]
            parents.append(parent)
            uniform.append(typed(legal / np.maximum(legal.sum(axis=0), 1)))
            tolerance.append(typed(_tolerance(legal, scale[members])))
        position[infosets] = offset + in_level[infosets] - begin
        levels.append(
            treeplex.Level(
                parent=(treeplex.Slices(typed(in_level[np.concatenate(parents)])),),
                source=(),
                uniform=tuple(uniform),
                tolerance=tuple(tolerance),
            )
        )
        offset += size
    return PositionMap(constant((position, infoset_position)), offset), levels


def _couple(
    decisions: Decisions,
    layout: PositionMap,
    levels: Sequence[treeplex.Level],
    capacity: PaddedShape,
    sequences: np.ndarray,
    other: np.ndarray,
    values: np.ndarray,
) -> treeplex.Treeplex:
    """Assemble one player's arrays.

    Args:
      decisions: The player's decision points.
      layout: Positions from `place`.
      levels: Levels from `place`.
      capacity: Shapes to which the arrays are padded.
      sequences: Positions of the player's sequences in the coupling, int32 [nnz].
      other: Positions of the opponent's sequences, int32 [nnz].
      values: The player's utility times chance, float64 [nnz].
    """
    order = order_pairs(sequences, other)
    # The last entry is a payoff of zero, for positions without payoffs.
    other = np.append(other[order].astype(np.int32), np.int32(0))
    values = np.append(values[order], 0.0)
    lengths = np.bincount(sequences, minlength=layout.size)
    start = np.cumsum(lengths) - lengths
    # A position without payoffs reads the zero that follows the last group's rows.
    source = np.full(layout.size, -1, np.int32)
    groups = []
    done = 0
    ranked = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    for places, high in packing.groups(capacity.rows, _ROW_GROUP_OVERHEAD):
        # In the order of positions, which gathers read faster.
        rows, width = np.sort(ranked[places]), places.stop - places.start
        column, padded = np.arange(high)[:, None], np.zeros((2, width), np.int64)
        padded[:, : len(rows)] = start[rows], lengths[rows]
        entry = np.where(column < padded[1], padded[0] + column, len(order))
        groups.append(treeplex.RowGroup(typed(other[entry]), typed(values[entry])))
        source[rows] = done + np.arange(len(rows), dtype=np.int32)
        done += width
    source[source < 0] = done
    coupled = tuple(
        level._replace(source=(treeplex.Slices(typed(part)),))
        for level, part in zip(levels, treeplex.by_level(levels, source), strict=True)
    )
    return treeplex.Treeplex(
        coupled,
        tuple(groups),
        typed(source[:1]),
        typed(np.zeros(1)),
        _ancestors(decisions, layout, levels, capacity),
    )


def sizes_of(
    decisions: tuple[Decisions, Decisions], payoffs: Payoffs
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each player float64 [S], the absolute payoffs of sequences."""
    return pair(
        np.bincount(ends, np.abs(payoffs.values), points.num_sequences)
        for points, ends in zip(decisions, (payoffs.rows, payoffs.columns), strict=True)
    )


def _scales(decisions: Decisions, below: np.ndarray) -> np.ndarray:
    """Return the sum of absolute payoffs below each infoset, float64 [I].

    This is an upper bound of counterfactual values, and of rounding errors in units of
    the last place.
    """
    scale, owner = np.zeros(len(decisions)), decisions.owner
    for infosets, members in decisions.upwards():
        np.add.at(scale, owner[members], below[members])
        np.add.at(below, decisions.parent[infosets], scale[infosets])
    return scale


def _tolerance(legal: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the size of negligible regrets, float64 [A, n]; infinite at padding."""
    tolerance = np.full(legal.shape, np.inf)
    tolerance[:, : len(scale)] = _ROUNDING * scale
    return np.where(legal, tolerance, np.inf)
