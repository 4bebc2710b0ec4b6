"""Hands of many states, a batch at a time, in this process or in workers."""

import functools
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import NamedTuple, Protocol

import jax
import numpy as np

from spiel_cr.common import processes
from spiel_cr.common.checks import check_whole
from spiel_cr.common.errors import WorkerFailedError
from spiel_cr.jam_fold import equities, hands, rules
from spiel_cr.jam_fold.hands import HandTables

# States that go through a program at once: as many as keep the processor's arithmetic
# busy, and not its memory.
_BATCH = 32
_MOST_WORKERS = 1024

Arrays = dict[str, np.ndarray]


class InnerSettings(NamedTuple):
    """Fictitious play within hands.

    Attributes:
      steps: of fictitious play.
      refresh: steps between two computations of the costly parts of the values of three
        players (`hands.Slow`): showdowns of three, and sums over two players' hands.
    """

    steps: int
    refresh: int


class Engine(Protocol):
    """Who does the arithmetic of hands."""

    tables: HandTables

    def run(self, jobs: Sequence[Arrays]) -> Iterator[Arrays]:
        """Does jobs as `do` does, and yields what comes out in the order of jobs."""
        ...


class LocalEngine:
    """This process."""

    def __init__(self, tables: HandTables) -> None:
        """Takes tables of deals and showdowns."""
        self.tables = tables
        self._placed = jax.tree.map(jax.numpy.asarray, tables)

    def run(self, jobs: Sequence[Arrays]) -> Iterator[Arrays]:
        """See `Engine`."""
        return (do(self._placed, job) for job in jobs)


class PoolEngine:
    """Worker processes that read the same table; the bits do not depend on them.

    A context manager: workers end with the block.
    """

    def __init__(
        self, tables: HandTables, path: os.PathLike[str], workers: int
    ) -> None:
        """Starts workers.

        Args:
          tables: of deals and showdowns, made from the file at `path`.
          path: of `equities.save`.
          workers: how many.

        Raises:
          ValueError: not 1 to 1024 workers.
        """
        check_whole(workers, "workers", 1, _MOST_WORKERS)
        self.tables = tables
        self._workers = [
            processes.start(_work, os.fspath(path)) for _ in range(workers)
        ]

    def __enter__(self) -> "PoolEngine":
        return self

    def __exit__(self, *failure: object) -> None:
        for worker in self._workers:
            processes.end(worker)

    def run(self, jobs: Sequence[Arrays]) -> Iterator[Arrays]:
        """See `Engine`.

        Raises:
          WorkerFailedError: a worker ended.
        """
        todo = list(enumerate(jobs))[::-1]
        doing: dict[Connection, int] = {}
        done: dict[int, Arrays] = {}
        idle = [worker.pipe for worker in self._workers]
        for number in range(len(jobs)):
            while number not in done:
                while idle and todo:
                    pipe = idle.pop()
                    doing[pipe], job = todo.pop()
                    _send(pipe, job)
                for ready in wait(list(doing)):
                    assert isinstance(ready, Connection)
                    done[doing.pop(ready)] = _receive(ready)
                    idle.append(ready)
            yield done.pop(number)


def batches(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray, Arrays]]:
    """Rows of arrays of N states in batches of one shape.

    Yields:
      The states of the batch, and its arrays; states are repeated to fill the shape.
    """
    count = len(next(iter(arrays.values())))
    size = min(_BATCH, count)
    for first in range(0, count, size):
        here = np.arange(first, min(first + size, count))
        filled = np.resize(here, size)
        yield here, {name: array[filled] for name, array in arrays.items()}


def do(tables: HandTables, job: Arrays) -> Arrays:
    """One batch of B states.

    Args:
      tables: of deals and showdowns.
      job: profile float32 [B, I, C]; worth float32 [B, O, n], values of outcomes, less
        whatever is constant for a player and state; forced bool [B, I]. With them
        begin, steps, refresh, one number each: fictitious play; or with only: nothing
        but how hands end.

    Returns:
      Of fictitious play: profile. Else: best [B, I, C], gain [B, n], the values of best
      responses; ends [B, O].
    """
    players = job["worth"].shape[2]
    if "only" in job:
        ends = _ends(tables, job["profile"], job["worth"], players=players)
        return {"ends": np.asarray(ends, float)}
    given = (tables, job["profile"], job["worth"], job["forced"])
    if "steps" in job:
        inner = InnerSettings(int(job["steps"]), int(job["refresh"]))
        found = _play(*given, np.float32(job["begin"]), players=players, inner=inner)
        return {"profile": np.asarray(found)}
    best, gain, ends = _decide(*given, players=players)
    return {
        "best": np.asarray(best),
        "gain": np.asarray(gain, float),
        "ends": np.asarray(ends, float),
    }


@functools.partial(jax.jit, static_argnames=("players", "inner"))
def _play(
    tables: HandTables,
    profile: jax.Array,
    worth: jax.Array,
    forced: jax.Array,
    begin: jax.Array,
    *,
    players: int,
    inner: InnerSettings,
) -> jax.Array:
    """Fictitious play: averages after `inner.steps` more best responses."""

    def step(t: jax.Array, average: jax.Array, found: hands.Values) -> jax.Array:
        best = (found.jam > found.fold) | forced[:, :, None]
        return average + (best - average) / (begin + t + 1)

    def pair(t: jax.Array, average: jax.Array) -> jax.Array:
        return step(t, average, hands.two(tables, average, worth))

    def block(k: jax.Array, average: jax.Array) -> jax.Array:
        slow = hands.three_slow(tables, average, worth)
        first = k * inner.refresh

        def triple(t: jax.Array, average: jax.Array) -> jax.Array:
            return step(t, average, hands.three(tables, average, worth, slow))

        last = jax.numpy.minimum(first + inner.refresh, inner.steps)
        return jax.lax.fori_loop(first, last, triple, average)

    if players == 2:
        return jax.lax.fori_loop(0, inner.steps, pair, profile)
    return jax.lax.fori_loop(0, -(-inner.steps // inner.refresh), block, profile)


@functools.partial(jax.jit, static_argnames=("players",))
def _decide(
    tables: HandTables,
    profile: jax.Array,
    worth: jax.Array,
    forced: jax.Array,
    *,
    players: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Best responses, their values, and how hands end under the profile."""
    found = _values(tables, profile, worth, players)
    jam = (found.jam > found.fold) | forced[:, :, None]
    each = jax.numpy.where(jam, found.jam, found.fold).sum(2)
    position = np.array([len(before) for before in rules.infosets(players)])
    totals = [each[:, position == p].sum(1) for p in range(players)]
    # Where all fold to it, the big blind has nothing to decide.
    totals[-1] += found.ends[:, 0] * worth[:, 0, -1]
    return jam.astype(profile.dtype), jax.numpy.stack(totals, 1), found.ends


@functools.partial(jax.jit, static_argnames=("players",))
def _ends(
    tables: HandTables, profile: jax.Array, worth: jax.Array, *, players: int
) -> jax.Array:
    """How hands end; what else the values take is not computed."""
    return _values(tables, profile, worth, players).ends


def _values(
    tables: HandTables, profile: jax.Array, worth: jax.Array, players: int
) -> hands.Values:
    if players == 2:
        return hands.two(tables, profile, worth)
    slow = hands.three_slow(tables, profile, worth)
    return hands.three(tables, profile, worth, slow)


def _send(pipe: Connection, arrays: Arrays) -> None:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    try:
        pipe.send_bytes(file.getbuffer())
    except OSError as error:
        raise WorkerFailedError(
            f"a worker of the tournament ended ({error})"
        ) from error


def _receive(pipe: Connection) -> Arrays:
    try:
        data = pipe.recv_bytes()
    except (EOFError, OSError) as error:
        raise WorkerFailedError(
            "a worker of the tournament ended; what it printed says why"
        ) from error
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return dict(file)


def _work(pipe: Connection, path: str) -> None:
    """The main function of a worker."""
    processes.become_worker()
    engine = LocalEngine(equities.hand_tables(equities.load(path)))
    while True:
        (found,) = engine.run([_receive(pipe)])
        _send(pipe, found)
