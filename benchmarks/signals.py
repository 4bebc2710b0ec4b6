"""Signal games: how long they take, how that grows, and a river beside OpenSpiel.

OpenSpiel's solvers cannot take a river with ranges: they step into the impossible ones
of the 1 624 350 deals that `handReaches` makes, and stop with an error. So the range is
every hand of a deck, and decks grow. See docs/signals.md.
"""

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from math import comb
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import pyspiel

import spiel_cr
from benchmarks.document import Column, Panels, count, ratio, spaced
from benchmarks.frame import Benchmark, Option, Part, Picture, Row, Table, plan
from benchmarks.games import game_of, string_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.games.opening.estimate import estimate_histories
from spiel_cr.games.signals.form import form_of
from spiel_cr.games.signals.signal_loading import signal_game
from spiel_cr.policies.best_responses import nash_conv
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr


class Goal(NamedTuple):
    """NashConv to stop at, in the game's units, and those whose time is reported."""

    until: float
    marks: tuple[float, ...]


# Exploitability is half of NashConv: 0.1 % of a pot of 200, 0.5 % of one of 80.
GOALS = {
    "rhode_island": Goal(0.002, (1.0, 0.1, 0.02, 0.002)),
    "liars_dice2x5": Goal(1e-3, (0.1, 0.01, 1e-3)),
    "river": Goal(0.04, (4.0, 0.4)),
    "turn": Goal(0.08, (8.0, 0.8)),
}
# Chips; both players have put half of it in.
POT = 200
RIVER = (
    "universal_poker(betting=nolimit,numPlayers=2,numRounds=4,blind=100 50,"
    "firstPlayer=2 1 1 1,numSuits=4,numRanks={ranks},numHoleCards=2,"
    "numBoardCards=0 3 1 1,stack=2000 2000,bettingAbstraction={bets},"
    "potSize={pot},boardCards=2c3d5s2h4c)"
)
_BOARD, _SUITS = 5, 4
# Iterations of games that grow.
_GROWN = 400
# Trees with more histories are not compiled beside.
_MOST_COMPILED = 2_000_000
_DTYPES = ("float32", "float64")
OPTIONS = {
    "games": Option(tuple(GOALS), "what to solve", tuple(GOALS)),
    "decks": Option(
        ("3x2", "4x3", "6x3", "9x4", "13x4"),
        "ranks and suits of Rhode Island Hold'em, to see it grow",
    ),
    "dtype": Option("float32", "of what is solved", _DTYPES),
    "seconds": Option(900.0, "of iterating, at most, of each game"),
    "ranks": Option((4, 5, 6, 7, 13), "of the river's deck", range(4, 14)),
    "bets": Option(("fcpa", "fchpa"), "that the river allows", ("fc", "fcpa", "fchpa")),
    "river_seconds": Option(60.0, "for each solver of the river, setting up included"),
}


def measure_solve(game: str, dtype: str, seconds: float) -> Row:
    """Solves one game in its signal form by dcfr.

    Args:
      game: one of `GOALS`.
      dtype: of the solver.
      seconds: of iterating, at most.
    """
    goal = GOALS[game]
    began = time.perf_counter()
    result = spiel_cr.solve(
        string_of(game),
        "dcfr",
        spiel_cr.Goal(seconds=seconds, until=goal.until),
        layout=spiel_cr.Layout("signals"),
        dtype=dtype,
    )
    low, high = result.value_bounds()
    reached = {
        str(mark): [p.seconds for p in result.curve if p.nash_conv <= mark][:1]
        for mark in goal.marks
    }
    return {
        **_facts(result),
        "whole_seconds": time.perf_counter() - began,
        "nash_conv": high - low,
        "value_bounds": (low, high),
        "peak_bytes": peak_bytes(),
        "marks": reached,
        "curve": [[p.seconds, p.nash_conv] for p in result.curve],
    }


def measure_growth(deck: str, dtype: str) -> Row:
    """Solves Rhode Island Hold'em with one deck for a fixed number of iterations.

    Args:
      deck: ranks and suits, as "13x4".
      dtype: of the solver.
    """
    ranks, suits = deck.split("x")
    game = f"python_rhode_island_holdem(num_ranks={ranks},num_suits={suits})"
    result = spiel_cr.solve(
        game, "dcfr", _GROWN, layout=spiel_cr.Layout("signals"), dtype=dtype
    )
    row: Row = {
        **_facts(result),
        "infosets": sum(len(decisions) for decisions in result.laid_out()[0].decisions),
        "nash_conv": result.nash_conv(),
        "peak_bytes": peak_bytes(),
    }
    estimate = estimate_histories(game_of(game), rollouts=20)
    if estimate < _MOST_COMPILED:
        began = time.perf_counter()
        tree = spiel_cr.compile_game(game)
        walked = time.perf_counter() - began
        compiled = spiel_cr.solve(
            tree, "dcfr", _GROWN, layout=spiel_cr.Layout("compiled"), dtype=dtype
        )
        row["histories"] = len(tree.histories)
        row["compiled_build_seconds"] = walked
        row["compiled_each"] = compiled.seconds / compiled.iterations
        row["compiled_nash_conv"] = compiled.nash_conv()
    return row


def _facts(result: Any) -> Row:
    names = "iterations seconds build_seconds compile_seconds".split()
    facts = {name: getattr(result, name) for name in names}
    return {**facts, "each": result.seconds / result.iterations}


def river(ranks: int, bets: str) -> str:
    """The OpenSpiel string of a river.

    Args:
      ranks: of the deck, 4 to 13.
      bets: OpenSpiel's `bettingAbstraction`.
    """
    return RIVER.format(ranks=ranks, bets=bets, pot=POT)


def measure_river(ranks: int, bets: str, seconds: float) -> Row:
    """CFR+ of OpenSpiel and of this project on a river, one after the other.

    Args:
      ranks: of the deck.
      bets: that are allowed.
      seconds: for each, setting up included.
    """
    game, hands = river(ranks, bets), comb(_SUITS * ranks - _BOARD, 2)
    theirs = run_openspiel(game, seconds)
    # As many iterations, so that NashConv shows whether they are the same.
    ours = run_signals(game, seconds, theirs["iterations"])
    return {"hands": hands, "theirs": theirs, "ours": ours}


def run_openspiel(game: str, seconds: float) -> Row:
    """OpenSpiel's CFR+ in C++, in a process of its own, which is ended.

    Args:
      game: OpenSpiel string.
      seconds: for setting up and iterating; then as many again for the exact NashConv
        of the average policy, which else is None.

    Returns:
      Facts; no iterations if the first one did not end in time.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_iterate_openspiel, args=(game, seconds, theirs))
    process.start()
    theirs.close()
    row: Row = {"iterations": 0}
    try:
        ours.recv()  # Modules are loaded.
        start = time.perf_counter()
        while "nash_conv" not in row:
            limit = seconds if row["iterations"] == 0 else 2 * seconds
            if not ours.poll(max(0.0, start + limit - time.perf_counter())):
                break
            row.update(ours.recv())
    finally:
        process.kill()
        process.join()
    return {"nash_conv": None, **row}


def _iterate_openspiel(game: str, seconds: float, pipe: Connection) -> None:
    """Sends facts: when it begins, after setting up, after each iteration in time."""
    loaded = pyspiel.load_game(game)
    pipe.send({})
    start = time.perf_counter()
    solver = pyspiel.CFRPlusSolver(loaded)
    setup = time.perf_counter() - start
    pipe.send({"setup_seconds": setup, "peak_bytes": peak_bytes()})
    iterations, average = 0, 0.0
    # Another one only if it will be over in time, as far as one can tell.
    while time.perf_counter() - start + average < seconds:
        solver.evaluate_and_update_policy()
        iterations += 1
        average = (time.perf_counter() - start - setup) / iterations
        facts = {"iterations": iterations, "each": average, "peak_bytes": peak_bytes()}
        pipe.send(facts)
    pipe.send({"nash_conv": pyspiel.nash_conv(loaded, solver.average_policy())})


def run_signals(game: str, seconds: float, compared: int) -> Row:
    """CFR+ of this project on the signal form, in float64.

    Args:
      game: OpenSpiel string.
      seconds: for building the form, compiling and iterating.
      compared: after so many iterations NashConv is taken as well; 0: not. Its time
        does not count.
    """
    start = time.perf_counter()
    signals = signal_game(game)
    form = form_of(signals)
    solver = cfr.make_solver(form, config=find("cfr+", families=(CFR,)).config)
    setup, same = time.perf_counter() - start, None
    if compared:
        solver.run(compared)
        same = nash_conv(form, (solver.average(0), solver.average(1)))
    solver.run_until(time.perf_counter() + seconds - setup - solver.seconds)
    return {
        "signals": signals.num_signals(0)[0],
        "public_nodes": len(signals.betting),
        "setup_seconds": setup,
        "iterations": solver.iterations,
        "each": solver.seconds / solver.iterations,
        "compared_nash_conv": same,
        "nash_conv": nash_conv(form, (solver.average(0), solver.average(1))),
        "peak_bytes": peak_bytes(),
    }


def _curves(rows: Sequence[Row]) -> Panels:
    return {"NashConv of signal games, dcfr": {r["game"]: r["curve"] for r in rows}}


def _reached(row: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{mark}: {spaced(at[0]) if at else '–'}" for mark, at in row["marks"].items()
    )


def _milliseconds(name: str) -> Column:
    return lambda row: spaced(1e3 * row[name])


_SOLVED: dict[str, Column] = {
    "game": "{game}",
    "algorithm": "`dcfr`, {dtype}",
    "build, s": "{build_seconds:.1f}",
    "jit, s": "{compile_seconds:.1f}",
    "iterations": count("iterations"),
    "ms each": _milliseconds("each"),
    "NashConv reached after s of iterating": _reached,
    "NashConv": "{nash_conv:.2e}",
    "value, player 0": "{value_bounds[0]:+.5f} … {value_bounds[1]:+.5f}",
    "whole, s": "{whole_seconds:.0f}",
    "peak, GB": lambda row: f"{row['peak_bytes'] / 1e9:.2f}",
}
_GROWTH: dict[str, Column] = {
    "ranks x suits": "{deck}",
    "histories": count("histories"),
    "infosets of both": count("infosets"),
    "build, s": "{build_seconds:.1f}",
    "ms an iteration": _milliseconds("each"),
    "NashConv": "{nash_conv:.2e}",
    "peak, GB": lambda row: f"{row['peak_bytes'] / 1e9:.2f}",
    "compiled: build, s": "{compiled_build_seconds:.1f}",
    "ms an iteration then": _milliseconds("compiled_each"),
    "NashConv then": "{compiled_nash_conv:.2e}",
}
_RIVERS: dict[str, Column] = {
    "bets": "{bets}",
    "ranks": "{ranks}",
    "hands": "{hands}",
    "signals": "{ours[signals]}",
    "public nodes": "{ours[public_nodes]}",
    "OpenSpiel: iterations": "{theirs[iterations]}",
    "s each": "{theirs[each]:.2g}",
    "MB": lambda row: f"{row['theirs']['peak_bytes'] / 1e6:.0f}",
    "here: setting up, s": "{ours[setup_seconds]:.1f}",
    "s each (here)": "{ours[each]:.2g}",
    "MB (here)": lambda row: f"{row['ours']['peak_bytes'] / 1e6:.0f}",
    "times as fast": lambda row: ratio(row["theirs"]["each"], row["ours"]["each"]),
    "NashConv after as many iterations: OpenSpiel": "{theirs[nash_conv]}",
    "here": "{ours[compared_nash_conv]}",
    # Half of NashConv, the mean of both players' gains.
    "exploitability in the end, % of the pot": lambda row: (
        f"{50 * row['ours']['nash_conv'] / POT:.4f}"
    ),
}
BENCHMARK = Benchmark(
    "signals",
    "Measure signal games: Rhode Island Hold'em, liar's dice, rivers and turns.",
    "signals.md",
    OPTIONS,
    {
        "solve": Part(
            measure_solve,
            plan(game="games", dtype="dtype", seconds="seconds"),
            (Table("Solved.", _SOLVED),),
            (Picture("signals-convergence.png", "seconds of iterating", _curves),),
        ),
        "size": Part(
            measure_growth,
            plan(deck="decks", dtype="dtype"),
            (
                Table(
                    f"Rhode Island Hold'em by its deck, {_GROWN} iterations of `dcfr`.",
                    _GROWTH,
                ),
            ),
        ),
        "rivers": Part(
            measure_river,
            plan(bets="bets", ranks="ranks", seconds="river_seconds"),
            (Table("Rivers by signals and by OpenSpiel's CFR+.", _RIVERS),),
        ),
    },
)
