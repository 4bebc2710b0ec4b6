"""A folder that a run adds results to, and that the next run continues from.

`settings.json` says what the run is. `NAME.jsonl` has one line of JSON for each
result, written as soon as the result is there. If the process is killed while it
writes, half a line remains; the next run cuts that off and computes the result again.
"""

import contextlib
import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, TypeAlias

from spiel_cr.common import storage

SETTINGS = "settings.json"
_LOCK = ".lock"
_REMEDY = "choose another folder, or delete this one"

Record: TypeAlias = dict[str, Any]
# The values that tell a result from the others, in the order of the log's `key`.
Key: TypeAlias = tuple[Any, ...]


class OtherRunError(ValueError):
    """The folder holds a run with other settings; the message says which."""


def check_folder(folder: storage.Path) -> pathlib.Path:
    """Returns the path of a folder that can be written to, or raises ValueError."""
    path = pathlib.Path(folder)
    if path.exists() and not path.is_dir():
        raise ValueError(f"out={path} is a file; give the path of a folder")
    storage.check_writable(path / SETTINGS)
    return path


def same_settings(found: Record, new: Record) -> Record:
    """Settings of the folder, which must be those of this run.

    Args:
      found: from the folder; may hold more.
      new: of this run.

    Raises:
      OtherRunError: they differ.
    """
    for name, value in new.items():
        if found[name] != value:
            raise OtherRunError(
                f"holds a run with {name}={found[name]!r}, not {value!r}"
            )
    return found


def read_lines(
    path: pathlib.Path,
    key: Sequence[str],
    *,
    what: str = "result",
    check: Callable[[Record], object] | None = None,
) -> dict[Key, Record]:
    """The last line of each key, in the order of the first ones.

    Args:
      path: of the file of JSON lines; empty if there is none.
      key: the names of the values that tell lines apart.
      what: a line is, for errors.
      check: raises KeyError, TypeError or ValueError where a line is not as it must be.

    Raises:
      ValueError: a line is damaged. (Half a line at the end is left out.)
    """
    records: dict[Key, Record] = {}
    content = path.read_bytes() if path.exists() else b""
    for number, line in enumerate(content[: _whole(content)].splitlines(), 1):
        try:
            record = json.loads(line)
            if check is not None:
                check(record)
            records[tuple(record[name] for name in key)] = record
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path}, line {number}, is not a {what} ({error!r}); delete the line "
                f"to compute it again"
            ) from error
    return records


def _whole(content: bytes) -> int:
    """The number of bytes in whole lines."""
    return content.rfind(b"\n") + 1


class JsonLog:
    """A folder with a run in it, open for one process at a time.

    Attributes:
      folder: where it is; None: results are only kept in memory.
      settings: of the run, as `settings.json` has them or will have them.
      records: the results by key, those of earlier processes too.
    """

    def __init__(
        self,
        folder: storage.Path | None,
        name: str,
        settings: Mapping[str, Any],
        *,
        key: Sequence[str],
        facts: Mapping[str, Any] | None = None,
        what: str = "result",
        check: Callable[[Record], object] | None = None,
        merge: Callable[[Record, Record], Record] = same_settings,
    ) -> None:
        """Opens a run, or prepares a new one; `add` begins it.

        Args:
          folder: made where it is missing; None: nothing is written.
          name: of the file of JSON lines, without ".jsonl".
          settings: what all results depend on; anything that JSON can hold.
          key: the names of the values that tell results apart.
          facts: kept beside the settings of a new run, and not compared.
          what: a line is, for errors.
          check: raises KeyError, TypeError or ValueError where a line is not as it must
            be.
          merge: called with the folder's settings and with these, returns those to go
            on with, or raises `OtherRunError`.

        Raises:
          ValueError: the folder holds another run, is damaged, or is in use by another
            process; or it cannot be written to.
        """
        self.folder = None if folder is None else pathlib.Path(folder)
        # As they will be read again: tuples become lists.
        given = json.loads(json.dumps(dict(settings)))
        self.settings: Record = {**given, **(facts or {})}
        self.records: dict[Key, Record] = {}
        self._key = tuple(key)
        self._begun = False
        self._lock: IO[str] | None = None
        self._file: IO[str] | None = None
        if self.folder is None:
            return
        self._path = check_folder(self.folder) / f"{name}.jsonl"
        self._new = not self.folder.exists()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(self.folder)
        try:
            self._read_settings(given, merge)
            self.records = read_lines(self._path, key, what=what, check=check)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "JsonLog":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def begin(self) -> None:
        """Writes the settings, so that the folder is this run's from now on."""
        if self.folder is not None and not self._begun:
            text = json.dumps(self.settings, indent=1) + "\n"
            storage.write_text(self.folder / SETTINGS, text)
            self._path.touch()
        self._begun = True

    def add(self, record: Record, *, sync: bool = False) -> None:
        """Writes a result; it survives the process from now on.

        Args:
          record: with all names of the key.
          sync: wait until it is on the disk, so that it survives the machine, too.
        """
        self.begin()
        self.records[tuple(record[name] for name in self._key)] = record
        if self.folder is None:
            return
        if self._file is None:
            self._file = _open_at_whole_line(self._path)
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        if sync:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Lets other processes in; a new folder without a run is removed."""
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None
        if self.folder is not None and self._new and not self._begun:
            (self.folder / _LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def _read_settings(
        self, new: Record, merge: Callable[[Record, Record], Record]
    ) -> None:
        assert self.folder is not None
        file = self.folder / SETTINGS
        if not file.exists():
            if self._path.exists():
                raise ValueError(
                    f"out={self.folder} has {self._path.name} but no {SETTINGS}; "
                    f"{_REMEDY}"
                )
            return
        try:
            found = json.loads(file.read_text("utf-8"))
            self.settings = merge(found, new)
        except OtherRunError as error:
            raise OtherRunError(f"out={self.folder} {error}; {_REMEDY}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file} is damaged ({error!r}); {_REMEDY}") from error
        self._begun = self.settings == found


def _open_at_whole_line(path: pathlib.Path) -> IO[str]:
    """Opens for appending, after cutting off half a line."""
    if path.exists():
        content = path.read_bytes()
        if _whole(content) < len(content):
            os.truncate(path, _whole(content))
    return path.open("a", encoding="utf-8")


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
                f"out={folder} is in use by another run; wait for it, or choose "
                f"another folder"
            ) from error
        except OSError:
            # Some network file systems have no locks.
            file.close()
            return None
        return file
    return None
