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
from spiel_cr.solvers import representation

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
    parser.settings(
        representation.GameOptions, "form", form={"choices": representation.BUILT}
    )


def run(arguments: Arguments) -> dict[str, object]:
    """Print the size of a game."""
    opened = open_game(arguments.game)
    announce(f"estimating the number of histories of {opened.game}")
    histories = estimate.estimate_histories(opened.game, rollouts=_ROLLOUTS)
    text = estimate.describe_histories(histories)
    print(f"{one_line(opened.game)} has {text} (an estimate)", file=sys.stderr)
    need = representation.FormRequirements({representation.SIMULATOR: ""})
    options = arguments.settings(representation.GameOptions)
    game, reason = representation.represent(opened, options, need, progress=True)
    sizes_of, words = _SIZES[reason.form]
    sizes, lines, more = sizes_of(game)
    print(f"{one_line(opened.game)}{words}")
    width = max(12, *map(len, sizes))
    for name, size in sizes.items():
        numbers = size if isinstance(size, list) else [size]
        print(f"  {name:<{width}} " + " / ".join(f"{n:,}" for n in numbers))
    for line in lines:
        print(f"  {line}")
    if "peak_bytes" in more:
        peaks = more["peak_bytes"].items()
        texts = (f"{memory.describe_bytes(size)} in {name}" for name, size in peaks)
        print("  solving      about " + ", ".join(texts))
        more["form"] = reason.form
    return {**sizes, **more}


# Sizes by name, additional lines, and additional values of the report.
_Sizes = tuple[dict[str, Any], list[str], dict[str, Any]]


def _of_tree(game: GameTree) -> _Sizes:
    sizes = {
        "histories": len(game.histories),
        "terminals": game.num_terminals,
        "infosets": [len(infosets) for infosets in game.infosets],
        "sequences": [i.decisions.num_sequences for i in game.infosets],
        "max_depth": game.max_depth,
    }
    each = game.nbytes / len(game.histories)
    line = f"memory       {game.nbytes / 1e6:,.1f} MB, {each:.0f} bytes per history"
    return sizes, [line], {"bytes": game.nbytes}


def _of_phantom_game(game: PhantomGame) -> _Sizes:
    sequences = [side.decisions.num_sequences for side in game.sides]
    sizes = {
        "worlds": len(game.worlds),
        "terminal_worlds": len(game.utility),
        "terminals": game.num_terminals,
        "infosets": [len(side.decisions) for side in game.sides],
        "sequences": sequences,
        "pairs": list(game.pairs),
    }
    counts = sum(game.pairs), sum(sequences)
    peaks = {n: phantom_footprint.peak_bytes(*counts, n.itemsize) for n in _DTYPES}
    return sizes, [], {"peak_bytes": {n.name: peak for n, peak in peaks.items()}}


def _of_public_tree(game: PublicTreeGame) -> _Sizes:
    players = game.betting.player
    by_round = [game.num_private_states(player) for player in range(2)]
    lines = []
    for number, pair in enumerate(zip(*by_round, strict=True)):
        counts = " / ".join(f"{count:,}" for count in pair)
        lines.append(f"{f'round {number}':<12} {counts} private states")
    rows = [_payoff_matrix(matrix) for matrix in game.payoff_matrices]
    for text, count in collections.Counter(map(_text_of, rows)).items():
        lines.append(f"{counted(count, 'payoff matrix', 'payoff matrices')}: {text}")
    size = footprint.game_bytes(game)
    lines.append(f"memory       {size / 1e6:,.1f} MB, without a solver's arrays")
    shown = {
        "public_nodes": len(game.betting),
        "decisions": [int((players == player).sum()) for player in range(2)],
        "leaves": int((players == TERMINAL).sum()),
        "infosets": [side.num_infosets for side in game.public_decisions],
        "sequences": [side.num_sequences for side in game.public_decisions],
    }
    peaks = {dtype.name: footprint.peak_bytes(game, dtype) for dtype in _DTYPES}
    more = {"private_states": by_round, "payoff_matrices": rows, "bytes": size}
    return shown, lines, {**more, "peak_bytes": peaks}


_DTYPES = np.dtype(np.float64), np.dtype(np.float32)
# Sizes of each form, and words after the game.
_SIZES: dict[str, tuple[Callable[[Any], _Sizes], str]] = {
    representation.TREE: (_of_tree, ""),
    representation.PUBLIC_TREE: (_of_public_tree, ", in public-tree form"),
    representation.PHANTOM: (_of_phantom_game, ", in phantom form"),
}


def _text_of(row: dict[str, Any]) -> str:
    """Return one or several equal payoff matrices as text."""
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
