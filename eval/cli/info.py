"""The command `info`: how large a game is."""

import argparse
import sys

from spiel_cr.common import memory
from spiel_cr.compilation.compiler import as_compiled
from spiel_cr.compilation.loading import load_game

from .command import Commands, add_command, given, option


def add(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(commands, "info", _info, "print a game's size")
    for flag in ("--game", "--memory-limit", "--cache"):
        option(parser, flag)


def _info(arguments: argparse.Namespace) -> dict[str, object]:
    game = load_game(arguments.game)
    estimate = memory.describe_histories(memory.estimate_histories(game, rollouts=20))
    print(f"{game} has {estimate}, by an estimate", file=sys.stderr)
    tree = as_compiled(game, progress=True, **given(arguments, "memory_limit", "cache"))
    sizes: dict[str, object] = {
        "histories": len(tree.histories),
        "terminals": tree.num_terminals,
        "infosets": [len(infosets) for infosets in tree.infosets],
        "sequences": [i.decisions.num_sequences for i in tree.infosets],
        "max_depth": tree.max_depth,
    }
    print(tree.game)
    for name, size in sizes.items():
        both = size if isinstance(size, list) else [size]
        print(f"  {name:<10} " + " / ".join(f"{n:,}" for n in both))
    each = tree.nbytes / len(tree.histories)
    print(f"  memory     {tree.nbytes / 1e6:,.1f} MB, {each:.0f} bytes per history")
    return {**sizes, "bytes": tree.nbytes}
