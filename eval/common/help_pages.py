"""The pages of `spiel-cr --help`, read from a file without importing JAX."""

import json
import pathlib
import shutil
from collections.abc import Sequence
from importlib import metadata

# Pages by command, "" without a command; `make help-pages` writes them.
HELP_PAGES = pathlib.Path(__file__).with_name("help_pages.json")
# Width of these pages; in a narrower terminal the parser generates the page.
HELP_COLUMNS = 80


def help_page(words: Sequence[str]) -> str | None:
    """Return what `--help` or `--version` prints, without the parsers.

    The parsers import JAX and OpenSpiel, which takes seconds.

    Args:
      words: Words of the command line.

    Returns:
      The text, or None if the command line contains other words, or if the parser has
      to generate the page.
    """
    if list(words) == ["--version"]:
        return f"spiel-cr {metadata.version('spiel_cr')}\n"
    if not words or words[-1] not in ("-h", "--help") or len(words) > 2:
        return None
    if shutil.get_terminal_size().columns < HELP_COLUMNS:
        return None
    try:
        pages = json.loads(HELP_PAGES.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return pages.get(words[0] if len(words) == 2 else "")
