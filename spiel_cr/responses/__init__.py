"""Best responses by search and by learning: how exploitable a policy is."""

from spiel_cr.responses.ismcts_br import Response, search_response
from spiel_cr.responses.ismcts_br_bot import ISMCTSBRBot
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.responses.learn_compiled import learn_response
from spiel_cr.responses.learn_states import learn_on_states
from spiel_cr.responses.local_best_response import LBRBot, lbr
from spiel_cr.responses.opponents import BotPolicy, chump

__all__ = [
    "BotPolicy",
    "ISMCTSBRBot",
    "LBRBot",
    "Response",
    "SearchConfig",
    "chump",
    "lbr",
    "learn_on_states",
    "learn_response",
    "search_response",
]
