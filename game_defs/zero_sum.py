"""What OpenSpiel is told of our games: two players, turns, zero sum, paid at the end.

All games of this package are of that kind and offer every string and tensor; the types
they register differ only in names, parameters and whether there is chance.
"""

from collections.abc import Mapping

import pyspiel

from game_defs.observation import NUM_PLAYERS

__all__ = ["game_info", "game_type", "returns"]


def game_type(
    short_name: str,
    long_name: str,
    parameter_specification: Mapping[str, int | str],
    *,
    chance: bool = False,
) -> pyspiel.GameType:
    """Returns the type to register a game with.

    Args:
      short_name: what the game string begins with.
      long_name: for people.
      parameter_specification: every parameter and its default.
      chance: whether there are chance nodes.
    """
    kind = pyspiel.GameType
    modes = kind.ChanceMode
    return kind(
        short_name=short_name,
        long_name=long_name,
        dynamics=kind.Dynamics.SEQUENTIAL,
        chance_mode=modes.EXPLICIT_STOCHASTIC if chance else modes.DETERMINISTIC,
        information=kind.Information.IMPERFECT_INFORMATION,
        utility=kind.Utility.ZERO_SUM,
        reward_model=kind.RewardModel.TERMINAL,
        max_num_players=NUM_PLAYERS,
        min_num_players=NUM_PLAYERS,
        provides_information_state_string=True,
        provides_information_state_tensor=True,
        provides_observation_string=True,
        provides_observation_tensor=True,
        provides_factored_observation_string=True,
        parameter_specification=dict(parameter_specification),
    )


def game_info(
    *,
    num_distinct_actions: int,
    max_utility: float,
    max_game_length: int,
    max_chance_outcomes: int = 0,
) -> pyspiel.GameInfo:
    """Returns the sizes of a game with the parameters it was given.

    Args:
      num_distinct_actions: actions of players, not of chance.
      max_utility: of either player; what one wins at most, the other loses.
      max_game_length: moves of players at most.
      max_chance_outcomes: of a chance node.
    """
    return pyspiel.GameInfo(
        num_distinct_actions=num_distinct_actions,
        max_chance_outcomes=max_chance_outcomes,
        num_players=NUM_PLAYERS,
        min_utility=-max_utility,
        max_utility=max_utility,
        utility_sum=0.0,
        max_game_length=max_game_length,
    )


def returns(utility: float) -> list[float]:
    """Returns both players' utilities, given player 0's."""
    value = float(utility)
    return [value, 0.0 - value]  # never -0.0
