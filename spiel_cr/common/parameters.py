"""One syntax for everything that has settings: `name(parameter=value,...)`.

It is OpenSpiel's syntax of game strings, but values stay text until the table of the
thing that is named says what they are. A value may be such a string itself.
"""

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from spiel_cr.common.messages import one_line

# With a colon: a name of a user's own module.
_NAME = re.compile(r"[\w+.:-]+")
_Preset = TypeVar("_Preset")


class Parameters(NamedTuple):
    """What a string says.

    Attributes:
      kind: whose string it is, for errors: "bot", "algorithm".
      text: the string.
      name: before the brackets.
      values: parameter name to the text of its value, in the order of the string.
    """

    kind: str
    text: str
    name: str
    values: dict[str, str]

    def without(self, *names: str) -> str:
        """The string without some of its parameters."""
        rest = ",".join(f"{k}={v}" for k, v in self.values.items() if k not in names)
        return f"{self.name}({rest})" if rest else self.name

    def preset(self, presets: Mapping[str, _Preset], kind: str) -> _Preset:
        """The preset that is named.

        Args:
          presets: by name.
          kind: what they are, for the error.

        Raises:
          ValueError: there is none of this name.
        """
        if self.name not in presets:
            raise ValueError(
                f"{self.kind}={self.text!r}: there is no {kind} {self.name!r}; choose "
                f"one of {', '.join(presets)}"
            )
        return presets[self.name]

    def convert(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the types that a table gives.

        Args:
          table: parameter name to its type: str, int, float, bool, or one of them
            `| None`; anything else is taken as text.

        Raises:
          ValueError: a parameter that is not in the table, or a value of another type.
        """
        for key in self.values:
            if key not in table:
                raise ValueError(
                    f"{self.kind}={self.text!r}: unknown parameter {key!r}; "
                    f"{self.name} takes {', '.join(table) or 'none'}; {remedy(table)}"
                )
        return {
            key: self._value(key, value, table[key])
            for key, value in self.values.items()
        }

    def _value(self, key: str, value: str, kind: Any) -> Any:
        if typing.get_origin(kind) in (typing.Union, types.UnionType):
            plain = [k for k in typing.get_args(kind) if k in (bool, int, float)]
            kind = plain[0] if plain else str
        if kind is bool:
            if value.lower() in ("true", "false"):
                return value.lower() == "true"
            raise self.error(key, "true or false")
        if kind not in (int, float):
            return value
        try:
            number = read_number(value)
        except ValueError:
            raise self.error(key, "a number") from None
        if kind is float:
            return number
        try:
            return int(value)
        except ValueError:
            if number.is_integer():
                return int(number)
            raise self.error(key, "a whole number") from None

    def error(self, key: str, must_be: str) -> ValueError:
        """What to raise for a value that must be something else."""
        value = self.values[key]
        return ValueError(
            f"{self.kind}={self.text!r}: {key}={one_line(value)} must be {must_be}"
        )


def remedy(table: Mapping[str, Any]) -> str:
    """What to do with a parameter that is not in a table."""
    return "choose one of them, or leave it out" if table else "leave it out"


def parse(text: str, kind: str, *, empty: bool = False) -> Parameters:
    """Reads a name and its parameters.

    Args:
      text: such as "resolving(solver=dcfr(alpha=1.5),iterations=10)".
      kind: whose string it is, for errors.
      empty: whether a value may be empty, as in "name(parameter=)".

    Raises:
      ValueError: not of this form, text behind the last bracket, a parameter without a
        value, or one that is given twice.
    """

    def wrong(problem: str) -> ValueError:
        several = kind == "algorithm" and ";" in text
        return ValueError(
            f"{kind}={text!r} cannot be read: {problem}; write name or "
            f"name(parameter=value,...)"
            f"{'; several: spiel-cr compare' if several else ''}"
        )

    if not isinstance(text, str):
        raise wrong(f"it is a {type(text).__name__}, not a string")
    stripped = text.strip()
    name, bracket, rest = stripped.partition("(")
    name = name.rstrip()
    if not _NAME.fullmatch(name):
        raise wrong(f"{name!r} is not a name")
    values: dict[str, str] = {}
    if not bracket:
        return Parameters(kind, text, name, values)
    parts, depth, begin = [], 1, 0
    for place, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 or (depth == 1 and letter == ","):
            parts.append(rest[begin:place])
            begin = place + 1
        if depth == 0:
            break
    if depth:
        raise wrong("a bracket is not closed")
    if rest[begin:].strip():
        raise wrong(f"{rest[begin:].strip()!r} follows the last bracket")
    for part in parts if any(part.strip() for part in parts) else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (_NAME.fullmatch(key) and equals and (value or empty)):
            raise wrong(f"{part.strip()!r} is not parameter=value")
        if key in values:
            raise wrong(f"{key} is given twice")
        values[key] = value
    return Parameters(kind, text, name, values)


def read_number(text: str) -> float:
    """A number in ASCII digits: Python's `float` also takes 1_0, and other scripts'.

    Raises:
      ValueError: it is none.
    """
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text!r} is not a number; write one such as 0.5")
    return float(text)


def table_of(settings: type) -> dict[str, Any]:
    """The parameters of a settings dataclass: its fields' names and types.

    Fields that are settings themselves stand with theirs. No parameters are the name,
    and fields whose metadata says that they are "fixed" by the preset.

    Args:
      settings: the dataclass.
    """
    hints = typing.get_type_hints(settings)
    table: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind):
            table |= table_of(typing.cast(type, kind))
        elif field.name != "name" and "fixed" not in field.metadata:
            table[field.name] = kind
    return table


def read_settings(
    text: str | _Preset,
    presets: Mapping[str, _Preset],
    label: str = "algorithm",
    *,
    kind: str | None = None,
) -> _Preset:
    """Settings from a string: those of a preset, and what is changed in brackets.

    Args:
      text: such as "dcfr(alpha=1.5)"; settings are returned as they are.
      presets: settings, dataclasses, by name; one without settings may be anything.
      label: whose string it is, for errors.
      kind: what the presets are, for errors; None: `label`.

    Returns:
      Settings; their name, where they have one, is the string.

    Raises:
      ValueError: unknown preset or parameter, or a value out of range.
    """
    if not isinstance(text, str):
        if isinstance(text, tuple({type(preset) for preset in presets.values()})):
            return text
        parse(typing.cast(str, text), label)  # which refuses it
    parameters = parse(typing.cast(str, text), label)
    preset = parameters.preset(presets, kind or label)
    if not dataclasses.is_dataclass(preset):
        parameters.convert({})
        return preset
    values = parameters.convert(table_of(type(preset)))
    return _changed(preset, {"name": text, **values})


def _changed(settings: Any, values: Mapping[str, Any]) -> Any:
    """Settings with other values, also of the settings in them."""
    names = [field.name for field in dataclasses.fields(settings)]
    old = {name: getattr(settings, name) for name in names}
    new = {
        name: _changed(value, values)
        if dataclasses.is_dataclass(value)
        else values.get(name, value)
        for name, value in old.items()
    }
    return dataclasses.replace(settings, **new)
