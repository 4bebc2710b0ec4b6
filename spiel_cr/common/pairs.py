"""Pairs of values, one for each of the two players."""

from collections.abc import Iterable
from typing import TypeVar

_T = TypeVar("_T")


def pair(values: Iterable[_T]) -> tuple[_T, _T]:
    """Return the two values of an iterable, player 0's first."""
    first, second = values
    return first, second


def ordered_pair(player: int, own: _T, other: _T) -> tuple[_T, _T]:
    """Return the values of a player and of its opponent in the order of players."""
    return (own, other) if player == 0 else (other, own)
