"""Equilibria of stochastic games with few players: loops around one stage.

Two loops (Ganzfried & Sandholm 2008, 2009). Fictitious play solves every stage with
fixed values after it:

- vi-fp: the values are then those of the stage (value iteration). It may stop where no
  equilibrium is: values that are too high keep themselves up.
- pi-fp: the values are those of playing by the strategies for ever (policy iteration).
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.common.errors import SolverFailedError
from spiel_cr.push_fold.engine import InnerSettings

ALGORITHMS = ("vi-fp", "pi-fp")
# Of a player's decision process: policies improve strictly, so few rounds are needed.
_MOST_ROUNDS = 1000


class StochasticGame(Protocol):
    """N states with n players; profiles are arrays whose first axis is the state."""

    def start_values(self) -> np.ndarray:
        """Values [N, n] to begin with."""

    def start_profile(self) -> np.ndarray:
        """Strategies to begin with."""

    def play(
        self, profile: np.ndarray, values: np.ndarray, inner: InnerSettings, begin: int
    ) -> np.ndarray:
        """Fictitious play within every stage, from averages of `begin` steps."""

    def one_stage(self, profile: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values [N, n] of one stage by the profile, and `values` after it."""

    def evaluate(self, profile: np.ndarray) -> np.ndarray:
        """Values [N, n] of playing by the profile to the end."""

    def best_replies(
        self, profile: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Each player's best response to the others for one stage, and its values."""

    def evaluate_alone(self, profile: np.ndarray, replies: np.ndarray) -> np.ndarray:
        """Values [N, n] where each player alone plays by `replies` to the end."""


class OuterRound(NamedTuple):
    """After a round of a loop.

    Attributes:
      number: from 1.
      profile: strategies.
      values: [N, n] that the next round takes for true.
      change: largest change of a value in this round.
    """

    number: int
    profile: np.ndarray
    values: np.ndarray
    change: float


def rounds(
    game: StochasticGame,
    algorithm: str,
    inner: InnerSettings,
    *,
    start: OuterRound | None = None,
) -> Iterator[OuterRound]:
    """Runs a loop, for ever.

    Args:
      game: to be solved.
      algorithm: one of ALGORITHMS.
      inner: fictitious play within stages.
      start: a round to go on from.

    Raises:
      ValueError: there is no such algorithm.
    """
    check_choice(algorithm, "algorithm", ALGORITHMS)
    if start is None:
        start = OuterRound(0, game.start_profile(), game.start_values(), np.inf)
    number, profile, values, _ = start
    while True:
        number += 1
        # What came before counts for a quarter of its steps: it had other values.
        begin = inner.steps * (number - 1) // 4
        profile = game.play(profile, values, inner, begin)
        if algorithm == "vi-fp":
            new = game.one_stage(profile, values)
        else:
            new = game.evaluate(profile)
        change = float(np.abs(new - values).max())
        values = new
        yield OuterRound(number, profile, values, change)


def best_deviation(
    game: StochasticGame, profile: np.ndarray, *, tolerance: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Solves each player's Markov decision process against the others' strategies.

    By policy iteration from the values of the profile, which can only rise.

    Args:
      game: that is played.
      profile: the fixed strategies.
      tolerance: stop where no value rises by more.

    Returns:
      Values [N, n] of best responses to the end, and the best responses.

    Raises:
      SolverFailedError: values still rise by more than `tolerance` after 1000 rounds.
    """
    values = game.evaluate(profile)
    replies = profile
    for _ in range(_MOST_ROUNDS):
        best, _ = game.best_replies(profile, values)
        response_values = game.evaluate_alone(profile, best)
        rise = float((response_values - values).max())
        values, replies = np.maximum(values, response_values), best
        if rise <= tolerance:
            return values, replies
    raise SolverFailedError(
        f"tolerance={tolerance}: best responses of {type(game).__name__} still rise by "
        f"{rise:.3g} after {_MOST_ROUNDS} rounds; give a larger tolerance"
    )
