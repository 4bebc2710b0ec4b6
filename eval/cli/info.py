"""The command `info`: how large a game is."""

import collections
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from spiel_cr.common import memory
from spiel_cr.common.messages import announce, one_line
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom import footprint as phantom_footprint
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.public_tree import kernels
from spiel_cr.games.public_tree import public_tree_footprint as footprint
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import PayoffMatrix
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.representation import (
    BUILT,
    SIMULATOR,
    GameOptions,
    Need,
    represent,
)

from ..common.plurals import counted
from .command import Arguments, Commands, add_command


def add(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(commands, "info", _info, "print a game's size")
    for flag in ("--game", "--memory-limit", "--cache"):
        parser.option(flag)
    parser.option(
        "--form",
        "whose size: compiled, history by history; signals, by public nodes and what "
        "cards tell; worlds, by what has succeeded on a hidden board; auto: that which "
        "solve would take",
        "auto",
        choices=BUILT,
    )


def _info(arguments: Arguments) -> dict[str, object]:
    options = GameOptions(arguments.form, **arguments.given("memory_limit", "cache"))
    opened = open_game(arguments.game)
    announce(f"estimating how many histories {opened.game} has")
    histories = estimate.estimate_histories(opened.game, rollouts=20)
    said = estimate.describe_histories(histories)
    print(f"{one_line(opened.game)} has {said}, by an estimate", file=sys.stderr)
    game, _ = represent(opened, options, Need({SIMULATOR: ""}), progress=True)
    if isinstance(game, PublicTreeGame):
        return _signals(game)
    if isinstance(game, PhantomGame):
        return _worlds(game)
    tree = game
    assert isinstance(tree, GameTree)
    sizes: dict[str, object] = {
        "histories": len(tree.histories),
        "terminals": tree.num_terminals,
        "infosets": [len(infosets) for infosets in tree.infosets],
        "sequences": [i.decisions.num_sequences for i in tree.infosets],
        "max_depth": tree.max_depth,
    }
    print(one_line(tree.game))
    _print(sizes)
    each = tree.nbytes / len(tree.histories)
    print(f"  memory     {tree.nbytes / 1e6:,.1f} MB, {each:.0f} bytes per history")
    return {**sizes, "bytes": tree.nbytes}


def _print(sizes: dict[str, Any]) -> None:
    for name, size in sizes.items():
        both = size if isinstance(size, list) else [size]
        print(f"  {name:<10} " + " / ".join(f"{n:,}" for n in both))


def _worlds(worlds: PhantomGame) -> dict[str, object]:
    """Prints the size of a game of hidden boards."""
    sequences = [side.decisions.num_sequences for side in worlds.sides]
    shown: dict[str, Any] = {
        "worlds": len(worlds.worlds),
        "ends": len(worlds.utility),
        "terminals": worlds.num_terminals,
        "infosets": [len(side.decisions) for side in worlds.sides],
        "sequences": sequences,
        "pairs": list(worlds.pairs),
    }
    print(f"{one_line(worlds.game)}, by worlds")
    _print(shown)
    counts = sum(worlds.pairs), sum(sequences)
    peaks = _peaks(lambda dtype: phantom_footprint.peak_bytes(*counts, dtype.itemsize))
    return {"form": "phantom", **shown, "peak_bytes": peaks}


def _peaks(taken: Callable[[np.dtype], float]) -> dict[str, float]:
    """What solving takes in each type of arithmetic, printed and reported."""
    peaks = {name: taken(np.dtype(name)) for name in ("float64", "float32")}
    said = (f"{memory.describe_bytes(p)} in {n}" for n, p in peaks.items())
    print("  solving    about " + ", ".join(said))
    return peaks


def _signals(signals: PublicTreeGame) -> dict[str, object]:
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
    print(f"{one_line(signals.game)}, by signals")
    _print(shown)
    by_round = [signals.num_private_states(player) for player in range(2)]
    for number, pair in enumerate(zip(*by_round, strict=True)):
        both = " / ".join(f"{count:,}" for count in pair)
        print(f"  {f'round {number}':<10} {both} signals")
    listed = [_kernel(kernel) for kernel in signals.kernels]
    alike = collections.Counter(map(_described, listed))
    for described, count in alike.items():
        print(f"  {counted(count, 'kernel'):<10} {described}")
    size = footprint.game_bytes(signals)
    print(f"  memory     {size / 1e6:,.1f} MB, the game without a solver's arrays")
    peaks = _peaks(lambda dtype: footprint.peak_bytes(signals, dtype))
    shown["public_nodes"] = shown.pop("public")
    return {
        "form": "public-tree",
        **shown,
        "private_states": by_round,
        "kernels": listed,
        "bytes": size,
        "peak_bytes": peaks,
    }


def _described(row: dict[str, Any]) -> str:
    """A kernel of `_kernel` in words; those of several may be equal."""
    height, width = row["shape"]
    each = f"{row['bytes'] / 1e6:,.2f} MB"
    return f"round {row['round']}, {height:,} x {width:,}, {row['form']}, {each} each"


def _kernel(kernel: PayoffMatrix) -> dict[str, Any]:
    """A kernel as solvers have it, for player 0 (float64)."""
    laid_out = kernels.lay_out(kernel, 0)
    return {
        "round": kernel.round,
        "shape": list(kernel.shape),
        "form": type(laid_out).__name__,
        "bytes": laid_out.nbytes,
    }
