"""Signal games: public actions ⊗ dealt private information.

Their payoffs factor, so an iteration costs public nodes × signals instead of histories.
"""

from spiel_cr.signals.detection import Detected, detect, locate
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

__all__ = [
    "Betting",
    "Detected",
    "HandKernel",
    "Hands",
    "Kernel",
    "Reader",
    "SignalGame",
    "SparseKernel",
    "Terms",
    "detect",
    "locate",
]
