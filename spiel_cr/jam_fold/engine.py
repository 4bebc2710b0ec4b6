"""Hands of many states, a batch at a time."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np

from spiel_cr.common.checks import check_whole
from spiel_cr.jam_fold import hands, rules
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


class Engine:
    """Does the arithmetic of hands, in threads of this process.

    Attributes:
      tables: of deals and showdowns.
    """

    def __init__(self, tables: HandTables, workers: int = 1) -> None:
        """Takes tables.

        Args:
          tables: of deals and showdowns.
          workers: threads; the bits do not depend on them.

        Raises:
          ValueError: not 1 to 1024 workers.
        """
        self.tables = tables
        self._workers = check_whole(workers, "workers", 1, _MOST_WORKERS)
        self._placed = jax.tree.map(jax.numpy.asarray, tables)

    def run(self, jobs: Sequence[Arrays]) -> Iterator[Arrays]:
        """Does jobs as `do` does, and yields what comes out in the order of jobs."""
        # The first one alone, which compiles what all of them run.
        yield from (do(self._placed, job) for job in jobs[:1])
        with ThreadPoolExecutor(self._workers) as pool:
            yield from pool.map(functools.partial(do, self._placed), jobs[1:])


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
