"""Games that are never compiled whole: lookahead trees, and resolving on them."""

from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig

__all__ = ["LookaheadConfig"]
