"""States of a simultaneous game and of its turn-based form, translated both ways."""

import pyspiel

_SIMULTANEOUS = pyspiel.GameType.Dynamics.SIMULTANEOUS


def is_simultaneous(game: pyspiel.Game | None) -> bool:
    """Return whether players of a game move at the same time."""
    return game is not None and game.get_type().dynamics == _SIMULTANEOUS


def simultaneous_state(state: pyspiel.State) -> pyspiel.State:
    """Return the state of the simultaneous game behind a turn-based state.

    A move of player 0 that waits for player 1's answer is not part of it.

    Args:
      state: A state of a converted game; any other state is returned as it is.
    """
    if isinstance(state, pyspiel.TurnBasedSimultaneousState):
        return state.simultaneous_game_state()
    return state


def turn_based_state(
    game: pyspiel.Game, state: pyspiel.State, player: int
) -> pyspiel.State:
    """Return the turn-based state at which a player decides as in a simultaneous one.

    Args:
      game: The turn-based form.
      state: A state of the simultaneous game.
      player: The player who is to act. If it is player 1, player 0 has made its first
        legal move, which player 1 does not see.
    """
    converted = game.new_initial_state()
    for action in state.history():
        converted.apply_action(action)
    if player == 1 and state.is_simultaneous_node():
        converted.apply_action(converted.legal_actions()[0])
    return converted
