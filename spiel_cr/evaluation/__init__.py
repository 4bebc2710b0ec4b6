"""What fixed players lose: exactly, by responses that are found, and in matches."""

from spiel_cr.evaluation.many_matches import Matches, play_matches
from spiel_cr.evaluation.response_config import ResponseConfig
from spiel_cr.evaluation.traversing import Evaluation
from spiel_cr.evaluation.verdicts import (
    BestResponse,
    best_response,
    evaluate,
    nash_conv,
)

__all__ = [
    "BestResponse",
    "Evaluation",
    "Matches",
    "ResponseConfig",
    "best_response",
    "evaluate",
    "nash_conv",
    "play_matches",
]
