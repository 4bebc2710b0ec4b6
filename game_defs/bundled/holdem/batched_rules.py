"""Batched rules of `universal_poker` with limited bets.

Because bets do not depend on cards, a state consists of a node of the public tree and
the cards that have been dealt. The tree is read from OpenSpiel's states (see
`betting`).
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel

from game_defs import base
from game_defs.bundled.holdem import betting, strengths
from game_defs.bundled.holdem.betting import Deal, HoldemTree
from game_defs.bundled.holdem.buckets import Buckets
from game_defs.bundled.holdem.cards import HoldemDeck
from game_defs.bundled.holdem.rules import MAX_HOLE_CARDS, HoldemRules

# Columns of the states.
_NODE, _DEALT, _HANDS, _BOARD, _COLUMNS = 0, 1, 2, 4, 5
# OpenSpiel's indices of call and raise in limit games, and the number of actions.
_CALL, _RAISE, _ACTIONS = 1, 2, 3
# Largest number of cards that `strengths` can evaluate.
_MOST_CARDS = 7


def batched_universal_poker(game: pyspiel.Game) -> "BatchedLimitPoker | None":
    """Return the batched rules of a `universal_poker` with limited bets.

    The result is None if bets are not limited, and for subgames (`boardCards`,
    `potSize`, `handReaches`). It is also None for games with more than two players, two
    private cards or seven cards per hand, and for games with more than
    `betting.MAX_NODES` public nodes.
    """
    params = game.get_parameters()
    board = [int(cards) for cards in params["numBoardCards"].split()]
    supported = (
        params["betting"] == "limit"
        and params["bettingAbstraction"] == "fcpa"
        and params["numPlayers"] == base.NUM_PLAYERS
        and not (params["boardCards"] or params["handReaches"] or params["potSize"])
        and 1 <= params["numHoleCards"] <= MAX_HOLE_CARDS
        and params["numHoleCards"] + sum(board) <= _MOST_CARDS
    )
    return _make(tuple(sorted(params.items()))) if supported else None


@functools.lru_cache(maxsize=4)
def _make(items: tuple[tuple[str, Any], ...]) -> "BatchedLimitPoker | None":
    """Return the rules; cached, because reading the bets takes a second in hold'em.

    Args:
      items: Name and value of every parameter of the game.
    """
    params = dict(items)
    loaded = pyspiel.load_game("universal_poker", params)
    deck = HoldemDeck(params["numRanks"], params["numSuits"])
    board = [int(cards) for cards in params["numBoardCards"].split()]
    deals = tuple(board[: params["numRounds"]])
    rules = HoldemRules(deck, params["numHoleCards"], (), deals, None)
    shape = loaded.information_state_tensor_shape()
    try:
        tree = betting.play(loaded, rules, _deal(rules))
        return BatchedLimitPoker(rules, tree, int(np.prod(shape)))
    except ValueError:
        return None


def _deal(rules: HoldemRules) -> Deal:
    """Return a deal that player 0 wins, or a tie if no such deal is drawn."""
    cards = np.arange(len(rules.deck))[::-1].tolist()
    hole, random = rules.hole, np.random.default_rng(0)
    for _ in range(1000):
        hands = cards[:hole], cards[hole : 2 * hole]
        board = cards[2 * hole : 2 * hole + sum(rules.deals)]
        together = np.array([[*hand, *board] for hand in hands])
        first, second = strengths.of_cards(together, rules.deck.num_suits)
        if first > second:
            break
        random.shuffle(cards)
    return Deal(hands, board)


class BatchedLimitPoker:
    """Batched states of a limit game; the methods are those of `pyspiel.State`.

    States are int64 [n, 5]: the node of the public tree, the number of cards dealt, the
    cards of each player, and the public cards. The cards are sets of
    `strengths.card_bits`.
    """

    def __init__(self, rules: HoldemRules, tree: HoldemTree, features: int) -> None:
        """Use `batched_universal_poker` instead.

        Args:
          rules: Deck and number of private cards.
          tree: Public tree of all bets.
          features: Number of entries of OpenSpiel's information state tensor.
        """
        count, size = len(rules.deck), len(tree.player)
        self._rules, self._hole, self.bets = rules, rules.hole, tree
        self._round = tree.round.astype(np.int64)
        self._bits = strengths.card_bits(rules.deck.num_suits)[:count]
        self._player = tree.player.astype(np.int64)
        self._cards = (base.NUM_PLAYERS * rules.hole + tree.dealt).astype(np.int64)
        self._stake, self._showdown = tree.stake, tree.showdown
        self._below = np.full((size, _ACTIONS), -1)
        self._below[tree.parent[1:], tree.action[1:]] = np.arange(1, size)
        # The width is the larger of the numbers of chance outcomes and actions.
        self._legal = np.zeros((size, max(count, _ACTIONS)), bool)
        self._legal[:, :_ACTIONS] = self._below >= 0
        self._bets = self._sequences(tree, features - 2 - 2 * count)

    def _sequences(self, tree: HoldemTree, width: int) -> np.ndarray:
        """Return OpenSpiel's two bits for each move, bool [P, width]: called, raised.

        Deals also occupy two bits each, which remain 0.

        Raises:
          ValueError: If there are more moves than places in OpenSpiel's tensor.
        """
        bets = np.zeros((len(tree.player), width), bool)
        num_moves = np.zeros(len(tree.player), np.int64)
        for node in range(1, len(tree.player)):
            above, action = tree.parent[node], tree.action[node]
            num_moves[node] = num_moves[above] + 1
            place = 2 * (self._cards[above] + num_moves[above])
            if place + 1 >= width:
                raise ValueError(
                    "the moves do not fit into the information state tensor"
                )
            bets[node] = bets[above]
            if action in (_CALL, _RAISE):
                bets[node, place + (action == _RAISE)] = 1
        return bets

    def new_initial_states(self) -> np.ndarray:
        """Return the state before the first card."""
        return np.zeros((1, _COLUMNS), np.int64)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the players to bet, CHANCE or TERMINAL; int64 [n]."""
        node = states[:, _NODE]
        deals = states[:, _DEALT] < self._cards[node]
        return np.where(deals, base.CHANCE, self._player[node])

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return bool [n, A]: fold, call and raise, or the remaining cards."""
        node = states[:, _NODE]
        legal = self._legal[node]
        deals = states[:, _DEALT] < self._cards[node]
        if deals.any():
            legal[deals] = False
            legal[deals, : len(self._bits)] = self._left(states[deals])
        return legal

    def _left(self, states: np.ndarray) -> np.ndarray:
        """Return the cards that remain in the deck, bool [n, cards]."""
        dealt = np.bitwise_or.reduce(states[:, _HANDS:], axis=1)
        return dealt[:, None] & self._bits == 0

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return equal probabilities of the remaining cards, float64 [n, A]."""
        probabilities = np.zeros((len(states), self._legal.shape[1]))
        left = self._left(states)
        probabilities[:, : len(self._bits)] = left / left.sum(axis=1, keepdims=True)
        return probabilities

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after one card or bet each."""
        after = states.copy()
        node, dealt = states[:, _NODE], states[:, _DEALT]
        deals = np.flatnonzero(dealt < self._cards[node])
        bets = np.flatnonzero(dealt >= self._cards[node])
        after[bets, _NODE] = self._below[node[bets], actions[bets]]
        to = np.minimum(dealt[deals] // self._hole, base.NUM_PLAYERS)
        after[deals, _HANDS + to] |= self._bits[actions[deals]]
        after[deals, _DEALT] += 1
        return after

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utilities at the end, in chips, float64 [n]."""
        node = states[:, _NODE]
        values = self._stake[node]
        shown = np.flatnonzero(self._showdown[node])
        if len(shown):
            held = states[shown, _HANDS:_BOARD] | states[shown, _BOARD, None]
            strong = strengths.strengths(strengths.split(held))
            values[shown] *= np.sign(strong[:, 0] - strong[:, 1])
        return values

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int64 [n, 3]: public node, player's cards, and public cards."""
        return states[:, [_NODE, _HANDS + player, _BOARD]]

    def bucket_bytes(self) -> int:
        """Return the approximate memory in bytes that `bucketed` needs."""
        rules, deck = self._rules, self._rules.deck
        boards = math.comb(len(deck), sum(rules.deals))
        # Most boards represent one board for each order of suits.
        boards = boards * 5 // (4 * math.factorial(deck.num_suits)) + 1
        return 5 * boards * math.comb(len(deck), rules.hole)

    def bucketed(
        self,
        counts: Sequence[int],
        arrays: Mapping[str, np.ndarray] | None = None,
        tick: Callable[[], object] = lambda: None,
    ) -> "BucketedLimitPoker":
        """Return the same game with buckets of hands instead of cards.

        Args:
          counts: Largest number of buckets in each round.
          arrays: Stored `bucket_arrays` of the same buckets; None: computed from
            scratch.
          tick: Function that is called repeatedly during the computation.

        Raises:
          ValueError: If there is not a number from 1 to 65,536 for each round, or the
            arrays belong to other buckets.
        """
        rounds = len(self._rules.deals)
        if len(counts) != rounds or not all(0 < each <= 1 << 16 for each in counts):
            text = "-".join(map(str, counts))
            raise ValueError(
                f"hand_buckets={text}: use a number from 1 to 65536 for each of the "
                f"{rounds} rounds"
            )
        return BucketedLimitPoker(self, tuple(counts), arrays, tick)

    def information_state_tensor(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return OpenSpiel's tensors, bool [n, F].

        Their parts are the player, its cards, the public cards and the bets.
        """
        cards = states[:, _HANDS + player, None] & self._bits != 0
        board = states[:, _BOARD, None] & self._bits != 0
        observer = np.broadcast_to(np.arange(2) == player, (len(states), 2))
        return np.concatenate(
            [observer, cards, board, self._bets[states[:, _NODE]]], axis=1
        )


class BucketedLimitPoker(BatchedLimitPoker):
    """Limit game in which players see buckets of hands instead of cards."""

    def __init__(
        self,
        unbucketed: BatchedLimitPoker,
        counts: tuple[int, ...],
        arrays: Mapping[str, np.ndarray] | None,
        tick: Callable[[], object],
    ) -> None:
        """Use `BatchedLimitPoker.bucketed` instead."""
        vars(self).update(vars(unbucketed))
        buckets = self._buckets = Buckets(self._rules, counts, arrays, tick)
        self.counts, self.held = counts, buckets.held
        self.sizes = tuple(np.cumsum(self._rules.deals).tolist())
        self.bucket_arrays, self.draw_board = buckets.arrays, buckets.draw_board
        self.buckets, self.beats = buckets.on_board, buckets.beats

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int64 [n, 2]: public node, and the hand's bucket in its round."""
        node = states[:, _NODE]
        hands, boards = states[:, _HANDS + player], states[:, _BOARD]
        bucket = self._buckets(hands, boards, self._round[node])
        return np.stack([node, bucket], axis=1)
