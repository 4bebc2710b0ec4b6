"""Results of one line: what holds arrays says their sizes, not their numbers."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

# Of a value that is printed as it is.
_MOST = 60


def short_repr(self: Any) -> str:
    """The `__repr__` of dataclasses and named tuples that hold arrays.

    Fields with numbers and short texts are printed; of arrays type and shape, of other
    objects the class. What is None or has its default is left out.
    """
    said = []
    for name, default in _fields(self):
        value = getattr(self, name)
        usual = isinstance(value, str | int | float | bool) and value == default
        if value is None or usual or (isinstance(value, tuple) and not value):
            continue
        said.append(f"{name}={_described(value)}")
    return f"{type(self).__name__}({', '.join(said)})"


def _fields(record: Any) -> list[tuple[str, Any]]:
    """Names of the fields and their defaults."""
    if dataclasses.is_dataclass(record):
        return [
            (field.name, field.default)
            for field in dataclasses.fields(record)
            if field.repr
        ]
    defaults: Mapping[str, Any] = record._field_defaults
    return [(name, defaults.get(name, dataclasses.MISSING)) for name in record._fields]


def _described(value: object) -> str:
    """One value in a few letters."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(np.shape(value))}"
    if isinstance(value, tuple) and len(value) <= 2:
        return f"({', '.join(map(_described, value))})"
    if isinstance(value, tuple | list | dict | set):
        return f"<{len(value)} entries>"
    for text in (repr(value), str(value)):
        if len(text) <= _MOST and "\n" not in text and " at 0x" not in text:
            return text
    return f"<{type(value).__name__}>"
