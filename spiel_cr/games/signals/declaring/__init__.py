"""Signal games from rules on arrays: the public tree, stakes, deals, kernels."""

from spiel_cr.games.signals.declaring.declaration import build
from spiel_cr.games.signals.declaring.signal_rules import SignalRules

__all__ = ["SignalRules", "build"]
