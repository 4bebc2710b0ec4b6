"""Luck taken out of matches whose referee knows how chance and the opponent move."""

from collections.abc import Mapping

import numpy as np
import pyspiel

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.game_checks import player_return
from spiel_cr.policies.rollouts import Answers, draw_outcome, moves, play_on

# Fewer matches do not tell how strong the correlation is.
_LEAST = 20


class Luck:
    """What the moves of chance and of the opponent brought the responder in a match.

    At each such move another one is drawn from the same probabilities, and both are
    played out to the end. The difference of the two returns has mean zero whatever has
    happened before, and so has the sum over the match: a control variate, as in AIVAT
    (Burch et al. 2018), with one drawn move in place of the expectation over all. An
    observer of `play_match`.

    Attributes:
      total: of the match so far, in the game's units.
    """

    def __init__(
        self,
        player: int,
        answers: Mapping[int, Answers],
        random: np.random.Generator,
        *,
        rollouts: int,
        opponent_is_known: bool,
    ) -> None:
        """Nothing has happened yet.

        Args:
          player: the responder.
          answers: how both players play in rollouts; the opponent as in the match.
          random: consumed.
          rollouts: after each of the two moves.
          opponent_is_known: the opponent moves in the match as `answers` says; else
            only chance's luck is taken out.
        """
        self._player, self._answers, self._random = player, answers, random
        self._rollouts, self._known = rollouts, opponent_is_known
        self.total = 0.0

    def __call__(self, state: pyspiel.State, player: int, action: int) -> None:
        """Takes in a move before it is made."""
        if player == self._player or (player >= 0 and not self._known):
            return
        # Of chance nobody is asked.
        outcomes = list(moves(state, self._answers[max(player, 0)]).items())
        if len(outcomes) < 2:
            return
        other = draw_outcome(outcomes, self._random.random())
        if other != action:
            gain = self._value(state.child(action)) - self._value(state.child(other))
            self.total += gain

    def _value(self, state: pyspiel.State) -> float:
        """The responder's mean return of rollouts."""
        total = 0.0
        for _ in range(self._rollouts):
            end = state.clone()
            if end.current_player() != TERMINAL:
                play_on(end, self._answers, self._random.random)
            total += player_return(end, self._player)
        return total / self._rollouts


def without_luck(returns: np.ndarray, luck: np.ndarray) -> np.ndarray:
    """float64 [n], returns less what luck explains of them; of the same expectation.

    How much luck counts for is fitted by least squares, to each half of the matches on
    the other half, so that no match helps to choose its own correction.

    Args:
      returns: float64 [n], of independent matches.
      luck: float64 [n], of mean zero, see `Luck`.
    """
    if len(returns) < _LEAST:
        return returns
    result = returns.copy()
    halves = np.arange(len(returns)) % 2 == 0
    for mine in (halves, ~halves):
        other = luck[~mine]
        spread = float(np.square(other).sum())
        if spread:
            centred = returns[~mine] - returns[~mine].mean()
            result[mine] -= float(centred @ other) / spread * luck[mine]
    return result
