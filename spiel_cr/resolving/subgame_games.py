"""Third stage: one layer's subgames, each ready to be solved alone, in one shape.

A forest (`gadget.py`) holds all subgames of a layer. A player in a match meets one of
them, so a `Layer` cuts the forest up once, and `game` fills in what the match decided:
the player's own reach of the roots and the opponent's values at the gates. All games of
a layer have the same shape, so they share one compiled program.

What stands between the roots and the subgame is the gadget:

  cfrd       at each gate the opponent chooses to *terminate*, worth what it would have
             had, or to *follow* (Burch et al. 2014).
  maxmargin  the opponent chooses among the gates, and is charged what it would have got
             there, so the player maximises the least margin (Moravčík et al. 2016,
             "Refining subgames in large imperfect information games"). Margins are
             differences of counterfactual values: what the opponent gains by coming
             that way, weighted by the player's and chance's reach of the gate.
  unsafe     nothing: the opponent comes as its average strategy says.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import NamedTuple, get_args

import numpy as np

from spiel_cr.resolving import decomposition as subgame
from spiel_cr.resolving import gadget
from spiel_cr.resolving.config import Gadget
from spiel_cr.sequence_form import layout, packing
from spiel_cr.sequence_form.decisions import Decisions, Payoffs


class Piece(NamedTuple):
    """One subgame of a layer in logical numbers of its own.

    Attributes:
      decisions: each player's decision points, in the order of players.
      rows, columns: int32 [P], the payoffs' sequences of player 0 and 1.
      base: float64 [P], player 0's utility times chance; at the gadget's own payoffs
        the sign of the opponent's utility.
      root: int32 [P], index into `roots` whose reach weighs a payoff; -1 at the
        gadget's own.
      gate: int32 [P], index into `gates` of the gate that it lies behind; -1 without.
      own: int32 [m], i's infosets, numbers of the whole game.
      here: bool [m], whether they belong to this layer.
      roots: int32 [r], i's opening infosets, numbers of the whole game.
      gates: int32 [g], gates of the subgame, numbers of the decomposition.
      mass: float64 [r, g], chance's reach of the roots by infoset and gate.
      next_gates: int32 [n], gates of the next layer; o's last infosets, in this order.
      next_behind: int32 [n], index into `gates` of the one that each lies behind.
      at: for i and for o, int32, the infosets' numbers in the layer's forest.
    """

    decisions: tuple[Decisions, Decisions]
    rows: np.ndarray
    columns: np.ndarray
    base: np.ndarray
    root: np.ndarray
    gate: np.ndarray
    own: np.ndarray
    here: np.ndarray
    roots: np.ndarray
    gates: np.ndarray
    mass: np.ndarray
    next_gates: np.ndarray
    next_behind: np.ndarray
    at: tuple[np.ndarray, np.ndarray]


class GadgetGame(NamedTuple):
    """A subgame as a solver takes it.

    Attributes:
      form: the gadget game.
      piece: what its numbers mean.
      first: who updates first where updates alternate. The mean values of who does
        belong exactly to the average strategy of the other (`cfr.step`). In the
        max-margin gadget that is o, whose values the next layer needs: its NashConv
        after 2000 iterations is lower or the same on five of six games, by up to a
        factor of 100 (docs/playing.md). Elsewhere it is i, as good as o or better.
    """

    form: layout.SequenceForm
    piece: Piece
    first: int


@dataclasses.dataclass(frozen=True)
class Layer:
    """The subgames of one layer.

    Attributes:
      player: i, the resolving player.
      gadget: the kind of gadget.
      pieces: by subgame number of the decomposition, cut out when first asked for.
      padded_shapes: room in which each of them fits.
      widest: the first of those with the most gates of the next layer.
    """

    player: int
    gadget: Gadget
    pieces: Mapping[int, Piece]
    padded_shapes: layout.PaddedShapes
    widest: int

    def game(
        self,
        number: int,
        own_reach: np.ndarray,
        gate_values: np.ndarray,
        gate_reach: np.ndarray,
    ) -> GadgetGame:
        """A subgame with what the match decided before it.

        Args:
          number: the subgame.
          own_reach: float64 [r], i's average reach of the piece's roots. Where it is
            zero throughout, all roots weigh the same: a valid game, though i itself
            never plays it.
          gate_values: float64 [g], o's counterfactual values at the piece's gates.
          gate_reach: float64 [g], o's average reach of them; "unsafe" only.
        """
        piece = self.pieces[number]
        weight = own_reach if own_reach.any() else np.ones_like(own_reach)
        factor = np.where(piece.root >= 0, np.append(weight, 1.0)[piece.root], 1.0)
        constant = piece.root < 0
        if len(piece.gates) and self.gadget == "unsafe":
            reach = gate_reach if gate_reach.any() else np.ones_like(gate_reach)
            factor *= (reach / reach.sum())[piece.gate]
            factor[constant] = 0
        elif len(piece.gates):
            values = gate_values[piece.gate[constant]]
            factor[constant] *= values if self.gadget == "cfrd" else -values
        payoffs = Payoffs(piece.rows, piece.columns, piece.base * factor)
        form = layout.build(piece.decisions, payoffs, capacity=self.padded_shapes)
        other_first = self.gadget == "maxmargin" and len(piece.gates) > 0
        return GadgetGame(form, piece, self.player ^ other_first)


def cut_layer(
    decomposition: subgame.Decomposition,
    number: int,
    gadget_kind: Gadget = "cfrd",
    lookahead: gadget.Lookahead | None = None,
) -> Layer:
    """Cuts a layer into its subgames.

    Args:
      decomposition: from `subgame.decompose`.
      number: the layer, from 1; layer 1 is one piece, the whole game without gadget.
      gadget_kind: the gadget of all other layers.
      lookahead: where the subgames are cut off, and what they are worth there.

    Raises:
      ValueError: an unknown gadget.
    """
    if gadget_kind not in get_args(Gadget):
        raise ValueError(
            f"gadget={gadget_kind!r} must be one of {', '.join(get_args(Gadget))}"
        )
    d = decomposition
    ones = np.ones(d.tree.infosets[d.player].decisions.num_sequences)
    forest = gadget.build_forest(d, number, ones, np.ones(len(d.gate_layer)), lookahead)
    pieces = _Pieces(d, number, forest, gadget_kind)
    return Layer(d.player, gadget_kind, pieces, pieces.padded_shapes, pieces.widest)


class _Groups:
    """Finds the few items of a subgame among those of very many."""

    def __init__(self, labels: np.ndarray) -> None:
        """Sorts items 0, 1, ... by their subgames, int32 [n]."""
        self._order = np.argsort(labels, kind="stable").astype(np.int32)
        self._sorted = labels[self._order]
        self.numbers = np.unique(self._sorted)

    def of(self, number: int) -> np.ndarray:
        """int32 [k], ascending, the items of a subgame."""
        begin, end = np.searchsorted(self._sorted, [number, number + 1])
        return self._order[begin:end]


class _Side:
    """One player's infosets in a forest, by subgame.

    Attributes:
      decisions: all of them.
      labels: int32 [I], their subgames.
      top: int32 [I], the infoset of the first level above each, or itself.
      owner: int32 [S], see `Decisions`.
      groups: by subgame.
    """

    def __init__(self, decisions: Decisions, subgame_of: np.ndarray | None) -> None:
        """From the subgames of the first level's infosets; None: one subgame."""
        self.decisions = decisions
        self.top = _top(decisions)
        self.labels = np.zeros(len(decisions), np.int32)
        if subgame_of is not None:
            self.labels = subgame_of[self.top]
        self.owner, self._first = decisions.owner, decisions.first_sequence
        self.groups = _Groups(self.labels)

    def restrict(self, kept: np.ndarray) -> tuple[Decisions, np.ndarray]:
        """Some infosets, renumbered, and int32 [S], their sequences in the forest."""
        counts = self.decisions.num_actions[kept]
        before = np.cumsum(counts) - counts
        first = np.repeat(self._first[kept] - before, counts)
        mine = np.append(0, first + np.arange(len(first)))
        parents = np.searchsorted(mine, self.decisions.parent[kept])
        return Decisions(parents.astype(np.int32), counts), mine


class _Pieces(Mapping[int, Piece]):
    """The subgames of a layer, each cut out of the forest when it is asked for.

    Attributes:
      padded_shapes, widest: see `Layer`.
    """

    def __init__(
        self, d: subgame.Decomposition, number: int, forest: gadget.Forest, kind: Gadget
    ) -> None:
        self._d, self._number, self._forest, self._kind = d, number, forest, kind
        i, gates = d.player, len(forest.gates)
        own, other = forest.decisions[i], forest.decisions[1 - i]
        gate_label = d.gate_subgame[forest.gates] if gates else None
        self._own = _Side(own, d.own_subgame[forest.own] if gates else None)
        self._other = _Side(other, gate_label)
        labels = np.zeros(len(forest.payoffs.values), np.int32)
        if gates:
            # Every sequence of o but the empty one lies behind a gate.
            labels = self._other.labels[self._other.owner[forest.payoffs[1 - i]]]
        self._payoffs = _Groups(labels)
        here = np.flatnonzero((d.gate_layer[d.root_gate] == number) & (gates > 0))
        self._roots, self._root_gates = d.roots[here], d.root_gate[here]
        self._by_root = _Groups(d.gate_subgame[self._root_gates])
        sides = (self._own.groups, self._other.groups, self._payoffs)
        numbers = np.unique(np.concatenate([groups.numbers for groups in sides]))
        self._known: dict[int, Piece | None] = dict.fromkeys(numbers.tolist())
        own_room = _room(self._own, forest.payoffs[i], labels, 0, kind)
        other_room = _room(self._other, forest.payoffs[1 - i], labels, gates, kind)
        self.padded_shapes = (
            (own_room, other_room) if i == 0 else (other_room, own_room)
        )
        last = self._other.labels[len(other) - len(forest.next_gates) :]
        widths = np.bincount(last, minlength=int(numbers[-1]) + 1)
        self.widest = int(numbers[widths[numbers].argmax()])

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __getitem__(self, number: int) -> Piece:
        piece = self._known[number]
        if piece is None:
            piece = self._known[number] = self._cut(number)
        return piece

    def _cut(self, number: int) -> Piece:
        d, forest, i = self._d, self._forest, self._d.player
        own_kept, other_kept = (
            self._own.groups.of(number),
            self._other.groups.of(number),
        )
        entries = self._payoffs.of(number)
        gate_kept = other_kept[other_kept < len(forest.gates)]
        own, own_mine = self._own.restrict(own_kept)
        other, other_mine = self._other.restrict(other_kept)
        own_sequences, other_sequences = (
            forest.payoffs[p][entries] for p in (i, 1 - i)
        )
        opening = own_kept[forest.decisions[i].parent[own_kept] == 0]
        root = np.full(len(entries), -1, np.int32)
        ended = self._own.owner[own_sequences]
        inside = ended >= 0
        root[inside] = np.searchsorted(opening, self._own.top[ended[inside]])
        first_next = len(forest.decisions[1 - i]) - len(forest.next_gates)
        next_here = other_kept[other_kept >= first_next]
        gate = np.full(len(entries), -1, np.int32)
        next_behind = np.full(len(next_here), -1, np.int32)
        if len(gate_kept):
            above = self._other.top[self._other.owner[other_sequences]]
            gate[:] = np.searchsorted(gate_kept, above)
            next_behind[:] = np.searchsorted(gate_kept, self._other.top[next_here])
        own_sequences = np.searchsorted(own_mine, own_sequences)
        other_sequences = np.searchsorted(other_mine, other_sequences)
        if self._kind != "cfrd" and len(gate_kept):
            other, change = _other_gadget(other, len(gate_kept), self._kind)
            other_sequences = change[other_sequences]
        by_player = [(own, own_sequences), (other, other_sequences)]
        if i == 1:
            by_player.reverse()
        roots, gates = forest.own[opening], forest.gates[gate_kept]
        return Piece(
            decisions=(by_player[0][0], by_player[1][0]),
            rows=by_player[0][1].astype(np.int32),
            columns=by_player[1][1].astype(np.int32),
            base=forest.payoffs.values[entries],
            root=root,
            gate=gate,
            own=forest.own[own_kept],
            here=d.own_layer[forest.own[own_kept]] == self._number,
            roots=roots,
            gates=gates,
            mass=self._mass(number, roots, gates),
            next_gates=forest.next_gates[next_here - first_next],
            next_behind=next_behind,
            at=(own_kept, other_kept),
        )

    def _mass(self, number: int, roots: np.ndarray, gates: np.ndarray) -> np.ndarray:
        """float64 [r, g], chance's reach of histories by i's infoset and o's gate."""
        histories, here = self._d.tree.histories, self._by_root.of(number)
        row = np.searchsorted(roots, histories.infoset[self._roots[here]])
        column = np.searchsorted(gates, self._root_gates[here])
        mass = np.zeros((len(roots), len(gates)))
        np.add.at(mass, (row, column), histories.chance[self._roots[here]])
        return mass


def _room(
    side: _Side, ends: np.ndarray, labels: np.ndarray, gates: int, kind: Gadget
) -> layout.PaddedShape:
    """The least room in which one player's part of each piece fits.

    Args:
      side: the player's infosets.
      ends: int32 [P], the payoffs' sequences of the player.
      labels: int32 [P], the payoffs' subgames.
      gates: how many of o's first infosets are gates; 0 for i.
      kind: the gadget; another than cfrd takes the place of these infosets.
    """
    levels, sizes = side.decisions.levels(), side.decisions.num_actions
    rooms = [
        packing.cover(side.labels[levels == level], sizes[levels == level])
        for level in range(int(levels.max(initial=-1)) + 1)
    ]
    if gates and kind == "unsafe":
        rooms = rooms[1:]
        ends = np.where(ends <= 2 * gates, 0, ends)
    elif gates and kind == "maxmargin":
        rooms[0] = np.array([np.bincount(side.labels[:gates]).max()])
        # Both sequences of a gate become one.
        ends = np.where(ends <= 2 * gates, ends - (ends % 2 == 0), ends)
    lengths = np.bincount(ends[ends > 0], minlength=len(side.owner))
    used = np.flatnonzero(lengths)
    # The empty sequence alone is part of every piece.
    empty = np.bincount(labels[ends == 0])
    with_empty = np.flatnonzero(empty)
    rows = packing.cover(
        np.append(side.labels[side.owner[used]], with_empty),
        np.append(lengths[used], empty[with_empty]),
    )
    return layout.PaddedShape(tuple(rooms), rows)


def _top(decisions: Decisions) -> np.ndarray:
    """int32 [I], the infoset of the first level above each infoset, or itself."""
    above = decisions.owner[decisions.parent]
    top = np.arange(len(decisions), dtype=np.int32)
    levels = decisions.levels()
    for level in range(1, int(levels.max(initial=0)) + 1):
        here = np.flatnonzero(levels == level)
        top[here] = top[above[here]]
    return top


def _other_gadget(
    other: Decisions, gates: int, kind: Gadget
) -> tuple[Decisions, np.ndarray]:
    """o's side with another gadget in place of the first `gates` infosets.

    Returns:
      The decisions, and int32 [S], old → new sequences.
    """
    # Sequences 2g + 1 and 2g + 2 are *terminate* and *follow* at gate g.
    change = np.zeros(other.num_sequences, np.int32)
    rest = np.arange(1 + 2 * gates, other.num_sequences, dtype=np.int32)
    infosets, counts = other.parent[gates:], other.num_actions[gates:]
    if kind == "unsafe":
        change[rest] = rest - 2 * gates
    else:
        choices = 1 + np.repeat(np.arange(gates, dtype=np.int32), 2)
        change[1 : 1 + 2 * gates] = choices
        change[rest] = rest - gates
        infosets = np.concatenate([[0], infosets])
        counts = np.concatenate([[gates], counts])
        parents = np.concatenate([[0], change[infosets[1:]]])
        return Decisions(parents.astype(np.int32), counts), change
    return Decisions(change[infosets], counts), change
