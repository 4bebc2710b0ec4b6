"""The gadget game of a layer's subgames, all at once: a forest in sequence form.

  - i's infosets of the layer hang under its empty sequence; payoffs carry i's reach and
    chance of the root;
  - at each gate (see `subgame.py`) the opponent o first chooses *terminate*, worth a
    given counterfactual value, or *follow* into the roots: the CFR-D gadget of Burch,
    Johanson & Bowling (2014, "Solving imperfect information games using
    decomposition");
  - the gates of the next layer are further points of o with a single action: nothing is
    decided there, but solvers report values at infosets, and that is where the next
    layer's gadget needs them.

Subgames of one layer share nothing, so a solver treats each as if it were alone.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from spiel_cr.policies import conversions
from spiel_cr.resolving import decomposition as subgame
from spiel_cr.sequence_form import layout
from spiel_cr.sequence_form.decisions import Decisions, Payoffs, sum_payoffs


class Lookahead(NamedTuple):
    """Where a layer's subgames end.

    Attributes:
      histories: int64 [L], terminals within reach and histories at which it is cut off.
      values: float64 [L], player 0's utility there.
      inside: for each player bool [I], the infosets that are not cut off.
    """

    histories: np.ndarray
    values: np.ndarray
    inside: tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Forest:
    """All subgames of a layer as one game in sequence form.

    Attributes:
      decisions: each player's decision points, in the order of players.
      payoffs: player 0's utility times chance, weights and gate values put in.
      own: int32 [m], i's infosets (numbers of the whole game) in the order of its
        decisions.
      gates: int32 [g], gates of this layer; they are o's first g infosets, actions
        (terminate, follow). Empty for the first layer, which is the whole game.
      other: int32 [k], o's infosets (numbers of the whole game), next.
      next_gates: int32 [n], gates of the next layer, o's last infosets.
    """

    decisions: tuple[Decisions, Decisions]
    payoffs: Payoffs
    own: np.ndarray
    gates: np.ndarray
    other: np.ndarray
    next_gates: np.ndarray

    @functools.cached_property
    def form(self) -> layout.SequenceForm:
        """The game that a solver solves, laid out when it is first asked for."""
        return layout.build(self.decisions, self.payoffs)


def build_forest(
    decomposition: subgame.Decomposition,
    layer: int,
    own_reach: np.ndarray,
    gate_values: np.ndarray,
    lookahead: Lookahead | None = None,
) -> Forest:
    """The gadget game of a layer; the whole game without gadget for layer 1.

    Root weights are not normalised: *follow* and *terminate* stay on the one scale of
    the whole game in every layer.

    Args:
      decomposition: from `decompose`.
      layer: 1 .. num_layers.
      own_reach: float64 [S of i], i's average strategy in sequence form; used above the
        layer only. Subgames that it never reaches are weighted as if i had played
        uniformly at random before, so that their strategy is a sensible one.
      gate_values: float64 [G], o's counterfactual value of each gate; used for the
        layer's own gates.
      lookahead: where the game is cut off, and what it is worth there; None: nowhere.
    """
    d = decomposition
    tree, histories = d.tree, d.tree.histories
    own_decisions = tree.infosets[d.player].decisions
    own = np.flatnonzero((d.own_layer >= layer) & _inside(d, lookahead, d.player))
    own_sequence = _renumber(own_decisions, own)
    forest_own = Decisions(
        own_sequence[own_decisions.parent[own]], own_decisions.num_actions[own]
    )
    gates = np.flatnonzero((d.gate_layer == layer) & (layer > 1))
    next_gates = np.flatnonzero(d.gate_layer == layer + 1)
    kept = _inside(d, lookahead, 1 - d.player)
    other, forest_other, extended = _other_side(d, layer, gates, next_gates, kept)

    ends, worth = d.terminals, histories.utility[d.terminals]
    if lookahead is not None:
        ends, worth = lookahead.histories, lookahead.values
    # Ends worth nothing are left out, but zero weights are not: the shapes of a forest
    # must not depend on strategies, or its program would be compiled anew.
    inside = (d.layer[ends] >= (layer if layer > 1 else 0)) & (worth != 0)
    terminals, worth = ends[inside], worth[inside]
    sequence = histories.sequence[d.player][terminals]
    weight = np.ones(len(terminals))
    if layer > 1:
        weight = _root_reach(d, layer, own_reach)[sequence]
    sign = 1.0 if d.player == 1 else -1.0
    by_player = [
        np.concatenate([own_sequence[sequence], np.zeros(len(gates), np.int32)]),
        np.concatenate(
            [
                extended[d.extended[terminals]],
                1 + 2 * np.arange(len(gates), dtype=np.int32),
            ]
        ),
    ]
    values = np.concatenate(
        [
            weight * histories.chance[terminals] * worth,
            sign * gate_values[gates],
        ]
    )
    decisions = [forest_own, forest_other]
    if d.player == 1:
        by_player.reverse()
        decisions.reverse()
    payoffs = sum_payoffs(by_player[0], by_player[1], values)
    pair = decisions[0], decisions[1]
    return Forest(pair, payoffs, own, gates, other, next_gates)


def _renumber(decisions: Decisions, kept: np.ndarray) -> np.ndarray:
    """int32 [S], sequences after keeping only some infosets; 0 for the others."""
    sequence = np.zeros(decisions.num_sequences, np.int32)
    mine = 1 + np.flatnonzero(np.isin(decisions.owner[1:], kept))
    sequence[mine] = 1 + np.arange(len(mine), dtype=np.int32)
    return sequence


def _inside(
    d: subgame.Decomposition, lookahead: Lookahead | None, player: int
) -> np.ndarray:
    """bool [I], a player's infosets that are not cut off."""
    if lookahead is None:
        return np.ones(len(d.tree.infosets[player]), bool)
    return lookahead.inside[player]


def _other_side(
    d: subgame.Decomposition,
    layer: int,
    gates: np.ndarray,
    next_gates: np.ndarray,
    kept: np.ndarray,
) -> tuple[np.ndarray, Decisions, np.ndarray]:
    """o's infosets in a forest, their decisions, and extended → forest sequences."""
    decisions = d.tree.infosets[1 - d.player].decisions
    other = np.flatnonzero((d.other_layer >= (layer if layer > 1 else 0)) & kept)
    count = decisions.num_sequences
    extended = np.zeros(count + len(d.gate_layer), np.int32)
    number = _renumber(decisions, other)
    extended[:count] = np.where(number > 0, number + 2 * len(gates), 0)
    extended[count + gates] = 2 + 2 * np.arange(len(gates), dtype=np.int32)
    used = 2 * len(gates) + int(decisions.num_actions[other].sum())
    extended[count + next_gates] = 1 + used + np.arange(len(next_gates))
    # Any other gate is passed through: it stands for what o did before it. Upper layers
    # come first, since a gate's parent may be a gate of the layer above.
    passed = np.flatnonzero((d.gate_layer != layer + 1) & (d.gate_layer >= layer))
    passed = np.setdiff1d(passed, gates)
    for at in np.unique(d.gate_layer[passed]):
        here = passed[d.gate_layer[passed] == at]
        extended[count + here] = extended[d.gate_parent[here]]
    parents = np.concatenate(
        [
            np.zeros(len(gates), np.int32),
            extended[d.other_parent[other]],
            extended[d.gate_parent[next_gates]],
        ]
    )
    num_actions = np.concatenate(
        [
            np.full(len(gates), 2, np.int32),
            decisions.num_actions[other],
            np.ones(len(next_gates), np.int32),
        ]
    )
    return other, Decisions(parents, num_actions), extended


def _root_reach(
    d: subgame.Decomposition, layer: int, own_reach: np.ndarray
) -> np.ndarray:
    """float64 [S of i], i's reach of the root above each sequence in the layer."""
    decisions = d.tree.infosets[d.player].decisions
    roots = np.flatnonzero((d.own_layer == layer) & d.opens)
    weight = np.zeros(len(decisions))
    weight[roots] = own_reach[decisions.parent[roots]]
    subgame = d.own_subgame[roots]
    total = np.bincount(subgame, weights=weight[roots])
    lost = roots[total[subgame] == 0]
    uniform = conversions.uniform_behaviour(decisions)
    fallback = conversions.reach_from_behaviour(decisions, uniform)
    weight[lost] = fallback[decisions.parent[lost]]
    levels, owner = decisions.levels(), decisions.owner
    below = np.zeros(decisions.num_sequences)
    opened = np.zeros(len(decisions), bool)
    opened[roots] = True
    inside = np.flatnonzero(d.own_layer >= layer)
    for level in range(int(levels.max(initial=-1)) + 1):
        here = inside[levels[inside] == level]
        inherited = here[~opened[here]]
        weight[inherited] = below[decisions.parent[inherited]]
        mine = 1 + np.flatnonzero(np.isin(owner[1:], here))
        below[mine] = weight[owner[mine]]
    return below
