"""Responses that are learned from whole matches against a fixed opponent.

Every match begins at the root: nothing is searched from inside of one, so no beliefs
are needed, and games of any size will do. `TableResponder` keeps a table of the
responder's infosets, on any `Setting`: a compiled game, a game's rules on arrays, or
OpenSpiel's states.
"""

from spiel_cr.judging.root_responses.setting import Setting, on_bot, on_states, on_tree
from spiel_cr.judging.root_responses.table_responder import TableResponder

__all__ = [
    "Setting",
    "TableResponder",
    "on_bot",
    "on_states",
    "on_tree",
]
