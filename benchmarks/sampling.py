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
from typing import Any, Protocol

import jax
import numpy as np
import pyspiel
from open_spiel.python import policy as policy_lib
from open_spiel.python.algorithms import outcome_sampling_mccfr

import spiel_cr
from benchmarks import cell, cfr, conditions, document, peers, sampling_plots
from eval import plots
from spiel_cr import algorithm as algorithm_lib
from spiel_cr import cfr as cfr_lib
from spiel_cr import mccfr
from spiel_cr import policy as spiel_cr_policy

__all__ = ["PARTS", "Arena", "Contestant", "Plan", "main", "measure"]

_GAMES = ("leduc_poker", "goofspiel5", "liars_dice")

# Contestants that OpenSpiel bundles; any other name is an algorithm of spiel_cr.
_PEERS = {
    "openspiel-outcome": "OpenSpiel outcome sampling (C++)",
    "openspiel-external": "OpenSpiel external sampling (C++)",
    "openspiel-python": "OpenSpiel outcome sampling (Python)",
}

_RATED = (
    *_PEERS,
    *(f"os-mccfr(batch={batch})" for batch in (1, 64, 1024, 4096)),
    *(f"vr-mccfr(batch={batch})" for batch in (1, 64, 1024, 4096)),
    *(f"es-mccfr(batch={batch})" for batch in (1, 64)),
)
_JUDGED = (
    "openspiel-outcome",
    "openspiel-external",
    "os-mccfr",
    "es-mccfr",
    "vr-mccfr",
    "vr-mccfr(baseline=none)",
    "vr-mccfr(baseline=average)",
    "vr-mccfr(baseline=history)",
    # Full width, for scale.
    "cfr+",
)
_BATCHES = (1, 16, 64, 256, 1024, 4096, 16384)
_CURVES = (
    "openspiel-outcome",
    "os-mccfr(batch=1)",
    "os-mccfr(batch=1,baseline=expected)",
    "os-mccfr(batch=1024)",
    "os-mccfr(batch=1024,baseline=expected)",
    "vr-mccfr",
)
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


class Contestant(Protocol):
    """One solver on one game.

    Attributes:
      trajectories: of one iteration, for both players; 0 if it is full width.
      compile_seconds: tracing and compiling, apart from all else.
    """

    trajectories: int
    compile_seconds: float

    def start(self, seed: int) -> None:
        """Starts over; what is compiled stays compiled."""

    def run(self, iterations: int) -> None:
        """Iterates, and returns when that is done."""

    def nash_conv(self) -> float:
        """NashConv of the average policy by `pyspiel.nash_conv`."""


class Arena:
    """A game and what its contestants share.

    Attributes:
      name: for tables.
      string: OpenSpiel game string.
      game: for OpenSpiel's solvers and its judge.
      tree: the compiled game.
      compile_seconds: by configuration; JAX keeps programs, so a second solver with
        the same configuration would seem to compile in no time.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.string = cfr.GAMES.get(name, name)
        self.game = peers.load(self.string)
        self.tree = spiel_cr.compile_game(self.string)
        self.compile_seconds: dict[object, float] = {}

    def contestant(self, name: str) -> Contestant:
        """Builds and compiles a contestant."""
        return _OpenSpiel(self, name) if name in _PEERS else _SpielCR(self, name)


class _SpielCR:
    """A solver of spiel_cr in its default precision."""

    def __init__(self, arena: Arena, algorithm: str) -> None:
        self._arena = arena
        self._config = algorithm_lib.parse_any(algorithm)
        self.trajectories = 0
        if isinstance(self._config, algorithm_lib.MCCFRConfig):
            self.trajectories = 2 * self._config.batch
        self.start(0)
        self.compile_seconds = arena.compile_seconds.setdefault(
            self._config, self._solver.compile_seconds
        )

    def start(self, seed: int) -> None:
        tree, config = self._arena.tree, self._config
        if isinstance(config, algorithm_lib.MCCFRConfig):
            self._solver = mccfr.make_solver(tree, config=config, seed=seed)
        else:
            self._solver = cfr_lib.make_solver(
                tree.form, config=config, dtype=np.float64
            )

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)

    def nash_conv(self) -> float:
        behaviours = [self._solver.average_behaviour(p) for p in range(2)]
        policy = spiel_cr_policy.tabular_policy(self._arena.tree, behaviours)
        converted = policy_lib.python_policy_to_pyspiel_policy(policy)
        return float(pyspiel.nash_conv(self._arena.game, converted))


class _OpenSpiel:
    """A sampled solver of OpenSpiel; an iteration updates each player once."""

    trajectories = 2
    compile_seconds = 0.0

    def __init__(self, arena: Arena, name: str) -> None:
        self._game, self._name = arena.game, name
        self.start(0)

    def start(self, seed: int) -> None:
        solver: Any
        if self._name == "openspiel-outcome":
            solver = pyspiel.OutcomeSamplingMCCFRSolver(
                self._game, epsilon=0.6, seed=seed
            )
        elif self._name == "openspiel-external":
            solver = pyspiel.ExternalSamplingMCCFRSolver(self._game, seed=seed)
        else:
            # It draws from numpy's global generator and explores with 0.6.
            np.random.seed(seed)
            solver = outcome_sampling_mccfr.OutcomeSamplingSolver(self._game)
        python = self._name == "openspiel-python"
        self._step = solver.iteration if python else solver.run_iteration
        self._average = solver.average_policy

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self._step()

    def nash_conv(self) -> float:
        policy = self._average()
        if self._name == "openspiel-python":
            policy = policy_lib.tabular_policy_from_callable(
                self._game, policy.action_probabilities
            )
            policy = policy_lib.python_policy_to_pyspiel_policy(policy)
        return float(pyspiel.nash_conv(self._game, policy, True))


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


_MEASURES: dict[str, Callable[[Arena, Plan], Iterable[Row]]] = {
    "rates": _rates,
    "quality": _quality,
    "batch": _batch,
    "curves": _curves,
}
PARTS = tuple(_MEASURES)


def _row(arena: Arena, part: str, name: str, *, seed: int) -> Row:
    _say(f"{arena.name}: {part}: {name}, seed {seed}")
    row = {"part": part, "name": arena.name, "game": arena.string, "algorithm": name}
    ours = name not in _PEERS
    title = f"spiel_cr {name}" if ours else _PEERS[name]
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
            window=options.window or options.seconds / 20,
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
    if min(options.seconds, options.seeds, options.repeats, options.window or 1) <= 0:
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
