"""What a GPU changes: the time of an iteration, and whether iterates are the same.

A row is one solver on one game, first on the CPU, then on JAX's last device, in one
process. See docs/measurements/devices.md.
"""

import argparse
import functools
from collections.abc import Iterator

import jax
import numpy as np

import spiel_cr
from benchmarks.document import Column
from benchmarks.frame import Benchmark, Option, Part, Row, Table, product
from benchmarks.games import string_of
from spiel_cr.solvers.solve import lay_out, task_of

# Games and algorithms; /float32 where float64 is not the algorithm's own precision.
RUNS = tuple(
    (
        "kuhn:cfr+ leduc:cfr+ goofspiel5:cfr+ liars_dice6:cfr+ ii_goofspiel6:cfr+ "
        "leduc_13_ranks:cfr+ rhode_island:dcfr river:dcfr turn:dcfr "
        "phantom_ttt:pcfr+/float32 dark_hex3:pcfr+/float32 "
        "liars_dice6:vr-mccfr(batch=4096) rhode_island:public-vr+ leduc:sd-cfr "
        "liars_dice2x5:mmd"
    ).split()
)
# Iterates are compared after so many iterations, before rounding decides ties; networks
# are timed over as many.
_SAME = 10
_LIMIT = "30GB"


def measure(run: str, seconds: float) -> Row:
    """Solves a game on both devices within a time; compares their iterates.

    Args:
      run: "GAME:ALGORITHM", and "/float32" where that is timed; iterates are compared
        in float64.
      seconds: of iterating, on each.

    Raises:
      RuntimeError: JAX has no device but the CPU.
    """
    game, _, solver = run.partition(":")
    algorithm, _, dtype = solver.partition("/")
    devices = (jax.devices("cpu")[0], jax.devices()[-1])
    if devices[0] == devices[1]:
        raise RuntimeError("JAX has no device but the CPU; pip install 'jax[cuda12]'")
    options = spiel_cr.GameOptions(memory_limit=_LIMIT)
    laid = lay_out(string_of(game), task_of(algorithm, options=options))
    row: Row = {"device": devices[1].device_kind, "form": laid.form}
    averages = []
    for name, device in zip(("cpu", "device"), devices, strict=True):
        with jax.default_device(device):
            solved = functools.partial(
                spiel_cr.solve, laid, algorithm, dtype=dtype or None
            )
            found = solved(spiel_cr.Goal(seconds=seconds))
            each, compiling = found.seconds / found.iterations, found.compile_seconds
            if not compiling:
                # Networks compile while they learn; the same again has all programs.
                again, warm = solved(_SAME), solved(_SAME)
                each = warm.seconds / _SAME
                learnt = (found.iterations + _SAME) * each
                compiling = found.seconds + again.seconds - learnt
            row[f"{name}_ms"] = 1000 * each
            row[f"{name}_compile"] = compiling
            if found.average and not (found.trajectories or found.nodes):
                found = spiel_cr.solve(laid, algorithm, _SAME)
                averages.append(found.average)
    if averages:
        pairs = zip(*averages, strict=True)
        row["apart"] = max(float(np.max(np.abs(a - b))) for a, b in pairs)
    return row


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    yield from product(run=options.runs, seconds=[options.seconds])


_TABLE: dict[str, Column] = {
    "game": lambda row: row["run"].partition(":")[0],
    "solver": lambda row: f"`{row['run'].partition(':')[2]}`",
    "form": "{form}",
    "CPU, ms an iteration": "{cpu_ms:.3g}",
    "GPU, ms an iteration": "{device_ms:.3g}",
    "times as fast": lambda row: f"{row['cpu_ms'] / row['device_ms']:.2g}",
    "CPU, compile, s": "{cpu_compile:.1f}",
    "GPU, compile, s": "{device_compile:.1f}",
    f"averages apart after {_SAME}": "{apart:.0e}",
}
BENCHMARK = Benchmark(
    "devices",
    "Solvers on the CPU and on JAX's other device.",
    {
        "runs": Option(RUNS, "GAME:ALGORITHM, /float32 behind it"),
        "seconds": Option(10.0, "of iterating, on each device"),
    },
    {
        "devices": Part(
            measure,
            _plan,
            (Table("Time of an iteration.", _TABLE, 3),),
            budget=("seconds",),
        )
    },
)
