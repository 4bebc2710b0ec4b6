"""Self-play by policy gradients: `mmd` and `ppo`, opponents of deep CFR."""

from spiel_cr.deep.self_play.config import (
    SELF_PLAY_PRESETS,
    SelfPlayConfig,
    parse_self_play,
)
from spiel_cr.deep.self_play.learning import SelfPlay, SelfPlayPoint

__all__ = [
    "SELF_PLAY_PRESETS",
    "SelfPlay",
    "SelfPlayConfig",
    "SelfPlayPoint",
    "parse_self_play",
]
