"""Solve, resolve and judge two-player zero-sum OpenSpiel games.

The way of the data: game string → `compile_game` → `solve` or `resolve` → a policy that
OpenSpiel's own tools judge.
"""

from spiel_cr.algorithm import (
    PRESETS,
    SAMPLED_PRESETS,
    CFRConfig,
    MCCFRConfig,
    parse_algorithm,
    parse_any,
)
from spiel_cr.bot_strings import load_bot
from spiel_cr.bots import OOSBot, PolicyBot, ResolvingBot, uniform_bot
from spiel_cr.dropin import CFRSolver
from spiel_cr.loading import load_game
from spiel_cr.resolver_config import ResolvingConfig
from spiel_cr.resolving import OpponentValues, resolve
from spiel_cr.result import SolveResult, load_policy
from spiel_cr.solving import solve
from spiel_cr.tree import CompiledGame, compile_game
from spiel_cr.variance import Variance, estimate_variance

__all__ = [
    "PRESETS",
    "SAMPLED_PRESETS",
    "CFRConfig",
    "MCCFRConfig",
    "CFRSolver",
    "CompiledGame",
    "OOSBot",
    "OpponentValues",
    "PolicyBot",
    "ResolvingBot",
    "ResolvingConfig",
    "SolveResult",
    "Variance",
    "compile_game",
    "estimate_variance",
    "load_bot",
    "load_game",
    "load_policy",
    "parse_algorithm",
    "parse_any",
    "resolve",
    "solve",
    "uniform_bot",
]
