"""The watchdog ends commands whose main thread does not react to a signal."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from spiel_cr.eval.cli import interrupt_signals, watchdog

# A function in C that runs for hours, and leaves other threads free meanwhile.
_STUCK = "hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)"
_BEGIN = """
    import contextlib, hashlib, pathlib, signal, sys, threading, time
    from spiel_cr.common import atomic, interrupts, processes
    from spiel_cr.eval.cli import interrupt_signals, watchdog

    folder = pathlib.Path(sys.argv[1])
    watchdog.GRACE_SECONDS = float(sys.argv[2])

    def tell():
        print("spiel-cr: interrupted", file=sys.stderr)

    def ready():
        print("ready", flush=True)
"""
# Seconds from the signal to the end on a busy machine.
_LIMIT = 10
# Grace period of scripts that do not end by themselves.
_GRACE = 0.2


def launch(code, folder, grace=_GRACE):
    """Start a script."""
    code = textwrap.dedent(_BEGIN) + textwrap.dedent(code)
    words = [sys.executable, "-c", code, str(folder), str(grace)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, text=True, **pipes)


def wait_until_ready(process):
    """Wait until a script has printed that it is ready."""
    assert process.stdout.readline() == "ready\n", process.communicate()


def start(code, folder, grace=_GRACE):
    """Start a script, and wait until it has printed that it is ready."""
    process = launch(code, folder, grace)
    wait_until_ready(process)
    return process


def interrupt(process, number=signal.SIGINT):
    """Send a signal; return the exit code and stderr."""
    # The next line of the script has begun by then.
    time.sleep(0.5)
    process.send_signal(number)
    return wait_for_exit(process)


def wait_for_exit(process):
    """Wait for the end of a script; return the exit code and stderr."""
    try:
        _, err = process.communicate(timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, err


def test_signals_end_a_command_during_a_long_c_function(tmp_path):
    """No signal leaves the lock file or the temporary file behind."""
    code = f"""
        with (
            interrupt_signals.interrupting(tell),
            atomic.lock(folder / "new" / "locked"),
            atomic.replacing(folder / "file") as file,
        ):
            file.write(b"half")
            ready()
            {_STUCK}
    """
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    folders = [tmp_path / number.name for number in numbers]
    for folder in folders:
        folder.mkdir()
    scripts = [launch(code, folder) for folder in folders]
    try:
        for script, folder in zip(scripts, folders, strict=True):
            wait_until_ready(script)
            assert {path.suffix for path in folder.rglob("*")} == {".part", "", ".lock"}
        # The next line of the scripts has begun by then.
        time.sleep(0.5)
        for script, number in zip(scripts, numbers, strict=True):
            script.send_signal(number)
        for script, number, folder in zip(scripts, numbers, folders, strict=True):
            ended = wait_for_exit(script)
            assert ended == (128 + number, "spiel-cr: interrupted\n"), number
            assert not list(folder.iterdir()), number
    finally:
        for script in scripts:
            script.kill()


def test_worker_processes_are_killed(tmp_path):
    code = f"""
        with interrupt_signals.interrupting(tell):
            worker = processes.start(print, ())
            worker.pipe.poll(60)
            ready()
            print(worker.process.pid, flush=True)
            {_STUCK}
    """
    process = start(code, tmp_path)
    worker = int(process.stdout.readline())
    assert interrupt(process)[0] == 130
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_results_are_saved_by_the_watchdog(tmp_path):
    code = f"""
        def save():
            atomic.write_text(folder / "results", "all of them")
            return True

        with interrupt_signals.interrupting(tell), interrupts.saving(save):
            ready()
            {_STUCK}
    """
    assert interrupt(start(code, tmp_path))[0] == 130
    assert (tmp_path / "results").read_text() == "all of them"


def test_watchdog_waits_for_results_saved_by_the_main_thread(tmp_path):
    code = """
        unsaved = [1]

        def save():
            return not unsaved

        with interrupt_signals.interrupting(tell), interrupts.saving(save):
            try:
                ready()
                time.sleep(60)
            finally:
                time.sleep(1)
                (folder / "results").touch()
                unsaved.clear()
                time.sleep(60)
    """
    code, err = interrupt(start(code, tmp_path))
    assert code == 130
    assert "waiting for the current step" in err
    assert (tmp_path / "results").exists()


def test_discarded_interrupt_is_raised_again(tmp_path):
    """C code may drop an exception that a Python callback raises."""
    code = """
        unsaved = [1]

        watching = interrupt_signals.interrupting(tell)
        with watching, interrupts.saving(lambda: not unsaved):
            try:
                with contextlib.suppress(KeyboardInterrupt):
                    ready()
                    time.sleep(60)
                for _ in range(1000):
                    time.sleep(0.05)
            finally:
                (folder / "results").touch()
                unsaved.clear()
                time.sleep(60)
    """
    assert interrupt(start(code, tmp_path))[0] == 130
    assert (tmp_path / "results").exists()


def test_third_signal_ends_the_command_without_saving(tmp_path):
    code = f"""
        with interrupt_signals.interrupting(tell), interrupts.saving(lambda: False):
            ready()
            {_STUCK}
    """
    process = start(code, tmp_path)
    for _ in range(2):
        # The next line of the script has begun by then, and signals that arrive at the
        # same time count as one.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
    assert interrupt(process)[0] == 130


def test_command_that_ends_within_the_grace_period_is_not_killed(tmp_path):
    code = """
        watching = interrupt_signals.interrupting(tell)
        with contextlib.suppress(KeyboardInterrupt), watching:
            try:
                ready()
                time.sleep(60)
            except KeyboardInterrupt:
                watchdog.accept_interrupt()
                time.sleep(1.5)
    """
    # Without `accept_interrupt`, the process would be ended after the grace period.
    grace = watchdog.GRACE_SECONDS
    assert interrupt(start(code, tmp_path, grace)) == (0, "")


def test_watchdog_thread_ends_with_its_block():
    """The thread and the wake-up descriptor are removed at the end of the block."""
    before = threading.active_count(), signal.set_wakeup_fd(-1)
    with interrupt_signals.interrupting(lambda: None):
        assert threading.active_count() == before[0] + 1
    for _ in range(100):
        if threading.active_count() == before[0]:
            break
        time.sleep(0.05)
    assert (threading.active_count(), signal.set_wakeup_fd(-1)) == before
