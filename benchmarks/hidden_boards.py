"""Every kind of solver on hidden boards, judged exactly.

Each run is a process of its own. Its seconds are those of the processor, so that other
work on the machine does not count; building the game and judging do not, either. Nodes
are decisions and ends that trajectories visit. See docs/measurements/phantom-games.md.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from statistics import median

import spiel_cr
from benchmarks.document import Column, Panels, over_seeds
from benchmarks.frame import (
    Benchmark,
    Option,
    Part,
    Picture,
    Row,
    Table,
    one_thread,
    product,
    say,
)
from benchmarks.games import string_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.solvers import solve
from spiel_cr.solvers.algorithms import MCCFR, find

# Of each process; and the arithmetic of full-width solvers.
_LIMIT, _DTYPE = "12GB", "float32"
OPTIONS = {
    "games": Option(("phantom_ttt",), "short names, or OpenSpiel strings"),
    "algorithms": Option(
        ("pcfr+", "cfr+", "dcfr", "os-mccfr", "vr-mccfr", "evr-mccfr"),
        "with settings if you like; schedule=budget is the budget of nodes",
    ),
    "seeds": Option((0,), "of each run that draws", least=0),
    "seconds": Option(600.0, "of the processor; of solvers that train no networks"),
    "nodes": Option(1e6, "of solvers that train networks"),
    "points": Option(1, "of a run's curve, the last one the budget"),
    "growth": Option(4.0, "from one point's budget to the next one's"),
}


def measure(
    game: str,
    algorithm: str,
    seed: int,
    most: float,
    what: str,
    points: int,
    growth: float,
    dtype: str | None,
) -> Row:
    """Runs a solver to a budget; exact NashConv of its result on the way.

    Args:
      game: OpenSpiel string or short name.
      algorithm: any.
      seed: of what draws.
      most: the budget.
      what: it is of, "seconds" or "nodes".
      points: of the curve.
      growth: from one point's budget to the next one's.
      dtype: of the arithmetic; None: the algorithm's own.
    """
    one_thread()
    name = string_of(game)
    options = spiel_cr.GameOptions(
        "phantom" if dtype else "simulator", memory_limit=_LIMIT
    )
    goal = spiel_cr.Goal(seconds=1e9)
    task = solve.task_of(algorithm, goal, options=options, dtype=dtype, seed=seed)
    run = task.run_of(solve.lay_out(name, task))
    spent = 0.0
    curve: list[Row] = []
    while len(curve) < points:
        begun = time.process_time()
        run.solver.run(1)
        spent += time.process_time() - begun
        nodes = getattr(run.solver, "nodes", 0)
        done = spent if what == "seconds" else nodes
        if done < most / growth ** (points - 1 - len(curve)):
            continue
        if dtype:
            nash_conv = run.nash_conv()
        else:
            policy = run.outcome()["held"].policy(None)
            nash_conv = spiel_cr.nash_conv(name, policy, memory_limit=_LIMIT)
        point = {"seconds": spent, "nodes": nodes, "iterations": run.iterations}
        curve.append({**point, "nash_conv": nash_conv})
        say(f"{curve[-1]}")
    return {**curve[-1], "curve": curve, "peak_bytes": peak_bytes()}


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    shared = {"points": options.points, "growth": options.growth}
    for row in product(
        game=options.games, algorithm=options.algorithms, seed=options.seeds
    ):
        family = find(row["algorithm"].partition("(")[0]).family
        networks = family.networks
        name = row["algorithm"].replace("budget", f"{options.nodes:.0f}")
        yield {
            **row,
            "algorithm": name,
            "most": options.nodes if networks else options.seconds,
            "what": "nodes" if networks else "seconds",
            "dtype": None if networks or family is MCCFR else _DTYPE,
            **shared,
        }


def _curves(rows: Sequence[Row]) -> Panels:
    """Medians over seeds, point by point."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for line in over_seeds(rows, ("game", "algorithm")):
        points = zip(*(row["curve"] for row in line["each"]), strict=True)
        panels.setdefault(line["game"], {})[line["algorithm"]] = [
            (median(p["seconds"] for p in some), median(p["nash_conv"] for p in some))
            for some in points
        ]
    return panels


_COLUMNS: dict[str, Column] = {
    "game": "{game}",
    "algorithm": "`{algorithm}`",
    "seed": "{seed}",
    "nodes": "{nodes:,}",
    "iterations": "{iterations:,}",
    "s": "{seconds:.0f}",
    "NashConv": "{nash_conv:.4f}",
}
BENCHMARK = Benchmark(
    "hidden_boards",
    "Measure exact NashConv of every kind of solver on hidden boards.",
    OPTIONS,
    {
        "solve": Part(
            measure,
            _plan,
            (Table("Exact NashConv.", _COLUMNS, 3),),
            (Picture("hidden-boards.png", "processor seconds", _curves),),
            budget=("points", "growth"),
        ),
    },
)
