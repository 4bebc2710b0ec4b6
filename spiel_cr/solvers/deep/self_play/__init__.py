"""Self-play by policy gradients: `mmd` and `ppo`, opponents of deep CFR."""

from spiel_cr.solvers.deep.self_play.updates import SelfPlay

__all__ = ["SelfPlay"]
