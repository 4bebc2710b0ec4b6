"""Endgames in two phases: exact NashConv of the combination, over iterations.

Run `python -m benchmarks.signals.endgames --help`. docs/abstraction.md says what is
measured.
"""

import argparse
import pathlib
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np

import game_defs  # noqa: F401  registers the project's games
from benchmarks import frame
from benchmarks.document import Column, table
from benchmarks.frame import Row
from benchmarks.signals.abstraction import check_budgets, solve_among_buckets
from spiel_cr import gameshrink
from spiel_cr.abstraction.buckets import abstract, read_budget
from spiel_cr.abstraction.first_phase import check_down, early_rounds
from spiel_cr.eval.cli.solving.abstract import whole_nash_conv
from spiel_cr.resolving.public_endgames import GADGETS, Endgames
from spiel_cr.signals.game import SignalGame
from spiel_cr.signals.loading import signal_game

GAME = "python_rhode_island_holdem"
BUDGETS = "13-25-125", "13-100-750"
METHOD = "potential-aware(distance=earth-movers)"
# How the first phase is solved: the whole game of buckets; or all but its last round,
# valued as if nobody bet any more.
ABSTRACTION, ROLLOUTS = "abstraction", "rollouts"
LOOKS = "10", "25", "50", "100", "200"


def _add_options(parser: frame.Parser) -> None:
    parser.strings("--games", [GAME], "of several rounds")
    parser.strings("--budgets", BUDGETS, "buckets by round, of the first phase")
    parser.several("--first", (ABSTRACTION, ROLLOUTS), "how the first phase is solved")
    parser.several("--gadgets", GADGETS, "cfrd is safe, unsafe believes")
    parser.strings("--algorithms", ["cfr+"], "of the CFR family, for endgames")
    parser.strings("--looks", LOOKS, "iterations of endgames, ascending")
    parser.choice("--dtype", ("float32", "float64"), "float32", "of endgames")
    parser.number("--until", 0.02, "NashConv among buckets at which phase one stops")
    parser.number("--seconds", 900.0, "of the first phase, at most")
    parser.add_argument(
        "--checkpoints",
        type=pathlib.Path,
        metavar="DIR",
        help="a folder; endgames go on from the files that are there",
    )


def _check(options: argparse.Namespace) -> None:
    read_looks(options.looks)
    check_budgets(options)


def read_looks(texts: Sequence[str]) -> list[int]:
    """Iterations at which is looked.

    Raises:
      ValueError: they are no whole numbers of at least 1 that rise.
    """
    try:
        looks = [int(text) for text in texts]
    except ValueError:
        looks = [0]
    if looks[0] < 1 or any(b <= a for a, b in zip(looks, looks[1:], strict=False)):
        raise ValueError(
            f"looks={' '.join(texts)} must be whole numbers of at least 1 that rise; "
            "give such as 10 50 100"
        )
    return looks


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for game in options.games:
        for budget in options.budgets:
            for first in options.first:
                for algorithm in options.algorithms:
                    for gadget in options.gadgets:
                        words = game, budget, first, gadget, algorithm
                        frame.say(", ".join(words))
                        found = frame.in_a_process(
                            *(solve_both_phases, *words),
                            *(read_looks(options.looks), options.dtype),
                            *(options.until, options.seconds, options.checkpoints),
                        )
                        yield from found["rows"]


def solve_both_phases(
    game: str,
    budget: str,
    first: str,
    gadget: str,
    algorithm: str,
    looks: Sequence[int],
    dtype: str,
    until: float,
    seconds: float,
    checkpoints: pathlib.Path | None,
) -> Row:
    """Solves the first phase, then all endgames, and judges what comes out.

    Args:
      game: OpenSpiel string.
      budget: buckets by round, as "13-25-125".
      first: "abstraction" or "rollouts".
      gadget: of `public_endgames`.
      algorithm: of the CFR family, for endgames.
      looks: iterations, ascending, at which NashConv is asked for.
      dtype: of endgames.
      until: NashConv among buckets at which the first phase stops, in the game's units.
      seconds: of the first phase, at most.
      checkpoints: folder of endgames that were begun; None: none.

    Returns:
      `rows`: a fact for the first phase, with 0 iterations, and for each look that the
      checkpoint is not past. `cpu_seconds` are of `timed_iterations`, this run's own.
    """
    signals = signal_game(game)
    began = time.process_time()
    behaviour, of_buckets = first_phase(signals, budget, first, until, seconds)
    shared: Row = {
        "game": game,
        "budget": budget,
        "first": first,
        "gadget": gadget,
        "algorithm": algorithm,
        "dtype": dtype,
        "first_cpu_seconds": time.process_time() - began,
        "nash_conv_of_first_phase": of_buckets,
    }
    rows = [
        {**shared, "iterations": 0, "nash_conv": whole_nash_conv(signals, behaviour)}
    ]
    checkpoint = None
    if checkpoints is not None:
        name = "-".join((game, budget, first, gadget, algorithm, dtype))
        checkpoint = checkpoints / f"{''.join(filter(_plain, name))}.npz"
    began = time.process_time()
    endgames = Endgames(
        *(signals, behaviour),
        gadget=gadget,
        algorithm=algorithm,
        dtype=dtype,
        planned=looks[-1],
        progress=True,
        checkpoint=checkpoint,
    )
    shared["endgames"] = list(endgames.counts)
    shared["build_cpu_seconds"] = time.process_time() - began
    spent = 0.0
    # Of a checkpoint; a run that was stopped may have ended between two layers.
    before = [layer.solver.iterations for layer in endgames.layers]
    for look in looks:
        if look < max(before):
            frame.say(f"{look} iterations: the checkpoint has {max(before)} already")
            continue
        began = time.process_time()
        endgames.run_to(look, progress=True)
        spent += time.process_time() - began
        nash_conv = whole_nash_conv(signals, endgames.behaviour())
        row = {
            "iterations": look,
            "timed_iterations": look - float(np.mean(before)),
            "cpu_seconds": spent,
            "nash_conv": nash_conv,
        }
        frame.say(f"{look} iterations, {spent:.0f} CPU s: NashConv {nash_conv:.4f}")
        rows.append({**shared, **row})
    return {"rows": rows}


def first_phase(
    signals: SignalGame, budget: str, first: str, until: float, seconds: float
) -> tuple[tuple[np.ndarray, np.ndarray], float]:
    """A strategy of the whole game, for each player float [S], to begin with.

    Args:
      signals: the whole game.
      budget: see `solve_both_phases` for this and what follows.
      first: how.
      until: when to stop.
      seconds: at most.

    Returns:
      Behaviours; NashConv in the game of buckets that was solved, in the game's units.
    """
    buckets, solved = read_budget(budget), signals
    if first == ROLLOUTS:
        solved = early_rounds(signals, signals.num_rounds - 1)
        buckets = buckets[:-1]
    partition = abstract(solved, buckets, METHOD).partition
    smaller = gameshrink.coarsen(solved, partition)
    result = solve_among_buckets(smaller, until, seconds)
    low, high = result.value_bounds()
    lifted = gameshrink.lift(solved, partition, result.average)
    if first == ROLLOUTS:
        lifted = check_down(signals, lifted)
    return lifted, high - low


def _plain(letter: str) -> bool:
    return letter.isalnum() or letter in "-_=+"


def markdown(rows: Sequence[Row]) -> str:
    """A line per first phase, gadget and algorithm, with a column per look."""
    lines: dict[tuple[str, ...], Row] = {}
    for row in rows:
        line = lines.setdefault(_group(row), dict(row))
        line[f"nash_conv_{row['iterations']}"] = row["nash_conv"]
        line.update({k: row[k] for k in ("build_cpu_seconds", "endgames") if k in row})
        if timed := row.get("timed_iterations", row["iterations"]):
            line["each"] = row["cpu_seconds"] / timed
    looks = sorted({row["iterations"] for row in rows if row["iterations"]})
    columns: dict[str, Column] = {
        "game": "{game}",
        "phase one": "{first}, {budget}",
        "endgames": lambda row: "safe" if row["gadget"] == "cfrd" else row["gadget"],
        "algorithm": "{algorithm}",
        "how many": lambda row: " + ".join(f"{n:,}" for n in row["endgames"]),
        "building, CPU s": "{build_cpu_seconds:.0f}",
        "iteration, CPU s": "{each:.2f}",
        "one phase": "{nash_conv_0:.4f}",
    }
    for look in looks:
        columns[f"{look} iterations"] = f"{{nash_conv_{look}:.4f}}"
    text = table(list(lines.values()), columns, labels=4)
    return f"{frame.sentence(rows[0], ['cpu'])}\n\n{text}"


def _group(row: Row) -> tuple[str, ...]:
    return tuple(row[k] for k in ("game", "budget", "first", "gadget", "algorithm"))


BENCHMARK = frame.Benchmark(
    name="signals.endgames",
    description=(__doc__ or "").splitlines()[0],
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables="endgames",
    page="abstraction.md",
    check=_check,
    group=_group,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
