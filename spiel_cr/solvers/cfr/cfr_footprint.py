"""How much memory the full-width family will take, told from the arrays of a game.

All figures were fitted to peaks of processes on CPUs (docs/large.md has a table): what
a program takes while XLA compiles it grows with the operations that are written out in
it, and each array is there about three times, on the host, on the device and in XLA's
workspace.
"""

import jax
import numpy as np

from spiel_cr.common import memory
from spiel_cr.games.sequence_form import layout, treeplex
from spiel_cr.games.tree.tree import CompiledGame

# Of XLA: for any program, and for each row of an array that is written out in it.
_PROGRAM, _PROGRAM_ROW = 95e6, 0.95e6
# How often the arrays of game and state are there at the peak.
_COPIES = 3.5
# While a game is compiled, for each history; what remains of that, in units of what the
# compiled game takes.
_COMPILING, _COMPILED = 90, 1.3


def compiled_bytes(tree: CompiledGame) -> float:
    """What a process holds that has compiled this game and done nothing else."""
    return memory.IMPORTED_BYTES + _COMPILED * tree.nbytes


def held_besides(tree: CompiledGame) -> float:
    """What this process holds for other things than a compiled game; 0 in a fresh one.

    Args:
      tree: the compiled game.
    """
    # Not all of what compiling takes is given back at once.
    compiling = memory.IMPORTED_BYTES + memory.BYTES_PER_HISTORY * len(tree.histories)
    own = max(memory.BASE_BYTES, compiling, compiled_bytes(tree))
    return max(0.0, memory.held_bytes() - own)


def peak_bytes(tree: CompiledGame, dtype: np.typing.DTypeLike) -> float:
    """The peak of a process that compiles a game and runs CFR on it.

    Args:
      tree: the compiled game.
      dtype: of the arithmetic.
    """
    compiling = memory.IMPORTED_BYTES + _COMPILING * len(tree.histories)
    return max(compiling, compiled_bytes(tree) + solver_bytes(tree.form, dtype))


def solver_bytes(form: layout.SequenceForm, dtype: np.typing.DTypeLike) -> float:
    """What a solver takes besides the game: its program, the arrays and the state."""
    rows = sum(treeplex.written_out_rows(arrays) for arrays in form.arrays)
    arrays = form_bytes(form, dtype) + state_bytes(form, dtype)
    return _PROGRAM + _PROGRAM_ROW * rows + _COPIES * arrays


def form_bytes(form: layout.SequenceForm, dtype: np.typing.DTypeLike) -> int:
    """What the arrays of a sequence form take with floating ones of a type."""
    size = np.dtype(dtype).itemsize
    return sum(
        leaf.size * (size if leaf.dtype.kind == "f" else leaf.dtype.itemsize)
        for leaf in jax.tree.leaves(form.arrays)
    )


def state_bytes(form: layout.SequenceForm, dtype: np.typing.DTypeLike) -> int:
    """What strategies, regrets, reach and averages take."""
    return 4 * sum(own.size for own in form.layouts) * np.dtype(dtype).itemsize
