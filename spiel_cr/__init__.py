"""Solve, re-solve and evaluate two-player zero-sum games of OpenSpiel.

Typical use: `solve` or `resolve` computes a policy of a game, and `nash_conv`,
`best_response`, `exploit`, `evaluate` and `play_matches` evaluate it. Each function
accepts a game string, an OpenSpiel game, or a game tree that `build_tree` built.
Policies are policies of OpenSpiel, so OpenSpiel's own tools evaluate them as well.

`__init__.pyi` lists the public names and their modules, for this file and for type
checkers. A module is imported when one of its names is first used, because importing
JAX and OpenSpiel takes seconds, and a command must handle signals earlier than that
(see `eval/cli/entry.py`). For the same reason this file has no imports at the top.
"""


def _homes() -> dict[str, str]:
    """Return the module of each public name."""
    import ast
    import pathlib

    stub = pathlib.Path(__file__).with_suffix(".pyi").read_text("utf-8")
    return {
        alias.name: f"spiel_cr.{node.module}"
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def __getattr__(name: str) -> object:
    """Import a public name or a package at its first use."""
    import importlib

    if name == "__version__":
        metadata = importlib.import_module("importlib.metadata")
        value = metadata.version("spiel_cr")
    elif name == "__all__":
        value = sorted(_homes())
    elif name.startswith("_"):
        raise AttributeError(f"module 'spiel_cr' has no attribute {name!r}")
    elif (home := _homes().get(name)) is not None:
        value = getattr(importlib.import_module(home), name)
        if type(value) is type(_homes):
            # Faults in users' games, policies and bots are reported as such.
            adapter = importlib.import_module("spiel_cr.games.opening.foreign_code")
            value = adapter.reporting(value)
    else:
        value = _package(name)
    globals()[name] = value
    return value


def _package(name: str) -> object:
    """Import a package of `spiel_cr`, and all modules that have public names."""
    import importlib

    try:
        package = importlib.import_module(f"spiel_cr.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"spiel_cr.{name}":
            raise
        raise AttributeError(f"module 'spiel_cr' has no attribute {name!r}") from None
    for home in _homes().values():
        importlib.import_module(home)
    return package


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes(), "__version__"})
