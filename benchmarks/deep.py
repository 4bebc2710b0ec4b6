"""Deep CFR and its successors, and self-play, on compiled games.

Each run is a process of its own with one thread. Its seconds are those of the
processor, so that other work on the machine does not count; judging does not, either.
Nodes are decisions and ends that trajectories visit, episodes are trajectories of both
players.
"""

import argparse
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks import frame
from benchmarks.document import PEAK, WHO, Column, over_seeds
from benchmarks.games import string_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.games.tree.compiler import build_tree
from spiel_cr.policies.best_responses import value_bounds
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.deep.deep_config import PRESETS, DeepConfig
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.self_play.self_play_config import SELF_PLAY_PRESETS
from spiel_cr.solvers.deep.self_play.updates import SelfPlay

ALGORITHMS = tuple(name for name, own in PRESETS.items() if isinstance(own, DeepConfig))
SELF_PLAY = tuple(SELF_PLAY_PRESETS)
# Points of a run's curve.
_POINTS = 4
OPTIONS = {
    "games": frame.Option(
        ("leduc", "kuhn", "liars_dice4", "goofspiel4"), "that are compiled"
    ),
    "algorithms": frame.Option(
        ALGORITHMS, "of part nodes, such as 'sd-cfr(hidden=128)'"
    ),
    "seeds": frame.Option((0,), "of each run", least=0),
    "nodes": frame.Option(
        10_000_000, "of a run, or a tenth as many episodes of vr- presets"
    ),
    "decisions": frame.Option(10_000_000, "of a run of self-play"),
}


def measure(game: str, algorithm: str, seed: int, what: str, most: float) -> frame.Row:
    """A run on a compiled game, which ends before it would go beyond its budget.

    Args:
      game: OpenSpiel string or short name.
      algorithm: for `algorithms.find`.
      seed: of everything random.
      what: of the solver's counts: "nodes" or "episodes".
      most: of it.
    """
    frame.one_thread()
    tree = build_tree(string_of(game))
    begun = time.process_time()
    solver = DeepSolver(tree, algorithm, seed=seed)
    judging, judged, curve = 0.0, -1, []

    def judge() -> None:
        nonlocal judging, judged
        start, judged = time.process_time(), solver.iterations
        seconds = time.process_time() - begun - judging
        values = {}
        for kind in solver.config.averages:
            low, high = value_bounds(tree.form, solver.average_behaviours(kind))
            values[kind] = high - low
        curve.append({"cpu_seconds": seconds, **values})
        judging += time.process_time() - start

    last = 0.0
    while solver.iterations < 2 or getattr(solver, what) + last <= most:
        before = getattr(solver, what)
        solver.run(1)
        # The first one may compile, which the later ones do not.
        last = getattr(solver, what) - before if solver.iterations > 1 else 0.0
        if getattr(solver, what) > most * (len(curve) + 1) / _POINTS:
            judge()
    if judged < solver.iterations:
        judge()
    total = sum(solver.seconds_of.values())
    return {
        "iterations": solver.iterations,
        "nodes": solver.nodes,
        "episodes": solver.episodes,
        "curve": curve,
        **curve[-1],
        "shares": {name: part / total for name, part in solver.seconds_of.items()},
        "peak_bytes": peak_bytes(),
    }


def measure_self_play(
    game: str, algorithm: str, seed: int, decisions: int
) -> frame.Row:
    """A run of self-play on a compiled game, and what its result is worth.

    Args:
      game: OpenSpiel string or short name.
      algorithm: a preset of self-play with settings.
      seed: of the run.
      decisions: of it, and of its schedule.
    """
    frame.one_thread()
    config = dataclasses.replace(find(algorithm).config, schedule=decisions)
    solver = SelfPlay(build_tree(string_of(game)), config, seed=seed)
    curve = []
    for point in range(1, _POINTS + 1):
        solver.run_to(decisions * point // _POINTS)
        curve.append([solver.decisions, solver.nash_conv()])
    play, learn = (solver.seconds_of[what] for what in ("play", "learn"))
    return {
        "curve": curve,
        "nash_conv": curve[-1][1],
        "play_seconds": play,
        "learn_seconds": learn,
        "decisions_per_second": solver.decisions / play,
        "peak_bytes": peak_bytes(),
    }


def with_exact(algorithm: str) -> str:
    """An algorithm that keeps the exact average besides its own."""
    kinds = dict.fromkeys((*find(algorithm).config.averages, "exact"))
    name, _, settings = algorithm.partition("(")
    given = [setting for setting in settings.removesuffix(")").split(",") if setting]
    given = [setting for setting in given if not setting.startswith("averaging=")]
    return f"{name}({','.join([*given, 'averaging=' + '+'.join(kinds)])})"


def _plan_nodes(options: argparse.Namespace) -> Iterator[frame.Row]:
    for row in frame.product(
        game=options.games, algorithm=options.algorithms, seed=options.seeds
    ):
        # Published figures are by nodes or by episodes.
        what = "episodes" if row["algorithm"].startswith("vr-") else "nodes"
        most = options.nodes / 10 if what == "episodes" else options.nodes
        yield {
            **row,
            "algorithm": with_exact(row["algorithm"]),
            "what": what,
            "most": most,
        }


def _medians(rows: Sequence[frame.Row]) -> list[frame.Row]:
    return over_seeds(rows, ("game", "algorithm", "what", "most", "decisions"))


def _average(kind: str) -> Column:
    """NashConv of an average, and half of it in thousandths."""
    return lambda row: f"{row[kind]:.4f} ({500 * row[kind]:.1f})"


def _of_seeds(*kinds: str) -> Callable[[Mapping[str, Any]], str]:
    """NashConv of each seed, of the first kind that there is."""

    def column(row: Mapping[str, Any]) -> str:
        kind = next(kind for kind in kinds if kind in row)
        runs = sorted(row["each"], key=lambda run: run["seed"])
        return ", ".join(f"{run['seed']}: {run[kind]:.4f}" for run in runs)

    return column


_RUNS: dict[str, Column] = {
    **WHO,
    "iterations": "{iterations:,.0f}",
    "nodes": "{nodes:,.0f}",
    "episodes": "{episodes:,.0f}",
    "s": "{cpu_seconds:.0f}",
    "network": _average("network"),
    "bank": _average("bank"),
    "exact": _average("exact"),
    "of the seeds": _of_seeds("exact", "network"),
    "shares of the time": lambda row: ", ".join(
        f"{name} {share:.0%}" for name, share in row["shares"].items()
    ),
    **PEAK,
}
_SELF_PLAY: dict[str, Column] = {
    **WHO,
    "decisions": "{decisions:,.0f}",
    "NashConv, median": "{nash_conv:.4f}",
    "of the seeds": _of_seeds("nash_conv"),
    "play, s": "{play_seconds:.0f}",
    "learning, s": "{learn_seconds:.0f}",
    "decisions/s of play": "{decisions_per_second:,.0f}",
    **PEAK,
}
BENCHMARK = frame.Benchmark(
    "deep",
    "Trains deep CFR, its successors and self-play, and judges them.",
    OPTIONS,
    {
        "nodes": frame.Part(
            measure,
            _plan_nodes,
            (
                frame.Table(
                    "By nodes or episodes, medians of seeds: NashConv (and half of it "
                    "in thousandths) of each average.",
                    _RUNS,
                    2,
                    _medians,
                ),
            ),
        ),
        "self-play": frame.Part(
            measure_self_play,
            frame.plan(
                game="games", algorithm=SELF_PLAY, seed="seeds", decisions="decisions"
            ),
            (frame.Table("Results of self-play.", _SELF_PLAY, 2, _medians),),
        ),
    },
)
