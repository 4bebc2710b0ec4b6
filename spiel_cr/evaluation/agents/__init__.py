"""Evaluation of agents in other programs by a budget of queries."""

from spiel_cr.evaluation.agents.bounds import ValueBounds, value_bounds
from spiel_cr.evaluation.agents.evaluation import (
    AgentEvaluation,
    SeatEvaluation,
    evaluate_agent,
)
from spiel_cr.evaluation.agents.memory_test import MemoryTest

__all__ = [
    "AgentEvaluation",
    "MemoryTest",
    "SeatEvaluation",
    "ValueBounds",
    "evaluate_agent",
    "value_bounds",
]
