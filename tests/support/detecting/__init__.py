"""Signal games from compiled games: public nodes, deals, signals, kernels."""

from tests.support.detecting.detection import detect, locate
from tests.support.detecting.located import Detected

__all__ = ["Detected", "detect", "locate"]
