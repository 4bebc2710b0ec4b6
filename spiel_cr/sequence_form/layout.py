"""The game as full-width solvers see it: two decision trees and a payoff coupling.

In a two-player zero-sum game with perfect recall, player p's counterfactual values
depend on the opponent only through its reach of sequences:
`leaf values = ±A · reach(other)` with `A[s0, s1]` the sum of chance · utility over the
terminals whose last own sequences are s0 and s1 (von Stengel 1996, "Efficient
computation of behavior strategies"). Solvers, subgames and gadgets all speak this form.

Logical numbers (see `tree.py`) are for people and other modules. Solvers see a player's
sequences by *position*: the empty sequence first, then level by level (a level is the
number of own decisions before an infoset), within a level block by block. A block holds
infosets of similar action counts as a dense [A, n] array, actions major, so that sums
over actions are sums of rows, which compilers vectorise.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple, cast

import jax
import numpy as np

from spiel_cr.common import arrays as ranking
from spiel_cr.sequence_form import packing, treeplex

# What one more block, or one more group of payoff rows, costs in a solver's step,
# measured in array elements processed in the same time. Fewer, more padded blocks also
# compile faster.
_BLOCK_OVERHEAD = 4000
_ROW_GROUP_OVERHEAD = 600

# Regrets smaller than this share of the payoffs below an infoset are rounding errors of
# double precision (in single precision such regrets hardly occur).
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclasses.dataclass(frozen=True)
class Decisions:
    """One player's decision points, in logical numbers.

    Attributes:
      parent: int32 [I], the last own sequence before each infoset.
      num_actions: int32 [I], at least 1 each.
    """

    parent: np.ndarray
    num_actions: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def num_sequences(self) -> int:
        """The empty sequence and one for each action of each infoset."""
        return 1 + int(self.num_actions.sum())

    @property
    def first_sequence(self) -> np.ndarray:
        """int32 [I], the sequence of each infoset's first action."""
        ends = np.cumsum(self.num_actions, dtype=np.int32)
        return 1 + ends - self.num_actions.astype(np.int32)

    @property
    def owner(self) -> np.ndarray:
        """int32 [S], the infoset at which a sequence ends; -1 for the empty one."""
        infosets = np.arange(len(self), dtype=np.int32)
        return np.concatenate(
            [np.array([-1], np.int32), np.repeat(infosets, self.num_actions)]
        )

    def levels(self) -> np.ndarray:
        """int32 [I], own decisions before each infoset."""
        parent_infoset = self.owner[self.parent]
        level = np.zeros(len(self), np.int32)
        active = np.flatnonzero(parent_infoset >= 0)
        ancestor = parent_infoset[active]
        while len(active):
            level[active] += 1
            further = parent_infoset[ancestor] >= 0
            active, ancestor = active[further], parent_infoset[ancestor[further]]
        return level


class Payoffs(NamedTuple):
    """The payoff coupling A as coordinates, each pair of sequences at most once.

    Attributes:
      rows: int32 [nnz], player 0's sequences.
      columns: int32 [nnz], player 1's sequences.
      values: float64 [nnz], player 0's utility times chance, summed over terminals.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def sum_payoffs(rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Payoffs:
    """Adds up `values` over equal pairs (row, column)."""
    order = ranking.order_pairs(rows, columns)
    rows, columns, values = rows[order], columns[order], values[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    if not begins.all():
        values = np.bincount(np.cumsum(begins) - 1, weights=values)
        rows, columns = rows[begins], columns[begins]
    return Payoffs(rows.astype(np.int32), columns.astype(np.int32), values)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where one player's logical sequences and infosets lie in the solver's arrays.

    Attributes:
      sequences: int32 [S], position of each logical sequence.
      infosets: int32 [I], position of each logical infoset in vectors over infosets.
      size: length of vectors over positions; more than S where blocks are padded.
    """

    sequences: np.ndarray
    infosets: np.ndarray
    size: int


@dataclasses.dataclass(frozen=True)
class SequenceForm:
    """A two-player zero-sum game in sequence form.

    Attributes:
      decisions: each player's decision points, logical.
      payoffs: the coupling in coordinates, player 0's utility.
      layouts: logical numbers to positions, for each player.
      arrays: what the jitted passes of `treeplex.py` take, for each player; numpy.
    """

    decisions: tuple[Decisions, Decisions]
    payoffs: Payoffs
    layouts: tuple[Layout, Layout]
    arrays: tuple[treeplex.Treeplex, treeplex.Treeplex]


class PaddedShape(NamedTuple):
    """The room that one player's arrays have; games that fit in share a program.

    Attributes:
      levels: for each level int [n], room for actions of its infosets, descending.
      rows: int [r], room for payoffs of the sequences that have any, descending.
    """

    levels: tuple[np.ndarray, ...]
    rows: np.ndarray


PaddedShapes = tuple[PaddedShape, PaddedShape]


def shapes_of(decisions: tuple[Decisions, Decisions], payoffs: Payoffs) -> PaddedShapes:
    """The room that a game needs, exactly, for each player."""
    result = []
    for own, ends in zip(decisions, (payoffs.rows, payoffs.columns), strict=True):
        levels = own.levels()
        counts = [
            np.sort(own.num_actions[levels == level])[::-1]
            for level in range(int(levels.max(initial=-1)) + 1)
        ]
        lengths = np.bincount(ends, minlength=1)
        result.append(PaddedShape(tuple(counts), np.sort(lengths[lengths > 0])[::-1]))
    return result[0], result[1]


def common_shapes(padded_shapes: Sequence[PaddedShapes]) -> PaddedShapes:
    """The least room in which each of several games fits."""
    result = []
    for player in range(2):
        mine = [pair[player] for pair in padded_shapes]
        depth = max(len(padded_shape.levels) for padded_shape in mine)
        none = np.zeros(0, np.int64)
        levels = [
            _cover([s.levels[d] if d < len(s.levels) else none for s in mine])
            for d in range(depth)
        ]
        result.append(PaddedShape(tuple(levels), _cover([s.rows for s in mine])))
    return result[0], result[1]


def _cover(descending: Sequence[np.ndarray]) -> np.ndarray:
    """The largest first, second, third, ... of several descending sequences."""
    cover = np.zeros(max(len(counts) for counts in descending), np.int64)
    for counts in descending:
        cover[: len(counts)] = np.maximum(cover[: len(counts)], counts)
    return cover


def build(
    decisions: tuple[Decisions, Decisions],
    payoffs: Payoffs,
    *,
    padded_shapes: PaddedShapes | None = None,
) -> SequenceForm:
    """Lays out both players' decision trees and the coupling for the solvers.

    Args:
      decisions: each player's decision points, in any order.
      payoffs: pairs of logical sequences with player 0's utility times chance.
      padded_shapes: room to lay them out in, so that games with common padded_shapes have equal
        shapes; None: as much as they need.

    Raises:
      ValueError: the game does not fit into the padded_shapes.
    """
    need = shapes_of(decisions, payoffs)
    room = need if padded_shapes is None else padded_shapes
    for p in range(2):
        covered = common_shapes([need, room])[p]
        if jax.tree.map(len, covered) != jax.tree.map(len, room[p]) or any(
            (a != b).any()
            for a, b in zip(
                jax.tree.leaves(covered), jax.tree.leaves(room[p]), strict=True
            )
        ):
            raise ValueError("the game does not fit into the padded_shapes")
    shapes = [_lay_out(d, r.levels) for d, r in zip(decisions, room, strict=True)]
    layouts = (shapes[0].layout, shapes[1].layout)
    scales = (
        _scales(decisions[0], payoffs.rows, payoffs.values),
        _scales(decisions[1], payoffs.columns, payoffs.values),
    )
    at0 = layouts[0].sequences[payoffs.rows]
    at1 = layouts[1].sequences[payoffs.columns]
    arrays = tuple(
        _treeplex(shape, own, other, sign * payoffs.values, scale, r.rows)
        for shape, own, other, sign, scale, r in (
            (shapes[0], at0, at1, 1.0, scales[0], room[0]),
            (shapes[1], at1, at0, -1.0, scales[1], room[1]),
        )
    )
    return SequenceForm(decisions, payoffs, layouts, (arrays[0], arrays[1]))


class _Shape(NamedTuple):
    """One player's layout and, level by level, its parents and legal masks."""

    layout: Layout
    parents: list[np.ndarray]
    legal: list[list[np.ndarray]]
    members: list[list[np.ndarray]]


def _lay_out(decisions: Decisions, room: Sequence[np.ndarray]) -> _Shape:
    """Chooses blocks and positions for one player's infosets."""
    first, levels = decisions.first_sequence, decisions.levels()
    position = np.zeros(decisions.num_sequences, np.int32)
    infoset_position = np.zeros(len(decisions), np.int32)
    # Position of a sequence within its own level: what children's `parent` refers to.
    in_level = np.zeros(decisions.num_sequences, np.int32)
    parents, legal_by_level, members_by_level = [], [], []
    offset, infoset_offset = 1, 0
    for level, counts in enumerate(room):
        at_level = np.flatnonzero(levels == level)
        # The infoset with the most actions takes the first place, and so on.
        ranked = at_level[np.argsort(-decisions.num_actions[at_level], kind="stable")]
        size, above, blocks, infosets = 0, [], [], []
        for places, high in packing.groups(counts, _BLOCK_OVERHEAD):
            members, width = ranked[places], places.stop - places.start
            by_parent = np.argsort(in_level[decisions.parent[members]], kind="stable")
            members = members[by_parent]
            legal = np.zeros((high, width), bool)
            legal[:, : len(members)] = (
                np.arange(len(legal))[:, None] < decisions.num_actions[members]
            )
            for a, row in enumerate(legal):
                columns = np.flatnonzero(row)
                in_level[first[members[columns]] + a] = size + a * width + columns
            infoset_position[members] = infoset_offset + np.arange(len(members))
            infoset_offset += width
            size += legal.size
            parent = np.zeros(width, np.int32)
            parent[: len(members)] = in_level[decisions.parent[members]]
            above.append(parent)
            blocks.append(legal)
            infosets.append(members)
        mine = np.flatnonzero(np.repeat(levels == level, decisions.num_actions)) + 1
        position[mine] = offset + in_level[mine]
        parents.append(np.concatenate(above))
        legal_by_level.append(blocks)
        members_by_level.append(infosets)
        offset += size
    layout = Layout(position, infoset_position, offset)
    return _Shape(layout, parents, legal_by_level, members_by_level)


def _treeplex(
    shape: _Shape,
    own: np.ndarray,
    other: np.ndarray,
    values: np.ndarray,
    scale: np.ndarray,
    room: np.ndarray,
) -> treeplex.Treeplex:
    """One player's arrays; `own`, `other` are positions of the coupling's entries."""
    size = shape.layout.size
    order = ranking.order_pairs(own, other)
    # What positions without payoffs read comes last: a payoff of zero.
    other = np.append(other[order].astype(np.int32), np.int32(0))
    values = np.append(values[order], 0.0)
    lengths = np.bincount(own, minlength=size)
    start = np.cumsum(lengths) - lengths
    # A position without payoffs reads the zero that follows the last group's rows.
    source = np.full(size, -1, np.int32)
    groups = []
    done = 0
    ranked = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    for places, high in packing.groups(room, _ROW_GROUP_OVERHEAD):
        # In the order of positions, which gathers read faster.
        rows = np.sort(ranked[places])
        column = np.arange(high)[:, None]
        padding = places.stop - places.start - len(rows)
        entry = np.pad(start[rows], (0, padding)) + column
        entry[column >= np.pad(lengths[rows], (0, padding))] = len(order)
        groups.append(treeplex.RowGroup(_host(other[entry]), _host(values[entry])))
        source[rows] = done + np.arange(len(rows), dtype=np.int32)
        done += len(rows) + padding
    source[source < 0] = done
    levels = []
    offset = 1
    by_level = zip(shape.parents, shape.legal, shape.members, strict=True)
    for parent, blocks, infosets in by_level:
        width = sum(legal.size for legal in blocks)
        levels.append(
            treeplex.Level(
                parent=_host(parent.astype(np.int32)),
                source=_host(source[offset : offset + width]),
                uniform=tuple(
                    _host(legal / np.maximum(legal.sum(axis=0), 1)) for legal in blocks
                ),
                tolerance=tuple(
                    _host(_tolerance(legal, scale[members]))
                    for legal, members in zip(blocks, infosets, strict=True)
                ),
            )
        )
        offset += width
    return treeplex.Treeplex(tuple(levels), tuple(groups), _host(source[:1]))


def _scales(
    decisions: Decisions, sequences: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """float64 [I], sum of |payoff| below each infoset: no counterfactual value, and no
    rounding error in units of the last place, is larger."""
    below = np.bincount(
        sequences, weights=np.abs(values), minlength=decisions.num_sequences
    )
    scale = np.zeros(len(decisions))
    levels, owner = decisions.levels(), decisions.owner
    for level in range(int(levels.max(initial=-1)), -1, -1):
        here = np.flatnonzero(levels == level)
        mine = 1 + np.flatnonzero(levels[owner[1:]] == level)
        scale += np.bincount(owner[mine], weights=below[mine], minlength=len(scale))
        np.add.at(below, decisions.parent[here], scale[here])
    return scale


def _tolerance(legal: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """float64 [A, n], the size of regrets that mean nothing; infinite at padding."""
    tolerance = np.full(legal.shape, np.inf)
    tolerance[:, : len(scale)] = _ROUNDING * scale
    return np.where(legal, tolerance, np.inf)


def _host(array: np.ndarray) -> jax.Array:
    """Types a numpy array as what it becomes when a solver puts it on a device."""
    return cast(jax.Array, array)
