"""Every kind of solver on phantom games, evaluated exactly.

Each run is a separate process with one thread. Time is measured as processor time, so
that background load does not count; building and evaluation do not count either. Nodes
are decisions and terminal nodes that trajectories visit.
"""

import os
import time

import spiel_cr
from benchmarks.document import PEAK, RUN, Column
from benchmarks.frame import Axis, Benchmark, FactsTable, Row, say
from benchmarks.games import string_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.solvers import solve
from spiel_cr.solvers.algorithms import MCCFR, find
from spiel_cr.solvers.representation import represent

_MEMORY_LIMIT = "12GB"
AXES = {
    "game": Axis(("phantom_ttt",), "short names, or OpenSpiel strings"),
    "algorithm": Axis(
        ("pcfr+", "cfr+", "dcfr", "os-mccfr", "vr-mccfr", "evr-mccfr"),
        "with optional settings; schedule=budget stands for the budget",
    ),
    "seed": Axis((0,), "seeds of each run", least=0),
    "seconds": Axis(600.0, "processor seconds of solvers without networks"),
    "nodes": Axis(1e6, "nodes of solvers that train networks"),
    "points": Axis(1, "points of a curve; the last is the budget", identifies=False),
    "growth": Axis(4.0, "ratio of the budgets of two points", identifies=False),
}


def measure(
    game: str,
    algorithm: str,
    seed: int,
    seconds: float,
    nodes: float,
    points: int,
    growth: float,
) -> Row:
    """Run a solver to a budget of processor time or of nodes, as in `train`."""
    family = find(algorithm.partition("(")[0]).family
    is_tabular = not family.networks and family is not MCCFR
    return train(
        game,
        algorithm.replace("budget", f"{nodes:.0f}"),
        seed,
        budget=(nodes, "nodes") if family.networks else (seconds, "seconds"),
        curve=(points, growth),
        form="phantom" if is_tabular else "simulator",
        dtype="float32" if is_tabular else None,
    )


def train(
    game: str,
    algorithm: str,
    seed: int,
    *,
    budget: tuple[float, str],
    curve: tuple[int, float],
    form: str,
    dtype: str | None = None,
) -> Row:
    """Run a solver to a budget; its curve contains exact values of NashConv.

    Args:
      game: OpenSpiel string or short name.
      algorithm: Algorithm with optional settings.
      seed: Seed of the run.
      budget: Budget of the run, and its unit: "seconds" of the processor, or a count of
        the solver, such as "nodes", "episodes" or "decisions".
      curve: Number of points of the curve, and the ratio of the budgets of two points.
      form: Form of the game.
      dtype: Arithmetic. If None, the algorithm's default.
    """
    # JAX has not started its threads yet.
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false"
    os.environ["OMP_NUM_THREADS"] = "1"
    name = string_of(game)
    options = spiel_cr.GameOptions(form, memory_limit=_MEMORY_LIMIT)
    goal = spiel_cr.Goal(seconds=1e9)
    task = solve.task_of(algorithm, goal, options=options, dtype=dtype, seed=seed)
    represented, _ = represent(name, options, task.need())
    solver = task.solver(represented)
    (most, unit), (points, growth), spent = budget, curve, 0.0
    evaluated: list[Row] = []
    while len(evaluated) < points:
        start = time.process_time()
        solver.run(1)
        spent += time.process_time() - start
        done = spent if unit == "seconds" else getattr(solver, unit)
        if done < most / growth ** (points - 1 - len(evaluated)):
            continue
        if form == "simulator":
            policy = solver.outcome()["policy"]
            nash_conv = spiel_cr.nash_conv(name, policy, memory_limit=_MEMORY_LIMIT)
        else:
            nash_conv = solver.nash_conv()
        point = {"seconds": spent, "done": done, "iterations": solver.iterations}
        evaluated.append({**point, "nash_conv": nash_conv})
        say(f"{evaluated[-1]}")
    result = {**evaluated[-1], "unit": unit, "curve": evaluated}
    return {**result, "peak_bytes": peak_bytes()}


COLUMNS: dict[str, Column] = {
    **RUN,
    "seed": "{seed}",
    "done": "{done:,.0f} {unit}",
    "iterations": "{iterations:,}",
    "s": "{seconds:.0f}",
    "NashConv": "{nash_conv:.4f}",
    "earlier": lambda row: ", ".join(
        f"{point['done']:,.0f}: {point['nash_conv']:.4f}" for point in row["curve"][:-1]
    ),
    **PEAK,
}
BENCHMARK = Benchmark(
    "phantom_games",
    "Measure exact NashConv of every kind of solver on phantom games.",
    measure,
    AXES,
    (FactsTable("Exact NashConv.", COLUMNS, 3),),
)
