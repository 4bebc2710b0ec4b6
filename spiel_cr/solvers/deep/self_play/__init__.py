"""Self-play by magnetic mirror descent (`mmd`), an alternative to deep CFR."""

from spiel_cr.solvers.deep.self_play.updates import SelfPlay

__all__ = ["SelfPlay"]
