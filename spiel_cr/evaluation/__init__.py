"""Evaluation of policies and bots: NashConv, best responses, bounds, matches.

The functions are public names of `spiel_cr`. This package exports the classes of their
results and settings, which are imported when they are first used: players and solvers
that they name take a second to import, and a command that solves a game needs none.
"""

import importlib
from typing import Any

_MODULES = {
    "Evaluation": "result",
    "Matches": "matches",
    "ResponseConfig": "response_config",
    "ResponseValue": "result",
    "SearchConfig": "response_config",
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a class at its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
