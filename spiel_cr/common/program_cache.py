"""Compiled programs: kept in files for the next time, and announced."""

import contextlib
import hashlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path

import jax

from spiel_cr.common import atomic
from spiel_cr.common.announcing import announce

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


def keep_programs(folder: atomic.Path | None = None) -> Path | None:
    """Has this process keep its compiled programs in files, and use those there are.

    A program is found again by its code, options, and versions of JAX; programs of
    another processor are kept apart. Where the folder has grown beyond 1 GB, what was
    not used for longest is deleted. A folder that cannot be made is passed over.

    Args:
      folder: where; None: what the environment variable `SPIEL_CR_PROGRAM_CACHE` says
        ("off": nowhere), else `spiel_cr/programs` in the user's cache folder.

    Returns:
      The folder that is used; None: none, or JAX's own setting stays.
    """
    named = os.environ.get(VARIABLE, "") if folder is None else os.fspath(folder)
    if named == "off" or os.environ.get(_JAX_VARIABLE):
        return None
    place = Path(named) if named else _default_folder()
    place = place / _processor()
    try:
        place.mkdir(parents=True, exist_ok=True)
        _make_room(place)
    except OSError:
        return None
    jax.config.update("jax_compilation_cache_dir", str(place))
    # Programs here are many and small.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return place


@contextlib.contextmanager
def announcing_programs() -> Iterator[None]:
    """Programs are announced before they are compiled, those that take long.

    JAX says when; so a search, a network or a bot is announced without a word of its
    own. Whether anybody listens is asked as ever (`announcing`).
    """
    count = 0

    def tell(event: str, duration_secs: float, **more: str | int) -> None:
        nonlocal count
        if event == _LOWERED and duration_secs >= _LONG:
            count += 1
            name = str(more.get("fun_name", "")).removeprefix("jit(").strip("_)")
            more_said = f" ({name})" if name else ""
            announce(f"compiling or loading program {count}{more_said}")

    jax.monitoring.register_event_duration_secs_listener(tell)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(tell)


def _default_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "spiel_cr" / "programs"


def _processor() -> str:
    """A name of what machine code depends on."""
    said = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        said += [
            line
            for line in lines
            if line.startswith(("flags", "Features", "model name"))
        ][:2]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:12]


def _make_room(folder: Path) -> None:
    """Deletes what was not used for longest until half of the room is free."""
    files = [(file, file.stat()) for file in folder.iterdir() if file.is_file()]
    total = sum(known.st_size for _, known in files)
    if total <= _MOST_BYTES:
        return
    for file, known in sorted(files, key=lambda item: item[1].st_atime):
        file.unlink(missing_ok=True)
        total -= known.st_size
        if total <= _MOST_BYTES // 2:
            return
