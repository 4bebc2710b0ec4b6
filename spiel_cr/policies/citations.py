"""BibTeX entries of the papers behind algorithms.

The file `citations.bib` lists, for each paper, the algorithms that use it; "*" means
all of them, and "resolve" the function of this name.
"""

import pathlib
import re

_FILE = pathlib.Path(__file__).with_suffix(".bib")
_ALGORITHMS = re.compile(r",\n  algorithms = \{(.*)\}")
# Users' own rules and settings are variants of this algorithm.
_USUAL = "cfr"


def bibtex(algorithm: str, *, resolved: bool = False) -> str:
    """Return the entries of an algorithm, and those of the software.

    Args:
      algorithm: Algorithm string; a name that is not one of spiel_cr's is treated as a
        variant of CFR.
      resolved: Whether the algorithm re-solved a game.
    """
    entries = {
        _ALGORITHMS.sub("", entry): set(_ALGORITHMS.findall(entry)[0].split())
        for entry in _FILE.read_text("utf-8").strip().split("\n\n")
    }
    name = algorithm.partition("(")[0]
    if not any(name in algorithms for algorithms in entries.values()):
        name = _USUAL
    names = {"*", name, *(["resolve"] if resolved else [])}
    return "\n\n".join(
        entry for entry, algorithms in entries.items() if algorithms & names
    )
