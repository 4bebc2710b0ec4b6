"""Leduc poker with adjustable stacks, number of raises and number of ranks.

Rules. The deck has two cards of each rank; suits do not matter. Each player antes 1 and
gets a private card. The players bet, a public card is dealt, and the players bet again.
Player 0 opens both rounds. A player folds, calls (a check if there is nothing to call)
or raises. A raise exceeds the opponent's chips by 2 in the first round and by 4 in the
second. A round ends when the second or a later action is a call. If neither player has
folded, a card of the public card's rank wins; otherwise, the higher rank wins, and
equal ranks are a draw. The winner wins the loser's chips.

Details. Folding is always allowed, even if there is nothing to call. To raise, a player
needs the chips to call and to raise by the full amount, and the number of raises in a
round is limited. A player with too few chips to call calls with all its chips, and the
unmatched part of the raise returns to the raiser at once. Therefore a raise may exceed
the opponent's chips, and a player without chips still has turns: it can fold or call.
Chance outcomes are ranks, with the probabilities of the real deck.

Parameters.
  stack0, stack1: chips of player 0 and player 1, including the ante, from 1 to 1000
    (default 7).
  max_raises: largest number of raises of both players in a round, from 0 to 10 (default
    1).
  num_ranks: ranks in the deck, from 2 to 13 (default 3).

Sizes and values. With the defaults: 895 histories (nodes of the tree), 540 of them
terminal, 60 infosets for each player, value -0.07811. With stacks of 13, which cover
all bets, and two raises, the game equals OpenSpiel's `leduc_poker` except for folds
without a raise and for suits. The value is the same, -0.085606.

Sources: Southey et al., "Bayes' bluff: opponent modelling in poker" (2005), introduce
the game; the parameters and the rules for stacks come from Schlindenbuch, "General
continual resolving" (2019).

The public tree of OpenSpiel's `leduc_poker` is also declared here, from the same bets
and a deck with suits. The module `betting` implements the bets, and `poker` the states
and observers.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from game_defs import base, betting, parameters, poker
from game_defs.poker_deck import Deck

_NAME = "python_leduc_poker"
_ANTE = 1
_RAISES = (2, 4)  # by round
_NUM_COPIES = 2  # of each rank

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


class LeducPokerGame(poker.PokerGame):
    """Leduc poker; the module's docstring has its rules and parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        merged = parameters.merge(_GAME_TYPE, params, _ALLOWED)
        rules = betting.BettingRules(
            ante=_ANTE,
            raises=_RAISES,
            public_cards=(1,),
            max_raises=merged["max_raises"],
            stacks=(merged["stack0"], merged["stack1"]),
            free_folds=True,
        )
        tree = betting.betting_tree(rules)
        deck = leduc_deck(tuple(map(str, range(merged["num_ranks"]))), "")
        super().__init__(_GAME_TYPE, merged, tree, deck)


@functools.cache
def leduc_deck(ranks: tuple[str, ...], suits: str) -> Deck:
    """Return a deck with two cards of each rank.

    Args:
      ranks: Names of the ranks.
      suits: Names of the two suits; empty: only ranks are dealt.
    """
    num_suits = max(len(suits), 1)
    rank = np.arange(num_suits * len(ranks)) // num_suits
    return Deck(
        names=tuple(name + suit for name in ranks for suit in suits or [""]),
        copies=_NUM_COPIES // num_suits,
        public=("public",),
        # By private and public card: a pair beats any single card.
        strength=rank[:, None] + len(ranks) * (rank[:, None] == rank),
        suits=num_suits,
        source=(leduc_deck, (ranks, suits)),
    )


def public_tree_of_leduc_poker(game: pyspiel.Game) -> poker.BatchedPoker:
    """Return batched rules that declare the private states of two-player Leduc poker.

    Raises:
      ValueError: If the parameters are not supported.
    """
    params = game.get_parameters()
    if params["action_mapping"]:
        raise ValueError(
            "action_mapping=True is not supported, because different actions then have "
            "the same effect; leave it out"
        )
    rules = betting.BettingRules(
        ante=1,
        raises=(2, 4),
        public_cards=(1,),
        max_raises=2,
        stacks=(100, 100),
        free_folds=False,
        opener=params["starting_player"],
    )
    deck = leduc_deck(("J", "Q", "K"), "" if params["suit_isomorphism"] else "sh")
    return poker.BatchedPoker(betting.betting_tree(rules), deck)


pyspiel.register_game(_GAME_TYPE, LeducPokerGame)
