"""The full-width CFR family, jitted: settings, one iteration, the loop around it."""

from spiel_cr.solvers.cfr.cfr import make_solver
from spiel_cr.solvers.cfr.cfr_config import (
    CFRConfig,
    MCCFRConfig,
)
from spiel_cr.solvers.cfr.solver import Solver

__all__ = [
    "CFRConfig",
    "MCCFRConfig",
    "Solver",
    "make_solver",
]
