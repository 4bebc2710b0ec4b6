"""Validation of JSON from outside: syntax, nesting, and values of records.

Python's parser raises `RecursionError` for text that is nested too deeply. Text that it
just accepts can still be too deep for `repr`, `json.dumps` or NumPy.
"""

import json
import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

# Nesting of files that spiel_cr writes is below 10.
_MOST_LEVELS = 100

# A function that returns whether a value is valid.
Test: TypeAlias = Callable[[Any], bool]


def read_json(text: str | bytes) -> Any:
    """Parse JSON text.

    Args:
      text: JSON; bytes must be UTF-8, UTF-16 or UTF-32.

    Returns:
      The value: dicts, lists, strings, numbers, booleans and None.

    Raises:
      ValueError: If the text is not JSON, or has more than 100 levels of brackets.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    # Brackets in strings are counted too, so this is only an upper bound.
    if isinstance(text, str):
        brackets = text.count("[") + text.count("{")
    else:
        brackets = text.count(b"[") + text.count(b"{")
    if brackets > _MOST_LEVELS and _levels_exceed(value, _MOST_LEVELS):
        raise _too_deep()
    return value


def read_object(text: str | bytes) -> dict[str, Any]:
    """Parse JSON text with an object as its outermost value.

    Raises:
      ValueError: If the text is not JSON, is nested too deeply, or is not an object.
    """
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError("not an object in braces")
    return value


def _levels_exceed(value: Any, most: int) -> bool:
    """Return whether lists and dicts are nested more deeply than `most` levels."""
    level = [value]
    for _ in range(most + 1):
        containers = [one for one in level if isinstance(one, list | dict)]
        if not containers:
            return False
        level = [
            part
            for one in containers
            for part in (one.values() if isinstance(one, dict) else one)
        ]
    return True


def _too_deep() -> ValueError:
    return ValueError(f"nested in more than {_MOST_LEVELS} levels of brackets")


def check_fields(record: Mapping[str, Any], tests: Mapping[str, Test]) -> None:
    """Raise ValueError, with the name of the value, if a value is missing or invalid.

    Args:
      record: JSON object, which may have further values.
      tests: Tests of the values, by name.
    """
    for name, test in tests.items():
        if name not in record:
            raise ValueError(f"has no {name}")
        if not test(record[name]):
            raise ValueError(f"has a wrong {name}: {reprlib.repr(record[name])}")


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number of at least 0."""
    return type(value) is int and value >= 0


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def is_duration(value: Any) -> bool:
    """Return whether a value is a finite number of at least 0, such as seconds."""
    return is_number(value) and value >= 0


def is_text(value: Any) -> bool:
    """Return whether a value is a string."""
    return isinstance(value, str)


def is_boolean(value: Any) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def optional(test: Test) -> Test:
    """Return a test that also passes None."""
    return lambda value: value is None or test(value)


def is_list(test: Test, length: int | None = None) -> Test:
    """Return a test for lists (of this length) whose values all pass a test."""
    return lambda value: (
        isinstance(value, list)
        and length in (None, len(value))
        and all(map(test, value))
    )


def is_table(test: Test) -> Test:
    """Return a test for JSON objects whose values all pass a test."""
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))
