"""Third stage: one layer's subgames, each ready to be solved alone, in one shape.

A forest (`gadget.py`) holds all subgames of a layer. A player in a match meets one of
them, so a `Layer` cuts the forest up once, and `game` fills in what the match decided:
the player's own reach of the roots and the opponent's values at the gates. All games of
a layer have the same shape, so they share one compiled program.

What stands between the roots and the subgame is the gadget:

  cfrd       at each gate the opponent chooses to *terminate*, worth what it would have
             had, or to *follow* (Burch et al. 2014).
  maxmargin  the opponent chooses among the gates, and is charged what it would have got
             there, so the player maximises the least margin (Moravčík et al. 2016).
             Values are per unit of the player's and chance's reach of the gate.
  unsafe     nothing: the opponent comes as its average strategy says.
"""

import dataclasses
from typing import Literal, NamedTuple, get_args

import numpy as np

from spiel_cr import gadget, leaf, sequence_form, subgame

__all__ = ["Gadget", "Layer", "Piece", "SubgameGame", "cut_layer"]

Gadget = Literal["cfrd", "maxmargin", "unsafe"]


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

    decisions: tuple[sequence_form.Decisions, sequence_form.Decisions]
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


class SubgameGame(NamedTuple):
    """A subgame as a solver takes it.

    Attributes:
      form: the gadget game.
      piece: what its numbers mean.
      scale: float64 [g], what o's values behind each gate were multiplied by.
    """

    form: sequence_form.SequenceForm
    piece: Piece
    scale: np.ndarray


@dataclasses.dataclass(frozen=True)
class Layer:
    """The subgames of one layer.

    Attributes:
      player: i, the resolving player.
      gadget: the kind of gadget.
      pieces: by subgame number of the decomposition.
      stencils: room in which each of them fits.
    """

    player: int
    gadget: Gadget
    pieces: dict[int, Piece]
    stencils: sequence_form.Stencils

    def game(
        self,
        number: int,
        own_reach: np.ndarray,
        gate_values: np.ndarray,
        gate_reach: np.ndarray,
    ) -> SubgameGame:
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
        scale = np.ones(len(piece.gates))
        if self.gadget == "maxmargin":
            mass = weight @ piece.mass
            # Nobody comes through a gate of mass zero; its value is zero too.
            scale = 1 / np.where(mass > 0, mass, 1)
        elif self.gadget == "unsafe":
            reach = gate_reach if gate_reach.any() else np.ones_like(gate_reach)
            scale = reach / reach.sum()
        factor = np.where(piece.root >= 0, np.append(weight, 1.0)[piece.root], 1.0)
        constant = piece.root < 0
        if len(piece.gates):
            factor *= np.append(scale, 1.0)[piece.gate]
            if self.gadget == "unsafe":
                factor[constant] = 0
            else:
                values = gate_values[piece.gate[constant]]
                factor[constant] *= values if self.gadget == "cfrd" else -values
        payoffs = sequence_form.Payoffs(piece.rows, piece.columns, piece.base * factor)
        form = sequence_form.build(piece.decisions, payoffs, stencils=self.stencils)
        return SubgameGame(form, piece, scale)


def cut_layer(
    decomposition: subgame.Decomposition,
    number: int,
    gadget_kind: Gadget = "cfrd",
    lookahead: leaf.Lookahead | None = None,
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
    labels = _label(d, forest)
    pieces = {}
    for k in np.unique(np.concatenate([labels.own, labels.other, labels.payoffs])):
        pieces[int(k)] = _cut(d, number, forest, labels, int(k), gadget_kind)
    stencils = sequence_form.common_stencils(
        [
            sequence_form.stencils_of(
                piece.decisions,
                sequence_form.Payoffs(piece.rows, piece.columns, piece.base),
            )
            for piece in pieces.values()
        ]
    )
    return Layer(d.player, gadget_kind, pieces, stencils)


class _Labels(NamedTuple):
    """Subgame, root and gate of everything in a forest.

    Attributes:
      own: int32 [m], subgame of i's infosets; root: int32 [m], its opening infoset
        (number in the forest).
      other: int32 [k], subgame of o's infosets; behind: int32 [k], its gate (number in
        the forest), -1 without gadget.
      payoffs: int32 [P], subgame of each payoff.
      ends: int32 [P], i's infoset where i's sequence ends, -1 at its empty one.
      gate: int32 [P], the gate that a payoff lies behind.
    """

    own: np.ndarray
    root: np.ndarray
    other: np.ndarray
    behind: np.ndarray
    payoffs: np.ndarray
    ends: np.ndarray
    gate: np.ndarray


def _label(d: subgame.Decomposition, forest: gadget.Forest) -> _Labels:
    form, i = forest.form, d.player
    own, other = form.decisions[i], form.decisions[1 - i]
    root = _top(own)
    gates = len(forest.gates)
    if not gates:
        whole = np.zeros(len(own), np.int32)
        ends = own.owner[form.payoffs[i]]
        count = len(form.payoffs.values)
        nowhere = np.full(max(count, len(other)), -1, np.int32)
        return _Labels(
            own=whole,
            root=root,
            other=np.zeros(len(other), np.int32),
            behind=nowhere[: len(other)],
            payoffs=np.zeros(count, np.int32),
            ends=ends,
            gate=nowhere[:count],
        )
    behind = _top(other)
    own_label = d.own_subgame[forest.own][root]
    ends = own.owner[form.payoffs[i]]
    # Every sequence of o but the empty one lies behind a gate.
    gate = behind[other.owner[form.payoffs[1 - i]]]
    labels = d.gate_subgame[forest.gates]
    return _Labels(own_label, root, labels[behind], behind, labels[gate], ends, gate)


def _top(decisions: sequence_form.Decisions) -> np.ndarray:
    """int32 [I], the infoset of the first level above each infoset, or itself."""
    above = decisions.owner[decisions.parent]
    top = np.arange(len(decisions), dtype=np.int32)
    levels = decisions.levels()
    for level in range(1, int(levels.max(initial=0)) + 1):
        here = np.flatnonzero(levels == level)
        top[here] = top[above[here]]
    return top


def _cut(
    d: subgame.Decomposition,
    number: int,
    forest: gadget.Forest,
    labels: _Labels,
    k: int,
    gadget_kind: Gadget,
) -> Piece:
    form, i = forest.form, d.player
    own_kept = np.flatnonzero(labels.own == k)
    other_kept = np.flatnonzero(labels.other == k)
    entries = np.flatnonzero(labels.payoffs == k)
    gate_kept = other_kept[other_kept < len(forest.gates)]
    own, own_number = _restrict(form.decisions[i], own_kept)
    other, other_number = _restrict(form.decisions[1 - i], other_kept)
    own_sequences = own_number[form.payoffs[i][entries]]
    other_sequences = other_number[form.payoffs[1 - i][entries]]
    first = np.full(len(forest.own) + 1, -1, np.int32)
    opening = own_kept[form.decisions[i].parent[own_kept] == 0]
    first[opening] = np.arange(len(opening), dtype=np.int32)
    position = np.full(len(forest.gates) + 1, -1, np.int32)
    position[gate_kept] = np.arange(len(gate_kept), dtype=np.int32)
    gate = position[labels.gate[entries]]
    root = np.full(len(entries), -1, np.int32)
    ended = labels.ends[entries]
    root[ended >= 0] = first[labels.root[ended[ended >= 0]]]
    if gadget_kind != "cfrd" and len(gate_kept):
        other, change = _other_gadget(other, len(gate_kept), gadget_kind)
        other_sequences = change[other_sequences]
    next_here = other_kept[other_kept >= len(labels.other) - len(forest.next_gates)]
    next_at = next_here - (len(labels.other) - len(forest.next_gates))
    decisions = (own, other) if i == 0 else (other, own)
    sequences = (
        (own_sequences, other_sequences) if i == 0 else (other_sequences, own_sequences)
    )
    roots = forest.own[opening]
    gates = forest.gates[gate_kept]
    return Piece(
        decisions=decisions,
        rows=sequences[0].astype(np.int32),
        columns=sequences[1].astype(np.int32),
        base=form.payoffs.values[entries],
        root=root,
        gate=gate,
        own=forest.own[own_kept],
        here=d.own_layer[forest.own[own_kept]] == number,
        roots=roots,
        gates=gates,
        mass=_mass(d, roots, gates),
        next_gates=forest.next_gates[next_at],
        next_behind=position[labels.behind[next_here]],
        at=(own_kept, other_kept),
    )


def _restrict(
    decisions: sequence_form.Decisions, kept: np.ndarray
) -> tuple[sequence_form.Decisions, np.ndarray]:
    """Some infosets, renumbered, and int32 [S], old → new sequences (0 for others)."""
    number = np.zeros(decisions.num_sequences, np.int32)
    keep = np.zeros(len(decisions), bool)
    keep[kept] = True
    mine = 1 + np.flatnonzero(keep[decisions.owner[1:]])
    number[mine] = 1 + np.arange(len(mine), dtype=np.int32)
    parents = number[decisions.parent[kept]]
    return sequence_form.Decisions(parents, decisions.num_actions[kept]), number


def _other_gadget(
    other: sequence_form.Decisions, gates: int, kind: Gadget
) -> tuple[sequence_form.Decisions, np.ndarray]:
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
        return sequence_form.Decisions(parents.astype(np.int32), counts), change
    return sequence_form.Decisions(change[infosets], counts), change


def _mass(d: subgame.Decomposition, roots: np.ndarray, gates: np.ndarray) -> np.ndarray:
    """float64 [r, g], chance's reach of histories by i's infoset and o's gate."""
    histories = d.tree.histories
    row = np.full(len(d.tree.infosets[d.player]) + 1, -1, np.int64)
    row[roots] = np.arange(len(roots))
    column = np.full(len(d.gate_layer) + 1, -1, np.int64)
    column[gates] = np.arange(len(gates))
    at = (row[histories.infoset[d.roots]], column[d.root_gate])
    inside = (at[0] >= 0) & (at[1] >= 0)
    mass = np.zeros((len(roots), len(gates)))
    np.add.at(mass, (at[0][inside], at[1][inside]), histories.chance[d.roots[inside]])
    return mass
