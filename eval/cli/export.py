"""The command `export`: write a game in Gambit's format.

The file has the extension .efg. Gambit's tools and its Python package pygambit read it,
and so does every command here: --game FILE.

examples:
  spiel-cr export --game kuhn_poker --efg kuhn.efg
  spiel-cr solve --game kuhn.efg --algorithm lp
"""

from spiel_cr.common import atomic
from spiel_cr.common.messages import one_line
from spiel_cr.gambit import efg_text
from spiel_cr.games.tree.compiler import as_tree

from ..common.plurals import counted
from .command import Arguments, Parser, path_value


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    parser.option("--game")
    text = "file to write, in Gambit's format of game trees"
    parser.option("--efg", text, metavar="FILE", type=path_value, required=True)
    parser.option("--memory-limit")


def run(arguments: Arguments) -> dict[str, object]:
    """Write a game."""
    limit = arguments.memory_limit
    tree = as_tree(arguments.game, memory_limit=limit, progress=True)
    text = efg_text(tree)
    histories = len(tree.histories)
    print(f"{one_line(tree.game)}, {counted(histories, 'history', 'histories')}")
    with arguments.writing("  game       ", arguments.efg):
        atomic.write_text(arguments.efg, text)
    return {**arguments.options("game", "efg"), "histories": histories}
