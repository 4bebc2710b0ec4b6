"""Damage to JSON lines and settings in the folders of finished runs.

A trial copies the folder of a finished run, damages one file, and repeats the command.
The command must fail with the name of the file (and the line), or give the same
results. A trial depends only on its number, so `check` repeats it.
"""

import contextlib
import json
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.common import json_log
from tests.fuzz import in_process
from tests.fuzz.damaged_files import ACCIDENTS
from tests.support.results import lasting

KUHN = "kuhn_poker"
COMMANDS = {
    "tournament": ["--bots=uniform;uniform", "--matches=4"],
    "evaluate": ["--bot=uniform"],
    "playing": ["--bot=uniform", "--method=matches", "--matches=4"],
    "compare": ["--algorithms=uniform;openspiel-cfr", "--iterations=2", "--workers=0"],
}
# Times, and values that only this call has.
_PASSING = {"seconds", "max_ms", "out", "report"}
# The same in the lines of a journal.
_PASSING_IN_LINES = {
    *("seconds", "max_ms", "finished", "load", "wall_seconds", "setup_seconds"),
    *("compile_seconds", "cpu_seconds"),
}
# Replacements of values in a file.
_JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**70, 0.5, -0.5, 1e308, float("nan"), float("inf")),
    *("", "x", [], [0], [[]], [None, None], {}, {"a": 1}, [[0.5], [0.5]]),
)


def run(command: str, folder: pathlib.Path) -> tuple[int | None, str, Any]:
    """Run a command; return its exit code, its stderr and its results."""
    name = "evaluate" if command == "playing" else command
    words = [name, "--game", KUHN, "--out", str(folder), "--json", *COMMANDS[command]]
    done = in_process.run(words, folder.parent)
    last = done.out.splitlines()[-1] if done.code == 0 else "null"
    return done.code, done.err + done.error, lasting(json.loads(last), _PASSING)


class Finished(NamedTuple):
    """A finished run: its folder, and the results of the command."""

    folder: pathlib.Path
    results: Any


def finish(command: str, folder: pathlib.Path) -> Finished:
    """Run a command to its end in a new folder."""
    code, err, results = run(command, folder)
    assert code == 0, err
    return Finished(folder, results)


def files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the files from which a command resumes."""
    return sorted([*folder.glob("*.jsonl"), folder / json_log.SETTINGS])


def damage(content: bytes, random: np.random.Generator) -> bytes:
    """Return content with a changed digit, changed lines, or an accident of files."""
    kind = int(random.integers(9))
    if kind < 6:
        return ACCIDENTS[kind](content, random)
    if kind < 8:
        digits = [i for i, byte in enumerate(content) if byte in b"0123456789"]
        made, place = bytearray(content), int(random.choice(digits))
        made[place] = 48 + (made[place] - 48 + int(random.integers(1, 10))) % 10
        return bytes(made)
    lines = content.splitlines(keepends=True)
    random.shuffle(lines)
    return b"".join(lines[: int(random.integers(len(lines) + 1))])


def replace_value(content: bytes, random: np.random.Generator) -> bytes:
    """Return content with one changed value and valid checksums."""
    if content.startswith(b"{\n"):
        record = json_log.unsealed(content)
        _exchange(record, random)
        return json.dumps(json_log.sealed(record), indent=1).encode()
    lines = content.splitlines()
    number = int(random.integers(len(lines)))
    record = json_log.unsealed(lines[number])
    _exchange(record, random)
    lines[number] = json.dumps(json_log.sealed(record)).encode()
    return b"\n".join([*lines, b""])


def _exchange(place: Any, random: np.random.Generator) -> None:
    """Replace or remove a random value of a table or list."""
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    key = keys[int(random.integers(len(keys)))]
    if isinstance(place[key], dict | list) and place[key] and random.random() < 0.6:
        _exchange(place[key], random)
    elif random.random() < 0.1:
        del place[key]
    else:
        place[key] = _JUNK[int(random.integers(len(_JUNK)))]


def check(finished: Finished, work: pathlib.Path, command: str, number: int) -> str:
    """Run a trial; return "refused" or "equal", or raise AssertionError.

    Args:
      finished: The run without damage.
      work: Folder for the trial, which is created again.
      command: Key of `COMMANDS`.
      number: Number of the trial. Every fourth one changes values and computes new
        checksums: then results may change, and only errors are checked.
    """
    random = np.random.default_rng([number, *command.encode()])
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(finished.folder, work)
    found = files(work)
    target = found[int(random.integers(len(found)))]
    sealed = number % 4 == 3
    before = target.read_bytes()
    target.write_bytes((replace_value if sealed else damage)(before, random))
    code, err, results = run(command, work)
    where = f"check(finished, work, {command!r}, {number}): {err}"
    assert "Traceback" not in err, where
    if code:
        last = err.splitlines()[-1]
        assert code == 2 and last.startswith("spiel-cr: error: "), where
        # Changed settings with valid checksums are those of another run.
        assert target.name in last or (sealed and "holds a run" in last), where
        assert target.suffix != ".jsonl" or ", line " in last, where
        return "refused"
    if not sealed:
        assert results == finished.results, where
        _check_records(finished.folder, work, where)
    return "equal"


def _check_records(folder: pathlib.Path, work: pathlib.Path, where: str) -> None:
    """Check that each line exists with the same content."""
    for file in folder.glob("*.jsonl"):
        ours, theirs = (
            [json_log.unsealed(line) for line in path.read_bytes().splitlines()]
            for path in (file, work / file.name)
        )
        places = [
            {"deal", "swapped", "seat", "match", "algorithm"} & set(r) for r in ours
        ]
        for record, names in zip(ours, places, strict=True):
            again = [r for r in theirs if all(r[n] == record[n] for n in names)]
            assert again, where
            assert all(_content(one) == _content(record) for one in again), where


def _content(record: json_log.Record) -> Any:
    """Return a line without times; points of curves begin with seconds."""
    kept = lasting(record, _PASSING_IN_LINES)
    if "curve" in kept:
        kept["curve"] = [point[1:] for point in kept["curve"]]
    return kept


@contextlib.contextmanager
def trials(only: Sequence[str]) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Prepare trials of all commands in turn, or of the commands in `only`."""
    commands = [command for command in COMMANDS if not only or command in only]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        finished = {command: finish(command, folder / command) for command in commands}

        def trial(number: int) -> dict[str, Any]:
            command = commands[number % len(commands)]
            work, number = folder / "work", number // len(commands)
            how = check(finished[command], work, command, number)
            return {"outcome": f"{command} {how}"}

        yield trial
