"""OpenSpiel bots, and bots and opponents from strings."""

from spiel_cr.players.bot_strings import load_bot
from spiel_cr.players.bots import OOSBot, PolicyBot, ResolvingBot, uniform_bot
from spiel_cr.players.honest import HonestPolicy
from spiel_cr.players.partial_bots import LookaheadResolvingBot
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
