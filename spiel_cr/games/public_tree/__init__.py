"""Public-tree games: public actions combined with dealt private information.

Their payoffs factor, so the cost of an iteration is proportional to public nodes times
private states, not to histories.
"""

from spiel_cr.games.public_tree.comparison import check_tree
from spiel_cr.games.public_tree.declaration.public_tree_rules import PublicTreeRules
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import (
    BoardHands,
    HandMatrix,
    PayoffMatrix,
    SparseMatrix,
)
from spiel_cr.games.public_tree.public_nodes import (
    Betting,
    LeafTerms,
    PrivateStateReader,
)
from spiel_cr.games.public_tree.public_tree_loading import declared, public_tree_game

__all__ = [
    "Betting",
    "BoardHands",
    "HandMatrix",
    "LeafTerms",
    "PayoffMatrix",
    "PrivateStateReader",
    "PublicTreeGame",
    "PublicTreeRules",
    "SparseMatrix",
    "check_tree",
    "declared",
    "public_tree_game",
]
