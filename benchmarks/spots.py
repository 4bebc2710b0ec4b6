"""Rivers, turns and flops of hold'em, compared with postflop-solver.

Each spot is solved by a complete command in a separate process, whose time and memory
include imports, and evaluations that find out whether the goal is reached. A short run
before it fills the caches of compiled functions. If the program of `postflop.rs` is
installed, it solves the same spots.
"""

import pathlib
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.document import Column
from benchmarks.frame import SPIEL_CR, Axis, Benchmark, FactsTable, Row, run_command
from benchmarks.games import string_of

# Longest run in seconds.
_LIMIT = 1200.0
# All hands, in the notation of postflop-solver.
_EVERY_HAND = ",".join(
    ["22+", *(f"{r}2{suits}+" for r in "AKQJT9876543" for suits in ("s", "o"))]
)


class SpotCase(NamedTuple):
    """A spot and its goal.

    Attributes:
      label: Description for tables.
      board, pot, stack, bets: As in `poker.spot`.
      sizes: Sizes of bets and of raises, in the notation of postflop-solver.
      percent: Goal: exploitability (half of NashConv) in percent of the pot.
      ranges: Ranges of both players; None: all hands.
      game: Short name of the game, if it is not one of `poker.spot`.
    """

    label: str
    board: str
    pot: int
    stack: int
    bets: str
    sizes: Sequence[str]
    percent: float = 0.1
    ranges: Sequence[str] | None = None
    game: str = ""

    def words(self) -> list[str]:
        """Return the words of a command of spiel-cr, without options of the run."""
        if self.game:
            game = string_of(self.game)
            return ["solve", "--game", game, "--algorithm", "dcfr"]
        words = ["spot", "--board", self.board, "--pot", str(self.pot)]
        words += ["--stack", str(self.stack), "--bets", self.bets]
        return words + (["--ranges", ";".join(self.ranges)] if self.ranges else [])

    def peer_words(self) -> list[str]:
        """Return the arguments of the program of `postflop.rs`."""
        ranges = self.ranges or (_EVERY_HAND, _EVERY_HAND)
        goal = self.percent / 100 * self.pot
        numbers = str(self.pot), str(self.stack), str(goal)
        return [self.board, *numbers, *ranges, *self.sizes]


_ROWS = tomllib.loads(pathlib.Path(__file__).with_suffix(".toml").read_text("utf-8"))
SPOTS = {name: SpotCase(**row) for name, row in _ROWS.items()}
AXES = {
    "spot": Axis(tuple(SPOTS), "spots to measure", tuple(SPOTS)),
    "peer": Axis(
        "postflop",
        "program built from benchmarks/postflop.rs, on the PATH or with its path",
        identifies=False,
    ),
}


def run(command: Sequence[str], limit: float = _LIMIT) -> Row:
    """Run a command whose last line is JSON.

    Args:
      command: Words of the command.
      limit: Longest run in seconds.

    Returns:
      The JSON, and the time of the whole process as `process_seconds`.

    Raises:
      RuntimeError: If it fails or does not end in time.
    """
    try:
        return run_command(command, timeout=limit)[0]
    except subprocess.SubprocessError as error:
        last = (error.stderr or "")[-500:]  # type: ignore[attr-defined]
        raise RuntimeError(f"{error} {last}") from error


def measure(spot: str, peer: str) -> Row:
    """Solve a spot by spiel-cr, and by the peer if its program exists.

    Args:
      spot: One of `SPOTS`.
      peer: Name or path of the program of `postflop.rs`.
    """
    chosen = SPOTS[spot]
    row: Row = {}
    words = [*SPIEL_CR, *chosen.words(), "--dtype", "float32"]
    goal = ["--until", str(2 * chosen.percent / 100 * chosen.pot), "--json"]
    commands = {"": [*words, *goal]}
    if program := shutil.which(peer):
        commands["peer_"] = [program, *chosen.peer_words()]
    try:
        run([*words, "--iterations", "2", "--json"])
        for prefix, command in commands.items():
            report = run(command)
            iterations = report["iterations"]
            row |= {
                f"{prefix}iterations": iterations,
                f"{prefix}milliseconds": 1000 * report["seconds"] / iterations,
                f"{prefix}process_seconds": report["process_seconds"],
                f"{prefix}peak_bytes": report["peak_memory_bytes"],
            }
    except RuntimeError as error:
        row["error"] = str(error)
    return {"label": chosen.label, "percent": chosen.percent, **row}


def _columns(prefix: str, name: str) -> dict[str, Column]:
    return {
        f"{name}: ms per iteration": f"{{{prefix}milliseconds:.3g}}",
        f"{name}: s": f"{{{prefix}process_seconds:.3g}}",
        f"{name}: MB": lambda row: f"{row[f'{prefix}peak_bytes'] / 1e6:,.0f}",
    }


BENCHMARK = Benchmark(
    "spots",
    "Solve spots of hold'em, and compare with postflop-solver.",
    measure,
    AXES,
    (
        FactsTable(
            "Whole processes until exploitability is the given percentage of the pot.",
            {
                "spot": "{label}",
                "%": "{percent:g}",
                **_columns("", "spiel_cr"),
                **_columns("peer_", "postflop-solver"),
            },
        ),
    ),
    failures=lambda rows: [
        f"{row['spot']}: {row['error']}" for row in rows if "error" in row
    ],
    note="speed",
    folder="poker",
)
