"""A folder to which a run adds results, and from which the next run continues.

`settings.json` describes the run. `NAME.jsonl` has one line of JSON for each result,
written as soon as the result is computed. If the process is killed while it writes, an
incomplete line remains; the next run removes it and computes the result again.

The settings and each line end with a checksum, the key "crc": the CRC-32 of the JSON
text of all other values. Corrupt or edited lines raise an error.
"""

import contextlib
import json
import os
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, TypeAlias

from spiel_cr.common import atomic
from spiel_cr.common.errors import CorruptFileError, FileInUseError
from spiel_cr.common.executor import Executor
from spiel_cr.common.json_records import read_object

SETTINGS = "settings.json"
# Key of the checksum of a line, and of the settings.
_CHECKSUM = "crc"
_REMEDY = "choose another folder, or delete this one"

Record: TypeAlias = dict[str, Any]
# The values that identify a result, in the order of the log's `key`.
Key: TypeAlias = tuple[Any, ...]


class OtherRunError(ValueError):
    """The folder holds a run with other settings; the message names one of them."""


def check_folder(folder: atomic.Path) -> pathlib.Path:
    """Return the path of a folder for results; raise ValueError if not writable."""
    path = pathlib.Path(folder)
    if path.exists() and not path.is_dir():
        raise ValueError(f"out={path} is a file; use the path of a folder")
    atomic.check_writable(path / SETTINGS, "out")
    return path


def has_lines(folder: atomic.Path, name: str) -> bool:
    """Return whether a run has left lines in a folder, so that bots may be unnecessary.

    Args:
      folder: Folder of the run.
      name: Name of the file of JSON lines, without ".jsonl".
    """
    return (pathlib.Path(folder) / f"{name}.jsonl").exists()


def same_settings(old: Record, new: Record) -> Record:
    """Return the settings of the folder, which must agree with those of this run.

    Args:
      old: Settings from the folder, which may have additional values.
      new: Settings of this run.

    Raises:
      OtherRunError: If they differ.
    """
    for name, value in new.items():
        if name not in old:
            raise OtherRunError(f"holds a run of another command, without {name}")
        if old[name] != value:
            raise OtherRunError(f"holds a run with {name}={old[name]!r}, not {value!r}")
    return old


def sealed(record: Mapping[str, Any]) -> Record:
    """Return a JSON-serialisable record with a checksum as its last value."""
    return {**record, _CHECKSUM: _checksum(record)}


def unsealed(text: str | bytes) -> Record:
    """Return the record without its checksum, from the JSON text of a sealed one.

    Raises:
      ValueError: If the text is not a JSON object, or the checksum is missing or wrong.
    """
    try:
        record = read_object(text)
    except ValueError as error:
        raise ValueError(f"is not a JSON object: {error}") from error
    checksum = record.pop(_CHECKSUM, None)
    if checksum is None:
        raise ValueError(f'has no checksum "{_CHECKSUM}"')
    if checksum != _checksum(record):
        raise ValueError(f'does not have the checksum "{_CHECKSUM}": {checksum!r}')
    return record


def _checksum(record: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(record).encode()):08x}"


def read_lines(
    path: pathlib.Path,
    key: Sequence[str],
    *,
    label: str = "result",
    check: Callable[[Record], object] | None = None,
) -> dict[Key, Record]:
    """Return the last line of each key, in the order of the first lines.

    Args:
      path: Path of the file of JSON lines. If it does not exist, the result is empty.
      key: Names of the values that identify a line.
      label: Noun for one line in errors, such as "match".
      check: Function that raises ValueError for an invalid line.

    Raises:
      CorruptFileError: If a line is corrupt. (An incomplete last line is ignored.)
      OSError: If the file cannot be read.
    """
    records: dict[Key, Record] = {}
    content = path.read_bytes() if path.exists() else b""
    for number, line in enumerate(content[: _complete_bytes(content)].splitlines(), 1):
        try:
            record = unsealed(line)
            at = _key_of(record, key)
            if check is not None:
                check(record)
        except ValueError as error:
            raise CorruptFileError(
                f"{path}, line {number}, is not a valid {label}: it "
                f"{error}; delete the line to compute it again"
            ) from error
        records[at] = record
    return records


def _key_of(record: Record, key: Sequence[str]) -> Key:
    for name in key:
        if not isinstance(record.get(name), str | int):
            raise ValueError(f"has no {name}")
    return tuple(record[name] for name in key)


def _complete_bytes(content: bytes) -> int:
    """Return the number of bytes in complete lines."""
    return content.rfind(b"\n") + 1


class JsonLog:
    """A folder with a run, open for one process at a time.

    Attributes:
      folder: Path of the folder. If None, results are only kept in memory.
      settings: Settings of the run that are or will be written to `settings.json`.
      records: Results by key, including those of earlier processes.
    """

    def __init__(
        self,
        folder: atomic.Path | None,
        name: str,
        settings: Mapping[str, Any],
        *,
        key: Sequence[str],
        facts: Mapping[str, Any] | None = None,
        label: str = "result",
        check: Callable[[Record], object] | None = None,
        merge: Callable[[Record, Record], Record] = same_settings,
    ) -> None:
        """Open a run, or prepare a new one, which `add` starts.

        Args:
          folder: Folder of the run, which is created if it is missing. If None, nothing
            is written.
          name: Name of the file of JSON lines, without ".jsonl".
          settings: JSON-serialisable settings on which all results depend.
          key: Names of the values that identify a result.
          facts: Further values that are stored with the settings of a new run and are
            not compared.
          label: Noun for one line in errors, such as "match".
          check: Function that raises ValueError for an invalid line.
          merge: Function of the folder's settings and of these settings. It returns the
            settings of the continued run, or raises `OtherRunError`.

        Raises:
          OtherRunError: If the folder holds another run.
          CorruptFileError: If a file in it is corrupt or was edited.
          FileInUseError: If another run is writing to it.
          ValueError: If it is not writable.
          OSError: If a file in it cannot be read.
        """
        self.folder = None if folder is None else pathlib.Path(folder)
        # Converted as if they were read from the file: tuples become lists.
        new_settings = json.loads(json.dumps(dict(settings)))
        self.settings: Record = {**new_settings, **(facts or {})}
        self.records: dict[Key, Record] = {}
        self._key = tuple(key)
        self._is_started = False
        self._lock = contextlib.ExitStack()
        self._file: IO[bytes] | None = None
        if self.folder is None:
            return
        self._path = check_folder(self.folder) / f"{name}.jsonl"
        try:
            self._lock.enter_context(atomic.lock(self.folder / SETTINGS, "out"))
        except FileInUseError as error:
            raise FileInUseError(
                f"out={self.folder} is in use by another run; wait for it, or choose "
                f"another folder"
            ) from error
        try:
            # Checked before reading, because reading a FIFO would block.
            atomic.check_writable(self._path, "out")
            self._read_settings(new_settings, merge)
            self.records = read_lines(self._path, key, label=label, check=check)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "JsonLog":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def begin(self) -> None:
        """Write the settings, which assigns the folder to this run."""
        if self.folder is not None and not self._is_started:
            text = json.dumps(sealed(self.settings), indent=1) + "\n"
            atomic.write_text(self.folder / SETTINGS, text)
            self._path.touch()
        self._is_started = True

    def add(self, record: Record, *, sync: bool = False) -> None:
        """Write a result, so that it survives the end of the process.

        Args:
          record: Result with all values of the key.
          sync: Whether to wait until it is on the disk, so that it also survives a
            crash of the machine.

        Raises:
          OSError: If it cannot be written, for example because the disk is full. The
            error names the file.
        """
        self.begin()
        self.records[tuple(record[name] for name in self._key)] = record
        if self.folder is None:
            return
        line = json.dumps(sealed(record)) + "\n"
        try:
            if self._file is None:
                self._file = _open_for_appending(self._path)
            left = memoryview(line.encode())
            while left:
                left = left[self._file.write(left) :]
            if sync:
                os.fsync(self._file.fileno())
        except OSError as error:
            # The next line must not be joined to half of this one.
            self._close_file()
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def map(
        self,
        executor: Executor,
        make: Callable[..., Callable[[Any], Any]],
        setup: Sequence[Any],
        tasks: Mapping[Any, Any],
        *,
        finished: Callable[[Record], bool] = lambda record: True,
        add: Callable[[Record], object] | None = None,
        order: Callable[[], Iterable[Key]] | None = None,
        **options: Any,
    ) -> Iterator[tuple[Any, Any]]:
        """Perform the tasks that have no record yet, and write each record.

        Args:
          executor: Place in which tasks are performed.
          make: Factory of the task function, as in `Executor.map`.
          setup: Arguments of `make`, as in `Executor.map`.
          tasks: Tasks by the key of their record. A task whose key is not that of a
            record is performed in any case; it may yield several records, and other
            values.
          finished: Function that returns whether a task with this record is complete.
          add: Function that writes a record. If None, the method `add`.
          order: Function that returns the final order of the lines. If None, the order
            of `tasks`.
          options: Further arguments of `Executor.map`.

        Yields:
          Key and record (or another value) as soon as it is ready.
        """
        left = {
            key: task
            for key, task in tasks.items()
            if key not in self.records or not finished(self.records[key])
        }
        for key, result in executor.map(make, setup, left, **options):
            if isinstance(result, dict):
                (add or self.add)(result)
            yield key, result
        self.begin()
        self.arrange(tasks if order is None else order())

    def arrange(self, keys: Iterable[Key]) -> None:
        """Sort the lines by a list of keys, because workers may finish in any order.

        Args:
          keys: Keys in the requested order. Lines with other keys follow at the end.
        """
        self._close_file()
        if self.folder is None or not self._path.exists():
            return
        places = {key: place for place, key in enumerate(keys)}
        content = self._path.read_bytes()
        lines = content[: _complete_bytes(content)].splitlines(keepends=True)
        at = [_key_of(unsealed(line), self._key) for line in lines]
        order = sorted(range(len(at)), key=lambda n: places.get(at[n], len(places)))
        if order != list(range(len(at))):
            with atomic.replacing(self._path) as file:
                file.writelines(lines[number] for number in order)

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def close(self) -> None:
        """Release the folder for other processes; remove a new folder without a run."""
        self._close_file()
        self._lock.close()

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
        content = file.read_bytes()
        try:
            old = unsealed(content)
        except ValueError as error:
            raise CorruptFileError(
                f"{file} is corrupt or was edited: it {error}; {_REMEDY}"
            ) from error
        try:
            self.settings = merge(old, new)
        except OtherRunError as error:
            raise OtherRunError(f"out={self.folder} {error}; {_REMEDY}") from None
        self._is_started = self.settings == old


def _open_for_appending(path: pathlib.Path) -> IO[bytes]:
    """Open a file for unbuffered appending, after removing an incomplete last line."""
    if path.exists():
        content = path.read_bytes()
        if _complete_bytes(content) < len(content):
            os.truncate(path, _complete_bytes(content))
    return path.open("ab", buffering=0)
