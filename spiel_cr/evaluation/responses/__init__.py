"""Approximate best responses, which give lower bounds of exploitability.

The methods are search from the exact belief (`search_response` on game trees,
`ISMCTSBRBot` in matches), search with a learned network (`learn_response`), and local
best response (`lbr`, `LBRBot`). The value of a response is a lower bound of the
best-response value. Opponents are strategies on a game tree, or OpenSpiel policies such
as the fixed policies of poker (`FixedPolicy`) and the policy of a bot (`BotPolicy`).
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
