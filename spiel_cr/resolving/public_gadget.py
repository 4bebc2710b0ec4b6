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

from spiel_cr.common.pairs import ordered_pair, pair
from spiel_cr.games.public_tree.form import build
from spiel_cr.games.public_tree.public_terms import Constants, PublicSide, PublicTerms
from spiel_cr.games.sequence_form.decisions import first_sequences
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
        terms = self.terms._replace(weights=ordered_pair(i, weights, None))
        return build(self.sides, deal.parents, deal.payoff_matrices, terms, [terminate])

    def form_by_beliefs(self, reach: Sequence[Sequence[np.ndarray]]) -> SequenceForm:
        """Return the game without a gadget, in which both ranges are fixed.

        The subgame must be cut without a gadget.

        Args:
          reach: Reach of each player at each root, float64 [H].
        """
        weights = pair(self._weights_of(player, reach[player]) for player in range(2))
        terms = self.terms._replace(weights=weights)
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
    cut = _SubgameCut(d, layer, roots, deal, gadget)
    terms, term_root = cut.terms()
    player_roots, next_roots = (
        np.searchsorted(d.roots, some) for some in (cut.player, cut.next_roots)
    )
    passed_roots = roots if gadget else roots[:0]
    return PublicSubgame(
        player=i,
        sides=cut.sides(),
        deal=deal,
        terms=terms,
        term_root=term_root,
        root_round=cut.rounds[d.roots[roots]],
        player_nodes=cut.player,
        other_nodes=cut.opponent,
        next_roots=cut.next_roots,
        infosets=cut.infosets(player_roots, d.first_infoset, i),
        openings=cut.infosets(roots, d.first_infoset, i),
        opening_subgame=cut.subgames(roots),
        augmented=cut.infosets(passed_roots, d.first_augmented, 1 - i),
        next_augmented=cut.infosets(next_roots, d.first_augmented, 1 - i),
    )


class _SubgameCut:
    """Nodes of a subgame, and the public sequences that lead to them.

    Nodes are int64 or int32, ascending. Sequences are int32 [all nodes]; 0 outside.

    Attributes:
      rounds: Round of each public node, as the subgame counts rounds.
      tops: Highest nodes of the subgame.
      levels: Nodes by number of moves below the tops.
      player: Decisions of i.
      opponent: Decisions of o.
      passed: Tops with a gadget above.
      next_roots: Nodes of `player` that are roots of the next layer.
      player_sequence: Sequences of i.
      opponent_above: Sequences of o that lead to the gadget or passed infoset above a
        node.
      opponent_sequence: Sequences of o that lead to the node itself.
      top: Index of the top above each node.
      opponent_actions: Number of o's actions at the gadget's decisions, at its own
        nodes and above roots of the next layer, int32.
    """

    def __init__(
        self,
        d: PublicDecomposition,
        layer: int,
        roots: np.ndarray,
        deal: BoardDeal,
        gadget: bool,
    ) -> None:
        """Find the nodes and sequences of a subgame; arguments as in `cut_public`."""
        self._d, self._deal, betting = d, deal, d.game.betting
        self.rounds = betting.round - deal.first
        # The game of the first layer has all nodes, including those above its roots.
        self.tops = d.roots[roots] if layer > 1 else np.zeros(1, np.int32)
        self.levels = betting.levels(self.tops)
        inside = np.sort(np.concatenate(self.levels))
        actor = betting.player[inside]
        self.player = inside[actor == d.player]
        self.opponent = inside[actor == 1 - d.player]
        self.passed = self.tops if gadget else self.tops[:0]
        self.next_roots = self.player[d.layer[self.player] == layer + 1]
        self._number_sequences()

    def _number_sequences(self) -> None:
        """Number both players' sequences, and follow them down from the tops."""
        betting, i = self._d.game.betting, self._d.player
        passed, further = self.passed, self.next_roots
        infosets = make_gadget_infosets("cfrd", passed)
        first_player = np.zeros(len(betting), np.int32)
        first_player[self.player] = first_sequences(betting.num_actions[self.player])
        own_actions = betting.num_actions[self.opponent]
        last = np.ones(len(further), np.int32)
        self.opponent_actions = np.concatenate(
            [infosets.num_actions, own_actions, last]
        )
        first = first_sequences(self.opponent_actions)
        first_other, passing = np.zeros((2, len(betting)), np.int32)
        first_other[self.opponent] = first[len(passed) :][: len(self.opponent)]
        # o's sequence after the gadget's or passed infoset in front of a node, if any.
        passing[passed] = infosets.entering
        passing[further] = first[len(first) - len(further) :]
        player, above, behind = np.zeros((3, len(betting)), np.int32)
        behind[self.tops] = np.arange(len(self.tops))
        opponent = passing.copy()
        for level in self.levels[1:]:
            up, taken = betting.parent[level], betting.index[level]
            actor = betting.player[up]
            player[level] = np.where(actor == i, first_player[up] + taken, player[up])
            above[level] = np.where(
                actor == 1 - i, first_other[up] + taken, opponent[up]
            )
            free = level[passing[level] == 0]
            opponent[free] = above[free]
            behind[level] = behind[up]
        self.player_sequence, self.opponent_sequence = player, opponent
        self.opponent_above, self.top = above, behind

    def sides(self) -> tuple[PublicSide, PublicSide]:
        """Return each player's public decisions, in the order of players."""
        player = PublicSide(
            self.player_sequence[self.player],
            self._d.game.betting.num_actions[self.player],
            self.rounds[self.player],
        )
        parents = [
            np.zeros(len(self.passed), np.int32),
            self.opponent_sequence[self.opponent],
            self.opponent_above[self.next_roots],
        ]
        points = np.concatenate([self.passed, self.opponent, self.next_roots])
        opponent = PublicSide(
            np.concatenate(parents), self.opponent_actions, self.rounds[points]
        )
        return ordered_pair(self._d.player, player, opponent)

    def terms(self) -> tuple[PublicTerms, np.ndarray]:
        """Return the payoffs inside, and the index of the top above each, int32 [T]."""
        terms, inside = self._d.game.terms, np.zeros(len(self.rounds), bool)
        inside[np.concatenate(self.levels)] = True
        used = np.flatnonzero(inside[terms.leaf])
        leaf = terms.leaf[used]
        last = self.player_sequence[leaf], self.opponent_sequence[leaf]
        sequences = ordered_pair(self._d.player, *last)
        matrix = self._deal.number[terms.matrix[used]]
        return PublicTerms(sequences, matrix, terms.stake[used]), self.top[leaf]

    def infosets(self, roots: np.ndarray, first: np.ndarray, player: int) -> np.ndarray:
        """Return numbers of a player's (augmented) infosets at some of `d.roots`."""
        fragments = [
            first[root] + self._deal.private_states[player][number]
            for root, number in zip(
                roots, self.rounds[self._d.roots[roots]], strict=True
            )
        ]
        return np.concatenate(fragments or [np.zeros(0, np.int32)]).astype(np.int32)

    def subgames(self, roots: np.ndarray) -> np.ndarray:
        """Number the subgame (root and board) of each infoset of i at roots, int32."""
        d, deal = self._d, self._deal
        labels = [
            d.boards[deal.first + number][d.player][private_states]
            for number, private_states in enumerate(deal.private_states[d.player])
        ]
        width = 1 + max(int(label.max(initial=0)) for label in labels)
        rounds = self.rounds[d.roots[roots]]
        fragments = [
            width * root + labels[number] for root, number in enumerate(rounds)
        ]
        return np.concatenate(fragments or [np.zeros(0, np.int32)])
