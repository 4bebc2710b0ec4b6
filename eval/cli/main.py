"""The command line `spiel-cr`: its parser, and what happens around every command.

People read the lines; with --json the last line of stdout is one JSON object for
programs. Progress goes to stderr.

examples:
  spiel-cr info --game leduc_poker
  spiel-cr solve --game leduc_poker --algorithm cfr+ --iterations 1000
  spiel-cr resolve --game 'liars_dice(numdice=1,dice_sides=4)' --iterations 500 --json

Games are OpenSpiel strings. Besides OpenSpiel's own there are python_ii_goofspiel,
python_princess_and_monster, python_latent_tic_tac_toe, python_leduc_poker,
python_rock_paper_scissors and python_scotland_yard.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from absl import app, flags, logging

import game_defs  # noqa: F401  registers the project's games
import spiel_cr

from . import (
    best_response,
    compare,
    evaluate,
    info,
    play,
    resolve,
    show,
    solve,
    study,
    subgame,
    tournament,
)
from .command import Parser, check_arguments

_COMMANDS = (
    info,
    solve,
    resolve,
    evaluate,
    subgame,
    best_response,
    tournament,
    play,
    compare,
    show,
    study,
)


def main() -> None:
    """Entry point of the command `spiel-cr`."""
    app.run(_run, flags_parser=_parse)


def make_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(
        prog="spiel-cr",
        description="Solve, resolve and judge two-player zero-sum OpenSpiel games.",
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"spiel-cr {spiel_cr.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; argparse exits by itself on --help and on mistakes."""
    arguments = make_parser().parse_args(argv[1:])
    # absl's own flags are no options of ours: --flagfile would end in a traceback.
    flags.FLAGS.mark_as_parsed()
    return arguments


def _run(arguments: argparse.Namespace) -> None:
    # app.run turns on JAX's chatter about accelerators that are not there.
    logging.set_verbosity(logging.WARNING)
    try:
        # What cannot be written must be said before the work, not after it.
        check_arguments(arguments)
        report = arguments.run(arguments)
    except KeyboardInterrupt:
        if arguments.resumes:
            kept = f"what is finished is kept in {arguments.out}"
            print(f"{kept}; the same command does the rest", file=sys.stderr)
        print("spiel-cr: interrupted", file=sys.stderr)
        sys.exit(130)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        print(f"spiel-cr: error: {error}", file=sys.stderr)
        sys.exit(2)
    # For work that was done to the end, and in vain.
    code = report.pop("exit_code", 0)
    if arguments.json:
        print(json.dumps(report))
    if code:
        sys.exit(code)
