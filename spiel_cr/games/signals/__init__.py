"""Signal games: public actions ⊗ dealt private information.

Their payoffs factor, so an iteration costs public nodes × signals instead of histories.
"""

from spiel_cr.games.signals.comparison import check_compiled
from spiel_cr.games.signals.declaring.signal_rules import SignalRules
from spiel_cr.games.signals.game import (
    Betting,
    HandKernel,
    Hands,
    Kernel,
    Reader,
    SignalGame,
    SparseKernel,
    Terms,
)
from spiel_cr.games.signals.signal_loading import declared, signal_game

__all__ = [
    "Betting",
    "HandKernel",
    "Hands",
    "Kernel",
    "Reader",
    "SignalGame",
    "SignalRules",
    "SparseKernel",
    "Terms",
    "check_compiled",
    "declared",
    "signal_game",
]
