"""Checks of single values: each returns the value, or says what is wrong with it."""

import numbers

import numpy as np


def check_iterations(iterations: int, *, name: str = "iterations") -> int:
    """Returns a whole number from 1 to 2^31 - 1, or raises ValueError."""
    whole = isinstance(iterations, numbers.Integral)
    if not whole or isinstance(iterations, bool) or not 1 <= iterations < 2**31:
        raise ValueError(
            f"{name}={iterations!r} must be a whole number from 1 to 2^31 - 1"
        )
    return int(iterations)


def check_seed(seed: int) -> int:
    """Returns a whole number from 0 to 2^32 - 1, or raises ValueError."""
    whole = isinstance(seed, numbers.Integral) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r} must be a whole number from 0 to 2^32 - 1")
    return int(seed)


def check_dtype(dtype: np.typing.DTypeLike) -> np.dtype:
    """Returns float32 or float64 or raises ValueError."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype={found or dtype} must be float32 or float64")
    return found
