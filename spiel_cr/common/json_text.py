"""JSON that comes from outside: the text is checked before its values are used.

Python's parser raises `RecursionError` for text that is nested too deeply, and what it
just accepts can still be too deep for `repr`, `json.dumps` or NumPy.
"""

import json
from typing import Any

# Nesting of files that spiel_cr writes is below 10.
_MOST_LEVELS = 100


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
    """Parse JSON text whose outermost value is an object.

    Raises:
      ValueError: If the text is not JSON, is nested too deeply, or is something else
        than an object.
    """
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError("not an object in braces")
    return value


def _levels_exceed(value: Any, most: int) -> bool:
    """Return whether lists and dicts are nested in more than so many levels."""
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
