"""A lookahead that ends: what the values there cost, by how they know the ranges.

Run `python -m benchmarks.leaves.ranges --help`. docs/leaves.md says what is measured.
"""

import argparse
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import spiel_cr
from benchmarks import frame
from benchmarks.document import Column, table
from benchmarks.frame import Row, goofspiel
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.lookahead.exact import ConstantValues, ExactValues
from spiel_cr.lookahead.leaf_strings import DepthUnit
from spiel_cr.lookahead.values import ValueFunction
from spiel_cr.policies.leaf_values import HistoryValue, PolicyValue


class Plan(NamedTuple):
    """A game and where the lookahead ends.

    Attributes:
      game: OpenSpiel string.
      depth: see `spiel_cr.resolve`.
      unit: likewise.
    """

    game: str
    depth: int
    unit: DepthUnit = "moves"


_WIN_LOSS = "points_order=descending,returns_type=win_loss"
PLANS = {
    "leduc": Plan("leduc_poker", 1, "rounds"),
    "goofspiel 5": Plan(goofspiel(5, _WIN_LOSS), 4, "moves_from_start"),
    "liar's dice 1x4": Plan("liars_dice(numdice=1,dice_sides=4)", 2),
    "liar's dice 1x5": Plan("liars_dice(numdice=1,dice_sides=5)", 2),
    "liar's dice 1x6": Plan("liars_dice(numdice=1,dice_sides=6)", 2),
}
# What is put where the lookahead ends, by the word in the tables.
LEAVES = {
    "none": "no cut: resolved to the end of the game",
    "exact": "exact solves at the ranges of each iteration",
    "network": "a counterfactual value network",
    "constant": "one expected utility per infoset",
    "equilibrium": "one number per history: an equilibrium's",
    "uniform": "one number per history: uniform play's",
}
# Of the equilibrium whose values are put at histories.
_EQUILIBRIUM = 2000


def _add_options(parser: frame.Parser) -> None:
    parser.several("--games", PLANS, "and their cuts")
    parser.several("--leaves", LEAVES, "at the cut")
    parser.strings("--iterations", ["100", "300", "1000"], "of each solve")
    parser.strings("--algorithm", ["cfr+"], "of each solve")
    parser.number("--inner", 200, "iterations of each exact solve")
    parser.add_argument(
        "--networks",
        metavar="DIR",
        help="of GAME.npz, made by benchmarks.leaves.training",
    )


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for name in options.games:
        for leaf in options.leaves:
            path = network_path(options.networks, name)
            if leaf == "network" and path is None:
                frame.say(f"{name}: no network")
                continue
            for algorithm in options.algorithm:
                for iterations in map(int, options.iterations):
                    row = frame.in_a_process(
                        measure, name, leaf, iterations, algorithm, options.inner, path
                    )
                    frame.say(f"{name}, {leaf}, {iterations}: {row['nash_conv']:.3g}")
                    yield row


def file_name(name: str) -> str:
    """A game's name without what files should not have."""
    return name.replace("'", "").replace(" ", "_")


def network_path(folder: str | None, name: str) -> str | None:
    """The file of a game's network; None: there is none."""
    if folder is None:
        return None
    path = pathlib.Path(folder, f"{file_name(name)}.npz")
    return str(path) if path.exists() else None


def measure(
    name: str, leaf: str, iterations: int, algorithm: str, inner: int, path: str | None
) -> Row:
    """Resolves a game in both roles and judges the strategy.

    Args:
      name: of the game, one of `PLANS`.
      leaf: one of `LEAVES`.
      iterations: of each solve.
      algorithm: of each solve.
      inner: iterations of each exact solve below the cut.
      path: of the network.
    """
    plan = PLANS[name]
    tree = compile_game(plan.game, observations=True)
    value = _value(leaf, tree, inner, path)
    limits: dict[str, Any] = {}
    if value is not None:
        limits = {"depth": plan.depth, "depth_unit": plan.unit, "leaf": value}
    result = spiel_cr.resolve(tree, algorithm, iterations, **limits)
    return {
        "name": name,
        "game": plan.game,
        "depth": plan.depth,
        "unit": plan.unit,
        "histories": len(tree.histories),
        "leaf": leaf,
        "iterations": iterations,
        "algorithm": algorithm,
        "inner": inner if leaf == "exact" else None,
        "nash_conv": result.nash_conv(),
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
    }


def _value(
    leaf: str, tree: spiel_cr.CompiledGame, inner: int, path: str | None
) -> HistoryValue | ValueFunction | None:
    if leaf == "none":
        return None
    if leaf == "exact":
        return ExactValues(inner, "pcfr+")
    if leaf == "network":
        from spiel_cr.lookahead.network import load_network

        assert path is not None
        return load_network(path)
    if leaf == "constant":
        return ConstantValues(1000)
    if leaf == "uniform":
        return PolicyValue()
    solution = spiel_cr.solve(tree, "pcfr+", _EQUILIBRIUM)
    return PolicyValue(solution.average)


def markdown(rows: Sequence[Row]) -> str:
    """A table: a line per game and leaf, a column per number of iterations."""
    counts = sorted({row["iterations"] for row in rows})
    games, leaves = list(PLANS), list(LEAVES)
    rows = sorted(
        rows, key=lambda row: (games.index(row["name"]), leaves.index(row["leaf"]))
    )
    lines: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        leaf = row["leaf"]
        if row["inner"] is not None:
            leaf += f", {row['inner']} below"
        key = row["name"], leaf, row["algorithm"]
        line = lines.setdefault(key, {**row, "leaf": leaf, "seconds": 0.0})
        line[f"at {row['iterations']}"] = row["nash_conv"]
        line["seconds"] = max(line["seconds"], row["seconds"])
    units = {
        "moves": "{} moves ahead",
        "rounds": "{} round ahead",
        "moves_from_start": "to move {}",
    }
    for line in lines.values():
        line["cut"] = units[line["unit"]].format(line["depth"])
    columns: dict[str, Column] = {
        "game": "{name}",
        "lookahead": "{cut}",
        "at its end": "{leaf}",
        "algorithm": "{algorithm}",
    }
    for count in counts:
        columns[f"NashConv, {count} iterations"] = f"{{at {count}:.4g}}"
    columns["s, the most iterations"] = "{seconds:.1f}"
    return table(list(lines.values()), columns, labels=4)


BENCHMARK = frame.Benchmark(
    name="leaf_ranges",
    description="Depth-limited resolving by what is at the end of the lookahead.",
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables="leaf_ranges",
    page="leaves.md",
    group=lambda row: tuple(
        row[key] for key in ("name", "leaf", "iterations", "algorithm", "inner")
    ),
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
