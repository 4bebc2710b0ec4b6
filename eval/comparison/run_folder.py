"""Comparing: the folder of a run, from which it continues after any interruption.

`settings.json` says what the run is, `results.jsonl` has one line for each finished
cell. A line is on the disk before the next cell is counted as begun; half a line, left
by a kill, is cut off and its cell runs again.
"""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterable
from typing import IO, Any

import pyspiel

from spiel_cr.common import storage
from spiel_cr.compilation import loading

from ..contestants import registry
from .measure import RunKey

RESULTS = "results.jsonl"
SETTINGS = "settings.json"
_LOCK = ".lock"

_Record = dict[str, Any]


def read_records(path: pathlib.Path) -> dict[RunKey, _Record]:
    """The newest line of each cell.

    Raises:
      ValueError: a line is no result. (Half a line at the end is left out.)
    """
    if not path.exists():
        return {}
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    records = {}
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            record = json.loads(line)
            key = RunKey(*(record[name] for name in RunKey._fields))
            record["nash_conv"], record["error"]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path}, line {number}, is no result ({error!r}); delete the line to "
                f"run its cell again"
            ) from error
        records[key] = record
    return records


def distinct_games(games: Iterable[str]) -> dict[str, str]:
    """The first words for each game, by what it is: kuhn_poker is kuhn_poker()."""
    found: dict[str, str] = {}
    for game in games:
        try:
            key = str(loading.load_game(game))
        except pyspiel.SpielError:
            # A folder's; today's games are checked elsewhere.
            key = game
        found.setdefault(key, game)
    return found


class RunFolder:
    """A folder with a comparison in it, open for one process at a time.

    Attributes:
      path: of the folder.
      settings: of the run, those of all commands that added to it.
      records: the finished cells.
    """

    def __init__(self, path: pathlib.Path, settings: _Record) -> None:
        """Opens or begins a run.

        Args:
          path: made where it is missing.
          settings: "games", "algorithms" and "seeds" may grow from command to command;
            "budget" and "versions" may not change; what else there is, is replaced.

        Raises:
          ValueError: the folder holds another run, is damaged, or in use.
        """
        self.path = path
        if path.exists() and not path.is_dir():
            raise ValueError(f"out={path} is a file; give the path of a folder")
        storage.check_writable(path / RESULTS)
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(path)
        try:
            self.settings = self._merged(settings)
            self.records = read_records(path / RESULTS)
            self._cut_off()
        except BaseException:
            self.close()
            raise
        storage.write_text(path / SETTINGS, json.dumps(self.settings, indent=1) + "\n")

    def games(self, given: Iterable[str]) -> list[str]:
        """The same games in the folder's words, which tell its cells apart."""
        known = distinct_games(self.settings["games"])
        return [known.get(key, game) for key, game in distinct_games(given).items()]

    def add(self, record: _Record) -> None:
        """Writes a line; it is on the disk when this returns."""
        key = RunKey(*(record[name] for name in RunKey._fields))
        self.records[key] = record
        with (self.path / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Lets others in."""
        if self._lock is not None:
            self._lock.close()

    def _merged(self, settings: _Record) -> _Record:
        file = self.path / SETTINGS
        remedy = "choose another folder, or delete this one"
        if not file.exists():
            if (self.path / RESULTS).exists():
                raise ValueError(
                    f"out={self.path} has {RESULTS} but no {SETTINGS}; {remedy}"
                )
            return settings
        try:
            found = json.loads(file.read_text("utf-8"))
            for name in ("budget", "versions"):
                if found[name] != settings[name]:
                    raise _OtherRunError(
                        f"out={self.path} holds a run with {name}={found[name]}, not "
                        f"{settings[name]}; {remedy}"
                    )
            games = distinct_games([*found["games"], *settings["games"]])
            for name in found["algorithms"]:
                _check_known(file, name)
            names = dict.fromkeys([*found["algorithms"], *settings["algorithms"]])
            grown: _Record = {"games": list(games.values()), "algorithms": list(names)}
            grown["seeds"] = max(found["seeds"], settings["seeds"])
        except _OtherRunError as error:
            raise ValueError(str(error)) from None
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file} is damaged ({error!r}); {remedy}") from error
        return {**settings, **grown}

    def _cut_off(self) -> None:
        """Half a line, so that the next one begins on its own."""
        file = self.path / RESULTS
        if not file.exists():
            return
        content = file.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(file, whole)


def _check_known(file: pathlib.Path, name: str) -> None:
    """Otherwise its cells would run, and their report could not be written."""
    try:
        registry.find(name)
    except ValueError as error:
        raise _OtherRunError(
            f"{file} names an algorithm that there is not ({error}); delete the name "
            f"from its list of algorithms, or choose another folder"
        ) from error


class _OtherRunError(Exception):
    """The folder is another run's."""


def _lock(folder: pathlib.Path) -> IO[str] | None:
    """Held until closed or until the process ends, in whatever way."""
    with contextlib.suppress(ImportError):
        import fcntl

        file = (folder / _LOCK).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise ValueError(
                f"out={folder} is in use by another run of compare; wait for it, or "
                f"choose another folder"
            ) from error
        except OSError:
            # Some network file systems have no locks.
            file.close()
            return None
        return file
    return None
