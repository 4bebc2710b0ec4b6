"""Signal games from compiled games: public nodes, deals, signals, kernels."""

from spiel_cr.signals.detecting.detection import detect, locate
from spiel_cr.signals.detecting.located import Detected

__all__ = ["Detected", "detect", "locate"]
