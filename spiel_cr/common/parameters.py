"""One syntax for everything that has settings: `name(parameter=value,...)`.

It is OpenSpiel's syntax of game strings, but values remain text until the table of the
named object determines their types. A value may itself be such a string. In double
quotes, a value may contain commas and brackets.
"""

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from spiel_cr.common.messages import one_line

# A colon separates a user's module from a name in it.
_NAME = re.compile(r"[\w+.:-]+")
_Preset = TypeVar("_Preset")
_Named = TypeVar("_Named", bound=Any)


class Parameters(NamedTuple):
    """The parsed parts of a string.

    Attributes:
      kind: Noun for what the string describes, such as "bot" or "algorithm", for error
        messages.
      text: The complete string.
      name: Name in front of the parentheses.
      values: Text of each value by the name of its parameter, in the order of the
        string.
    """

    kind: str
    text: str
    name: str
    values: dict[str, str]

    def without(self, *names: str) -> str:
        """Return the string without some of its parameters."""
        rest = ",".join(f"{k}={v}" for k, v in self.values.items() if k not in names)
        return f"{self.name}({rest})" if rest else self.name

    def preset(self, presets: Mapping[str, _Preset], kind: str) -> _Preset:
        """Return the preset that has the name.

        Args:
          presets: Presets by name.
          kind: Noun for the presets, for the error.

        Raises:
          ValueError: If no preset has this name.
        """
        if self.name not in presets:
            close = difflib.get_close_matches(self.name.lower(), presets, n=1)
            guess = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(
                f"{self.kind}={self.text!r}: there is no {kind} {self.name!r}; choose "
                f"one of {', '.join(presets)}{guess}"
            )
        return presets[self.name]

    def convert(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Convert values to the types of a table.

        Args:
          table: Type by name of the parameter: str, int, float, bool, or one of them
            `| None`. Values of other types remain text.

        Raises:
          ValueError: If a parameter is not in the table, or a value has another type.
        """
        for key in self.values:
            if key not in table:
                raise ValueError(
                    f"{self.kind}={self.text!r}: unknown parameter {key!r}; "
                    f"{self.name} accepts {', '.join(table) or 'none'}; {remedy(table)}"
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
        """Return the error for a value that does not meet a requirement."""
        value = self.values[key]
        return ValueError(
            f"{self.kind}={self.text!r}: {key}={one_line(value)} must be {must_be}"
        )


def remedy(table: Mapping[str, Any]) -> str:
    """Return the advice for a parameter that is not in a table."""
    return "choose one of them, or leave it out" if table else "leave it out"


def parse(text: str, kind: str, *, empty: bool = False) -> Parameters:
    """Parse a name and its parameters.

    Args:
      text: String such as "resolving(solver=dcfr(alpha=1.5),iterations=10)".
      kind: Noun for what the string describes, for error messages.
      empty: Whether a value may be empty, as in "name(parameter=)".

    Raises:
      ValueError: If the string has another form, text follows the last bracket, or
        a parameter has no value or occurs twice.
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
    parts, depth, begin, is_quoted = [], 1, 0, False
    for place, letter in enumerate(rest):
        is_quoted ^= letter == '"'
        if is_quoted:
            continue
        depth += (letter == "(") - (letter == ")")
        if depth == 0 or (depth == 1 and letter == ","):
            parts.append(rest[begin:place])
            begin = place + 1
        if depth == 0:
            break
    if depth:
        mark = "quotation mark" if is_quoted else "bracket"
        raise wrong(f"a {mark} is not closed")
    if rest[begin:].strip():
        raise wrong(f"{rest[begin:].strip()!r} follows the last bracket")
    for part in parts if any(part.strip() for part in parts) else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (_NAME.fullmatch(key) and equals and (value or empty)):
            raise wrong(f"{part.strip()!r} is not parameter=value")
        if key in values:
            raise wrong(f"{key} is given twice")
        is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
        values[key] = value[1:-1] if is_quoted else value
    return Parameters(kind, text, name, values)


def read_number(text: str) -> float:
    """Return the number that a text in ASCII digits contains.

    Python's `float` would also accept 1_0 and the digits of other scripts.

    Raises:
      ValueError: If the text is not a number.
    """
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text!r} is not a number; use a value such as 0.5")
    return float(text)


def table_of(settings: type) -> dict[str, Any]:
    """Return the parameters of a settings dataclass: the names and types of its fields.

    The fields of nested settings are included. The field `name` and fields whose
    metadata mark them as "fixed" by the preset are excluded.

    Args:
      settings: The dataclass.
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
    """Return the settings that a string describes: a preset with changed parameters.

    Args:
      text: String such as "dcfr(alpha=1.5)". Settings are returned unchanged.
      presets: Presets by name. A preset is a settings dataclass, or any object if it
        has no settings.
      label: Noun for what the string describes, for error messages.
      kind: Noun for the presets, for errors. If None, `label`.

    Returns:
      Settings. If they have a field `name`, it is set to the string.

    Raises:
      ValueError: If a preset or parameter is unknown, or a value is out of range.
    """
    if not isinstance(text, str):
        if isinstance(text, tuple({type(preset) for preset in presets.values()})):
            return text
        parse(typing.cast(str, text), label)  # which raises
    parameters = parse(typing.cast(str, text), label)
    preset = parameters.preset(presets, kind or label)
    if not dataclasses.is_dataclass(preset):
        parameters.convert({})
        return preset
    values = parameters.convert(table_of(type(preset)))
    return _changed(preset, {"name": text, **values})


def by_name(*presets: _Named) -> dict[str, _Named]:
    """Return settings by their attribute `name`, as `read_settings` expects them."""
    return {preset.name: preset for preset in presets}


def _changed(settings: Any, values: Mapping[str, Any]) -> Any:
    """Return settings with changed values, including those of nested settings."""
    names = [field.name for field in dataclasses.fields(settings)]
    old = {name: getattr(settings, name) for name in names}
    new = {
        name: _changed(value, values)
        if dataclasses.is_dataclass(value)
        else values.get(name, value)
        for name, value in old.items()
    }
    return dataclasses.replace(settings, **new)
