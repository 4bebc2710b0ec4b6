"""Lookahead with whole beliefs instead of drawn histories, on OpenSpiel states."""

from spiel_cr.judging.responses.beliefs.belief_search import BeliefSearch

__all__ = ["BeliefSearch"]
