"""Public-tree games: public actions combined with dealt private information.

Their payoffs factor, so the cost of an iteration is proportional to public nodes times
private states, not to histories.
"""

from spiel_cr.games.public_tree.comparison import check_tree
from spiel_cr.games.public_tree.declaration.public_tree_rules import PublicTreeRules
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    Hands,
    PayoffMatrix,
    SparseMatrix,
)
from spiel_cr.games.public_tree.public_nodes import Betting, Reader, Terms
from spiel_cr.games.public_tree.public_tree_loading import declared, public_tree_game

__all__ = [
    "Betting",
    "HandMatrix",
    "Hands",
    "PayoffMatrix",
    "Reader",
    "PublicTreeGame",
    "PublicTreeRules",
    "SparseMatrix",
    "Terms",
    "check_tree",
    "declared",
    "public_tree_game",
]
