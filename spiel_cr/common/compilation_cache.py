"""Compiled programs: kept in files for the next time, and announced."""

import contextlib
import hashlib
import importlib
import json
import os
import platform
import zlib
from collections.abc import Iterator
from pathlib import Path

import jax
from absl import logging

from spiel_cr.common import atomic
from spiel_cr.common.json_records import read_object
from spiel_cr.common.messages import announce

# A folder, or "off".
VARIABLE = "SPIEL_CR_PROGRAM_CACHE"
# JAX's own variable: who sets it has a cache already.
_JAX_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
_MOST_BYTES = 1 << 30
# What JAX tells of a program when all that is left is to compile it.
_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
# Seconds that this took, at least, of a program that is announced. XLA then takes ten
# times as long, or more; those of single operations stay below.
_LONG = 0.05
# What compressed entries begin with, where that package is installed; else zlib.
_ZSTANDARD = b"\x28\xb5\x2f\xfd"


def use_compilation_cache(folder: atomic.Path | None = None) -> Path | None:
    """Has this process keep its compiled programs in files, and use those there are.

    A program is found again by its code, options, and versions of JAX; programs of
    another processor are kept apart. Where the folder has grown beyond 1 GB, what was
    not used for longest is deleted, and so is what cannot be read: JAX would compile it
    anew each time. Programs are machine code, so they are read from a folder of this
    user alone, with mode 0700; another one is not used, with a warning.

    Args:
      folder: where; None: what the environment variable `SPIEL_CR_PROGRAM_CACHE` says
        ("off": nowhere), else `spiel_cr/programs` in the user's cache folder.

    Returns:
      The folder that is used; None: none, or JAX's own setting stays.
    """
    named = os.environ.get(VARIABLE, "") if folder is None else os.fspath(folder)
    if named == "off" or os.environ.get(_JAX_VARIABLE):
        return None
    place = Path(named) if named else atomic.cache_folder("programs")
    place = place / _processor()
    try:
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o700)  # This raises where the folder is another user's.
        if hasattr(os, "getuid") and place.stat().st_uid != os.getuid():
            raise PermissionError(f"{place} belongs to another user")
        _drop_unreadable(place)
        _make_room(place)
    except OSError as error:
        logging.warning("compiled programs are not kept: %s", error)
        return None
    jax.config.update("jax_compilation_cache_dir", str(place))
    # Programs here are many and small.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return place


@contextlib.contextmanager
def compilation_messages() -> Iterator[None]:
    """Print a message before each compilation that takes long, while a block runs.

    JAX reports compilations, so searches, networks and bots need no messages of their
    own. `messages.announce` decides whether a message is shown.
    """
    count = 0

    def tell(event: str, duration_secs: float, **more: str | int) -> None:
        nonlocal count
        if event == _LOWERED and duration_secs >= _LONG:
            count += 1
            name = str(more.get("fun_name", "")).removeprefix("jit(").strip("_)")
            suffix = f" ({name})" if name else ""
            announce(f"compiling or loading program {count}{suffix}")

    jax.monitoring.register_event_duration_secs_listener(tell)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(tell)


def _processor() -> str:
    """A name of what machine code depends on."""
    properties = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        properties += [
            line
            for line in lines
            if line.startswith(("flags", "Features", "model name"))
        ][:2]
    return hashlib.sha256("\n".join(properties).encode()).hexdigest()[:12]


def _drop_unreadable(folder: Path) -> None:
    """Deletes entries that were cut off or changed; each is read once for that."""
    record = folder / "checked.json"
    try:
        checked = read_object(record.read_bytes())
    except (OSError, ValueError):
        checked = {}
    readable = {}
    for file in folder.glob("*-cache"):
        with contextlib.suppress(FileNotFoundError):  # Another process deletes, too.
            state = [file.stat().st_size, file.stat().st_mtime_ns]
            if checked.get(file.name) == state or _is_readable(file.read_bytes()):
                readable[file.name] = state
            else:
                file.unlink(missing_ok=True)
    if readable != checked:
        atomic.write_text(record, json.dumps(readable))


def _is_readable(entry: bytes) -> bool:
    """Whether JAX can read an entry, as far as its compression tells."""
    if not entry.startswith(_ZSTANDARD):
        reader = zlib.decompressobj()
        with contextlib.suppress(zlib.error):
            return reader.decompress(entry) != b"" and reader.eof
        return False
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        return False  # And JAX cannot either.
    with contextlib.suppress(zstandard.ZstdError):
        return bool(zstandard.ZstdDecompressor().decompress(entry))
    return False


def _make_room(folder: Path) -> None:
    """Deletes what was not used for longest until half of the room is free."""
    files = []
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # Another process deletes, too.
            if file.is_file():
                files.append((file, file.stat()))
    total = sum(stats.st_size for _, stats in files)
    if total <= _MOST_BYTES:
        return
    for file, stats in sorted(files, key=lambda item: item[1].st_atime):
        file.unlink(missing_ok=True)
        total -= stats.st_size
        if total <= _MOST_BYTES // 2:
            return
