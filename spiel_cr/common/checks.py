"""Checks of single values: each returns the value, or raises ValueError."""

import math
import numbers
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

# Requirements for attributes, as in `check_settings`, and the one for counts.
Wanted = Mapping[str, str | range | tuple[str, ...]]
COUNT = range(1, 2**31)


def check_integer(value: int, name: str, least: int, most: int = 2**31 - 1) -> int:
    """Return a whole number in a range, or raise ValueError.

    Args:
      value: Value to check. Booleans are not numbers.
      name: Name of the argument, for the error.
      least: Smallest number allowed.
      most: Largest number allowed.
    """
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or not least <= value <= most:
        top = {2**31 - 1: "2^31 - 1", 2**32 - 1: "2^32 - 1"}.get(most, f"{most}")
        raise ValueError(
            f"{name}={value!r} must be a whole number from {least} to {top}"
        )
    return int(value)


def check_iterations(iterations: int, *, name: str = "iterations") -> int:
    """Return a whole number from 1 to 2^31 - 1, or raise ValueError."""
    return check_integer(iterations, name, 1)


def check_seed(seed: int) -> int:
    """Return a whole number from 0 to 2^32 - 1, or raise ValueError."""
    return check_integer(seed, "seed", 0, 2**32 - 1)


def check_number(value: float, name: str, interval: str, *, remedy: str = "") -> float:
    """Return a number in an interval, or raise ValueError.

    Args:
      value: Value to check. Booleans and NaN are not numbers.
      name: Name of the argument, for the error.
      interval: Interval such as "[0, 1)" or "(0, inf)". Round brackets exclude the end.
      remedy: Reason or remedy that is appended to the error.
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
    """Return one of some values, or raise ValueError with a list of them."""
    if value not in choices:
        listed = ", ".join(str(choice) for choice in choices)
        raise ValueError(f"{name}={value!r} must be one of {listed}")
    return value


def check_settings(settings: Any, wanted: Wanted, *, optional: bool = False) -> None:
    """Check attributes against a table, and raise ValueError for the first invalid one.

    Args:
      settings: Object with the attributes.
      wanted: Requirement by the name of an attribute, or by several names separated by
        spaces: an interval as in `check_number`, a range of whole numbers, or choices.
      optional: Whether the attributes may be None.
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
    """Return float32 or float64, or raise ValueError."""
    try:
        checked = np.dtype(dtype)
    except TypeError:
        checked = None
    if checked not in (np.float32, np.float64):
        raise ValueError(f"dtype={checked or dtype} must be float32 or float64")
    return checked


def read_budget(text: str, name: str = "budget") -> tuple[int, ...]:
    """Return the numbers of buckets by round from a text such as "13-25-125".

    Args:
      text: Numbers, joined by dashes.
      name: Name of the argument, for the error.

    Raises:
      ValueError: If they are not whole numbers of at least 1.
    """
    parts = text.split("-")
    if not all(p.isascii() and p.isdigit() and 0 < int(p[:12]) for p in parts):
        raise ValueError(
            f"{name}={text!r} must be whole numbers of at least 1, one for each round, "
            "joined by dashes, such as 13-25-125"
        )
    return tuple(int(part[:12]) for part in parts)
