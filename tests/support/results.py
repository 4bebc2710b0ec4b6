"""Comparison of the results of two runs of the same command."""

from collections.abc import Collection
from typing import Any


def lasting(found: Any, passing: Collection[str]) -> Any:
    """Return JSON without the keys that differ from run to run, at any depth."""
    if isinstance(found, dict):
        return {k: lasting(v, passing) for k, v in found.items() if k not in passing}
    if isinstance(found, list):
        return [lasting(value, passing) for value in found]
    return found
