"""Tasks by key: in this process, in local worker processes, or on a Ray cluster.

Each worker calls a factory with a setup once, and then performs tasks with the returned
function. Results are yielded as soon as they are ready. A result depends only on setup
and task, so it is the same in every place; callers that need a fixed order sort results
by their keys.

If a worker dies, its task is repeated, with at most three attempts in total. An error
of the task itself is raised in the calling process. Only the calling process writes
files.
"""

import collections
import contextlib
import dataclasses
import importlib
import importlib.util
import itertools
import math
import multiprocessing.connection
import os
import pathlib
import platform
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from spiel_cr.common import plugins, processes, storage
from spiel_cr.common.checks import check_integer, check_number
from spiel_cr.common.errors import WorkerFailedError
from spiel_cr.common.messages import announce
from spiel_cr.common.processes import WorkerEndedError

_Key = TypeVar("_Key")
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

MOST_WORKERS = 1024
# Number of attempts at a task whose workers die.
_TRIES = 3
# Key of a worker that has not finished its start.
_START = object()
_TICK = 0.2
# Prefixes of environment variables that can change results; all nodes receive them.
_VARIABLES = ("SPIEL_CR_", "JAX_", "XLA_", "OMP_", "OPENBLAS_")


@dataclasses.dataclass(frozen=True)
class Executor:
    """Place in which tasks are performed.

    Attributes:
      workers: Number of simultaneous processes; 0: this process. On Ray, number of
        workers with one core each; 0: one for each core of the cluster.
      ray: Address of a Ray cluster. "local" starts one on this machine for the duration
        of the tasks. If None, Ray is not used.
      patience: Wall-clock time in seconds after which a task is given up. If None,
        tasks are never given up.
      memory: Memory in bytes that each worker on Ray reserves. If None, none is
        reserved.
    """

    workers: int = 0
    ray: str | None = None
    patience: float | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        check_integer(self.workers, "workers", 0, MOST_WORKERS)
        address = "local" if self.ray is None else self.ray
        if not re.fullmatch(r"local|auto|[^\s:/]+:\d{1,5}", address):
            raise ValueError(
                f"ray={self.ray!r} is not the address of a cluster; use HOST:PORT, or "
                f"omit it to start a cluster on this machine"
            )
        if self.ray is not None and importlib.util.find_spec("ray") is None:
            raise ValueError(
                "--ray needs the extra `ray`; install it: pip install 'spiel_cr[ray]', "
                "or use --workers"
            )
        if ":" in address and "RAY_AUTH_MODE" not in os.environ and _has_ray_token():
            raise ValueError(
                f"ray={address!r}: Ray has a token, but does not send it, because "
                f"RAY_AUTH_MODE is not set; set it to token, or to disabled if the "
                f"cluster has no authentication"
            )
        if self.patience is not None:
            if self.is_in_process:
                raise ValueError(
                    f"patience={self.patience:g}: tasks without worker processes "
                    f"cannot be given up; omit it, or use --workers 1 or more"
                )
            check_number(self.patience, "patience", "(0, inf)")

    @property
    def is_in_process(self) -> bool:
        """Whether tasks are performed in this process."""
        return self.ray is None and not self.workers

    def map(
        self,
        make: Callable[..., Callable[[_Task], _Result]],
        setup: Sequence[Any],
        tasks: Mapping[_Key, _Task],
        *,
        lost: Callable[[_Key, str], _Result] | None = None,
        named: Callable[[_Key], str] | None = None,
    ) -> Generator[tuple[_Key, _Result], None, None]:
        """Perform tasks, and yield their results as soon as they are ready.

        A task may return an iterator. Each of its values is then a result, and the
        worker computes the next one when the caller requests it.

        Args:
          make: Function or class of a module. Each worker calls it once with all of
            `setup`, and calls the returned function with tasks.
          setup: Arguments of `make`. If there are workers, they must be picklable. On
            Ray they are sent once to each node.
          tasks: Tasks by key, started in this order. A task that is repeated is read
            from the mapping again, so it may record the results that it has already
            yielded.
          lost: Function that returns the result of a task that was given up or lost its
            workers, from its key and the reason. If None, such a task raises an error.
          named: Function that returns the message that is announced when a task starts.

        Yields:
          Key and result.

        Raises:
          WorkerFailedError: If a task was lost, or its code has a mistake.
          Exception: If a task raised an error about the user's input or the machine.
        """
        if not tasks:
            return
        if self.is_in_process:
            do = make(*setup)
            for key, task in tasks.items():
                if named is not None:
                    announce(named(key))
                result: Any = do(task)
                for one in result if isinstance(result, Iterator) else (result,):
                    yield key, one
            return
        crew = (_Processes if self.ray is None else _Ray)(self, make, setup)
        with contextlib.closing(_Run(crew, tasks, self.patience, named)) as run:
            for key, result, reason in run.results():
                if reason is not None:
                    if lost is None:
                        raise WorkerFailedError(f"task {key}: {reason}")
                    result = lost(key, reason)
                yield key, result


# Tasks one after the other, in this process.
IN_PROCESS = Executor()


def in_order(
    results: Iterator[tuple[_Key, _Result]], keys: Iterable[_Key]
) -> Iterator[_Result]:
    """Yield results of `Executor.map` in the order of keys, each as early as possible.

    Args:
      results: Pairs of key and result, one for each key.
      keys: All keys in the requested order.
    """
    early: dict[_Key, _Result] = {}
    for key in keys:
        while key not in early:
            next_key, early[next_key] = next(results)
        yield early.pop(key)


class _Worker:
    """Function of a worker process that starts a task or continues one that yields."""

    def __init__(self, make: Callable[..., Any], setup: Sequence[Any]) -> None:
        self._do = make(*setup)
        self._results: Iterator[Any] = iter(())

    def __call__(self, request: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
        """Return at most one result, and whether more may follow.

        Args:
          request: Tuple with a task, or an empty tuple to continue the current task.
        """
        if request:
            result = self._do(*request)
            if not isinstance(result, Iterator):
                return (result,), False
            self._results = result
        one = tuple(itertools.islice(self._results, 1))
        return one, bool(one)


class _Processes:
    """Workers that are processes of this machine.

    Attributes:
      most: Maximum number of simultaneous workers.
    """

    def __init__(
        self, executor: Executor, make: Callable[..., Any], setup: Sequence[Any]
    ) -> None:
        self.most, self._arguments = executor.workers, (make, setup)

    def start(self) -> Any:
        """Start a worker, which answers when it is ready and after each task."""
        return processes.start(_Worker, self._arguments)

    def wait(self, workers: Sequence[Any]) -> list[Any]:
        """Return the workers that have an answer, after 0.2 seconds at the latest."""
        pipes = {worker.pipe: worker for worker in workers}
        ready = multiprocessing.connection.wait(list(pipes), _TICK)
        return [worker for pipe, worker in pipes.items() if pipe in ready]

    def close(self) -> None:
        """Release the resources of the crew after all workers have ended."""


class _Run:
    """Progress of tasks through the workers of a crew."""

    def __init__(
        self,
        crew: Any,
        tasks: Mapping[Any, Any],
        patience: float | None,
        named: Callable[[Any], str] | None,
    ) -> None:
        self._crew, self._tasks = crew, tasks
        self._patience, self._named = patience or math.inf, named
        self._left = collections.deque(tasks)
        self._died: collections.Counter[Any] = collections.Counter()
        # Idle workers, and busy ones with the key of their task and its deadline.
        self._idle: list[Any] = []
        self._busy: dict[Any, tuple[Any, float]] = {}

    def results(self) -> Iterator[tuple[Any, Any, str | None]]:
        """Yield key, result and reason of failure, until all tasks are finished."""
        while self._left or any(key is not _START for key, _ in self._busy.values()):
            self._begin()
            for worker in self._crew.wait(list(self._busy)):
                yield from self._answer(worker)
            for worker, (key, end) in list(self._busy.items()):
                if time.monotonic() > end:
                    del self._busy[worker]
                    worker.end()
                    span = f"{self._patience:g} wall-clock seconds"
                    yield key, None, f"given up after {span} (--patience)"

    def close(self) -> None:
        """End all workers."""
        for worker in self._busy:
            worker.end()
        for worker in self._idle:
            worker.end(processes.FAREWELL_SECONDS)
        self._crew.close()

    def _begin(self) -> None:
        """Assign tasks to idle workers, and start further workers if needed."""
        while self._left and self._idle:
            worker, key = self._idle.pop(), self._left.popleft()
            if self._named is not None:
                announce(self._named(key))
            worker.send((self._tasks[key],))
            self._busy[worker] = key, time.monotonic() + self._patience
        starting = [key for key, _ in self._busy.values()].count(_START)
        room = self._crew.most - len(self._busy)
        for _ in range(min(room, len(self._left) - starting)):
            self._busy[self._crew.start()] = _START, math.inf

    def _answer(self, worker: Any) -> Iterator[tuple[Any, Any, str | None]]:
        """Process a worker's answer: it is ready for tasks, or returned a result."""
        key, end = self._busy.pop(worker)
        # Added before anything can raise, so that `close` ends the worker.
        self._idle.append(worker)
        try:
            answer = worker.receive()
        except WorkerEndedError as error:
            self._idle.remove(worker)
            worker.end()
            self._died[key] += 1
            if self._died[key] < _TRIES:
                self._left.extendleft([] if key is _START else [key])
            elif key is _START:
                raise WorkerFailedError(f"failed to start a worker: {error}") from None
            else:
                yield key, None, str(error)
            return
        if key is _START:
            self._died[key] = 0
            return
        results, more = answer
        for result in results:
            yield key, result, None
        if more:
            # The worker continues only after the caller has taken the result.
            self._idle.remove(worker)
            worker.send(())
            self._busy[worker] = key, end


class _Ray:
    """Workers that are actors on a Ray cluster, with one core each."""

    def __init__(
        self, executor: Executor, make: Callable[..., Any], setup: Sequence[Any]
    ) -> None:
        self._ray: Any = importlib.import_module("ray")
        self._began = not self._ray.is_initialized()
        variables = {k: v for k, v in os.environ.items() if k.startswith(_VARIABLES)}
        # Ray would set one thread, with which BLAS rounds sums differently.
        variables.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
        environment: dict[str, Any] = {"env_vars": variables}
        if self._began:
            names, places = plugins.to_ship()
            variables[plugins.VARIABLE] = os.pathsep.join(names)
            environment |= {"py_modules": places} if places else {}
            _init(self._ray, executor, environment)
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        self.most = executor.workers or max(cores, 1)
        room = max(node["Resources"].get("memory", 0) for node in self._ray.nodes())
        memory = executor.memory if executor.memory != math.inf else None
        if memory is not None and memory > room:
            raise ValueError(
                f"memory_limit={memory / 1e9:g} GB exceeds the memory of every "
                f"node of the cluster; use a smaller limit"
            )
        self._setup = self._ray.put((greeting(make.__module__), make, tuple(setup)))
        options: dict[str, Any] = {"num_cpus": 1, "memory": memory}
        options |= {} if self._began else {"runtime_env": environment}
        self._actor = self._ray.remote(**options)(_Actor)

    def start(self) -> "_RayWorker":
        return _RayWorker(self._ray, self._actor.remote(), self._setup)

    def wait(self, workers: Sequence["_RayWorker"]) -> list["_RayWorker"]:
        answers = {worker.answer: worker for worker in workers}
        ready, _ = self._ray.wait(list(answers), num_returns=1, timeout=_TICK)
        return [answers[answer] for answer in ready]

    def close(self) -> None:
        if self._began:
            self._ray.shutdown()


class _RayWorker:
    """An actor and its next answer; interface of `processes.Worker`."""

    def __init__(self, ray: Any, actor: Any, setup: Any) -> None:
        self._ray, self._actor = ray, actor
        self.answer = actor.begin.remote(setup)

    def send(self, request: Any) -> None:
        self.answer = self._actor.do.remote(request)

    def receive(self) -> Any:
        errors = self._ray.exceptions
        try:
            return processes.result_of(self._ray.get(self.answer))
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            raise WorkerFailedError(f"a worker failed:\n{error}") from None
        except errors.RayError as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise WorkerEndedError(f"its worker on Ray ended: {first}") from None

    def end(self, patience: float = 0.0) -> None:
        self._ray.kill(self._actor)


class _Actor:
    """The worker process on a node of the Ray cluster."""

    def __init__(self) -> None:
        plugins.import_from_environment()

    def begin(self, setup: tuple[Any, ...]) -> Any:
        """Check that the code is the driver's, and create the task function."""
        return processes.answered(self._begin, *setup)

    def do(self, task: Any) -> Any:
        """Perform a task."""
        return processes.answered(self._do, task)

    def _begin(
        self, hello: dict[str, str], make: Callable[..., Any], setup: Sequence[Any]
    ) -> None:
        node_versions = greeting(make.__module__)
        others = [
            f"{name} {value} (the command has {hello[name]})"
            for name, value in node_versions.items()
            if hello[name] != value
        ]
        if others:
            raise WorkerFailedError(
                f"a node of the cluster has different code: {', '.join(others)}; "
                f"install the same code on all nodes"
            )
        self._do = _Worker(make, setup)


def greeting(module: str) -> dict[str, str]:
    """Return the versions and the code fingerprint that must be equal on all nodes.

    Args:
      module: Name of the module that performs the tasks.
    """
    python = platform.python_version()
    source = plugins.source(module)
    return {"python": python, **storage.versions(), "source": source}


def _has_ray_token() -> bool:
    """Return whether there is a token in one of the places where Ray looks for it."""
    if {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        return True
    return pathlib.Path("~/.ray/auth_token").expanduser().exists()


def _init(ray: Any, executor: Executor, environment: dict[str, Any]) -> None:
    """Join a Ray cluster, or start one on this machine."""
    address = executor.ray
    if address == "local":
        address = os.environ.get("RAY_ADDRESS", "local")
    host, colon, port = str(address).partition(":")
    try:
        # Ray itself would retry for minutes without reacting to signals.
        if colon:
            socket.create_connection((host, int(port)), 10).close()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"ray={address!r}: no cluster found ({error}); start one, or use "
            f"another address"
        ) from error
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        settings |= {"num_cpus": executor.workers or None, "include_dashboard": False}
    # Ray replaces the handler of SIGTERM by one that ends the process immediately.
    before = {number: signal.getsignal(number) for number in processes.SIGNALS}
    try:
        ray.init(address, runtime_env=environment, **settings)
    except Exception as error:  # Ray documents no error types
        raise WorkerFailedError(
            f"failed to start Ray: {error}; check the address of the cluster, or use "
            f"workers without Ray"
        ) from error
    if threading.current_thread() is threading.main_thread():
        for number, handler in before.items():
            signal.signal(number, handler)
