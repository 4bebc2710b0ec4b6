"""How much memory first-order methods will take, told from the arrays of a game.

Beside what `solvers.cfr.cfr_footprint` counts, a method's program has more passes over
the tree, and its state more vectors. Factors are bounds of peaks of processes on CPUs
(docs/first-order.md has a table).
"""

import numpy as np

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.solvers.cfr import cfr_footprint as footprint
from spiel_cr.solvers.first_order.first_order_config import (
    EGTConfig,
    FirstOrderConfig,
    PDHGConfig,
    SmoothingConfig,
)

# Of XLA, for each row of an array that is written out in an iteration of CFR.
_PROGRAM_ROW = 0.95e6
# For each method: how many such passes its program has, and how many vectors over both
# players' sequences are there at once, beside those of CFR.
_NEEDS: dict[type, tuple[int, int]] = {
    EGTConfig: (4, 10),
    SmoothingConfig: (10, 14),
    PDHGConfig: (4, 16),
}


def peak_bytes(
    tree: CompiledGame, config: FirstOrderConfig, dtype: np.typing.DTypeLike
) -> float:
    """The peak of a process that compiles a game and runs a first-order method on it.

    Args:
      tree: the compiled game.
      config: the method.
      dtype: of the arithmetic.
    """
    form = tree.form
    rows = sum(treeplex.written_out_rows(arrays) for arrays in form.arrays)
    positions = sum(own.size for own in form.layouts)
    more = bytes_beside_cfr(config, _PROGRAM_ROW * rows, positions, dtype)
    return footprint.peak_bytes(tree, dtype) + more


def bytes_beside_cfr(
    config: FirstOrderConfig,
    program: float,
    positions: int,
    dtype: np.typing.DTypeLike,
) -> float:
    """What a method takes more than CFR does on the same game.

    Args:
      config: the method.
      program: what compiling a program with one pass over the trees takes, in bytes.
      positions: of both players' sequences.
      dtype: of the arithmetic.
    """
    passes, vectors = _NEEDS[type(config)]
    return (passes - 1) * program + vectors * positions * np.dtype(dtype).itemsize
