"""Solve, resolve and judge two-player zero-sum OpenSpiel games.

The way of the data: game string → `compile_game` → `solve` or `resolve` → a policy that
OpenSpiel's own tools judge.
"""

from spiel_cr.algorithm import PRESETS, CFRConfig, parse_algorithm
from spiel_cr.loading import load_game
from spiel_cr.resolving import resolve
from spiel_cr.solve import SolveResult, solve
from spiel_cr.tree import CompiledGame, compile_game

__all__ = [
    "PRESETS",
    "CFRConfig",
    "CompiledGame",
    "SolveResult",
    "compile_game",
    "load_game",
    "parse_algorithm",
    "resolve",
    "solve",
]
