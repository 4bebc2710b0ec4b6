"""NashConv of resolved strategies: games × algorithms × iterations per solve.

Run `python -m benchmarks.resolving --help`. docs/resolving.md has the table.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence

import jax

import spiel_cr
from benchmarks.document import grid
from benchmarks.frame import Benchmark, Parser, Row, goofspiel, say, sentence
from spiel_cr.eval.judging import python_judge

_BUNDLED = "points_order=ascending,returns_type=win_loss"

# Names in tables, and the OpenSpiel strings.
GAMES = {
    "kuhn_poker": "kuhn_poker",
    "leduc_poker": "leduc_poker",
    "python_leduc_poker": "python_leduc_poker",
    "goofspiel, 4 cards (bundled)": goofspiel(4, _BUNDLED),
    "goofspiel, 5 cards (bundled)": goofspiel(5, _BUNDLED),
    "python_ii_goofspiel(num_cards=4)": "python_ii_goofspiel(num_cards=4)",
    "liars_dice 1×4": "liars_dice(numdice=1,dice_sides=4)",
    "princess and monster, horizon 4": "python_princess_and_monster(horizon=4)",
    "princess and monster, horizon 5": "python_princess_and_monster(horizon=5)",
    "latent tic-tac-toe": "python_latent_tic_tac_toe(conflict=keep)",
    "rock_paper_scissors(5)": "python_rock_paper_scissors(num_actions=5)",
}
# What resolving took, as `SolveResult` names it.
_TOOK = ("solves", "seconds", "compile_seconds", "build_seconds")


def _add_options(parser: Parser) -> None:
    known = list(GAMES)
    default = [name for name in known if "tic-tac-toe" not in name]
    parser.several("--games", known, "what to resolve", default)
    parser.strings("--algorithms", ["cfr+", "pdcfr+"], "of every solve")
    parser.add_argument("--iterations", nargs="+", type=int, default=[100, 500, 2000])


def _measure_all(options: argparse.Namespace) -> Iterator[Row]:
    for combination in itertools.product(
        options.games, options.algorithms, options.iterations
    ):
        row = measure(*combination)
        say(f"{' '.join(map(str, combination))} {row['nash_conv']:.2e}")
        yield row


def measure(name: str, algorithm: str, iterations: int) -> Row:
    """Resolves one game; NashConv by OpenSpiel's exact tool.

    Args:
      name: one of `GAMES`.
      algorithm: solver of every solve.
      iterations: of every solve.
    """
    result = spiel_cr.resolve(GAMES[name], iterations, algorithm)
    verdict = python_judge.judge(result.tree.game, result.average_policy())
    return {
        "name": name,
        "game": GAMES[name],
        "algorithm": algorithm,
        "iterations": iterations,
        # Resolving a whole game is deterministic.
        "seed": None,
        "dtype": "float64",
        "device": jax.default_backend(),
        "nash_conv": verdict.nash_conv,
        "game_value": verdict.game_value,
        **{name: getattr(result, name) for name in _TOOK},
    }


def markdown(rows: Sequence[Row]) -> str:
    """A line for each game and algorithm, a column for each number of iterations."""
    counts = sorted({row["iterations"] for row in rows})
    lines: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        entries = lines.setdefault((row["name"], row["algorithm"]), {})
        entries[row["iterations"]] = f"{row['nash_conv']:.1e}"
    head = ["game", "algorithm", *(str(count) for count in counts)]
    body = [
        [*names, *(entries.get(count, "–") for count in counts)]
        for names, entries in lines.items()
    ]
    measured = sentence(rows[0], (row["device"] for row in rows))
    return f"{measured}\n\n{grid(head, body, labels=2)}"


BENCHMARK = Benchmark(
    "resolving",
    "NashConv of continually resolved strategies: games × algorithms × iterations.",
    _add_options,
    _measure_all,
    markdown,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
