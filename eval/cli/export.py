"""The command `export`: write a game in Gambit's format.

The file has the extension .efg. Gambit's tools and its Python package pygambit read it,
and so does every command here: --game FILE.

examples:
  spiel-cr export --game kuhn_poker --efg kuhn.efg
  spiel-cr solve --game kuhn.efg --algorithm lp
"""

import dataclasses

from spiel_cr.common import atomic
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import one_line
from spiel_cr.gambit import efg_text
from spiel_cr.games.tree.tree_builder import as_tree

from ..common.plurals import counted
from .command import Arguments


@dataclasses.dataclass(kw_only=True)
class ExportOptions:
    """Options of the command.

    Attributes:
      efg (FILE): File to write, in Gambit's format of game trees.
    """

    game: str
    efg: atomic.Path
    memory_limit: Limit = None


def run(arguments: Arguments) -> dict[str, object]:
    """Write a game."""
    tree = as_tree(progress=True, **arguments.options("game", "memory_limit"))
    text, histories = efg_text(tree), len(tree.histories)
    print(f"{one_line(tree.game)}, {counted(histories, 'history', 'histories')}")
    arguments.write_text(arguments.efg, text, "  game       ")
    return {**arguments.options("game", "efg"), "histories": histories}
