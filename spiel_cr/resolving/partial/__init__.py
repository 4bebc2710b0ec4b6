"""Games that are never compiled whole: partial trees, and resolving on them."""

from spiel_cr.resolving.partial.partial_config import PartialConfig
from spiel_cr.resolving.partial.partial_tree import PartialTree, compile_partial

__all__ = ["PartialConfig", "PartialTree", "compile_partial"]
