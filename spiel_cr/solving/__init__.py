"""Solving a whole game: the CFR family, Monte Carlo CFR, or linear programs."""

from spiel_cr.solving.openspiel_solver import CFRSolver
from spiel_cr.solving.whole_game import solve

__all__ = ["CFRSolver", "solve"]
