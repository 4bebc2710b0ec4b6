"""Commands that are interrupted at a random moment, and the time until they end.

Each trial starts a command, sends it a signal at a random moment, and measures the
seconds until the process has ended. The process must end within `IDLE_LIMIT` on an idle
machine and within `BUSY_LIMIT` on a busy one, with the exit code of the signal. No
temporary file, lock file or worker process may be left, and no result may be lost that
was in a file or that the command has shown. Every second trial of a campaign runs next
to busy processes. What a trial does depends on its number and on the machine's speed:

    python -m tests.fuzz interrupt_moments FIRST LAST [--only COMMAND ...]

Compiled functions are not cached, so that many signals arrive while XLA compiles. A
trial forks this process, which has imported everything; every fifth trial starts a new
interpreter instead, which is still importing when most of these signals arrive.
"""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax

from spiel_cr.common import compilation_cache
from tests.fuzz import interruptions
from tests.fuzz.interruptions import Ended, Process

# Seconds from the signal to the end of the process.
IDLE_LIMIT, BUSY_LIMIT = 2.0, 10.0
_SOLVE = "--checkpoint=DIR/c.npz --checkpoint-every=0.1 --save=DIR/s.npz"
# A checkpoint that is written at the end only.
_LATE = "--checkpoint=DIR/c.npz --checkpoint-every=3600"
_SAMPLED = (
    "--algorithm=os-mccfr --form simulator --no-batched-rules --iterations=100000"
)
_GOOFSPIEL = "--game=python_ii_goofspiel(num_cards=5)"
_DICE = "--game=liars_dice(numdice=1)"
_RESOLVING = "resolving(depth=2,iterations=100)"


class Command(NamedTuple):
    """A command line, and how long it takes.

    Attributes:
      line: Words of the command; DIR is the folder of the trial.
      seconds: Signals are sent up to this time after the start.
    """

    line: str
    seconds: float


# Commands that work for long without an end of a step in sight.
LONG = {
    "hidden boards": Command("study phantom-games", 60),
    "gameshrink": Command("study gameshrink", 30),
    "gameshrink by workers": Command("study gameshrink --workers=2", 30),
    "re-solving": Command(f"evaluate {_DICE} --out=DIR/e --bot={_RESOLVING}", 20),
    "matches": Command(
        f"tournament {_DICE} --out=DIR/t --bots={_RESOLVING};uniform", 20
    ),
    "sampled Python game": Command(f"solve {_GOOFSPIEL} {_SAMPLED} {_SOLVE}", 20),
    "late checkpoint": Command(f"solve {_GOOFSPIEL} {_SAMPLED} {_LATE}", 20),
    "no checkpoint": Command(f"solve {_GOOFSPIEL} {_SAMPLED}", 10),
    "Rhode Island": Command(
        f"solve --game=python_rhode_island_holdem --algorithm=dcfr {_LATE}", 30
    ),
    "networks": Command(f"solve --game=leduc_poker --algorithm=sd-cfr {_LATE}", 20),
    "linear program": Command(f"solve {_DICE} --algorithm=lp", 20),
    "spot": Command("spot --board=AsKdQh2c --pot=10 --stack=50 --iterations=9999", 20),
}
COMMANDS = {
    **LONG,
    **{
        name: Command(line, 4)
        for name, line in interruptions.COMMANDS.items()
        if "policy.npz" not in line
    },
}
# Commands of the quick tests, which use little time before a signal arrives.
QUICK = (
    *("hidden boards", "gameshrink", "late checkpoint", "sampled Python game"),
    *("no checkpoint", "solve", "patient", "evaluate", "tournament", "deep"),
)
_QUICK_SECONDS = 1.0
_NEW_SECONDS = 5.0
_BUSY_PROCESSES = 4
# Most signals are Ctrl-C.
_SIGNALS = (signal.SIGINT,) * 8 + (signal.SIGTERM, signal.SIGHUP)


def is_idle() -> bool:
    """Return whether most of every processor was free during a tenth of a second."""

    def ticks() -> tuple[int, int]:
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        return int(fields[3]) + int(fields[4]), sum(map(int, fields))

    with contextlib.suppress(OSError):
        before = ticks()
        time.sleep(0.1)
        after = ticks()
        return after[0] - before[0] >= 0.9 * (after[1] - before[1])
    return False


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run processes in the block that use a processor each."""
    words = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def trial(
    number: int, folder: pathlib.Path, names: Sequence[str], *, quick: bool
) -> Any:
    """Do a trial.

    Args:
      number: Number of the trial, which decides all random choices.
      folder: Folder that the trial may use; its contents are removed.
      names: Commands to choose from, in turn.
      quick: Whether signals come early, and no busy processes are started.

    Returns:
      What is counted of the trial.

    Raises:
      AssertionError: If the command ended too late, or left or lost something.
    """
    draw = random.Random(number)
    name, number = names[number % len(names)], number // len(names)
    new = not quick and draw.random() < 0.2
    busy = 0 if quick or draw.random() < 0.5 else _BUSY_PROCESSES
    span = _NEW_SECONDS if new else COMMANDS[name].seconds
    moment = draw.random() * (_QUICK_SECONDS if quick else span)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tmp").mkdir(parents=True)
    with busy_processes(busy):
        limit = IDLE_LIMIT if not busy and is_idle() else BUSY_LIMIT
        process = Process(_words(name, folder), new=new)
        time.sleep(moment)
        lines = interruptions.journals(folder)
        saved = interruptions.checkpoint_iterations(folder)
        sent, began = draw.choice(_SIGNALS), time.monotonic()
        process.send(sent, to_all=True)
        ended = process.end()
        seconds = time.monotonic() - began
        if not busy and not is_idle():
            limit = BUSY_LIMIT
    where = f"{name}, {signal.Signals(sent).name} after {moment:.2f} s: "
    assert seconds < limit, f"{where}it took {seconds:.1f} s of {limit} s: {ended.err}"
    check_end(where, ended, sent, new=new)
    keeps = any(word.startswith("--checkpoint=") for word in _words(name, folder))
    check_left(where, folder, ended, lines, saved, keeps=keeps)
    over = "had ended" if ended.code == 0 else "was interrupted"
    return {"outcome": over, "command": name, "wait": round(seconds, 2)}


def _words(name: str, folder: pathlib.Path) -> list[str]:
    line = COMMANDS[name].line
    if name in interruptions.COMMANDS:
        return interruptions.Harness(folder).words(name, folder)
    return [word.replace("DIR", str(folder)) for word in line.split()]


def check_end(where: str, ended: Ended, sent: int, *, new: bool) -> None:
    """Check the exit code, and that no traceback is shown."""
    codes = {0, 128 + sent, -sent}
    if new and ended.err.rstrip().endswith("KeyboardInterrupt"):
        # Python's own start, before the first line of this project.
        assert "spiel_cr" not in ended.err or "entry" not in ended.err, where
        return
    assert ended.code in codes, f"{where}{ended}"
    assert "Traceback" not in ended.err, f"{where}{ended.err}"


def check_left(
    where: str,
    folder: pathlib.Path,
    ended: Ended,
    lines: dict[str, list[bytes]],
    saved: int,
    *,
    keeps: bool,
) -> None:
    """Check what the command has left behind.

    Args:
      where: Beginning of messages.
      folder: Folder of the trial.
      ended: How the command ended.
      lines: Lines of each journal before the signal.
      saved: Iterations of the checkpoint before the signal.
      keeps: Whether the command writes a checkpoint.
    """
    temporary = [*(folder / "tmp").iterdir(), *folder.rglob("*.part")]
    temporary += folder.rglob("*.lock")
    assert not temporary, f"{where}{temporary} is left: {ended.err}"
    interruptions.check_files(folder, finished=True)
    for name, before in lines.items():
        after = interruptions.journals(folder).get(name, [])
        assert set(before) <= set(after), f"{where}a line of {name} is lost"
    iterations = interruptions.checkpoint_iterations(folder)
    assert iterations >= saved, f"{where}the checkpoint is older: {ended.err}"
    shown = interruptions.shown_iterations(ended.err)
    if shown and keeps and ended.code > 128:
        assert iterations >= shown, f"{where}{iterations} of {shown} iterations saved"


@contextlib.contextmanager
def trials(only: Sequence[str]) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Prepare trials of all commands in turn.

    Args:
      only: Commands to use; "quick": those of the quick tests, at early moments.
    """
    quick = "quick" in only
    names = [name for name in COMMANDS if name in only]
    names = names or list(QUICK if quick else COMMANDS)
    interruptions.import_everything()
    # Background jobs of shells inherit ignored signals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    jax.config.update("jax_compilation_cache_dir", None)
    os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
    os.environ[compilation_cache.VARIABLE] = "off"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "trial"
        os.environ["TMPDIR"] = str(folder / "tmp")
        tempfile.tempdir = None

        def do(number: int) -> dict[str, Any]:
            return trial(number, folder, names, quick=quick)

        yield do
