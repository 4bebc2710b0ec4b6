"""Options of the command line, generated from dataclasses and their docstrings.

A field gives an option its name, the type of its values, its default and its choices.
Its entry in the `Attributes` section of the class's docstring is the help text; a word
in parentheses after the name is the placeholder of the value. In a help text, names of
fields in backquotes appear as options, and "If None" is written as "By default".
"""

import argparse
import dataclasses
import functools
import inspect
import os
import re
import types
import typing
from typing import Any

from spiel_cr.common import memory
from spiel_cr.common.parameters import read_number, table_of

# References to code, which help texts omit.
_REFERENCE = re.compile(r",? see `[^`]*`| \(`[^`]*`\)|: one of `[^`]*`| \(docs/[^)]*\)")
_ENTRY = re.compile(r"^  (\w+)(?: \((\S+)\))?: (.*(?:\n    .*)*)", re.MULTILINE)


class CommonOptions:
    """Help texts of options that several commands have.

    Attributes:
      game: OpenSpiel game string, or a file (.efg, .nfg, .csv).
      seed (SEED): Seed for all random choices.
      save: Write the policy to this .npz file.
      plot: Draw the curve (png, svg or pdf).
      html (FILE): Write a page.
      csv (FILE): Write a table.
      out (DIR): Folder of the results, from which a run resumes.
      memory_limit: Memory limit, such as 3GB; none: no limit (default 70% of the memory
        available to the process, at least 1 GB).
      cache (DIR): Folder in which game trees are kept for later runs.
      workers: Number of worker processes; 0: none (default 0).
      ray (ADDRESS): Run the tasks on the Ray cluster at this address, by default on a
        new one on this machine, with --workers workers or one per core; needs the extra
        ray.
    """


def flag_of(field: str) -> str:
    """Return the option that sets a field: "eval_every" is set by --eval-every."""
    return "--" + field.replace("_", "-")


def text_value(text: str) -> str:
    """Return the value of an option that can be printed and passed to OpenSpiel."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not UTF-8; use text in UTF-8"
        ) from None
    if "\0" in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} contains a NUL character; remove it"
        )
    return text


def path_value(text: str) -> str:
    """Return the path of a file or folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a path; use the path of a file or folder"
        )
    return text_value(text)


def integer_value(text: str) -> int:
    """Return a whole number, whose range is checked where it is used."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,4000}\s*", text):
        raise argparse.ArgumentTypeError(
            f"invalid whole number {text!r}; use a value such as 10"
        )
    return int(text)


def number_value(text: str) -> float:
    """Return a number, whose range is checked where it is used."""
    try:
        return read_number(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"invalid number {text!r}; use a value such as 0.5"
        ) from None


def size_value(text: str) -> str:
    """Return a size in bytes, as it was written."""
    try:
        memory.parse_size(text, "--memory-limit")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


@functools.cache
def help_texts(settings: type[Any]) -> dict[str, tuple[str, str]]:
    """Return the placeholder and the help text of each field of a class, by name."""
    fields = table_of(settings)

    def plain(match: re.Match[str]) -> str:
        name = match[1]
        return flag_of(name) if name in fields else name

    texts = {}
    for base in reversed((*settings.__mro__, CommonOptions)):
        section = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")[2]
        for name, metavar, entry in _ENTRY.findall(section.partition("\n\n")[0]):
            text = _REFERENCE.sub("", " ".join(entry.split()))
            text = text.replace("If None,", "By default,")
            text = re.sub(r"`+([^`]*)`+", plain, text).replace("%", "%%")
            # A single sentence has no full stop, and begins with a lower-case letter.
            word = text.partition(" ")[0]
            if word[1:] == word[1:].lower():
                text = word.lower() + text.removeprefix(word)
            texts[name] = metavar, text if ". " in text else text.removesuffix(".")
    return texts


def field_option(settings: type, name: str) -> tuple[str, dict[str, Any]]:
    """Return the flag of a field's option and its settings for `argparse`.

    Args:
      settings: Dataclass with an `Attributes` section in its docstring.
      name: Name of the field. A bool that is True by default gives a flag `--no-FIELD`.
        The metadata of the field are further settings.
    """
    (field,) = (each for each in dataclasses.fields(settings) if each.name == name)
    metavar, text = help_texts(settings).get(name, ("", ""))
    default, flag = field.default, flag_of(name)
    if isinstance(default, bool):
        options: dict[str, Any] = {"action": f"store_{str(not default).lower()}"}
        text = text.removeprefix("whether to ")
        if default:
            text, flag = f"do not {text}", flag_of(f"no_{name}")
    else:
        options = _value_options(table_of(settings)[name])
        if default is dataclasses.MISSING:
            options["required"] = True
        elif default is not None:
            options["default"] = default
    options |= {"dest": name, "help": text, **field.metadata}
    if metavar:
        options["metavar"] = metavar
    return flag, options


def _value_options(kind: Any) -> dict[str, Any]:
    """Return settings for `argparse` that follow from the type of a field."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    parts = typing.get_args(kind) if is_union else (kind,)
    origins = {typing.get_origin(part): typing.get_args(part) for part in parts}
    if bool in parts:
        return {"action": argparse.BooleanOptionalAction}
    if os.PathLike in origins:
        return {"type": path_value, "metavar": "PATH"}
    if {int, float, str} <= {*parts}:
        return {"type": size_value, "metavar": "SIZE"}
    if int in parts:
        return {"type": integer_value, "metavar": "N"}
    if float in parts:
        return {"type": number_value}
    options: dict[str, Any] = {"type": text_value}
    if typing.Literal in origins:
        options["choices"] = origins[typing.Literal]
    if list in origins:
        options["action"] = "append"
    return options
