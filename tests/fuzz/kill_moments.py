"""Commands with workers, one of whose processes is killed (kill -9) at a random moment.

Each trial starts a command with two workers, in processes or on Ray. It kills a worker,
a raylet or the driver at a random moment, in most trials after a first result, and
checks that every file is complete and that no line of a journal is lost or repeated. If
a worker or the raylet of another machine dies, the command must end normally. If the
driver dies, or Ray ends it with the raylet of its machine, the command is repeated with
or without workers. In the end, results and files must equal those of an undisturbed run
in one process.
A trial depends on its number and on the speed of the machine:

    python -m tests.fuzz kill_moments FIRST LAST [--only COMMAND or KIND ...]
"""

import collections
import contextlib
import os
import pathlib
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from spiel_cr.common import json_log
from spiel_cr.eval.cli import entry, main  # noqa: F401  imported before forking
from tests.fuzz.interruptions import (
    PASSING,
    Baseline,
    Ended,
    Process,
    check_files,
    compare_files,
    journals,
)
from tests.support.results import lasting

# Each works for some seconds with two workers. DIR is the folder of the trial.
COMMANDS = {
    "tournament": "tournament --game=kuhn_poker --out=DIR/t --matches=1500 "
    "--bots=resolving(iterations=100);uniform",
    "evaluate": "evaluate --game=kuhn_poker --out=DIR/e --method=matches "
    "--matches=1000 --bot=resolving(iterations=100)",
    # Has enough time to search all terminal histories in one run. With a time limit, a
    # search may choose other moves of the same value.
    "exploit": "exploit --game=liars_dice(numdice=1,dice_sides=5) --policy=uniform "
    "--methods=search --minutes=600 --out=DIR/x",
    "push-fold": "push-fold --stacks=600/600 --prizes=100/0 --blinds=300/600 "
    "--rounds=2 --steps=20 --boards=25600 --cache=DIR/k --out=DIR/j",
    "study": "study kuhn --size=0.3",
}
# Process that is killed, and places of workers, which are used in turn: processes; a
# cluster of two nodes, of which the second one's raylet is killed; a local cluster.
KINDS = {
    "worker": ("processes", "cluster"),
    "raylet": ("cluster", "local"),
    "driver": ("processes", "cluster"),
}
# Seconds after a first result within which something is killed.
_WORK = 2.0
# Pattern for command lines of worker processes.
_WORKER = re.compile(rb"from multiprocessing.spawn import spawn_main|^ray::_Actor")
# Fields that depend on times, and on the planned size of a complete search.
_CHANGING = {*PASSING, "crc", "min_ms", "mean_ms", "think_seconds", "longest", "at"}
_CHANGING |= {"units", "share"}


class Cluster:
    """A cluster of two Ray nodes in a separate process.

    Attributes:
      address: Address for --ray.
      pid: Id of the process, which is an ancestor of all processes of the cluster.
      raylets: Process ids of the raylets; that of the head is first.
    """

    def __init__(self) -> None:
        """Start the cluster."""
        words = [sys.executable, "-m", "tests.support.two_nodes"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(words, text=True, **pipes)
        self.pid = self._process.pid
        self._read()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.address, *raylets = self._process.stdout.readline().split()
        self.raylets = [int(pid) for pid in raylets]

    def renew(self) -> None:
        """Replace the second node."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._read()

    def close(self) -> None:
        """Stop the cluster."""
        self._process.communicate(timeout=60)


class Harness:
    """Runner of trials, each in a separate folder."""

    def __init__(self, folder: pathlib.Path, stack: contextlib.ExitStack) -> None:
        """Prepare trials.

        Args:
          folder: Folder for the files of trials.
          stack: Exit stack that stops the cluster, if one is started.
        """
        self._folder, self._stack = folder, stack
        self._cluster: Cluster | None = None
        self._baselines: dict[str, Baseline] = {}
        self._seconds: dict[tuple[str, str], float] = {}

    @property
    def cluster(self) -> Cluster:
        """Return the cluster, which is started on first use."""
        if self._cluster is None:
            self._cluster = Cluster()
            self._stack.callback(self._cluster.close)
        return self._cluster

    def _start(self, command: str, folder: pathlib.Path, *more: str) -> Process:
        words = COMMANDS[command].replace("DIR", str(folder)).split()
        return Process([*words, "--json", *more])

    def _fresh(self, name: str) -> pathlib.Path:
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def _options(self, place: str) -> list[str]:
        """Return the options for two workers at a place."""
        address = self.cluster.address if place == "cluster" else place
        ray = [] if place == "processes" else [f"--ray={address}"]
        return ["--workers=2", *ray]

    def baseline(self, command: str) -> Baseline:
        """Return an undisturbed run of a command in one process."""
        if command not in self._baselines:
            folder = self._fresh(f"baseline-{command}")
            began = time.monotonic()
            ended = self._start(command, folder).end()
            assert ended.code == 0, ended.err
            results = ended.results(folder)
            self._baselines[command] = Baseline(
                folder, lasting(results, _CHANGING), time.monotonic() - began
            )
        return self._baselines[command]

    def seconds(self, command: str, place: str) -> float:
        """Return the seconds of an undisturbed run of a command at a place."""
        key = command, place
        if key not in self._seconds:
            folder = self._fresh("trial")
            began = time.monotonic()
            ended = self._start(command, folder, *self._options(place)).end()
            self._seconds[key] = time.monotonic() - began
            self._check(command, folder, ended)
        return self._seconds[key]

    def trial(self, command: str, kind: str, place: str, number: int) -> str:
        """Run a trial; raise AssertionError if results are lost or differ.

        Args:
          command: Key of `COMMANDS`.
          kind: Key of `KINDS`.
          place: Place of the workers; see `KINDS`.
          number: Seed for the moment.

        Returns:
          The outcome of the command.
        """
        draw = random.Random(number)
        true = self.baseline(command)
        span = self.seconds(command, place)
        folder = self._fresh("trial")
        process = self._start(command, folder, *self._options(place))
        if journals(true.folder) and draw.random() < 0.6:
            # Most of the time passes before the first result.
            while alive(process.pid) and not any(journals(folder).values()):
                time.sleep(0.02)
            span = _WORK
        time.sleep(draw.random() * span)
        killed = self._kill(process, kind, place, draw)
        ended = process.end()
        if kind == "raylet" and place == "cluster":
            self.cluster.renew()
        dies = kind == "driver" or (kind, place) == ("raylet", "local")
        if ended.code == 0 or not dies:
            self._check(command, folder, ended)
            return "went on" if killed else "was over"
        assert "Traceback" not in ended.err, ended.err
        if kind == "driver":
            assert ended.code == -signal.SIGKILL, ended
        check_files(folder)
        lines = journals(folder)
        again = draw.choice(("here", "processes", place))
        more = ["--workers=0"] if again == "here" else self._options(again)
        self._check(command, folder, self._start(command, folder, *more).end())
        for name, found in journals(folder).items():
            # Each line was written once and is unchanged.
            assert set(lines.get(name, [])) <= set(found), name
        begun = "with lines" if any(lines.values()) else "without"
        return f"ended with {ended.code} {begun}, went on ({again})"

    def _kill(
        self, process: Process, kind: str, place: str, draw: random.Random
    ) -> bool:
        """Kill a process once it exists; return False if the command ended before."""
        while alive(process.pid):
            there = self._victims(process, kind, place)
            if there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(there), signal.SIGKILL)
                    return True
            time.sleep(0.02)
        return False

    def _victims(self, process: Process, kind: str, place: str) -> list[int]:
        if kind == "driver":
            return [process.pid]
        if kind == "raylet" and place == "cluster":
            return self.cluster.raylets[1:]
        if kind == "raylet":
            return descendants(process.pid, re.compile(rb"/raylet/raylet\0"))
        root = self.cluster.pid if place == "cluster" else process.pid
        return descendants(root, _WORKER)

    def _check(self, command: str, folder: pathlib.Path, ended: Ended) -> None:
        """Check that a command ended like the undisturbed run."""
        true = self.baseline(command)
        assert ended.code == 0, ended.err
        assert "Traceback" not in ended.err, ended.err
        found = lasting(ended.results(folder), _CHANGING)
        assert found == true.results, (found, true.results)
        check_files(folder, finished=True)
        compare_files(folder, true.folder)
        theirs = journals(true.folder)
        for name, lines in journals(folder).items():
            assert counted(lines) == counted(theirs[name]), name


def counted(lines: Sequence[bytes]) -> collections.Counter[str]:
    """Count the lines of a journal without times."""
    return collections.Counter(
        str(lasting(json_log.unsealed(line), _CHANGING)) for line in lines
    )


def alive(pid: int) -> bool:
    """Return whether a child of this process still runs."""
    state = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return state is None


class _Seen(NamedTuple):
    parent: int
    words: bytes


def descendants(root: int, like: re.Pattern[bytes]) -> list[int]:
    """Return the descendants of a process whose command lines match a pattern."""
    seen: dict[int, _Seen] = {}
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            words = (place / "cmdline").read_bytes()
            seen[int(place.name)] = _Seen(int(fields[1]), words)

    def below(pid: int) -> bool:
        while pid in seen:
            if pid == root:
                return True
            pid = seen[pid].parent
        return False

    return sorted(p for p, s in seen.items() if like.search(s.words) and below(p))


@contextlib.contextmanager
def trials(only: Sequence[str]) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Prepare trials of all commands and kinds in turn.

    Args:
      only: Commands and kinds to use; all commands or kinds if none is given.
    """
    commands = [name for name in COMMANDS if name in only] or list(COMMANDS)
    kinds = [kind for kind in KINDS if kind in only] or list(KINDS)
    # Background jobs of shells inherit ignored signals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Otherwise, Ray writes a token to the home folder.
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with contextlib.ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory())
        harness = Harness(pathlib.Path(name), stack)

        def trial(number: int) -> dict[str, Any]:
            command = commands[number % len(commands)]
            around, turn = divmod(number // len(commands), len(kinds))
            kind = kinds[turn]
            place = KINDS[kind][around % len(KINDS[kind])]
            outcome = harness.trial(command, kind, place, number)
            return {"outcome": f"{command}, {kind} ({place}): {outcome}"}

        yield trial
