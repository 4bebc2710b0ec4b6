"""The process of a command: signals, streams, errors and unwritable outputs."""

import errno
import gc
import importlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pyspiel
import pytest
from jax.errors import JaxRuntimeError
from tqdm import tqdm

from spiel_cr.common import atomic, messages
from spiel_cr.common.checks import check_iterations
from spiel_cr.common.errors import SolverFailedError, UnsavedWarning
from spiel_cr.eval.cli import (
    command,
    interrupt_signals,
    main,
    process,
    setting_options,
)
from tests.support.full_disk import file_size

CODE = "from spiel_cr.eval.cli import entry; entry.main()"


def start(*words, **options):
    """Start the command as a process with text streams."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    given = [sys.executable, "-c", CODE, *map(str, words)]
    return subprocess.Popen(given, text=True, **options)


@pytest.fixture(autouse=True)
def default_signal_handlers():
    """Handle signals even if the tests run in a background job, which ignores them."""
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run_as_command(run, **defaults):
    """Run a function as a command; return the exit code."""
    defaults = {"json": True, "resumes": False, "unwritten": [], **defaults}
    try:
        main._run(command.Arguments(run=run, **defaults))
    except SystemExit as stopped:
        return stopped.code
    return 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_interrupts_the_work_and_allows_cleanup(capsys, tmp_path, number):
    cleaned = []

    def run(arguments):
        try:
            signal.raise_signal(number)
        finally:
            # A second signal does not interrupt the cleanup.
            signal.raise_signal(signal.SIGINT)
            cleaned.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    assert before is signal.default_int_handler
    assert run_as_command(run, resumes=True, out=str(tmp_path)) == 128 + number
    # A third signal would end the process.
    assert cleaned == [signal.SIG_DFL]
    assert signal.getsignal(signal.SIGTERM) == before
    assert capsys.readouterr().err.splitlines() == [
        f"completed results are kept in {tmp_path}; repeat the command to resume",
        "spiel-cr: interrupted",
    ]


def test_signal_in_a_destructor_ends_the_process(tmp_path):
    """Work that the destructor left incomplete must not be written to a file."""
    code = """
        import pathlib, signal, sys, time
        from spiel_cr.eval.cli import interrupt_signals

        class Fragile:
            def __del__(self):
                signal.raise_signal(signal.SIGTERM)

        with interrupt_signals.interrupting():
            try:
                Fragile()
                time.sleep(10)
            finally:
                pathlib.Path(sys.argv[1]).touch()
    """
    words = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "file")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (143, "spiel-cr: interrupted\n")
    assert not list(tmp_path.iterdir())


def test_ignored_signals_stay_ignored():
    """`nohup` and background jobs of shells ignore signals."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupt_signals.interrupting():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(not pathlib.Path("/proc").exists(), reason="no /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_during_imports_end_the_process_silently(number):
    """Only the announcement of the imports may be on stderr."""
    child = start("info", "--game", "kuhn_poker")
    maps = pathlib.Path(f"/proc/{child.pid}/maps")
    while maps.exists() and "numpy" not in maps.read_text():
        time.sleep(0.005)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (-number, "")
    assert re.fullmatch(r"(\[ *[0-9.]+ s\] importing JAX and OpenSpiel\n)?", err)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (lambda: check_iterations(0), 2),
        (lambda: (_ for _ in ()).throw(pyspiel.SpielError("unknown game")), 2),
        (lambda: open("/no/such/file"), 2),
        (lambda: (_ for _ in ()).throw(SolverFailedError("no optimum")), 2),
        (lambda: (_ for _ in ()).throw(MemoryError("too much")), 2),
        (lambda: (_ for _ in ()).throw(JaxRuntimeError("RESOURCE_EXHAUSTED: x")), 2),
        (lambda: importlib.import_module("no_such_library"), 2),
        # Bugs of spiel_cr, whatever the type of the exception.
        (lambda: int("many"), 1),
        (lambda: [][0], 1),
        (lambda: {}["x"], 1),
        (lambda: None + 1, 1),
        (lambda: (_ for _ in ()).throw(RuntimeError("lost")), 1),
        (lambda: (_ for _ in ()).throw(JaxRuntimeError("INVALID_ARGUMENT: x")), 1),
        (lambda: importlib.import_module("spiel_cr.no_such_module"), 1),
        (lambda: exec("from spiel_cr.common import no_such_name"), 1),
    ],
)
def test_exit_code_distinguishes_user_errors_from_bugs(capsys, error, code):
    assert run_as_command(lambda arguments: error()) == code
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert last.startswith("spiel-cr: error: ") and not out
    assert ("Traceback" in err) == (code == 1) == ("please report it" in last)


def test_unwritable_output_does_not_affect_other_outputs(capsys, tmp_path):
    def run(arguments):
        for name in ("large", "small"):
            with arguments.writing():
                text = "x" * (9000 if name == "large" else 9)
                atomic.write_text(tmp_path / name, text)
        return {"nash_conv": 0.5}

    with file_size(8192):
        assert run_as_command(run) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == {"nash_conv": 0.5}
    assert f"File too large: '{tmp_path}/large'" in err.splitlines()[0]
    assert err.splitlines()[-1].endswith(
        f"some outputs could not be written: {tmp_path}/large"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_unwritten_checkpoint_is_reported(capsys):
    def run(arguments):
        error = OSError(errno.ENOSPC, "No space left on device", "out/c.npz")
        warnings.warn(UnsavedWarning(error), stacklevel=1)
        return {"iterations": 20}

    assert run_as_command(run) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == {"iterations": 20}
    first, last = err.splitlines()
    assert first.endswith("No space left on device: 'out/c.npz'")
    assert last == "spiel-cr: error: some outputs could not be written: out/c.npz"


def test_interrupt_does_not_mention_an_outdated_checkpoint(capsys, tmp_path):
    path = tmp_path / "c.npz"
    path.touch()

    def run(arguments):
        error = OSError(errno.ENOSPC, "No space left on device", str(path))
        warnings.warn(UnsavedWarning(error), stacklevel=1)
        raise KeyboardInterrupt

    given = f"{tmp_path}/./c.npz"
    assert run_as_command(run, resumes=True, checkpoint=given) == 128 + signal.SIGINT
    told, last = capsys.readouterr().err.splitlines()
    assert "No space left on device" in told
    assert last == "spiel-cr: interrupted"


def test_every_output_option_is_in_the_table_of_outputs():
    """Paths in that table are checked before the work starts."""
    known = {*command.OUTPUT_FILES, *command.OUTPUT_FOLDERS}
    commands = main.make_parser()._subparsers._group_actions[0].choices
    found = {
        action.dest
        for parser in commands.values()
        for action in parser._actions
        if action.type is setting_options.path_value
        or {"PATH", "FILE", "DIR"} & set(str(action.metavar).split("|"))
    }
    assert found - {"policy", "lock", "later", "open"} == known


def test_warnings_are_printed_as_single_lines(capsys):
    def run(arguments):
        warnings.warn("the checkpoint is tried again", stacklevel=1)
        return {}

    assert run_as_command(run) == 0
    assert (
        capsys.readouterr().err == "spiel-cr: warning: the checkpoint is tried again\n"
    )


def test_writes_to_a_closed_pipe_are_dropped():
    read, write = os.pipe()
    stream = process.Forgiving(open(write, "w", encoding="ascii"))
    text = stream.text()
    print("first ±", file=text, flush=True)
    assert os.read(read, 100) == b"first \\xb1\n"
    os.close(read)
    for _ in range(3):
        print("x" * 100_000, file=text, flush=True)
    assert isinstance(stream.error, BrokenPipeError)


def test_write_to_a_full_pipe_waits():
    read, write = os.pipe()
    os.set_blocking(write, False)
    text = process.Forgiving(open(write, "w", encoding="ascii")).text()
    got = []
    reader = threading.Thread(target=lambda: got.append(open(read, "rb").read()))
    threading.Timer(0.05, reader.start).start()
    print("x" * 200_000, file=text, flush=True)
    os.close(write)
    reader.join()
    assert got == [b"x" * 200_000 + b"\n"]


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.slow
def test_full_and_closed_streams_set_the_exit_code(tmp_path):
    words = ["info", "--game", "kuhn_poker", "--json"]
    with open("/dev/full", "w") as full:
        child = start(*words, stdout=full)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert err.splitlines()[-1] == "spiel-cr: error: stdout: No space left on device"
    for given in (words, ["--help"], ["solve", "--help"], ["--version"]):
        read, write = os.pipe()
        os.close(read)
        child = start(*given, stdout=write)
        os.close(write)
        _, err = child.communicate(timeout=60)
        assert child.returncode == 141 and "Broken" not in err, given
    line = shlex.join([sys.executable, "-c", CODE, *words])
    closed = subprocess.run(["sh", "-c", f"{line} <&- >&- 2>&-"], timeout=60)
    assert closed.returncode == 0


def test_unfinished_progress_bars_print_no_error(monkeypatch, capsys):
    """An interrupt in tqdm's `__init__` leaves one; other errors are still printed."""
    monkeypatch.setattr(sys, "unraisablehook", process._without_unfinished_bars)
    unmade = object.__new__(tqdm)
    vars(unmade).update(disable=False)
    del unmade
    gc.collect()
    assert capsys.readouterr().err == ""

    class Other:
        def __del__(self):
            raise AttributeError("something else")

    other = Other()
    del other
    gc.collect()
    assert "something else" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {},
            "no results were kept (no --checkpoint); --save is written at the end only",
        ),
        ({"save": None}, "no results were kept (no --checkpoint)"),
        ({"checkpoint": __file__}, "completed results are kept in"),
        ({"saved": True}, ""),
    ],
)
def test_interrupt_reports_which_results_are_kept(capsys, given, said):
    def run(arguments):
        raise KeyboardInterrupt

    defaults = {"resumes": True, "checkpoint": None, "save": "a.npz", **given}
    assert run_as_command(run, **defaults) == 128 + signal.SIGINT
    *lines, last = capsys.readouterr().err.splitlines()
    assert last == "spiel-cr: interrupted"
    assert len(lines) == bool(said) and all(line.startswith(said) for line in lines)


def test_interrupt_during_the_import_of_a_c_module(capsys):
    """pybind11 turns the interrupt into an ImportError."""

    def run(arguments):
        raise ImportError("initialization failed") from KeyboardInterrupt()

    assert (
        run_as_command(run, resumes=True, checkpoint=None, save=None)
        == 128 + signal.SIGINT
    )
    assert capsys.readouterr().err.endswith("spiel-cr: interrupted\n")


def output_of_a_bar(terminal, progress, late, capsys, monkeypatch):
    """Return what a bar of 20 items prints on stderr, which may be a terminal."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(messages, "_LATE", late)
    for _ in messages.progress_bar(range(20), progress=progress):
        time.sleep(0.02)
    return capsys.readouterr().err


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_bar_prints_few_lines_to_files(terminal, capsys, monkeypatch):
    """A terminal gets many updates; a file gets two lines without carriage returns."""
    text = output_of_a_bar(terminal, True, 10.0, capsys, monkeypatch)
    assert "20/20" in text and (text.count("/20") <= 3) != terminal
    assert ("\r" in text) == terminal
    if not terminal:
        assert [line[:1] for line in text.splitlines()] == ["0", "1"]


@pytest.mark.parametrize(
    ("terminal", "progress", "late", "shown"),
    [
        (True, None, 0.1, True),
        (True, None, 10.0, False),
        (True, False, 0.1, False),
        (False, None, 0.1, False),
    ],
)
def test_long_calls_show_progress_on_a_terminal(
    terminal, progress, late, shown, capsys, monkeypatch
):
    text = output_of_a_bar(terminal, progress, late, capsys, monkeypatch)
    assert ("20/20" in text) == shown and bool(text) == shown


def test_error_names_a_platform_that_jax_cannot_use():
    """The message is about the variable, not about a mistake in spiel_cr."""
    words = "solve --game kuhn_poker --algorithm cfr+ --iterations 2".split()
    code = "from spiel_cr.eval.cli import main; main.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "JAX_PLATFORMS": "tpu"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert last.startswith("spiel-cr: error: JAX_PLATFORMS='tpu': JAX cannot use")
