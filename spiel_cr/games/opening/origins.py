"""Origins of a loaded game: its string, wrapped games, and source files."""

import os
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pyspiel

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.common.messages import one_line
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.game_strings import load_printed

# Wrappers whose games differ each time that they are loaded and walked.
_DRAWN = ("add_noise",)


class UnknownOriginError(ValueError):
    """The string and the source files of a game do not determine its game tree."""


def is_python(game: pyspiel.Game) -> bool:
    """Return whether a game is an object of a Python class."""
    return hasattr(game, "__dict__")


def load_again(game: pyspiel.Game) -> pyspiel.Game | None:
    """Load a game again by its string; return None if the result is not equal.

    Wrappers in C++ may have names that OpenSpiel does not know, and objects of Python
    games may have attributes that their string does not contain.
    """
    parameters = game.get_parameters()
    inner = [p["name"] for p in _all_parameters(parameters) if "name" in p]
    # For an unknown name, OpenSpiel would print all known names. For a game that was
    # created from text, it would print that a file is missing.
    unknown = {game.get_type().short_name, *inner} - set(pyspiel.registered_names())
    if unknown or str(game) == "efg_game()":
        return None
    try:
        again = load_printed(str(game))
    except pyspiel.SpielError:
        return None
    same = type(again) is type(game) and again.get_parameters() == parameters
    if same and is_python(game):
        try:
            same = bool(vars(again) == vars(game))
        except ValueError:  # arrays do not have a truth value
            same = False
    return again if same else None


def check_drawn(game: pyspiel.Game) -> None:
    """Raise InvalidGameError if payoffs are random while the game is walked."""
    names = [str(each.get("name")) for each in _all_parameters(game.get_parameters())]
    names[0] = game.get_type().short_name
    drawn = [name for name in names if name in _DRAWN]
    if drawn:
        raise InvalidGameError(
            f"{one_line(game)}: {drawn[0]} draws its noise while the game is walked, "
            f"so that two walks give different games; leave it out, or write the game "
            f"with its noise to a file for efg_game"
        )


def sources(game: pyspiel.Game, rules: BatchedRules | None) -> set[str]:
    """Return the files on which a game depends: Python sources and parameter files.

    For Python classes, these are all sources in the folders of their modules.

    Raises:
      UnknownOriginError: If the game's string does not describe it, or a class has no
        source file.
    """
    if load_again(game) is None:
        raise UnknownOriginError(
            f"OpenSpiel does not load this game by the string {one_line(game)}; "
            f"register it, and give it parameters that distinguish it from others"
        )
    games, files = [game], set[str]()
    for each in _all_parameters(game.get_parameters()):
        values = [value for value in each.values() if isinstance(value, str)]
        files |= set(filter(os.path.isfile, values))
        if "name" in each:
            parameters = {key: each[key] for key in each if key != "name"}
            games.append(pyspiel.load_game(each["name"], parameters))
    classes: set[type] = set() if rules is None else {type(rules)}
    for inner in games:
        if is_python(inner):
            classes |= {type(inner), type(inner.new_initial_state())}
    for kind in {base for one in classes for base in one.__mro__}:
        bundled = kind in (*pyspiel.Game.__mro__, *pyspiel.State.__mro__)
        if bundled or kind.__module__.partition(".")[0] in sys.stdlib_module_names:
            continue
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if file is None or not os.path.isfile(file):
            raise UnknownOriginError(
                f"{one_line(game)} has no source file for {kind.__qualname__}"
            )
        files.add(file)
        files |= {str(path) for path in pathlib.Path(file).parent.glob("*.py")}
    return files


def _all_parameters(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the parameters of a game, and of wrapped games (these have a "name")."""
    yield parameters
    for value in parameters.values():
        if isinstance(value, Mapping):
            yield from _all_parameters(value)
