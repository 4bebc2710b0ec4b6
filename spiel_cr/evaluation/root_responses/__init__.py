"""Responses that are found from the start of the game against a fixed opponent.

`RootSearch` grows a tree of whole beliefs from there; `TableResponder` plays whole
matches, and keeps a table of the responder's infosets. Either gives a `Response`, which
plays many matches side by side on a `Setting`: by a game's batched rules, or on
OpenSpiel's states.
"""

from spiel_cr.evaluation.root_responses.response import Response
from spiel_cr.evaluation.root_responses.root_search import RootSearch
from spiel_cr.evaluation.root_responses.setting import Setting, on_bot, on_states
from spiel_cr.evaluation.root_responses.table_responder import TableResponder

__all__ = [
    "Response",
    "RootSearch",
    "Setting",
    "TableResponder",
    "on_bot",
    "on_states",
]
