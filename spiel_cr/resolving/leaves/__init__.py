"""Values where a lookahead ends."""

from spiel_cr.resolving.leaves.continuations import Continuations

__all__ = ["Continuations"]
