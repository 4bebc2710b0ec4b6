"""Solve, resolve and judge two-player zero-sum OpenSpiel games.

The way of the data: game string → `compile_game` → `solve` or `resolve` → a policy that
OpenSpiel's own tools judge.
"""

from importlib import metadata as _metadata

from spiel_cr.cfr.config import (
    PRESETS,
    SAMPLED_PRESETS,
    CFRConfig,
    MCCFRConfig,
    parse_algorithm,
    parse_any,
)
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.mccfr.variance import Variance, estimate_variance
from spiel_cr.players.bot_strings import load_bot
from spiel_cr.players.bots import OOSBot, PolicyBot, ResolvingBot, uniform_bot
from spiel_cr.policies.result import SolveResult, load_policy
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.resolving.continual import resolve
from spiel_cr.solving.openspiel_solver import CFRSolver
from spiel_cr.solving.whole_game import solve

__version__ = _metadata.version("spiel_cr")

__all__ = [
    "PRESETS",
    "SAMPLED_PRESETS",
    "CFRConfig",
    "MCCFRConfig",
    "CFRSolver",
    "CompiledGame",
    "OOSBot",
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
