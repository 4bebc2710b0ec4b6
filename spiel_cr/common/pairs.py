"""Pairs of values, one for each of the two players."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")


def pair(values: Iterable[_T]) -> tuple[_T, _T]:
    """Return the two values of an iterable, player 0's first."""
    first, second = values
    return first, second


def map_pair(function: Callable[..., _T], *pairs: Iterable[Any]) -> tuple[_T, _T]:
    """Return the results of a function for each player's values in some pairs."""
    return pair(map(function, *pairs))


def ordered_pair(player: int, first: _T, second: _T) -> tuple[_T, _T]:
    """Return a player's value and its opponent's, player 0's value first."""
    return (first, second) if player == 0 else (second, first)
