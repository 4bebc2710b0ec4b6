"""Does runs here, in worker processes, or on a Ray cluster.

All three yield the same records. A worker that crashes costs its own run only, and is
replaced; so is one that takes too long. Workers end when the process that started them
ends, however that happens.
"""

import contextlib
import importlib
import importlib.util
import json
import multiprocessing.connection
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from spiel_cr.common import processes
from spiel_cr.common.announcing import announce
from spiel_cr.common.json_log import Record
from spiel_cr.common.processes import Worker

from .measure import Run, failed, measure_run

# An idle worker that is no longer needed ends by itself within this time.
_FAREWELL_SECONDS = 5.0


def run_here(runs: Sequence[Run]) -> Iterator[Record]:
    """One after the other, in this process."""
    for run in runs:
        announce(_named(run))
        yield measure_run(run)


def run_in_processes(
    runs: Sequence[Run], workers: int, patience: float | None
) -> Iterator[Record]:
    """Several at a time, each in a process of its own; in the order they finish.

    Args:
      runs: to do, in this order.
      workers: processes at a time.
      patience: seconds of wall-clock time after which a run is given up; None: none.
    """
    left = list(reversed(runs))
    busy: dict[Connection, tuple[Worker, Run, float]] = {}
    idle: list[Worker] = []
    try:
        while left or busy:
            while left and len(busy) < workers:
                worker, run = idle.pop() if idle else processes.start(_work), left.pop()
                announce(_named(run))
                # Whether it still lives, reading its answer will tell.
                with contextlib.suppress(OSError):
                    worker.pipe.send_bytes(json.dumps(run).encode())
                busy[worker.pipe] = worker, run, time.monotonic()
            ready = multiprocessing.connection.wait(list(busy), timeout=0.2)
            for pipe in ready:
                assert isinstance(pipe, Connection)
                worker, run, _ = busy.pop(pipe)
                try:
                    record = json.loads(pipe.recv_bytes())
                    idle.append(worker)
                except (EOFError, OSError):
                    # A process that is killed resets its end of the pipe.
                    worker.process.join()
                    code = worker.process.exitcode
                    record = failed(run, f"its process ended with code {code}")
                yield record
            for pipe, (worker, run, begun) in list(busy.items()):
                if patience is not None and time.monotonic() - begun > patience:
                    del busy[pipe]
                    processes.end(worker)
                    yield failed(
                        run,
                        f"given up after {patience:g} wall-clock seconds (--patience)",
                    )
    finally:
        for worker, *_ in busy.values():
            processes.end(worker)
        for worker in idle:
            worker.pipe.close()
        for worker in idle:
            worker.process.join(_FAREWELL_SECONDS)
            processes.end(worker)


def _named(run: Run) -> str:
    return f"{run.algorithm} on {run.game}, seed {run.seed}"


def _work(pipe: Connection) -> None:
    """A worker: runs come in, records go out, until nobody asks any more."""
    processes.become_worker()
    while True:
        try:
            run = Run(*json.loads(pipe.recv_bytes()))
        except (EOFError, OSError):
            return
        pipe.send_bytes(json.dumps(measure_run(run)).encode())


def check_ray() -> None:
    """Raises ValueError where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise ValueError(
            "--ray needs the extra `ray`; install it: pip install 'spiel_cr[ray]', "
            "or use --workers"
        )


def run_on_ray(runs: Sequence[Run]) -> Iterator[Record]:
    """As tasks of one CPU each; joins the cluster that RAY_ADDRESS names, if any."""
    check_ray()
    ray: Any = importlib.import_module("ray")
    mine = not ray.is_initialized()
    if mine:
        # Ray takes SIGTERM for itself, and would end the process with a bare exit.
        before = {number: signal.getsignal(number) for number in processes.SIGNALS}
        ray.init(log_to_driver=False, include_dashboard=False)
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)
    try:
        # No run is done twice, even where a node is lost.
        task: Any = ray.remote(num_cpus=1, max_retries=0)(_on_ray)
        pending = {task.remote(json.dumps(run)): run for run in runs}
        while pending:
            (ready, *_), _ = ray.wait(list(pending), num_returns=1)
            run = pending.pop(ready)
            try:
                yield json.loads(ray.get(ready))
            except ray.exceptions.RayError as error:
                first = str(error).strip().splitlines()[0]
                yield failed(run, f"{type(error).__name__}: {first}")
    finally:
        if mine:
            ray.shutdown()


def _on_ray(text: str) -> str:
    return json.dumps(measure_run(Run(*json.loads(text))))
