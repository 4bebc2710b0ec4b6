"""Opponents from strings, loaded in one call as `judging.targets` does step by step."""

from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import as_tree
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players.opponent_strings import policy_of, read_opponent


def load_opponent(text, game, *, seed=0):
    """The policy that a string of `read_opponent` names; compiled where it needs it."""
    loaded = open_game(game).game
    named = read_opponent(text, loaded)
    if named.whole:
        return policy_of(named, as_tree(game, observations=True), seed)
    return policy_of(named, game if isinstance(game, GameTree) else loaded, seed)
