"""Options generated from the fields of settings and from their docstrings.

A field gives an option its name, the type of its values, its default and its choices.
The entry of the field in the `Attributes` section of the class's docstring is the help
text. In a help text, names of fields in backquotes appear as options, and "If None" is
written as "By default".
"""

import dataclasses
import functools
import inspect
import re
import types
import typing
from typing import Any

from spiel_cr.common.parameters import table_of

# References to code, which are left out of help texts.
_REFERENCE = re.compile(r",? see `[^`]*`| \(`[^`]*`\)|: one of `[^`]*`| \(docs/[^)]*\)")
_ENTRY = re.compile(r"^  (\w+): (.*(?:\n    .*)*)", re.MULTILINE)


def flag_of(field: str) -> str:
    """Return the option that sets a field: "eval_every" is set by --eval-every."""
    return "--" + field.replace("_", "-")


@functools.cache
def help_texts(settings: type[Any]) -> dict[str, str]:
    """Return the help texts of the fields of a settings class, by name."""
    section = inspect.cleandoc(settings.__doc__ or "").partition("\nAttributes:\n")[2]
    entries = _ENTRY.findall(section.partition("\n\n")[0])
    fields = table_of(settings)

    def plain(match: re.Match[str]) -> str:
        name = match[1]
        return flag_of(name) if name in fields else name

    texts = {}
    for name, entry in entries:
        text = _REFERENCE.sub("", " ".join(entry.split()))
        text = text.replace("If None,", "By default,")
        text = re.sub(r"`+([^`]*)`+", plain, text).replace("%", "%%")
        # One sentence has no full stop, and begins with a small letter.
        word, space, rest = text.partition(" ")
        if word[1:] == word[1:].lower():
            word = word.lower()
        text = word + space + rest
        texts[name] = text if ". " in text else text.removesuffix(".")
    return texts


def field_option(settings: type, field: str) -> tuple[str, dict[str, Any]]:
    """Return the flag of a field's option and its settings for `argparse`.

    Args:
      settings: Dataclass with an `Attributes` section in its docstring.
      field: Name of the field. A bool that is True by default gives a flag
        `--no-FIELD`.
    """
    (default,) = (
        each.default for each in dataclasses.fields(settings) if each.name == field
    )
    options: dict[str, Any] = {"help": help_texts(settings).get(field, "")}
    if isinstance(default, bool):
        options |= {"dest": field, "action": f"store_{str(not default).lower()}"}
        text = options["help"].removeprefix("whether to ")
        options["help"] = f"do not {text}" if default else text
        return flag_of(f"no_{field}" if default else field), options
    if default is dataclasses.MISSING:
        options["required"] = True
    elif default is not None:
        options["default"] = default
    kind = table_of(settings)[field]
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    parts = typing.get_args(kind) if is_union else (kind,)
    plain = [part for part in parts if part in (int, float, str)]
    for part in parts:
        if typing.get_origin(part) is typing.Literal:
            options["choices"] = typing.get_args(part)
    if plain in ([int], [float]):
        options["type"] = plain[0]
    return flag_of(field), options
