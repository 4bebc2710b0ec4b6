"""Solve, resolve and judge two-player zero-sum OpenSpiel games.

The way of the data: game string → `compile_game` → `solve` or `resolve` → a policy,
which `nash_conv`, `best_response`, `evaluate` and `play_matches` judge, as OpenSpiel's
own tools do.
"""

# Type checkers take it for true. Importing `typing` for it takes milliseconds, in which
# a signal ends a command with a traceback; see `eval/cli/entry.py`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

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
    from spiel_cr.eval.players.approximate_nash_conv import ResponseConfig
    from spiel_cr.eval.players.many_matches import Matches, play_matches
    from spiel_cr.eval.players.traversing import Evaluation
    from spiel_cr.eval.players.verdicts import (
        BestResponse,
        best_response,
        evaluate,
        nash_conv,
    )
    from spiel_cr.mccfr.variance import Variance, estimate_variance
    from spiel_cr.players.bot_strings import load_bot
    from spiel_cr.players.bots import OOSBot, PolicyBot, ResolvingBot, uniform_bot
    from spiel_cr.policies.leaf_functions import LeafValue
    from spiel_cr.policies.result import Result, SolveResult
    from spiel_cr.resolving.config import ResolvingConfig
    from spiel_cr.resolving.continual import resolve
    from spiel_cr.responses.ismcts_config import SearchConfig
    from spiel_cr.responses.opponents import BotPolicy
    from spiel_cr.signals.loading import signal_game
    from spiel_cr.signals.policy import SignalPolicy
    from spiel_cr.signals.result import SignalResult
    from spiel_cr.solving.deep_game import DeepResult, solve_deep
    from spiel_cr.solving.openspiel_solver import (
        CFRPlusSolver,
        CFRSolver,
        DCFRSolver,
        LCFRSolver,
    )
    from spiel_cr.solving.policy_files import load_policy
    from spiel_cr.solving.sampled_game import SampledResult, sample_uncompiled
    from spiel_cr.solving.whole_game import solve
    from spiel_cr.uncompiled.policy import TablePolicy

    __version__: str

__all__ = [
    "PRESETS",
    "SAMPLED_PRESETS",
    "BestResponse",
    "BotPolicy",
    "CFRConfig",
    "CFRPlusSolver",
    "CFRSolver",
    "CompiledGame",
    "DCFRSolver",
    "DeepResult",
    "Evaluation",
    "LCFRSolver",
    "LeafValue",
    "MCCFRConfig",
    "Matches",
    "OOSBot",
    "PolicyBot",
    "ResolvingBot",
    "ResolvingConfig",
    "ResponseConfig",
    "Result",
    "SampledResult",
    "SearchConfig",
    "SignalPolicy",
    "SignalResult",
    "SolveResult",
    "TablePolicy",
    "Variance",
    "best_response",
    "compile_game",
    "estimate_variance",
    "evaluate",
    "load_bot",
    "load_game",
    "load_policy",
    "nash_conv",
    "parse_algorithm",
    "parse_any",
    "play_matches",
    "resolve",
    "sample_uncompiled",
    "signal_game",
    "solve",
    "solve_deep",
    "uniform_bot",
]

# Where the public names are; nothing else here knows of `eval`. A name is imported when
# it is first asked for: JAX and OpenSpiel take seconds, and a command must be able to
# react to signals before.
_HOMES = {
    "cfr.config": "PRESETS SAMPLED_PRESETS CFRConfig MCCFRConfig parse_algorithm "
    "parse_any",
    "compilation.compiler": "compile_game",
    "compilation.loading": "load_game",
    "compilation.tree": "CompiledGame",
    "mccfr.variance": "Variance estimate_variance",
    "players.bot_strings": "load_bot",
    "players.bots": "OOSBot PolicyBot ResolvingBot uniform_bot",
    "policies.result": "Result SolveResult",
    "resolving.config": "ResolvingConfig",
    "resolving.continual": "resolve",
    "eval.players.approximate_nash_conv": "ResponseConfig",
    "eval.players.many_matches": "Matches play_matches",
    "eval.players.traversing": "Evaluation",
    "eval.players.verdicts": "BestResponse best_response evaluate nash_conv",
    "policies.leaf_functions": "LeafValue",
    "responses.ismcts_config": "SearchConfig",
    "responses.opponents": "BotPolicy",
    "signals.loading": "signal_game",
    "signals.policy": "SignalPolicy",
    "signals.result": "SignalResult",
    "solving.deep_game": "DeepResult solve_deep",
    "solving.openspiel_solver": "CFRPlusSolver CFRSolver DCFRSolver LCFRSolver",
    "solving.policy_files": "load_policy",
    "solving.sampled_game": "SampledResult sample_uncompiled",
    "solving.whole_game": "solve",
    "uncompiled.policy": "TablePolicy",
}
_MODULE_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> "Any":
    """A public name, or a package, that nobody has asked for before."""
    import importlib

    if name == "__version__":
        metadata = importlib.import_module("importlib.metadata")
        value = metadata.version("spiel_cr")
    elif name in _MODULE_OF:
        module = importlib.import_module(f"spiel_cr.{_MODULE_OF[name]}")
        value = getattr(module, name)
    else:
        value = _package(name)
    globals()[name] = value
    return value


def _package(name: str) -> "Any":
    """A package of this one, with all its modules that public names are made of."""
    import importlib

    unknown = AttributeError(f"module 'spiel_cr' has no attribute {name!r}")
    if name.startswith("_"):
        raise unknown
    try:
        package = importlib.import_module(f"spiel_cr.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"spiel_cr.{name}":
            raise
        raise unknown from None
    for home in _HOMES:
        if home.startswith("eval."):
            continue  # it imports all the others
        importlib.import_module(f"spiel_cr.{home}")
    return package


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
