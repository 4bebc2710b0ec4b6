"""Lookaheads that end: what the values there cost, and networks that give them.

See docs/leaves.md.
"""

import argparse
import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import spiel_cr
from benchmarks.document import PEAK, Column, over, pivot
from benchmarks.frame import Benchmark, Option, Part, Row, Table, say
from benchmarks.games import string_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies.leaf_values import PolicyValue
from spiel_cr.resolving.leaves.exact import ExactValues
from spiel_cr.resolving.leaves.leaf_strings import DepthUnit
from spiel_cr.resolving.leaves.training import train_values
from spiel_cr.resolving.leaves.training.training_config import PRESETS


class Cut(NamedTuple):
    """Where the lookahead ends, see `ResolvingConfig`, and settings of a network."""

    depth: int
    unit: DepthUnit
    settings: str


CUTS = {
    "leduc": Cut(1, "rounds", "leduc"),
    "goofspiel5_win_loss": Cut(4, "moves_from_start", "goofspiel"),
    "liars_dice4": Cut(2, "moves", "liars-dice"),
    "liars_dice5": Cut(2, "moves", "liars-dice"),
    "liars_dice6": Cut(2, "moves", "liars-dice-large"),
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
    "leaves": Option(tuple(LEAVES), "at the cut, of part ranges", tuple(LEAVES)),
    "iterations": Option((100, 300, 1000), "of each solve; the most judges networks"),
    "algorithms": Option(("cfr+",), "of each solve of part ranges"),
    "inner": Option(200, "iterations of each exact solve"),
    "networks": Option("networks", "folder of GAME.npz, which part training fills"),
    "minutes": Option(15.0, "of training, for each game"),
    "seed": Option(0, "of training", least=0),
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


def measure_training(
    game: str, networks: str, minutes: float, seed: int, iterations: int
) -> Row:
    """Trains a network and resolves its game with it.

    Args:
      game: one of `CUTS`.
      networks: folder for the network and its curve; a checkpoint there is gone on
        from.
      minutes: of training.
      seed: of everything random.
      iterations: of CFR+ in each solve of the resolving.
    """
    cut, out = CUTS[game], pathlib.Path(networks, f"{game}.npz")
    out.parent.mkdir(parents=True, exist_ok=True)
    tree = spiel_cr.compile_game(string_of(game), observations=True)
    result = train_values(
        tree,
        cut.depth,
        out,
        depth_unit=cut.unit,
        config=dataclasses.replace(read_settings(cut.settings, PRESETS), seed=seed),
        minutes=minutes,
        checkpoint=out.with_suffix(".checkpoint.npz"),
        curve=out.with_suffix(".jsonl"),
        progress=True,
    )
    last = result.curve[-1]
    resolved = spiel_cr.resolve(
        tree,
        spiel_cr.ResolvingConfig(
            iterations=iterations,
            depth=cut.depth,
            depth_unit=cut.unit,
            leaf=result.network,
        ),
    )
    return {
        "settings": cut.settings,
        "histories": len(tree.histories),
        "steps": last.step,
        "seconds": last.seconds,
        "validation_loss": last.validation_loss,
        "nash_conv": resolved.nash_conv(),
        "peak_bytes": peak_bytes(),
    }


def _plan_training(options: argparse.Namespace) -> Iterator[Row]:
    for game in options.games:
        yield {
            "game": game,
            "networks": options.networks,
            "minutes": options.minutes,
            "seed": options.seed,
            "iterations": max(options.iterations),
        }


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    for game in options.games:
        for leaf in options.leaves:
            network = pathlib.Path(options.networks, f"{game}.npz")
            if leaf == "network" and not network.exists():
                say(f"{game}: there is no network {network}")
                continue
            for algorithm in options.algorithms:
                for iterations in options.iterations:
                    yield {
                        "game": game,
                        "leaf": leaf,
                        "algorithm": algorithm,
                        "iterations": iterations,
                        "inner": options.inner,
                        "networks": options.networks,
                    }


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


_TRAINING: dict[str, Column] = {
    "game": "{game}",
    "settings": "{settings}",
    "histories": "{histories:,}",
    "steps": "{steps:,}",
    "s": "{seconds:.0f}",
    "validation loss": "{validation_loss:.4f}",
    "NashConv": "{nash_conv:.4f}",
    "NashConv / 2": lambda row: f"{row['nash_conv'] / 2:.4f}",
    **PEAK,
}
BENCHMARK = Benchmark(
    "leaves",
    "Depth-limited resolving by what is at the end of the lookahead, and its training.",
    "leaves.md",
    OPTIONS,
    {
        "training": Part(
            measure_training,
            _plan_training,
            (Table("Training value networks.", _TRAINING, 2),),
            budget=("networks", "minutes", "iterations"),
        ),
        "ranges": Part(
            measure,
            _plan,
            (Table("What is put where the lookahead ends.", _columns, 4, _lines),),
            budget=("networks",),
        ),
    },
)
