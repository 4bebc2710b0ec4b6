"""Hold'em in poker terms: spots, and strategies and values of hands."""

from spiel_cr.poker.answers import HandAnswers, answers
from spiel_cr.poker.spot import spot

__all__ = ["HandAnswers", "answers", "spot"]
