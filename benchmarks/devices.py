"""Solvers on the CPU and on a GPU: time of an iteration, and equality of iterates.

A row is one solver on one game, first on the CPU, then on JAX's last device, in one
process.
"""

import functools

import jax
import numpy as np

import spiel_cr
from benchmarks.document import Column
from benchmarks.frame import Axis, Benchmark, Row, Table
from benchmarks.games import string_of
from spiel_cr.solvers.representation import represent
from spiel_cr.solvers.solve import task_of

# Games and algorithms; /float32 if float64 is not the algorithm's default.
RUNS = tuple(
    (
        "kuhn:cfr+ leduc:cfr+ goofspiel5:cfr+ liars_dice6:cfr+ ii_goofspiel6:cfr+ "
        "leduc_13_ranks:cfr+ rhode_island:dcfr river:dcfr turn:dcfr "
        "phantom_ttt:pcfr+/float32 dark_hex3:pcfr+/float32 "
        "liars_dice6:vr-mccfr(batch=4096) rhode_island:public-vr+ leduc:sd-cfr "
        "liars_dice2x5:mmd"
    ).split()
)
# Number of iterations after which iterates are compared, before rounding breaks ties;
# networks are timed over as many.
_COMPARED = 10
_MEMORY_LIMIT = "30GB"


def measure(run: str, seconds: float) -> Row:
    """Solve a game on both devices, and compare their iterates.

    Args:
      run: "GAME:ALGORITHM" or "GAME:ALGORITHM/float32"; iterates are compared in
        float64.
      seconds: Time budget on each device.

    Raises:
      RuntimeError: If JAX has no device but the CPU.
    """
    game, _, solver = run.partition(":")
    algorithm, _, dtype = solver.partition("/")
    devices = (jax.devices("cpu")[0], jax.devices()[-1])
    if devices[0] == devices[1]:
        raise RuntimeError("JAX has no device but the CPU; pip install 'jax[cuda12]'")
    options = spiel_cr.GameOptions(memory_limit=_MEMORY_LIMIT)
    need = task_of(algorithm, options=options).need()
    loaded, reason = represent(string_of(game), options, need)
    row: Row = {"device": devices[1].device_kind, "form": reason.form}
    averages = []
    for name, device in zip(("cpu", "device"), devices, strict=True):
        with jax.default_device(device):
            solve = functools.partial(spiel_cr.solve, loaded, algorithm)
            solve_timed = functools.partial(solve, dtype=dtype or None)
            result = solve_timed(spiel_cr.Goal(seconds=seconds))
            each, compiling = result.seconds / result.iterations, result.compile_seconds
            if not compiling:
                # Networks compile while they train; the second repetition does not.
                first, second = solve_timed(_COMPARED), solve_timed(_COMPARED)
                each = second.seconds / _COMPARED
                training = (result.iterations + _COMPARED) * each
                compiling = result.seconds + first.seconds - training
            row |= {f"{name}_ms": 1000 * each, f"{name}_compile": compiling}
            if result.average and not (result.trajectories or result.nodes):
                averages.append(solve(_COMPARED).average)
    if averages:
        pairs = zip(*averages, strict=True)
        row["apart"] = max(float(np.max(np.abs(a - b))) for a, b in pairs)
    return row


_TABLE: dict[str, Column] = {
    "game": lambda row: row["run"].partition(":")[0],
    "solver": lambda row: f"`{row['run'].partition(':')[2]}`",
    "form": "{form}",
    "CPU, ms per iteration": "{cpu_ms:.3g}",
    "GPU, ms per iteration": "{device_ms:.3g}",
    "speedup": lambda row: f"{row['cpu_ms'] / row['device_ms']:.2g}",
    "CPU, compile, s": "{cpu_compile:.1f}",
    "GPU, compile, s": "{device_compile:.1f}",
    f"averages apart after {_COMPARED}": "{apart:.0e}",
}
BENCHMARK = Benchmark(
    "devices",
    "Measure solvers on the CPU and on JAX's other device.",
    measure,
    {
        "run": Axis(RUNS, "GAME:ALGORITHM, optionally followed by /float32"),
        "seconds": Axis(10.0, "time budget on each device", identifies=False),
    },
    (Table("Time of an iteration.", _TABLE, 3),),
)
