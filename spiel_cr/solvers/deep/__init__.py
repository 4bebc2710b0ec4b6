"""Networks instead of tables: deep CFR and its successors."""

from spiel_cr.games.stepping.tree_source import TreeSource
from spiel_cr.solvers.deep.averages import (
    Average,
    BankAverage,
    ExactAverage,
    NetworkAverage,
)
from spiel_cr.solvers.deep.deep_config import PRESETS, DeepConfig
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.infosets import CompiledKnowledge, Knowledge
from spiel_cr.solvers.deep.network_policy import (
    DeepPolicy,
    load_deep_policy,
    save_deep_policy,
)
from spiel_cr.solvers.deep.tensors import Stepped, TensorKnowledge, stepped

__all__ = [
    "PRESETS",
    "Average",
    "BankAverage",
    "CompiledKnowledge",
    "TreeSource",
    "DeepConfig",
    "DeepPolicy",
    "DeepSolver",
    "ExactAverage",
    "Knowledge",
    "NetworkAverage",
    "Stepped",
    "TensorKnowledge",
    "load_deep_policy",
    "save_deep_policy",
    "stepped",
]
