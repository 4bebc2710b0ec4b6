"""Networks instead of tables: deep CFR and its successors."""

from spiel_cr.deep.averages import Average, BankAverage, ExactAverage, NetworkAverage
from spiel_cr.deep.compiled_source import CompiledSource
from spiel_cr.deep.config import PRESETS, DeepConfig, parse_deep
from spiel_cr.deep.infosets import CompiledKnowledge, Knowledge
from spiel_cr.deep.policy import DeepPolicy, load_deep_policy, save_deep_policy
from spiel_cr.deep.solver import DeepSolver
from spiel_cr.deep.tensors import Stepped, TensorKnowledge, stepped

__all__ = [
    "PRESETS",
    "Average",
    "BankAverage",
    "CompiledKnowledge",
    "CompiledSource",
    "DeepConfig",
    "DeepPolicy",
    "DeepSolver",
    "ExactAverage",
    "Knowledge",
    "NetworkAverage",
    "Stepped",
    "TensorKnowledge",
    "load_deep_policy",
    "parse_deep",
    "save_deep_policy",
    "stepped",
]
