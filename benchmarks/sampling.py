"""Sampled solvers against their peers: facts as JSON lines, tables and plots from them.

Run `python -m benchmarks.sampling --help`. See docs/sampling.md for what is measured.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
from spiel_cr.eval.reporting import plots

import spiel_cr
from benchmarks import cell, cfr, conditions, document, sampling_plots
from benchmarks.sampling_contestants import PEERS, Arena, Contestant
from spiel_cr.cfr import config as algorithm_lib

_GAMES = ("leduc_poker", "goofspiel5", "liars_dice")

_RATED = (
    *PEERS,
    *(f"os-mccfr(batch={batch})" for batch in (1, 64, 1024, 4096)),
    *(f"vr-mccfr(batch={batch})" for batch in (1, 64, 1024, 4096)),
    *(f"es-mccfr(batch={batch})" for batch in (1, 64)),
)
_JUDGED = (
    "openspiel-outcome",
    "openspiel-external",
    "os-mccfr",
    # Only batches set this one apart from OpenSpiel's outcome sampling.
    "os-mccfr(averaging=sampled,draws=independent)",
    "es-mccfr",
    "vr-mccfr",
    "vr-mccfr(baseline=none)",
    "vr-mccfr(baseline=average)",
    "vr-mccfr(baseline=history)",
    # Full width, for scale.
    "cfr+",
)
_BASELINES = ("none", "average", "history", "expected")
_BATCHES = (1, 16, 64, 256, 1024, 4096, 16384)
_CURVES = (
    "openspiel-outcome",
    "os-mccfr(batch=1)",
    "os-mccfr(batch=1,baseline=expected)",
    "os-mccfr(batch=1024)",
    "os-mccfr(batch=1024,baseline=expected)",
    "vr-mccfr",
)
_VARIANCE_SAMPLES = 4000
# Points of a curve; each has twice the seconds of the one before.
_POINTS = 10
_WARM_UP_SECONDS = 0.2

_MARKS = document.Marks(
    "<!-- sampling tables: begin -->", "<!-- sampling tables: end -->"
)

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much is measured, the same for every contestant.

    Attributes:
      seconds: budget of a solve in parts quality and curves.
      seeds: solves in part quality.
      repeats: windows in part rates.
      window: seconds of one window.
      batch_seconds: budget of a solve in part batch.
      batch_seeds: solves in part batch.
    """

    seconds: float
    seeds: int
    repeats: int
    window: float
    batch_seconds: float
    batch_seeds: int


def measure(part: str, arena: Arena, plan: Plan) -> list[Row]:
    """Measures one part on one game.

    Args:
      part: one of `PARTS`.
      arena: the game.
      plan: budgets.

    Returns:
      Rows of facts; `missing` in one says why there are no figures.
    """
    return list(_MEASURES[part](arena, plan))


def _rates(arena: Arena, plan: Plan) -> Iterator[Row]:
    """Trajectories/s, counted in turns: the machine's noise hits all alike."""
    entries = []
    for name in _RATED:
        row = _row(arena, "rates", name, seed=0)
        contestant = _attempt(arena, row)
        if contestant is not None:
            cell.run_for(contestant.run, _WARM_UP_SECONDS)
            row.update(compile_seconds=contestant.compile_seconds, rates=[], cores=[])
        entries.append((row, contestant))
    for _ in range(plan.repeats):
        for row, contestant in entries:
            if contestant is None:
                continue
            cpu = time.process_time()
            done, seconds = cell.run_for(contestant.run, plan.window)
            row["cores"].append((time.process_time() - cpu) / seconds)
            row["rates"].append(done * contestant.trajectories / seconds)
    for row, contestant in entries:
        if contestant is not None:
            row["trajectories_per_second"] = statistics.median(row["rates"])
        yield row


def _quality(arena: Arena, plan: Plan) -> Iterator[Row]:
    """NashConv after the same seconds of solving, seed by seed."""
    for name in _JUDGED:
        # Full-width solvers sample nothing: one seed is as good as five.
        seeds = 1 if name in algorithm_lib.PRESETS else plan.seeds
        yield from _solves(arena, "quality", name, plan.seconds, seeds)


def _batch(arena: Arena, plan: Plan) -> Iterator[Row]:
    """The same for batches of all sizes."""
    for preset in ("os-mccfr", "vr-mccfr"):
        for batch in _BATCHES:
            rows = _solves(
                arena,
                "batch",
                f"{preset}(batch={batch})",
                plan.batch_seconds,
                plan.batch_seeds,
            )
            yield from ({**row, "preset": preset, "batch": batch} for row in rows)


def _solves(
    arena: Arena, part: str, name: str, seconds: float, seeds: int
) -> Iterator[Row]:
    """Solves from the start with each seed; yields a row for each."""
    contestant: Contestant | None = None
    for seed in range(seeds):
        row = _row(arena, part, name, seed=seed)
        if contestant is None:
            contestant = _attempt(arena, row)
        if contestant is None:
            yield row
            return
        contestant.start(seed)
        done, spent = cell.run_for(contestant.run, seconds)
        row.update(
            compile_seconds=contestant.compile_seconds,
            iterations=done,
            trajectories=done * contestant.trajectories,
            seconds=spent,
            nash_conv=contestant.nash_conv(),
        )
        yield row


def _curves(arena: Arena, plan: Plan) -> Iterator[Row]:
    """NashConv along one solve; judging stands outside the clock."""
    for name in _CURVES:
        row = _row(arena, "curves", name, seed=0)
        contestant = _attempt(arena, row)
        if contestant is None:
            yield row
            continue
        contestant.start(0)
        iterations, seconds, points = 0, 0.0, []
        for point in range(_POINTS):
            until = plan.seconds * 2.0 ** (point + 1 - _POINTS)
            if seconds >= until:
                continue
            done, spent = cell.run_for(contestant.run, until - seconds)
            iterations, seconds = iterations + done, seconds + spent
            trajectories = iterations * contestant.trajectories
            points.append([trajectories, seconds, contestant.nash_conv()])
        row.update(compile_seconds=contestant.compile_seconds, points=points)
        yield row


def _variance(arena: Arena, plan: Plan) -> Iterator[Row]:
    """Variance of sampled values at a late strategy, by baseline."""
    late = spiel_cr.solve(arena.tree, "cfr+", 1000)
    for kind in _BASELINES:
        name = f"os-mccfr(baseline={kind})"
        row = _row(arena, "variance", name, seed=0)
        found = spiel_cr.estimate_variance(
            arena.tree, name, late.average, samples=_VARIANCE_SAMPLES, learning=200_000
        )
        yield {
            **row,
            "samples": found.samples,
            "total": found.mean_total,
            "visiting": found.mean_visiting,
            "values": found.mean_values,
            "root": sum(found.root) / 2,
        }


_MEASURES: dict[str, Callable[[Arena, Plan], Iterable[Row]]] = {
    "rates": _rates,
    "quality": _quality,
    "batch": _batch,
    "curves": _curves,
    "variance": _variance,
}
PARTS = tuple(_MEASURES)


def _row(arena: Arena, part: str, name: str, *, seed: int) -> Row:
    _say(f"{arena.name}: {part}: {name}, seed {seed}")
    row = {"part": part, "name": arena.name, "game": arena.string, "algorithm": name}
    ours = name not in PEERS
    title = f"spiel_cr {name}" if ours else PEERS[name]
    return {**row, "title": title, "ours": ours, "seed": seed}


def _attempt(arena: Arena, row: Row) -> Contestant | None:
    """Builds a row's contestant, or writes into the row why that failed."""
    try:
        return arena.contestant(row["algorithm"])
    except Exception as error:  # One contestant must not stop the others.
        row["missing"] = f"{type(error).__name__}: {error}"
        _say(f"FAILED {row['name']}, {row['algorithm']}: {row['missing']}")
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; 1 if a contestant failed."""
    options = _parse(arguments)
    out = pathlib.Path(options.out)
    failed = False
    if not options.no_measuring:
        out.parent.mkdir(parents=True, exist_ok=True)
        plan = Plan(
            seconds=options.seconds,
            seeds=options.seeds,
            repeats=options.repeats,
            window=options.seconds / 20 if options.window is None else options.window,
            batch_seconds=options.seconds / 5,
            batch_seeds=min(3, options.seeds),
        )
        facts = {
            **conditions.facts(),
            "device": jax.default_backend(),
            "plan": dataclasses.asdict(plan),
        }
        for name in options.games:
            arena = Arena(name)
            for part in options.parts:
                if part in ("batch", "curves") and name != options.games[0]:
                    continue
                rows = measure(part, arena, plan)
                failed = failed or any("missing" in row for row in rows)
                with out.open("a") as lines:
                    for row in rows:
                        print(json.dumps({**facts, **row}), file=lines)
    with out.open() as lines:
        newest = sampling_plots.latest(json.loads(line) for line in lines)
    text = sampling_plots.markdown(newest)
    print(text)
    if options.markdown:
        document.write(options.markdown, text, _MARKS)
        sampling_plots.draw(newest, options.markdown.parent / "img")
    return 1 if failed else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sampling",
        description="Measure spiel_cr's sampled solvers beside OpenSpiel's.",
        epilog="What is measured, and how, is written in docs/sampling.md. With "
        "--markdown, plots go to the folder img beside the page.",
    )
    parser.add_argument(
        "--parts", nargs="+", default=list(PARTS), choices=PARTS, help="default: all"
    )
    parser.add_argument(
        "--games",
        nargs="+",
        default=list(_GAMES),
        metavar="GAME",
        help=f"OpenSpiel strings, or of {', '.join(cfr.GAMES)} (default "
        f"{' '.join(_GAMES)}); parts batch and curves take the first only",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=10.0,
        help="budget of a solve (default 10); a fifth of it in part batch",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=5,
        help="solves of each contestant in part quality (default 5); at most 3 in "
        "part batch, 1 in part curves",
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="windows in part rates (default 3)"
    )
    parser.add_argument(
        "--window",
        type=float,
        help="seconds of one window (default: a twentieth of --seconds)",
    )
    parser.add_argument(
        "--out",
        default="out/benchmarks/sampling.jsonl",
        help="JSON lines are appended here (default out/benchmarks/sampling.jsonl)",
    )
    parser.add_argument(
        "--no-measuring",
        action="store_true",
        help="only make tables and plots from the lines that are there",
    )
    document.add_option(parser, _MARKS)
    options = parser.parse_args(arguments)
    window = 1.0 if options.window is None else options.window
    if min(options.seconds, options.seeds, options.repeats, window) <= 0:
        parser.error("seconds, seeds, repeats and window must be above 0")
    if options.no_measuring and not pathlib.Path(options.out).exists():
        parser.error(f"there is no file {options.out}")
    if options.markdown:
        images = options.markdown.parent / "img"
        images.mkdir(parents=True, exist_ok=True)
        try:
            plots.check(images / "sampling.png")
        except ValueError as error:
            parser.error(str(error))
    return options


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
