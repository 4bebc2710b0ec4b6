"""All algorithms by name, and their groups."""

import difflib
import importlib.util

from ..common.game_instance import MissingError
from . import spiel_cr_entries
from .openspiel_algorithms import BUNDLED
from .protocol import Entry

GROUPS: dict[str, tuple[str, ...]] = {
    "spiel_cr": spiel_cr_entries.DEFAULT,
    "bundled": tuple(BUNDLED),
    "default": (*spiel_cr_entries.DEFAULT, *BUNDLED),
}


def find(name: str) -> Entry:
    """Return the algorithm with a name.

    Args:
      name: Bundled algorithm, or an algorithm of spiel_cr with optional parameters.

    Raises:
      ValueError: If it does not exist, or its parameters are invalid.
    """
    entry = BUNDLED.get(name) or spiel_cr_entries.find(name)
    if entry is None:
        names = {*BUNDLED, *GROUPS, *spiel_cr_entries.DEFAULT}
        close = difflib.get_close_matches(name, sorted(names), n=3)
        hint = (
            f"did you mean {' or '.join(close)}?"
            if close
            else "choose one listed by compare --help"
        )
        raise ValueError(f"algorithms: unknown algorithm {name!r}; {hint}")
    return entry


def expand(text: str) -> list[str]:
    """Return the algorithms of --algorithms, with groups expanded, each once.

    Args:
      text: Names, separated by semicolons.

    Raises:
      ValueError: If a name is unknown or empty.
    """
    names: list[str] = []
    for name in map(str.strip, text.split(";")):
        if not name:
            raise ValueError(
                f"algorithms={text!r}: a name is missing before or after a semicolon; "
                f"write 'A;B'"
            )
        names += GROUPS.get(name, (name,))
    names = list(dict.fromkeys(names))
    for name in names:
        find(name)
    return names


def check_installed(entry: Entry) -> None:
    """Raise MissingError if an algorithm needs modules that are not installed."""
    absent = [m for m in entry.modules if importlib.util.find_spec(m) is None]
    if absent:
        remedy = f"'spiel_cr[{entry.extra}]'" if entry.extra else " ".join(absent)
        raise MissingError(
            f"needs {', '.join(absent)}, not installed: pip install {remedy}"
        )


def describe() -> str:
    """Return lines for help texts."""
    return "\n".join(
        f"  {name}: {entry.title.removeprefix('OpenSpiel ')}"
        for name, entry in BUNDLED.items()
    )
