"""Full-width CFR algorithms in JAX: settings, one iteration, and the solver."""

from spiel_cr.solvers.cfr.cfr import make_solver
from spiel_cr.solvers.cfr.cfr_config import CFRConfig, MCCFRConfig
from spiel_cr.solvers.cfr.regret_matching import CustomRule, Rule
from spiel_cr.solvers.cfr.solver import Solver

__all__ = [
    "CFRConfig",
    "CustomRule",
    "MCCFRConfig",
    "Rule",
    "Solver",
    "make_solver",
]
