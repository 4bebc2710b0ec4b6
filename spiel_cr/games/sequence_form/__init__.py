"""Sequence form of two-player zero-sum games: decision trees and payoffs.

Solvers only need two trees of decisions and a sparse payoff coupling (von Stengel
1996). `layout.build` arranges them in arrays for JAX.
"""

from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs
from spiel_cr.games.sequence_form.layout import SequenceForm, build

__all__ = ["Decisions", "Payoffs", "SequenceForm", "build"]
