"""What all commands of `spiel-cr` have in common."""

import argparse
from collections.abc import Callable

Commands = argparse._SubParsersAction


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], dict[str, object]],
    text: str,
) -> argparse.ArgumentParser:
    """Adds a command; every one can end with a line of JSON.

    Args:
      commands: of the parser.
      name: what the user types.
      run: does the work, prints for people, and returns what --json prints.
      text: one line of help.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + "."
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--json", action="store_true", help="end with one line of JSON on stdout"
    )
    return parser
