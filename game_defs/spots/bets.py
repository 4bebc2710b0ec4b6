"""Bet sizes as poker players write them: "50%,100%,allin; raises 60%,2.5x; cap 4".

Clauses stand between semicolons. A clause is words that say where it holds, then sizes
with commas or spaces between them; a later clause takes the place of an earlier one
where both hold.

  where   flop, turn, river; oop, ip; bets (the first of a street), raises, donks (the
          first bet of a street by oop, if it has called on the street before; as bets,
          if no clause names them). What is left out is everything.
  sizes   50%    of the pot; a raise by so much of the pot after a call
          pot    100%
          120c   chips; a raise by so many
          2.5x   raise to so many times the bet (behind "raises" only)
          allin  all chips; allin:150% only if that is at most so much of the pot
          none   no size

"cap 4" allows so many bets and raises on a street. "force 15%" makes bets all-in that
leave at most so much of the pot, as it is after a call, behind.
"""

import itertools
import math
import re
from collections.abc import Mapping
from typing import NamedTuple

STREETS, PLAYERS = ("flop", "turn", "river"), ("oop", "ip")
BETS, RAISES, DONKS = KINDS = ("bets", "raises", "donks")
_SIZE = re.compile(r"([0-9]*\.?[0-9]+)(%|x|c)|(allin|all-in)(?::([0-9]*\.?[0-9]+)%)?")
_MOST = 1e6


class Size(NamedTuple):
    """How much to bet.

    Attributes:
      unit: "%" of the pot, "x" of the bet, "c" chips, or "allin".
      amount: so many; of all-in, the largest part of the pot in % for which it counts.
    """

    unit: str
    amount: float


class BetSizes(NamedTuple):
    """What may be bet.

    Attributes:
      sizes: by street, player and kind of bet.
      cap: bets and raises on a street, at most.
      force: a bet that leaves at most this part of the pot behind is all-in; -1: none.
    """

    sizes: Mapping[tuple[str, ...], tuple[Size, ...]]
    cap: float
    force: float


def read_bets(text: str) -> BetSizes:
    """Read clauses.

    Raises:
      ValueError: one cannot be read; says which word, and what to write.
    """
    table: dict[tuple[str, ...], tuple[Size, ...]] = {}
    table.update(dict.fromkeys(itertools.product(STREETS, PLAYERS, KINDS), ()))
    cap, force = math.inf, -1.0
    for clause in text.split(";"):
        words = re.split(r"[,\s]+", clause.strip(", \t\n").lower())
        if words[0] == "cap":
            cap = _number(words, r"([0-9]+)", "cap 4")
        elif words[0] == "force":
            force = _number(words, r"([0-9]*\.?[0-9]+)%", "force 15%") / 100
        else:
            where, rest = _places(words)
            kinds = where[2]
            sizes = _sizes(rest, clause, kinds == [RAISES])
            table.update(dict.fromkeys(itertools.product(*where), sizes))
    return BetSizes(table, cap, force)


def _number(words: list[str], pattern: str, example: str) -> float:
    match = re.fullmatch(pattern, words[1]) if len(words) == 2 else None
    if match is None:
        raise ValueError(
            f"bets: {' '.join(words)!r} is not understood; write {example}"
        )
    return float(match[1])


def _places(words: list[str]) -> tuple[list[list[str]], list[str]]:
    """Where a clause holds (streets, players, kinds of bets), and its other words."""
    chosen: list[list[str]] = [[], [], []]
    for number, word in enumerate(words):
        for keywords, options in zip(chosen, (STREETS, PLAYERS, KINDS), strict=True):
            keywords += [name for name in options if word in (name, name.rstrip("s"))]
        if sum(map(len, chosen)) == number:
            break
    rest = words[sum(map(len, chosen)) :]
    if BETS in chosen[2]:
        chosen[2].append(DONKS)
    complete = zip(chosen, (STREETS, PLAYERS, KINDS), strict=True)
    return [keywords or list(options) for keywords, options in complete], rest


def _sizes(words: list[str], clause: str, raises: bool) -> tuple[Size, ...]:
    """Return the sizes of a clause; `raises`: it holds for nothing else."""
    if words == ["none"]:
        return ()
    if words in ([], [""]):
        raise ValueError(
            f"bets: {clause.strip()!r} has no size; write one, such as 50%, or none"
        )
    return tuple(_size(word, raises) for word in words)


def _size(word: str, raises: bool) -> Size:
    match = _SIZE.fullmatch("100%" if word == "pot" else word)
    if match is None:
        raise ValueError(
            f"bets: {word!r} is neither a size nor a place; write words such as "
            f"50%, pot, 120c, 2.5x, allin, none, after flop, turn, river, oop, ip, "
            f"bets, raises, donks"
        )
    if match[3]:
        return Size("allin", float(match[4] or "inf"))
    unit, amount = match[2], float(match[1])
    if unit == "x" and not raises:
        raise ValueError(
            f"bets: {word!r} multiplies a bet, so it holds for raises alone; write "
            f"'; raises {word}'"
        )
    if not (1 if unit == "x" else 0) < amount <= _MOST:
        least = "times more than 1" if unit == "x" else "a number above 0"
        raise ValueError(
            f"bets: {word!r} is out of range; give {least}, at most {_MOST:g}"
        )
    return Size(unit, amount)
