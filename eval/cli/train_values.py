"""The command `train-values`: a network for the values where lookaheads end."""

import argparse
import dataclasses
import os
import pathlib

from spiel_cr.common import atomic
from spiel_cr.common.parameters import read_settings
from spiel_cr.resolving.leaves.training.training import TrainingResult, train_values
from spiel_cr.resolving.leaves.training.training_config import PRESETS

from .command import (
    Commands,
    add_command,
    add_depth_options,
    option,
    path_value,
    whole_value,
)


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "train a network for the values where a game's lookaheads end"
    parser = add_command(commands, "train-values", _train, text, resumes=True)
    option(parser, "--game")
    add_depth_options(parser, "the lookaheads' depth: N moves or rounds", required=True)
    option(
        parser,
        "--out",
        "the file to write the network to, for leaf=network(path=FILE.npz); its "
        "curves, as JSON lines, go to FILE.jsonl; what is there is replaced",
        metavar="FILE.npz",
        required=True,
        dest="network",
        type=path_value,
    )
    text = (
        "stop soon after this time; --checkpoint goes on, and begins data anew that "
        "were not complete"
    )
    option(parser, "--minutes", text, type=float)
    text = "continue from this file if it exists, and write the state to it"
    option(parser, "--checkpoint", text, metavar="PATH", type=path_value)
    text = (
        f"settings: {', '.join(PRESETS)}, named by the games that they were chosen "
        f"for, with parameters as in 'leduc(hidden=64,steps=1000)'"
    )
    option(parser, "--config", text, "general")
    text = "of weights, ranges and batches (default: as --config says)"
    parser.add_argument("--seed", type=whole_value, help=text)


def _train(arguments: argparse.Namespace) -> dict[str, object]:
    if pathlib.Path(arguments.network).suffix != ".npz":
        raise ValueError(
            f"--out {arguments.network!r}: a network's file must end in .npz; add it"
        )
    curve = os.fspath(pathlib.Path(arguments.network).with_suffix(".jsonl"))
    atomic.check_distinct(
        {"the curves of --out": curve, "--checkpoint": arguments.checkpoint}
    )
    config = read_settings(arguments.config, PRESETS, "--config", kind="preset")
    if arguments.seed is not None:
        config = dataclasses.replace(config, seed=arguments.seed)
    result = train_values(
        arguments.game,
        arguments.depth,
        arguments.network,
        depth_unit=arguments.depth_unit,
        config=config,
        minutes=arguments.minutes,
        checkpoint=arguments.checkpoint,
        progress=True,
    )
    report: dict[str, object] = {
        "game": arguments.game,
        "depth": arguments.depth,
        "depth_unit": arguments.depth_unit,
        "network": arguments.network,
        "curve": curve,
        "finished": result.finished,
        "config": dataclasses.asdict(config),
        "points": [point._asdict() for point in result.curve],
    }
    _print(arguments, result, config.steps)
    return report


def _print(arguments: argparse.Namespace, result: TrainingResult, steps: int) -> None:
    print(f"{arguments.game}, depth {arguments.depth} {arguments.depth_unit}")
    for point in result.curve:
        if point.nash_conv is not None or point.step % steps == 0:
            losses = f"{point.validation_loss:.2e} at random ranges"
            if point.met_loss is not None:
                losses += f", {point.met_loss:.2e} at met ones"
            judged = ""
            if point.nash_conv is not None:
                judged = f"NashConv {point.nash_conv:.2e}  "
            print(f"  step {point.step:7d}  {judged}validation loss {losses}")
    if not result.finished:
        how = "the same command goes on" if arguments.checkpoint else "not kept"
        print(f"  time is up before all steps were done ({how})")
    print(f"  network     {arguments.network}")
