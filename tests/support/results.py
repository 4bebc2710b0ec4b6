"""What two runs of the same command must agree in."""

from collections.abc import Collection
from typing import Any


def lasting(found: Any, passing: Collection[str]) -> Any:
    """JSON without the keys, at any depth, that are others each time."""
    if isinstance(found, dict):
        return {k: lasting(v, passing) for k, v in found.items() if k not in passing}
    if isinstance(found, list):
        return [lasting(value, passing) for value in found]
    return found
