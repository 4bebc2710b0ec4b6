"""Construction of a `GameTree`: every history and infoset of a game as numpy arrays."""

from spiel_cr.common.errors import TooManyHistoriesError
from spiel_cr.games.histories import Histories
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.opened import load_game
from spiel_cr.games.tree.tree import GameTree, Infosets
from spiel_cr.games.tree.tree_builder import as_tree, build_tree

__all__ = [
    "GameTree",
    "BatchedRules",
    "Histories",
    "Infosets",
    "TooManyHistoriesError",
    "as_tree",
    "build_tree",
    "load_game",
]
