"""Subgames of one layer in a common shape, each of which can be solved separately.

A forest (`gadget.py`) holds all subgames of a layer. A player in a match reaches one of
them, so a `Layer` divides the forest once, and `Layer.form` adds the data of the match:
the player's reach of the roots and the opponent's values at augmented infosets. All
games of a layer have the same shape, so they share one compiled function.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import Groups, ranges
from spiel_cr.common.pairs import ordered_pair
from spiel_cr.games.sequence_form import packing
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs
from spiel_cr.games.sequence_form.layout import PaddedShape, SequenceForm, build
from spiel_cr.policies.best_responses import best_values
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.gadget import Truncation, build_forest, top_infosets
from spiel_cr.resolving.gadget_infosets import Gadget


class Subgame(NamedTuple):
    """One subgame of a layer with its own logical numbers.

    Attributes:
      decisions: Decision points of each player, in the order of players.
      rows: Sequences of player 0 of the payoffs, int32 [P].
      columns: Sequences of player 1 of the payoffs, int32 [P].
      base: Player 0's utility times chance, float64 [P]; at payoffs of the gadget, the
        sign of the opponent's value.
      root: Index into `roots` of the root whose reach weights a payoff, int32 [P]; -1
        at payoffs of the gadget.
      paid_at: Index into `augmented` of the infoset whose value each payoff of the
        gadget is, int32.
      infosets: Infosets of i, numbers of the complete game, int32 [m].
      in_layer: Whether each of these infosets belongs to this layer, bool [m].
      roots: Opening infosets of i, numbers of the complete game, int32 [r].
      augmented: Augmented infosets of o, numbers of the decomposition, int32 [g].
      other: Infosets of o, numbers of the complete game, int32 [k].
      other_sequence: o's first sequence at these infosets, which follow the gadget.
      next_augmented: Augmented infosets of the next layer, which are o's last infosets
        in this order, int32 [n].
    """

    decisions: tuple[Decisions, Decisions]
    rows: np.ndarray
    columns: np.ndarray
    base: np.ndarray
    root: np.ndarray
    paid_at: np.ndarray
    infosets: np.ndarray
    in_layer: np.ndarray
    roots: np.ndarray
    augmented: np.ndarray
    other: np.ndarray
    other_sequence: int
    next_augmented: np.ndarray


class Layer(Mapping[int, Subgame]):
    """Subgames of one layer by number, each cut out at its first use.

    Attributes:
      player: The re-solving player, i.
      capacity: Padded shapes in which each of the subgames fits.
      largest: The first subgame with the most augmented infosets of the next layer.
    """

    def __init__(
        self,
        decomposition: Decomposition,
        number: int,
        gadget: Gadget = "cfrd",
        lookahead: Truncation | None = None,
    ) -> None:
        """Assign infosets and payoffs to subgames.

        Args:
          decomposition: Result of `decompose`.
          number: Number of the layer, from 1. Layer 1 is one subgame, the complete game
            without gadget.
          gadget: Gadget of all other layers.
          lookahead: Leaves at which the subgames are cut off, with values.
        """
        d = self._d = decomposition
        self.player, self._number = d.player, number
        ones = np.ones(d.tree.infosets[d.player].decisions.num_sequences)
        values = np.ones(len(d.augmented_layer))
        forest = self._forest = build_forest(
            d, number, ones, values, lookahead, gadget=gadget
        )
        i, o, count = d.player, 1 - d.player, len(forest.augmented)
        decisions, other = forest.decisions[i], forest.decisions[o]
        player_ends, other_ends = forest.payoffs[i], forest.payoffs[o]
        subgames = d.player_subgame[forest.infosets] if count else None
        self._side = ForestSide(decisions, subgames)
        other_side = ForestSide(
            other, forest.gadget_infosets.subgames if count else None
        )
        labels = np.zeros(len(forest.payoffs.values), np.int32)
        if count:
            # Every sequence of o except the empty one follows the gadget.
            labels = other_side.labels[other_side.owner[other_ends]]
        self._augmented = Groups(d.augmented_subgame[forest.augmented])
        self._paid_at = np.full(other.num_sequences, -1, np.int32)
        self._paid_at[forest.gadget_infosets.paying] = np.arange(count)
        self._other_side, self._ends = other_side, (player_ends, other_ends)
        self._payoffs = Groups(labels)
        fragments = (self._side.groups, other_side.groups, self._payoffs)
        numbers = np.unique(np.concatenate([groups.numbers for groups in fragments]))
        self._subgames: dict[int, Subgame | None] = dict.fromkeys(numbers.tolist())
        self.capacity = ordered_pair(
            i,
            _capacity(self._side, player_ends, labels),
            _capacity(other_side, other_ends, labels),
        )
        last = other_side.labels[len(other) - len(forest.next_augmented) :]
        widths = np.bincount(last, minlength=int(numbers[-1]) + 1)
        self.largest = int(numbers[widths[numbers].argmax()])

    def __len__(self) -> int:
        return len(self._subgames)

    def __iter__(self) -> Iterator[int]:
        return iter(self._subgames)

    def __getitem__(self, number: int) -> Subgame:
        subgame = self._subgames[number]
        if subgame is None:
            subgame = self._subgames[number] = self._cut(number)
        return subgame

    @property
    def first(self) -> int:
        """The player that updates first, see `GadgetInfosets.other_first`."""
        return self.player ^ self._forest.other_first

    def form(
        self, number: int, player_reach: np.ndarray, opponent_values: np.ndarray
    ) -> SequenceForm:
        """Return the gadget game of a subgame, with the values of a match.

        Args:
          number: Number of the subgame.
          player_reach: Average reach of i at the subgame's roots, float64 [r]. If it is
            zero throughout, all roots have equal weight: a valid game, although i never
            plays it.
          opponent_values: o's counterfactual values at the subgame's augmented
            infosets, float64 [g].
        """
        subgame = self[number]
        constant = subgame.root < 0
        factor = np.where(
            constant, 1.0, np.append(or_ones(player_reach), 1)[subgame.root]
        )
        if len(subgame.augmented):
            factor[constant] = opponent_values[subgame.paid_at]
        payoffs = Payoffs(subgame.rows, subgame.columns, subgame.base * factor)
        return build(subgame.decisions, payoffs, capacity=self.capacity)

    def _cut(self, number: int) -> Subgame:
        forest, side, other_side = self._forest, self._side, self._other_side
        player_kept = side.groups.of(number)
        other_kept = other_side.groups.of(number)
        augmented, entries = self._augmented.of(number), self._payoffs.of(number)
        ends, other_ends = (ends[entries] for ends in self._ends)
        decisions, player_rows = side.restrict(player_kept, ends)
        other, other_rows = other_side.restrict(other_kept, other_ends)
        opening = player_kept[side.decisions.parent[player_kept] == 0]
        last_player = side.owner[ends]
        root = np.full(len(entries), -1, np.int32)
        owned = last_player >= 0
        root[owned] = np.searchsorted(opening, side.top[last_player[owned]])
        first_next = len(other_side.decisions) - len(forest.next_augmented)
        following = other_kept[other_kept >= first_next] - first_next
        first_other = len(forest.gadget_infosets.num_actions)
        begin, end = np.searchsorted(
            other_kept, [first_other, first_other + len(forest.other)]
        )
        paid = self._paid_at[other_ends[~owned]]
        (first, rows), (second, columns) = ordered_pair(
            self.player, (decisions, player_rows), (other, other_rows)
        )
        infosets = forest.infosets[player_kept]
        return Subgame(
            decisions=(first, second),
            rows=rows,
            columns=columns,
            base=forest.payoffs.values[entries],
            root=root,
            paid_at=np.searchsorted(augmented, paid).astype(np.int32),
            infosets=infosets,
            in_layer=self._d.player_layer[infosets] == self._number,
            roots=forest.infosets[opening],
            augmented=forest.augmented[augmented],
            other=forest.other[other_kept[begin:end] - first_other],
            other_sequence=1 + int(other.num_actions[:begin].sum()),
            next_augmented=forest.next_augmented[following],
        )


def best_response_values(
    subgame: Subgame, player: int, player_reach: np.ndarray, behaviour: np.ndarray
) -> np.ndarray:
    """Compute o's best-response values at augmented infosets of the next layer.

    This is for solvers that do not use `Layer.form`, so that nothing is compiled.

    Args:
      subgame: The subgame.
      player: The re-solving player, i.
      player_reach: Average reach of i at the subgame's roots, float64 [r], as in
        `Layer.form`.
      behaviour: Action probabilities of i, float64 [S of i in the subgame].

    Returns:
      o's counterfactual values in the order of `next_augmented`, float64 [n].
    """
    decisions, other = subgame.decisions[player], subgame.decisions[1 - player]
    sequences = subgame.rows, subgame.columns
    gain = subgame.base * np.append(or_ones(player_reach), 1.0)[subgame.root]
    gain *= reach_from_behaviour(decisions, behaviour)[sequences[player]]
    gain *= 2 * player - 1
    count = other.num_sequences
    # The payoffs of terminating are not below any of these infosets.
    total = np.bincount(sequences[1 - player], gain, minlength=count)
    values = best_values(other, total)
    return values[len(values) - len(subgame.next_augmented) :]


def or_ones(reach: np.ndarray) -> np.ndarray:
    """Return a reach, or ones if it is zero throughout."""
    return reach if reach.any() else np.ones_like(reach)


class ForestSide:
    """One player's infosets in a forest, by subgame.

    Attributes:
      decisions: All of its decision points.
      top: The infoset of the first level above each infoset, or itself, int32 [I].
      labels: Subgames of the infosets, int32 [I].
      owner: Infoset of each sequence, int32 [S], see `Decisions`.
      groups: Infosets by subgame.
    """

    def __init__(self, decisions: Decisions, subgame_of: np.ndarray | None) -> None:
        """Assign infosets to subgames.

        Args:
          decisions: The player's decision points in the forest.
          subgame_of: Subgame of each infoset of the first level, int32. None: the
            forest is one subgame, with the number 0.
        """
        self.decisions, self.top = decisions, top_infosets(decisions)
        self.owner, self._first = decisions.owner, decisions.first_sequence
        self.labels = np.zeros(len(decisions), np.int32)
        if subgame_of is not None:
            self.labels = subgame_of[self.top]
        self.groups = Groups(self.labels)

    def restrict(
        self, kept: np.ndarray, sequences: np.ndarray
    ) -> tuple[Decisions, np.ndarray]:
        """Return some infosets, renumbered, and some of their sequences, int32."""
        counts = self.decisions.num_actions[kept]
        used = np.append(0, ranges(self._first[kept], counts))
        parents = np.searchsorted(used, self.decisions.parent[kept]).astype(np.int32)
        return Decisions(parents, counts), np.searchsorted(used, sequences).astype(
            np.int32
        )


def _capacity(side: ForestSide, ends: np.ndarray, labels: np.ndarray) -> PaddedShape:
    """Return the smallest padded shape in which one player's side of each subgame fits.

    Args:
      side: Infosets of the player.
      ends: The player's sequences of payoffs, int32 [P].
      labels: Subgames of payoffs, int32 [P].
    """
    levels, sizes = side.decisions.levels(), side.decisions.num_actions
    infosets = [
        packing.cover(side.labels[levels == level], sizes[levels == level])
        for level in range(int(levels.max(initial=-1)) + 1)
    ]
    # The empty sequence alone is part of every subgame.
    sequence = np.where(ends > 0, ends, len(side.owner) + labels)
    lengths = np.bincount(sequence)
    owner = np.zeros(len(lengths), np.int64)
    owner[sequence] = labels
    used = np.flatnonzero(lengths)
    return PaddedShape(tuple(infosets), packing.cover(owner[used], lengths[used]))
