"""Bet sizes in the notation of poker players: "50%,100%,allin; raises 60%,2.5x; cap 4".

Clauses are separated by semicolons. A clause consists of words for its scope, followed
by sizes that are separated by commas or spaces. If several clauses apply to a decision,
the last one takes precedence.

  scope   flop, turn, river; oop, ip; bets (the first of a street), raises, donks (the
          first bet of a street by oop, if it called on the street before; if no clause
          names donks, the sizes of bets apply). A clause without a word for the street,
          the player or the kind of bet applies to all of them.
  sizes   50%    of the pot; for a raise, of the pot after a call
          pot    100%
          120c   chips; for a raise, the amount above a call
          2.5x   a raise to this multiple of the bet (only after "raises")
          allin  all chips; allin:150% only if that is at most 150% of the pot
          none   no bet or raise

"cap 4" limits the number of bets and raises on a street to 4. "force 15%" turns a bet
into an all-in if the remaining chips would be at most 15% of the pot after a call.
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


class BetSize(NamedTuple):
    """Size of a bet.

    Attributes:
      unit: "%" of the pot, "x" of the bet, "c" chips, or "allin".
      amount: Number of units; for all-in, the largest size in % of the pot for which it
        is allowed.
    """

    unit: str
    amount: float


class BetSizes(NamedTuple):
    """Allowed bet sizes.

    Attributes:
      sizes: Sizes by street, player and kind of bet.
      cap: Largest number of bets and raises on a street.
      force: Fraction of the pot; a bet that leaves at most this part of the pot behind
        is all-in. -1: never.
    """

    sizes: Mapping[tuple[str, ...], tuple[BetSize, ...]]
    cap: float
    force: float


def read_bets(text: str) -> BetSizes:
    """Parse clauses of bet sizes.

    Raises:
      ValueError: If a clause cannot be parsed. The message names the word and a remedy.
    """
    table: dict[tuple[str, ...], tuple[BetSize, ...]] = {}
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
            f"bets: {' '.join(words)!r} is invalid; use a clause such as {example}"
        )
    return float(match[1])


def _places(words: list[str]) -> tuple[list[list[str]], list[str]]:
    """Return the scope of a clause and its other words.

    Returns:
      Streets, players and kinds of bets; then the other words.
    """
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


def _sizes(words: list[str], clause: str, raises: bool) -> tuple[BetSize, ...]:
    """Return the sizes of a clause.

    Args:
      words: Words of the sizes.
      clause: Text of the clause, for error messages.
      raises: Whether the clause applies to raises only.
    """
    if words == ["none"]:
        return ()
    if words in ([], [""]):
        raise ValueError(
            f"bets: {clause.strip()!r} has no size; add one, such as 50%, or none"
        )
    return tuple(_size(word, raises) for word in words)


def _size(word: str, raises: bool) -> BetSize:
    match = _SIZE.fullmatch("100%" if word == "pot" else word)
    if match is None:
        raise ValueError(
            f"bets: {word!r} is neither a size nor a scope; use words such as "
            f"50%, pot, 120c, 2.5x, allin, none, after flop, turn, river, oop, ip, "
            f"bets, raises, donks"
        )
    if match[3]:
        return BetSize("allin", float(match[4] or "inf"))
    unit, amount = match[2], float(match[1])
    if unit == "x" and not raises:
        raise ValueError(
            f"bets: {word!r} is a multiple of a bet, so it applies to raises only; "
            f"use '; raises {word}'"
        )
    if not (1 if unit == "x" else 0) < amount <= _MOST:
        least = "a factor above 1" if unit == "x" else "a number above 0"
        raise ValueError(
            f"bets: {word!r} is out of range; use {least}, at most {_MOST:g}"
        )
    return BetSize(unit, amount)
