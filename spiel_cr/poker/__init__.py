"""Hold'em as poker players mean it: spots in their words, and what hands are worth."""

from spiel_cr.poker.answers import HandAnswers, answers
from spiel_cr.poker.spot import spot

__all__ = ["HandAnswers", "answers", "spot"]
