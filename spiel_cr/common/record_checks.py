"""Tests of the values of a line of JSON, so that a wrong one is refused by name."""

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

# Whether a value is as it must be.
Test: TypeAlias = Callable[[Any], bool]


def check_fields(record: Mapping[str, Any], tests: Mapping[str, Test]) -> None:
    """Raises ValueError, naming a value that is missing or not as it must be.

    Args:
      record: of JSON; may hold more.
      tests: by the names of its values.
    """
    for name, test in tests.items():
        if name not in record:
            raise ValueError(f"has no {name}")
        if not test(record[name]):
            raise ValueError(f"has a wrong {name}: {reprlib.repr(record[name])}")


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number of at least 0."""
    return type(value) is int and value >= 0


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def is_duration(value: Any) -> bool:
    """Whether a value is a finite number of at least 0, such as of seconds."""
    return is_number(value) and value >= 0


def is_text(value: Any) -> bool:
    """Whether a value is a string."""
    return isinstance(value, str)


def is_boolean(value: Any) -> bool:
    """Whether a value is true or false."""
    return isinstance(value, bool)


def optional(test: Test) -> Test:
    """Whether a value is None or passes a test."""
    return lambda value: value is None or test(value)


def is_list(test: Test, length: int | None = None) -> Test:
    """Whether a value is a list (of this length) whose values all pass a test."""
    return lambda value: (
        isinstance(value, list)
        and length in (None, len(value))
        and all(map(test, value))
    )


def is_table(test: Test) -> Test:
    """Whether a value is a JSON object whose values all pass a test."""
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))
