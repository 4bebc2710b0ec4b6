"""The full-width CFR family, jitted: settings, one iteration, the loop around it."""

from spiel_cr.solvers.cfr.cfr import make_solver
from spiel_cr.solvers.cfr.cfr_config import (
    ALGORITHMS,
    CFRConfig,
    MCCFRConfig,
    parse_algorithm,
    parse_any,
)
from spiel_cr.solvers.cfr.solver import Solver

__all__ = [
    "ALGORITHMS",
    "CFRConfig",
    "MCCFRConfig",
    "Solver",
    "make_solver",
    "parse_algorithm",
    "parse_any",
]
