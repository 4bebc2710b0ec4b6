"""The contract of `Executor`, over three backends; Ray's is a cluster."""

import contextlib
import multiprocessing
import os
import pathlib
import secrets
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from spiel_cr.common import executor, plugins, processes
from spiel_cr.common.errors import WorkerFailedError
from spiel_cr.common.executor import Executor
from tests.support.tasks import Rests, Tasks

WEIGHTS = np.linspace(-1.0, 1.0, 10_001)
ADDED = {number: ("add", number) for number in range(7)}
# Bytes of the object store of each node of the cluster.
_STORE = 80 * 2**20


@pytest.fixture(scope="module")
def cluster():
    """One node of two cores; its store is small, so that starting is quick."""
    settings = {"num_cpus": 2, "object_store_memory": _STORE}
    settings["include_dashboard"] = False
    with pytest.MonkeyPatch.context() as patch:
        # Before it is imported; else it would write a token to the home folder.
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        import ray
        from ray import cluster_utils

        nodes = cluster_utils.Cluster(True, False, settings)
        ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
        nodes.wait_for_nodes()
        yield nodes
        ray.shutdown()
        nodes.shutdown()


# Workers of Ray start slowly.
quick_without_ray = pytest.mark.parametrize(
    "backend",
    ["here", "processes", pytest.param("ray", marks=pytest.mark.slow)],
    indirect=True,
)


@pytest.fixture(params=["here", "processes", "ray"])
def backend(request):
    """Settings of executors; all workers are gone afterwards."""
    if request.param == "ray":
        request.getfixturevalue("cluster")
        yield {"workers": 2, "ray": "local"}
    else:
        yield {"workers": 2 if request.param == "processes" else 0}
    assert not multiprocessing.active_children()


def do(settings, tasks, folder, **options):
    return Executor(**settings).map(Tasks, (WEIGHTS, str(folder)), tasks, **options)


def noted(folder, name):
    return (folder / name).read_text().split()


def is_alive(pid):
    """Whether there is such a process, and it has not ended."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def expected(seed):
    return (np.random.default_rng(seed % 1000).normal(size=10_001) @ WEIGHTS).item()


def test_results_have_the_same_bits_and_workers_are_made_once(backend, tmp_path):
    names = []
    found = do(
        backend, ADDED, tmp_path, named=lambda key: names.append(key) or f"{key}"
    )
    assert dict(found) == {number: expected(number) for number in ADDED}
    assert sorted(names) == list(ADDED)
    made = noted(tmp_path, "made")
    assert len(set(made)) == len(made) <= max(backend["workers"], 1)
    here = str(os.getpid()) in made
    assert here == (not backend["workers"])


@pytest.mark.parametrize("place", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "HOME"])
def test_a_token_that_ray_would_not_send_is_named(place, tmp_path, monkeypatch):
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(executor.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setenv("HOME", str(tmp_path))
    Executor(ray="first:6379")
    monkeypatch.setenv(place, str(tmp_path))
    if place == "HOME":
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").write_text("token", encoding="utf-8")
    with pytest.raises(ValueError, match="first:6379.*RAY_AUTH_MODE is not set"):
        Executor(ray="first:6379")
    Executor(ray="local")
    for mode in ("token", "disabled"):
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
        Executor(ray="first:6379")


def test_results_in_the_order_of_keys():
    """Each result follows the ones before it, and no further task is started."""
    came = []

    def results():
        for key in (2, 0, 1, 3):
            came.append(key)
            yield key, -key

    ordered = executor.in_order(results(), range(4))
    assert next(ordered) == 0 and came == [2, 0]
    assert list(ordered) == [-1, -2, -3]


def test_no_task_needs_no_worker(tmp_path):
    assert not list(do({"workers": 2}, {}, tmp_path)) and not list(tmp_path.iterdir())


@quick_without_ray
def test_errors_of_a_task_are_raised_once(backend, tmp_path):
    for what, kind, text in (
        ("refuse", ValueError, "seed=5"),
        ("fail", WorkerFailedError if backend["workers"] else KeyError, "'nothing'"),
    ):
        with pytest.raises(kind, match=text):
            list(do(backend, {0: (what, 5)}, tmp_path))
        assert len(noted(tmp_path, f"{what}5")) == 1


@quick_without_ray
def test_what_a_dead_worker_did_is_done_again(backend, tmp_path):
    """A task that dies twice is done at its third time; one that always dies, never."""
    if not backend["workers"]:
        pytest.skip("this process would end")
    tasks = {**ADDED, "twice": ("die", 2), "always": ("die", -1)}
    found = dict(do(backend, tasks, tmp_path, lost=lambda key, why: (key, why)))
    key, why = found.pop("always")
    assert key == "always" and "ended" in why
    assert found == {**{n: expected(n) for n in ADDED}, "twice": expected(2)}
    assert len(noted(tmp_path, "die2")) == len(noted(tmp_path, "die-1")) == 3
    # The others were done once.
    assert all(len(noted(tmp_path, f"add{number}")) == 1 for number in ADDED)
    if "ray" not in backend:  # where workers start slowly
        with pytest.raises(WorkerFailedError, match="task 3: .*ended"):
            list(do(backend, {3: ("die", -2)}, tmp_path))


@quick_without_ray
def test_what_a_task_yields_comes_at_once_and_once(backend, tmp_path):
    """A task that dies after its second result continues from its second argument."""
    mortal = bool(backend["workers"])
    told = [mortal]
    results = do(backend, {"told": ("tell", told), **ADDED}, tmp_path)
    found = {}
    for key, result in results:
        if key == "told":
            # The worker has not gone on yet.
            assert result == len(told) - 1
            told.append(result)
        else:
            found[key] = result
    assert told == [mortal, 0, 1, 2, 3]
    assert found == {number: expected(number) for number in ADDED}
    assert len(noted(tmp_path, "tell")) == (2 if mortal else 1)


@quick_without_ray
def test_patience_ends_a_task_and_the_others_go_on(backend, tmp_path):
    if not backend["workers"]:
        with pytest.raises(ValueError, match="patience=1: tasks without worker"):
            Executor(patience=1)
        return
    # The others take a moment, on a machine with other work perhaps a second.
    tasks = {"late": ("wait", 0), **ADDED}
    settings = {**backend, "patience": 4.0}
    found = dict(do(settings, tasks, tmp_path, lost=lambda key, why: why))
    assert found.pop("late") == "given up after 4 wall-clock seconds (--patience)"
    assert found == {number: expected(number) for number in ADDED}


@quick_without_ray
def test_an_interrupt_leaves_no_worker(backend, tmp_path):
    tasks = {0: ("add", 0), 1: ("wait", 1)} if backend["workers"] else {0: ("add", 0)}
    results = do(backend, tasks, tmp_path)
    with pytest.raises(KeyboardInterrupt), contextlib.closing(results):
        assert next(results) == (0, expected(0))
        raise KeyboardInterrupt
    deadline = time.monotonic() + 20
    for pid in map(int, noted(tmp_path, "made")):
        while pid != os.getpid() and is_alive(pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_nodes_with_other_code_are_refused(cluster, tmp_path, monkeypatch):
    ours = executor.greeting(Tasks.__module__)
    assert ours["source"] == plugins.source(Tasks.__module__)
    other = {**ours, "numpy": "1.0"}
    monkeypatch.setattr(executor, "greeting", lambda module: other)
    said = rf"different code: numpy {ours['numpy']} \(the command has 1.0\); install"
    with pytest.raises(WorkerFailedError, match=said):
        list(do({"workers": 1, "ray": "local"}, ADDED, tmp_path))


@pytest.mark.slow
def test_a_node_may_die(cluster, tmp_path):
    """Another node repeats the tasks that the second node had started.

    Three tasks wait, so that the first node has two and the second one. Then the second
    node is killed; when its worker has ended, the tasks no longer wait.
    """
    second = cluster.add_node(num_cpus=1, object_store_memory=_STORE)
    tasks = {n: ("stay" if n < 3 else "add", n) for n in range(6)}
    results = do({"workers": 3, "ray": "local"}, tasks, tmp_path)
    files = [tmp_path / f"stay{n}" for n in range(3)]

    def kill():
        deadline = time.monotonic() + 100
        try:
            while not all(file.exists() and file.stat().st_size for file in files):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            workers = [int(noted(tmp_path, file.name)[0]) for file in files]
            cluster.remove_node(second, allow_graceful=False)
            while all(map(is_alive, workers)) and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            (tmp_path / "go").touch()

    threading.Thread(target=kill).start()
    assert dict(results) == {n: expected(n) for n in range(6)}
    # One of the three was begun again.
    assert sorted(len(noted(tmp_path, file.name)) for file in files) == [1, 1, 2]


def test_workers_that_do_not_start_are_told():
    with pytest.raises(
        WorkerFailedError, match="failed to start a worker: its process"
    ):
        list(Executor(1).map(os._exit, (3,), {0: 0}))


def test_what_can_wait_is_done_after_the_answer(tmp_path):
    worker = processes.start(Rests, (tmp_path / "go",))
    # As `make` has returned; then it rests until there is the file.
    assert worker.pipe.poll(60) and worker.receive() is None
    (tmp_path / "go").touch()
    for rests in (1, 2):
        worker.send("")
        assert worker.receive() == rests
    worker.end()


def test_a_ray_that_does_not_start_is_told(monkeypatch):
    """Its own errors, as of a raylet that is killed, are no mistake of this project."""

    class Ray:
        def init(self, *address, **settings):
            raise Exception("The current node timed out during startup.")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(
        WorkerFailedError, match="^failed to start Ray: The current nod"
    ):
        executor._init(Ray(), Executor(2, "local"), {})


def test_errors_that_cannot_be_made_again_are_told_in_lines():
    class Odd(OSError):
        def __init__(self, first, second):
            super().__init__("odd")

    def fails():
        raise Odd(1, 2)

    fine, error = processes.answered(fails)
    assert not fine and isinstance(error, WorkerFailedError) and "odd" in str(error)


_HANGUP = """
import operator, os, signal, time
from multiprocessing import resource_tracker

from spiel_cr.common import processes

worker = processes.start(operator.itemgetter, [0])
tracker = resource_tracker._resource_tracker._pid
for number in processes.SIGNALS:
    os.kill(tracker, number)
time.sleep(0.5)
assert os.waitpid(tracker, os.WNOHANG) == (0, 0)
assert signal.SIGHUP not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
worker.end()
"""


def test_a_terminal_that_is_closed_leaves_what_keeps_track_of_semaphores():
    """Otherwise Python prints a traceback, and the semaphores remain."""
    subprocess.run([sys.executable, "-c", _HANGUP], check=True)
