"""All algorithms of comparisons by name, and groups of them for the command line."""

import difflib
import importlib.util

from . import openspiel_deep, openspiel_search, openspiel_tabular, spiel_cr_entries
from .protocol import Entry

# Algorithms that OpenSpiel bundles, by name.
BUNDLED: dict[str, Entry] = {
    entry.name: entry
    for module in (openspiel_tabular, openspiel_search, openspiel_deep)
    for entry in module.ENTRIES
}
GROUPS: dict[str, tuple[str, ...]] = {
    "ours": spiel_cr_entries.DEFAULT,
    "bundled": tuple(BUNDLED),
    "default": (*spiel_cr_entries.DEFAULT, *BUNDLED),
}


def find(name: str) -> Entry:
    """Return the algorithm with a name.

    Args:
      name: Name of a bundled algorithm, or of one of spiel_cr with parameters.

    Raises:
      ValueError: If the algorithm does not exist, or its parameters are invalid.
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
    """Return the algorithms of --algorithms, with groups expanded, without duplicates.

    Args:
      text: Names separated by semicolons.

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


def missing_reason(entry: Entry) -> str | None:
    """Return the reason why an algorithm cannot run here; None: it can."""
    absent = [m for m in entry.modules if importlib.util.find_spec(m) is None]
    if not absent:
        return None
    remedy = f"'spiel_cr[{entry.extra}]'" if entry.extra else " ".join(absent)
    return f"needs {', '.join(absent)}, not installed: pip install {remedy}"


def describe() -> str:
    """Return lines for help texts."""
    return "\n".join(
        f"  {name}: {entry.title.removeprefix('OpenSpiel ')}"
        for name, entry in BUNDLED.items()
    )
