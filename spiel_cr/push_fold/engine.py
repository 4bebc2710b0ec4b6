"""Hands of many states, a batch at a time."""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np

from spiel_cr.common.checks import check_integer
from spiel_cr.push_fold import hands, rules
from spiel_cr.push_fold.hands import HandTables

# States that go through a program at once: as many as keep the processor's arithmetic
# busy, and not its memory.
_BATCH = 32
_MOST_WORKERS = 1024


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
    """Does the arithmetic of hands of N states, in threads of this process.

    A profile is float32 [N, I, C]. What outcomes are worth, float32 [N, O, n], may be
    less whatever is constant for a player and state. `forced` is bool [N, I].

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
        self._workers = check_integer(workers, "workers", 1, _MOST_WORKERS)
        self._placed = jax.tree.map(jax.numpy.asarray, tables)

    def play(
        self,
        profile: np.ndarray,
        payoffs: np.ndarray,
        forced: np.ndarray,
        inner: InnerSettings,
        begin: int,
    ) -> np.ndarray:
        """Fictitious play: the profile after `inner.steps` more, of `begin` before."""
        program = functools.partial(_play, begin=np.float32(begin), inner=inner)
        return self._batched(program, profile, payoffs, forced)[0]

    def best_replies(
        self, profile: np.ndarray, payoffs: np.ndarray, forced: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Best responses, as profiles, and their values, float64 [N, n]."""
        best, gain = self._batched(_best_replies, profile, payoffs, forced)
        return best, gain.astype(float)

    def ends(self, profile: np.ndarray) -> np.ndarray:
        """float64 [N, O], the chances of how hands end."""
        players = next(n for n in (2, 3) if len(rules.infosets(n)) == profile.shape[1])
        shape = len(profile), len(rules.outcomes(players)), players
        (probabilities,) = self._batched(_ends, profile, np.zeros(shape, np.float32))
        ends: np.ndarray = probabilities.astype(float)
        return ends / ends.sum(1, keepdims=True)

    def _batched(
        self, program: Callable[..., tuple[jax.Array, ...]], *states: np.ndarray
    ) -> list[np.ndarray]:
        """What a program says of arrays of states, which it is given in batches."""
        count, players = len(states[0]), states[1].shape[2]
        size = min(_BATCH, count)

        def do(first: int) -> list[np.ndarray]:
            rows = np.resize(np.arange(first, min(first + size, count)), size)
            parts = (array[rows] for array in states)
            results = program(self._placed, *parts, players=players)
            return [np.asarray(array)[: count - first] for array in results]

        # The first one alone, which compiles what all of them run.
        done = [do(0)]
        with ThreadPoolExecutor(self._workers) as pool:
            done += pool.map(do, range(size, count, size))
        return [np.concatenate(parts) for parts in zip(*done, strict=True)]


@functools.partial(jax.jit, static_argnames=("players", "inner"))
def _play(
    tables: HandTables,
    profile: jax.Array,
    payoffs: jax.Array,
    forced: jax.Array,
    *,
    begin: jax.Array,
    players: int,
    inner: InnerSettings,
) -> tuple[jax.Array]:
    """Fictitious play: averages after `inner.steps` more best responses."""

    def step(t: jax.Array, average: jax.Array, values: hands.Values) -> jax.Array:
        best = (values.jam > values.fold) | forced[:, :, None]
        return average + (best - average) / (begin + t + 1)

    def pair(t: jax.Array, average: jax.Array) -> jax.Array:
        return step(t, average, hands.two(tables, average, payoffs))

    def block(k: jax.Array, average: jax.Array) -> jax.Array:
        slow = hands.three_slow(tables, average, payoffs)
        first = k * inner.refresh

        def triple(t: jax.Array, average: jax.Array) -> jax.Array:
            return step(t, average, hands.three(tables, average, payoffs, slow))

        last = jax.numpy.minimum(first + inner.refresh, inner.steps)
        return jax.lax.fori_loop(first, last, triple, average)

    if players == 2:
        return (jax.lax.fori_loop(0, inner.steps, pair, profile),)
    return (jax.lax.fori_loop(0, -(-inner.steps // inner.refresh), block, profile),)


@functools.partial(jax.jit, static_argnames=("players",))
def _best_replies(
    tables: HandTables,
    profile: jax.Array,
    payoffs: jax.Array,
    forced: jax.Array,
    *,
    players: int,
) -> tuple[jax.Array, jax.Array]:
    """Best responses and their values."""
    values = _values(tables, profile, payoffs, players)
    jam = (values.jam > values.fold) | forced[:, :, None]
    each = jax.numpy.where(jam, values.jam, values.fold).sum(2)
    position = np.array([len(before) for before in rules.infosets(players)])
    totals = [each[:, position == p].sum(1) for p in range(players)]
    # Where all fold to it, the big blind has nothing to decide.
    totals[-1] += values.ends[:, 0] * payoffs[:, 0, -1]
    return jam.astype(profile.dtype), jax.numpy.stack(totals, 1)


@functools.partial(jax.jit, static_argnames=("players",))
def _ends(
    tables: HandTables, profile: jax.Array, payoffs: jax.Array, *, players: int
) -> tuple[jax.Array]:
    """How hands end; what else the values take is not computed."""
    return (_values(tables, profile, payoffs, players).ends,)


def _values(
    tables: HandTables, profile: jax.Array, payoffs: jax.Array, players: int
) -> hands.Values:
    if players == 2:
        return hands.two(tables, profile, payoffs)
    slow = hands.three_slow(tables, profile, payoffs)
    return hands.three(tables, profile, payoffs, slow)
