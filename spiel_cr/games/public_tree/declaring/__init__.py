"""Signal games from batched rules: the public tree, stakes, deals, kernels."""

from spiel_cr.games.public_tree.declaring.declaration import build
from spiel_cr.games.public_tree.declaring.public_tree_rules import PublicTreeRules

__all__ = ["PublicTreeRules", "build"]
