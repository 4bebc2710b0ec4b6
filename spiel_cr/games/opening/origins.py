"""Where a loaded game comes from: its string, the games that it wraps, its sources."""

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

# Wrappers whose games are others each time that they are loaded and walked.
_DRAWN = ("add_noise",)


class UnknownOriginError(ValueError):
    """What a game compiles to cannot be known from its string and its sources."""


def is_python(game: pyspiel.Game) -> bool:
    """Whether a game is an object of a class in Python, and not one of OpenSpiel's."""
    return hasattr(game, "__dict__")


def load_again(game: pyspiel.Game) -> pyspiel.Game | None:
    """Loads a game by its string; None where that gives no equal game.

    Wrappers written in C++ may have names that OpenSpiel does not know, and objects of
    Python games more in them than their string says.
    """
    parameters = game.get_parameters()
    inner = [p["name"] for p in _all_parameters(parameters) if "name" in p]
    # OpenSpiel prints all names that it knows where it does not know one, and that it
    # finds no file where a game was made of text.
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
        except ValueError:  # arrays, which have no single truth value
            same = False
    return again if same else None


def check_drawn(game: pyspiel.Game) -> None:
    """Raises InvalidGameError where payoffs are drawn while the game is walked."""
    names = [str(each.get("name")) for each in _all_parameters(game.get_parameters())]
    names[0] = game.get_type().short_name
    drawn = [name for name in names if name in _DRAWN]
    if drawn:
        raise InvalidGameError(
            f"{one_line(game)}: {drawn[0]} draws its noise while the game is walked, "
            f"so that two "
            f"walks see two games; leave it out, or write the game with its noise as a "
            f"file for efg_game"
        )


def sources(game: pyspiel.Game, rules: BatchedRules | None) -> set[str]:
    """Files that a game depends on: its Python sources, and files in its parameters.

    Of Python classes, all sources in the folders of their modules.

    Raises:
      UnknownOriginError: the game is not what its string says, or a class has no source
        file.
    """
    if load_again(game) is None:
        raise UnknownOriginError(
            f"OpenSpiel loads no game, or another game by the string {one_line(game)}; "
            f"register "
            f"it, and give it parameters, so that its string tells it from others"
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
    """Parameters of a game, and of the games that it wraps: these have a "name"."""
    yield parameters
    for value in parameters.values():
        if isinstance(value, Mapping):
            yield from _all_parameters(value)
