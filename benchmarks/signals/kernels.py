"""What it costs to apply the kernels of signal games, by form and size.

Run `python -m benchmarks.signals.kernels --help`. See docs/signals.md for what is
measured.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence

import jax
import numpy as np
import scipy.sparse

from benchmarks import frame
from benchmarks.document import table
from benchmarks.frame import Row
from benchmarks.signals.measuring import RIVER, TURN
from spiel_cr.common.jax_utils import cast, precision
from spiel_cr.signals.form import public_form
from spiel_cr.signals.game import Kernel
from spiel_cr.signals.kernel_blocks import lay_out_entries
from spiel_cr.signals.kernels import LaidOut, lay_out
from spiel_cr.signals.loading import signal_game

GAMES = {
    "rhode island": "python_rhode_island_holdem",
    "liar's dice 1x6": "liars_dice(numdice=1,dice_sides=6)",
    "river": RIVER,
    "turn": TURN,
}
_DTYPES = "float32", "float64"
# Kernels of more pairs of signals are not listed beside.
_MOST_LISTED = 2_000_000
_TIMES, _SECONDS = 5, 0.2


def _add_options(parser: frame.Parser) -> None:
    parser.several("--games", GAMES, "whose kernels are measured")
    parser.choice("--dtype", _DTYPES, "float32", "of reach and kernels")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for name in options.games:
        frame.say(name)
        game = signal_game(GAMES[name])
        sides = public_form(game)[1]
        for number, kernel in enumerate(game.kernels):
            # Player 0's rows: leaves that share its last public sequence share a row.
            used = sides.sequences[0][sides.kernel == number]
            leaves = len(np.unique(used))
            laid = lay_out(kernel, 0)
            yield measure(name, kernel, laid, leaves, options.dtype)
            listed = listed_form(kernel)
            if listed is not None and type(listed) is not type(laid):
                yield measure(name, kernel, listed, leaves, options.dtype)


def listed_form(kernel: Kernel) -> LaidOut | None:
    """The kernel for player 0 by its entries; None where there are too many."""
    if np.prod(kernel.shape, dtype=float) > _MOST_LISTED:
        return None
    entries = kernel.coordinates()
    return lay_out_entries(
        scipy.sparse.csr_array(
            (entries.values, (entries.rows, entries.columns)), kernel.shape
        )
    )


def measure(name: str, kernel: Kernel, laid: LaidOut, leaves: int, dtype: str) -> Row:
    """Applies a kernel again and again; the median of several such times.

    Args:
      name: of the game.
      kernel: as it was declared.
      laid: the same for player 0.
      leaves: rows of leaf values.
      dtype: of reach and kernel.
    """
    rng = np.random.default_rng(0)
    x = rng.random((leaves, kernel.shape[1])).astype(dtype)
    walls, cpus = [], []
    with precision(np.dtype(dtype)):
        # Arguments and results have their rows one after the other, as in a solver: in
        # a loop of its own XLA would turn them as it likes.
        apply = jax.jit(lambda laid, x: laid.apply(x))
        arrays = jax.device_put((cast(laid, np.dtype(dtype)), x))
        apply(*arrays).block_until_ready()
        for _ in range(_TIMES):
            began, cpu, count = time.perf_counter(), time.process_time(), 0
            while count < 3 or time.perf_counter() - began < _SECONDS:
                apply(*arrays).block_until_ready()
                count += 1
            walls.append((time.perf_counter() - began) / count)
            cpus.append((time.process_time() - cpu) / count)
    return {
        "name": name,
        "game": GAMES[name],
        "round": kernel.round,
        "signals": kernel.shape,
        "leaves": leaves,
        "form": type(laid).__name__,
        "dtype": dtype,
        "megabytes": sum(array.nbytes for array in jax.tree.leaves(arrays[0])) / 1e6,
        "milliseconds": 1e3 * statistics.median(walls),
        "cpu_milliseconds": 1e3 * statistics.median(cpus),
    }


def markdown(rows: Sequence[Row]) -> str:
    """A line for each kernel and form."""
    return table(
        rows,
        {
            "game": "{name}",
            "form": "{form}",
            "round": "{round}",
            "signals": lambda row: f"{row['signals'][0]} × {row['signals'][1]}",
            "leaves": "{leaves}",
            "dtype": "{dtype}",
            "MB": "{megabytes:.2f}",
            "ms": "{milliseconds:.3f}",
            "CPU ms": "{cpu_milliseconds:.3f}",
        },
        labels=2,
    )


BENCHMARK = frame.Benchmark(
    name="signals.kernels",
    description=(__doc__ or "").splitlines()[0],
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables=None,
    page="signals.md",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
