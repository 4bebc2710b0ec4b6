"""Where partial trees end in public states that a value network knows."""

from spiel_cr.partial.cut_off.places import cut_place, frontier_of
from spiel_cr.partial.cut_off.shapes import CutPlace, CutShapes

__all__ = ["CutPlace", "CutShapes", "cut_place", "frontier_of"]
