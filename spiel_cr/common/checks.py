"""Checks of single values: each returns the value, or says what is wrong with it."""

import math
import numbers
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

# What attributes must be, see `check_settings`; and one that counts something.
Wanted = Mapping[str, str | range | tuple[str, ...]]
COUNT = range(1, 2**31)


def check_integer(value: int, name: str, least: int, most: int = 2**31 - 1) -> int:
    """Returns a whole number in a range, or raises ValueError.

    Args:
      value: to be checked; booleans are no numbers.
      name: of the argument, for the error.
      least, most: the smallest and the largest number allowed.
    """
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or not least <= value <= most:
        top = {2**31 - 1: "2^31 - 1", 2**32 - 1: "2^32 - 1"}.get(most, f"{most}")
        raise ValueError(
            f"{name}={value!r} must be a whole number from {least} to {top}"
        )
    return int(value)


def check_iterations(iterations: int, *, name: str = "iterations") -> int:
    """Returns a whole number from 1 to 2^31 - 1, or raises ValueError."""
    return check_integer(iterations, name, 1)


def check_seed(seed: int) -> int:
    """Returns a whole number from 0 to 2^32 - 1, or raises ValueError."""
    return check_integer(seed, "seed", 0, 2**32 - 1)


def check_number(value: float, name: str, interval: str, *, remedy: str = "") -> float:
    """Returns a number of an interval, or raises ValueError.

    Args:
      value: to be checked; booleans and NaN are no numbers.
      name: of the argument, for the error.
      interval: as "[0, 1)" or "(0, inf)"; round brackets leave the end out.
      remedy: what to add to the error: the reason, or the remedy.
    """
    low, high = (float(end) for end in interval[1:-1].split(","))
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if (
        not real
        or not low <= value <= high
        or (value == low and interval[0] == "(")
        or (value == high and interval[-1] == ")")
    ):
        end = f"; {remedy}" if remedy else ""
        requirement = f"lie in {interval}"
        if math.isinf(high) and interval[-1] == ")":
            requirement = "be finite and " + ("above " if interval[0] == "(" else ">= ")
            requirement += f"{low:g}"
        raise ValueError(f"{name}={value!r} must {requirement}{end}")
    return value


def check_choice(value: Any, name: str, choices: Collection[Any]) -> Any:
    """Returns one of some values, or raises ValueError that lists them."""
    if value not in choices:
        listed = ", ".join(str(choice) for choice in choices)
        raise ValueError(f"{name}={value!r} must be one of {listed}")
    return value


def check_settings(settings: Any, wanted: Wanted, *, optional: bool = False) -> None:
    """Checks attributes by a table; raises ValueError for the first bad one.

    Args:
      settings: whose attributes.
      wanted: by attributes (several with spaces between) an interval as of
        `check_number`, a range of whole numbers, or the choices.
      optional: whether they may be None, too.
    """
    for names, one in wanted.items():
        for name in names.split():
            value = getattr(settings, name)
            if optional and value is None:
                continue
            if isinstance(one, str):
                check_number(value, name, one)
            elif isinstance(one, range):
                check_integer(value, name, one.start, one.stop - 1)
            else:
                check_choice(value, name, one)


def check_dtype(dtype: np.typing.DTypeLike) -> np.dtype:
    """Returns float32 or float64 or raises ValueError."""
    try:
        checked = np.dtype(dtype)
    except TypeError:
        checked = None
    if checked not in (np.float32, np.float64):
        raise ValueError(f"dtype={checked or dtype} must be float32 or float64")
    return checked


def read_budget(text: str, name: str = "budget") -> tuple[int, ...]:
    """Reads numbers of buckets by round, such as "13-25-125".

    Args:
      text: the numbers, joined by dashes.
      name: of the argument, for the error.

    Raises:
      ValueError: they are no whole numbers of at least 1.
    """
    parts = text.split("-")
    if not all(p.isascii() and p.isdigit() and 0 < int(p[:12]) for p in parts):
        raise ValueError(
            f"{name}={text!r} must be whole numbers of at least 1, one for each round, "
            "joined by dashes; write one such as 13-25-125"
        )
    return tuple(int(part[:12]) for part in parts)
