"""What `spiel-cr --help` prints, read from a file without importing JAX."""

import json
import pathlib
import shutil
from collections.abc import Sequence
from importlib import metadata

# What --help prints, by command, "" without one: `make help-pages` writes it.
HELP_PAGES = pathlib.Path(__file__).with_name("help_pages.json")
# Columns of these pages; in a narrower terminal the parser makes others.
HELP_COLUMNS = 80


def help_page(words: Sequence[str]) -> str | None:
    """What `--help` prints, from a file, or `--version`.

    JAX and OpenSpiel, which the parsers need, take a second to import.

    Args:
      words: of the command line.

    Returns:
      None: it asks for something else, or the parser has to make the page.
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
