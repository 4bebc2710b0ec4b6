"""Tasks by key: in this process, in processes of this machine, or on a Ray cluster.

A worker makes something once from a setup, and then does tasks with it. Results come as
they are ready. What a task gives depends on setup and task alone, so it is the same
wherever it is done; who collects results puts them in the order of their keys.

A task whose worker dies is done again, three times in all. An error of the task itself
is raised here. Only the process that asks writes files.
"""

import collections
import dataclasses
import importlib
import importlib.util
import multiprocessing.connection
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from spiel_cr.common import plugins, processes, storage
from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_number, check_whole
from spiel_cr.common.errors import WorkerFailedError
from spiel_cr.common.processes import WorkerEndedError

_Key = TypeVar("_Key")
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

MOST_WORKERS = 1024
# So often a task is begun whose workers die.
_TRIES = 3
# A worker that is no longer needed ends by itself within this time.
_FAREWELL_SECONDS = 5.0
_TICK = 0.2
# What decides results beside the code: other nodes take it from here.
_VARIABLES = ("SPIEL_CR_", "JAX_", "XLA_", "OMP_", "OPENBLAS_")


@dataclasses.dataclass(frozen=True)
class Executor:
    """Where tasks are done.

    Attributes:
      workers: processes at a time; 0: this process. On Ray as many workers, each with a
        core; 0: as many as the cluster has cores.
      ray: address of a Ray cluster; "local": one of this machine, for as long as the
        tasks take; None: no Ray.
      patience: seconds of wall-clock time after which a task is given up; None: never.
      memory: bytes that a worker on Ray reserves; None: none.
    """

    workers: int = 0
    ray: str | None = None
    patience: float | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        check_whole(self.workers, "workers", 0, MOST_WORKERS)
        if self.ray is not None and importlib.util.find_spec("ray") is None:
            raise ValueError(
                "--ray needs the extra `ray`; install it: pip install 'spiel_cr[ray]', "
                "or use --workers"
            )
        if self.patience is not None:
            if self.is_here:
                raise ValueError(
                    f"patience={self.patience:g}: tasks without worker processes "
                    f"cannot be given up; leave it out, or use --workers 1 or more"
                )
            check_number(self.patience, "patience", "(0, inf)")

    @property
    def is_here(self) -> bool:
        """Whether tasks are done in this process."""
        return self.ray is None and not self.workers

    def map(
        self,
        make: Callable[..., Callable[[_Task], _Result]],
        setup: Sequence[Any],
        tasks: Mapping[_Key, _Task],
        *,
        lost: Callable[[_Key, str], _Result] | None = None,
        named: Callable[[_Key], str] | None = None,
    ) -> Iterator[tuple[_Key, _Result]]:
        """Does tasks.

        Args:
          make: a function or class of a module; called with all of `setup` once in each
            worker. What it returns is called with tasks.
          setup: can be pickled, if there are workers. On Ray it travels once per node.
          tasks: by key, begun in this order.
          lost: the result of a task that was given up, or whose workers died, by its
            key and the reason; None: that is an error.
          named: what is announced as a task begins.

        Yields:
          Key and result, as they come.

        Raises:
          WorkerFailedError: a task was lost, or its code is at fault.
          Exception: what a task raised that is about the user's input or the machine.
        """
        if not tasks:
            return
        if self.is_here:
            do = make(*setup)
            for key, task in tasks.items():
                if named is not None:
                    announce(named(key))
                yield key, do(task)
            return
        kind = _Processes if self.ray is None else _Ray
        crew = kind(self, make, setup)
        run = _Run(crew, tasks, self.patience, lost, named)
        try:
            yield from run.results()
        finally:
            run.end()
            crew.close()


# Tasks one after the other, in this process.
HERE = Executor()


class _Worker(Protocol):
    """Does one task at a time; before all tasks, it answers once that it is there."""

    def send(self, request: Any) -> None:
        """Gives it a task."""

    def receive(self) -> Any:
        """Its answer, as of `processes.Worker`."""

    def end(self, patience: float = 0.0) -> None:
        """Ends it; an idle one has some seconds to do so itself."""


class _Crew(Protocol):
    """Starts workers of a kind.

    Attributes:
      most: there may be at a time.
    """

    most: int

    def start(self) -> Any:
        """A new worker."""

    def wait(self, workers: Sequence[Any]) -> list[Any]:
        """Those that have an answer, after a moment at most."""

    def close(self) -> None:
        """Ends what it began, when all workers have ended."""


class _Run:
    """Tasks on their way."""

    def __init__(
        self,
        crew: _Crew,
        tasks: Mapping[Any, Any],
        patience: float | None,
        lost: Callable[[Any, str], Any] | None,
        named: Callable[[Any], str] | None,
    ) -> None:
        self._crew, self._tasks, self._patience = crew, tasks, patience
        self._lost, self._named = lost, named
        self._left = collections.deque(tasks)
        self._died: collections.Counter[Any] = collections.Counter()
        # Workers that start, that wait, and that work on a task since a time.
        self._new: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._busy: dict[_Worker, tuple[Any, float]] = {}

    def results(self) -> Iterator[tuple[Any, Any]]:
        """Keys and results, until all tasks have one."""
        while self._left or self._busy:
            self._begin()
            for worker in self._crew.wait([*self._busy, *self._new]):
                yield from self._answer(worker)
            for worker, (key, begun) in list(self._busy.items()):
                if self._patience and time.monotonic() - begun > self._patience:
                    del self._busy[worker]
                    worker.end()
                    yield (
                        key,
                        self._no_result(
                            key,
                            f"given up after {self._patience:g} wall-clock seconds "
                            f"(--patience)",
                        ),
                    )

    def end(self) -> None:
        """Ends all workers."""
        for worker in (*self._busy, *self._new):
            worker.end()
        for worker in self._idle:
            worker.end(_FAREWELL_SECONDS)

    def _begin(self) -> None:
        """Gives tasks to workers that wait, and starts those that are needed."""
        while self._left and self._idle:
            worker, key = self._idle.pop(), self._left.popleft()
            if self._named is not None:
                announce(self._named(key))
            worker.send(self._tasks[key])
            self._busy[worker] = key, time.monotonic()
        wanted = min(self._crew.most - len(self._busy), len(self._left))
        while len(self._new) < wanted:
            self._new.append(self._crew.start())

    def _answer(self, worker: _Worker) -> Iterator[tuple[Any, Any]]:
        """Takes a worker's answer, if it is one to a task."""
        key, _ = self._busy.pop(worker, (None, 0.0))
        if is_new := worker in self._new:
            self._new.remove(worker)
        try:
            result = worker.receive()
        except WorkerEndedError as error:
            worker.end()
            self._died[key] += 1
            if self._died[key] >= _TRIES:
                yield key, self._no_result(key, str(error))
            elif not is_new:
                self._left.appendleft(key)
            return
        self._idle.append(worker)
        if is_new:
            self._died[None] = 0
        else:
            yield key, result

    def _no_result(self, key: Any, why: str) -> Any:
        if self._lost is None or key not in self._tasks:
            what = "a worker" if key not in self._tasks else f"task {key}"
            raise WorkerFailedError(
                f"{what}: {why}; take fewer workers if there was too little memory "
                f"for them, and start them under `if __name__ == '__main__':` in a "
                f"script"
            )
        return self._lost(key, why)


class _Processes:
    """Workers that are processes of this machine."""

    def __init__(
        self, executor: Executor, make: Callable[..., Any], setup: Sequence[Any]
    ) -> None:
        self.most, self._arguments = executor.workers, (make, setup)

    def start(self) -> processes.Worker:
        return processes.start(*self._arguments)

    def wait(self, workers: Sequence[processes.Worker]) -> list[processes.Worker]:
        pipes = {worker.pipe: worker for worker in workers}
        ready = multiprocessing.connection.wait(list(pipes), _TICK)
        return [worker for pipe, worker in pipes.items() if pipe in ready]

    def close(self) -> None:
        pass


class _Ray:
    """Workers that are actors on a Ray cluster, of one core each."""

    def __init__(
        self, executor: Executor, make: Callable[..., Any], setup: Sequence[Any]
    ) -> None:
        self._ray: Any = importlib.import_module("ray")
        self._began = not self._ray.is_initialized()
        variables = {k: v for k, v in os.environ.items() if k.startswith(_VARIABLES)}
        environment: dict[str, Any] = {"env_vars": variables}
        if self._began:
            names, places = plugins.to_ship()
            variables[plugins.VARIABLE] = os.pathsep.join(names)
            environment |= {"py_modules": places} if places else {}
            _init(self._ray, executor, environment)
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        self.most = executor.workers or max(cores, 1)
        self._setup = self._ray.put((make, tuple(setup)))
        self._hello = greeting(make.__module__)
        options = {"num_cpus": 1, "memory": executor.memory}
        if not self._began:
            options["runtime_env"] = environment
        self._actor = self._ray.remote(**options)(_Actor)

    def start(self) -> "_RayWorker":
        return _RayWorker(self._ray, self._actor.remote(self._hello), self._setup)

    def wait(self, workers: Sequence["_RayWorker"]) -> list["_RayWorker"]:
        answers = {worker.answer: worker for worker in workers}
        ready, _ = self._ray.wait(list(answers), num_returns=1, timeout=_TICK)
        return [answers[answer] for answer in ready]

    def close(self) -> None:
        if self._began:
            self._ray.shutdown()


class _RayWorker:
    """An actor, and its next answer."""

    def __init__(self, ray: Any, actor: Any, setup: Any) -> None:
        self._ray, self._actor = ray, actor
        self.answer = actor.begin.remote(setup)

    def send(self, request: Any) -> None:
        self.answer = self._actor.do.remote(request)

    def receive(self) -> Any:
        try:
            answer = self._ray.get(self.answer)
        except self._ray.exceptions.RayTaskError as error:
            raise WorkerFailedError(f"a worker failed:\n{error}") from None
        except self._ray.exceptions.RuntimeEnvSetupError as error:
            raise WorkerFailedError(
                f"a node cannot prepare a worker: {error}"
            ) from None
        except self._ray.exceptions.RayError as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise WorkerEndedError(f"its worker on Ray ended: {first}") from None
        return processes.result_of(answer)

    def end(self, patience: float = 0.0) -> None:
        self._ray.kill(self._actor)


class _Actor:
    """A worker on Ray, there."""

    def __init__(self, hello: dict[str, str]) -> None:
        self._hello = hello
        plugins.import_from_environment()

    def begin(self, setup: tuple[Callable[..., Any], Sequence[Any]]) -> Any:
        """Makes what does the tasks, where the code is the driver's."""

        def made() -> None:
            theirs = greeting(setup[0].__module__)
            if theirs != self._hello:
                raise WorkerFailedError(
                    f"a node of the cluster has other code: "
                    f"{_difference(self._hello, theirs)}; install the same on all nodes"
                )
            make, arguments = setup
            self._do = make(*arguments)

        return processes.answered(made)

    def do(self, task: Any) -> Any:
        """A task."""
        return processes.answered(self._do, task)


def greeting(module: str) -> dict[str, str]:
    """What must be the same on all nodes: versions, and a fingerprint of the code.

    Args:
      module: that does the tasks.
    """
    python = platform.python_version()
    source = plugins.source(module)
    return {"python": python, **storage.versions(), "source": source}


def _difference(ours: dict[str, str], theirs: dict[str, str]) -> str:
    return ", ".join(
        f"{name} {theirs.get(name)} (here {value})"
        for name, value in ours.items()
        if theirs.get(name) != value
    )


def _init(ray: Any, executor: Executor, environment: dict[str, Any]) -> None:
    """Joins a cluster, or begins one of this machine."""
    address = executor.ray
    if address == "local":
        address = os.environ.get("RAY_ADDRESS", "local")
    settings: dict[str, Any] = {"address": address}
    if address == "local":
        settings |= {"num_cpus": executor.workers or None, "include_dashboard": False}
    # Ray takes SIGTERM for itself, and would end the process with a bare exit.
    before = {number: signal.getsignal(number) for number in processes.SIGNALS}
    ray.init(
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env=environment,
        **settings,
    )
    if threading.current_thread() is threading.main_thread():
        for number, handler in before.items():
            signal.signal(number, handler)
