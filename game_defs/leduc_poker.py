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

The bets are those of `betting`, states and observers those of `poker`.
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
_NUM_SUITS = 2

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
        super().__init__(_GAME_TYPE, merged, tree, leduc_deck(merged["num_ranks"]))


@functools.cache
def leduc_deck(num_ranks: int) -> Deck:
    """Return the deck of two suits, of which only the ranks are dealt."""
    ranks = np.arange(num_ranks)
    # By the own card and the public one: a pair beats any single card.
    strength = ranks[:, None] + num_ranks * (ranks[:, None] == ranks)
    return Deck(
        names=tuple(str(rank) for rank in range(num_ranks)),
        copies=_NUM_SUITS,
        public=("public",),
        strength=strength,
        suits=1,
        source=(leduc_deck, (num_ranks,)),
    )


pyspiel.register_game(_GAME_TYPE, LeducPokerGame)
