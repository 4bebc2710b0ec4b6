"""Self-play by policy gradients: `mmd` and `ppo`, opponents of deep CFR."""

from spiel_cr.solvers.deep.self_play.self_play_config import (
    SELF_PLAY_PRESETS,
    SelfPlayConfig,
)
from spiel_cr.solvers.deep.self_play.updates import SelfPlay, SelfPlayPoint

__all__ = [
    "SELF_PLAY_PRESETS",
    "SelfPlay",
    "SelfPlayConfig",
    "SelfPlayPoint",
]
