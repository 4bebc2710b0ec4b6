"""First-order methods on the treeplex: smoothing and primal-dual steps."""

from spiel_cr.solvers.first_order.first_order_config import (
    PRESETS,
    EGTConfig,
    FirstOrderConfig,
    PDHGConfig,
    SmoothingConfig,
)
from spiel_cr.solvers.first_order.solvers import make_solver

__all__ = [
    "PRESETS",
    "EGTConfig",
    "FirstOrderConfig",
    "PDHGConfig",
    "SmoothingConfig",
    "make_solver",
]
