"""Last stage: OpenSpiel's exact tools judge a policy."""

from typing import NamedTuple

import pyspiel
from open_spiel.python import policy as policy_lib
from open_spiel.python.algorithms import expected_game_score, exploitability

__all__ = ["Verdict", "judge"]


class Verdict(NamedTuple):
    """How good a policy is.

    Attributes:
      nash_conv: sum of both players' gains from exact best responses, in the game's
        units; exploitability in most papers is half of it.
      game_value: player 0's expected utility when both players follow the policy.
    """

    nash_conv: float
    game_value: float


def judge(game: pyspiel.Game, policy: policy_lib.Policy) -> Verdict:
    """Computes exact NashConv and value with OpenSpiel's Python tools.

    Args:
      game: a sequential two-player game.
      policy: a policy for both players.
    """
    value = expected_game_score.policy_value(game.new_initial_state(), [policy] * 2)
    return Verdict(
        nash_conv=float(exploitability.nash_conv(game, policy)),
        game_value=float(value[0]),
    )
