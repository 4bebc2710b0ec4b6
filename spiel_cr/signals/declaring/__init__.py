"""Signal games from rules on arrays: the public tree, stakes, deals, kernels."""

from spiel_cr.signals.declaring.declaration import build
from spiel_cr.signals.declaring.rules import SignalRules

__all__ = ["SignalRules", "build"]
