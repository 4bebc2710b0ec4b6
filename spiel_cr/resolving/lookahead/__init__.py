"""Lookahead trees of games that are too large to build, and re-solving with them."""

from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig

__all__ = ["LookaheadConfig"]
