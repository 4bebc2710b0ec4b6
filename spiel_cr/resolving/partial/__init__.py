"""Games that are never compiled whole: partial trees, and resolving on them."""

from spiel_cr.resolving.partial.partial_config import PartialConfig

__all__ = ["PartialConfig"]
