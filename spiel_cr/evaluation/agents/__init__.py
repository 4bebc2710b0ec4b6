"""Evaluation of agents in other programs by a budget of queries."""

from spiel_cr.evaluation.agents.evaluation import AgentEvaluation, evaluate_agent

__all__ = ["AgentEvaluation", "evaluate_agent"]
