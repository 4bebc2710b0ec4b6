"""Strategies as arrays, as OpenSpiel policies and as files; exact best responses."""

from spiel_cr.policies.behaviour_files import load_tabular_policy
from spiel_cr.policies.best_responses import (
    best_response,
    best_response_value,
    expected_value,
    nash_conv,
)
from spiel_cr.policies.conversions import (
    behaviour_from_reach,
    reach_from_behaviour,
    tabular_policy,
    uniform_behaviour,
)
from spiel_cr.policies.queries import query
from spiel_cr.policies.result import CurvePoint, Result

__all__ = [
    "CurvePoint",
    "Result",
    "behaviour_from_reach",
    "best_response",
    "best_response_value",
    "expected_value",
    "load_tabular_policy",
    "nash_conv",
    "query",
    "reach_from_behaviour",
    "tabular_policy",
    "uniform_behaviour",
]
