"""Batched rules that declare a signal game, to solve it in that form.

Batched rules (see `games.opening.batched_rules`) declare by one more method, `signal`,
that all actions are public and that private information is only dealt.
"""

from typing import Any, Protocol

import numpy as np

from spiel_cr.games.opening.batched_rules import BatchedRules


class PublicTreeRules(BatchedRules, Protocol):
    """Batched rules that declare their signals.

    They may also have

        payoff_key(states) -> np.ndarray

    with integers [n] or [n, k] at ends, which depend on the bets alone: ends of one
    round whose keys are equal pay alike on every deal. It saves time where a game has
    hundreds of thousands of ends. And

        signal_names(states, player) -> Sequence[str]

    which names signals for people, as "Kh | 5c 9d"; public cards after the bar.
    """

    def signal(self, states: np.ndarray, player: int) -> np.ndarray:
        """Integers [n] or [n, k]: what a player was dealt so far, public and its own.

        Asked at decisions of both players and at ends. Equal for two states of one
        round exactly where what the player was dealt is the same, in its order, or
        where a symmetry of the game leads from one to the other (as one suit to
        another); independent of all that players did. Signals that refine the same one
        of the round before are numbered in ascending order.
        """


def declares(rules: Any) -> bool:
    """Return whether batched rules declare their signals."""
    return callable(getattr(rules, "signal", None))
