"""Games that are never compiled whole: partial trees, and resolving on them."""

from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.tree import PartialTree, compile_partial

__all__ = ["PartialConfig", "PartialTree", "compile_partial"]
