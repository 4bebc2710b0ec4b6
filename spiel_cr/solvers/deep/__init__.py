"""Deep CFR and related algorithms, which train networks instead of filling tables."""

from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.deep_solver import DeepSolver

__all__ = ["DeepConfig", "DeepSolver"]
