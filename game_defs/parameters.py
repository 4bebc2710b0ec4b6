"""Parsing of game parameters: default values, and errors with a remedy.

`pyspiel.load_game` adds default values and checks names and types before it calls the
constructor of a game; direct construction of the class does neither. Games call `merge`
first, so that both lead to the same complete parameters, and then check each value. An
exception raised here inside `pyspiel.load_game` reaches the caller unchanged.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyspiel

# Allowed values of a parameter: integers of a range, or words of a list.
Allowed = range | Sequence[str]


def merge(
    game_type: pyspiel.GameType,
    params: Mapping[str, Any] | None,
    allowed: Mapping[str, Allowed],
) -> dict[str, Any]:
    """Return `params` with the defaults of the game type for missing parameters.

    Args:
      game_type: Type whose `parameter_specification` has every parameter and its
        default.
      params: Parameters of the caller; None if there are none.
      allowed: Allowed values of parameters, by name.

    Returns:
      A new dict with a value for each parameter of the game type, in its order.

    Raises:
      ValueError: If a parameter is unknown, its type is not that of its default, or its
        value is not allowed.
    """
    game = game_type.short_name
    defaults = game_type.parameter_specification
    specified = dict(params or {})
    for name, value in specified.items():
        if name not in defaults:
            raise ValueError(
                f"{game}: unknown parameter {name!r}; {_hint(name, defaults)}"
                f"choose from {', '.join(sorted(defaults)) or 'no parameters'}"
            )
        # Not isinstance, because True is an int in Python.
        if type(value) is not type(defaults[name]):
            raise ValueError(
                f"{game}: {name}={value!r} is {_article(value)}; "
                f"use {_article(defaults[name])}, such as {name}={defaults[name]!r}"
            )
    merged = {**defaults, **specified}
    for name, values in allowed.items():
        check(game, name, merged[name], values)
    return merged


def check(game: str, name: str, value: Any, allowed: Allowed) -> None:
    """Raise ValueError unless the value of a parameter is allowed."""
    if value in allowed:
        return
    if isinstance(allowed, range):
        raise ValueError(
            f"{game}: {name}={value} is out of range; "
            f"choose {name} from {allowed.start} to {allowed.stop - 1}"
        )
    raise ValueError(
        f"{game}: {name}={value!r} is unknown; "
        f"{_hint(value, allowed)}choose one of {', '.join(allowed)}"
    )


def _hint(value: str, names: Iterable[str]) -> str:
    """Return a question that suggests a similar name, or an empty string."""
    close = difflib.get_close_matches(value, list(names), n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def _article(value: object) -> str:
    """Return a description of the type of a parameter value, for an error message."""
    words = {bool: "a bool", int: "an int", float: "a float", str: "a string"}
    return words.get(type(value), f"of type {type(value).__name__}")
