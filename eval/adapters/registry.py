"""All algorithms by name, and the groups that users can ask for."""

import difflib
import importlib.util

from . import openspiel_deep, openspiel_search, openspiel_tabular, spiel_cr_entries
from .protocol import Entry

# What OpenSpiel bundles, by name.
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
    """Return the algorithm of this name.

    Args:
      name: a bundled one, or one of ours with parameters.

    Raises:
      ValueError: If there is none, or its parameters are wrong.
    """
    entry = BUNDLED.get(name) or spiel_cr_entries.find(name)
    if entry is None:
        names = {*BUNDLED, *GROUPS, *spiel_cr_entries.DEFAULT}
        close = difflib.get_close_matches(name, sorted(names), n=3)
        hint = (
            f"did you mean {' or '.join(close)}?"
            if close
            else "choose one that compare --help lists"
        )
        raise ValueError(f"algorithms: there is no algorithm {name!r}; {hint}")
    return entry


def expand(text: str) -> list[str]:
    """Return the algorithms of --algorithms, groups opened, each once.

    Args:
      text: names with semicolons between them.

    Raises:
      ValueError: an unknown or empty name.
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
    """Why it cannot run in this environment; None: it can."""
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
