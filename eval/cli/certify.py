"""The command `certify`: compute the exact NashConv of a policy file of any origin.

The path is that of a file of --save, or of a CSV file with the columns
information_state, action and probability, which any program can write. The output
depends only on the file, the game and the versions, so that others can repeat it and
compare the texts.

examples:
  spiel-cr certify kuhn.npz
  spiel-cr certify leduc.csv --game leduc_poker
"""

import dataclasses
import hashlib
import pathlib

import pyspiel

import spiel_cr
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import one_line
from spiel_cr.evaluation.opponent import open_opponent
from spiel_cr.solvers.policy_files import read_policy_file

from .command import Arguments, Parser


@dataclasses.dataclass(kw_only=True)
class CertifyOptions:
    """Options of the command.

    Attributes:
      game: OpenSpiel game string (default: the one that the file names).
    """

    game: str | None = None
    memory_limit: Limit = None


def add_options(parser: Parser) -> None:
    """Add the path of the file."""
    parser.add_argument("path", help="policy file, .npz or .csv")


def run(arguments: Arguments) -> dict[str, object]:
    """Certify a policy."""
    file = read_policy_file(arguments.path)
    game = arguments.game
    if game is None:
        game = file.metadata.get("game")
    if game is None:
        raise ValueError(
            f"{arguments.path}: the file does not name its game; add --game"
        )
    opponent = open_opponent(arguments.path, game, memory_limit=arguments.memory_limit)
    nash_conv = opponent.nash_conv()
    form = "phantom" if opponent.form is None else opponent.form.kind
    report: dict[str, object] = {
        "game": str(opponent.game),
        "policy": str(file.metadata["kind"]),
        "sha256": hashlib.sha256(pathlib.Path(arguments.path).read_bytes()).hexdigest(),
        "nash_conv": nash_conv,
        "method": f"exact best responses of both players, {form} form",
        "spiel_cr": spiel_cr.__version__,
        "open_spiel": pyspiel.__version__,
    }
    for name, value in report.items():
        print(f"{name:<10} {one_line(value)}")
    return report
