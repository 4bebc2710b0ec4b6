"""Gadget game of public nodes: a forest in public-tree form.

The counterpart of `gadget.py`. The gadget is public, too: above each root the opponent
o has a decision *terminate | follow* (CFR-D; Burch, Johanson & Bowling 2014, "Solving
imperfect information games using decomposition"), with one infoset for each of its
private states. Above each root of the next layer o has a decision with a single action,
at whose infosets solvers report the values that the next gadget needs.

A forest has all roots of a layer and all private states, or one root and the private
states of one board (see `public_decomposition.py`), which is the subgame that a player
reaches in a match.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.games.public_tree.form import build
from spiel_cr.games.public_tree.public_terms import Constants, PublicSide, PublicTerms
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.resolving.gadget_infosets import make_gadget_infosets
from spiel_cr.resolving.public_deals import BoardDeal, full_deal
from spiel_cr.resolving.public_decomposition import PublicDecomposition


@dataclasses.dataclass(frozen=True)
class PublicSubgame:
    """Public nodes at and below some roots, as a game without weights and old values.

    Attributes:
      player: The re-solving player, i.
      sides: Public decisions of each player, in the order of players. Those of o are
        the gadget's (one in front of each root), its own, and those in front of the
        roots of the next layer; the first layer has no gadget.
      deal: Private states of the subgame.
      terms: Payoffs of the subgame.
      term_root: Index of the root above each term, int32 [T].
      root_round: Round of each root, as the subgame counts rounds, int32 [r].
      player_nodes: Public nodes of i, int64.
      other_nodes: Public nodes of o, which follow the gadget's, int64.
      next_roots: Public nodes that are roots of the next layer, int64.
      infosets: Infosets of i, numbers of the complete game, in the subgame's order,
        int32 [m].
      openings: Infosets of i at the roots, numbers of the complete game, int32 [q].
      opening_subgame: Number of the root and board of each opening, int32 [q].
      augmented: Augmented infosets of o, numbers of the decomposition, int32 [g]; empty
        in the first layer.
      next_augmented: Augmented infosets of the next layer, o's last infosets, int32
        [n].
    """

    player: int
    sides: tuple[PublicSide, PublicSide]
    deal: BoardDeal
    terms: PublicTerms
    term_root: np.ndarray
    root_round: np.ndarray
    player_nodes: np.ndarray
    other_nodes: np.ndarray
    next_roots: np.ndarray
    infosets: np.ndarray
    openings: np.ndarray
    opening_subgame: np.ndarray
    augmented: np.ndarray
    next_augmented: np.ndarray

    def form(
        self, player_reach: np.ndarray, opponent_values: np.ndarray
    ) -> SequenceForm:
        """Return the gadget game that a solver solves.

        Root weights are not normalised: *follow* and *terminate* have the scale of the
        complete game in every layer.

        Args:
          player_reach: Average reach of i at its openings, float64 [q]. At roots and
            boards that i never reaches, all openings have equal weight, so that their
            strategy is a sensible one. Ignored in the first layer.
          opponent_values: Counterfactual values of o at the augmented infosets, float64
            [g].
        """
        i, o, deal = self.player, 1 - self.player, self.deal
        if not len(self.augmented):
            return build(self.sides, deal.parents, deal.payoff_matrices, self.terms)
        counts = deal.num_private_states(o)[self.root_round]
        terminate = Constants(
            o,
            make_gadget_infosets("cfrd", self.root_round).paying,
            np.split(opponent_values, np.cumsum(counts)[:-1]),
        )
        weights = self._weights(player_reach)
        terms = self.terms._replace(
            weights=(weights, None) if i == 0 else (None, weights)
        )
        return build(self.sides, deal.parents, deal.payoff_matrices, terms, [terminate])

    def form_by_beliefs(self, reach: Sequence[Sequence[np.ndarray]]) -> SequenceForm:
        """Return the game without a gadget, in which both ranges are fixed.

        Args:
          reach: Reach of each player at each root, float64 [H].

        Raises:
          ValueError: If the subgame was cut with a gadget.
        """
        if len(self.augmented):
            raise ValueError(
                "the subgame has a gadget; call cut_public with gadget=False"
            )
        weights = [self._weights_of(player, reach[player]) for player in range(2)]
        terms = self.terms._replace(weights=(weights[0], weights[1]))
        return build(self.sides, self.deal.parents, self.deal.payoff_matrices, terms)

    def _weights(self, player_reach: np.ndarray) -> list[np.ndarray]:
        """Return i's reach of the root behind private states, by term, float64 [H]."""
        total = np.bincount(self.opening_subgame, player_reach)
        reach = np.where(total[self.opening_subgame] > 0, player_reach, 1.0)
        counts = self.deal.num_private_states(self.player)[self.root_round]
        return self._weights_of(self.player, np.split(reach, np.cumsum(counts)[:-1]))

    def _weights_of(
        self, player: int, by_root: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Return the reach of the root behind private states, by term, float64 [H]."""
        rounds = self.sides[player].sequence_rounds
        reach_behind: dict[tuple[int, int], np.ndarray] = {}
        weights = []
        for sequence, root in zip(
            self.terms.sequences[player].tolist(), self.term_root.tolist(), strict=True
        ):
            key = root, int(rounds[sequence])
            if key not in reach_behind:
                behind = self.deal.ancestors(player, key[1], int(self.root_round[root]))
                reach_behind[key] = by_root[root][behind]
            weights.append(reach_behind[key])
        return weights


class PublicForest(NamedTuple):
    """All subgames of a layer; the counterpart of `gadget.Forest`.

    Attributes:
      form: The game that a solver solves.
      infosets: Infosets of i, numbers of the complete game, int32 [m].
      next_augmented: Augmented infosets of the next layer, o's last infosets, int32
        [n].
      other_first: Whether o updates before i.
    """

    form: SequenceForm
    infosets: np.ndarray
    next_augmented: np.ndarray
    other_first: bool = False


def build_public_forest(
    decomposition: PublicDecomposition,
    layer: int,
    player_reach: np.ndarray,
    opponent_values: np.ndarray,
) -> PublicForest:
    """Build the gadget game of a layer; the complete game without gadget for layer 1.

    Args:
      decomposition: Result of `decompose_public`.
      layer: Number of the layer, 1 .. num_layers.
      player_reach: Average strategy of i in sequence form, float64 [S of i]. Only
        entries above the layer are used.
      opponent_values: Counterfactual value of o at each augmented infoset, float64 [G].
        Only those of the layer are used.
    """
    subgame = cut_public(decomposition, layer)
    reach = player_reach[decomposition.decisions.parent[subgame.openings]]
    form = subgame.form(reach, opponent_values[subgame.augmented])
    return PublicForest(form, subgame.infosets, subgame.next_augmented)


def cut_public(
    d: PublicDecomposition,
    layer: int,
    roots: np.ndarray | None = None,
    deal: BoardDeal | None = None,
    *,
    gadget: bool = True,
) -> PublicSubgame:
    """Cut some roots of a layer out as a gadget game.

    Args:
      d: Result of `decompose_public`.
      layer: Number of the layer, 1 .. num_layers. The first layer is the complete game
        without gadget.
      roots: Indices into `d.roots`, int32 [r], ascending, all of this layer. None: all.
      deal: Private states. None: all.
      gadget: Whether o has a gadget above each root; never in the first layer.
    """
    i, gadget = d.player, gadget and layer > 1
    deal = full_deal(d.game) if deal is None else deal
    roots = d.roots_of(layer) if roots is None else roots
    nodes = _nodes(d, layer, roots, gadget)
    sequences = _sequences(d, nodes)
    terms, term_root = _terms(d, nodes, sequences, deal)
    player_roots, next_roots = (
        np.searchsorted(d.roots, some) for some in (nodes.player, nodes.next_roots)
    )
    passed_roots = roots if gadget else roots[:0]
    return PublicSubgame(
        player=i,
        sides=_sides(d, nodes, sequences, deal),
        deal=deal,
        terms=terms,
        term_root=term_root,
        root_round=d.game.betting.round[d.roots[roots]] - deal.first,
        player_nodes=nodes.player,
        other_nodes=nodes.opponent,
        next_roots=nodes.next_roots,
        infosets=_infosets(d, player_roots, d.first_infoset, deal, i),
        openings=_infosets(d, roots, d.first_infoset, deal, i),
        opening_subgame=_subgames(d, roots, deal),
        augmented=_infosets(d, passed_roots, d.first_augmented, deal, 1 - i),
        next_augmented=_infosets(d, next_roots, d.first_augmented, deal, 1 - i),
    )


class _SubgameNodes(NamedTuple):
    """Public nodes of a subgame, int64 or int32 each, ascending.

    Attributes:
      tops: Highest nodes of the subgame.
      levels: Nodes by number of moves below the tops.
      player: Decisions of i.
      opponent: Decisions of o.
      passed: Tops with a gadget above.
      next_roots: Nodes of `player` that are roots of the next layer.
    """

    tops: np.ndarray
    levels: list[np.ndarray]
    player: np.ndarray
    opponent: np.ndarray
    passed: np.ndarray
    next_roots: np.ndarray


def _nodes(
    d: PublicDecomposition, layer: int, roots: np.ndarray, gadget: bool
) -> _SubgameNodes:
    """Return the nodes of a subgame; arguments as in `cut_public`."""
    # The game of the first layer has all nodes, including those above its roots.
    tops = d.roots[roots] if layer > 1 else np.zeros(1, np.int32)
    levels = d.game.finder.levels(tops)
    inside = np.sort(np.concatenate(levels))
    actor = d.game.betting.player[inside]
    player, opponent = inside[actor == d.player], inside[actor == 1 - d.player]
    passed = tops if gadget else tops[:0]
    return _SubgameNodes(
        tops, levels, player, opponent, passed, player[d.layer[player] == layer + 1]
    )


class _NodeSequences(NamedTuple):
    """Public sequences that lead to nodes, int32 [all nodes] each; 0 outside.

    Attributes:
      player: Sequences of i.
      opponent_above: Sequences of o that lead to the gadget or passed infoset above a
        node.
      opponent: Sequences of o that lead to the node itself.
      top: Index of the top above each node.
      opponent_actions: Number of o's actions at the gadget's decisions, at its own
        nodes and above roots of the next layer, int32.
    """

    player: np.ndarray
    opponent_above: np.ndarray
    opponent: np.ndarray
    top: np.ndarray
    opponent_actions: np.ndarray


def _sequences(d: PublicDecomposition, nodes: _SubgameNodes) -> _NodeSequences:
    """Number both players' sequences, and follow them down from the tops."""
    betting, i = d.game.betting, d.player
    passed, further = nodes.passed, nodes.next_roots
    infosets = make_gadget_infosets("cfrd", passed)
    first_player = np.zeros(len(betting), np.int32)
    first_player[nodes.player] = _first_sequences(
        d.game.betting.num_actions[nodes.player]
    )
    num_actions = np.concatenate(
        [
            infosets.num_actions,
            d.game.betting.num_actions[nodes.opponent],
            np.ones(len(further), np.int32),
        ]
    )
    first = _first_sequences(num_actions)
    first_other, passing = np.zeros((2, len(betting)), np.int32)
    first_other[nodes.opponent] = first[len(passed) :][: len(nodes.opponent)]
    # o's sequence after the gadget's or passed infoset in front of a node, if any.
    passing[passed] = infosets.entering
    passing[further] = first[len(first) - len(further) :]
    player, above, behind = np.zeros((3, len(betting)), np.int32)
    behind[nodes.tops] = np.arange(len(nodes.tops))
    opponent = passing.copy()
    for level in nodes.levels[1:]:
        up, taken = betting.parent[level], betting.index[level]
        actor = betting.player[up]
        player[level] = np.where(actor == i, first_player[up] + taken, player[up])
        above[level] = np.where(actor == 1 - i, first_other[up] + taken, opponent[up])
        free = level[passing[level] == 0]
        opponent[free] = above[free]
        behind[level] = behind[up]
    return _NodeSequences(player, above, opponent, behind, num_actions)


def _sides(
    d: PublicDecomposition,
    nodes: _SubgameNodes,
    sequences: _NodeSequences,
    deal: BoardDeal,
) -> tuple[PublicSide, PublicSide]:
    """Return each player's public decisions, in the order of players."""
    rounds = d.game.betting.round - deal.first
    player = PublicSide(
        sequences.player[nodes.player],
        d.game.betting.num_actions[nodes.player],
        rounds[nodes.player],
    )
    parents = [
        np.zeros(len(nodes.passed), np.int32),
        sequences.opponent[nodes.opponent],
        sequences.opponent_above[nodes.next_roots],
    ]
    points = np.concatenate([nodes.passed, nodes.opponent, nodes.next_roots])
    actions = sequences.opponent_actions
    opponent = PublicSide(np.concatenate(parents), actions, rounds[points])
    return (player, opponent) if d.player == 0 else (opponent, player)


def _terms(
    d: PublicDecomposition,
    nodes: _SubgameNodes,
    sequences: _NodeSequences,
    deal: BoardDeal,
) -> tuple[PublicTerms, np.ndarray]:
    """Return the payoffs inside, and the index of the top above each, int32 [T]."""
    terms, inside = d.game.terms, np.zeros(len(d.game.betting), bool)
    inside[np.concatenate(nodes.levels)] = True
    used = np.flatnonzero(inside[terms.leaf])
    leaf = terms.leaf[used]
    player, opponent = sequences.player[leaf], sequences.opponent[leaf]
    paid = PublicTerms(
        (player, opponent) if d.player == 0 else (opponent, player),
        deal.number[terms.matrix[used]],
        terms.stake[used],
    )
    return paid, sequences.top[leaf]


def _first_sequences(num_actions: np.ndarray) -> np.ndarray:
    """Return the public sequence of each decision's first action, int32 [n]."""
    ends = np.cumsum(num_actions)
    return (1 + ends - num_actions).astype(np.int32)


def _infosets(
    d: PublicDecomposition,
    roots: np.ndarray,
    first: np.ndarray,
    deal: BoardDeal,
    player: int,
) -> np.ndarray:
    """Return numbers of a player's (augmented) infosets at some of `d.roots`, int32."""
    rounds = d.game.betting.round[d.roots[roots]] - deal.first
    fragments = [
        first[root] + deal.private_states[player][number]
        for root, number in zip(roots, rounds, strict=True)
    ]
    return np.concatenate(fragments or [np.zeros(0, np.int32)]).astype(np.int32)


def _subgames(d: PublicDecomposition, roots: np.ndarray, deal: BoardDeal) -> np.ndarray:
    """Number the subgame (root and board) of each infoset of i at roots, int32."""
    labels = [
        d.boards[deal.first + number][d.player][private_states]
        for number, private_states in enumerate(deal.private_states[d.player])
    ]
    width = 1 + max(int(label.max(initial=0)) for label in labels)
    rounds = d.game.betting.round[d.roots[roots]] - deal.first
    fragments = [width * root + labels[number] for root, number in enumerate(rounds)]
    return np.concatenate(fragments or [np.zeros(0, np.int32)])
