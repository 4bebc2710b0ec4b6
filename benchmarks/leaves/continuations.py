"""Multi-valued states: what k continuations of the opponent are worth at a cut.

Run `python -m benchmarks.leaves.continuations --help`. docs/leaves.md says what is
measured.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

import spiel_cr
from benchmarks import frame
from benchmarks.document import Column, table
from benchmarks.frame import Row
from benchmarks.leaves.ranges import Plan
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.lookahead import Continuations
from spiel_cr.lookahead.leaf_strings import ContinuationKind, DepthUnit
from spiel_cr.policies.best_responses import value_bounds

PLANS = {
    "leduc": Plan("leduc_poker", 1, "rounds"),
    "leduc 2 moves": Plan("leduc_poker", 2),
    "II-goofspiel 4": Plan("python_ii_goofspiel(num_cards=4)", 2),
    "II-goofspiel 4 3 moves": Plan("python_ii_goofspiel(num_cards=4)", 3),
    "liar's dice 1x4": Plan("liars_dice(numdice=1,dice_sides=4)", 2),
    "leduc 5 ranks": Plan("python_leduc_poker(num_ranks=5)", 1, "rounds"),
    "II-goofspiel 5": Plan("python_ii_goofspiel(num_cards=5)", 2),
    "liar's dice 1x5": Plan("liars_dice(numdice=1,dice_sides=5)", 2),
}
KINDS = ("responses", "biased")
# An exact equilibrium, as a blueprint.
_EXACT = "lp"


def _add_options(parser: frame.Parser) -> None:
    parser.several("--games", PLANS, "and their cuts")
    parser.several("--kinds", KINDS, "of continuations")
    parser.strings("--k", ["1", "2", "4", "8"], "numbers of continuations")
    words = f"iterations of cfr+; ALGORITHM@ITERATIONS; or {_EXACT}: an equilibrium"
    parser.strings("--blueprints", ["100"], words)
    parser.number("--iterations", 1000, "of cfr+, of each solve")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for name in options.games:
        for blueprint in options.blueprints:
            frame.say(f"{name}, blueprint {blueprint}")
            numbers = [int(k) for k in options.k]
            found = frame.in_a_process(
                measure, name, blueprint, options.kinds, numbers, options.iterations
            )
            yield from found["rows"]


def measure(
    name: str,
    blueprint: str,
    kinds: Sequence[ContinuationKind],
    numbers: Sequence[int],
    iterations: int,
) -> Row:
    """Resolves a game in both roles for each k, and judges the strategies.

    Args:
      name: of the game, one of `PLANS`.
      blueprint: iterations of CFR+, an algorithm of `solve` and its iterations, as in
        "os-mccfr@1000", or `_EXACT`.
      kinds: of continuations.
      numbers: of continuations, ascending.
      iterations: of each solve.

    Returns:
      As "rows" a row per kind.
    """
    plan = PLANS[name]
    tree = compile_game(plan.game, observations=True)
    if blueprint == _EXACT:
        start = spiel_cr.solve(tree, "lp")
    else:
        algorithm, _, count = blueprint.rpartition("@")
        start = spiel_cr.solve(tree, algorithm or "cfr+", int(count))
    low, high = value_bounds(tree.form, start.average)
    whole = spiel_cr.resolve(tree, "cfr+", iterations).nash_conv()
    rows = []
    unit: DepthUnit = "rounds" if plan.unit == "rounds" else "moves"
    for kind in kinds:
        row: Row = {
            "name": name,
            "game": plan.game,
            "depth": plan.depth,
            "unit": unit,
            "histories": len(tree.histories),
            "blueprint": blueprint,
            "blueprint_nash_conv": high - low,
            "kind": kind,
            "iterations": iterations,
            "whole": whole,
        }
        for k in numbers:
            leaf = Continuations(start.average, k, kind=kind)
            result = spiel_cr.resolve(
                tree, "cfr+", iterations, depth=plan.depth, depth_unit=unit, leaf=leaf
            )
            row[f"k{k}"] = result.nash_conv()
        rows.append(row)
    return {"rows": rows}


def markdown(rows: Sequence[Row]) -> str:
    """A line per game, blueprint and kind; a column per number of continuations."""
    numbers = sorted({int(key[1:]) for row in rows for key in row if _is_k(key)})
    lines = []
    for row in rows:
        unit = "round" if row["unit"] == "rounds" else "moves"
        cut = f"{row['depth']} {unit}"
        lines.append({**row, "cut": cut, "name": row["name"].removesuffix(f" {cut}")})
    columns: dict[str, Column] = {
        "game": "{name}",
        "lookahead": "{cut}",
        "blueprint": "{blueprint}",
        "continuations": "{kind}",
        "blueprint's NashConv": "{blueprint_nash_conv:.2g}",
    }
    for k in numbers:
        columns[f"k = {k}"] = f"{{k{k}:.2g}}"
    columns["no cut"] = "{whole:.2g}"
    return table(lines, columns, labels=4)


def _is_k(key: str) -> bool:
    return key[0] == "k" and key[1:].isdigit()


BENCHMARK = frame.Benchmark(
    name="leaf_continuations",
    description="Depth-limited resolving with continuations for the opponent.",
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables="leaf_continuations",
    page="leaves.md",
    group=lambda row: (row["name"], row["blueprint"], row["kind"], row["iterations"]),
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
