"""Compiled functions: a cache in files, and messages about compilations."""

import contextlib
import functools
import hashlib
import importlib
import json
import os
import platform
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
from absl import logging
from jax.experimental.compilation_cache import compilation_cache as jax_cache

from spiel_cr.common import atomic
from spiel_cr.common.json_records import read_object
from spiel_cr.common.messages import announce

# A folder, or "off".
VARIABLE = "SPIEL_CR_COMPILATION_CACHE"
# JAX's variable. If it is set, JAX has a cache already.
_JAX_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
_MOST_BYTES = 1 << 30
# JAX's event for a function that is lowered, immediately before its compilation.
_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
# Minimum duration of lowering, in seconds, for a message. Compilation then takes at
# least ten times as long. Functions of single operations are below this limit.
_LONG = 0.05
_SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)
_ENABLED = "jax_enable_compilation_cache"
# First bytes of entries that were compressed with zstandard instead of zlib.
_ZSTANDARD = b"\x28\xb5\x2f\xfd"

# Number of blocks inside `caching` in all threads, and JAX's settings outside of them.
_lock = threading.RLock()
_blocks, _settings_outside = 0, dict[str, object]()


@contextlib.contextmanager
def caching() -> Iterator[None]:
    """Cache compiled functions in files during a block, for programs that use JAX.

    The settings of JAX apply to all threads, and are restored at the end of the last
    block. If the calling program has set a cache folder, or has disabled caching,
    nothing changes. `SPIEL_CR_COMPILATION_CACHE` is read as in `use_compilation_cache`.
    """
    global _blocks, _settings_outside
    with _lock:
        if not _blocks:
            _settings_outside = {name: getattr(jax.config, name) for name in _SETTINGS}
            enabled = getattr(jax.config, _ENABLED)
            if enabled and not _settings_outside[_SETTINGS[0]]:
                _use(_prepared_once(os.environ.get(VARIABLE, "")))
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks and not _settings_outside[_SETTINGS[0]]:
                for name, value in _settings_outside.items():
                    jax.config.update(name, value)
                # Otherwise JAX would continue to use the open folder.
                jax_cache.reset_cache()


def use_compilation_cache(folder: atomic.Path | None = None) -> Path | None:
    """Make this process store compiled functions in files, and reuse the existing ones.

    A compiled function is identified by its code, its options and the versions of JAX;
    each processor has a separate folder. If the folder exceeds 1 GB, the least recently
    used files are deleted. Unreadable files are deleted too, because JAX would compile
    their functions again each time. The files contain machine code, so they are only
    read from a folder that belongs to this user, with mode 0700; otherwise the cache is
    disabled with a warning.

    Args:
      folder: Folder of the cache. If None, the value of the environment variable
        `SPIEL_CR_COMPILATION_CACHE` ("off" disables the cache), or `spiel_cr/programs`
        in the user's cache folder if the variable is not set.

    Returns:
      The folder that is used, or None if the cache is disabled or JAX's setting
      applies.
    """
    named = os.environ.get(VARIABLE, "") if folder is None else os.fspath(folder)
    return _use(_prepared(named))


def _use(folder: Path | None) -> Path | None:
    """Make JAX use a folder for compiled functions, and return it; None: do nothing."""
    if folder is not None:
        # The default limits would exclude the many small functions of spiel_cr.
        for name, value in zip(_SETTINGS, (str(folder), 0.0, -1), strict=True):
            jax.config.update(name, value)
    return folder


def _prepared(named: str) -> Path | None:
    """Return the folder of this processor, ready for use; see `use_compilation_cache`.

    Args:
      named: Path of the user's choice, "off", or "" for the default folder.
    """
    if named == "off" or os.environ.get(_JAX_VARIABLE):
        return None
    place = Path(named) if named else atomic.cache_folder("programs")
    place = place / _processor()
    try:
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o700)  # This raises if another user owns the folder.
        if hasattr(os, "getuid") and place.stat().st_uid != os.getuid():
            raise PermissionError(f"{place} belongs to another user")
        _drop_unreadable(place)
        _make_room(place)
    except OSError as error:
        logging.warning("compiled functions are not cached: %s", error)
        return None
    return place


_prepared_once = functools.cache(_prepared)


def numba_jit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function of arrays and numbers by numba when it is first called.

    Its machine code is kept in the folder of `caching`, unless the user has set numba's
    variable NUMBA_CACHE_DIR. If JAX has another folder, numba's default applies.

    Args:
      function: The function.
      options: Further options of `numba.njit`.
    """
    import numba  # An optional dependency, and slow to import.

    settings: Any = numba.config
    named, users = os.environ.get(VARIABLE, ""), settings.CACHE_DIR
    folder = None if users else _prepared_once(named)
    # numba reads its folder when a function is declared.
    settings.CACHE_DIR = users if folder is None else str(folder / "numba")
    try:
        is_kept = bool(users) or named != "off"
        jit = numba.njit(nogil=True, error_model="numpy", cache=is_kept, **options)
        result: Any = jit(function)
    finally:
        settings.CACHE_DIR = users
    result.compile = _vectorized(settings)(result.compile)
    return result


# Functions that neither allocate nor return arrays. Without counts of references, which
# are atomic, they take less time on short rows, and compile in less time.
compiled = functools.partial(numba_jit, _nrt=False, no_cfunc_wrapper=True)
# Such functions that only compiled functions call.
compiled_part = functools.partial(compiled, no_cpython_wrapper=True)
# Functions that become part of the compiled functions that call them.
inlined = functools.partial(compiled, inline="always")


@contextlib.contextmanager
def _vectorized(settings: Any) -> Iterator[None]:
    """Let LLVM combine the operations on the numbers of a tuple.

    The setting is that of all functions that numba compiles, so numba's lock keeps
    other functions from being compiled in the meantime.
    """
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        before = settings.SLP_VECTORIZE
        settings.SLP_VECTORIZE = 1
        try:
            yield
        finally:
            settings.SLP_VECTORIZE = before


def is_marked(values: tuple[object, ...]) -> bool:
    """Return whether a run with these values has cached its compiled functions.

    Args:
      values: Values that determine the functions, such as the game and the algorithm.
    """
    return (file := _marker(values)) is not None and file.exists()


def mark(values: tuple[object, ...]) -> None:
    """Note that a run with these values has cached its compiled functions."""
    if (file := _marker(values)) is not None:
        with contextlib.suppress(OSError):
            file.touch()


def _marker(values: tuple[object, ...]) -> Path | None:
    """Return the file that marks a run in the cache; None if there is no cache."""
    if not (folder := getattr(jax.config, _SETTINGS[0])):
        return None
    text = repr((jax.__version__, *values))
    return Path(folder) / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}-run"


@contextlib.contextmanager
def compilation_messages() -> Iterator[None]:
    """Print a message before each long compilation, while a block runs.

    JAX reports compilations, so searches, networks and bots do not need separate
    messages. `messages.announce` decides whether a message is shown.
    """
    count = 0

    def tell(event: str, duration_secs: float, **more: str | int) -> None:
        nonlocal count
        if event == _LOWERED and duration_secs >= _LONG:
            count += 1
            name = str(more.get("fun_name", "")).removeprefix("jit(").strip("_)")
            suffix = f" ({name})" if name else ""
            announce(f"compiling or loading function {count}{suffix}")

    jax.monitoring.register_event_duration_secs_listener(tell)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(tell)


def _processor() -> str:
    """Return a hash of the processor's properties on which machine code depends."""
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
    """Delete entries that are truncated or were changed; each entry is checked once."""
    record = folder / "checked.json"
    try:
        checked = read_object(record.read_bytes())
    except (OSError, ValueError):
        checked = {}
    readable = {}
    for file in folder.glob("*-cache"):
        # Another process may delete files.
        with contextlib.suppress(FileNotFoundError):
            state = [file.stat().st_size, file.stat().st_mtime_ns]
            if checked.get(file.name) == state or _is_readable(file.read_bytes()):
                readable[file.name] = state
            else:
                file.unlink(missing_ok=True)
    if readable != checked:
        atomic.write_text(record, json.dumps(readable))


def _is_readable(entry: bytes) -> bool:
    """Return whether an entry can be decompressed, so that JAX can probably read it."""
    if not entry.startswith(_ZSTANDARD):
        reader = zlib.decompressobj()
        with contextlib.suppress(zlib.error):
            return reader.decompress(entry) != b"" and reader.eof
        return False
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        return False  # JAX cannot decompress it either.
    with contextlib.suppress(zstandard.ZstdError):
        return bool(zstandard.ZstdDecompressor().decompress(entry))
    return False


def _make_room(folder: Path) -> None:
    """Delete the least recently used files of a folder that is too large.

    Files are deleted until the folder has half of its maximum size.
    """
    files = []
    for file in folder.iterdir():
        # Another process may delete files.
        with contextlib.suppress(FileNotFoundError):
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
