"""Values of hands in many states, computed in batches."""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np

from spiel_cr.common.checks import check_integer
from spiel_cr.push_fold import hands, rules
from spiel_cr.push_fold.hands import HandTables

# Number of states in one call of a compiled function: enough to keep the processor's
# arithmetic units busy without filling its memory.
_BATCH = 32
_MOST_WORKERS = 1024


class InnerSettings(NamedTuple):
    """Settings of fictitious play within hands.

    Attributes:
      steps: Number of steps of fictitious play.
      refresh: Number of steps between two computations of the costly parts of the
        values of three players (`hands.Slow`): showdowns of three players, and sums
        over the hands of two players.
    """

    steps: int
    refresh: int


class Engine:
    """Values, best responses and fictitious play of hands in N states, with threads.

    A profile is float32 [N, I, C]. Payoffs are the values of outcomes, float32 [N, O,
    n]; a constant for each player and state may be subtracted from them. `forced` is
    bool [N, I].

    Attributes:
      tables: Probabilities of deals and showdowns.
    """

    def __init__(self, tables: HandTables, workers: int = 1) -> None:
        """Store the tables and copy them to the device.

        Args:
          tables: Probabilities of deals and showdowns.
          workers: Number of threads. Results do not depend on it.

        Raises:
          ValueError: If `workers` is not an integer from 1 to 1024.
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
        """Return the profile after `inner.steps` more steps of fictitious play.

        Args:
          profile: Average strategies after `begin` steps, float32 [N, I, C].
          payoffs: Values of outcomes, float32 [N, O, n].
          forced: Decisions at which the player is already all in, bool [N, I].
          inner: Settings of fictitious play.
          begin: Number of steps that `profile` counts for.
        """
        program = functools.partial(_play, begin=np.float32(begin), inner=inner)
        return self._batched(program, profile, payoffs, forced)[0]

    def best_replies(
        self, profile: np.ndarray, payoffs: np.ndarray, forced: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return best responses as profiles, and their values, float64 [N, n]."""
        best, gain = self._batched(_best_replies, profile, payoffs, forced)
        return best, gain.astype(float)

    def outcomes(self, profile: np.ndarray) -> np.ndarray:
        """Return the probabilities of the outcomes of hands, float64 [N, O]."""
        players = next(n for n in (2, 3) if len(rules.infosets(n)) == profile.shape[1])
        shape = len(profile), len(rules.outcomes(players)), players
        (probabilities,) = self._batched(_ends, profile, np.zeros(shape, np.float32))
        outcomes: np.ndarray = probabilities.astype(float)
        return outcomes / outcomes.sum(1, keepdims=True)

    def _batched(
        self, program: Callable[..., tuple[jax.Array, ...]], *states: np.ndarray
    ) -> list[np.ndarray]:
        """Call a compiled function on batches of states, and join the results."""
        count, players = len(states[0]), states[1].shape[2]
        size = min(_BATCH, count)

        def do(first: int) -> list[np.ndarray]:
            rows = np.resize(np.arange(first, min(first + size, count)), size)
            parts = (array[rows] for array in states)
            results = program(self._placed, *parts, players=players)
            return [np.asarray(array)[: count - first] for array in results]

        # The first batch runs alone, because it compiles the function for all of them.
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
    """Return the averages after `inner.steps` more best responses (fictitious play)."""

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
    """Return best responses and their values."""
    values = _values(tables, profile, payoffs, players)
    jam = (values.jam > values.fold) | forced[:, :, None]
    each = jax.numpy.where(jam, values.jam, values.fold).sum(2)
    position = np.array([len(before) for before in rules.infosets(players)])
    totals = [each[:, position == p].sum(1) for p in range(players)]
    # If all others fold, the big blind has no decision.
    totals[-1] += values.outcomes[:, 0] * payoffs[:, 0, -1]
    return jam.astype(profile.dtype), jax.numpy.stack(totals, 1)


@functools.partial(jax.jit, static_argnames=("players",))
def _ends(
    tables: HandTables, profile: jax.Array, payoffs: jax.Array, *, players: int
) -> tuple[jax.Array]:
    """Return the probabilities of outcomes; XLA removes unused values."""
    return (_values(tables, profile, payoffs, players).outcomes,)


def _values(
    tables: HandTables, profile: jax.Array, payoffs: jax.Array, players: int
) -> hands.Values:
    if players == 2:
        return hands.two(tables, profile, payoffs)
    slow = hands.three_slow(tables, profile, payoffs)
    return hands.three(tables, profile, payoffs, slow)
