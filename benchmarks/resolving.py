"""NashConv of continually resolved strategies: games × algorithms × iterations a solve.

Run `python -m benchmarks.resolving --help`. docs/resolving.md has the table.
"""

import argparse
import itertools
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import jax
from spiel_cr.eval.judging import python_judge

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from benchmarks import conditions, document

_BUNDLED = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=true,num_cards={},players=2,"
    "points_order=ascending,returns_type=win_loss))"
)

# Names in tables, and the OpenSpiel strings.
GAMES = {
    "kuhn_poker": "kuhn_poker",
    "leduc_poker": "leduc_poker",
    "python_leduc_poker": "python_leduc_poker",
    "goofspiel, 4 cards (bundled)": _BUNDLED.format(4),
    "goofspiel, 5 cards (bundled)": _BUNDLED.format(5),
    "python_ii_goofspiel(num_cards=4)": "python_ii_goofspiel(num_cards=4)",
    "liars_dice 1×4": "liars_dice(numdice=1,dice_sides=4)",
    "princess and monster, horizon 4": "python_princess_and_monster(horizon=4)",
    "princess and monster, horizon 5": "python_princess_and_monster(horizon=5)",
    "latent tic-tac-toe": "python_latent_tic_tac_toe(conflict=keep)",
    "rock_paper_scissors(5)": "python_rock_paper_scissors(num_actions=5)",
}

MARKS = document.Marks("<!-- resolving table -->", "<!-- end of resolving table -->")

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures all combinations."""
    options = _parse(arguments)
    facts = conditions.facts()
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with out.open("w") as file:
        for combination in itertools.product(
            options.games, options.algorithms, options.values, options.iterations
        ):
            row = {**facts, **measure(*combination)}
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
            print(*combination, f"{row['nash_conv']:.2e}", file=sys.stderr, flush=True)
    text = markdown(rows)
    print(text)
    if options.markdown:
        document.write(options.markdown, text, MARKS)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.resolving", description=__doc__.splitlines()[0]
    )
    default_games = [name for name in GAMES if "tic-tac-toe" not in name]
    parser.add_argument(
        "--games", nargs="+", choices=list(GAMES), default=default_games
    )
    parser.add_argument("--algorithms", nargs="+", default=["cfr+", "pdcfr+"])
    parser.add_argument("--iterations", nargs="+", type=int, default=[100, 500, 2000])
    parser.add_argument("--values", nargs="+", default=["iterates"])
    parser.add_argument(
        "--out",
        default="out/benchmarks/resolving.jsonl",
        help="JSON lines replace this file (default out/benchmarks/resolving.jsonl)",
    )
    document.add_option(parser, MARKS)
    return parser.parse_args(arguments)


def measure(
    name: str, algorithm: str, values: spiel_cr.OpponentValues, iterations: int
) -> Row:
    """Resolves one game; NashConv by OpenSpiel's exact tool.

    Args:
      name: one of `GAMES`.
      algorithm: solver of every solve.
      values: where the opponent's values come from, as in `spiel_cr.resolve`.
      iterations: of every solve.
    """
    result = spiel_cr.resolve(
        GAMES[name], iterations, algorithm, opponent_values=values
    )
    verdict = python_judge.judge(result.tree.game, result.average_policy())
    return {
        "name": name,
        "game": GAMES[name],
        "algorithm": algorithm,
        "iterations": iterations,
        "opponent_values": values,
        # Resolving a whole game is deterministic.
        "seed": None,
        "dtype": "float64",
        "device": jax.default_backend(),
        "nash_conv": verdict.nash_conv,
        "game_value": verdict.game_value,
        "solves": result.solves,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "build_seconds": result.build_seconds,
    }


def markdown(rows: Sequence[Row]) -> str:
    """A line for each game and algorithm, a column for each number of iterations."""
    counts = sorted({row["iterations"] for row in rows})
    lines: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        label = row["algorithm"]
        if row["opponent_values"] != "iterates":
            label += f", values of {row['opponent_values']}"
        cells = lines.setdefault((row["name"], label), {})
        cells[row["iterations"]] = f"{row['nash_conv']:.1e}"
    head = ["game", "algorithm", *(str(count) for count in counts)]
    body = [
        [*names, *(cells.get(count, "–") for count in counts)]
        for names, cells in lines.items()
    ]
    measured = conditions.sentence(rows[0], (row["device"] for row in rows))
    return f"{measured}\n\n{document.grid(head, body, labels=2)}"


if __name__ == "__main__":
    sys.exit(main())
