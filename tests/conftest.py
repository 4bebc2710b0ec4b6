"""Settings of the whole test suite: numerics, order, memory, and a record of durations.

If the quick suite runs in several processes, XLA compiles without optimisation, because
compilation takes longer than running the compiled functions. Large functions are cached
in `build/` for the next run. Slow tests, and tests that run in one process, use the
compiler with its default options.

The files with the longest durations in `durations.json` start first. Every run writes
its durations to `out/test-durations.json`; copy this file to `tests/durations.json` if
the durations have changed considerably.
"""

import collections
import ctypes
import gc
import json
import os
import pathlib
import signal
import sys

import jax
import pytest
from absl import flags, logging

from spiel_cr.common import compilation_cache, jax_utils, memory
from spiel_cr.games.tree import numbering, tree_builder
from tests.support import games

# OpenSpiel's test helpers read absl flags, which only an absl program parses.
flags.FLAGS.mark_as_parsed()

# Failed assertions in the shared checks are to show their values, as in tests.
pytest.register_assert_rewrite(
    "tests.support.game_contract", "tests.support.game_trees"
)

# With strict numerics, float32 is used only where the code chooses it, and arrays of
# different ranks are not broadcast. The library itself enables float64 where necessary.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

_FOLDER = pathlib.Path(__file__).parent
_KNOWN = _FOLDER / "durations.json"
_WRITTEN = _FOLDER.parent / "out" / "test-durations.json"
_PROGRAMS = _FOLDER.parent / "build" / "test-programs"
# Size of a test process above which compiled functions and game trees are deleted
# between tests. Functions that later tests use are then traced and compiled again.
_TIDY_BYTES = 2_500_000_000
# Minimum growth between two deletions.
_TIDY_GROWTH = 500_000_000
_held_after_tidying = 0

# XLA's older CPU emitters (see `jax_utils.quick_options`), no LLVM optimisation, and no
# division of a function into modules, which takes longer than it saves.
_QUICK_COMPILER = (
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_backend_optimization_level=0",
    "--xla_cpu_parallel_codegen_split_count=1",
)

_seconds: dict[str, float] = collections.defaultdict(float)
_peaks: dict[str, int] = {}


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def pytest_configure(config: pytest.Config) -> None:
    """Set the options of the compiler, which the processes of pytest-xdist inherit.

    Results may then differ in rounding from those of users, for example because sums
    are not vectorised. `make test-compiler` runs the same tests with default options.
    """
    _hear_interrupts()
    _collect_from_the_other_end(config)
    quick = config.option.markexpr == "not slow" and config.getoption("tx", None)
    # Commands in subprocesses must not write to the user's cache folder.
    os.environ["SPIEL_CR_COMPILATION_CACHE"] = "off"
    os.environ["NUMBA_CACHE_DIR"] = str(_PROGRAMS / "numba")
    if os.environ.get("SPIEL_CR_TEST_COMPILER", "quick") != "quick":
        return
    if hasattr(config, "workerinput") and config.option.markexpr == "not slow":
        compilation_cache.use_compilation_cache(_PROGRAMS)
        # Writing and reading a smaller function takes longer than compiling it.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    # XLA exits if it does not know a flag, so `quick_options` tries one of them first.
    if quick and jax_utils.quick_options() is not None:
        flags_given = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = " ".join([*_QUICK_COMPILER, flags_given])


def _hear_interrupts() -> None:
    """Install Python's handler of SIGINT if the parent process ignores the signal.

    Shells start background jobs with SIGINT ignored, and the processes of pytest-xdist
    inherit this, so tests that raise the signal would wait forever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _collect_from_the_other_end(config: pytest.Config) -> None:
    """Make every second process of pytest-xdist import the test files in reverse order.

    Each process imports all files, and reads the bytecode that another one has written.
    If none exists yet, each process therefore compiles about half of the files. The
    order of the tests is determined later.
    """
    worker = getattr(config, "workerinput", {"workerid": "gw0"})["workerid"]
    places = [config.invocation_params.dir / name for name in config.args]
    if places == [_FOLDER] and int(worker[2:]) % 2:
        folders = [path for path in _FOLDER.iterdir() if path.is_dir()]
        config.args = [str(path) for path in sorted(folders, reverse=True)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort files by duration, longest first; new files count as a minute."""
    known = json.loads(_KNOWN.read_text("utf-8")) if _KNOWN.exists() else {}

    def rank(item: pytest.Item) -> tuple[float, str]:
        file = _file_of(item.nodeid)
        return -known.get(file, {"seconds": 60.0})["seconds"], file

    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session):
    """Collect tests without building game trees, and make garbage collection rarer.

    Imported and collected objects stay alive until the end, so the garbage collector
    ignores them. JAX creates many objects while it traces a function, and few of them
    are garbage, so the collector runs once per 50,000 new objects.
    """
    number = numbering.number
    numbering.number = _refuse
    gc.disable()
    try:
        return (yield)
    finally:
        numbering.number = number
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


def _refuse(*arguments: object) -> None:
    raise pytest.UsageError("a test file builds a game tree while it is collected")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up durations; with pytest-xdist, in the process that gets all reports."""
    file = _file_of(report.nodeid)
    _seconds[file] += report.duration
    for name, value in report.user_properties:
        if name == "peak_bytes":
            _peaks[file] = max(_peaks.get(file, 0), value)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput") or not _seconds:
        return
    rows = {
        file: {
            "seconds": round(_seconds[file], 1),
            "peak_mb": _peaks.get(file, 0) >> 20,
        }
        for file in sorted(_seconds, key=_seconds.__getitem__, reverse=True)
    }
    _WRITTEN.parent.mkdir(exist_ok=True)
    _WRITTEN.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


@pytest.fixture
def absl_log(caplog, monkeypatch):
    """Record warnings of absl, even if an earlier command changed its logger."""
    monkeypatch.setattr(logging.get_absl_logger(), "propagate", True)
    # Messages that are logged once per process count as not logged yet.
    monkeypatch.setattr(logging, "_log_counter_per_token", {})
    with caplog.at_level("WARNING", logger="absl"):
        yield caplog


@pytest.fixture
def nothing_is_compiled(monkeypatch):
    """Make every attempt to build a game tree fail."""

    def build_tree(*_, **__):
        raise AssertionError("a game tree was built")

    monkeypatch.setattr(tree_builder, "build_tree", build_tree)


@pytest.fixture(autouse=True)
def _environment():
    """Restore environment variables after each test."""
    before = dict(os.environ)
    yield
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(autouse=True)
def _peak(record_property):
    """Record the peak memory of the process so far."""
    yield
    record_property("peak_bytes", memory.peak_bytes())


@pytest.fixture(autouse=True)
def _tidy():
    """Free memory after a test if the process has grown considerably."""
    global _held_after_tidying
    yield
    if _held() > max(_TIDY_BYTES, _held_after_tidying + _TIDY_GROWTH):
        games.compiled.cache_clear()
        jax.clear_caches()
        gc.collect()
        if sys.platform == "linux":
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        _held_after_tidying = _held()


def _held() -> int:
    """Return the bytes that the process uses now, or its peak if this is unknown."""
    try:
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return memory.peak_bytes()
    return pages * 4096
