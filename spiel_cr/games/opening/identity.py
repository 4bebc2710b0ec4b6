"""Comparisons of OpenSpiel games, and of their decisions.

A policy of one game is a policy of another one exactly if both have the same
information states with the same legal actions. Payoffs and chance probabilities may
differ.
"""

import numpy as np
import pyspiel

from spiel_cr.common.errors import OtherGameError
from spiel_cr.games.opening.origins import is_python, load_again

# Number of random rollouts of each game that are replayed in the other one.
_ROLLOUTS = 32


def same_game(first: pyspiel.Game, second: pyspiel.Game) -> bool:
    """Return whether two games are known to be the same without a walk through them.

    Args:
      first: A sequential game.
      second: Another sequential game.
    """
    if first is second:
        return True
    if type(first) is not type(second) or str(first) != str(second):
        return False
    if is_python(first):
        return load_again(first) is not None and load_again(second) is not None
    # The string of a game that was read from text does not describe it.
    return load_again(first) is not None


def other_game(argument: str, its_game: object, game: object) -> OtherGameError:
    """Return the error for an argument that belongs to another game.

    Args:
      argument: Description of the argument, such as "a Result".
      its_game: Game to which the argument belongs.
      game: Game for which it was passed.
    """
    return OtherGameError(
        f"{argument} of {its_game} was given for {game}, but the two games differ in "
        f"their information states or legal actions; use one of {game}"
    )


def check_same_decisions(
    argument: str, its_game: pyspiel.Game, game: pyspiel.Game
) -> None:
    """Raise an error if random rollouts show that two games have different decisions.

    Each game plays random matches, and the other game repeats the moves. The acting
    player, its legal actions and its information state must be equal at every decision.

    Args:
      argument: Description of the argument, for the error.
      its_game: Sequential game to which the argument belongs.
      game: Sequential game for which it was passed.

    Raises:
      OtherGameError: If the games differ; the message names both.
    """
    if same_game(its_game, game):
        return
    random = np.random.default_rng(0)
    for leading, following in ((its_game, game), (game, its_game)):
        for _ in range(_ROLLOUTS):
            if not _replays(leading, following, random):
                raise other_game(argument, its_game, game)


def _replays(
    leading: pyspiel.Game, following: pyspiel.Game, random: np.random.Generator
) -> bool:
    """Return whether a random match of one game is also a match of another game."""
    state, other = leading.new_initial_state(), following.new_initial_state()
    while not state.is_terminal():
        player = state.current_player()
        if other.is_terminal() or other.current_player() != player:
            return False
        legal = state.legal_actions()
        if player >= 0:
            strings = [each.information_state_string(player) for each in (state, other)]
            if legal != other.legal_actions() or strings[0] != strings[1]:
                return False
        action = legal[int(random.integers(len(legal)))]
        if action not in other.legal_actions():
            return False
        state.apply_action(action)
        other.apply_action(action)
    return bool(other.is_terminal())
