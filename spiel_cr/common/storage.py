"""Files: arrays and JSON metadata in `.npz`, written atomically, never pickled."""

import contextlib
import json
import os
import pathlib
import secrets
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from importlib import metadata as importlib_metadata
from typing import IO, Any

import numpy as np

Path = str | os.PathLike[str]

# The member of the archive that holds the JSON text, as UTF-8 bytes.
_METADATA = "metadata"
# Files of writers that were killed are removed after this time.
_STALE_SECONDS = 3600.0


def versions() -> dict[str, str]:
    """Versions of everything that can change a result."""
    packages = ("spiel_cr", "open_spiel", "jax", "numpy", "scipy")
    return {name: importlib_metadata.version(name) for name in packages}


def check_writable(path: Path) -> None:
    """Raises ValueError, before any work, if `save` could not write to `path`."""
    target = pathlib.Path(path)
    folder = target.parent.absolute()
    while not folder.exists():
        folder = folder.parent
    if target.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"{target} cannot be written; give the path of a file")


def save(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    *,
    many_writers: bool = False,
) -> None:
    """Writes arrays and metadata so that a reader sees the old file or the new one.

    Args:
      path: the file; its folder is made where it is missing.
      arrays: by name.
      metadata: anything that JSON can hold.
      many_writers: other processes may write the same file at the same time.
    """
    text = np.frombuffer(json.dumps(dict(metadata)).encode(), np.uint8)
    with _replacing(path, many_writers) as file:
        np.savez(file, allow_pickle=False, **{_METADATA: text}, **dict(arrays))


def write_text(path: Path, text: str) -> None:
    """Writes a file of text, so that a reader sees the old file or the new one."""
    with _replacing(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def _replacing(path: Path, many_writers: bool = False) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when it is whole; the folder is made."""
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A single writer always uses the same name, so that a process killed here leaves
    # one file at most, which the next write takes over.
    own = f"{os.getpid()}-{secrets.token_hex(8)}." if many_writers else ""
    temporary = target.with_name(f".{target.name}.{own}part")
    try:
        with temporary.open("wb") as file:
            yield file
            if not many_writers:  # what can be made again need not survive a crash
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    for left in target.parent.glob(f".{target.name}.*.part"):
        with contextlib.suppress(FileNotFoundError):  # its writer was faster
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                left.unlink()


def load(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Reads what `save` wrote.

    Raises:
      OSError: there is no such file, or it cannot be read.
      ValueError: the file is not one of ours, or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        metadata = json.loads(bytes(arrays.pop(_METADATA)).decode())
        if not isinstance(metadata, dict):
            raise ValueError("its metadata are no table")
    except OSError:
        raise
    except (
        AttributeError,
        EOFError,
        KeyError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(
            f"{os.fspath(path)} is not a file written by spiel_cr, or it is damaged "
            f"({error}); delete it to start anew"
        ) from error
    return arrays, metadata
