"""Rules on arrays that declare a signal game, and how signals and payoffs are asked.

A vectorised game (see `games.opening.vectorised`) declares that its actions are public
and that its private information is only dealt by one more method, `signal`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyspiel

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.opening.vectorised import VectorisedGame


class SignalRules(VectorisedGame, Protocol):
    """A vectorised game that declares its signals.

    It may also have

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
    """Whether a vectorised game declares its signals."""
    return callable(getattr(rules, "signal", None))


@dataclasses.dataclass(frozen=True)
class Asked:
    """A game whose answers are checked.

    Attributes:
      game: for messages.
      rules: the game on arrays.
    """

    game: pyspiel.Game
    rules: SignalRules

    def signals(self, states: np.ndarray, player: int) -> np.ndarray:
        """The signals of a player, integers [n, k]."""
        return self._rows("signal", self.rules.signal(states, player), len(states))

    def information(self, states: np.ndarray, player: int) -> np.ndarray:
        """The information of a player who acts, integers [n, k]."""
        keys = self.rules.information_state(states, player)
        return self._rows("information_state", keys, len(states))

    def payoff_keys(self, states: np.ndarray) -> np.ndarray | None:
        """The payoff keys of ends, integers [n, k]; None: there are none."""
        make = getattr(self.rules, "payoff_key", None)
        if make is None:
            return None
        return self._rows("payoff_key", make(states), len(states))

    def names(self, states: np.ndarray, player: int) -> Sequence[str] | None:
        """What signals are called; None: the game does not say."""
        make = getattr(self.rules, "signal_names", None)
        return None if make is None else make(states, player)

    def payoffs(self, states: np.ndarray) -> np.ndarray:
        """The utilities of player 0 at ends, float64 [n]."""
        worth = np.asarray(self.rules.returns(states), np.float64)
        if worth.shape != (len(states),) or not np.isfinite(worth).all():
            raise InvalidGameError(
                f"{self.game}: returns of the vectorised game gives {worth.shape} with "
                f"{np.count_nonzero(~np.isfinite(worth))} numbers that are not finite; "
                f"it must give {len(states)} finite numbers"
            )
        return worth

    def odds(self, states: np.ndarray) -> np.ndarray:
        """The probability of each outcome at chance nodes, float64 [n, A].

        Rows sum to 1; where an outcome is not legal it is 0.
        """
        mask = self.rules.legal_actions_mask(states)
        odds = np.where(mask, self.rules.chance_probabilities(states), 0.0)
        total = odds.sum(axis=1)
        if not ((odds >= 0).all() and (abs(total - 1) <= 1e-9).all()):
            raise InvalidGameError(
                f"{self.game}: chance_probabilities of the vectorised game sum to "
                f"{total.min()} to {total.max()} at chance nodes; they must be at "
                f"least 0 and sum to 1"
            )
        return odds

    def _rows(self, method: str, keys: np.ndarray, count: int) -> np.ndarray:
        keys = np.asarray(keys)
        if keys.dtype.kind not in "iu" or keys.ndim not in (1, 2) or len(keys) != count:
            raise InvalidGameError(
                f"{self.game}: {method} of the vectorised game gives {keys.dtype} "
                f"{list(keys.shape)}; it must give integers [{count}] or [{count}, k]"
            )
        return keys.reshape(count, -1).astype(np.int64, copy=False)
