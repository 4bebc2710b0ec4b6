"""Lookaheads that end: what the values there cost.

See docs/leaves.md.
"""

import argparse
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import spiel_cr
from benchmarks.document import Column, over, pivot
from benchmarks.frame import Benchmark, Option, Part, Row, Table, product, say
from benchmarks.games import string_of
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies.leaf_values import PolicyValue
from spiel_cr.resolving.leaves.exact import ExactValues
from spiel_cr.resolving.leaves.leaf_strings import DepthUnit


class Cut(NamedTuple):
    """Where the lookahead ends, see `ResolvingConfig`."""

    depth: int
    unit: DepthUnit


CUTS = {
    "leduc": Cut(1, "rounds"),
    "goofspiel5_win_loss": Cut(4, "moves_from_start"),
    "liars_dice4": Cut(2, "moves"),
    "liars_dice5": Cut(2, "moves"),
    "liars_dice6": Cut(2, "moves"),
}
# What is put where the lookahead ends, by the word in the tables.
LEAVES = {
    "none": "no cut: resolved to the end of the game",
    "exact": "exact solves at the ranges of each iteration",
    "network": "a counterfactual value network",
    "equilibrium": "one number per history: an equilibrium's",
    "uniform": "one number per history: uniform play's",
}
# Of the equilibrium whose values are put at histories.
_EQUILIBRIUM = 2000
OPTIONS = {
    "games": Option(tuple(CUTS), "and their cuts", tuple(CUTS)),
    "leaves": Option(tuple(LEAVES), "at the cut", tuple(LEAVES)),
    "iterations": Option((100, 300, 1000), "of each solve"),
    "algorithms": Option(("cfr+",), "of each solve"),
    "inner": Option(200, "iterations of each exact solve"),
    "networks": Option("networks", "folder of GAME.npz, written by train-values"),
}


def measure(
    game: str, leaf: str, algorithm: str, iterations: int, inner: int, networks: str
) -> Row:
    """Resolves a game in both roles and judges the strategy.

    Args:
      game: one of `CUTS`.
      leaf: one of `LEAVES`.
      algorithm: of each solve.
      iterations: of each solve.
      inner: iterations of each exact solve below the cut.
      networks: folder of networks.
    """
    tree = spiel_cr.compile_game(string_of(game), observations=True)
    cut, limits = CUTS[game], {}
    if leaf != "none":
        value = _value(leaf, tree, inner, pathlib.Path(networks, f"{game}.npz"))
        limits = {"depth": cut.depth, "depth_unit": cut.unit, "leaf": value}
    result = spiel_cr.resolve(
        tree, spiel_cr.ResolvingConfig(algorithm, iterations, **limits)
    )
    return {"nash_conv": result.nash_conv(), "seconds": result.seconds}


def _value(leaf: str, tree: CompiledGame, inner: int, network: pathlib.Path) -> Any:
    if leaf == "exact":
        return ExactValues(inner, "pcfr+")
    if leaf == "network":
        from spiel_cr.resolving.leaves.network_values import load_network

        return load_network(network)
    if leaf == "uniform":
        return PolicyValue()
    return PolicyValue(spiel_cr.solve(tree, "pcfr+", _EQUILIBRIUM).average)


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    for row in product(
        game=options.games,
        leaf=options.leaves,
        algorithm=options.algorithms,
        iterations=options.iterations,
        inner=[options.inner],
        networks=[options.networks],
    ):
        network = pathlib.Path(options.networks, f"{row['game']}.npz")
        if row["leaf"] != "network" or network.exists():
            yield row
        else:
            say(f"{row['game']}: there is no network {network}")


def _lines(rows: Sequence[Row]) -> list[Row]:
    for row in rows:
        cut = CUTS[row["game"]]
        row["cut"] = f"{cut.depth} {cut.unit}"
    return pivot(rows, ("game", "leaf", "algorithm"), "iterations", "nash_conv")


def _columns(lines: Sequence[Row]) -> dict[str, Column]:
    return {
        "game": "{game}",
        "lookahead": "{cut}",
        "at its end": lambda line: (
            f"exact, {line['inner']} below" if line["leaf"] == "exact" else line["leaf"]
        ),
        "algorithm": "{algorithm}",
        **over(lines, ".4g", "NashConv, {} iterations"),
        "s, the most iterations": "{seconds:.1f}",
    }


BENCHMARK = Benchmark(
    "leaves",
    "Measure depth-limited resolving by what is at the end of the lookahead.",
    "leaves.md",
    OPTIONS,
    {
        "ranges": Part(
            measure,
            _plan,
            (Table("What is put where the lookahead ends.", _columns, 4, _lines),),
            budget=("networks",),
        ),
    },
)
