"""The command `info`: how large a game is."""

import argparse
import collections
import sys
from typing import Any

import numpy as np

from spiel_cr.cfr.config import parse_any
from spiel_cr.common import memory
from spiel_cr.common.announcing import announce
from spiel_cr.compilation.compiler import as_compiled
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import TERMINAL
from spiel_cr.gameshrink.merging import merged
from spiel_cr.signals import footprint, kernels
from spiel_cr.signals.finding import FORMS, find_signals, naming_signals
from spiel_cr.signals.game import Kernel, SignalGame
from spiel_cr.solving import forms

from ..common.plurals import counted
from .command import Commands, add_command, given, option


def add(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(commands, "info", _info, "print a game's size")
    for flag in ("--game", "--memory-limit", "--cache"):
        option(parser, flag)
    option(
        parser,
        "--form",
        "whose size: compiled, history by history; signals, by public nodes and what "
        "cards tell; auto: that which solve would take",
        "auto",
        choices=FORMS,
    )


def _info(arguments: argparse.Namespace) -> dict[str, object]:
    game = load_game(arguments.game)
    limits = given(arguments, "memory_limit", "cache")
    chosen = forms.choose(
        game, arguments.form, parse_any("cfr+"), memory_limit=arguments.memory_limit
    )
    announce(f"estimating how many histories {game} has")
    estimate = memory.describe_histories(memory.estimate_histories(game, rollouts=20))
    print(f"{game} has {estimate}, by an estimate", file=sys.stderr)
    if chosen.form == "signals":
        return _signals(merged(find_signals(game, progress=True, **limits)))
    with naming_signals(game):
        tree = as_compiled(game, progress=True, **limits)
    sizes: dict[str, object] = {
        "histories": len(tree.histories),
        "terminals": tree.num_terminals,
        "infosets": [len(infosets) for infosets in tree.infosets],
        "sequences": [i.decisions.num_sequences for i in tree.infosets],
        "max_depth": tree.max_depth,
    }
    print(tree.game)
    _print(sizes)
    each = tree.nbytes / len(tree.histories)
    print(f"  memory     {tree.nbytes / 1e6:,.1f} MB, {each:.0f} bytes per history")
    return {**sizes, "bytes": tree.nbytes}


def _print(sizes: dict[str, Any]) -> None:
    for name, size in sizes.items():
        both = size if isinstance(size, list) else [size]
        print(f"  {name:<10} " + " / ".join(f"{n:,}" for n in both))


def _signals(signals: SignalGame) -> dict[str, object]:
    """Prints the size of a signal game; nothing is laid out but its kernels."""
    players = signals.betting.player
    sizes = [footprint.size_of(signals, player) for player in range(2)]
    shown: dict[str, Any] = {
        "public": len(signals.betting),
        "decisions": [int((players == player).sum()) for player in range(2)],
        "leaves": int((players == TERMINAL).sum()),
        "infosets": [size.infosets for size in sizes],
        "sequences": [size.sequences for size in sizes],
    }
    print(f"{signals.game}, by signals")
    _print(shown)
    by_round = [signals.num_signals(player) for player in range(2)]
    for number, pair in enumerate(zip(*by_round, strict=True)):
        both = " / ".join(f"{count:,}" for count in pair)
        print(f"  {f'round {number}':<10} {both} signals")
    listed = [_kernel(kernel) for kernel in signals.kernels]
    alike = collections.Counter(map(_described, listed))
    for described, count in alike.items():
        print(f"  {counted(count, 'kernel'):<10} {described}")
    size = footprint.game_bytes(signals)
    peaks = {
        name: footprint.peak_bytes(signals, np.dtype(name))
        for name in ("float64", "float32")
    }
    print(f"  memory     {size / 1e6:,.1f} MB, the game without a solver's arrays")
    print(
        "  solving    about "
        + ", ".join(f"{memory.describe_bytes(p)} in {n}" for n, p in peaks.items())
    )
    shown["public_nodes"] = shown.pop("public")
    return {
        "form": "signals",
        **shown,
        "signals": by_round,
        "kernels": listed,
        "bytes": size,
        "peak_bytes": peaks,
    }


def _described(row: dict[str, Any]) -> str:
    """A kernel of `_kernel` in words; those of several may be equal."""
    height, width = row["shape"]
    each = f"{row['bytes'] / 1e6:,.2f} MB"
    return f"round {row['round']}, {height:,} x {width:,}, {row['form']}, {each} each"


def _kernel(kernel: Kernel) -> dict[str, Any]:
    """A kernel as solvers have it, for player 0 (float64)."""
    laid_out = kernels.lay_out(kernel, 0)
    return {
        "round": kernel.round,
        "shape": list(kernel.shape),
        "form": type(laid_out).__name__,
        "bytes": laid_out.nbytes,
    }
