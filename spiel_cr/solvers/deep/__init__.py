"""Networks instead of tables: deep CFR and its successors."""

from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.deep_solver import DeepSolver

__all__ = ["DeepConfig", "DeepSolver"]
