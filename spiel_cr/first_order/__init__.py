"""First-order methods on the treeplex: smoothing, primal-dual steps, mirror descent."""

from spiel_cr.first_order.config import (
    PRESETS,
    EGTConfig,
    FirstOrderConfig,
    MirrorConfig,
    PDHGConfig,
    SmoothingConfig,
    parse_first_order,
)
from spiel_cr.first_order.solvers import make_solver

__all__ = [
    "PRESETS",
    "EGTConfig",
    "FirstOrderConfig",
    "MirrorConfig",
    "PDHGConfig",
    "SmoothingConfig",
    "make_solver",
    "parse_first_order",
]
