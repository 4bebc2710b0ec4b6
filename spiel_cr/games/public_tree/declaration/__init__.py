"""Public-tree games from batched rules: the public tree, stakes, deals and matrices."""

from spiel_cr.games.public_tree.declaration.declaration import build
from spiel_cr.games.public_tree.declaration.public_tree_rules import PublicTreeRules

__all__ = ["PublicTreeRules", "build"]
