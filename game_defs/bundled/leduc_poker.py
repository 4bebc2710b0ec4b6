"""Public tree of OpenSpiel's `leduc_poker`, from the bets and the deck of `poker`."""

import functools

import numpy as np
import pyspiel

from game_defs import betting, poker
from game_defs.poker_deck import Deck

_RANKS, _SUITS = "JQK", "sh"


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
    deck = _deck(1 if params["suit_isomorphism"] else len(_SUITS))
    return poker.BatchedPoker(betting.betting_tree(rules), deck)


@functools.cache
def _deck(suits: int) -> Deck:
    """Return the deck; with one suit, only ranks are dealt, from two copies of each."""
    rank = np.arange(suits * len(_RANKS)) // suits
    names = (r + s for r in _RANKS for s in (_SUITS if suits > 1 else [""]))
    return Deck(
        names=tuple(names),
        copies=len(_SUITS) // suits,
        public=("public",),
        # By private and public card: a pair beats any single card.
        strength=rank[:, None] + len(_RANKS) * (rank[:, None] == rank),
        suits=suits,
        source=(_deck, (suits,)),
    )
