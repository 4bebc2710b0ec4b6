"""Settings of the whole test suite: numerics, order, memory, and a record of durations.

The quick suite, spread over processes, has XLA compile in its quickest way: most of its
time is compilation of programs that run for a moment. They are kept in `build/` for the
next time. Everything else, the slow tests and tests that are run in one process, has
the compiler as people have it.

Files are scheduled by the seconds that they took when `durations.json` was written, the
longest first. Every run writes such a record to `out/test-durations.json`; copy it over
`tests/durations.json` when the suite has changed much.
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

# Strict numerics: a float32 is one that somebody chose, and nothing broadcasts by
# accident. The library sets the precision that it needs by itself.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

_FOLDER = pathlib.Path(__file__).parent
_KNOWN = _FOLDER / "durations.json"
_WRITTEN = _FOLDER.parent / "out" / "test-durations.json"
_PROGRAMS = _FOLDER.parent / "build" / "test-programs"
# Compiled programs and games are thrown away between tests above this size.
_TIDY_BYTES = 1_150_000_000
# Growth since memory was last given back, below which it is not worth another time:
# compiled programs that are thrown away have to be compiled again.
_TIDY_GROWTH = 150_000_000
_held_after_tidying = 0

# XLA's older CPU emitters (`jax_utils.quick_options`), and no optimisation by LLVM.
_QUICK_COMPILER = (
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_backend_optimization_level=0",
)

_seconds: dict[str, float] = collections.defaultdict(float)
_peaks: dict[str, int] = {}


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def pytest_configure(config: pytest.Config) -> None:
    """Sets the compiler's options, which the processes of pytest-xdist inherit.

    Programs are then not those that users run: other roundings, no vectorised sums.
    `make test-compiler` runs the same tests with the compiler as it is.
    """
    _hear_interrupts()
    _collect_from_the_other_end(config)
    quick = config.option.markexpr == "not slow" and config.getoption("tx", None)
    # Processes of `spiel-cr` keep no programs in the user's cache folder.
    os.environ["SPIEL_CR_COMPILATION_CACHE"] = "off"
    os.environ["NUMBA_CACHE_DIR"] = str(_PROGRAMS / "numba")
    if os.environ.get("SPIEL_CR_TEST_COMPILER", "quick") != "quick":
        return
    if hasattr(config, "workerinput") and config.option.markexpr == "not slow":
        compilation_cache.use_compilation_cache(_PROGRAMS)
        # Smaller functions, most of them single operations, cost more to write and to
        # read than to compile.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.03)
    # XLA ends a process whose flags it does not know, so one of them is tried first.
    if quick and jax_utils.quick_options() is not None:
        flags_given = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = " ".join([*_QUICK_COMPILER, flags_given])


def _hear_interrupts() -> None:
    """Gives the process Python's handler of SIGINT, where its parent had none.

    Shells start background jobs with SIGINT ignored, and that is inherited by the
    processes of pytest-xdist, too: tests that raise it would wait for nothing.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _collect_from_the_other_end(config: pytest.Config) -> None:
    """Every second process of pytest-xdist begins with the last folder.

    Each imports all files. What one has compiled, the other reads: so each compiles
    half of them, where nothing is compiled yet. The order of tests is made afterwards.
    """
    worker = getattr(config, "workerinput", {"workerid": "gw0"})["workerid"]
    places = [config.invocation_params.dir / name for name in config.args]
    if places == [_FOLDER] and int(worker[2:]) % 2:
        folders = [path for path in _FOLDER.iterdir() if path.is_dir()]
        config.args = [str(path) for path in sorted(folders, reverse=True)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Longest files first; a file that is not known counts as long."""
    known = json.loads(_KNOWN.read_text("utf-8")) if _KNOWN.exists() else {}

    def rank(item: pytest.Item) -> tuple[float, str]:
        file = _file_of(item.nodeid)
        return -known.get(file, {"seconds": 60.0})["seconds"], file

    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session):
    """Collecting is for names: no game is compiled before a test asks for it.

    What is imported and collected stays to the end, so the search for cycles is to
    leave it out: it would go through all that again and again while tests run. What
    JAX traces is many objects, too, and hardly garbage: one search for fifty.
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
    raise pytest.UsageError("a test file compiles a game while it is collected")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds up seconds; with xdist this runs where all reports arrive."""
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
    """Warnings of absl, whatever a command that ran before made of its logger."""
    monkeypatch.setattr(logging.get_absl_logger(), "propagate", True)
    # What is logged once a process has not been logged.
    monkeypatch.setattr(logging, "_log_counter_per_token", {})
    with caplog.at_level("WARNING", logger="absl"):
        yield caplog


@pytest.fixture
def nothing_is_compiled(monkeypatch):
    """Whoever compiles a game fails."""

    def build_tree(*_, **__):
        raise AssertionError("compiled")

    monkeypatch.setattr(tree_builder, "build_tree", build_tree)


@pytest.fixture(autouse=True)
def _environment():
    """Processes that later tests start see what this one found, not what it set."""
    before = dict(os.environ)
    yield
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(autouse=True)
def _peak(record_property):
    """The most memory that the process has held so far, for the record."""
    yield
    record_property("peak_bytes", memory.peak_bytes())


@pytest.fixture(autouse=True)
def _tidy():
    """Gives memory back after a test, where the process has grown."""
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
    """Bytes that the process holds now; where that is unknown, its peak."""
    try:
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return memory.peak_bytes()
    return pages * 4096
