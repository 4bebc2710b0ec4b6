"""Evaluation of policies and bots: NashConv, best responses, bounds, matches.

The functions are public names of `spiel_cr`. This package exports the classes of their
results and settings.
"""

from spiel_cr.evaluation.matches import Matches
from spiel_cr.evaluation.response_config import ResponseConfig, SearchConfig
from spiel_cr.evaluation.result import Evaluation, ResponseValue

__all__ = [
    "Evaluation",
    "Matches",
    "ResponseConfig",
    "ResponseValue",
    "SearchConfig",
]
