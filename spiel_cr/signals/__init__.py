"""Signal games: public actions ⊗ dealt private information.

Their payoffs factor, so an iteration costs public nodes × signals instead of histories.
"""

from spiel_cr.signals.comparison import check_compiled
from spiel_cr.signals.declaring.rules import SignalRules
from spiel_cr.signals.detecting import Detected, detect, locate
from spiel_cr.signals.game import (
    Betting,
    HandKernel,
    Hands,
    Kernel,
    Reader,
    SignalGame,
    SparseKernel,
    Terms,
)
from spiel_cr.signals.loading import declared, signal_game
from spiel_cr.signals.policy import SignalPolicy
from spiel_cr.signals.result import SignalResult

__all__ = [
    "Betting",
    "Detected",
    "HandKernel",
    "Hands",
    "Kernel",
    "Reader",
    "SignalGame",
    "SignalPolicy",
    "SignalResult",
    "SignalRules",
    "SparseKernel",
    "Terms",
    "check_compiled",
    "declared",
    "detect",
    "locate",
    "signal_game",
]
