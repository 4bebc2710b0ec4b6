"""Sampled solvers against their peers: facts as JSON lines, tables and plots from them.

Run `python -m benchmarks.sampling --help`. See docs/sampling.md for what is measured.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

import spiel_cr
from benchmarks import cfr, sampling_tables
from benchmarks.document import image_path
from benchmarks.frame import Benchmark, Parser, Row, say
from benchmarks.sampling_tables import EXTERNAL, OUTCOME
from benchmarks.solver_run import run_for, warm_up
from spiel_cr.cfr.config import PRESETS, MCCFRConfig, parse_any
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.eval.common.game_instance import GameInstance, Strategy
from spiel_cr.eval.contestants import registry
from spiel_cr.eval.contestants.protocol import SolverAdapter
from spiel_cr.eval.judging.cpp_judge import ExactJudge
from spiel_cr.eval.reporting import plots
from spiel_cr.mccfr import sample_tree

# On the last of these no setting was chosen, and nothing was tuned.
_UNTUNED = {
    "battleship": "battleship(board_width=2,board_height=2,ship_sizes=[2],"
    "ship_values=[1],num_shots=4,allow_repeated_shots=false,loss_multiplier=1.0)",
}
_GAMES = ("leduc_poker", "goofspiel5", "liars_dice", *_UNTUNED)
# Of growing size, for part size.
_LARGE = {
    "ii_goofspiel6": "python_ii_goofspiel(num_cards=6)",
    "latent_tic_tac_toe": "python_latent_tic_tac_toe(conflict=keep)",
}
_SIZES = ("leduc_poker", "goofspiel5", "liars_dice", *_LARGE)
# OpenSpiel's solvers are not measured on more histories: a game in Python takes them
# minutes to load.
_MOST_OF_OPENSPIEL = 1_000_000

_RATED = (
    OUTCOME,
    EXTERNAL,
    "openspiel-os-mccfr-python",
    *(f"os-mccfr(batch={batch})" for batch in (1, 64, 1024, 4096)),
    "os-mccfr(batch=32768,updates=visited)",
    "vr-mccfr",
    *(f"evr-mccfr(batch={batch})" for batch in (1, 64, 1024, 4096)),
    "evr-mccfr(batch=4096,updates=visited)",
    *(f"es-mccfr(batch={batch})" for batch in (1, 64)),
)
_SIZED = (OUTCOME, "os-mccfr(batch=1)", "vr-mccfr", "evr-mccfr(batch=1)")
_JUDGED = (
    OUTCOME,
    EXTERNAL,
    "os-mccfr",
    # Only batches set this one apart from OpenSpiel's outcome sampling.
    "os-mccfr(averaging=sampled,draws=independent)",
    "es-mccfr",
    "vr-mccfr",
    "vr-mccfr+",
    "evr-mccfr",
    "evr-mccfr(updates=visited)",
    "evr-mccfr(baseline=none)",
    "evr-mccfr(baseline=average)",
    "evr-mccfr(baseline=history)",
    # Full width, for scale.
    "cfr+",
)
# After as many trajectories each, of both players together.
_EQUAL_TRAJECTORIES = 1 << 18
_EQUAL = (
    OUTCOME,
    EXTERNAL,
    "os-mccfr(batch=64)",
    "os-mccfr",
    "es-mccfr",
    "evr-mccfr(batch=64)",
    "evr-mccfr",
)
_BASELINES = ("none", "average", "history", "expected")
_BATCHES = (1, 16, 64, 256, 1024, 4096, 16384)
_CURVES = (
    OUTCOME,
    "os-mccfr(batch=1)",
    "os-mccfr(batch=1,baseline=expected)",
    "os-mccfr(batch=1024)",
    "os-mccfr(batch=1024,baseline=expected)",
    "evr-mccfr",
)
_VARIANCE_SAMPLES = 4000
# Points of a curve; each has twice the seconds of the one before.
_POINTS = 10
# Parts that are measured on one game only, the first.
_OF_ONE_GAME = ("batch", "curves", "size")


class Plan(NamedTuple):
    """How much is measured, the same for every solver.

    Attributes:
      seconds: budget of a solve in parts quality and curves.
      seeds: solves in part quality.
      repeats: windows in part rates.
      window: seconds of one window.
      batch_seconds: budget of a solve in part batch.
      batch_seeds: solves in parts batch and equal.
      solvers: of part quality; by default those of `_JUDGED`.
    """

    seconds: float
    seeds: int
    repeats: int
    window: float
    batch_seconds: float
    batch_seeds: int
    solvers: tuple[str, ...] = ()


class _Game:
    """A game and what its solvers share.

    Attributes:
      name: for tables.
      string: OpenSpiel game string.
      tree: the compiled game.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.string = (cfr.GAMES | _UNTUNED | _LARGE).get(name, name)
        self._instance = GameInstance(self.string, observations=False)
        self.tree = self._instance.tree
        self._judge = ExactJudge(self._instance)
        # By algorithm. JAX keeps programs: a second solver of the same algorithm would
        # seem to compile in no time.
        self._compile_seconds: dict[str, float] = {}

    def row(self, part: str, name: str, seed: int = 0) -> Row:
        """What a row says of its algorithm."""
        say(f"{self.name}: {part}: {name}, seed {seed}")
        ours = not name.startswith("openspiel")
        return {
            "part": part,
            "name": self.name,
            "game": self.string,
            "algorithm": name,
            "title": f"spiel_cr {name}" if ours else registry.find(name).title,
            "ours": ours,
            "seed": seed,
        }

    def begin(
        self, part: str, name: str, seed: int = 0
    ) -> tuple[Row, SolverAdapter | None]:
        """A row for an algorithm, and its adapter; `missing` says why there is none."""
        row = self.row(part, name, seed)
        try:
            adapter = registry.find(name).make(self._instance, seed)
        except Exception as error:  # One solver must not stop the others.
            return {**row, "missing": f"{type(error).__name__}: {error}"}, None
        seconds = self._compile_seconds.setdefault(name, adapter.compile_seconds)
        return {**row, "compile_seconds": seconds}, adapter

    def nash_conv(self, adapter: SolverAdapter) -> float:
        """NashConv of what a solver plays now, by OpenSpiel."""
        return self._judge.final(adapter.strategy()).nash_conv


def _rates(game: _Game, plan: Plan) -> Iterator[Row]:
    """Trajectories/s, counted in turns: the machine's noise hits all alike."""
    runs = []
    for name in _RATED:
        row, adapter = game.begin("rates", name)
        if adapter is None:
            yield row
            continue
        warm_up(adapter.run)
        runs.append((adapter, {**row, "rates": [], "cores": []}))
    for _ in range(plan.repeats):
        for adapter, row in runs:
            cpu = time.process_time()
            done, seconds = run_for(adapter.run, plan.window)
            row["cores"].append((time.process_time() - cpu) / seconds)
            row["rates"].append(done * _trajectories(row["algorithm"]) / seconds)
    for _, row in runs:
        yield {**row, "trajectories_per_second": statistics.median(row["rates"])}


def _quality(game: _Game, plan: Plan) -> Iterator[Row]:
    """NashConv after the same seconds of solving, seed by seed."""
    for name in plan.solvers or _JUDGED:
        # Full-width solvers sample nothing: one seed is as good as five.
        seeds = 1 if name in PRESETS else plan.seeds
        yield from _solves(game, "quality", name, plan.seconds, seeds)


def _equal(game: _Game, plan: Plan) -> Iterator[Row]:
    """NashConv after as many trajectories: no clock, so the machine does not matter."""
    for name in _EQUAL:
        for seed in range(plan.batch_seeds):
            row, adapter = game.begin("equal", name, seed)
            if adapter is None:
                yield row
                break
            done = max(1, _EQUAL_TRAJECTORIES // _trajectories(name))
            adapter.run(done)
            yield {
                **row,
                "trajectories": done * _trajectories(name),
                "nash_conv": game.nash_conv(adapter),
            }


def _batch(game: _Game, plan: Plan) -> Iterator[Row]:
    """The same for batches of all sizes."""
    for preset in ("os-mccfr", "evr-mccfr"):
        for batch in _BATCHES:
            name = f"{preset}(batch={batch})"
            for row in _solves(
                game, "batch", name, plan.batch_seconds, plan.batch_seeds
            ):
                yield {**row, "preset": preset, "batch": batch}


def _solves(
    game: _Game, part: str, name: str, seconds: float, seeds: int
) -> Iterator[Row]:
    """Solves from the start with each seed; yields a row for each."""
    for seed in range(seeds):
        row, adapter = game.begin(part, name, seed)
        if adapter is None:
            yield row
            return
        done, spent = run_for(adapter.run, seconds)
        yield {
            **row,
            "iterations": done,
            "trajectories": done * _trajectories(name),
            "seconds": spent,
            "nash_conv": game.nash_conv(adapter),
        }


def _curves(game: _Game, plan: Plan) -> Iterator[Row]:
    """NashConv along one solve; judging stands outside the clock."""
    for name in _CURVES:
        row, adapter = game.begin("curves", name)
        if adapter is None:
            yield row
            continue
        iterations, seconds, points = 0, 0.0, []
        for point in range(_POINTS):
            until = plan.seconds * 2.0 ** (point + 1 - _POINTS)
            if seconds >= until:
                continue
            done, spent = run_for(adapter.run, until - seconds)
            iterations, seconds = iterations + done, seconds + spent
            trajectories = iterations * _trajectories(name)
            points.append([trajectories, seconds, game.nash_conv(adapter)])
        yield {**row, "points": points}


def _size(_first: _Game, plan: Plan) -> Iterator[Row]:
    """CPU time of a trajectory on games of growing size, by its length."""
    for name in _SIZES:
        game = _Game(name)
        histories = len(game.tree.histories)
        for algorithm in _SIZED:
            ours = not algorithm.startswith("openspiel")
            if not ours and histories > _MOST_OF_OPENSPIEL:
                continue
            row, adapter = game.begin("size", algorithm)
            if adapter is None:
                yield row
                continue
            warm_up(adapter.run)
            found = []
            for _ in range(plan.repeats):
                cpu = time.process_time()
                done, _ = run_for(adapter.run, plan.window)
                spent = time.process_time() - cpu
                found.append(1e6 * spent / done / _trajectories(algorithm))
            yield {
                **row,
                "histories": histories,
                "microseconds": found,
                "length": _mean_length(game.tree, algorithm, adapter.strategy()),
            }


def _mean_length(tree: CompiledGame, algorithm: str, strategy: Strategy) -> float:
    """Histories that a trajectory of outcome sampling visits, the last one included.

    Args:
      tree: the game.
      algorithm: how it explores; OpenSpiel's does so uniformly with 0.6.
      strategy: what both players play otherwise.
    """
    config = parse_any("os-mccfr" if algorithm.startswith("openspiel") else algorithm)
    assert isinstance(config, MCCFRConfig)
    histories, lengths = tree.histories, []
    balanced = np.asarray(sample_tree.build(tree)[0].balanced)
    mover = histories.player[histories.parent]
    chance = histories.chance / histories.chance[histories.parent]
    begin = 0
    for p, infosets in enumerate(tree.infosets):
        decisions = infosets.decisions
        even = 1 / np.append(1, decisions.num_actions[decisions.owner[1:]])
        if config.explore == "balanced":
            even = balanced[begin : begin + decisions.num_sequences]
        begin += decisions.num_sequences
        played = list(strategy)
        played[p] = (1 - config.epsilon) * strategy[p] + config.epsilon * even
        odds = np.where(mover < 0, chance, 0)
        for q in range(2):
            odds = np.where(mover == q, played[q][histories.sequence[q]], odds)
        odds[0] = 1
        for here in histories.by_depth[1:]:
            odds[here] *= odds[histories.parent[here]]
        lengths.append(odds.sum())
    return float(np.mean(lengths))


def _variance(game: _Game, plan: Plan) -> Iterator[Row]:
    """Variance of sampled values at a late strategy, by baseline."""
    late = spiel_cr.solve(game.tree, "cfr+", 1000)
    for kind in _BASELINES:
        name = f"os-mccfr(baseline={kind})"
        row = game.row("variance", name)
        found = spiel_cr.estimate_variance(
            game.tree, name, late.average, samples=_VARIANCE_SAMPLES, learning=200_000
        )
        yield {
            **row,
            "samples": found.samples,
            "total": found.mean_total,
            "visiting": found.mean_visiting,
            "values": found.mean_values,
            "root": sum(found.root) / 2,
        }


_PARTS: dict[str, Callable[[_Game, Plan], Iterable[Row]]] = {
    "size": _size,
    "rates": _rates,
    "quality": _quality,
    "equal": _equal,
    "batch": _batch,
    "curves": _curves,
    "variance": _variance,
}


def _trajectories(name: str) -> int:
    """Of one iteration, for both players; 0 if it is full width."""
    if name.startswith("openspiel"):
        return 2
    config = parse_any(name)
    return 2 * config.batch if isinstance(config, MCCFRConfig) else 0


def _add_options(parser: Parser) -> None:
    parser.several("--parts", _PARTS, "what to measure")
    names = ", ".join(cfr.GAMES | _UNTUNED)
    words = f"of {names}; parts batch and curves take the first only, size its own"
    parser.games(_GAMES, words)
    words = "of part quality; any of spiel_cr or OpenSpiel that `compare` knows"
    parser.strings("--solvers", _JUDGED, words, metavar="SOLVER")
    parser.number("--seconds", 10.0, "budget of a solve; a fifth of it in part batch")
    words = "solves in part quality; at most 3 in parts equal and batch, 1 in curves"
    parser.number("--seeds", 5, words)
    parser.number("--repeats", 3, "windows in part rates")
    parser.number("--window", None, "seconds of one; default: a twentieth of --seconds")


def _check(options: argparse.Namespace) -> None:
    if options.markdown:
        image = image_path(options, "sampling.png")
        image.parent.mkdir(parents=True, exist_ok=True)
        plots.check(image)


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    plan = Plan(
        seconds=options.seconds,
        seeds=options.seeds,
        repeats=options.repeats,
        window=options.window or options.seconds / 20,
        batch_seconds=options.seconds / 5,
        batch_seeds=min(3, options.seeds),
        solvers=tuple(options.solvers),
    )
    shared = {"device": jax.default_backend(), "plan": plan._asdict()}
    for name in options.games:
        game = _Game(name)
        for part in options.parts:
            if part not in _OF_ONE_GAME or name == options.games[0]:
                for row in _PARTS[part](game, plan):
                    yield {**shared, **row}


def _failures(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if "missing" in row:
            yield f"{row['name']}, {row['algorithm']}: {row['missing']}"


def _group(row: Row) -> tuple[str, str]:
    """Parts of one game are of the one that was measured last."""
    return row["part"], "" if row["part"] in _OF_ONE_GAME else row["name"]


BENCHMARK = Benchmark(
    "sampling",
    "Measure spiel_cr's sampled solvers beside OpenSpiel's. With --markdown, pictures "
    "go to the folder img beside the page.",
    _add_options,
    _measure,
    sampling_tables.markdown,
    check=_check,
    finish=sampling_tables.draw,
    failures=_failures,
    group=_group,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
