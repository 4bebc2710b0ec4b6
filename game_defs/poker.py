"""Poker games with one private card each: a betting tree and a deck.

`betting` contains the bets, `poker_deck` the cards. This module combines both: states,
observers and the batched rules, which `leduc_poker` and `rhode_island_holdem` share.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel

from game_defs import base, betting, poker_deck
from game_defs.betting import BettingTree
from game_defs.poker_deck import Deck


class PokerGame(base.Game):
    """A poker game; subclasses read parameters, and make the tree and the deck.

    Attributes:
      tree: All sequences of deals and bets.
      deck: The cards.
    """

    def __init__(
        self,
        kind: pyspiel.GameType,
        params: Mapping[str, Any],
        tree: BettingTree,
        deck: Deck,
    ) -> None:
        """Describe the game to OpenSpiel.

        Args:
          kind: Type of the game, from `base.game_type`.
          params: All parameters, from `parameters.merge`.
          tree: All sequences of deals and bets.
          deck: The cards, with as many public ones as the tree deals.
        """
        super().__init__(
            kind,
            params,
            num_distinct_actions=tree.num_actions,
            max_chance_outcomes=len(deck.names),
            max_utility=tree.max_utility,
            max_game_length=tree.max_bets,
        )
        self.tree = tree
        self.deck = deck

    def max_chance_nodes_in_history(self) -> int:
        """Return the number of deals: private cards and public ones."""
        return self.tree.num_deals

    def new_initial_state(self) -> "PokerState":
        """Return the state before the first deal."""
        return PokerState(self)

    def batched_rules(self) -> "BatchedPoker":
        """Return the batched rules."""
        return BatchedPoker(self.tree, self.deck)

    def _observer(self, shows: pyspiel.IIGObservationType) -> base.Observer:
        return PokerObserver(shows, self.tree, self.deck)


class PokerState(base.State):
    """A state of a poker game.

    Attributes:
      tree: All sequences of deals and bets.
      deck: The cards of the game.
      row: Row of the tree.
      cards: Dealt cards, packed as in `poker_deck`.
    """

    def __init__(self, game: PokerGame) -> None:
        """Initialise the state; use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.tree = game.tree
        self.deck = game.deck
        self.row = 0
        self.cards = 0

    def bets(self) -> betting.BettingState:
        """Return the deals made and the bets so far."""
        return self.tree.bets[self.row]

    def current_player(self) -> int:
        """Return the player to act, CHANCE before a deal, or TERMINAL."""
        return self.tree.mover[self.row]

    def _legal_actions(self, player: int) -> list[int]:
        return list(self.tree.legal[self.row])

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the cards that can be dealt, with their probabilities."""
        return self.deck.deal_probabilities(self.cards)

    def _apply_action(self, action: int) -> None:
        children = self.tree.children[self.row]
        if self.tree.legal[self.row]:
            self.row = children[action]
        else:
            number = self.tree.bets[self.row].num_deals
            self.cards = poker_deck.add_card(self.cards, number, action)
            self.row = children[0]

    def _action_to_string(self, player: int, action: int) -> str:
        if player < 0:
            return f"Deal {self.deck.names[action]}"
        return betting.Action(action).name.capitalize()

    def is_terminal(self) -> bool:
        """Return True after a fold and at a showdown."""
        return self.tree.mover[self.row] == base.TERMINAL

    def _utility(self) -> int:
        bets = self.bets()
        sign = betting.fold_sign(bets) or int(self.deck.showdown(self.cards))
        return betting.stake(bets) * sign

    def bucket_key(self, player: int) -> tuple[int, ...]:
        """Return a player's information without the order of bets: imperfect recall.

        It consists of the player's card, the public cards, both players' chips in the
        pot, and the number of raises in this round, which is limited.
        """
        seen = (poker_deck.card_of(self.cards, i) for i in _seen_by(player, self.deck))
        return *seen, *betting.money(self.bets())

    def __str__(self) -> str:
        bets = self.bets()
        hands = " ".join(self.deck.text(self.cards, i) for i in range(base.NUM_PLAYERS))
        public = _public_text(self.deck, self.cards)
        chips0, chips1 = bets.chips
        return f"cards {hands} {public} bets {bets.text} chips {chips0} {chips1}"


class PokerObserver(base.Observer):
    """Observer of a private card, and of public deals, bets and cards.

    The pieces of the tensor, with C cards that can be dealt, are: `card` [C], private;
    `deals` [most deals + 1], the number of cards dealt; for each public card a piece
    [C], such as `public_card` or `flop_card`; for perfect recall `bets` [most bets in a
    game, 3], all actions in order; otherwise `turn` [2], the player to act, `chips`
    [2], each player's chips in the pot, and `raises` [max_raises + 1], the raises in
    this round.

    In strings of perfect recall the bets are "d" for a deal, and "f", "c" and "r" for
    fold, call and raise. For example, "p0 card 2 public 0 bets ddrcd" is the
    information of player 0 of Leduc poker at the first decision of the second round.
    """

    def __init__(
        self, shows: pyspiel.IIGObservationType, tree: BettingTree, deck: Deck
    ) -> None:
        cards = (len(deck.names),)
        public: dict[str, base.Shape] = {"deals": (tree.num_deals + 1,)}
        public |= {_piece(name): cards for name in deck.public}
        if shows.perfect_recall:
            public["bets"] = (tree.max_bets, len(betting.Action))
        else:
            public["turn"] = public["chips"] = (base.NUM_PLAYERS,)
            public["raises"] = (tree.rules.max_raises + 1,)
        super().__init__(shows, {"card": cards}, public)

    def _set_private(self, pieces: base.Pieces, state: PokerState, owner: int) -> None:
        _set_card(pieces["card"], state.cards, owner)

    def _set_public(self, pieces: base.Pieces, state: PokerState) -> None:
        bets = state.bets()
        pieces["deals"][bets.num_deals] = 1
        for number, name in enumerate(state.deck.public, base.NUM_PLAYERS):
            _set_card(pieces[_piece(name)], state.cards, number)
        if self._recall:
            base.mark(pieces["bets"], bets.actions())
            return
        if bets.mover >= 0:
            pieces["turn"][bets.mover] = 1
        pieces["chips"][:] = bets.chips
        pieces["raises"][bets.raises] = 1

    def _private_text(self, state: PokerState, owner: int) -> str:
        return _card_text(state.deck, state.cards, owner)

    def _public_text(self, state: PokerState) -> str:
        bets = state.bets()
        text = _public_text(state.deck, state.cards)
        if self._recall:
            return f"{text} {_bets_text(bets)}"
        turn = bets.mover if bets.mover >= 0 else poker_deck.UNSEEN
        chips0, chips1 = bets.chips
        return (
            f"{text} deals {bets.num_deals} turn {turn} "
            f"chips {chips0} {chips1} raises {bets.raises}"
        )


class BatchedPoker:
    """Many states of a poker game; the methods are those of `pyspiel.State`.

    States are int64 [n, 2], the row and the cards of `PokerState`.
    """

    def __init__(self, tree: BettingTree, deck: Deck) -> None:
        """Store the tree and the deck; use `game.batched_rules()` instead."""
        self._tree = tree
        self._deck = deck
        width = max(len(betting.Action), len(deck.names))
        self._mover = np.array(tree.mover)
        self._num_deals = np.array([bets.num_deals for bets in tree.bets])
        self._stake = np.array([betting.stake(bets) for bets in tree.bets])
        self._fold = np.array([betting.fold_sign(bets) for bets in tree.bets])
        self._money = np.array([betting.money(bets) for bets in tree.bets])
        self._legal = np.zeros((len(tree.bets), width), bool)
        for row, actions in enumerate(tree.legal):
            self._legal[row, list(actions)] = True
        self._full = np.zeros(width)
        self._full[: len(deck.names)] = deck.copies
        # The next row by row and action; all deals of a row lead to the same one. The
        # factor that shifts a card to its position in the packed cards; 0 for bets.
        deals = self._mover == base.CHANCE
        self._after = np.full((len(tree.bets), width), -1, np.int32)
        self._after[:, : len(betting.Action)] = tree.children
        self._after[deals] = self._after[deals, :1]
        place = 1 << (poker_deck.CARD_BITS * self._num_deals)
        self._place = np.where(deals, place, 0)
        # The mask of packed cards that a player sees, and the factor of the row.
        seen = [
            sum(poker_deck.add_card(0, i, poker_deck.MAX_CARDS - 1) for i in numbers)
            for numbers in (_seen_by(p, deck) for p in range(base.NUM_PLAYERS))
        ]
        self._seen = np.array(seen)
        self._private_state = _private_states(deck)
        self._row_place = 1 << (poker_deck.CARD_BITS * tree.num_deals)

    def new_initial_states(self) -> np.ndarray:
        """Return the state before the first deal."""
        return np.zeros((1, 2), np.int64)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the players to act, CHANCE or TERMINAL; int64 [n]."""
        return self._mover[states[:, 0]]

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return legal actions, or cards that can be dealt, bool [n, A]."""
        row = states[:, 0]
        mask = self._legal[row]
        deals = np.flatnonzero(self._place[row])
        if len(deals):
            mask[deals] = self._left(states[deals]) > 0
        return mask

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return the probability of each card, float64 [n, A]."""
        probabilities = self._left(states)
        probabilities /= self._full.sum() - self._num_deals[states[:, :1]]
        return probabilities

    def _left(self, states: np.ndarray) -> np.ndarray:
        """Return copies of each card in the deck before a deal, float64 [n, A]."""
        left = np.repeat(self._full[None], len(states), axis=0)
        for number in range(self._tree.num_deals - 1):
            card = poker_deck.card_of(states[:, 1], number)
            dealt = np.flatnonzero(card)
            left[dealt, card[dealt] - 1] -= 1
        return left

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after one action or deal each."""
        row = states[:, 0]
        after = np.empty_like(states)
        after[:, 0] = self._after[row, actions]
        after[:, 1] = states[:, 1] + self._place[row] * (actions + 1)
        return after

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utilities at the end, int64 [n]."""
        row, cards = states.T
        fold = self._fold[row]
        sign = np.where(fold != 0, fold, self._deck.showdown(cards))
        return self._stake[row] * sign

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int64 [n]: the player's card and public ones, packed, and the row."""
        return states[:, 0] * self._row_place + (states[:, 1] & self._seen[player])

    def bucket_key(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return the keys of `PokerState.bucket_key`, int64 [n, 4 + public cards]."""
        row, cards = states.T
        seen = [poker_deck.card_of(cards, i) for i in _seen_by(player, self._deck)]
        return np.column_stack([*seen, self._money[row]])

    def private_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int32 [n]: the player's card and public ones, up to naming suits."""
        cards = states[:, 1]
        card = poker_deck.card_of(cards, player)
        public = cards >> (poker_deck.CARD_BITS * base.NUM_PLAYERS)
        return self._private_state[card | public << poker_deck.CARD_BITS]

    def private_state_names(self, states: np.ndarray, player: int) -> Sequence[str]:
        """Return the player's card and, after a bar, the public ones: "Kh | 5c 9d"."""
        deck, names = self._deck, []
        for cards in states[:, 1].tolist():
            dealt = [deck.text(cards, number) for number in _seen_by(player, deck)]
            card, *public = [text for text in dealt if text != poker_deck.UNSEEN]
            names.append(f"{card} | {' '.join(public)}" if public else card)
        return names

    def information_state_strings(self, states: np.ndarray, player: int) -> list[str]:
        """Return the strings of `PokerObserver` for perfect recall."""
        deck, bets = self._deck, self._tree.bets
        return [
            f"{_card_text(deck, cards, player)} {_public_text(deck, cards)} "
            f"{_bets_text(bets[row])}"
            for row, cards in states.tolist()
        ]


def _seen_by(player: int, deck: Deck) -> list[int]:
    """Return the deals that a player observes: its own and the public ones."""
    return [player, *(base.NUM_PLAYERS + i for i in range(len(deck.public)))]


@functools.cache
def _private_states(deck: Deck) -> np.ndarray:
    """Return a number for each combination of a player's card and public cards, packed.

    Suits are renamed in the order of appearance, so that cards which differ by a
    permutation of suits have the same number; the player's card is the most
    significant.

    Returns:
      int32 [2 ** (bits of a card * cards seen)].
    """
    seen = 1 + len(deck.public)
    packed = np.arange(1 << (poker_deck.CARD_BITS * seen))
    result = np.zeros(len(packed), np.int32)
    named = np.zeros(len(packed), np.int32)  # Number of suits that have appeared.
    name = np.zeros((deck.suits, len(packed)), np.int32)  # New number from 1, or 0.
    for number in range(seen):
        card = poker_deck.card_of(packed, number)
        suit, dealt = (card - 1) % deck.suits, card > 0
        name_of_suit = name[suit, packed]
        new = dealt & (name_of_suit == 0)
        named[new] += 1
        name[suit[new], packed[new]] = named[new]
        rank = (card - 1) // deck.suits
        code = rank * deck.suits + name[suit, packed]
        result = result * (len(deck.names) + 1) + np.where(dealt, code, 0)
    return result.astype(np.int32)


def _piece(name: str) -> str:
    return f"{name}_card"


def _card_text(deck: Deck, cards: int, player: int) -> str:
    return f"p{player} card {deck.text(cards, player)}"


def _public_text(deck: Deck, cards: int) -> str:
    return " ".join(
        f"{name} {deck.text(cards, number)}"
        for number, name in enumerate(deck.public, base.NUM_PLAYERS)
    )


def _bets_text(bets: betting.BettingState) -> str:
    return f"bets {bets.text}"


def _set_card(row: np.ndarray, cards: int, number: int) -> None:
    """Mark a card in a row of zeros if it has been dealt."""
    card = poker_deck.card_of(cards, number)
    if card:
        row[card - 1] = 1
