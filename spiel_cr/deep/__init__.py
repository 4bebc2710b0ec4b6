"""Networks instead of tables: deep CFR and its successors."""

from spiel_cr.deep.averages import Average, BankAverage, ExactAverage, NetworkAverage
from spiel_cr.deep.compiled_source import CompiledSource
from spiel_cr.deep.config import PRESETS, DeepConfig, parse_deep
from spiel_cr.deep.infosets import CompiledKnowledge, Knowledge
from spiel_cr.deep.solver import DeepSolver

__all__ = [
    "PRESETS",
    "Average",
    "BankAverage",
    "CompiledKnowledge",
    "CompiledSource",
    "DeepConfig",
    "DeepSolver",
    "ExactAverage",
    "Knowledge",
    "NetworkAverage",
    "parse_deep",
]
