"""The command `solve`, where the game is not compiled but sampled as it is met."""

import argparse
import os

import spiel_cr
from spiel_cr.cfr.config import MCCFRConfig
from spiel_cr.common import memory, storage
from spiel_cr.solving.algorithms import parse_whole
from spiel_cr.solving.sampled_game import SampledResult, check_sampling

from ...common.plurals import counted
from ..command import given, writing

# Options that need the compiled game, with the values that they have if left out.
_WHOLE = {
    "until": None,
    "eval_every": None,
    "plot": None,
    "dtype": None,
    "cache": None,
    "imperfect_recall": False,
    "judge": "auto",
}


def why_not(arguments: argparse.Namespace) -> str | None:
    """Why what is asked for needs the compiled game; None: it does not."""
    try:
        _check(arguments)
    except ValueError as error:
        return str(error)
    return None


def is_sampled(checkpoint: str | None) -> bool | None:
    """Whether a checkpoint is of sampling without compiling.

    Args:
      checkpoint: a path.

    Returns:
      None where there is no checkpoint, or none that can be read: who opens it says so.
    """
    if checkpoint is None or not os.path.isfile(checkpoint):
        return None
    try:
        metadata = storage.load_metadata(checkpoint)
    except (OSError, ValueError):
        return None
    return "keys" in metadata if metadata.get("kind") == "checkpoint" else None


def _check(arguments: argparse.Namespace) -> None:
    """Refuses what needs the compiled game.

    Raises:
      ValueError: an option, or an algorithm.
    """
    never = arguments.compile == "never"
    for name, default in _WHOLE.items():
        if getattr(arguments, name) != default:
            flag = f"--{name.replace('_', '-')}"
            value = getattr(arguments, name)
            said = flag if value is True else f"{flag} {value}"
            raise ValueError(
                f"{said} needs the compiled game; leave it out"
                + ", or leave --compile never out" * never
            )
    algorithm = arguments.algorithm
    if algorithm == "lp" or not isinstance(parse_whole(algorithm), MCCFRConfig):
        raise ValueError(
            f"algorithm={algorithm!r} looks at the whole game in each iteration, so "
            f"the game must be compiled; {'leave --compile never out, or ' * never}"
            f"choose an algorithm that samples: os-mccfr, es-mccfr or vr-mccfr"
        )
    check_sampling(
        algorithm,
        **given(arguments, "iterations", "seconds", "seed", "workers"),
        **given(arguments, "memory_limit", "checkpoint_every"),
    )


def solve(arguments: argparse.Namespace) -> dict[str, object]:
    """Samples, saves the policy, and says what there is to say.

    Args:
      arguments: of the command.

    Raises:
      ValueError: an option or algorithm that needs the compiled game; or as
        `spiel_cr.sample_uncompiled`.
    """
    _check(arguments)
    result = spiel_cr.sample_uncompiled(
        arguments.game,
        vectorised=not arguments.no_vectorised,
        checkpoint_path=arguments.checkpoint,
        progress=True,
        **given(arguments, "algorithm", "iterations", "seconds", "seed", "workers"),
        **given(arguments, "memory_limit", "checkpoint_every"),
    )
    saved = False
    if arguments.save:
        with writing(arguments):
            result.save(arguments.save)
            saved = True
    report = _report(arguments, result)
    _print(report, result)
    if saved:
        print(f"  policy      {arguments.save}")
    return report


def _report(arguments: argparse.Namespace, result: SampledResult) -> dict[str, object]:
    met = result.met
    return {
        **given(arguments, "game", "workers"),
        "compiled": False,
        "algorithm": result.algorithm,
        "iterations": result.iterations,
        "trajectories": result.trajectories,
        "infosets": result.infosets,
        "keys": result.keys,
        "table_bytes": result.table_bytes,
        "table_limit": result.table_limit,
        "full": result.full,
        # JSON has no NaN.
        "known_share": result.known / met if met else None,
        "seconds": result.seconds,
        "build_seconds": result.build_seconds,
        "trajectories_per_second": result.trajectories_per_second,
        "peak_memory_bytes": memory.peak_bytes(),
    }


def _print(report: dict[str, object], result: SampledResult) -> None:
    print(
        f"{report['game']}, {result.algorithm}, "
        f"{counted(result.iterations, 'iteration')}, "
        f"{counted(result.trajectories, 'trajectory', 'trajectories')}, not compiled"
    )
    share = result.known / max(result.met, 1)
    print(
        f"  infosets    {result.infosets:,} met, by {result.keys}; {share:.1%} of "
        f"decisions were at known ones"
    )
    full = "; full, so some were left out" if result.full else ""
    print(
        f"  table       {result.table_bytes / 1e6:,.0f} of "
        f"{result.table_limit / 1e6:,.0f} MB{full}"
    )
    print(
        f"  sampling    {result.seconds:.2f} s, "
        f"{result.trajectories_per_second:,.0f} trajectories/s; building "
        f"{result.build_seconds:.1f} s; peak memory {memory.peak_bytes() / 1e9:.2f} GB"
    )
