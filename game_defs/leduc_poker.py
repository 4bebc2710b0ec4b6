"""Leduc poker with chosen stacks, number of raises and number of ranks.

Rules. The deck has two cards of each rank; suits do not matter. Each player antes 1 and
gets a private card; the players bet; a public card is dealt; they bet again. Player 0
opens both rounds. A player folds, calls (which is a check if there is nothing to call)
or raises, by 2 over the other's chips in the first round, by 4 in the second. A round
ends when the second or a later action is a call. Of two players who have not folded,
the one whose card has the rank of the public card wins, else the one with the higher
rank; equal ranks are a draw. The winner wins the loser's chips.

Details. Folding is always allowed, also if there is nothing to call. A raise needs the
chips to call and to raise by the full amount, and each round allows only so many. Who
has too few chips to call calls with all that it has; what it could not match goes back
to the raiser at once. So a raise may be more than the other has, and a player without
chips keeps its turns: it can fold or call.
Ranks are dealt, with the odds of the real deck.

Parameters.
  stack0, stack1: chips of player 0 and player 1, the ante included, from 1 to 1000
    (default 7).
  max_raises: raises in a round, both players' together, from 0 to 10 (default 1).
  num_ranks: ranks in the deck, from 2 to 13 (default 3).

Sizes and values. With the defaults: 895 histories (nodes of the tree), 540 of them
terminal, 60 infosets for each player, value -0.07811. With stacks of 13, which cover
all bets, and two raises it is OpenSpiel's `leduc_poker`, but for folds without a raise
and for suits; the value is the same, -0.085606.

Sources: Southey et al., "Bayes' bluff: opponent modelling in poker" (2005), who
introduce the game; Schlindenbuch, "General continual resolving" (2019), from which the
parameters and the rules of stacks are.

The rules themselves are in `leduc_betting`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel

from game_defs import base, leduc_betting, parameters

_NAME = "python_leduc_poker"

_GAME_TYPE = base.game_type(
    _NAME,
    "Python Leduc Poker with Stacks",
    parameter_specification={"stack0": 7, "stack1": 7, "max_raises": 1, "num_ranks": 3},
    chance=True,
)


_ALLOWED = {
    "stack0": range(1, 1001),
    "stack1": range(1, 1001),
    "max_raises": range(11),
    "num_ranks": range(2, 14),
}
_UNSEEN = "-"


class LeducPokerGame(base.Game):
    """Leduc poker; the module's docstring has its rules and parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        merged = parameters.merge(_GAME_TYPE, params, _ALLOWED)
        tree = leduc_betting.betting_tree(
            merged["stack0"], merged["stack1"], merged["max_raises"]
        )
        super().__init__(
            _GAME_TYPE,
            merged,
            num_distinct_actions=tree.num_actions,
            max_chance_outcomes=merged["num_ranks"],
            max_utility=tree.max_utility,
            max_game_length=tree.max_bets,
        )
        self.tree = tree
        self.num_ranks = merged["num_ranks"]
        self._max_raises = merged["max_raises"]

    def max_chance_nodes_in_history(self) -> int:
        """Returns the number of deals: two private cards and the public one."""
        return leduc_betting.NUM_DEALS

    def new_initial_state(self) -> "LeducPokerState":
        """Returns the state before the first deal."""
        return LeducPokerState(self)

    def vectorised(self) -> "VectorisedLeducPoker":
        """Returns the rules on arrays of states."""
        return VectorisedLeducPoker(self.tree, self.num_ranks)

    def _observer(self, shows: pyspiel.IIGObservationType) -> base.Observer:
        return LeducPokerObserver(
            shows, self.num_ranks, self.tree.max_bets, self._max_raises
        )


class LeducPokerState(base.State):
    """A state of Leduc poker.

    Attributes:
      tree: all sequences of deals and bets.
      num_ranks: ranks in the deck.
      row: the row of the tree where the game is.
      cards: the cards dealt, as one integer, as `leduc_betting` takes it.
    """

    def __init__(self, game: LeducPokerGame) -> None:
        """Use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.tree = game.tree
        self.num_ranks = game.num_ranks
        self.row = 0
        self.cards = 0

    def bets(self) -> leduc_betting.Bets:
        """Returns the deals made and the bets so far."""
        return self.tree.bets[self.row]

    def current_player(self) -> int:
        """Returns the player to act, CHANCE before a deal, or TERMINAL."""
        return self.tree.mover[self.row]

    def _legal_actions(self, player: int) -> list[int]:
        return list(self.tree.legal[self.row])

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Returns the ranks that can be dealt, with their probabilities."""
        return leduc_betting.rank_odds(self.cards, self.num_ranks)

    def _apply_action(self, action: int) -> None:
        children = self.tree.children[self.row]
        if self.tree.legal[self.row]:
            self.row = children[action]
        else:
            number = self.tree.bets[self.row].num_deals
            self.cards = leduc_betting.add_card(self.cards, number, action)
            self.row = children[0]

    def _action_to_string(self, player: int, action: int) -> str:
        if player < 0:
            return f"Deal {action}"
        return leduc_betting.Action(action).name.capitalize()

    def is_terminal(self) -> bool:
        """Returns True after a fold and at a showdown."""
        return self.tree.mover[self.row] == base.TERMINAL

    def _utility(self) -> int:
        return leduc_betting.utility(self.bets(), self.cards)

    def bucket_key(self, player: int) -> tuple[int, ...]:
        """Returns what a player knows but for the order of bets: imperfect recall.

        That is its card, the public one, both players' chips in the pot, and how often
        there was a raise in this round, since only so many are allowed.
        """
        own, public = (leduc_betting.card_of(self.cards, i) for i in (player, 2))
        return own, public, *leduc_betting.money(self.bets())

    def __str__(self) -> str:
        bets = self.bets()
        card0, card1, public = (
            _rank_text(self.cards, number) for number in range(leduc_betting.NUM_DEALS)
        )
        chips0, chips1 = bets.chips
        return (
            f"cards {card0} {card1} public {public} "
            f"bets {bets.text} chips {chips0} {chips1}"
        )


class LeducPokerObserver(base.Observer):
    """Observer: private is the own card, public are the deals, bets and public card.

    The pieces of the tensor, with R ranks: `card` [R], private; `deals` [4], the number
    of cards dealt; `public_card` [R]; for perfect recall `bets` [most bets in a game,
    3], all actions in order; otherwise `turn` [2], the player to act, `chips` [2], what
    each player has in the pot, and `raises` [max_raises + 1], those in this round.

    In strings of perfect recall the bets are "d" for a deal, "f", "c" and "r" for fold,
    call and raise; "p0 card 2 public 0 bets ddrcd" is player 0's information when it
    opens the second round.
    """

    def __init__(
        self,
        shows: pyspiel.IIGObservationType,
        num_ranks: int,
        max_bets: int,
        max_raises: int,
    ) -> None:
        public: dict[str, base.Shape] = {
            "deals": (leduc_betting.NUM_DEALS + 1,),
            "public_card": (num_ranks,),
        }
        if shows.perfect_recall:
            public["bets"] = (max_bets, len(leduc_betting.Action))
        else:
            public["turn"] = public["chips"] = (base.NUM_PLAYERS,)
            public["raises"] = (max_raises + 1,)
        super().__init__(shows, {"card": (num_ranks,)}, public)

    def _set_private(
        self, pieces: base.Pieces, state: LeducPokerState, owner: int
    ) -> None:
        _set_card(pieces["card"], state.cards, owner)

    def _set_public(self, pieces: base.Pieces, state: LeducPokerState) -> None:
        bets = state.bets()
        pieces["deals"][bets.num_deals] = 1
        _set_card(pieces["public_card"], state.cards, 2)
        if self._recall:
            base.mark(pieces["bets"], bets.actions())
            return
        if bets.mover >= 0:
            pieces["turn"][bets.mover] = 1
        pieces["chips"][:] = bets.chips
        pieces["raises"][bets.raises] = 1

    def _private_text(self, state: LeducPokerState, owner: int) -> str:
        return _own_text(state.cards, owner)

    def _public_text(self, state: LeducPokerState) -> str:
        bets = state.bets()
        text = _public_text(state.cards)
        if self._recall:
            return f"{text} {_bets_text(bets)}"
        turn = bets.mover if bets.mover >= 0 else _UNSEEN
        chips0, chips1 = bets.chips
        return (
            f"{text} deals {bets.num_deals} turn {turn} "
            f"chips {chips0} {chips1} raises {bets.raises}"
        )


class VectorisedLeducPoker:
    """Many states of Leduc poker; the methods are those of `pyspiel.State`.

    States are int64 [n, 2], the row and the cards of `LeducPokerState`.
    """

    def __init__(self, tree: leduc_betting.BettingTree, num_ranks: int) -> None:
        """Use `game.vectorised()` instead."""
        self._tree = tree
        self._mover = np.array(tree.mover)
        self._children = np.array(tree.children)
        self._num_deals = np.array([bets.num_deals for bets in tree.bets])
        self._stake = np.array([leduc_betting.stake(bets) for bets in tree.bets])
        self._fold = np.array([leduc_betting.fold_sign(bets) for bets in tree.bets])
        self._money = np.array([leduc_betting.money(bets) for bets in tree.bets])
        self._legal = np.zeros((len(tree.legal), max(3, num_ranks)), bool)
        for row, actions in enumerate(tree.legal):
            self._legal[row, list(actions)] = True
        # Row by the cards dealt; only two of them can come before another deal.
        add, ranks = leduc_betting.add_card, range(num_ranks)
        dealt = [0, *(add(0, 0, rank) for rank in ranks)]
        dealt += [
            add(add(0, 0, first), 1, second) for first in ranks for second in ranks
        ]
        self._odds = np.zeros((max(dealt) + 1, self._legal.shape[1]))
        for cards in dealt:
            for rank, chance in leduc_betting.rank_odds(cards, num_ranks):
                self._odds[cards, rank] = chance

    def new_initial_states(self) -> np.ndarray:
        """Returns the state before the first deal."""
        return np.zeros((1, 2), np.int64)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Returns the players to act, CHANCE or TERMINAL; int64 [n]."""
        return self._mover[states[:, 0]]

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Returns bool [n, A], legal actions, or ranks that can be dealt."""
        mask = self._legal[states[:, 0]]
        deals = ~mask.any(axis=1)
        mask[deals] = self.chance_probabilities(states[deals]) > 0
        return mask

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Returns float64 [n, A], the probability of each rank."""
        return self._odds[states[:, 1]]

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Returns the states after an action or a deal each."""
        row, cards = states.T
        deals = ~self._legal[row].any(axis=1)
        dealt = leduc_betting.add_card(cards, self._num_deals[row], actions)
        following = self._children[row, np.where(deals, 0, actions)]
        return np.stack([following, np.where(deals, dealt, cards)], axis=1)

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Returns player 0's utilities at the end, int64 [n]."""
        row, cards = states.T
        fold = self._fold[row]
        sign = np.where(fold != 0, fold, leduc_betting.showdown(cards))
        return self._stake[row] * sign

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Returns int64 [n, 3]: the row of the tree, the own card, the public one."""
        row, cards = states.T
        own, public = (leduc_betting.card_of(cards, i) for i in (player, 2))
        return np.stack([row, own, public], axis=1)

    def bucket_key(self, states: np.ndarray, player: int) -> np.ndarray:
        """Returns int64 [n, 5], the keys of `LeducPokerState.bucket_key`."""
        row, cards = states.T
        own, public = (leduc_betting.card_of(cards, i) for i in (player, 2))
        return np.column_stack([own, public, self._money[row]])

    def information_state_strings(
        self, states: np.ndarray, player: int
    ) -> Sequence[str]:
        """Returns the strings of `LeducPokerObserver` for perfect recall."""
        return [
            f"{_own_text(cards, player)} {_public_text(cards)} "
            f"{_bets_text(self._tree.bets[row])}"
            for row, cards in states.tolist()
        ]


def _own_text(cards: int, player: int) -> str:
    return f"p{player} card {_rank_text(cards, player)}"


def _public_text(cards: int) -> str:
    return f"public {_rank_text(cards, 2)}"


def _bets_text(bets: leduc_betting.Bets) -> str:
    return f"bets {bets.text}"


def _set_card(row: np.ndarray, cards: int, number: int) -> None:
    """Marks the rank of a card, if it has been dealt, in a row of zeros."""
    card = leduc_betting.card_of(cards, number)
    if card:
        row[card - 1] = 1


def _rank_text(cards: int, number: int) -> str:
    """The rank of a card, or a dash as long as it is not dealt."""
    card = leduc_betting.card_of(cards, number)
    return str(card - 1) if card else _UNSEEN


pyspiel.register_game(_GAME_TYPE, LeducPokerGame)
