"""Values of histories at which a depth-limited lookahead ends."""

from spiel_cr.resolving.leaves.continuations import Continuations

__all__ = ["Continuations"]
