"""Self-play: `mmd`, an opponent of deep CFR."""

from spiel_cr.solvers.deep.self_play.updates import SelfPlay

__all__ = ["SelfPlay"]
