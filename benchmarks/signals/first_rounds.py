"""Limit hold'em's first rounds in buckets: what clustering costs, and what it loses.

Run `python -m benchmarks.signals.first_rounds --help`. docs/abstraction.md says what is
measured.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks import frame
from benchmarks.document import Column, table
from benchmarks.frame import Row
from benchmarks.signals.abstraction import check_budgets, solve_among_buckets
from spiel_cr import gameshrink
from spiel_cr.abstraction.buckets import abstract, read_budget
from spiel_cr.abstraction.first_phase import first_rounds
from spiel_cr.common.memory import peak_bytes
from spiel_cr.eval.cli.solving.abstract import lifted_nash_conv
from spiel_cr.signals.game import SignalGame

GAME = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=10 5,"
    "firstPlayer=2 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,"
    "raiseSize=10 10 20 20,maxRaises=3 4 4 4)"
)
BUDGETS = "5", "20", "80", "169", "10-100", "20-400", "50-1000"
METHODS = "win-probability", "potential-aware", "potential-aware(distance=l2)"


def _add_options(parser: frame.Parser) -> None:
    parser.add_argument("--game", default=GAME, help="whose first rounds are taken")
    parser.strings("--budgets", BUDGETS, "buckets by round, of one round or more")
    parser.strings("--methods", METHODS, "of clustering")
    parser.number("--until", 0.01, "NashConv among buckets at which solving stops")
    parser.number("--seconds", 900.0, "of solving, at most, for each")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    budgets = {text: read_budget(text) for text in options.budgets}
    for rounds in sorted({len(budget) for budget in budgets.values()}):
        frame.say(f"comparing hands, rounds={rounds}")
        began = time.process_time()
        game = first_rounds(options.game, rounds, progress=True)
        building = time.process_time() - began
        for text, budget in budgets.items():
            for method in options.methods if len(budget) == rounds else ():
                frame.say(f"{text}, {method}")
                yield {
                    "game": options.game,
                    "rounds": rounds,
                    "budget": text,
                    "building_seconds": building,
                    **solve_buckets(game, text, method, options.until, options.seconds),
                }


def solve_buckets(
    game: SignalGame, budget: str, method: str, until: float, seconds: float
) -> Row:
    """Makes buckets and the smaller game, solves it by dcfr in float32, and judges it.

    Args:
      game: the first rounds.
      budget: as "10-100".
      method: of `spiel_cr.abstraction`.
      until: NashConv among buckets, in the game's units.
      seconds: of solving, at most.

    Returns:
      Both NashConvs in chips; seconds are of the processor, memory in bytes.
    """
    times = [time.process_time()]

    def took() -> float:
        times.append(time.process_time())
        return times[-1] - times[-2]

    partition = abstract(game, read_budget(budget), method).partition
    clustering = took()
    smaller = gameshrink.coarsen(game, partition)
    summing = took()
    result = solve_among_buckets(smaller, until, seconds)
    low, high = result.value_bounds()
    solving = took()
    nash_conv = lifted_nash_conv(game, partition, result.average)
    return {
        "method": method,
        "signals": game.num_signals(0),
        "buckets": partition.num_classes(0),
        "clustering_seconds": clustering,
        "summing_seconds": summing,
        "solving_seconds": solving,
        "judging_seconds": took(),
        "iterations": result.iterations,
        "value": [low, high],
        "nash_conv_of_buckets": high - low,
        "nash_conv": nash_conv,
        "peak_bytes": peak_bytes(),
    }


def markdown(rows: Sequence[Row]) -> str:
    """A line per budget and method."""
    columns: dict[str, Column] = {
        "rounds": "{rounds}",
        "budget": "{budget}",
        "method": "{method}",
        "buckets": lambda row: "-".join(f"{n:,}" for n in row["buckets"]),
        "comparing hands, CPU s": "{building_seconds:.0f}",
        "clustering": "{clustering_seconds:.1f}",
        "smaller game": "{summing_seconds:.1f}",
        "solving": "{solving_seconds:.1f}",
        "judging": "{judging_seconds:.1f}",
        "peak, GB": lambda row: f"{row['peak_bytes'] / 1e9:.1f}",
        "iterations": "{iterations}",
        "NashConv among buckets": "{nash_conv_of_buckets:.4f}",
        "in the whole game": "{nash_conv:.4f}",
    }
    return f"{frame.sentence(rows[0], ['cpu'])}\n\n{table(rows, columns, labels=4)}"


BENCHMARK = frame.Benchmark(
    name="signals.first_rounds",
    description=(__doc__ or "").splitlines()[0],
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables="first rounds",
    page="abstraction.md",
    check=check_budgets,
    group=lambda row: (row["game"], row["budget"], row["method"]),
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
