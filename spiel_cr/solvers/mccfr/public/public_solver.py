"""Monte Carlo CFR with public trajectories: all hands at a public state at once.

An iteration samples one trajectory for each player (`public_walk.py`) and updates the
regrets, strategy and average of this player's visited decisions only. The averages are
nevertheless exact: the strategy of an infoset is constant between its visits, and its
contribution since the last visit is added at the next one. `solvers.mccfr.visited`
describes these sums.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import memory
from spiel_cr.common.checks import check_dtype, check_seed
from spiel_cr.common.jax_utils import cast
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.solvers.cfr import regret_matching
from spiel_cr.solvers.cfr.solver import Solver, SolverFunctions, jitted_loop
from spiel_cr.solvers.mccfr.public import boards
from spiel_cr.solvers.mccfr.public import public_places as places
from spiel_cr.solvers.mccfr.public import public_walk as walk
from spiel_cr.solvers.mccfr.public.public_config import PRESETS, PublicConfig
from spiel_cr.solvers.mccfr.public.rows import at, put
from spiel_cr.solvers.mccfr.visited import DoubleSums, increased

# Averaging weights are (t / _UNIT)^gamma. Neither the first weight nor the sum of 2^31
# weights is outside the range of single precision.
_UNIT = 65536.0


class PublicState(NamedTuple):
    """State of a solve.

    Attributes:
      strategy: Current strategies, float [Y + 1, A, h]; 0 at illegal actions.
      regrets: Cumulative regrets, float [Y, A, h].
      average: Weighted sums of the player's own reach by sequence up to the last update
        of each infoset, two float [Y · A · h + 2]; the empty sequences last.
      taken: Sum of each infoset's parent sequence at its last update, two float [Y, h].
      baseline: Baselines of each player, float [X, h] each; None without baselines.
      iteration: Number of iterations completed, int32 scalar.
      key: Key of JAX's future random numbers, uint32 [2].
    """

    strategy: jax.Array
    regrets: jax.Array
    average: DoubleSums
    taken: DoubleSums
    baseline: tuple[jax.Array, jax.Array] | None
    iteration: jax.Array
    key: jax.Array


def init(
    tree: places.PlaceArrays, config: PublicConfig, dtype: np.dtype, *, seed: int
) -> PublicState:
    """Return uniform strategies, zero regrets and baselines, as numpy arrays.

    Args:
      tree: Public tree with its boards.
      config: Settings of the algorithm.
      dtype: Floating-point type of the state.
      seed: Seed for all random choices.
    """
    strategy = uniform(tree).astype(dtype)
    shape, hands = strategy[:-1].shape, strategy.shape[2]
    zeros: Any = functools.partial(np.zeros, dtype=dtype)
    size, sums = (len(tree.kind), hands), int(np.prod(shape)) + 2
    learns = config.baseline == "average"
    return PublicState(
        strategy=strategy,  # type: ignore[arg-type]
        regrets=zeros(shape),
        average=DoubleSums(zeros(sums), zeros(sums)),
        taken=DoubleSums(*(zeros((shape[0], hands)) for _ in range(2))),
        baseline=(zeros(size), zeros(size)) if learns else None,
        iteration=np.zeros((), np.int32),  # type: ignore[arg-type]
        key=np.asarray(jax.random.key_data(jax.random.key(seed))),  # type: ignore[arg-type]
    )


def uniform(tree: places.PlaceArrays) -> np.ndarray:
    """Return the uniform strategy, float64 [Y + 1, A, h]."""
    legal = np.asarray(tree.legal)
    even = legal / legal.sum(axis=1, keepdims=True)
    return np.repeat(even[:, :, None], tree.mass.shape[1], axis=2)


def step(
    tree: places.PlaceArrays,
    state: PublicState,
    *,
    capacity: tuple[int, int],
    config: PublicConfig,
) -> PublicState:
    """Perform one iteration: a trajectory and an update for player 0, then player 1.

    Args:
      tree: Public tree with its boards.
      state: State before the iteration.
      capacity: Maximum number of visits of a trajectory for each player.
      config: Settings of the algorithm.
    """
    dtype = state.strategy.dtype
    iteration = state.iteration + 1
    t = iteration.astype(dtype)
    weight = (t / _UNIT) ** config.gamma
    keys = jax.random.split(jax.random.wrap_key_data(state.key), 3)
    average = state.average
    for player in range(2):
        root = jnp.int32(len(average.high) - 2 + player)
        sums = increased(
            DoubleSums(at(average.high, root), at(average.low, root)), weight
        )
        average = DoubleSums(
            put(average.high, root, sums.high), put(average.low, root, sums.low)
        )
    state = state._replace(average=average)
    for player in range(2):
        # Always single precision, so that runs in both dtypes are nearly the same.
        draws = jax.random.uniform(keys[player], (capacity[player],), jnp.float32)
        baseline = state.baseline
        visits = walk.walk(
            tree,
            state.strategy,
            None if baseline is None else baseline[player],
            draws.astype(dtype),
            player=player,
            rates=walk.SamplingRates(
                config.epsilon, config.epsilon_other, config.scheme
            ),
            capacity=capacity[player],
        )
        state = _update(tree, state, visits, player, t, config)
        if baseline is not None:
            learnt = list(baseline)
            learnt[player] = learn(baseline[player], visits, config.decay)
            state = state._replace(baseline=(learnt[0], learnt[1]))
    key = jax.random.key_data(keys[2])
    return state._replace(iteration=iteration, key=key)


def _update(
    tree: places.PlaceArrays,
    state: PublicState,
    visits: walk.Visits,
    player: int,
    t: jax.Array,
    config: PublicConfig,
) -> PublicState:
    """Update averages, regrets and strategies of the visited decisions.

    Args:
      tree: Public tree with its boards.
      state: State before the update.
      visits: Visits of a trajectory.
      player: Player whose values the trajectory estimates.
      t: Number of the iteration from 1, float scalar.
      config: Settings of the algorithm.
    """
    width, hands = state.regrets.shape[1:]
    capacity, size = len(visits.place), width * hands

    def compute(i: jax.Array, rows: _Rows) -> _Rows:
        row = at(tree.row, at(visits.place, i))
        row = jnp.minimum(row, len(state.regrets) - 1)
        sigma, legal = at(state.strategy, row), at(tree.legal, row)[:, None]
        parent, before = at(tree.parent, row), at(visits.decision, i)
        # The sums of decisions above in this trajectory have just been updated; the new
        # sums are in `rows`.
        settled = [at(part, jnp.maximum(before, 0)) for part in rows.average]
        above = DoubleSums(
            *(
                jnp.where(before < 0, sums[parent], part.reshape(-1)[parent % size])
                for sums, part in zip(state.average, settled, strict=True)
            )
        )
        below = DoubleSums(*(at(part, row) for part in state.taken))
        missing = (above.high - below.high) + (above.low - below.low)
        old = (jax.lax.dynamic_slice(s, (row * size,), (size,)) for s in state.average)
        new = increased(
            DoubleSums(*(part.reshape(width, hands) for part in old)),
            missing[None] * sigma,
        )
        gains = at(visits.values, i) - at(visits.value, i)[None]
        regrets, strategy = regret_matching.update(
            config.rule,
            at(state.regrets, row),
            gains / at(visits.product, i) * legal,
            jnp.broadcast_to(legal / legal.sum(), sigma.shape),
            jnp.zeros_like(sigma),
            t,
        )
        return _Rows(
            strategy=put(rows.strategy, i, strategy),
            regrets=put(rows.regrets, i, regrets),
            average=DoubleSums(*map(put, rows.average, (i, i), new)),
            taken=DoubleSums(*map(put, rows.taken, (i, i), above)),
        )

    wide = jnp.zeros((capacity, width, hands), state.regrets.dtype)
    rows = _Rows(wide, wide, DoubleSums(wide, wide), DoubleSums(wide[:, 0], wide[:, 0]))
    rows = jax.lax.fori_loop(0, visits.length, compute, rows)
    return _write(tree, state, visits, player, rows)


class _Rows(NamedTuple):
    """New rows of the visited decisions, by visit; names as in `PublicState`.

    They are collected first, because XLA copies a table that a loop both reads and
    writes.
    """

    strategy: jax.Array
    regrets: jax.Array
    average: DoubleSums
    taken: DoubleSums


def _write(
    tree: places.PlaceArrays,
    state: PublicState,
    visits: walk.Visits,
    player: int,
    rows: _Rows,
) -> PublicState:
    """Write the rows of a player's decisions into the tables."""
    size = rows.strategy[0].size

    def write(i: jax.Array, s: PublicState) -> PublicState:
        place = at(visits.place, i)
        row, is_updating = at(tree.row, place), at(tree.kind, place) == player

        def one(_: jax.Array, s: PublicState) -> PublicState:
            sums = [at(part, i).reshape(-1) for part in rows.average]
            average = (
                jax.lax.dynamic_update_slice(table, part, (row * size,))
                for table, part in zip(s.average, sums, strict=True)
            )
            taken = (at(part, i) for part in rows.taken)
            return s._replace(
                strategy=put(s.strategy, row, at(rows.strategy, i)),
                regrets=put(s.regrets, row, at(rows.regrets, i)),
                average=DoubleSums(*average),
                taken=DoubleSums(*map(put, s.taken, (row, row), taken)),
            )

        return jax.lax.fori_loop(0, is_updating.astype(jnp.int32), one, s)

    return jax.lax.fori_loop(0, visits.length, write, state)


def learn(table: jax.Array, visits: walk.Visits, decay: float) -> jax.Array:
    """Return the baselines after a trajectory, moved towards the sampled values.

    Args:
      table: Utility per unit of stake, float [X, h].
      visits: Visits of the trajectory.
      decay: Share of the new value.
    """

    def compute(i: jax.Array, rows: jax.Array) -> jax.Array:
        stake, old = at(visits.stake, i), at(table, at(visits.place, i))
        some = stake > 0
        seen = at(visits.value, i) / jnp.where(some, stake, 1)
        return put(rows, i, jnp.where(some, old + decay * (seen - old), old))

    def write(i: jax.Array, table: jax.Array) -> jax.Array:
        return put(table, at(visits.place, i), at(rows, i))

    rows = jax.lax.fori_loop(1, visits.length, compute, jnp.zeros_like(visits.stake))
    learnt: jax.Array = jax.lax.fori_loop(1, visits.length, write, table)
    return learnt


@dataclasses.dataclass(frozen=True)
class PublicStrategyReader:
    """Reader of the strategies of a state; see `StrategyReader`.

    Attributes:
      layout: Places of the game and their relation to sequences.
      num_actions: Number of actions at each infoset, int32 [I] for each player.
    """

    layout: places.NumberedPlaces
    num_actions: tuple[np.ndarray, np.ndarray]

    def average(self, state: PublicState, player: int) -> np.ndarray:
        """Return the mean of the iterates in sequence form, float64 [S]."""
        sums = np.add(state.average.high, state.average.low, dtype=np.float64)
        taken = np.add(state.taken.high, state.taken.low, dtype=np.float64)
        strategy = np.asarray(state.strategy, np.float64)
        rows, width, hands = strategy[:-1].shape
        tables = sums[:-2].reshape(rows, width, hands)
        for at_level in self.layout.levels:
            above = sums[self.layout.places.parent[at_level]]
            missing = above - taken[at_level]
            tables[at_level] += missing[:, None] * strategy[at_level]
        reach = self._read(sums, player)
        return reach / reach[0] if reach[0] > 0 else reach

    def current(self, state: PublicState, player: int) -> np.ndarray:
        """Return the last iterate's action probabilities, float64 [S]."""
        flat = np.asarray(state.strategy, np.float64)[:-1].reshape(-1)
        probabilities = self._read(np.append(flat, (1, 1)), player)
        actions = self.num_actions[player]
        even = np.append(1, np.repeat(1 / actions, actions))
        return np.where(self.layout.entries[player] < 0, even, probabilities)

    def _read(self, vector: np.ndarray, player: int) -> np.ndarray:
        entries = self.layout.entries[player]
        return np.where(entries < 0, 0, vector[entries])

    def check(self, state: PublicState) -> None:
        """Raise ValueError if numpy arrays contain values that no solve produces."""
        played = np.asarray(state.strategy)
        if (played < 0).any() or (played > 1 + 1e-3).any():
            raise ValueError("state: probabilities outside [0, 1]")
        if (np.add(state.average.high, state.average.low) < 0).any():
            raise ValueError("state: negative average strategy")


_run = jitted_loop(step, static=("capacity", "config"), fused=True, in_place=True)


def make_solver(
    game: PublicTreeGame,
    form: SequenceForm,
    algorithm: str | PublicConfig = "public-vr+",
    *,
    dtype: np.typing.DTypeLike = np.float32,
    seed: int = 0,
    memory_limit: memory.Limit = None,
) -> Solver:
    """Return a public sampling solver of a game, with its arrays on the device.

    Args:
      game: Game in public-tree form.
      form: Sequence form of the game, whose logical sequences the solver uses.
      algorithm: Settings, or a string such as "public-vr(decay=0.3)".
      dtype: Arithmetic, float32 or float64.
      seed: Seed for all random choices; the same seed gives bitwise identical results.
      memory_limit: Memory limit, as for `build_tree`.

    Raises:
      ValueError: If the algorithm, dtype or seed is invalid.
      GameTooLargeError: If the game's tables do not fit in memory.
    """
    config = read_settings(algorithm, PRESETS)
    dtype, seed = check_dtype(dtype), check_seed(seed)
    layout = places.build(game, boards.find(game, memory_limit))
    tree = layout.places
    exponent = treeplex.exponent_of(np.abs(game.terms.stake).tolist())
    scaled = tree._replace(term_stake=treeplex.divide(tree.term_stake, exponent))
    scaled = cast(scaled, dtype)
    counts = tuple(decisions.num_actions for decisions in form.decisions)
    capacity = tuple(
        places.most_visits(tree, player, config.scheme) for player in range(2)
    )
    return Solver(
        form,
        scaled,
        init(scaled, config, dtype, seed=seed),
        SolverFunctions(
            functools.partial(_run, capacity=capacity),
            config,
            dtype,
            exponent=exponent,
            reader=PublicStrategyReader(layout, (counts[0], counts[1])),
            consumes=True,
        ),
    )
