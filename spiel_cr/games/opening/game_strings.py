"""OpenSpiel game strings, which are checked before OpenSpiel loads a game.

For some mistakes, OpenSpiel prints lines of its sources or crashes. It also ignores
text after the last bracket, and the first of two parameters with the same name.
"""

import difflib
import functools
import math
import os
import re
from collections.abc import Mapping
from typing import Any

import pyspiel

from spiel_cr.common.messages import announce, one_line
from spiel_cr.common.parameters import Parameters, parse, read_number, remedy

# Names of the parameter for the number of players.
_PLAYERS = ("players", "numPlayers", "num_players")
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_MOST = 2**31 - 1
_HOLDEM = (
    "python_poker_spot for a river, as spiel-cr spot has it; or for all of limit "
    "hold'em, which os-mccfr samples and sd-cfr trains on without compiling it, "
    "'universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=10 5,"
    "firstPlayer=2 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,"
    "raiseSize=10 10 20 20,maxRaises=3 4 4 4)'"
)
# Common names of games, in lower case without "_", and their names in OpenSpiel.
_CALLED = {
    "battleships": "battleship",
    "goofspiel4": "python_ii_goofspiel(num_cards=4)",
    "goofspiel5": "python_ii_goofspiel(num_cards=5)",
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
    "liarsdice": "liars_dice",
    "matchingpennies": "matrix_mp",
    "pennies": "matrix_mp",
    "phantomtictactoe": "phantom_ttt",
    "rockpaperscissors": "python_rock_paper_scissors",
    "rps": "python_rock_paper_scissors",
    "tictactoe": "phantom_ttt, or tic_tac_toe where nothing is hidden",
}
# Ranks and suits of `universal_poker`.
_RANKS, _SUITS = "23456789TJQKA", "cdhs"
# Number of hands of two cards out of 52, for both players together.
_REACHES = 2652
_MOST_BOARD = 7
# Smallest and largest values of parameters that are whole numbers.
_SIZES = {
    "numRounds": (1, 4),
    "numSuits": (1, len(_SUITS)),
    "numRanks": (2, len(_RANKS)),
    "numHoleCards": (1, 3),
    "potSize": (0, _MOST),
}
# Smallest and largest numbers in parameters that are lists.
_LISTS = {
    "blind": (0, _MOST),
    "stack": (1, _MOST),
    "firstPlayer": (1, 2),
    "numBoardCards": (0, _MOST_BOARD),
    "maxRaises": (0, 255),
    "raiseSize": (1, _MOST),
}
_BY_PLAYER = ("blind", "stack")


def load_string(text: str) -> pyspiel.Game:
    """Load a game by its string, after a check of its parameters.

    Args:
      text: String such as "liars_dice(numdice=1)". Spaces around its parts are ignored.

    Raises:
      pyspiel.SpielError: If OpenSpiel does not know the game or a parameter, or rejects
        the values of the parameters.
      ValueError: If the string cannot be parsed, or a parameter has another type, names
        a missing file, or requires another number of players than two.
    """
    parameters = parse(text, "game", empty=True)
    values = _checked(parameters, text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"game={text!r} is not UTF-8; write the name and parameters of a game"
        ) from None
    announce(f"loading {parameters.name}")  # loading may take half a minute
    try:
        # Parameters are passed as values, because OpenSpiel would read every number in
        # a string as a number, even if the parameter is a text.
        game = pyspiel.load_game(parameters.name, values)
        begin = game.new_initial_state()
        stuck = begin.current_player() >= 0 and not begin.legal_actions()
    except pyspiel.SpielError as error:
        raise pyspiel.SpielError(
            f"game={text!r}: OpenSpiel rejects it{reason(error)}; choose other values "
            f"of its parameters: {_listed(parameters.name)}"
        ) from error
    if stuck:
        raise ValueError(
            f"game={text!r}: its initial state has no legal action; choose other "
            f"values of its parameters: {_listed(parameters.name)}"
        )
    return game


def load_printed(text: str) -> pyspiel.Game:
    """Load a game by the string that OpenSpiel prints for it.

    OpenSpiel itself cannot load some of these strings: it prints a text parameter with
    the value "5" as pile_sizes=5, and reads that as a number.

    Args:
      text: `str` of a game.

    Raises:
      pyspiel.SpielError: If OpenSpiel cannot load it.
    """
    parameters = _with_text(pyspiel.game_parameters_from_string(text), text)
    name = parameters.pop("name", "")
    return pyspiel.load_game(name, parameters)


def _with_text(parameters: dict[str, Any], text: str) -> dict[str, Any]:
    """Return parameters in which text parameters have their text as written.

    Args:
      parameters: Parameters as OpenSpiel reads them, with the "name" of the game.
      text: String from which they were read.
    """
    if parameters.get("name") not in pyspiel.registered_names():
        return parameters
    table = _table(parameters["name"])
    wrong = {
        key
        for key, value in parameters.items()
        if isinstance(value, dict)
        or (isinstance(table.get(key), str) and not isinstance(value, str))
    }
    if not wrong:
        return parameters
    try:
        written = parse(text, "game", empty=True).values
    except ValueError:
        return parameters  # a text with brackets, which OpenSpiel will report
    changed = {
        key: _with_text(parameters[key], written[key])
        if isinstance(parameters[key], dict)
        else written[key]
        for key in wrong & set(written)
    }
    return {**parameters, **changed}


def _checked(parameters: Parameters, text: str) -> dict[str, Any]:
    """Return checked parameters for OpenSpiel, including those of inner games."""
    _check_name(parameters.name, text)
    table = _table(parameters.name)
    values = {}
    for key, value in parameters.values.items():
        if key not in table:
            raise pyspiel.SpielError(
                f"game={text!r}: unknown parameter {key!r}; {parameters.name} accepts "
                f"{_listed(parameters.name)}; {remedy(table)}"
            )
        values[key] = _value(key, value, table[key], text)
    try:
        if parameters.name == "universal_poker":
            _check_poker({**table, **values})
        if "fen" in values:
            # Empty is the default, but OpenSpiel would read an explicit "" as a board.
            if values["fen"]:
                _check_fen(values["fen"], {**table, **values}.get("board_size", 8))
            else:
                del values["fen"]
    except ValueError as error:
        raise ValueError(
            f"game={text!r}: {one_line(error)}; {parameters.name} accepts "
            f"{_listed(parameters.name)}"
        ) from error
    for key in table:
        if key == "filename" and key not in parameters.values:
            raise ValueError(
                f"game={text!r} needs a file; write {parameters.name}({key}=PATH)"
            )
    return values


def _value(key: str, value: str, default: Any, text: str) -> Any:
    """Return a parameter's value in the type of its default.

    Text may be in quotes, which are removed, because users may expect that text that
    looks like a number needs quotes.
    """

    def wrong(must: str) -> ValueError:
        return ValueError(
            f"game={text!r}: {key}={one_line(value)} must be {must}; the default is "
            f"{key}={one_line(default)}"
        )

    if isinstance(default, dict):
        inner = parse(value, "game", empty=True)
        return {"name": inner.name, **_checked(inner, text)}
    if isinstance(default, bool):
        if value.lower() not in ("true", "false"):
            raise wrong("true or false")
        return value.lower() == "true"
    if isinstance(default, int):
        if not _INTEGER.fullmatch(value) or abs(int(value)) > _MOST:
            raise wrong("a whole number of 32 bits")
        if key in _PLAYERS and default and int(value) != 2:
            raise ValueError(
                f"game={text!r}: spiel_cr needs exactly two players and this game has "
                f"{int(value)}; set {key}=2"
            )
        return int(value)
    if isinstance(default, float):
        try:
            number = read_number(value)
        except ValueError:
            raise wrong("a number") from None
        if not math.isfinite(number):
            raise wrong("a finite number")
        return number
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    if key == "filename" and not os.path.isfile(value):
        raise ValueError(
            f"game={text!r}: {key}={one_line(value)}: there is no such file; give the "
            f"path of one"
        )
    return value


@functools.cache
def _table(name: str) -> dict[str, Any]:
    """Return a game's parameters with their defaults."""
    kinds = {kind.short_name: kind for kind in pyspiel.registered_games()}
    return dict(kinds[name].parameter_specification)


def _listed(name: str) -> str:
    """Return a game's parameters as text."""
    shown = [
        f"{key}={'...' if isinstance(default, dict) else one_line(default)}"
        for key, default in _table(name).items()
    ]
    return ", ".join(shown) or "none"


def reason(error: Exception) -> str:
    """Return OpenSpiel's message in parentheses, or "" if it is a line of C++."""
    message = str(error).strip()
    if not message or re.search(r"\.cc:|CHECK_|::|[<>=]=|\n", message):
        return ""
    return f" ({message.rstrip('.')})"


def _check_name(name: str, text: str) -> None:
    """Raise an error for an unknown name; OpenSpiel would print all known names."""
    names = pyspiel.registered_names()
    if name in names:
        return
    close = difflib.get_close_matches(name, names)
    hint = "choose one of pyspiel.registered_names()"
    short = name.lower().replace("_", "").removeprefix("python")
    if called := _CALLED.get(short):
        hint = f"write {called}"
    elif any(word in short for word in ("holdem", "texas", "hulh", "hunl", "nlhe")):
        hint = f"write {_HOLDEM}"
    if "rhode" in short or (close and not hint.startswith("write")):
        hint = f"did you mean {' or '.join(close)}?"
    if "python_" in name + hint and "python_poker_spot" not in names:
        hint += "; the project's own games need `import game_defs` first"
    raise pyspiel.SpielError(f"game={text!r}: Unknown game {name!r}; {hint}")


def _check_fen(text: str, size: int) -> None:
    """Check a chess position; OpenSpiel reads uninitialised memory if it is invalid.

    Args:
      text: Position in Forsyth-Edwards notation.
      size: Number of ranks and files of the board.

    Raises:
      ValueError: If the notation is invalid, or a side does not have exactly one king.
    """
    fields = text.split(" ")
    ranks = fields[0].split("/")
    widths = [
        sum(int(sign) if sign in "12345678" else 1 for sign in rank) for rank in ranks
    ]
    valid = (
        len(fields) in (4, 6)
        and re.fullmatch("[1-8pnbrqkPNBRQK/]+", fields[0])
        and widths == [size] * size
        and all(fields[0].count(king) == 1 for king in "kK")
        and re.fullmatch("[wb] (-|K?Q?k?q?) (-|[a-h][1-8])", " ".join(fields[1:4]))
        and re.fullmatch("( ?[0-9]{1,4})*", " ".join(fields[4:]))
    )
    if not valid:
        raise ValueError(
            f"fen={one_line(text)} must be a position of {size} ranks with one king "
            f"each, in Forsyth-Edwards notation"
        )


def _check_poker(values: Mapping[str, Any]) -> None:
    """Raise an error for parameters that `universal_poker` cannot read.

    Its library (of the Annual Computer Poker Competition) ends the process for most
    mistakes, and misinterprets others.

    Args:
      values: Values of all parameters, with numbers as numbers.

    Raises:
      ValueError: If a parameter is invalid, or two parameters contradict each other.
        The message names them and the remedy.
    """
    for name, (least, most) in _SIZES.items():
        if not least <= values[name] <= most:
            requirement = f"a whole number from {least} to {most}"
            raise ValueError(f"{name}={values[name]} must be {requirement}")
    pot = values["potSize"]
    if pot % 2:
        raise ValueError(f"potSize={pot} must be even")
    lists = {name: _poker_numbers(values, name) for name in _LISTS}
    if not any(lists["blind"]):
        raise ValueError(f"blind={values['blind']} must have a positive number")
    if pot not in (0, 2 * max(lists["blind"])):
        # OpenSpiel derives stacks and the loss of a fold from potSize, but the pot from
        # blind. If both differ, a check would win the blinds, and a fold lose the pot.
        raise ValueError(
            f"potSize={pot} must be twice the largest blind, because OpenSpiel takes "
            f"the pot from blind; with blind={values['blind']} it is "
            f"{2 * max(lists['blind'])}; for a pot of {pot} write "
            f"blind={pot // 2} {pot // 2}"
        )
    if values["betting"] != "limit":
        # OpenSpiel does not end a game in which no player has chips to bet.
        paid = max(lists["blind"])
        if min(lists["stack"]) <= paid:
            raise ValueError(
                f"stack={values['stack']} must be larger than the larger blind, "
                f"{paid}, which is paid before the first bet"
            )
    hole = values["numHoleCards"]
    board = sum(lists["numBoardCards"])
    cards = values["numSuits"] * values["numRanks"]
    if board > _MOST_BOARD or 2 * hole + board > cards:
        raise ValueError(
            f"numBoardCards={values['numBoardCards']}: a board has at most "
            f"{_MOST_BOARD} cards, and with two hands of numHoleCards={hole} it must "
            f"fit in the deck of {cards} cards (numSuits x numRanks); deal fewer "
            f"cards, or use a larger deck"
        )
    _check_board(values, board)
    _check_hand_reaches(values["handReaches"])


def _poker_numbers(values: Mapping[str, Any], name: str) -> list[int]:
    """Return the numbers of a list; [] for an optional list that is empty.

    Raises:
      ValueError: If the text is not a list of numbers, has too few of them, or has one
        out of bounds.
    """
    text = values[name]
    if name == "maxRaises" and not text:
        return []
    # No-limit games have no sizes of raises.
    if name == "raiseSize" and values["betting"] != "limit":
        return []
    count = 2 if name in _BY_PLAYER else values["numRounds"]
    least, most = _LISTS[name]
    words = text.split()
    if len(words) < count or not all(
        word.isascii() and word.isdecimal() and least <= int(word) <= most
        for word in words
    ):
        each = "player" if name in _BY_PLAYER else "round (numRounds)"
        numbers = "1 whole number" if count == 1 else f"{count} whole numbers"
        raise ValueError(
            f"{name}={text} must be {numbers} from {least} to {most}, one for each "
            f"{each}, with spaces between them"
        )
    return [int(word) for word in words[:count]]


def _check_board(values: Mapping[str, Any], most: int) -> None:
    """Raise an error for too many public cards, or cards that are not in the deck."""
    text = values["boardCards"]
    ranks, suits = _RANKS[: values["numRanks"]], _SUITS[: values["numSuits"]]
    cards = [text[start : start + 2] for start in range(0, len(text), 2)]
    deck = {rank + suit for rank in ranks for suit in suits}
    if set(cards) - deck or len(set(cards)) < len(cards) or len(cards) > most:
        raise ValueError(
            f"boardCards={text} must be at most {most} different cards "
            f"(numBoardCards), each a rank of {ranks} and a suit of {suits}, such as "
            f"{ranks[-1]}{suits[0]}"
        )


def _check_hand_reaches(text: str) -> None:
    """Raise an error for a text that is not a list of probabilities of hands."""
    if not text:
        return
    try:
        reaches = [float(word) for word in text.split()]
    except ValueError:
        reaches = []
    if len(reaches) != _REACHES or not all(0 <= reach < math.inf for reach in reaches):
        raise ValueError(
            f"handReaches must be {_REACHES} nonnegative numbers separated by spaces: "
            f"for each player, one for each of the 1326 two-card hands"
        )
