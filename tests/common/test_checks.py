"""Checks of single values: valid values are returned, invalid ones raise."""

import math
import re

import numpy as np
import pytest

from spiel_cr.common import checks


@pytest.mark.parametrize("value", [1, 5, 2**31 - 1, np.int8(3), np.uint64(7)])
def test_accepts_integers(value):
    found = checks.check_integer(value, "depth", 1)
    assert found == value and type(found) is int
    assert checks.check_iterations(value) == value


@pytest.mark.parametrize("value", [0, -1, 2**31, True, 1.0, "1", None, math.nan])
def test_rejects_invalid_integers(value):
    says = f"={value!r} must be a whole number from 1 to 2^31 - 1"
    with pytest.raises(ValueError, match=re.escape("depth" + says)):
        checks.check_integer(value, "depth", 1)
    with pytest.raises(ValueError, match=re.escape("iterations" + says)):
        checks.check_iterations(value)
    with pytest.raises(ValueError, match=re.escape("runs" + says)):
        checks.check_iterations(value, name="runs")


def test_error_contains_the_range_of_integers():
    assert checks.check_integer(9, "ranks", 2, 9) == 9
    with pytest.raises(ValueError, match="ranks=10 must be a whole number from 2 to 9"):
        checks.check_integer(10, "ranks", 2, 9)


def test_accepts_32_bit_seeds():
    assert [checks.check_seed(seed) for seed in (0, 2**32 - 1)] == [0, 2**32 - 1]
    for seed in (-1, 2**32, 0.5, False):
        with pytest.raises(ValueError, match=r"seed=.* from 0 to 2\^32 - 1"):
            checks.check_seed(seed)


@pytest.mark.parametrize(
    "interval, inside, outside, says",
    [
        ("[0, 1)", (0, 0.5, np.float32(0.25)), (-0.1, 1, 1.5), "lie in [0, 1)"),
        ("(0, 1]", (1e-9, 1), (0, 1.1), "lie in (0, 1]"),
        ("[0, inf)", (0, 1e300), (-1, math.inf), "be finite and >= 0"),
        ("(0, inf)", (1e-300, 7), (0, -3, math.inf), "be finite and above 0"),
    ],
)
def test_numbers_must_lie_in_the_interval(interval, inside, outside, says):
    for value in inside:
        assert checks.check_number(value, "share", interval) is value
    for value in (*outside, math.nan, True, "0.5", None):
        with pytest.raises(ValueError) as caught:
            checks.check_number(value, "share", interval, remedy="choose 0.5")
        assert str(caught.value) == f"share={value!r} must {says}; choose 0.5"


def test_rejects_unknown_choices():
    assert checks.check_choice("b", "rule", ("a", "b")) == "b"
    with pytest.raises(ValueError, match="^rule='c' must be one of a, b$"):
        checks.check_choice("c", "rule", ("a", "b"))


@pytest.mark.parametrize("dtype", ["float32", np.float64, np.dtype("float32"), float])
def test_accepts_floating_dtypes(dtype):
    assert checks.check_dtype(dtype) == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["float16", int, "complex64", "nonsense"])
def test_rejects_other_dtypes(dtype):
    with pytest.raises(ValueError, match="dtype=.* must be float32 or float64"):
        checks.check_dtype(dtype)
