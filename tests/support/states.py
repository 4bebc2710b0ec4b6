"""OpenSpiel states in tests."""

import numpy as np
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


def play(game_string, history):
    """The state after actions, each of them legal, chance included."""
    state = pyspiel.load_game(game_string).new_initial_state()
    for action in history:
        assert not state.is_terminal()
        assert action in state.legal_actions()
        state.apply_action(action)
    return state


def agree_on_scrambled_cards(tree, make, player, infosets, at_least):
    """Two bots, each asked at one history of an infoset only, give the same policy.

    Args:
      tree: the compiled game.
      make: of no argument, a bot; the same each time.
      player: whose bots.
      infosets: so many are drawn.
      at_least: in more than so many of them the two histories differ.
    """
    rng = np.random.default_rng(player)
    twins = [make() for _ in range(2)]
    scrambled = 0
    for i in rng.permutation(len(tree.infosets[player]))[:infosets]:
        members = np.flatnonzero(
            (tree.histories.player == player) & (tree.histories.infoset == i)
        )
        asked = [
            twin.get_policy(tree.state_at(history))
            for twin, history in zip(twins, (members[0], members[-1]), strict=True)
        ]
        assert asked[0] == asked[1]
        scrambled += members[0] != members[-1]
    assert scrambled > at_least
