"""Batched rules that declare private states, so that the public-tree form can be used.

With one additional method, `private_state`, batched rules (see
`games.opening.batched_rules`) declare that all actions are public and that private
information is only dealt.
"""

from typing import Any, Protocol

import numpy as np

from spiel_cr.games.opening.batched_rules import BatchedRules


class PublicTreeRules(BatchedRules, Protocol):
    """Batched rules that declare private states.

    Two methods are optional. The first one is

        payoff_key(states) -> np.ndarray

    It returns integers [n] or [n, k] at terminal states, which depend on the bets
    alone: terminal states of one round with equal keys have the same payoffs on every
    deal. This saves time if a game has hundreds of thousands of leaves. The second one
    is

        private_state_names(states, player) -> Sequence[str]

    It returns readable names of private states, such as "Kh | 5c 9d", with public cards
    after the bar.
    """

    def private_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return a key of the player's private state, integers [n] or [n, k].

        The private state is everything that the player was dealt so far, public cards
        included. The method is called at decisions of both players and at terminal
        states. Keys are equal for two states of one round exactly if the player was
        dealt the same, in the same order, or if a symmetry of the game (for example, of
        suits) maps one to the other. They must not depend on the players' actions.
        Private states with the same parent in the round before are numbered in
        ascending order of keys.
        """


def declares(rules: Any) -> bool:
    """Return whether batched rules declare private states."""
    return callable(getattr(rules, "private_state", None))
