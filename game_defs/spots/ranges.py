"""Ranges of hands in the notation of poker players: "QQ+,AKs,A5s:0.5".

A range consists of pieces, separated by commas or spaces. A piece is a pair ("QQ"), two
ranks ("AK": all suits, "AKs": one suit, "AKo": two suits), one of these with a plus
("QQ+", "ATs+": the lower card rises until it is just below the higher one) or a span
("77-22", "A5s-A2s", "JTs-87s"), two cards ("AhKh"), or "random", which is all hands. A
weight from 0 to 1 may follow after a colon (PioSOLVER), or a weight in percent may
surround pieces ("[50]KK,AQs[/50]", GTO+); the default is 1. If pieces share a hand, the
last one applies, so "random,AA:0" excludes aces.
"""

import itertools
import re

import numpy as np

from game_defs.bundled.holdem.cards import RANKS, SUITS, HoldemDeck, Sets

DECK = HoldemDeck(len(RANKS), len(SUITS))
# All hands, in the order of the weights of ranges.
HANDS = Sets(range(len(DECK)), (2,), DECK)

_EXAMPLES = "use notation such as QQ+, A5s-A2s, KTo, AhKh:0.5, [50]AQs[/50] or random"
_KIND = rf"([{RANKS}])([{RANKS}])([so]?)"
_KINDS = re.compile(rf"{_KIND}(?:(\+)|-{_KIND})?")
_COMBO = re.compile(rf"([{RANKS}][{SUITS}])([{RANKS}][{SUITS}])")
_WEIGHT = re.compile(r"[0-9]*\.?[0-9]+")
_TAG = re.compile(r"\[(/?)([^\[\]]*)\]")
_LOW, _HIGH = (HANDS.cards // len(SUITS)).T
_SUITED = HANDS.cards[:, 0] % len(SUITS) == HANDS.cards[:, 1] % len(SUITS)


def read_range(text: str) -> np.ndarray:
    """Return the weight of each hand of `HANDS`, float64 [1326].

    Raises:
      ValueError: If a piece cannot be parsed. The message names it and a remedy.
    """
    weights, percent = np.zeros(len(HANDS)), ""
    for piece in re.split(r"[,\s]+", _TAG.sub(r" \g<0> ", text).strip(", \t\n")):
        if tag := _TAG.fullmatch(piece):
            _check_tag(tag[0], tag[2], percent, is_end=bool(tag[1]))
            percent = "" if tag[1] else tag[2]
            continue
        hands, colon, weight = piece.partition(":")
        if colon and not (_WEIGHT.fullmatch(weight) and float(weight) <= 1):
            raise ValueError(
                f"ranges: {piece!r}: the weight after the colon is not a number from 0 "
                f"to 1; use notation such as {hands or 'QQ'}:0.5"
            )
        if colon and percent:
            raise ValueError(
                f"ranges: {piece!r} after [{percent}] has two weights; remove one of "
                f"them"
            )
        share = float(weight) if colon else float(percent or 100) / 100
        weights[_chosen(hands, piece)] = share
    if percent:
        raise ValueError(
            f"ranges: [{percent}] has no end; write [/{percent}] after its last hand"
        )
    return weights


def _check_tag(tag: str, number: str, percent: str, *, is_end: bool) -> None:
    """Raise ValueError for a tag in brackets that is invalid at its place.

    Args:
      tag: The tag, such as "[50]" or "[/50]".
      number: The number in it.
      percent: Number of the tag that has no end yet; empty if there is none.
      is_end: Whether the tag is an end.
    """
    if is_end and number != percent:
        before = f"after [{percent}]" if percent else "without a beginning"
        raise ValueError(
            f"ranges: {tag} {before}; use notation such as [50]QQ,AKs[/50]"
        )
    if not is_end and percent:
        raise ValueError(
            f"ranges: {tag} inside [{percent}]; write [/{percent}] before it"
        )
    if not (_WEIGHT.fullmatch(number) and float(number) <= 100):
        raise ValueError(
            f"ranges: {tag} is not a percentage from 0 to 100; use notation such as "
            f"[50]QQ,AKs[/50]"
        )


def range_text(weights: np.ndarray, notation: str = "pio") -> str:
    """Return a range as text that `read_range` reads.

    Args:
      weights: Weight of each hand of `HANDS`, float64 [1326], rounded to six digits
        after the point.
      notation: "pio" for PioSOLVER ("AA,KK:0.5"), "gto+" for GTO+ ("AA,[50]KK[/50]").
    """
    weights = np.round(weights, 6)
    pieces: list[tuple[str, float]] = []
    for high, low in itertools.combinations_with_replacement(range(12, -1, -1), 2):
        same = (_HIGH == high) & (_LOW == low)
        name = RANKS[high] + RANKS[low]
        kinds = {name: same}
        if high > low and np.ptp(weights[same]):
            kinds = {name + "s": same & _SUITED, name + "o": same & ~_SUITED}
        for kind, hands in kinds.items():
            if np.ptp(weights[hands]):
                numbers = np.flatnonzero(hands).tolist()
                cases = [(hand_text(h), weights[h]) for h in numbers]
            else:
                cases = [(kind, weights[hands][0])]
            pieces += [(text, float(weight)) for text, weight in cases if weight]
    if notation == "pio":
        return ",".join(n if w == 1 else f"{n}:{_decimal(w)}" for n, w in pieces)
    parts = []
    for weight in sorted({weight for _, weight in pieces}, reverse=True):
        names = ",".join(n for n, w in pieces if w == weight)
        tag = _decimal(100 * weight)
        parts.append(names if weight == 1 else f"[{tag}]{names}[/{tag}]")
    return ",".join(parts)


def _decimal(number: float) -> str:
    """Return a positive number with at most six digits after the point."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


def hand_text(hand: int) -> str:
    """Return the names of a hand's cards, the higher card first."""
    return str(DECK.text(HANDS.cards[hand][::-1]))


def _chosen(hands: str, piece: str) -> np.ndarray:
    """Return the hands of a piece without its weight, bool [1326]."""
    if hands == "random":
        return np.ones(len(HANDS), bool)
    if combo := _COMBO.fullmatch(hands):
        cards = [DECK.cards(card)[0] for card in combo.groups()]
        if cards[0] == cards[1]:
            raise ValueError(
                f"ranges: {piece!r} has the card {combo[1]} twice; use different cards"
            )
        return np.arange(len(HANDS)) == HANDS.find(np.array([cards]))[0]
    span = _KINDS.fullmatch(hands)
    if span is None:
        raise ValueError(
            f"ranges: {piece!r} is neither a hand nor a span of hands; {_EXAMPLES}"
        )
    first = _ranks(span[1], span[2], span[3], piece)
    last = first
    if span[4]:
        top = len(RANKS) - 1
        last = (top, top) if first[0] == first[1] else (first[0], first[0] - 1)
    elif span[5]:
        last = _ranks(span[5], span[6], span[7], piece)
        if span[3] != span[7]:
            raise ValueError(
                f"ranges: {piece!r} mixes suited and offsuit hands; {_EXAMPLES}"
            )
    chosen = np.zeros(len(HANDS), bool)
    for high, low in _between(first, last, piece):
        chosen |= (_HIGH == high) & (_LOW == low)
    if span[3]:
        chosen &= _SUITED == (span[3] == "s")
    return chosen


def _ranks(first: str, second: str, suits: str, piece: str) -> tuple[int, int]:
    """Return the higher rank and the lower one."""
    if first == second and suits:
        raise ValueError(
            f"ranges: {piece!r}: a pair is neither s nor o; use {first}{second}"
        )
    low, high = sorted((RANKS.index(first), RANKS.index(second)))
    return high, low


def _between(
    first: tuple[int, int], last: tuple[int, int], piece: str
) -> list[tuple[int, int]]:
    """Return all pairs of ranks from one to the other, both included."""
    gaps = first[0] - first[1], last[0] - last[1]
    same_gap, same_high = gaps[0] == gaps[1], first[0] == last[0] and min(gaps) > 0
    if not (same_gap or same_high):
        raise ValueError(
            f"ranges: {piece!r}: a span has a fixed higher card (A5s-A2s) or a fixed "
            f"gap (JTs-87s, 77-22); split it into several pieces"
        )
    lows = range(min(first[1], last[1]), max(first[1], last[1]) + 1)
    return [(first[0] if same_high else low + gaps[0], low) for low in lows]
