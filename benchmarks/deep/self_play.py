"""Self-play by `mmd` and `ppo`: NashConv of last iterates, decisions and GFLOP/s.

Run `python -m benchmarks.deep.self_play --help`. docs/deep.md has the tables.
"""

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchmarks import frame
from benchmarks.deep import signal_judging
from benchmarks.document import Column, table
from benchmarks.frame import Row
from spiel_cr.common.memory import peak_bytes
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.deep.self_play.config import parse_self_play
from spiel_cr.deep.self_play.learning import SelfPlay
from spiel_cr.deep.tensors import stepped

# Points of a curve.
_POINTS = 10


class Case(NamedTuple):
    """A game and how it is measured.

    Attributes:
      game: OpenSpiel's string.
      decisions: of a run.
      judge: "compiled": played and judged compiled; "signals": played by its rules on
        arrays and judged in the form of signals, at the end only; "none": played by
        its rules, and not judged here.
    """

    game: str
    decisions: int
    judge: str


CASES = {
    "kuhn": Case("kuhn_poker", 2_400_000, "compiled"),
    "leduc": Case("leduc_poker", 10_000_000, "compiled"),
    "liar's dice 1x4": Case(
        "liars_dice(numdice=1,dice_sides=4)", 10_000_000, "compiled"
    ),
    "liar's dice 2x5": Case(
        "liars_dice(numdice=2,dice_sides=5)", 10_000_000, "signals"
    ),
    "phantom ttt": Case("phantom_ttt", 1_000_000, "none"),
    "dark hex 3x3": Case("dark_hex(board_size=3)", 1_000_000, "none"),
}
ALGORITHMS = ("mmd", "ppo")


def _add_options(parser: frame.Parser) -> None:
    parser.several("--games", CASES, "and their budgets")
    parser.strings("--algorithms", ALGORITHMS, "presets with settings")
    parser.number("--seeds", 3, "runs of each game and algorithm")
    parser.number("--first-seed", 0, "of the first run", least=0)
    parser.number("--decisions", None, "of a run, in place of the game's", kind=float)


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for name in options.games:
        for algorithm in options.algorithms:
            for seed in range(options.seeds):
                yield frame.in_a_process(
                    measure,
                    name,
                    algorithm,
                    options.first_seed + seed,
                    None if options.decisions is None else int(options.decisions),
                )


def measure(name: str, algorithm: str, seed: int, decisions: int | None) -> Row:
    """One run, and what its last iterate is worth; seconds are the processor's.

    Args:
      name: of a case.
      algorithm: a preset with settings.
      seed: of the run.
      decisions: of it, and of its schedule; None: the case's.
    """
    frame.one_thread()
    case = CASES[name]
    decisions = decisions or case.decisions
    config = dataclasses.replace(parse_self_play(algorithm), schedule=decisions)
    if case.judge == "compiled":
        solver = SelfPlay(compile_game(case.game), config, seed=seed)
        curve = _curve(solver, decisions, solver.nash_conv, _POINTS)
    else:
        source, knowledge = stepped(case.game)
        solver = SelfPlay(source, config, seed=seed, knowledge=knowledge)
        curve = _curve(solver, decisions, lambda: float("nan"), 1)
        if case.judge == "signals":
            judged = signal_judging.nash_conv(case.game, solver.strategy)
            curve = [(solver.decisions, judged)]
    play, learn = (solver.processor_seconds_of[what] for what in ("play", "learn"))
    return {
        "name": name,
        "game": case.game,
        "algorithm": algorithm,
        "settings": dataclasses.asdict(solver.config),
        "seed": seed,
        "decisions": solver.decisions,
        "iterations": solver.iterations,
        "curve": [list(point) for point in curve],
        "nash_conv": None if case.judge == "none" else curve[-1][1],
        "play_seconds": play,
        "learn_seconds": learn,
        "decisions_per_second": solver.decisions / play,
        "gflops": solver.flops / learn / 1e9,
        "peak_bytes": peak_bytes(),
    }


def _curve(
    solver: SelfPlay, decisions: int, judged: Callable[[], float], points: int
) -> list[tuple[int, float]]:
    """Decisions and NashConv on the way, at equal distances."""
    curve = []
    for point in range(1, points + 1):
        solver.run_to(decisions * point // points)
        curve.append((solver.decisions, judged()))
    return curve


def markdown(rows: Sequence[Row]) -> str:
    """Tables: a line per game and algorithm, medians of the seeds."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        # Runs go on to the end of their matches.
        budget = round(row["decisions"], -5)
        key = row["name"], row["algorithm"], budget
        groups.setdefault(key, []).append(row)
    lines = []
    for (name, algorithm, _), own in groups.items():
        found = sorted(row["nash_conv"] for row in own if row["nash_conv"] is not None)
        lines.append(
            {
                "name": name,
                "algorithm": algorithm,
                "found": found,
                "load": max(row["load"] for row in own),
                **{
                    key: statistics.median(row[key] for row in own)
                    for key in (
                        "decisions",
                        "play_seconds",
                        "learn_seconds",
                        "decisions_per_second",
                        "gflops",
                        "peak_bytes",
                    )
                },
            }
        )
    columns: dict[str, Column] = {
        "game": "{name}",
        "algorithm": "`{algorithm}`",
        "decisions": lambda row: f"{row['decisions'] / 1e6:.1f} M",
        "NashConv, median": lambda row: (
            f"{statistics.median(row['found']):.4f}" if row["found"] else "–"
        ),
        "of the seeds": lambda row: ", ".join(f"{x:.4f}" for x in row["found"]) or "–",
        "play, s": "{play_seconds:.0f}",
        "learning, s": "{learn_seconds:.0f}",
        "decisions/s of play": "{decisions_per_second:,.0f}",
        "GFLOP/s of learning": "{gflops:.0f}",
        "peak memory, MB": lambda row: f"{row['peak_bytes'] / 1e6:.0f}",
    }
    return table(lines, columns, labels=2)


BENCHMARK = frame.Benchmark(
    name="deep.self_play",
    description="Trains mmd and ppo in self-play and judges their last iterates.",
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables="deep self-play",
    page="deep.md",
    group=lambda row: (row["name"], row["algorithm"], row["seed"]),
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
