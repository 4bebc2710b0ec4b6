"""Commands that play matches: `tournament` and `play`."""

from eval.command import Commands

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Adds the commands of this file."""
