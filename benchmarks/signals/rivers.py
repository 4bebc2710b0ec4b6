"""A no-limit river by signals and by OpenSpiel's own CFR+, side by side.

Run `python -m benchmarks.signals.rivers --help`. docs/signals.md says what is measured.

OpenSpiel's solvers cannot take a river with ranges: they step into the impossible ones
of the 1 624 350 deals that `handReaches` makes, and stop with an error. So the range is
every hand of a deck, and decks grow.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from math import comb
from multiprocessing.connection import Connection

import pyspiel

from benchmarks import frame
from benchmarks.document import Column, ratio, table
from benchmarks.frame import Row
from spiel_cr.cfr import cfr
from spiel_cr.cfr.config import parse_algorithm
from spiel_cr.common.memory import peak_bytes
from spiel_cr.policies.best_responses import nash_conv
from spiel_cr.signals.form import form_of
from spiel_cr.signals.loading import signal_game

# Chips; both players have put half of it in.
POT = 200
RIVER = (
    "universal_poker(betting=nolimit,numPlayers=2,numRounds=4,blind=100 50,"
    "firstPlayer=2 1 1 1,numSuits=4,numRanks={ranks},numHoleCards=2,"
    "numBoardCards=0 3 1 1,stack=2000 2000,bettingAbstraction={bets},"
    "potSize={pot},boardCards=2c3d5s2h4c)"
)
BETS = "fc", "fcpa", "fchpa"
# The board's ranks are there from four on.
RANKS = range(4, 14)
OPENSPIEL, SIGNALS = "OpenSpiel's CFR+", "cfr+ on signals"
_BOARD, _SUITS = 5, 4


def river(ranks: int, bets: str) -> str:
    """The OpenSpiel string.

    Args:
      ranks: of the deck, 4 to 13.
      bets: OpenSpiel's `bettingAbstraction`.
    """
    return RIVER.format(ranks=ranks, bets=bets, pot=POT)


def _add_options(parser: frame.Parser) -> None:
    names = [str(ranks) for ranks in RANKS]
    parser.several("--ranks", names, "of the deck", ["4", "5", "6", "7", "13"])
    parser.several("--bets", BETS, "that are allowed", ["fcpa", "fchpa"])
    parser.number("--seconds", 60.0, "for each solver, setting up included")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for bets in options.bets:
        for ranks in map(int, options.ranks):
            frame.say(f"{bets}, {ranks} ranks")
            game, shared = river(ranks, bets), size(ranks, bets)
            theirs = run_openspiel(game, options.seconds)
            yield {**shared, "solver": OPENSPIEL, **theirs}
            # As many iterations, so that NashConv shows whether they are the same.
            ours = frame.in_a_process(
                run_signals, game, options.seconds, theirs["iterations"]
            )
            yield {**shared, "solver": SIGNALS, **ours}


def size(ranks: int, bets: str) -> Row:
    """Facts of the game before anything is solved."""
    cards = _SUITS * ranks - _BOARD
    hands = comb(cards, 2)
    return {
        "ranks": ranks,
        "bets": bets,
        "game": river(ranks, bets),
        "hands": hands,
        "deals": hands * comb(cards - 2, 2),
    }


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
    row: Row = {"iterations": 0, "setup_seconds": None, "seconds": None}
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
        done = time.perf_counter() - start - setup
        average = done / iterations
        facts = {"iterations": iterations, "seconds": done, "peak_bytes": peak_bytes()}
        pipe.send(facts)
    pipe.send({"nash_conv": pyspiel.nash_conv(loaded, solver.average_policy())})


def run_signals(game: str, seconds: float, compared: int) -> Row:
    """CFR+ of this project on the signal form, in float64.

    Args:
      game: OpenSpiel string.
      seconds: for building the form, compiling and iterating.
      compared: after so many iterations NashConv is taken as well; 0: not. Its time
        does not count.

    Returns:
      Facts; `seconds` are those of iterating.
    """
    start = time.perf_counter()
    signals = signal_game(game)
    form = form_of(signals)
    solver = cfr.make_solver(form, config=parse_algorithm("cfr+"))
    setup = time.perf_counter() - start

    def judged() -> float:
        return nash_conv(form, (solver.average(0), solver.average(1)))

    same = None
    if compared:
        solver.run(compared)
        same = judged()
    solver.run_until(time.perf_counter() + seconds - setup - solver.seconds)
    return {
        "signals": signals.num_signals(0)[0],
        "public_nodes": len(signals.betting),
        "decisions": int((signals.betting.player >= 0).sum()),
        "setup_seconds": setup,
        "iterations": solver.iterations,
        "seconds": solver.seconds,
        "compared": compared,
        "compared_nash_conv": same,
        "nash_conv": judged(),
        "peak_bytes": peak_bytes(),
    }


def markdown(rows: Sequence[Row]) -> str:
    """One table: a line per river."""
    lines = []
    for row in rows:
        if row["solver"] == SIGNALS:
            theirs = next(
                other
                for other in rows
                if other["game"] == row["game"] and other["solver"] == OPENSPIEL
            )
            lines.append(_side_by_side(theirs, row))
    columns: dict[str, Column] = {
        "bets": "{bets}",
        "ranks": "{ranks}",
        "hands": "{hands}",
        "signals": "{signals}",
        "public nodes": "{public_nodes}",
        "OpenSpiel: iterations": "{theirs}",
        "s each": "{their_each}",
        "MB": "{their_mb:.0f}",
        "here: setting up, s": "{setup:.1f}",
        "s each (here)": "{our_each}",
        "MB (here)": "{our_mb:.0f}",
        "times as fast": "{ratio}",
        "NashConv after as many iterations: OpenSpiel": "{their_nash_conv:.9f}",
        "here": "{same_nash_conv:.9f}",
        "exploitability in the end, % of the pot": "{exploitability:.4f}",
    }
    return table(lines, columns, labels=1)


def _side_by_side(theirs: Row, ours: Row) -> Row:
    """One line."""
    each = ours["seconds"] / ours["iterations"]
    line = {
        **ours,
        "theirs": theirs["iterations"],
        "their_mb": theirs["peak_bytes"] / 1e6 if "peak_bytes" in theirs else None,
        "their_nash_conv": theirs["nash_conv"],
        "setup": ours["setup_seconds"],
        "our_each": f"{each:.2g}",
        "our_mb": ours["peak_bytes"] / 1e6,
        "same_nash_conv": ours["compared_nash_conv"],
        # Half of NashConv, the mean of both players' gains.
        "exploitability": 50 * ours["nash_conv"] / POT,
    }
    if theirs["iterations"]:
        their_each = theirs["seconds"] / theirs["iterations"]
        line["their_each"] = f"{their_each:.2g}"
        line["ratio"] = ratio(their_each, each)
    return line


BENCHMARK = frame.Benchmark(
    name="signals.rivers",
    description=(__doc__ or "").splitlines()[0],
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables="rivers",
    page="signals.md",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
