"""The command `study`: recompute published figures, and compare them.

studies:
{studies}

With --workers N or --ray, independent parts (an algorithm, a game) are computed in
parallel, with the same results. Times that a study reports (gameshrink) are longer than
in a single process.
"""

import dataclasses
import time

from spiel_cr.common.checks import check_number
from spiel_cr.common.messages import announce

from ..studies import game_values, gameshrink
from ..studies.study import Study, StudyLine
from .command import Arguments, Parser, WorkerOptions

STUDIES: dict[str, Study] = {
    study.name: study for study in (*game_values.STUDIES, gameshrink.STUDY)
}
LISTS = {"studies": "\n".join(f"  {s.name}: {s.text}" for s in STUDIES.values())}


@dataclasses.dataclass(kw_only=True)
class StudyOptions(WorkerOptions):
    """Options of the command.

    Attributes:
      size (SHARE): Share of the default numbers of iterations and samples.
    """

    size: float = 1.0


def add_options(parser: Parser) -> None:
    """Add the name of the study."""
    parser.add_argument("name", choices=tuple(STUDIES), help="name of the study")


def run(arguments: Arguments) -> dict[str, object]:
    """Run a study."""
    check_number(arguments.size, "--size", "(0, 1000]")
    study, executor = STUDIES[arguments.name], arguments.executor()
    start = time.perf_counter()
    print(f"{study.text}\n  source: {study.source}\n")
    announce(f"computing the figures of {study.name}")
    lines = []
    for line in study.lines(arguments.size, executor):
        lines.append(line)
        print(_text_of(line), flush=True)
    seconds = time.perf_counter() - start
    print(f"\n{seconds:.1f} s")
    return {
        "study": study.name,
        "size": arguments.size,
        "seconds": seconds,
        "lines": [line._asdict() for line in lines],
    }


def _text_of(line: StudyLine) -> str:
    verdict = {True: "agrees", False: "DIFFERS", None: "no verdict"}[line.agrees]
    head = f"{line.quantity}: {verdict}"
    return f"{head}\n  published  {line.published}\n  ours       {line.computed}"
