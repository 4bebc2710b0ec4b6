"""Opponents that strings describe, loaded in one call."""

from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import as_tree
from spiel_cr.players.player_strings import read_string


def load_opponent(text, game, *, seed=0):
    """Return the policy of a string; build the game tree if the policy needs it."""
    loaded = open_game(game).game
    spec = read_string(text, "opponent", loaded)
    if spec.needs_tree:
        game = as_tree(game, observations=True)
    elif not isinstance(game, GameTree):
        game = loaded
    return spec.policy(game, seed, lazy=False)
