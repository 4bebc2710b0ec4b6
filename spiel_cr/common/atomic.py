"""Files that are written completely or not at all, and that are locked for one run.

A file is written under a temporary name in the same folder, and renamed when it is
complete. If the path is a symlink, the file to which it points is replaced. Only
regular files are replaced.
"""

import contextlib
import errno
import hashlib
import os
import pathlib
import platform
import re
import secrets
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, TypeVar

from spiel_cr.common.errors import FileInUseError

Path = str | os.PathLike[str]
_T = TypeVar("_T")

# Age after which files of writers on another machine are removed.
_STALE_SECONDS = 3600.0
# Length in bytes of a file name above which temporary names use a hash of it.
_LONG_NAME = 180
_PROBE_BYTES = 4096
# Number of attempts to create a file whose folder disappears.
_TRIES = 100

# Temporary files that this process is writing.
_temporaries: set[pathlib.Path] = set()
# Locks that this process holds or is about to hold.
_locks: "set[_Lock]" = set()


def remove_process_files() -> None:
    """Remove the temporary files and the lock files of this process.

    Call it only when the process ends and does not leave its blocks in order: whatever
    these blocks were writing is lost, and the files to be replaced stay as they are.
    """
    for temporary in tuple(_temporaries):
        with contextlib.suppress(OSError):
            temporary.unlink()
    for held in tuple(_locks):
        held.release()


def cache_folder(*names: str) -> pathlib.Path:
    """Return a folder of `spiel_cr` in the user's cache folder; it may not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base, "spiel_cr", *names)


def check_distinct(paths: Mapping[str, Path | None]) -> None:
    """Raise ValueError, before any work, if two arguments name the same file.

    Args:
      paths: Path by the name of its argument or option. A value of None is ignored.

    Raises:
      ValueError: If two paths refer to the same place.
    """
    names: dict[str, str] = {}
    for name, path in paths.items():
        if path is None:
            continue
        first = names.setdefault(os.path.realpath(path), name)
        if first != name:
            raise ValueError(
                f"{first} and {name} both name {os.fspath(path)!r}; use two "
                f"different paths"
            )


def check_writable(path: Path, name: str = "path") -> None:
    """Check, before any work, that a file can be written; nothing is left behind.

    Args:
      path: Path of a file that exists, or that will be created, including its folders.
      name: Name of the argument or option that gave the path, for the error.

    Raises:
      ValueError: If the path is not that of a regular file, if no file can be created
        there, or if no space is left.
    """
    try:
        target = _target(path)
        _while_folders_vanish(lambda: _probe(target))
    except OSError as error:
        raise ValueError(
            f"{name}={os.fspath(path)!r} cannot be written "
            f"({error.strerror or error}); use the path of a file in a folder with "
            f"free space"
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file so that a reader sees either the old file or the new one.

    Args:
      path: File to write, in UTF-8.
      text: Text to write. Lone surrogates, which UTF-8 cannot encode, are written as
        escapes such as \\ud800; users' games may have them in their strings.

    Raises:
      OSError: If the file cannot be written. An old file stays unchanged.
    """
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` after the block.

    Several processes may do this at the same time; the last one wins. The old file
    remains until then, and permanently if the block raises an error. The new file
    receives the permission bits of the old one.

    Args:
      path: File to replace. Its folder is created if it is missing. A symlink remains,
        and the file to which it points is replaced.
      durable: Whether to wait until the file is on the disk, so that it survives a
        crash of the machine. This is unnecessary for files that can be computed again.

    Yields:
      An empty file, open for reading and writing bytes.

    Raises:
      OSError: If the file cannot be written, or the path is not that of a regular file.
    """
    with naming(path):
        target = _target(path)
        temporary = _temporary(target)
    # An interrupt may come at any point from here on.
    _temporaries.add(temporary)
    try:
        with naming(path):
            file = _while_folders_vanish(lambda: _locked_new(target, temporary))
        with naming(path, temporary), file:
            yield file
            file.flush()
            _take_permissions(file, target)
            if durable:
                os.fsync(file.fileno())
            # Closing the file earlier would release its lock, so that other writers
            # could delete it as a leftover.
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        _temporaries.discard(temporary)


@contextlib.contextmanager
def lock(path: Path, name: str = "path") -> Iterator[None]:
    """Prevent other processes from writing a file during the block.

    The lock works only between processes that use this function. If the file system
    does not support locks, nothing is locked. The lock is released when the process
    ends for any reason.

    Args:
      path: File to lock. Its folder is created if it is missing.
      name: Name of the argument or option that gave the path, for the error.

    Raises:
      FileInUseError: If another process, or another block of this one, holds the lock.
      OSError: If the lock file, which is in the same folder, cannot be created.
    """
    with naming(path):
        held = _Lock(_target(path))
    _locks.add(held)
    try:
        with naming(path):
            locked = held.acquire()
        if locked is False:
            raise FileInUseError(
                f"{name}={os.fspath(path)!r} is in use by another run; wait for it, or "
                f"use another path"
            )
        yield
    finally:
        held.release()
        _locks.discard(held)


class _Lock:
    """A lock of a file, held through another file in the same folder."""

    def __init__(self, target: pathlib.Path) -> None:
        """Prepare the lock; nothing is created yet.

        Args:
          target: Absolute path of the file to lock.
        """
        self._path = target.with_name(f".{_stem(target)}.lock")
        self._folder_is_new = False
        self._file: IO[bytes] | None = None
        # False: another process has the lock. None: not known, or no locks here.
        self._locked: bool | None = None

    def acquire(self) -> bool | None:
        """Lock the file.

        Returns:
          True, or False if the file is in use, or None if locks are not supported.
        """
        while True:
            file = self._file = _while_folders_vanish(self._open)
            self._locked = _try_lock(file)
            # The last holder may have removed the file after it was opened here.
            if self._locked is not True or os.fstat(file.fileno()).st_nlink:
                return self._locked
            self._locked = None
            file.close()

    def release(self) -> None:
        """Remove the lock's file, unless another process has the lock."""
        # One assignment, because two threads may do this (`remove_process_files`).
        locked, self._locked = self._locked, False
        with contextlib.suppress(OSError):
            if locked or (locked is None and self._is_free()):
                self._path.unlink()
                if self._folder_is_new:
                    self._path.parent.rmdir()  # unless it was used
        if self._file is not None:
            self._file.close()

    def _open(self) -> IO[bytes]:
        folder = self._path.parent
        self._folder_is_new = self._folder_is_new or not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        return self._path.open("ab")

    def _is_free(self) -> bool:
        """Lock the file again, after an interrupt at an unknown point of `acquire`."""
        if self._file is not None:
            self._file.close()
        self._file = self._path.open("r+b")
        return _try_lock(self._file) is True


@contextlib.contextmanager
def reserved(path: Path | None, name: str = "path") -> Iterator[None]:
    """Reserve a checkpoint for one run, before it starts and until it ends.

    Args:
      path: Path of the file. If None, nothing is reserved.
      name: Name of the argument or option that gave the path, for the error.

    Raises:
      FileInUseError: If another run has reserved the file.
      ValueError: If the file cannot be written.
    """
    if path is None:
        yield
        return
    check_writable(path, name)
    with lock(path, name):
        yield


@contextlib.contextmanager
def naming(path: Path, written: pathlib.Path | None = None) -> Iterator[None]:
    """Make errors of the operating system name this path instead of a temporary file.

    Args:
      path: Path that errors shall name.
      written: Temporary file. If given, errors that name other files are raised
        unchanged, because the block may use other files, too.
    """
    named_path = os.fspath(path)
    try:
        yield
    except OSError as error:
        if error.filename == named_path and error.filename2 is None:
            raise
        if written and error.filename not in (None, os.fspath(written)):
            raise
        if error.errno is None:
            raise type(error)(f"{named_path}: {error}") from error
        raise OSError(error.errno, error.strerror, named_path) from error


def _target(path: Path) -> pathlib.Path:
    """Return the absolute path of the file to write, with symlinks resolved.

    Raises:
      OSError: If the path is not that of a regular file, or is not accessible.
    """
    text = os.fspath(path)
    if not text or "\0" in text or text.endswith(os.sep):
        raise OSError(errno.EINVAL, "it does not name a file", text)
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise OSError(errno.EINVAL, "it is not text", text) from error
    target = pathlib.Path(os.path.realpath(text))
    # Follows symlinks, because not all can be resolved by name (/dev/stdout).
    try:
        mode = os.stat(text).st_mode
    except FileNotFoundError:
        return target
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFDIR: "folder", stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket"}
        kind = kinds.get(stat.S_IFMT(mode), "device")
        raise OSError(errno.EINVAL, f"it is a {kind}, not a regular file", text)
    if not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), text)
    return target


def _while_folders_vanish(make: Callable[[], _T]) -> _T:
    """Call a function that creates a file; repeat it if its folder disappears.

    A `lock` removes the folder that it created, possibly just before a file is created
    in it.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(FileNotFoundError):
            return make()
    return make()


def _probe(target: pathlib.Path) -> None:
    """Create and remove a file in the folder, or in its nearest existing parent."""
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    most = os.pathconf(folder, "PC_NAME_MAX")
    if any(len(os.fsencode(part)) > most for part in target.parts):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    _remove_leftovers(folder / target.name)
    probe = _temporary(folder / target.name)
    _temporaries.add(probe)
    try:
        with probe.open("xb") as file:
            file.write(bytes(_PROBE_BYTES))
    finally:
        probe.unlink(missing_ok=True)
        _temporaries.discard(probe)


def _stem(target: pathlib.Path) -> str:
    """Return the first part of the names of temporary and lock files, after a dot."""
    name = os.fsencode(target.name)
    if len(name) <= _LONG_NAME:
        return target.name
    return hashlib.sha256(name).hexdigest()


def _machine() -> str:
    """Return a part of temporary names that distinguishes this machine from others."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _temporary(target: pathlib.Path) -> pathlib.Path:
    """Return a name in the folder of a file that no other writer uses."""
    unique = f"{_machine()}-{secrets.token_hex(8)}"
    return target.with_name(f".{_stem(target)}.{unique}.part")


def _locked_new(target: pathlib.Path, temporary: pathlib.Path) -> IO[bytes]:
    """Create a temporary file that other processes see to be in use.

    The folder is created if it is missing, and leftovers in it are removed.

    Args:
      target: Path of the file to be replaced.
      temporary: Path of the new file, in the same folder.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    while True:
        file = temporary.open("x+b")
        # Until it is locked, another writer may remove it as a leftover.
        _try_lock(file, wait=True)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _take_permissions(file: IO[bytes], target: pathlib.Path) -> None:
    """Copy the permissions of the old file, and if allowed its owner, to a new file."""
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    with contextlib.suppress(OSError):
        os.fchown(file.fileno(), old.st_uid, old.st_gid)
    os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))


def _remove_leftovers(target: pathlib.Path) -> None:
    """Remove temporary files of writers that were killed.

    A running writer on this machine holds a lock. Locks of other machines may be
    invisible here, so files of other machines are removed only if they are old.
    """
    name = re.compile(rf"\.{re.escape(_stem(target))}\.([^.]+)\.part")
    with os.scandir(target.parent) as entries:
        matches = [(entry, name.fullmatch(entry.name)) for entry in entries]
    for entry, match in matches:
        if match is None or not entry.is_file(follow_symlinks=False):
            continue
        # On any error, the file belongs to another user or was removed already.
        with contextlib.suppress(OSError), open(entry.path, "r+b") as file:
            locked = _try_lock(file)
            is_this_machines = locked and match[1].startswith(_machine())
            old = time.time() - entry.stat().st_mtime > _STALE_SECONDS
            if locked is not False and (is_this_machines or old):
                os.unlink(entry.path)


def _try_lock(file: IO[Any], *, wait: bool = False) -> bool | None:
    """Lock a file until it is closed.

    Returns:
      Whether the file was locked; None if locks are not supported.
    """
    try:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # not POSIX, or some network file systems
        return None
    return True
