"""Commands that are killed, interrupted, short of disk, or two at a time.

Each trial starts a command in a new process, disturbs it at a random moment, and checks
the files: every file is complete, and no line of a log is lost. Then the trial repeats
the command, which must finish with the results of an undisturbed run.
A trial depends on its number and on the speed of the machine:

    python -m tests.fuzz interruptions FIRST LAST [--only COMMAND ...]

Processes are forked from this one, which has imported everything and computed nothing.
This saves the seconds of a start. Trials of the start itself use a new interpreter.
"""

import contextlib
import functools
import importlib
import json
import os
import pathlib
import pkgutil
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import spiel_cr
import spiel_cr.eval
from spiel_cr.common import compilation_cache, json_log, storage
from spiel_cr.eval.cli import entry
from tests.support.results import lasting

KUHN = "--game=kuhn_poker"
_LEDUC = "--game=python_leduc_poker"
# A file that is written regularly, and one that is written at the end.
_SOLVE = "--checkpoint=DIR/c.npz --checkpoint-every=0.01 --save=DIR/s.npz"
# Commands of all families that write files; DIR is the folder of the trial.
COMMANDS = {
    "tournament": "tournament GAME --out=DIR/t --matches=100 --bots=uniform;uniform",
    "sessions": "tournament GAME --out=DIR/t --matches=60 --bots=uniform;uniform "
    "--session=stack=6,rounds=8",
    "evaluate": "evaluate GAME --out=DIR/e --repeats=6 "
    "--bot=resolving(solver=cfr+,iterations=100)",
    "playing": "evaluate GAME --out=DIR/e --method=matches --matches=600 --bot=uniform",
    "solve": "solve GAME SOLVE --plot=DIR/p.png --eval-every=5000 --iterations=25000",
    # Writes a checkpoint only after a signal; it iterates most of the time.
    "patient": "solve GAME --algorithm=cfr+ --checkpoint=DIR/c.npz "
    "--checkpoint-every=3600 --save=DIR/s.npz --iterations=400000",
    "sampled": "solve GAME SOLVE --algorithm=evr-mccfr(batch=16) --iterations=1500",
    "uncompiled": "solve GAME SOLVE --algorithm=os-mccfr(batch=256) --iterations=20 "
    "--form simulator --memory-limit=3GB",
    "first-order": "solve GAME SOLVE --algorithm=pdhg --iterations=5000",
    "public-tree": "solve LEDUC --form=public-tree SOLVE --algorithm=cfr+ "
    "--iterations=2000",
    "phantom": "solve --game=dark_hex(board_size=2) --form=phantom SOLVE "
    "--algorithm=cfr+ --iterations=3000",
    "public": "solve LEDUC SOLVE --algorithm=public-vr+ --iterations=100",
    "deep": "solve GAME SOLVE --iterations=20 "
    "--algorithm=sd-cfr(hidden=8,layers=1,traversals=20,steps=5)",
    "self-play": "solve GAME SOLVE --algorithm=mmd(hidden=8,layers=1) --iterations=4",
    "exploit": "exploit GAME --policy=uniform --methods=exact --out=DIR/x",
    # Searches all terminal histories, so that the result does not depend on time.
    "search": "exploit GAME --policy=uniform --methods=search --out=DIR/x",
    "abstract": "abstract LEDUC --budget=2-4 --iterations=20",
    "push-fold": "push-fold --stacks=600/600 --prizes=100/0 --blinds=300/600 "
    "--rounds=2 --steps=10 --boards=1024 --cache=DIR/k --out=DIR/j",
    "resolve": "resolve GAME --save=DIR/s.npz --cache=DIR/k --iterations=200",
    "compare": "compare GAME --out=DIR/x --iterations=100 --seeds=2 --workers=0 "
    "--algorithms=uniform;openspiel-cfr;openspiel-os-mccfr;openspiel-cfr+",
    "workers": "compare GAME --out=DIR/x --iterations=100 --seeds=2 --workers=2 "
    "--algorithms=uniform;openspiel-cfr;openspiel-os-mccfr",
    "subgame": "subgame GAME --out=DIR/g --plot=DIR/p.svg --actions=0,1,0,1 "
    "--iterations=50 --trunk-iterations=50",
    "show": "show GAME --policy=DIR/policy.npz --html=DIR/page.html",
    "best-response": "best-response GAME --policy=uniform --simulations=100",
    "info": "info GAME --cache=DIR/k",
    "study": "study kuhn --size=0.01",
}
# Kinds of disturbances, with valid exit codes: kill -9; SIGTERM to the command, or also
# to its workers; Ctrl-C and a closed terminal, which all processes of the terminal
# receive; Ctrl-C twice; files that cannot grow; a disk that is full, or read-only from
# the start; a second run; a signal while Python imports.
KINDS = {
    "kill": {0, -9},
    "term": {0, 143, -15},
    "group": {0, 143, -15},
    "interrupt": {0, 130, -2},
    "hangup": {0, 129, -1},
    "twice": {0, 130, -2},
    "full": {0, 1, 2},
    "disk": {0, 1, 2},
    "read-only": {0, 2},
    "two": {0, 2},
    "start": {0, 130, 143, -2, -15},
}
# Messages of the system, which are printed with the path.
_SAID = {
    "full": "File too large",
    "disk": "No space left on device",
    "read-only": "Read-only file system",
}
MOUNTED = ("disk", "read-only")
# Fields with times and paths.
PASSING = set(
    "seconds compile_seconds iterations_per_second peak_memory_bytes max_ms "
    "deadline_misses out report html compilations policy build_seconds "
    "trajectories_per_second table_limit evaluation_seconds".split()
)
_PATIENCE = 300.0
# JSON lines that are written once; all other files of JSON lines are journals.
_PLAIN = ("subgame.jsonl",)
# Commands with a checkpoint.
SOLVES = [name for name, line in COMMANDS.items() if line.startswith("solve")]


class Ended(NamedTuple):
    """A process that has ended: its exit code as in `subprocess`, and its output."""

    code: int
    out: str
    err: str

    def results(self, folder: pathlib.Path) -> Any:
        """Return the reported results without times and folders."""
        line = self.out.splitlines()[-1].replace(str(folder), "DIR")
        found = json.loads(line)
        if "method" in (found.get("curve") or [{}])[0]:
            # The order of seats in a curve depends on time; that within a seat does
            # not.
            found["curve"].sort(key=lambda point: point["player"])
        return lasting(found, PASSING)


class Process:
    """A command in a separate process."""

    def __init__(self, words: Sequence[str], *, new: bool = False) -> None:
        """Start the command, by a fork or in a new interpreter."""
        self._texts: list[bytes] = [b"", b""]
        ends = [os.pipe(), os.pipe()]
        sys.stdout.flush()
        if new:
            code = "from spiel_cr.eval.cli import entry; entry.main()"
            streams = {"stdout": ends[0][1], "stderr": ends[1][1]}
            given = [sys.executable, "-c", code, *words]
            self._popen = subprocess.Popen(given, start_new_session=True, **streams)
            self.pid = self._popen.pid
        else:
            self._popen = None
            self.pid = os.fork()
            if not self.pid:
                self._be(words, ends)
        for _, write in ends:
            os.close(write)
        self._readers = [
            threading.Thread(target=self._read, args=(place, read))
            for place, (read, _) in enumerate(ends)
        ]
        for reader in self._readers:
            reader.start()

    def _be(self, words: Sequence[str], ends: Sequence[tuple[int, int]]) -> None:
        """Run the command in the child process; never return."""
        # As in a new process, until the command installs its handlers.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = 70
        try:
            os.setsid()
            for target, (_, write) in enumerate(ends, 1):
                os.dup2(write, target)
            sys.argv = ["spiel-cr", *words]
            entry.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _read(self, place: int, end: int) -> None:
        with open(end, "rb") as file:
            self._texts[place] = file.read()

    def send(self, number: int, *, to_all: bool = False) -> None:
        """Send a signal to the process if it exists, or to its process group."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if to_all else os.kill)(self.pid, number)

    def limit_files(self, size: int) -> None:
        """Limit the size of files that the process writes, as on a full disk."""
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, size))

    def end(self) -> Ended:
        """Wait for the end of the process."""
        limit = threading.Timer(_PATIENCE, self.send, [signal.SIGKILL])
        limit.start()
        if self._popen is not None:
            code = self._popen.wait()
        else:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        limit.cancel()
        for reader in self._readers:
            # Workers share the pipes, and none may outlive the command.
            reader.join(20)
            assert not reader.is_alive(), "a worker is still there"
        out, err = (text.decode() for text in self._texts)
        return Ended(code, out, err)


class Baseline(NamedTuple):
    """An undisturbed run."""

    folder: pathlib.Path
    results: Any
    seconds: float


class Harness:
    """Runner of trials, each in a separate folder."""

    def __init__(self, folder: pathlib.Path, *, quick: bool = False) -> None:
        """Prepare trials.

        Args:
          folder: Folder for the files of trials.
          quick: Whether to omit runs that only measure durations.
        """
        self._folder, self._quick = folder, quick
        self._baselines: dict[str, Baseline] = {}
        self._policy = folder / "policy.npz"

    def words(self, command: str, folder: pathlib.Path) -> list[str]:
        line = COMMANDS[command]
        for name, text in (("SOLVE", _SOLVE), ("GAME", KUHN), ("LEDUC", _LEDUC)):
            line = line.replace(name, text)
        return [*line.replace("DIR", str(folder)).split(), "--json"]

    def _fresh(self, name: str, command: str) -> pathlib.Path:
        """Create a new folder with the files that a command reads."""
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if "policy.npz" in COMMANDS[command]:
            if not self._policy.exists():
                words = ["solve", KUHN, "--iterations=20", f"--save={self._policy}"]
                assert Process(words).end().code == 0
            shutil.copy(self._policy, folder)
        return folder

    def baseline(self, command: str) -> Baseline:
        """Return the undisturbed run of a command, which is cached.

        The command runs twice, and the duration of the second run counts, because JAX
        then uses its cache, as in a trial. In quick tests, it runs once, and 70% of the
        time counts if anything was compiled. Results do not depend on workers, which
        take seconds to start, so quick tests start none.
        """
        if command not in self._baselines and self._quick:
            before = _kept_programs()
            cold = self._undisturbed(command, workers=False)
            share = 1.0 if _kept_programs() == before else 0.7
            self._baselines[command] = cold._replace(seconds=share * cold.seconds)
        if command not in self._baselines:
            cold, warm = (self._undisturbed(command) for _ in range(2))
            assert warm.results == cold.results
            self._baselines[command] = warm
        return self._baselines[command]

    def _undisturbed(self, command: str, *, workers: bool = True) -> Baseline:
        folder = self._fresh(f"baseline-{command}", command)
        words = self.words(command, folder)
        if not workers:
            words = [word.replace("--workers=2", "--workers=0") for word in words]
        started = time.monotonic()
        ended = Process(words).end()
        assert ended.code == 0, ended.err
        return Baseline(folder, ended.results(folder), time.monotonic() - started)

    def trial(
        self, number: int, commands: Sequence[str] = tuple(COMMANDS)
    ) -> tuple[str, str, str]:
        """Run a trial; raise AssertionError if results are lost or differ.

        Returns:
          The command, the kind of disturbance, and the outcome.
        """
        place, around = number % len(commands), number // len(commands)
        command, kind = commands[place], tuple(KINDS)[(place + around) % len(KINDS)]
        if kind in MOUNTED and not can_mount():
            return command, kind, "nothing: it may not mount"
        true = self.baseline(command)
        folder = self._fresh("trial", command)
        with _small_disk(folder) if kind in MOUNTED else contextlib.nullcontext():
            if kind in MOUNTED and "policy.npz" in COMMANDS[command]:
                shutil.copy(self._policy, folder)
            outcome = self._disturbed(command, kind, folder, random.Random(number))
            self._again(command, folder, true)
        return command, kind, outcome

    def _disturbed(
        self, command: str, kind: str, folder: pathlib.Path, draw: random.Random
    ) -> str:
        """Run and disturb a command; return its exit codes as text."""
        true, words = self.baseline(command), self.words(command, folder)
        if kind == "read-only":
            _mount("remount,ro", folder)
        process = Process(words, new=kind == "start")
        if kind != "read-only":
            start = 2.0 if kind == "start" else 0.0
            time.sleep(draw.random() * (start + 1.05 * true.seconds))
        before = checkpoint_iterations(folder)
        others = [Process(words)] if kind == "two" else []
        if kind == "full":
            process.limit_files(draw.choice((0, 100, 1000, 4096)))
        if kind == "disk":
            _fill(folder, draw.choice((0, 100, 4096, 20_000)))
        numbers = {
            "kill": [signal.SIGKILL],
            "term": [signal.SIGTERM],
            "group": [signal.SIGTERM],
            "interrupt": [signal.SIGINT],
            "hangup": [signal.SIGHUP],
            "twice": [signal.SIGINT, signal.SIGINT],
            "start": [draw.choice((signal.SIGINT, signal.SIGTERM))],
        }.get(kind, [])
        for number in numbers:
            process.send(number, to_all=kind not in ("kill", "term"))
            time.sleep(0.1 * draw.random() if len(numbers) > 1 else 0.0)
        ended = [one.end() for one in (process, *others)]
        if kind == "read-only":
            _mount("remount,rw", folder)
        (folder / _FILLER).unlink(missing_ok=True)
        for one in ended:
            check_end(kind, one)
        if kind == "two":
            assert 0 in [one.code for one in ended], ended
        check_files(folder)
        assert checkpoint_iterations(folder) >= before
        signalled = kind in ("term", "group", "interrupt", "hangup")
        if signalled and ended[0].code > 128 and command in SOLVES:
            # The checkpoint has the iterations that the progress bar has shown.
            shown = shown_iterations(ended[0].err)
            assert not shown or checkpoint_iterations(folder) >= shown, ended
        return "+".join(sorted(str(one.code) for one in ended))

    def _again(self, command: str, folder: pathlib.Path, true: Baseline) -> None:
        """Repeat the command, which must resume and finish with the same results.

        In the quick form, it resumes with one worker.
        """
        lines = journals(folder)
        words = self.words(command, folder)
        if self._quick:
            words = [word.replace("--workers=2", "--workers=1") for word in words]
        again = Process(words).end()
        assert again.code == 0, again.err
        found = again.results(folder)
        assert found == true.results, (found, true.results)
        check_files(folder, finished=True)
        for name, found in journals(folder).items():
            old = lines.get(name, [])
            if command == "workers":
                # A command that ends puts lines in the order of its plan.
                assert len(set(found)) == len(found) and set(old) <= set(found), name
                true_order = planned(journals(true.folder)[name])
                assert planned(found) == true_order, name
            else:
                assert found[: len(old)] == old, name
        compare_files(folder, true.folder)


_FILLER = "filler"
# What commands import besides this project, when they need it.
_LIBRARIES = (
    "matplotlib.backends.backend_agg matplotlib.backends.backend_svg matplotlib.figure "
    "matplotlib.font_manager optax scipy.optimize scipy.stats"
).split()


def import_everything() -> None:
    """Import all modules, which commands otherwise import on demand."""
    for package in (spiel_cr, spiel_cr.eval):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for name in _LIBRARIES:
        importlib.import_module(name)


def _kept_programs() -> set[pathlib.Path]:
    """Return the files of cached compiled functions."""
    folder = os.environ.get(compilation_cache.VARIABLE, "")
    if folder in ("", "off"):
        folder = os.environ.get("JAX_COMPILATION_CACHE_DIR", os.devnull)
    return {*pathlib.Path(folder).rglob("*-cache")}


def _mount(options: str, folder: pathlib.Path, *more: str) -> None:
    words = ["mount", *more, "-o", options, str(folder)]
    subprocess.run(words, check=True, capture_output=True)


@contextlib.contextmanager
def _small_disk(folder: pathlib.Path) -> Iterator[None]:
    """Mount a separate small disk at a folder."""
    _mount("size=32m", folder, "-t", "tmpfs", "tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@functools.cache
def can_mount() -> bool:
    """Return whether this process may mount disks."""
    with tempfile.TemporaryDirectory() as name:
        try:
            with _small_disk(pathlib.Path(name)):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def _fill(folder: pathlib.Path, left: int) -> None:
    """Fill a disk except for some bytes."""
    with contextlib.suppress(OSError), open(folder / _FILLER, "wb", 0) as file:
        while True:
            file.write(bytes(65536))
    size = (folder / _FILLER).stat().st_size
    os.truncate(folder / _FILLER, max(0, size - left))


def check_end(kind: str, ended: Ended) -> None:
    """Check the exit code and the messages of a process that was disturbed."""
    last = (ended.err.splitlines() or [""])[-1]
    if kind == "start" and ended.code == 1 and "KeyboardInterrupt" in last:
        # Python's own start, before the first line of this project.
        assert "spiel_cr" not in ended.err or "entry" not in ended.err, ended.err
        return
    assert "Traceback" not in ended.err, ended.err
    assert ended.code in KINDS[kind], ended
    if kind in _SAID and ended.code:
        # Reported before or after the work, in both cases with the path.
        said = _SAID[kind]
        assert re.search(rf"{said}: '/|='/.*\({said}\)", ended.err), ended.err
    if kind == "read-only" and ended.code:
        assert not ended.out, ended
    if kind == "two" and ended.code:
        assert "is in use by another run" in last, ended.err


def shown_iterations(err: str) -> int | None:
    """Return the iterations of the last progress bar; None without a bar."""
    found = re.findall(r"\| (\d+)/\d+ \[", err)
    return int(found[-1]) if found else None


def checkpoint_iterations(folder: pathlib.Path) -> int:
    """Return the iterations of the checkpoint; -1 if it does not exist."""
    path = folder / "c.npz"
    if not path.exists():
        return -1
    metadata = storage.load_metadata(path)
    return int(metadata["iterations"])


def journals(folder: pathlib.Path) -> dict[str, list[bytes]]:
    """Return the complete lines of each journal."""
    return {
        path.name: [
            line for line in path.read_bytes().splitlines(True) if line[-1] == 10
        ]
        for path in folder.rglob("*.jsonl")
        if path.name not in _PLAIN
    }


def planned(lines: Sequence[bytes]) -> list[tuple[str, int]]:
    """Return algorithm and seed of each line of a journal of `compare`."""
    records = map(json_log.unsealed, lines)
    return [(record["algorithm"], record["seed"]) for record in records]


def check_files(folder: pathlib.Path, *, finished: bool = False) -> None:
    """Check that files are complete; if finished, that no temporary file is left."""
    for lines in journals(folder).values():
        for line in lines:
            json_log.unsealed(line)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        if path.suffix in (".part", ".lock"):
            assert not finished, path
        elif path.suffix == ".npz":
            storage.load(path)
        elif path.name == "settings.json":
            json_log.unsealed(path.read_bytes())
        elif path.suffix == ".json":
            json.loads(path.read_bytes())
        elif path.suffix == ".html":
            assert path.read_text().rstrip().endswith("</html>")
        elif path.suffix == ".png":
            assert b"IEND" in path.read_bytes()[-12:]
        elif path.suffix == ".svg":
            assert path.read_text().rstrip().endswith("</svg>")
        elif path.suffix in (".csv", ".md") or path.name in _PLAIN:
            assert path.read_bytes().endswith(b"\n")


def compare_files(folder: pathlib.Path, true: pathlib.Path) -> None:
    """Check that the files of two runs are bitwise identical, except for times."""
    names = [sorted(p.relative_to(f) for p in f.rglob("*")) for f in (folder, true)]
    assert names[0] == names[1]
    for name in names[0]:
        mine, other = folder / name, true / name
        if name.suffix == ".npz":
            arrays = storage.load(mine)[0], storage.load(other)[0]
            assert arrays[0].keys() == arrays[1].keys()
            for key in arrays[0].keys() - PASSING:
                array = arrays[0][key]
                np.testing.assert_array_equal(array, arrays[1][key], strict=True)
        elif name.name in ("table.csv", "page.html"):
            there = other.read_text().replace(str(true), str(folder))
            assert mine.read_text() == there
        elif name.suffix == ".jsonl":
            assert len(mine.read_bytes().splitlines()) == len(
                other.read_bytes().splitlines()
            )


@contextlib.contextmanager
def trials(only: Sequence[str]) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Prepare trials of all commands in turn.

    Args:
      only: Commands to use; "quick" is the option of `Harness`.
    """
    names = [name for name in only if name != "quick"] or list(COMMANDS)
    import_everything()
    # Background jobs of shells inherit ignored signals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with tempfile.TemporaryDirectory() as name:
        harness = Harness(pathlib.Path(name), quick="quick" in only)

        def trial(number: int) -> dict[str, Any]:
            command, kind, outcome = harness.trial(number, names)
            return {"outcome": f"{kind} ended with {outcome}", "command": command}

        yield trial
