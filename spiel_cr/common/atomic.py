"""Files that are written whole or not at all, and kept from other runs.

A file is written beside its place under another name, and renamed when it is whole. If
the path is a symlink, the file that it leads to is replaced. Nothing but a regular file
is.
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

# Files of writers that were killed on another machine are removed after this time.
_STALE_SECONDS = 3600.0
# The bytes that a path's last part may have before its temporary names are too long.
_LONG_NAME = 180
_PROBE_BYTES = 4096
# How often a file is made again whose folder vanished.
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
    """Refuses, before any work, two names of one file.

    Args:
      paths: by the name of the argument or option that gave it; None: none was given.

    Raises:
      ValueError: two of them lead to the same place.
    """
    names: dict[str, str] = {}
    for name, path in paths.items():
        if path is None:
            continue
        first = names.setdefault(os.path.realpath(path), name)
        if first != name:
            raise ValueError(
                f"{first} and {name} both name {os.fspath(path)!r}; give each a path "
                f"of its own"
            )


def check_writable(path: Path, name: str = "path") -> None:
    """Tries, before any work, whether a file can be written; leaves nothing behind.

    Args:
      path: of a file that is there, or that is to be made, folders included.
      name: of the argument or option that gave the path, for the error.

    Raises:
      ValueError: the path leads to something that is no regular file, or to a place
        where no file can be made; or no space is left.
    """
    try:
        target = _target(path)
        _while_folders_vanish(lambda: _probe(target))
    except OSError as error:
        raise ValueError(
            f"{name}={os.fspath(path)!r} cannot be written "
            f"({error.strerror or error}); give the path of a file, in a folder with "
            f"room for it"
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, so that a reader sees the old file or the new one.

    Args:
      path: File to write, in UTF-8.
      text: Its content. Lone surrogates, which UTF-8 cannot encode, are written as
        escapes such as \\ud800; games of users may have them in their strings.

    Raises:
      OSError: the file cannot be written; the old one is as it was.
    """
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when it is whole.

    Any number of processes may do so at the same time; the last one wins. What is there
    stays until then, and for good if the block raises. The new file has the old one's
    permission bits.

    Args:
      path: the file; its folder is made where it is missing. A symlink stays, and what
        it leads to is replaced.
      durable: wait until the file is on the disk, so that it survives a crash of the
        machine. Not needed for what can be made again.

    Yields:
      An empty file, open for reading and writing bytes.

    Raises:
      OSError: the file cannot be written, or the path leads to something that is no
        regular file.
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
            # Not closed before: the lock would end, and the file be a leftover.
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        _temporaries.discard(temporary)


@contextlib.contextmanager
def lock(path: Path, name: str = "path") -> Iterator[None]:
    """Keeps other processes from writing a file, for as long as the block takes.

    Only those that lock it, too. Where the file system has no locks nothing is locked.
    The lock ends with the process, in whatever way that ends.

    Args:
      path: the file; its folder is made where it is missing.
      name: of the argument or option that gave the path, for the error.

    Raises:
      FileInUseError: another process, or another block of this one, has locked it.
      OSError: the lock's file, which lies beside it, cannot be made.
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
                f"give another path"
            )
        yield
    finally:
        held.release()
        _locks.discard(held)


class _Lock:
    """A lock of a file, by another file next to it."""

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
        """Lock the file; returns False if it is in use, None if there are no locks."""
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
        # At once, because two threads may do this; see `remove_process_files`.
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
    """Keeps a checkpoint for one run, from before it begins until it ends.

    Args:
      path: of the file; None: there is nothing to keep.
      name: of the argument or option that gave the path, for the error.

    Raises:
      FileInUseError: another run has it.
      ValueError: no such file can be written.
    """
    if path is None:
        yield
        return
    check_writable(path, name)
    with lock(path, name):
        yield


@contextlib.contextmanager
def naming(path: Path, written: pathlib.Path | None = None) -> Iterator[None]:
    """Errors of the operating system name this path, not a temporary file or none.

    Args:
      path: to be named.
      written: the temporary file, where other files are at work in the block, too:
        errors of these are left alone.
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
    """The file that is written for a path: absolute, at the end of all symlinks.

    Raises:
      OSError: there is something that is no regular file, or that cannot be seen.
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
    """What a function makes, which is called again where a folder vanished under it.

    A `lock` removes the folder that it made, maybe just before a file is made there.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(FileNotFoundError):
            return make()
    return make()


def _probe(target: pathlib.Path) -> None:
    """Makes and removes a file in the folder of a file, or where that would be made."""
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
    """What the names of files beside another one begin with, after a dot."""
    name = os.fsencode(target.name)
    if len(name) <= _LONG_NAME:
        return target.name
    return hashlib.sha256(name).hexdigest()


def _machine() -> str:
    """Part of a temporary name, to tell locks of this machine from others'."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _temporary(target: pathlib.Path) -> pathlib.Path:
    """A name beside a file that no other writer uses."""
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
        # Until it is locked, another writer may take it for a leftover.
        _try_lock(file, wait=True)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _take_permissions(file: IO[bytes], target: pathlib.Path) -> None:
    """Gives a new file the owner, where allowed, and the permissions of the old one."""
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    with contextlib.suppress(OSError):
        os.fchown(file.fileno(), old.st_uid, old.st_gid)
    os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))


def _remove_leftovers(target: pathlib.Path) -> None:
    """Removes temporary files of writers that were killed, and of no others.

    A living writer on this machine holds a lock. Where others may hold none that is
    seen here, time tells.
    """
    name = re.compile(rf"\.{re.escape(_stem(target))}\.([^.]+)\.part")
    with os.scandir(target.parent) as entries:
        matches = [(entry, name.fullmatch(entry.name)) for entry in entries]
    for entry, match in matches:
        if match is None or not entry.is_file(follow_symlinks=False):
            continue
        # Whatever goes wrong: it is somebody else's, or gone already.
        with contextlib.suppress(OSError), open(entry.path, "r+b") as file:
            locked = _try_lock(file)
            is_this_machines = locked and match[1].startswith(_machine())
            old = time.time() - entry.stat().st_mtime > _STALE_SECONDS
            if locked is not False and (is_this_machines or old):
                os.unlink(entry.path)


def _try_lock(file: IO[Any], *, wait: bool = False) -> bool | None:
    """Locks a file until it is closed.

    Returns:
      Whether it could; None where there are no locks.
    """
    try:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # another system; some network file systems
        return None
    return True
