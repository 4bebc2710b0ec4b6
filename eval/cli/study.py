"""The command `study`: figures of the literature, computed again.

studies:
{studies}

--out keeps what a study computes, where it takes long, and the same command goes on
from there.
"""

import argparse
import time

from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_number

from ..studies import (
    best_responses,
    deep_holdem,
    discounting,
    gameshrink,
    kuhn,
    leduc,
    resolving_oos,
    sampling,
    sweeps,
    variance,
)
from ..studies.study import Line, Study
from .command import Commands, add_command, option

_OF_SOLVERS = (kuhn, leduc, discounting, sweeps, sampling, variance)
STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (*_OF_SOLVERS, resolving_oos, best_responses, gameshrink, deep_holdem)
}


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "compute a published figure again, and print both"
    lines = (f"  {study.name}: {study.text}" for study in STUDIES.values())
    listed = "\n".join(lines)
    parser = add_command(
        commands, "study", _study, text, __doc__, resumes=True, studies=listed
    )
    parser.add_argument("name", choices=tuple(STUDIES), help="see below")
    text = "of the default numbers of iterations and samples"
    option(parser, "--size", text, 1.0, metavar="SHARE")
    option(parser, "--out", "folder to keep results in, and to go on from")


def _study(arguments: argparse.Namespace) -> dict[str, object]:
    check_number(arguments.size, "size", "(0, 1000]")
    study = STUDIES[arguments.name]
    if arguments.out and study.run_in is None:
        keep = ", ".join(name for name, s in STUDIES.items() if s.run_in is not None)
        raise ValueError(
            f"--out={arguments.out}: the study {study.name} keeps nothing; leave it "
            f"out, or choose one that does: {keep}"
        )
    started = time.perf_counter()
    print(f"{study.text}\n  source: {study.source}\n")
    announce(f"computing the figures of {study.name}")
    found = study.run(arguments.size)
    if arguments.out and study.run_in is not None:
        found = study.run_in(arguments.size, arguments.out)
    lines = []
    for line in found:
        lines.append(line)
        print(_shown(line), flush=True)
    seconds = time.perf_counter() - started
    print(f"\n{seconds:.1f} s")
    return {
        "study": study.name,
        "size": arguments.size,
        "seconds": seconds,
        "lines": [line._asdict() for line in lines],
    }


def _shown(line: Line) -> str:
    verdict = {True: "agrees", False: "DIFFERS", None: "no verdict"}[line.agrees]
    head = f"{line.what}: {verdict}"
    return f"{head}\n  published  {line.published}\n  ours       {line.ours}"
