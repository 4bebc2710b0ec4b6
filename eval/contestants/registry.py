"""Comparing: all algorithms by name, and the groups that users can ask for."""

import difflib
import importlib.util

from . import spiel_cr_entries
from .baselines import BUNDLED
from .protocol import Entry

GROUPS: dict[str, tuple[str, ...]] = {
    "ours": spiel_cr_entries.DEFAULT,
    "bundled": tuple(BUNDLED),
    "default": (*spiel_cr_entries.DEFAULT, *BUNDLED),
}


def find(name: str) -> Entry:
    """The algorithm of this name.

    Args:
      name: a bundled one, or one of ours with parameters.

    Raises:
      ValueError: there is none, or its parameters are wrong.
    """
    entry = BUNDLED.get(name) or spiel_cr_entries.find(name)
    if entry is None:
        known = {*BUNDLED, *GROUPS, *spiel_cr_entries.DEFAULT}
        close = difflib.get_close_matches(name, sorted(known), n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "see compare --help"
        raise ValueError(f"algorithms: there is no algorithm {name!r}; {hint}")
    return entry


def expand(text: str) -> list[str]:
    """The algorithms of --algorithms, groups opened, each once.

    Args:
      text: names with semicolons between them.

    Raises:
      ValueError: an unknown or empty name.
    """
    names: list[str] = []
    for part in (piece.strip() for piece in text.split(";")):
        if not part:
            raise ValueError(
                f"algorithms={text!r}: a name is missing before or after a semicolon; "
                f"write 'A;B'"
            )
        names += GROUPS.get(part, (part,))
    names = list(dict.fromkeys(names))
    for name in names:
        find(name)
    return names


def why_missing(entry: Entry) -> str | None:
    """Why it cannot run in this environment; None: it can."""
    absent = [module for module in entry.modules if not _installed(module)]
    if not absent:
        return None
    what = f"needs {', '.join(absent)}, not installed"
    if entry.extra:
        return f"{what}: pip install -e '.[{entry.extra}]'"
    return f"{what}: pip install {' '.join(absent)}"


def describe() -> str:
    """Lines for help texts."""
    lines = [f"  {name}: {entry.title[10:]}" for name, entry in BUNDLED.items()]
    return "\n".join(lines)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False
