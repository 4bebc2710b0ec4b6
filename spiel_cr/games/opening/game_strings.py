"""Game strings are checked by what OpenSpiel says of its games, before it loads them.

OpenSpiel answers some mistakes with lines of its sources, ignores text behind the last
bracket and the first of two equal parameters, and crashes at a few.
"""

import difflib
import functools
import math
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.parameters import Parameters, parse, printable, read_number, remedy
from spiel_cr.games.opening import poker_parameters

# How games call their number of players.
_PLAYERS = ("players", "numPlayers", "num_players")
_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")
_MOST = 2**31 - 1


def load(text: str) -> pyspiel.Game:
    """Loads a game by its string.

    Args:
      text: such as "liars_dice(numdice=1)"; spaces around its parts are left out.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game or a parameter, or refuses
        what the parameters say.
      ValueError: the string cannot be read; or a parameter is of another type, names
        no file, or asks for more or fewer players than two.
    """
    string = _checked(parse(text, "game", empty=True), text)
    try:
        string.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"game={text!r} is not UTF-8; write the name and parameters of a game"
        ) from None
    try:
        game = pyspiel.load_game(string)
        begin = game.new_initial_state()
        stuck = begin.current_player() >= 0 and not begin.legal_actions()
    except pyspiel.SpielError as error:
        raise pyspiel.SpielError(
            f"game={text!r}: OpenSpiel refuses it{reason(error)}; choose other values "
            f"of its parameters: {_listed(string.partition('(')[0])}"
        ) from error
    if stuck:
        raise ValueError(
            f"game={text!r}: there is no legal action at its beginning; choose other "
            f"values of its parameters: {_listed(string.partition('(')[0])}"
        )
    return game


def _checked(found: Parameters, text: str) -> str:
    """The string for OpenSpiel, all of it checked, inner games included."""
    _check_name(found.name, text)
    table = _table(found.name)
    parts = []
    for key, value in found.given.items():
        if key not in table:
            raise pyspiel.SpielError(
                f"game={text!r}: unknown parameter {key!r}; {found.name} takes "
                f"{_listed(found.name)}; {remedy(table)}"
            )
        parts.append(f"{key}={_value(key, value, table[key], text)}")
    if found.name == "universal_poker":
        try:
            poker_parameters.check(_read(found.given, table))
        except ValueError as error:
            raise ValueError(
                f"game={text!r}: {error}; {found.name} takes {_listed(found.name)}"
            ) from error
    for key in table:
        if key == "filename" and key not in found.given:
            raise ValueError(
                f"game={text!r} needs a file; write {found.name}({key}=PATH)"
            )
    return f"{found.name}({','.join(parts)})"


def _read(given: Mapping[str, str], table: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters, those left out by their defaults, whole numbers as numbers."""
    whole = {key for key, default in table.items() if isinstance(default, int)}
    values = {**table, **given}
    return {key: int(values[key]) if key in whole else values[key] for key in table}


def _value(key: str, value: str, default: Any, text: str) -> str:
    """A parameter's value as OpenSpiel reads it for this type of parameter."""

    def wrong(must: str) -> ValueError:
        usual = "" if isinstance(default, dict) else f"; the default is {key}={default}"
        return ValueError(
            f"game={text!r}: {key}={printable(value)} must be {must}{usual}"
        )

    if isinstance(default, dict):
        return _checked(parse(value, "game", empty=True), text)
    if isinstance(default, bool):
        if value.lower() not in ("true", "false"):
            raise wrong("true or false")
        return value.lower()
    if isinstance(default, int):
        if not _WHOLE.fullmatch(value) or abs(int(value)) > _MOST:
            raise wrong("a whole number of 32 bits")
        if key in _PLAYERS and default and int(value) != 2:
            raise ValueError(
                f"game={text!r}: spiel_cr needs exactly two players and this game has "
                f"{int(value)}; set {key}=2"
            )
        return value
    if isinstance(default, float):
        try:
            number = read_number(value)
        except ValueError:
            raise wrong("a number") from None
        if not math.isfinite(number):
            raise wrong("a finite number")
        # OpenSpiel refuses 1 and 1e-9 here, and takes 1.0 and 0.000000001.
        return np.format_float_positional(number, trim="0")
    if value.lower() in ("true", "false") or _NUMBER.fullmatch(value):
        raise wrong("text")
    if key == "filename" and not os.path.isfile(value):
        raise ValueError(
            f"game={text!r}: {key}={printable(value)}: there is no such file; give the "
            f"path of one"
        )
    return value


@functools.cache
def _table(name: str) -> dict[str, Any]:
    """A game's parameters with their defaults."""
    kinds = {kind.short_name: kind for kind in pyspiel.registered_games()}
    return dict(kinds[name].parameter_specification)


def _listed(name: str) -> str:
    """A game's parameters for people."""
    shown = [
        f"{key}={'...' if isinstance(default, dict) else default}"
        for key, default in _table(name).items()
    ]
    return ", ".join(shown) or "none"


def reason(error: Exception) -> str:
    """What OpenSpiel says, where it is a sentence and no line of C++."""
    said = str(error).strip()
    if not said or re.search(r"\.cc:|CHECK_|::|[<>=]=|\n", said):
        return ""
    return f" ({said.rstrip('.')})"


def _check_name(name: str, text: str) -> None:
    """Refuses unknown names before OpenSpiel prints all the known ones."""
    known = pyspiel.registered_names()
    if name in known:
        return
    close = difflib.get_close_matches(name, known)
    hint = "choose one of pyspiel.registered_names()"
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    if name.startswith("python_"):
        hint += "; the project's own games need `import game_defs` first"
    raise pyspiel.SpielError(f"game={text!r}: Unknown game {name!r}; {hint}")
