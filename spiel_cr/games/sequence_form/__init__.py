"""A two-player zero-sum game in sequence form: decision trees and payoffs.

Two trees of decisions and a sparse payoff coupling (von Stengel 1996) are all that a
solver needs; `build` lays them out for JAX.
"""

from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs
from spiel_cr.games.sequence_form.layout import SequenceForm, build

__all__ = ["Decisions", "Payoffs", "SequenceForm", "build"]
