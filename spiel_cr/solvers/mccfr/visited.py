"""Monte Carlo CFR that updates only the infosets that trajectories visit.

An iteration samples a batch of trajectories for each player (`walk.py`). The result is
the list of the updating player's visited infosets and their summed regrets. Then the
regrets, the strategy and the average of each of these infosets are updated. No
operation covers a complete array, so the cost of an iteration depends on the number of
visits and not on the size of the game.

The average strategy is nevertheless exact. Let S be the sum of weight times the
player's own reach over the iterations so far, for each sequence. Between two visits of
an infoset its strategy is constant. The missing part of S of its actions is therefore
the strategy times the increase of S of the parent sequence since the last visit. This
part is added when the infoset is visited, before the strategy changes. Parents come
first: a trajectory that reaches an infoset has visited the player's infosets above it,
so their actions are up to date. Reading the average updates all infosets once from top
to bottom. Each sum is stored as two numbers (Neumaier 1974), because in single
precision one number would not change after 2^24 iterations.
"""

import dataclasses
import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.cfr.regret_matching import Rule
from spiel_cr.solvers.mccfr import branching_walk, walk
from spiel_cr.solvers.mccfr import sobol_draws as draws
from spiel_cr.solvers.mccfr.flat_tree import FlatTree
from spiel_cr.solvers.mccfr.walk import DoubleSums, at, put

# Averaging weights are (t / _UNIT)^gamma; `choice` explains the constant.
_UNIT = 65536.0

# Baselines, the visits so far by depth, and the input of the update.
_Walked: TypeAlias = tuple[jax.Array | None, jax.Array, walk.Scratch]


class VisitedState(NamedTuple):
    """State of a solve.

    Attributes:
      strategy: Current strategies and chance probabilities by entry, float [T].
      regrets: Cumulative regrets, float [T].
      average: Sums S up to the last update of each infoset, two float [T].
      taken: Sum S of an infoset's parent sequence at its last update, two float [P].
      baseline: Baselines, float [T] ("average") or [N] ("expected"); None without
        baselines.
      scratch: Lists and sums of a batch; empty between iterations.
      iteration: Number of iterations completed, int32 scalar.
      key: Key of JAX's future random numbers, uint32 [2].
    """

    strategy: jax.Array
    regrets: jax.Array
    average: DoubleSums
    taken: DoubleSums
    baseline: jax.Array | None
    scratch: walk.Scratch
    iteration: jax.Array
    key: jax.Array


def init(
    tree: FlatTree, chance: np.ndarray, config: MCCFRConfig, dtype: np.dtype, seed: int
) -> VisitedState:
    """Return uniform strategies, zero regrets and baselines, as numpy arrays.

    Args:
      tree: Histories, as numpy arrays.
      chance: Probabilities of chance outcomes, float64 [C]; their entries are the last
        ones.
      config: Settings of the algorithm.
      dtype: Floating-point type of the state.
      seed: Seed for all random choices.
    """
    first, code = np.asarray(tree.first), np.asarray(tree.code)
    entries, points = len(tree.tolerance), len(first)
    counts = code >> 2
    uniform = np.ones(entries)
    rows = ranges(first, counts)
    uniform[rows] = np.repeat(1 / np.maximum(counts, 1), counts)
    uniform[entries - len(chance) :] = chance
    size = {"none": 0, "average": entries}.get(config.baseline, len(tree.point))
    zeros: Any = functools.partial(np.zeros, dtype=dtype)
    return VisitedState(
        strategy=uniform.astype(dtype),  # type: ignore[arg-type]
        regrets=zeros(entries),
        average=DoubleSums(zeros(entries), zeros(entries)),
        taken=DoubleSums(zeros(points), zeros(points)),
        baseline=zeros(size) if size else None,
        scratch=walk.Scratch(
            pending=zeros(entries),
            listed=np.zeros(points, bool),  # type: ignore[arg-type]
            points=np.zeros(points, np.int32),  # type: ignore[arg-type]
            length=np.zeros((), np.int32),  # type: ignore[arg-type]
        ),
        iteration=np.zeros((), np.int32),  # type: ignore[arg-type]
        key=np.asarray(jax.random.key_data(jax.random.key(seed))),  # type: ignore[arg-type]
    )


def step(
    tree: FlatTree, state: VisitedState, *, depths: int, config: MCCFRConfig
) -> VisitedState:
    """Perform one iteration: a batch of trajectories and an update for each player.

    Args:
      tree: Histories in flat arrays.
      state: State before the iteration.
      depths: Number D of depths of the game.
      config: Settings of the algorithm.
    """
    iteration = state.iteration + 1
    dtype = state.strategy.dtype
    # The first key is for the next iteration, the others are for the two players.
    new_keys = jax.random.key_data(
        jax.random.split(jax.random.wrap_key_data(state.key), 3)
    )
    keys = new_keys[1:]
    t = iteration.astype(dtype)
    weight = (t / _UNIT) ** config.gamma
    average = _credit(tree, state.average, weight)
    state = state._replace(average=average)

    width = draws.chunk_width(depths, config.batch)

    def sample(player: jax.Array, state: VisitedState) -> VisitedState:
        player_key = jax.random.wrap_key_data(keys[player])
        inputs = walk.WalkInputs(
            tree=tree,
            strategy=state.strategy,
            draws=jnp.zeros(0, dtype),
            targeted=None,
            share=jnp.asarray(1 / config.batch, dtype),
            player=player,
            past=_past(tree, config, state, player, t),
        )

        def some(number: jax.Array, s: _Walked) -> _Walked:
            drawn = draws.chunk(player_key, number, depths, config.batch).astype(dtype)
            left = jnp.minimum(config.batch - number * width, width)
            one = functools.partial(_walk_one, inputs, config, drawn)
            return jax.lax.fori_loop(0, left, one, s)

        if depths == 1:  # the root is terminal, so trajectories are empty
            return state
        chunks = -(-config.batch // width)
        start = state.baseline, jnp.zeros(depths, jnp.int32), state.scratch
        baseline, _, scratch = jax.lax.fori_loop(0, chunks, some, start)
        return state._replace(baseline=baseline, scratch=scratch)

    def turn(player: jax.Array, state: VisitedState) -> VisitedState:
        state = sample(player, state)
        return update(state) if config.alternating else state

    update = functools.partial(_update, tree, config, t)
    state = jax.lax.fori_loop(0, 2, turn, state)
    if not config.alternating:
        state = update(state)
    return state._replace(iteration=iteration, key=new_keys[0])


def _walk_one(
    inputs: walk.WalkInputs,
    config: MCCFRConfig,
    drawn: jax.Array,
    b: jax.Array,
    s: _Walked,
) -> _Walked:
    """Sample trajectory b with column b of the random numbers, float [D, n]."""
    numbers = drawn[:, b]
    targeted = None if inputs.tree.target is None else numbers[-1] < config.delta
    inputs = inputs._replace(draws=numbers[:-1], targeted=targeted)
    baseline, arrivals, scratch = s
    if config.scheme == "outcome":
        baseline, scratch, _ = walk.outcome(inputs, baseline, scratch, config)
    else:
        arrivals, scratch = branching_walk.sample(inputs, arrivals, scratch, config)
    return baseline, arrivals, scratch


def _past(
    tree: FlatTree,
    config: MCCFRConfig,
    state: VisitedState,
    player: jax.Array,
    t: jax.Array,
) -> walk.Past | None:
    """Return the sums of a player's past reach, for average-strategy sampling.

    Args:
      tree: Histories in flat arrays.
      config: Settings of the algorithm.
      state: State in which iteration t is credited only to the empty sequences.
      player: Player whose values are sampled, int32 scalar.
      t: Number of the iteration from 1, float scalar.
    """
    if config.scheme != "average":
        return None
    past = walk.Past(state.average, state.taken, jnp.zeros_like(t), jnp.zeros_like(t))
    credited = (t / _UNIT) ** config.gamma
    start = past.sum_of(at(tree.roots, player)) - credited
    unit = (jnp.maximum(t - 1, 1) / _UNIT) ** -config.gamma
    return past._replace(start=start, unit=unit)


def _update(
    tree: FlatTree, config: MCCFRConfig, t: jax.Array, state: VisitedState
) -> VisitedState:
    """Update averages, regrets and strategies of the listed infosets; empty the list.

    Args:
      tree: Histories in flat arrays.
      config: Settings of the algorithm.
      t: Number of the iteration from 1, float scalar.
      state: State after a batch.
    """

    def one(i: jax.Array, state: VisitedState) -> VisitedState:
        infoset = _infoset(tree, config, state, at(state.scratch.points, i))
        state, total = _change(tree, config, state, infoset, t)
        return _match(config.rule, state, infoset, total)

    state = jax.lax.fori_loop(0, state.scratch.length, one, state)
    return state._replace(scratch=state.scratch._replace(length=jnp.int32(0)))


class _Infoset(NamedTuple):
    """An infoset before its update, scalars.

    Attributes:
      point: Number of the infoset, int32.
      first: Entry of its first action, int32.
      actions: Number of its actions, int32.
      missing: Missing part of the sums of its actions, in units of their strategy,
        float.
      above: Sum of its parent sequence.
      mean: Number to subtract from pending values to get regrets, float.
    """

    point: jax.Array
    first: jax.Array
    actions: jax.Array
    missing: jax.Array
    above: DoubleSums
    mean: jax.Array


def _infoset(
    tree: FlatTree, config: MCCFRConfig, state: VisitedState, point: jax.Array
) -> _Infoset:
    """Read the data that the update of an infoset needs."""
    first, count = at(tree.first, point), at(tree.code, point) >> 2
    above = _sums_at(state.average, at(tree.parent, point))
    below = _sums_at(state.taken, point)
    missing = (above.high - below.high) + (above.low - below.low)
    mean = jnp.zeros_like(missing)
    if config.scheme != "outcome":
        mean = _mean(state.strategy, state.scratch.pending, first, count)
    return _Infoset(point, first, count, missing, above, mean)


def _change(
    tree: FlatTree,
    config: MCCFRConfig,
    state: VisitedState,
    infoset: _Infoset,
    t: jax.Array,
) -> tuple[VisitedState, jax.Array]:
    """Update averages and regrets of an infoset; return the sum of positive regrets."""
    point, first, count, missing, above, mean = infoset
    zero = jnp.zeros_like(t)

    def action(a: jax.Array, c: _Changing) -> _Changing:
        entry, after = first + a, first + jnp.minimum(a + 1, count - 1)
        regret = c.entry.regret + (c.entry.pending - mean)
        tolerance = at(tree.tolerance, entry) * jnp.sqrt(t)
        regret = _kept(config.rule, regret, tolerance)
        sums = increased(c.entry.average, missing * at(state.strategy, entry))
        regrets = put(c.regrets, entry, regret)
        average = DoubleSums(*map(put, c.average, (entry, entry), sums))
        pending = put(c.pending, entry, zero)
        return _Changing(
            regrets=regrets,
            average=average,
            # Written inside the loop, because `missing` must be read before.
            taken=DoubleSums(*map(put, c.taken, (point, point), above)),
            pending=pending,
            total=c.total + jnp.maximum(regret, 0),
            entry=_read(regrets, average, pending, after),
        )

    scratch = state.scratch
    start = _Changing(
        regrets=state.regrets,
        average=state.average,
        taken=state.taken,
        pending=scratch.pending,
        total=zero,
        entry=_read(state.regrets, state.average, scratch.pending, first),
    )
    changed = jax.lax.fori_loop(0, count, action, start)
    scratch = scratch._replace(
        pending=changed.pending, listed=put(scratch.listed, point, jnp.bool_(False))
    )
    state = state._replace(
        regrets=changed.regrets,
        average=changed.average,
        taken=changed.taken,
        scratch=scratch,
    )
    return state, changed.total


def _match(
    rule: Rule, state: VisitedState, infoset: _Infoset, total: jax.Array
) -> VisitedState:
    """Update the strategy at an infoset by regret matching.

    Args:
      rule: Regret rule.
      state: State with the new regrets.
      infoset: Infoset to update.
      total: Sum of its positive regrets, float scalar.
    """
    even = 1 / infoset.actions.astype(total.dtype)
    share = (1 - rule.exploration) / jnp.where(total > 0, total, 1)
    mixed = jnp.where(total > 0, rule.exploration * even, even)

    def action(a: jax.Array, strategy: jax.Array) -> jax.Array:
        entry = infoset.first + a
        # If the sum is zero, every positive part is zero.
        positive = jnp.maximum(at(state.regrets, entry), 0)
        return put(strategy, entry, share * positive + mixed)

    strategy = jax.lax.fori_loop(0, infoset.actions, action, state.strategy)
    return state._replace(strategy=strategy)


class _EntryScalars(NamedTuple):
    """Regret, average and pending value of one entry, as scalars."""

    regret: jax.Array
    average: DoubleSums
    pending: jax.Array


class _Changing(NamedTuple):
    """Arrays that the update of an infoset writes.

    Attributes:
      total: Sum of positive regrets so far, float scalar.
      entry: Numbers of the next entry. They are read at the end of the previous step,
        because XLA copies an array that a loop step reads before writing to it.
    """

    regrets: jax.Array
    average: DoubleSums
    taken: DoubleSums
    pending: jax.Array
    total: jax.Array
    entry: _EntryScalars


def _read(
    regrets: jax.Array, average: DoubleSums, pending: jax.Array, entry: jax.Array
) -> _EntryScalars:
    return _EntryScalars(
        at(regrets, entry), _sums_at(average, entry), at(pending, entry)
    )


def _sums_at(sums: DoubleSums, index: jax.Array) -> DoubleSums:
    return DoubleSums(at(sums.high, index), at(sums.low, index))


def _mean(
    strategy: jax.Array, values: jax.Array, first: jax.Array, count: jax.Array
) -> jax.Array:
    """Return the expected value of a strategy at an infoset, scalar."""

    def take(a: jax.Array, total: jax.Array) -> jax.Array:
        return total + at(strategy, first + a) * at(values, first + a)

    return jax.lax.fori_loop(0, count, take, jnp.zeros((), values.dtype))


def _kept(rule: Rule, regret: jax.Array, tolerance: jax.Array) -> jax.Array:
    """Return a regret; zero if it is only rounding, or negative in regret matching+."""
    size = regret if rule.beta == -jnp.inf else jnp.abs(regret)
    return jnp.where(size > tolerance, regret, 0)


def increased(sums: DoubleSums, value: jax.Array) -> DoubleSums:
    """Return a sum plus a value; the rounding error of `high` is added to `low`."""
    high = sums.high + value
    back = high - sums.high
    low = sums.low + (sums.high - (high - back)) + (value - back)
    # Without this step, all small values would go to `low` until it is too coarse for
    # them as well.
    top = high + low
    return DoubleSums(top, low - (top - high))


def _credit(tree: FlatTree, average: DoubleSums, weight: jax.Array) -> DoubleSums:
    """Add an iteration's weight to both empty sequences."""

    def one(
        player: jax.Array, s: tuple[DoubleSums, DoubleSums]
    ) -> tuple[DoubleSums, DoubleSums]:
        average, at_root = s
        root = tree.roots[player]
        new = increased(at_root, weight)
        average = DoubleSums(*map(put, average, (root, root), new))
        return average, _sums_at(average, tree.roots[1])

    start = average, _sums_at(average, tree.roots[0])
    return jax.lax.fori_loop(0, 2, one, start)[0]


@dataclasses.dataclass(frozen=True)
class VisitedStrategyReader:
    """Reader of the strategies of a state.

    Attributes:
      roots: Entries of the players' empty sequences.
      stops: Number after the last entry of each player.
      levels: Points of the infosets that follow equally many decisions of their player,
        for each number of decisions.
      parent: Entry of each infoset's parent sequence, int32 [P].
      first: First entry of each point, int32 [P].
      counts: Numbers of actions, int32 [P].
    """

    roots: tuple[int, int]
    stops: tuple[int, int]
    levels: tuple[np.ndarray, ...]
    parent: np.ndarray
    first: np.ndarray
    counts: np.ndarray

    def average(self, state: VisitedState, player: int) -> np.ndarray:
        """Return the weighted mean of the iterates in sequence form, float64 [S]."""
        sums, taken = _total(state.average), _total(state.taken)
        strategy = np.asarray(state.strategy, float)
        for points in self.levels:
            counts = self.counts[points]
            rows = ranges(self.first[points], counts)
            missing = sums[self.parent[points]] - taken[points]
            sums[rows] += np.repeat(missing, counts) * strategy[rows]
        player_sums = sums[self.roots[player] : self.stops[player]]
        total = player_sums[0]
        return player_sums / total if total > 0 else player_sums

    def current(self, state: VisitedState, player: int) -> np.ndarray:
        """Return the probabilities of the current strategy, float64 [S].

        The entry of the empty sequence is 1.
        """
        strategy = np.asarray(state.strategy, np.float64)
        return strategy[self.roots[player] : self.stops[player]].copy()

    def check(self, state: VisitedState) -> None:
        """Raise ValueError if numpy arrays contain values that no solve produces."""
        played = np.asarray(state.strategy)
        # Sums of rounded shares may be above 1 by a few units in the last place.
        if (played < 0).any() or (played > 1 + 1e-3).any():
            raise ValueError("state: probabilities outside [0, 1]")
        if (_total(state.average) < 0).any():
            raise ValueError("state: negative average strategy")
        scratch = state.scratch
        if scratch.length != 0 or scratch.pending.any() or scratch.listed.any():
            raise ValueError("state: not a state between two iterations")
        if not ((0 <= scratch.points) & (scratch.points < len(self.first))).all():
            raise ValueError("state: the list contains infosets that do not exist")


def reader(tree: GameTree, arrays: FlatTree) -> VisitedStrategyReader:
    """Return a reader of the strategies of solves of this game.

    Args:
      tree: Game tree.
      arrays: Histories of the game tree, as numpy arrays.
    """
    sizes = [infosets.decisions.num_sequences for infosets in tree.infosets]
    number = np.full(len(arrays.tolerance), -1, np.int64)
    number[np.asarray(arrays.first)[:-1]] = np.arange(len(arrays.first) - 1)
    by_level: dict[int, list[np.ndarray]] = {}
    for p, infosets in enumerate(tree.infosets):
        decisions = infosets.decisions
        points = number[decisions.first_sequence + p * sizes[0]]
        for level, (infoset_ids, _) in enumerate(decisions.downwards()):
            by_level.setdefault(level, []).append(points[infoset_ids])
    return VisitedStrategyReader(
        roots=(0, sizes[0]),
        stops=(sizes[0], sum(sizes)),
        levels=tuple(np.concatenate(by_level[level]) for level in sorted(by_level)),
        parent=np.asarray(arrays.parent),
        first=np.asarray(arrays.first),
        counts=np.asarray(arrays.code) >> 2,
    )


def _total(sums: DoubleSums) -> np.ndarray:
    """Return a new array of sums, float64."""
    return np.add(sums.high, sums.low, dtype=np.float64)
