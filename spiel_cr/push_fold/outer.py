"""Equilibria of stochastic games with few players: loops around one stage.

Four loops are available (Ganzfried & Sandholm 2008, 2009). In two of them, fictitious
play (FP) solves every stage, while the values of the states after the stage are fixed:

- vi-fp: the next values are those of the stage (value iteration). It may stop at a
  fixed point that is not an equilibrium, because values that are too high sustain
  themselves.
- pi-fp: the next values are those of playing by the strategies for ever (policy
  iteration).

In the other two, fictitious play is the outer loop. In each round, every player's
Markov decision process against the other players' strategies is solved, and the
strategies move towards the solutions:

- fp-vi: by value iteration, from the values of the strategies, which can only rise.
- fp-pi: by policy iteration.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.common.errors import SolverFailedError
from spiel_cr.push_fold.engine import InnerSettings

ALGORITHMS = ("vi-fp", "pi-fp", "fp-vi", "fp-pi")
# Limit of policy iteration: policies improve strictly, so few rounds are needed.
_MOST_ROUNDS = 1000
# Rise of values at which the decision processes of fp-vi and fp-pi count as solved.
_TOLERANCE = 1e-9


class StochasticGame(Protocol):
    """A game of N states with n players; the first axis of profiles is the state."""

    def start_values(self) -> np.ndarray:
        """Return the initial values, [N, n]."""

    def start_profile(self) -> np.ndarray:
        """Return the initial strategy profile."""

    def play(
        self, profile: np.ndarray, values: np.ndarray, inner: InnerSettings, begin: int
    ) -> np.ndarray:
        """Run fictitious play within every stage, from averages of `begin` steps."""

    def one_stage(self, profile: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return values [N, n] of one stage by the profile, with `values` after it."""

    def evaluate(self, profile: np.ndarray) -> np.ndarray:
        """Return values [N, n] of playing by the profile to the end."""

    def best_replies(
        self, profile: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return each player's best response for one stage, and its values."""

    def evaluate_alone(self, profile: np.ndarray, replies: np.ndarray) -> np.ndarray:
        """Return values [N, n] if each player alone plays by `replies` to the end."""


class OuterRound(NamedTuple):
    """The state of a loop after a round.

    Attributes:
      number: Number of the round, from 1.
      profile: Strategies of all players.
      values: Values [N, n] that the next round uses; of fp-vi and fp-pi, the values of
        best responses.
      change: Largest change of a value in this round.
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
    """Yield the rounds of a loop without end.

    Args:
      game: Game to solve.
      algorithm: One of ALGORITHMS.
      inner: Settings of fictitious play within stages, for vi-fp and pi-fp.
      start: Round from which to resume; None: start from scratch.

    Raises:
      ValueError: If the algorithm does not exist.
    """
    check_choice(algorithm, "algorithm", ALGORITHMS)
    if start is None:
        start = OuterRound(0, game.start_profile(), game.start_values(), np.inf)
    number, profile, values, _ = start
    while True:
        number += 1
        if algorithm.startswith("fp"):
            new, replies = best_deviation(
                game, profile, alone=algorithm == "fp-pi", tolerance=_TOLERANCE
            )
            profile = profile + (replies - profile) / (number + 1)
        else:
            # Earlier rounds count for a quarter of their steps: they used other values.
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
    game: StochasticGame,
    profile: np.ndarray,
    *,
    alone: bool = True,
    tolerance: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve each player's Markov decision process against the others' strategies.

    Both methods start from the values of the profile, which can only rise.

    Args:
      game: Game that is played.
      profile: Fixed strategies.
      alone: Whether policies are evaluated to the end of the game (policy iteration).
        Otherwise only the next stage is (value iteration).
      tolerance: Largest rise of a value at which the iteration stops.

    Returns:
      Values [N, n] of best responses to the end, and the best responses.

    Raises:
      SolverFailedError: If values still rise by more than `tolerance` after 1000
        rounds.
    """
    values = game.evaluate(profile)
    replies = profile
    for _ in range(_MOST_ROUNDS):
        best, response_values = game.best_replies(profile, values)
        if alone:
            response_values = game.evaluate_alone(profile, best)
        rise = float((response_values - values).max())
        values, replies = np.maximum(values, response_values), best
        if rise <= tolerance:
            return values, replies
    raise SolverFailedError(
        f"tolerance={tolerance}: best responses of {type(game).__name__} still rise by "
        f"{rise:.3g} after {_MOST_ROUNDS} rounds; give a larger tolerance"
    )
