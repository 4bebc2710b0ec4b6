"""Best responses that are found: how exploitable is a fixed policy, at least?

By search from the exact belief (`search_response` on compiled games, `ISMCTSBRBot` in
matches), by search with a learned network (`learn_response`), and by local best
response (`lbr`, `LBRBot`). The value of a response is a lower bound of the best one's.
Opponents are strategies of a compiled game, or OpenSpiel policies: `chump` makes fixed
players of poker, `BotPolicy` asks a bot.
"""

from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.evaluation.responses.ismcts_bot import ISMCTSBRBot
from spiel_cr.evaluation.responses.ismcts_search import (
    TreeResponse,
    search_response,
)
from spiel_cr.evaluation.responses.learned_response import (
    LearningConfig,
    learn_response,
)
from spiel_cr.evaluation.responses.local_best_response import LBRBot, lbr
from spiel_cr.players.fixed_policies import FixedPolicy
from spiel_cr.policies.bot_policies import BotPolicy

__all__ = [
    "BotPolicy",
    "FixedPolicy",
    "ISMCTSBRBot",
    "LBRBot",
    "LearningConfig",
    "TreeResponse",
    "SearchConfig",
    "lbr",
    "learn_response",
    "search_response",
]
