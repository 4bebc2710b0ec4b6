"""Solve, resolve and judge two-player zero-sum OpenSpiel games.

The way of the data: game string → `build_tree` → `solve` or `resolve` → a policy,
which `nash_conv`, `best_response`, `evaluate` and `play_matches` judge, as OpenSpiel's
own tools do.

The public names, and where they are, stand in `__init__.pyi`, once for this file and
for type checkers. A name is imported when it is first asked for: JAX and OpenSpiel take
seconds, and a command must be able to react to signals before; for the same reason this
file imports nothing by itself, see `eval/cli/entry.py`.
"""


def _homes() -> dict[str, str]:
    """Modules by the public names that they have."""
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
    """A public name, or a package, that nobody has asked for before."""
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
    else:
        value = _package(name)
    globals()[name] = value
    return value


def _package(name: str) -> object:
    """A package of this one, with all its modules that public names are made of."""
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
