"""The contract of `Executor`, for three backends, one of which is a Ray cluster."""

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
    """Start a node of two cores; a small object store makes starting quick."""
    settings = {"num_cpus": 2, "object_store_memory": _STORE}
    settings["include_dashboard"] = False
    with pytest.MonkeyPatch.context() as patch:
        # Set before the import; otherwise Ray would write a token to the home folder.
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
    """Return settings of an executor, and check later that all workers have ended."""
    if request.param == "ray":
        request.getfixturevalue("cluster")
        yield {"workers": 2, "ray": "local"}
    else:
        yield {"workers": 2 if request.param == "processes" else 0}
    assert not multiprocessing.active_children()


def run_tasks(settings, tasks, folder, **options):
    return Executor(**settings).map(Tasks, (WEIGHTS, str(folder)), tasks, **options)


def read_notes(folder, name):
    return (folder / name).read_text().split()


def is_alive(pid):
    """Return whether the process exists and has not ended."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def expected(seed):
    return (np.random.default_rng(seed % 1000).normal(size=10_001) @ WEIGHTS).item()


def test_results_do_not_depend_on_the_backend(backend, tmp_path):
    names = []
    found = run_tasks(
        backend, ADDED, tmp_path, named=lambda key: names.append(key) or f"{key}"
    )
    assert dict(found) == {number: expected(number) for number in ADDED}
    assert sorted(names) == list(ADDED)
    made = read_notes(tmp_path, "made")
    assert len(set(made)) == len(made) <= max(backend["workers"], 1)
    here = str(os.getpid()) in made
    assert here == (not backend["workers"])


@pytest.mark.parametrize("place", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "HOME"])
def test_rejects_ray_tokens_without_auth_mode(place, tmp_path, monkeypatch):
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


def test_results_are_ordered_by_keys():
    """A result is returned as soon as all earlier results are known."""
    came = []

    def results():
        for key in (2, 0, 1, 3):
            came.append(key)
            yield key, -key

    ordered = executor.in_order(results(), range(4))
    assert next(ordered) == 0 and came == [2, 0]
    assert list(ordered) == [-1, -2, -3]


def test_no_worker_is_started_without_tasks(tmp_path):
    assert not list(run_tasks({"workers": 2}, {}, tmp_path)) and not list(
        tmp_path.iterdir()
    )


@quick_without_ray
def test_task_errors_are_raised_once(backend, tmp_path):
    for what, kind, text in (
        ("refuse", ValueError, "seed=5"),
        ("fail", WorkerFailedError if backend["workers"] else KeyError, "'nothing'"),
    ):
        with pytest.raises(kind, match=text):
            list(run_tasks(backend, {0: (what, 5)}, tmp_path))
        assert len(read_notes(tmp_path, f"{what}5")) == 1


@quick_without_ray
def test_tasks_of_dead_workers_are_repeated(backend, tmp_path):
    """Tasks are tried three times, so a task that dies twice succeeds."""
    if not backend["workers"]:
        pytest.skip("this process would end")
    tasks = {**ADDED, "twice": ("die", 2), "always": ("die", -1)}
    found = dict(run_tasks(backend, tasks, tmp_path, lost=lambda key, why: (key, why)))
    key, why = found.pop("always")
    assert key == "always" and "ended" in why
    assert found == {**{n: expected(n) for n in ADDED}, "twice": expected(2)}
    assert len(read_notes(tmp_path, "die2")) == len(read_notes(tmp_path, "die-1")) == 3
    # The other tasks were run once.
    assert all(len(read_notes(tmp_path, f"add{number}")) == 1 for number in ADDED)
    if "ray" not in backend:  # where workers start slowly
        with pytest.raises(WorkerFailedError, match="task 3: .*ended"):
            list(run_tasks(backend, {3: ("die", -2)}, tmp_path))


@quick_without_ray
def test_yielded_results_arrive_immediately_and_once(backend, tmp_path):
    """A task that dies after its second result is resumed with the results so far."""
    mortal = bool(backend["workers"])
    told = [mortal]
    results = run_tasks(backend, {"told": ("tell", told), **ADDED}, tmp_path)
    found = {}
    for key, result in results:
        if key == "told":
            # The worker has not continued yet.
            assert result == len(told) - 1
            told.append(result)
        else:
            found[key] = result
    assert told == [mortal, 0, 1, 2, 3]
    assert found == {number: expected(number) for number in ADDED}
    assert len(read_notes(tmp_path, "tell")) == (2 if mortal else 1)


@quick_without_ray
def test_patience_ends_only_slow_tasks(backend, tmp_path):
    if not backend["workers"]:
        with pytest.raises(ValueError, match="patience=1: tasks without worker"):
            Executor(patience=1)
        return
    # The other tasks take a moment, with background load perhaps a second.
    tasks = {"late": ("wait", 0), **ADDED}
    settings = {**backend, "patience": 4.0}
    found = dict(run_tasks(settings, tasks, tmp_path, lost=lambda key, why: why))
    assert found.pop("late") == "given up after 4 wall-clock seconds (--patience)"
    assert found == {number: expected(number) for number in ADDED}


@quick_without_ray
def test_interrupts_end_all_workers(backend, tmp_path):
    tasks = {0: ("add", 0), 1: ("wait", 1)} if backend["workers"] else {0: ("add", 0)}
    results = run_tasks(backend, tasks, tmp_path)
    with pytest.raises(KeyboardInterrupt), contextlib.closing(results):
        assert next(results) == (0, expected(0))
        raise KeyboardInterrupt
    deadline = time.monotonic() + 20
    for pid in map(int, read_notes(tmp_path, "made")):
        while pid != os.getpid() and is_alive(pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_rejects_nodes_with_different_code(cluster, tmp_path, monkeypatch):
    ours = executor.greeting(Tasks.__module__)
    assert ours["source"] == plugins.source(Tasks.__module__)
    other = {**ours, "numpy": "1.0"}
    monkeypatch.setattr(executor, "greeting", lambda module: other)
    said = rf"different code: numpy {ours['numpy']} \(the command has 1.0\); install"
    with pytest.raises(WorkerFailedError, match=said):
        list(run_tasks({"workers": 1, "ray": "local"}, ADDED, tmp_path))


@pytest.mark.slow
def test_tasks_of_a_dead_node_are_repeated(cluster, tmp_path):
    """Another node repeats the tasks that the second node had started.

    Three tasks wait, so that the first node has two and the second one. Then the second
    node is killed; when its worker has ended, the tasks no longer wait.
    """
    second = cluster.add_node(num_cpus=1, object_store_memory=_STORE)
    tasks = {n: ("stay" if n < 3 else "add", n) for n in range(6)}
    results = run_tasks({"workers": 3, "ray": "local"}, tasks, tmp_path)
    files = [tmp_path / f"stay{n}" for n in range(3)]

    def kill():
        deadline = time.monotonic() + 100
        try:
            while not all(file.exists() and file.stat().st_size for file in files):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            workers = [int(read_notes(tmp_path, file.name)[0]) for file in files]
            cluster.remove_node(second, allow_graceful=False)
            while all(map(is_alive, workers)) and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            (tmp_path / "go").touch()

    threading.Thread(target=kill).start()
    assert dict(results) == {n: expected(n) for n in range(6)}
    # One of the three was started again.
    assert sorted(len(read_notes(tmp_path, file.name)) for file in files) == [1, 1, 2]


def test_raises_if_workers_do_not_start():
    with pytest.raises(
        WorkerFailedError, match="failed to start a worker: its process"
    ):
        list(Executor(1).map(os._exit, (3,), {0: 0}))


def test_workers_rest_after_sending_results(tmp_path):
    worker = processes.start(Rests, (tmp_path / "go",))
    # `make` has returned; the worker now rests until the file exists.
    assert worker.pipe.poll(60) and worker.receive() is None
    (tmp_path / "go").touch()
    for rests in (1, 2):
        worker.send("")
        assert worker.receive() == rests
    worker.end()


def test_raises_if_ray_does_not_start(monkeypatch):
    """Errors of Ray itself, such as a killed raylet, become `WorkerFailedError`."""

    class Ray:
        def init(self, *address, **settings):
            raise Exception("The current node timed out during startup.")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(
        WorkerFailedError, match="^failed to start Ray: The current nod"
    ):
        executor._init(Ray(), Executor(2, "local"), {})


def test_unpicklable_errors_are_reported_as_text():
    class UnpicklableError(OSError):
        def __init__(self, first, second):
            super().__init__("odd")

    def fail():
        raise UnpicklableError(1, 2)

    fine, error = processes.answered(fail)
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


def test_hangup_does_not_end_the_resource_tracker():
    """Otherwise Python prints a traceback, and the semaphores remain."""
    subprocess.run([sys.executable, "-c", _HANGUP], check=True)
