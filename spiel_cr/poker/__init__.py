"""Hold'em in poker terms: spots, ranges, and strategies and values of hands."""

from spiel_cr.poker.answers import HandAnswers, NodeValues, answers, ranges
from spiel_cr.poker.runouts import runout_report
from spiel_cr.poker.spot import spot

__all__ = ["HandAnswers", "NodeValues", "answers", "ranges", "runout_report", "spot"]
