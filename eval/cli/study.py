"""The command `study`: figures of the literature, computed again.

studies:
{studies}

With --workers N or --ray independent parts (an algorithm, a game) are computed side by
side, to the same figures. What was found in so many seconds (gameshrink) then takes
longer than alone.
"""

import time

from spiel_cr.common.checks import check_number
from spiel_cr.common.messages import announce

from ..studies import game_values, gameshrink
from ..studies.study import Line, Study
from .command import Arguments, Commands, add_command

STUDIES: dict[str, Study] = {
    study.name: study for study in (*game_values.STUDIES, gameshrink.STUDY)
}


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "compute a published figure again, and print both"
    lines = (f"  {study.name}: {study.text}" for study in STUDIES.values())
    listed = "\n".join(lines)
    parser = add_command(commands, "study", _study, text, __doc__, studies=listed)
    parser.add_argument("name", choices=tuple(STUDIES), help="see below")
    text = "of the default numbers of iterations and samples"
    parser.option("--size", text, 1.0, metavar="SHARE")
    parser.worker_options()


def _study(arguments: Arguments) -> dict[str, object]:
    check_number(arguments.size, "--size", "(0, 1000]")
    study, executor = STUDIES[arguments.name], arguments.executor()
    started = time.perf_counter()
    print(f"{study.text}\n  source: {study.source}\n")
    announce(f"computing the figures of {study.name}")
    lines = []
    for line in study.lines(arguments.size, executor):
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
    head = f"{line.quantity}: {verdict}"
    return f"{head}\n  published  {line.published}\n  ours       {line.computed}"
