"""Responses that are learned from whole matches against a fixed opponent.

Every match begins at the root: nothing is searched from inside of one, so no beliefs
are needed, and games of any size will do. `TableResponder` keeps a table of the
responder's infosets, `GradientResponder` learns a network by policy gradients. Both
play on any `Setting`: a compiled game, a game's rules on arrays, or OpenSpiel's states.
In poker with limited bets `BackwardResponder` goes through all bets backwards, against
who never looks at its cards.
"""

from spiel_cr.root_responses.backward import BackwardPolicy, BackwardResponder
from spiel_cr.root_responses.gradient import RESPONSE, GradientResponder
from spiel_cr.root_responses.setting import Setting, on_bot, on_states, on_tree
from spiel_cr.root_responses.table import TableResponder

__all__ = [
    "RESPONSE",
    "BackwardPolicy",
    "BackwardResponder",
    "GradientResponder",
    "Setting",
    "TableResponder",
    "on_bot",
    "on_states",
    "on_tree",
]
