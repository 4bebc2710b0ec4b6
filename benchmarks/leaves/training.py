"""Trains the value networks that `benchmarks.leaves.ranges` measures.

Run `python -m benchmarks.leaves.training --help`. docs/leaves.md has the table.
"""

import argparse
import dataclasses
import pathlib
import sys
from collections.abc import Iterator, Sequence

import spiel_cr
from benchmarks import frame
from benchmarks.document import Column, table
from benchmarks.frame import Row
from benchmarks.leaves.ranges import PLANS, file_name
from spiel_cr.common.memory import peak_bytes
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.value_training import train_values
from spiel_cr.value_training.config import parse_training

# For `parse_training`, and so for `spiel-cr train-values --config`.
SETTINGS = {
    "leduc": "leduc",
    "goofspiel 5": "goofspiel",
    "liar's dice 1x4": "liars-dice",
    "liar's dice 1x5": "liars-dice",
    "liar's dice 1x6": "liars-dice-large",
}


def _add_options(parser: frame.Parser) -> None:
    parser.several("--games", SETTINGS, "and their cuts")
    parser.number("--minutes", 15.0, "of training per game")
    parser.number("--seed", 0, "of everything random", least=0)
    parser.number("--iterations", 1000, "with which the result is resolved")
    parser.add_argument(
        "--networks", metavar="DIR", default="networks", help="where the files go"
    )


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for name in options.games:
        yield frame.in_a_process(
            measure,
            name,
            options.networks,
            options.minutes,
            int(options.seed),
            int(options.iterations),
        )


def measure(name: str, folder: str, minutes: float, seed: int, iterations: int) -> Row:
    """Trains a network and resolves its game with it.

    Args:
      name: of the game.
      folder: for the network and its curve; a checkpoint there is gone on from.
      minutes: of training.
      seed: of everything random.
      iterations: of CFR+ in each solve of the resolving.
    """
    plan = PLANS[name]
    out = pathlib.Path(folder, f"{file_name(name)}.npz")
    out.parent.mkdir(parents=True, exist_ok=True)
    tree = compile_game(plan.game, observations=True)
    config = dataclasses.replace(parse_training(SETTINGS[name]), seed=seed)
    result = train_values(
        tree,
        plan.depth,
        out,
        depth_unit=plan.unit,
        config=config,
        minutes=minutes,
        checkpoint=out.with_suffix(".checkpoint.npz"),
        curve=out.with_suffix(".jsonl"),
        progress=True,
    )
    last = result.curve[-1]
    resolved = spiel_cr.resolve(
        tree,
        iterations=iterations,
        depth=plan.depth,
        depth_unit=plan.unit,
        leaf=result.network,
    )
    return {
        "name": name,
        "game": plan.game,
        "histories": len(tree.histories),
        "steps": last.step,
        "finished": result.finished,
        "seconds": last.seconds,
        "validation_loss": last.validation_loss,
        "iterations": iterations,
        "nash_conv": resolved.nash_conv(),
        "peak_bytes": peak_bytes(),
        "settings": SETTINGS[name],
    }


def markdown(rows: Sequence[Row]) -> str:
    """A table: a line per game."""
    columns: dict[str, Column] = {
        "game": "{name}",
        "histories": "{histories:,}",
        "settings": "{settings}",
        "steps": "{steps:,}",
        "s": "{seconds:.0f}",
        "validation loss": "{validation_loss:.4f}",
        "NashConv": "{nash_conv:.4f}",
        "NashConv / 2": lambda row: f"{row['nash_conv'] / 2:.4f}",
        "peak memory, MB": lambda row: f"{row['peak_bytes'] / 1e6:.0f}",
    }
    return table(rows, columns, labels=3)


BENCHMARK = frame.Benchmark(
    name="leaf_training",
    description="Trains value networks and resolves games with them.",
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables="leaf_training",
    page="leaves.md",
    group=lambda row: row["name"],
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
