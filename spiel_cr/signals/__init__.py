"""Signal games: public actions ⊗ dealt private information.

Their payoffs factor, so an iteration costs public nodes × signals instead of histories.
"""

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
    "HandKernel",
    "Hands",
    "Kernel",
    "Reader",
    "SignalGame",
    "SparseKernel",
    "Terms",
]
