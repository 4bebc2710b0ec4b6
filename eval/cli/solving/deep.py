"""The command `solve`, where networks are trained: deep CFR and its successors."""

import argparse
import sys
from collections.abc import Callable

from spiel_cr.common import memory
from spiel_cr.policies.result import SolveResult
from spiel_cr.solving import deep_game
from spiel_cr.solving.deep_game import DeepResult

from ...common.plurals import counted
from ...reporting import plots
from ..command import given, writing

# Options that networks do not have, with the values that they have if left out.
_NONE_OF_THEIRS = {"dtype": None, "imperfect_recall": False, "workers": 1}


def solve(
    arguments: argparse.Namespace,
    report_result: Callable[[str, SolveResult, argparse.Namespace], dict[str, object]],
) -> dict[str, object]:
    """Trains, saves the policy, and says what there is to say.

    Args:
      arguments: of the command.
      report_result: saves, judges and prints the result of a compiled game.

    Raises:
      ValueError: an option that networks do not have; or as `spiel_cr.solve_deep`.
    """
    algorithm = arguments.algorithm
    for name, default in _NONE_OF_THEIRS.items():
        value = getattr(arguments, name)
        if value != default:
            flag = f"--{name.replace('_', '-')}"
            said = flag if value is True else f"{flag} {value}"
            raise ValueError(
                f"{said}: algorithm={algorithm!r} trains networks, which have no such "
                f"option; leave it out"
            )
    if arguments.form == "signals":
        raise ValueError(
            f"--form signals: algorithm={algorithm!r} samples histories, and in the "
            f"form of signals there are none; leave it out"
        )
    if arguments.plot:
        if not (arguments.eval_every or arguments.until):
            raise ValueError("--plot needs points to draw; add --eval-every N")
        plots.check(arguments.plot)
    how = given(arguments, "algorithm", "iterations", "seconds", "until", "eval_every")
    how |= given(arguments, "seed", "checkpoint_every", "compile")
    deep_game.check_deep(**how)
    result = deep_game.solve_deep(
        arguments.game,
        **how,
        **given(arguments, "memory_limit", "cache"),
        vectorised=not arguments.no_vectorised,
        checkpoint_path=arguments.checkpoint,
        progress=True,
    )
    if isinstance(result, DeepResult):
        return _report(arguments, result)
    report = report_result(arguments.game, result, arguments)
    report |= {"form": "compiled", "compiled": True}
    if result.curve:
        report["curve"] = [point._asdict() for point in result.curve]
    if arguments.plot:
        title = f"{arguments.game}, {result.algorithm}"
        with writing(arguments):
            plots.plot_curves(
                {result.algorithm: result.curve}, arguments.plot, title=title
            )
            print(f"  plot        {arguments.plot}")
    return report


def _report(arguments: argparse.Namespace, result: DeepResult) -> dict[str, object]:
    """Of a game that was not compiled: nobody knows its NashConv."""
    if arguments.compile == "auto":
        print("trained without compiling: the game is too large", file=sys.stderr)
    saved = False
    if arguments.save:
        with writing(arguments):
            result.save(arguments.save)
            saved = True
    peak = memory.peak_bytes()
    print(
        f"{arguments.game}, {result.algorithm}, "
        f"{counted(result.iterations, 'iteration')}, "
        f"{counted(result.trajectories, 'trajectory', 'trajectories')}, not compiled"
    )
    rate = result.nodes / result.seconds if result.seconds else 0.0
    print(
        f"  training    {result.seconds:.2f} s, {result.nodes:,} nodes, "
        f"{rate:,.0f} nodes/s with all fits; building {result.build_seconds:.1f} s; "
        f"peak memory {peak / 1e9:.2f} GB"
    )
    if saved:
        print(f"  policy      {arguments.save}")
    return {
        "game": arguments.game,
        "compiled": False,
        "algorithm": result.algorithm,
        "iterations": result.iterations,
        "trajectories": result.trajectories,
        "nodes": result.nodes,
        "seconds": result.seconds,
        "build_seconds": result.build_seconds,
        "peak_memory_bytes": peak,
    }
