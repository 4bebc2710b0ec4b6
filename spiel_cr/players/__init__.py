"""OpenSpiel bots, and players from strings and objects."""

from spiel_cr.players.bots import (
    LookaheadResolvingBot,
    OOSBot,
    PolicyBot,
    ResolvingBot,
    uniform_bot,
)
from spiel_cr.players.honest_policy import HonestPolicy
from spiel_cr.players.player_specs import load_bot
from spiel_cr.players.search_bot import SearchBot, SearchBotConfig

__all__ = [
    "HonestPolicy",
    "LookaheadResolvingBot",
    "OOSBot",
    "PolicyBot",
    "ResolvingBot",
    "SearchBot",
    "SearchBotConfig",
    "load_bot",
    "uniform_bot",
]
