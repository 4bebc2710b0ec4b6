"""Games that are never compiled whole: partial trees, and resolving on them."""

from spiel_cr.partial.compiler import compile_partial
from spiel_cr.partial.config import GrowingConfig
from spiel_cr.partial.tree import GrowingTree

__all__ = ["GrowingConfig", "GrowingTree", "compile_partial"]
