"""Responses by a game's rules on arrays: many histories side by side."""

from spiel_cr.responses.arrays.rules_belief import RulesBelief
from spiel_cr.responses.arrays.rules_responder import RulesResponder

__all__ = ["RulesBelief", "RulesResponder"]
