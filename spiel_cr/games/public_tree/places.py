"""Positions of public decisions and their private states in a solver's arrays.

The infosets of a public decision are adjacent, in the order of private states: a
*slice*. Levels and blocks are those of `games.sequence_form.layout`. A block contains
decisions of one round, so that all of its slices have the same width.

Legend for shapes: J public decisions, H private states.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.common.jax_utils import typed
from spiel_cr.games.public_tree.public_nodes import ancestors
from spiel_cr.games.public_tree.public_terms import PublicSide, logical_starts
from spiel_cr.games.sequence_form import layout, packing
from spiel_cr.games.sequence_form.treeplex import Slices

# Narrower slices are moved element by element, and all at once.
_NARROW = 8
# Cost of one more block, in array elements. In large games the compilation time
# dominates, so the cost is this share of all elements.
_BLOCK_OVERHEAD = 4000
_BLOCK_SHARE = 1 / 300
# From this number of positions on, the positions of sequences are not cached.
_LARGE = 1_000_000


class Block(NamedTuple):
    """Public decisions that form one block.

    Attributes:
      members: Public decisions, int64 [n].
      num_actions: Number of actions of the block; larger than that of some members if
        the block is padded.
      hands: H.
      parent: Positions of the parents' slices in the level above.
      start: Position of the block in its level.
    """

    members: np.ndarray
    num_actions: int
    hands: int
    parent: tuple[Slices, ...]
    start: int


class PlayerPlaces(NamedTuple):
    """Positions of one player's public decisions.

    Attributes:
      side: The player's public decisions.
      parents: Parents of the player's private states, for each round.
      levels: The blocks of each level.
      position: First position of the slice of each sequence, int64 [public sequences].
      infoset: First position of the slice of each decision's infosets, int64 [J].
      size: Length of vectors over positions.
    """

    side: PublicSide
    parents: Sequence[np.ndarray]
    levels: list[list[Block]]
    position: np.ndarray
    infoset: np.ndarray
    size: int


def place(side: PublicSide, parents: Sequence[np.ndarray]) -> PlayerPlaces:
    """Choose levels, blocks and positions."""
    decisions = side.decisions
    depth, first = decisions.levels(), decisions.first_sequence
    rounds = side.sequence_rounds
    before = rounds[side.parent]
    position = np.zeros(decisions.num_sequences, np.int64)
    in_level = np.zeros(decisions.num_sequences, np.int64)
    infoset = np.zeros(len(decisions), np.int64)
    offset, infoset_offset = 1, 0
    levels = []
    sizes = np.array([len(parent) for parent in parents], np.int64)
    total = int((sizes[side.round] * side.num_actions).sum())
    block_overhead = max(_BLOCK_OVERHEAD, total * _BLOCK_SHARE)
    for level in range(int(depth.max(initial=-1)) + 1):
        blocks: list[Block] = []
        size = 0
        at_level = np.flatnonzero(depth == level)
        new_in_level: list[tuple[np.ndarray, np.ndarray]] = []
        for round in np.unique(side.round[at_level]):
            hands = len(parents[round])
            of_round = at_level[side.round[at_level] == round]
            ranked = of_round[np.argsort(-side.num_actions[of_round], kind="stable")]
            overhead = block_overhead / max(hands, 1)
            counts = side.num_actions[ranked]
            for places, high in packing.groups(counts, overhead):
                members = ranked[places]
                # Sort by the rounds of the parents, those of the same round first.
                above = before[members]
                keys = (in_level[side.parent[members]], above, above != round)
                members = members[np.lexsort(keys)]
                blocks.append(
                    Block(
                        members,
                        high,
                        hands,
                        _parent_slices(side, parents, members, before, in_level),
                        size,
                    )
                )
                number = np.arange(len(members))
                infoset[members] = infoset_offset + number * hands
                infoset_offset += len(members) * hands
                for a in range(high):
                    has = side.num_actions[members] > a
                    starts = size + (a * len(members) + number[has]) * hands
                    new_in_level.append((first[members[has]] + a, starts))
                size += high * len(members) * hands
        for sequences, starts in new_in_level:
            in_level[sequences] = starts
            position[sequences] = offset + starts
        levels.append(blocks)
        offset += size
    return PlayerPlaces(side, parents, levels, position, infoset, offset)


def _parent_slices(
    side: PublicSide,
    parents: Sequence[np.ndarray],
    members: np.ndarray,
    before: np.ndarray,
    in_level: np.ndarray,
) -> tuple[Slices, ...]:
    """Return the positions in the level above of the parents of a block's infosets."""
    round = int(side.round[members[0]])
    hands = len(parents[round])
    slices = []
    # `place` sorts members by the rounds of their parents.
    begins = np.flatnonzero(np.diff(before[members], prepend=-2))
    for part in np.split(members, begins[1:]):
        above = int(before[part[0]])
        starts = in_level[side.parent[part]]
        if above == round:
            slices.append(slices_of(starts, hands))
        else:
            behind = ancestors(parents, round, above)
            slices.append(slices_of((starts[:, None] + behind).reshape(-1), 1))
    return tuple(slices)


def slices_of(starts: np.ndarray, width: int) -> Slices:
    """Make slices; narrow ones are stored element by element."""
    if 1 < width < _NARROW:
        starts, width = (starts[:, None] + np.arange(width)).reshape(-1), 1
    left = starts % width
    offset = int(left[0]) if width > 1 and len(left) and (left == left[0]).all() else -1
    return Slices(typed(starts.astype(np.int32)), width, offset)


def join_slices(slices: Sequence[Slices]) -> tuple[Slices, ...]:
    """Join consecutive slices of equal widths, so that there are fewer objects."""
    result: list[Slices] = []
    for some in slices:
        if result and result[-1].width == some.width:
            both = np.concatenate([result[-1].starts, some.starts])
            result[-1] = slices_of(both, some.width)
        else:
            result.append(some)
    return tuple(result)


def position_map(places: PlayerPlaces) -> layout.PositionMap:
    """Return the positions of logical sequences and infosets."""
    arrays = functools.partial(_logical_places, places)
    kept = layout.constant(arrays()) if places.size <= _LARGE else arrays
    return layout.PositionMap(kept, places.size)


def _logical_places(places: PlayerPlaces) -> tuple[np.ndarray, np.ndarray]:
    """Return the arrays `sequences` and `infosets` of a `PositionMap`."""
    side = places.side
    sizes = np.array([len(parent) for parent in places.parents], np.int64)
    hands = sizes[side.round]
    infosets = np.repeat(places.infoset, hands) + ranges(0, hands)
    sequences = np.zeros(1 + int((hands * side.num_actions).sum()), np.int32)
    starts = logical_starts(side, places.parents)
    rounds = side.sequence_rounds
    for round in np.unique(side.round):
        round_sequences = np.flatnonzero(rounds == round)
        count = int(sizes[round])
        step = max(1, 1_000_000 // max(count, 1))
        private_state = np.arange(count)
        for begin in range(0, len(round_sequences), step):
            part = round_sequences[begin : begin + step]
            start, stride = starts[part].T
            logical = start[:, None] + stride[:, None] * private_state
            sequences[logical] = places.position[part, None] + private_state
    return sequences, infosets.astype(np.int32)
