"""Helpers for OpenSpiel states in tests."""

import numpy as np
import pyspiel


def after(game, *actions):
    """Return the state after some actions, chance outcomes included.

    Args:
      game: OpenSpiel game or game string.
      actions: Actions from the root.
    """
    game = pyspiel.load_game(game) if isinstance(game, str) else game
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


def play(game_string, history):
    """Return the state after actions, each of which must be legal."""
    state = pyspiel.load_game(game_string).new_initial_state()
    for action in history:
        assert not state.is_terminal()
        assert action in state.legal_actions()
        state.apply_action(action)
    return state


def agree_on_scrambled_cards(tree, make, player, infosets, at_least):
    """Check that policies do not depend on the queried history of an infoset.

    Args:
      tree: The game tree.
      make: A function without arguments that returns equal bots.
      player: The player of the bots.
      infosets: Number of infosets that are sampled.
      at_least: The two histories differ in more than this number of infosets.
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
