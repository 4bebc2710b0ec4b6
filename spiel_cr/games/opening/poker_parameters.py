"""The parameters of `universal_poker`, checked before OpenSpiel sees them.

The C library behind it (of the Annual Computer Poker Competition) ends the process at
most mistakes; others it reads as something else.
"""

import math
from collections.abc import Mapping
from typing import Any

_RANKS, _SUITS = "23456789TJQKA", "cdhs"
# Hands of two cards out of 52, of both players.
_REACHES = 2652
_MOST = 2**31 - 1
_MOST_BOARD = 7
# Whole numbers: least and most.
_SIZES = {
    "numRounds": (1, 4),
    "numSuits": (1, len(_SUITS)),
    "numRanks": (2, len(_RANKS)),
    "numHoleCards": (1, 3),
    "potSize": (0, _MOST),
}
# Lists: least and most of their numbers.
_LISTS = {
    "blind": (0, _MOST),
    "stack": (1, _MOST),
    "firstPlayer": (1, 2),
    "numBoardCards": (0, _MOST_BOARD),
    "maxRaises": (0, 255),
    "raiseSize": (1, _MOST),
}
_BY_PLAYER = ("blind", "stack")


def check(values: Mapping[str, Any]) -> None:
    """Refuses what the library behind `universal_poker` cannot read.

    Args:
      values: of all parameters, numbers as numbers.

    Raises:
      ValueError: a parameter is wrong, or two do not fit together; names them and what
        to write.
    """
    for name, (least, most) in _SIZES.items():
        if not least <= values[name] <= most:
            what = f"a whole number from {least} to {most}"
            raise ValueError(f"{name}={values[name]} must be {what}")
    if values["potSize"] % 2:
        raise ValueError(f"potSize={values['potSize']} must be even")
    lists = {name: _numbers(values, name) for name in _LISTS}
    if not any(lists["blind"]):
        raise ValueError(f"blind={values['blind']} must have a positive number")
    if values["betting"] != "limit":
        # OpenSpiel never ends where nobody has chips to bet.
        paid = max(*lists["blind"], values["potSize"] // 2)
        if min(lists["stack"]) <= paid:
            raise ValueError(
                f"stack={values['stack']} must be more than what is paid before the "
                f"first bet, {paid}: the larger blind, and half of potSize"
            )
    hole = values["numHoleCards"]
    board = sum(lists["numBoardCards"])
    cards = values["numSuits"] * values["numRanks"]
    if board > _MOST_BOARD or 2 * hole + board > cards:
        raise ValueError(
            f"numBoardCards={values['numBoardCards']} must be at most {_MOST_BOARD} "
            f"cards in all, and with twice numHoleCards={hole} at most the {cards} of "
            f"the deck (numSuits x numRanks)"
        )
    _check_board(values, board)
    _check_reaches(values["handReaches"])


def _numbers(values: Mapping[str, Any], name: str) -> list[int]:
    """The numbers of a list; none where it is left out and may be.

    Raises:
      ValueError: it is no list of enough numbers within the bounds.
    """
    text = values[name]
    if name == "maxRaises" and not text:
        return []
    # Bets without a limit have no sizes of raises.
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
        raise ValueError(
            f"{name}={text} must be {count} whole numbers from {least} to {most}, one "
            f"for each {each}, with spaces between them"
        )
    return [int(word) for word in words[:count]]


def _check_board(values: Mapping[str, Any], most: int) -> None:
    """Refuses public cards that are not in the deck, or more than are dealt."""
    text = values["boardCards"]
    ranks, suits = _RANKS[: values["numRanks"]], _SUITS[: values["numSuits"]]
    cards = [text[start : start + 2] for start in range(0, len(text), 2)]
    known = {rank + suit for rank in ranks for suit in suits}
    if set(cards) - known or len(set(cards)) < len(cards) or len(cards) > most:
        raise ValueError(
            f"boardCards={text} must be at most {most} different cards "
            f"(numBoardCards), each a rank of {ranks} and a suit of {suits}, such as "
            f"{ranks[-1]}{suits[0]}"
        )


def _check_reaches(text: str) -> None:
    """Refuses what is no list of probabilities of hands."""
    if not text:
        return
    try:
        reaches = [float(word) for word in text.split()]
    except ValueError:
        reaches = []
    if len(reaches) != _REACHES or not all(0 <= own < math.inf for own in reaches):
        raise ValueError(
            f"handReaches must be {_REACHES} numbers from 0 on, with spaces between "
            f"them: 1326 hands of two cards out of 52 for each player"
        )
