"""Rhode Island Hold'em: one private card, a flop and a turn of one card each.

Rules. Each player antes and gets a private card, and the players bet. A public card,
the flop, is dealt, and they bet. A second public card, the turn, is dealt, and they bet
for the last time. Player 0 opens all rounds. If there is nothing to call, a player
checks or bets; otherwise, it folds, calls or raises. All bets and raises of a round
have the same size. A round ends when both players have checked, or with a call. If
neither player has folded, the better hand wins. A hand consists of the private card,
the flop and the turn, ranked by `three_card_hands` (straight flush, three of a kind,
straight, flush, pair, high card). Equal hands are a draw. The winner wins the loser's
chips.

Details. The actions are fold, call and raise. A check is a call if there is nothing to
call, and a bet is a raise if there is nothing to call. Players never run out of chips.
With fewer than 13 ranks the highest rank is still the ace, and the lowest straight
consists of the ace and the two lowest ranks.

Parameters.
  num_ranks: ranks in the deck, from 2 to 13 (default 13).
  num_suits: suits in the deck, from 1 to 4 (default 4). The deck has at least 4 cards.
  ante: chips that each player pays at the start, from 1 to 1000 (default 5).
  bets: the size of bets and raises in each of the three rounds, from 1 to 1000,
    separated by spaces (default "10 20 20").
  max_bets: largest number of bets and raises of both players in a round, from 1 to 10
    (default 3).

Sizes and values. With the defaults: 6,705,372,545 histories (nodes of the tree),
2,554,427,616 of them decisions and 4,144,428,912 terminal; 26,064,064 infosets for each
player; 741 strengths of hands. If both players play uniformly at random, player 0 wins
1.781322 chips on average; against such an opponent the best response wins 29.533377 as
player 1 and 27.462078 as player 0. With 2 ranks, 2 suits and one bet in a round, there
are 2705 histories.

Source: Shi and Littman, "Abstraction methods for game theoretic poker" (2001),
introduce the game; Gilpin and Sandholm, "Lossless abstraction of imperfect information
games" (2007), solve it.
"""

import functools
from collections.abc import Mapping
from typing import Any

import pyspiel

from game_defs import base, betting, parameters, poker, three_card_hands
from game_defs.bundled.holdem.cards import RANKS, SUITS
from game_defs.poker_deck import Deck

_NAME = "python_rhode_island_holdem"
_NUM_ROUNDS = 3
_NUM_DEALS = 4
_BETS = range(1, 1001)

_GAME_TYPE = base.game_type(
    _NAME,
    "Python Rhode Island Hold'em",
    parameter_specification={
        "num_ranks": 13,
        "num_suits": 4,
        "ante": 5,
        "bets": "10 20 20",
        "max_bets": 3,
    },
    chance=True,
)

_ALLOWED = {
    "num_ranks": range(2, 14),
    "num_suits": range(1, 5),
    "ante": range(1, 1001),
    "max_bets": range(1, 11),
}


class RhodeIslandHoldemGame(poker.PokerGame):
    """Rhode Island Hold'em; the module's docstring has its rules and parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        merged = parameters.merge(_GAME_TYPE, params, _ALLOWED)
        num_ranks, num_suits = merged["num_ranks"], merged["num_suits"]
        if num_ranks * num_suits < _NUM_DEALS:
            raise ValueError(
                f"{_NAME}: num_ranks={num_ranks} and num_suits={num_suits} make a deck "
                f"of {num_ranks * num_suits} cards, but {_NUM_DEALS} are dealt; "
                "increase num_ranks or num_suits"
            )
        bets = _sizes(merged["bets"])
        # The stack covers every bet, so that players are never all-in.
        stack = merged["ante"] + merged["max_bets"] * sum(bets)
        rules = betting.BettingRules(
            ante=merged["ante"],
            raises=bets,
            public_cards=(1, 1),
            max_raises=merged["max_bets"],
            stacks=(stack, stack),
            free_folds=False,
        )
        tree = betting.betting_tree(rules)
        deck = rhode_island_deck(num_ranks, num_suits)
        super().__init__(_GAME_TYPE, merged, tree, deck)


def _sizes(bets: str) -> tuple[int, ...]:
    """Return the size of a bet in each round, parsed from the game's parameter."""
    words = bets.split()
    numbers = [int(w) for w in words if w.isascii() and w.isdecimal()]
    if len(numbers) < len(words) or len(words) != _NUM_ROUNDS:
        raise ValueError(
            f"{_NAME}: bets={bets!r} is not a list of {_NUM_ROUNDS} integers, one per "
            "round; separate them by spaces, such as bets=10 20 20"
        )
    for number in numbers:
        parameters.check(_NAME, "bets", number, _BETS)
    return tuple(numbers)


@functools.cache
def rhode_island_deck(num_ranks: int, num_suits: int) -> Deck:
    """Return the deck; a card is its rank * num_suits + its suit."""
    ranks = RANKS[: num_ranks - 1] + RANKS[-1]
    return Deck(
        names=tuple(rank + suit for rank in ranks for suit in SUITS[:num_suits]),
        copies=1,
        public=("flop", "turn"),
        strength=three_card_hands.strengths(num_ranks, num_suits),
        suits=num_suits,
        source=(rhode_island_deck, (num_ranks, num_suits)),
    )


pyspiel.register_game(_GAME_TYPE, RhodeIslandHoldemGame)
