"""OpenSpiel states in tests."""

import pyspiel


def after(game, *actions):
    """The state after some actions, chance included.

    Args:
      game: OpenSpiel game or game string.
      actions: from the root.
    """
    game = pyspiel.load_game(game) if isinstance(game, str) else game
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state
