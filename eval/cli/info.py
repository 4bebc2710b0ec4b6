"""The command `info`: print a game's size."""

import collections
import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from spiel_cr.common import atomic, memory
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce, one_line
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom import footprint as phantom_footprint
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.public_tree import matrix_operators
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
from .command import Arguments, Parser

_ROLLOUTS = 20


@dataclasses.dataclass(kw_only=True)
class InfoOptions:
    """Options of the command."""

    game: str
    memory_limit: Limit = None
    cache: atomic.Path | None = None


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    parser.settings(GameOptions, "form", form={"choices": BUILT})


def run(arguments: Arguments) -> dict[str, object]:
    """Print the size of a game."""
    opened = open_game(arguments.game)
    announce(f"estimating how many histories {opened.game} has")
    histories = estimate.estimate_histories(opened.game, rollouts=_ROLLOUTS)
    text = estimate.describe_histories(histories)
    print(f"{one_line(opened.game)} has {text}, by an estimate", file=sys.stderr)
    need, options = Need({SIMULATOR: ""}), arguments.settings(GameOptions)
    game, _ = represent(opened, options, need, progress=True)
    if isinstance(game, PublicTreeGame):
        return _report_public_tree(game)
    if isinstance(game, PhantomGame):
        return _report_phantom(game)
    assert isinstance(game, GameTree)
    sizes: dict[str, object] = {
        "histories": len(game.histories),
        "terminals": game.num_terminals,
        "infosets": [len(infosets) for infosets in game.infosets],
        "sequences": [i.decisions.num_sequences for i in game.infosets],
        "max_depth": game.max_depth,
    }
    print(one_line(game.game))
    _print(sizes)
    each = game.nbytes / len(game.histories)
    print(f"  memory     {game.nbytes / 1e6:,.1f} MB, {each:.0f} bytes per history")
    return {**sizes, "bytes": game.nbytes}


def _print(sizes: dict[str, Any]) -> None:
    for name, size in sizes.items():
        numbers = size if isinstance(size, list) else [size]
        print(f"  {name:<10} " + " / ".join(f"{n:,}" for n in numbers))


def _report_phantom(game: PhantomGame) -> dict[str, object]:
    """Print and report the size of a game in phantom form."""
    sequences = [side.decisions.num_sequences for side in game.sides]
    sizes: dict[str, Any] = {
        "worlds": len(game.worlds),
        "ends": len(game.utility),
        "terminals": game.num_terminals,
        "infosets": [len(side.decisions) for side in game.sides],
        "sequences": sequences,
        "pairs": list(game.pairs),
    }
    print(f"{one_line(game.game)}, in phantom form")
    _print(sizes)
    counts = sum(game.pairs), sum(sequences)
    peaks = _peaks(lambda dtype: phantom_footprint.peak_bytes(*counts, dtype.itemsize))
    return {"form": "phantom", **sizes, "peak_bytes": peaks}


def _peaks(peak_bytes: Callable[[np.dtype], float]) -> dict[str, float]:
    """Print and return the memory that solving needs, by type of arithmetic."""
    peaks = {name: peak_bytes(np.dtype(name)) for name in ("float64", "float32")}
    texts = (f"{memory.describe_bytes(p)} in {n}" for n, p in peaks.items())
    print("  solving    about " + ", ".join(texts))
    return peaks


def _report_public_tree(game: PublicTreeGame) -> dict[str, object]:
    """Print and report the size of a game in public-tree form."""
    players = game.betting.player
    sizes = [footprint.size_of(game, player) for player in range(2)]
    shown: dict[str, Any] = {
        "public": len(game.betting),
        "decisions": [int((players == player).sum()) for player in range(2)],
        "leaves": int((players == TERMINAL).sum()),
        "infosets": [size.infosets for size in sizes],
        "sequences": [size.sequences for size in sizes],
    }
    print(f"{one_line(game.game)}, in public-tree form")
    _print(shown)
    by_round = [game.num_private_states(player) for player in range(2)]
    for number, pair in enumerate(zip(*by_round, strict=True)):
        counts = " / ".join(f"{count:,}" for count in pair)
        print(f"  {f'round {number}':<10} {counts} private states")
    rows = [_payoff_matrix(matrix) for matrix in game.payoff_matrices]
    for text, count in collections.Counter(map(_text_of, rows)).items():
        print(f"  {counted(count, 'payoff matrix', 'payoff matrices')}: {text}")
    size = footprint.game_bytes(game)
    print(f"  memory     {size / 1e6:,.1f} MB, the game without a solver's arrays")
    peaks = _peaks(lambda dtype: footprint.peak_bytes(game, dtype))
    shown["public_nodes"] = shown.pop("public")
    return {
        "form": "public-tree",
        **shown,
        "private_states": by_round,
        "kernels": rows,
        "bytes": size,
        "peak_bytes": peaks,
    }


def _text_of(row: dict[str, Any]) -> str:
    """Return a payoff matrix in words; several may be equal."""
    height, width = row["shape"]
    each = f"{row['bytes'] / 1e6:,.2f} MB"
    return f"round {row['round']}, {height:,} x {width:,}, {row['form']}, {each} each"


def _payoff_matrix(matrix: PayoffMatrix) -> dict[str, Any]:
    """Return the size of a payoff matrix as solvers store it for player 0, float64."""
    operator = matrix_operators.make_operator(matrix, 0)
    return {
        "round": matrix.round,
        "shape": list(matrix.shape),
        "form": type(operator).__name__,
        "bytes": operator.nbytes,
    }
