"""NashConv of continually resolved strategies: games × algorithms × iterations a solve.

Run as `python -m benchmarks.resolving`; writes JSON lines, and a Markdown table into
the marked section of a document.
"""

import argparse
import itertools
import json
import pathlib

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from eval import judge

_BUNDLED = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=true,num_cards={},players=2,"
    "points_order=ascending,returns_type=win_loss))"
)
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
_MARKS = ("<!-- resolving table -->", "<!-- end of resolving table -->")


def measure(
    game: str, algorithm: str, iterations: int, values: spiel_cr.OpponentValues
) -> dict[str, object]:
    """Resolves one game; NashConv by OpenSpiel's exact tool."""
    result = spiel_cr.resolve(game, iterations, algorithm, opponent_values=values)
    verdict = judge.judge(result.tree.game, result.average_policy())
    return {
        "game": game,
        "algorithm": algorithm,
        "iterations": iterations,
        "opponent_values": values,
        "nash_conv": verdict.nash_conv,
        "game_value": verdict.game_value,
        "solves": result.solves,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "build_seconds": result.build_seconds,
    }


def table(rows: list[dict[str, object]]) -> str:
    """Markdown: a line for each game and algorithm, a column for each iterations."""
    counts = sorted({int(str(row["iterations"])) for row in rows})
    lines = [
        "| game | algorithm | " + " | ".join(f"{n}" for n in counts) + " |",
        "|---|---|" + "---|" * len(counts),
    ]
    names = {string: name for name, string in GAMES.items()}
    keys = dict.fromkeys(
        (row["game"], row["algorithm"], row["opponent_values"]) for row in rows
    )
    for game, algorithm, values in keys:
        cells = {
            row["iterations"]: f"{row['nash_conv']:.1e}"
            for row in rows
            if (row["game"], row["algorithm"], row["opponent_values"])
            == (game, algorithm, values)
        }
        label = algorithm if values == "iterates" else f"{algorithm}, values of average"
        found = " | ".join(cells.get(n, "") for n in counts)
        lines.append(f"| {names.get(str(game), game)} | {label} | {found} |")
    return "\n".join(lines)


def main() -> None:
    """Runs all combinations."""
    parser = argparse.ArgumentParser(description=__doc__)
    everything = [name for name in GAMES if "tic-tac-toe" not in name]
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=everything)
    parser.add_argument("--algorithms", nargs="+", default=["cfr+", "pdcfr+"])
    parser.add_argument("--iterations", nargs="+", type=int, default=[100, 500, 2000])
    parser.add_argument("--values", nargs="+", default=["iterates"])
    parser.add_argument("--out", default="out/benchmarks/resolving.jsonl")
    parser.add_argument("--markdown", help="document whose marked table to replace")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with out.open("w") as file:
        for name, algorithm, values, iterations in itertools.product(
            arguments.games,
            arguments.algorithms,
            arguments.values,
            arguments.iterations,
        ):
            row = measure(GAMES[name], algorithm, iterations, values)
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
            print(f"{name}: {algorithm} {values} {iterations}: {row['nash_conv']:.2e}")
    if arguments.markdown:
        document = pathlib.Path(arguments.markdown)
        before, rest = document.read_text().split(_MARKS[0])
        after = rest.split(_MARKS[1])[1]
        document.write_text(f"{before}{_MARKS[0]}\n{table(rows)}\n{_MARKS[1]}{after}")


if __name__ == "__main__":
    main()
