"""One trajectory at a time, down the histories and up again, as scalar code.

The mathematics is that of `trajectories.py`. There a batch moves together and each
depth is array code; here a trajectory is walked alone by loops over depths and actions,
which XLA compiles to one piece of machine code, and what it does not visit costs
nothing. Own infosets that are visited are listed, so that the update (`visited.py`)
need not look for them.

Loops here write first and read then: what a turn needs of an array that it writes was
read at the end of the turn before, from the array as it was then. XLA would copy the
whole array if a turn read what it also writes.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr.flat_tree import FlatTree

# An action's probability.
Chance: TypeAlias = Callable[[jax.Array], jax.Array]


class Sums(NamedTuple):
    """Numbers with more digits than one array has: `high + low`."""

    high: jax.Array
    low: jax.Array


class Past(NamedTuple):
    """The sums of past own reaches, for average-strategy sampling.

    Attributes:
      sums: two float [T], by entry, as far as they are settled (see `visited.py`).
      taken: two float [P], the sum of an infoset's parent sequence when it was last
        settled.
      start: float scalar, the sum of the player's empty sequence.
      unit: float scalar, what they are multiplied by to weigh the last iteration 1.
    """

    sums: Sums
    taken: Sums
    start: jax.Array
    unit: jax.Array

    def sum_of(self, entry: jax.Array) -> jax.Array:
        """float, a sequence's sum."""
        return at(self.sums.high, entry) + at(self.sums.low, entry)

    def taken_at(self, point: jax.Array) -> jax.Array:
        """float, the sum of an infoset's parent sequence when it was last settled."""
        return at(self.taken.high, point) + at(self.taken.low, point)


class Scratch(NamedTuple):
    """What a batch leaves for the update; empty in between.

    Attributes:
      pending: float [T], sum of the batch's sampled regrets; where several actions are
        followed the sampled values, from which the update makes regrets.
      listed: bool [P], points in the list.
      points: int32 [P], the list: own infosets that were visited, ancestors first.
      length: int32 scalar, of the list.
    """

    pending: jax.Array
    listed: jax.Array
    points: jax.Array
    length: jax.Array


class WalkInputs(NamedTuple):
    """What a walk only reads.

    Attributes:
      tree: the histories.
      strategy: float [T], current strategies and chance probabilities.
      draws: float [D - 1], uniform in [0, 1) and independent.
      targeted: bool scalar, whether it is led to the target; None without targets.
      share: float scalar, weight of the trajectory in all sums.
      player: int32 scalar, whose values are sampled.
      past: what the player played so far; None where nobody asks.
    """

    tree: FlatTree
    strategy: jax.Array
    draws: jax.Array
    targeted: jax.Array | None
    share: jax.Array
    player: jax.Array
    past: Past | None


class _Stack(NamedTuple):
    """The visits from the root, all or those to update; D - 1 places each.

    Attributes:
      history: int32.
      action: int32, the followed one.
      rho: float, how likely a trajectory follows it.
      sigma: float, how likely its player takes it.
      weight: float, w(h), negative for player 1; 0 where nothing is to be updated.
    """

    history: jax.Array
    action: jax.Array
    rho: jax.Array
    sigma: jax.Array
    weight: jax.Array


class _Front(NamedTuple):
    """Where a walk is on its way down, all scalars.

    Attributes:
      history, point, depth: int32.
      place: int32, the next place on the stack.
      weight: float, reach of the others over the probability that an untargeted walk
        comes here, times the share.
      ratio: float or None, targeted over untargeted probability to come here.
      listed: bool, whether the point is in the list.
    """

    history: jax.Array
    point: jax.Array
    depth: jax.Array
    place: jax.Array
    weight: jax.Array
    ratio: jax.Array | None
    listed: jax.Array


def outcome(
    inputs: WalkInputs,
    baseline: jax.Array | None,
    scratch: Scratch,
    config: MCCFRConfig,
) -> tuple[jax.Array | None, Scratch, jax.Array]:
    """A trajectory that follows one action everywhere.

    Args:
      inputs: what it reads.
      baseline: float [T] ("average") or [N] ("expected"), those so far; None without.
      scratch: of the batch so far.
      config: exploration and baselines.

    Returns:
      The baselines after it, the batch's scratch, and the trajectory's estimate of
      player 0's utility.
    """
    tree, share = inputs.tree, inputs.share
    no_player = len(tree.code) - 1
    root = at(tree.point, jnp.int32(0))
    front = _Front(
        history=jnp.int32(0),
        point=root,
        depth=jnp.int32(0),
        place=jnp.int32(0),
        weight=share,
        ratio=None if tree.target is None else jnp.ones_like(share),
        listed=at(scratch.listed, root),
    )
    places = len(inputs.draws)
    numbers = jnp.zeros(places, share.dtype)
    indices = jnp.zeros(places, jnp.int32)
    stack = _Stack(indices, indices, numbers, numbers, numbers)
    front, stack, scratch = jax.lax.while_loop(
        lambda s: s[0].point != no_player,
        lambda s: _descend(inputs, config, *s),
        (front, stack, scratch),
    )
    utility = at(tree.utility, front.history)
    up = _Rising(front.place, utility, utility, baseline, scratch.pending)
    up = jax.lax.while_loop(
        lambda up: up.place > 0, lambda up: _ascend(inputs, config, stack, up), up
    )
    return up.baseline, scratch._replace(pending=up.pending), up.estimate


def _descend(
    inputs: WalkInputs,
    config: MCCFRConfig,
    front: _Front,
    stack: _Stack,
    scratch: Scratch,
) -> tuple[_Front, _Stack, Scratch]:
    """Chooses an action and moves on to the next history."""
    tree, point = inputs.tree, front.point
    first, code = at(tree.first, point), at(tree.code, point)
    count, actor = code >> 2, code & 3
    is_updating = actor == inputs.player
    likely = _explored(inputs, config, first, count, is_updating)
    child = at(tree.first_child, front.history)
    gain = None
    if tree.target is not None:
        gain = _gain(tree.target, likely, child, count)
    draw = at(inputs.draws, front.depth)
    action = choose(_led(likely, gain, inputs.targeted), count, draw)
    rho, sigma = likely(action), at(inputs.strategy, first + action)
    weight, visit_rho, ratio = front.weight, rho, front.ratio
    if gain is not None and ratio is not None:
        # With r = q_targeted / q_free, the mixture of targeted and free trajectories
        # is q_free (delta r + 1 - delta).
        mixed = config.delta * ratio + 1 - config.delta
        ratio = ratio * gain(action)
        visit_rho = rho * (config.delta * ratio + 1 - config.delta) / mixed
        weight = weight / mixed
    sign = (1 - 2 * inputs.player).astype(weight.dtype)
    visit = _Stack(
        history=front.history,
        action=action,
        rho=visit_rho,
        sigma=sigma,
        weight=jnp.where(is_updating, sign * weight, 0),
    )
    stack = jax.tree.map(lambda rows, row: put(rows, front.place, row), stack, visit)
    scratch = enlist(scratch, point, front.listed, is_updating)
    history = child + action
    after = at(tree.point, history)
    front = _Front(
        history=history,
        point=after,
        depth=front.depth + 1,
        # Others draw from their own strategies: sigma / rho is one, and without a
        # baseline the value passes through.
        place=front.place + jnp.where(is_updating, 1, 0 if _skips(tree, config) else 1),
        weight=front.weight / jnp.where(is_updating, rho, 1),
        ratio=ratio,
        listed=at(scratch.listed, after),
    )
    return front, stack, scratch


def _explored(
    inputs: WalkInputs,
    config: MCCFRConfig,
    first: jax.Array,
    count: jax.Array,
    is_updating: jax.Array,
) -> Chance:
    """How likely a trajectory that is not targeted follows each action.

    Args:
      inputs: what the walk reads.
      config: exploration.
      first: int32 scalar, the first action's entry.
      count: int32 scalar, the number of actions.
      is_updating: bool scalar, whether the updating player acts; others do not explore.
    """
    epsilon = jnp.where(is_updating, jnp.asarray(config.epsilon, inputs.share.dtype), 0)
    even = epsilon / count.astype(epsilon.dtype)

    def likely(action: jax.Array) -> jax.Array:
        explored = even
        if config.explore == "balanced":
            explored = epsilon * at(inputs.tree.balanced, first + action)
        return (1 - epsilon) * at(inputs.strategy, first + action) + explored

    return likely


def _led(likely: Chance, gain: Chance | None, targeted: jax.Array | None) -> Chance:
    """How likely a trajectory follows each action, targeted or not."""
    if gain is None or targeted is None:
        return likely
    return lambda action: likely(action) * jnp.where(targeted, gain(action), 1)


def _skips(tree: FlatTree, config: MCCFRConfig) -> bool:
    """Whether visits that are not updated have no part in the way up."""
    return config.baseline == "none" and tree.target is None


def _gain(
    target: jax.Array, likely: Chance, child: jax.Array, count: jax.Array
) -> Chance:
    """How much likelier a targeted trajectory follows each action."""
    mass = jax.lax.fori_loop(
        0,
        count,
        lambda a, total: total + jnp.where(at(target, child + a), likely(a), 0),
        jnp.zeros_like(likely(jnp.int32(0))),
    )
    leads = mass > 0
    share = 1 / jnp.where(leads, mass, 1)
    return lambda a: jnp.where(leads, jnp.where(at(target, child + a), share, 0), 1)


def choose(chance: Chance, count: jax.Array, draw: jax.Array) -> jax.Array:
    """int32, an action by a draw in [0, 1).

    Where rounding leaves the sum below the draw it is the last one that can be chosen.
    """

    def further(s: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return (s[1] <= draw) & (s[0] < count)

    def look(
        s: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        action, total, chosen = s
        probability = chance(action)
        return (
            action + 1,
            total + probability,
            jnp.where(probability > 0, action, chosen),
        )

    zero = jnp.int32(0)
    start = (zero, jnp.zeros_like(draw), zero)
    chosen: jax.Array = jax.lax.while_loop(further, look, start)[2]
    return chosen


def enlist(
    scratch: Scratch, point: jax.Array, listed: jax.Array, visited: jax.Array
) -> Scratch:
    """Puts a point into the list, once.

    Args:
      scratch: the batch's.
      point: int32 scalar.
      listed: bool scalar, whether it is in the list; read before.
      visited: bool scalar, whether it is to be listed.
    """
    return scratch._replace(
        listed=put(scratch.listed, point, listed | visited),
        # Where it is not to be listed the next one is written over it.
        points=put(scratch.points, scratch.length, point),
        length=scratch.length + (visited & ~listed),
    )


class _Rising(NamedTuple):
    """A walk on its way up.

    Attributes:
      place: int32 scalar, the place on the stack of the last visit that is done.
      estimate: float scalar, sampled utility of player 0 there.
      below: float scalar, what the baselines expect there now.
      baseline: see `outcome`.
      pending: see `Scratch`.
    """

    place: jax.Array
    estimate: jax.Array
    below: jax.Array
    baseline: jax.Array | None
    pending: jax.Array


def _ascend(
    inputs: WalkInputs, config: MCCFRConfig, stack: _Stack, rising: _Rising
) -> _Rising:
    """Takes the value of the followed action in, at the last visit not yet done."""
    place, estimate, below, baseline, pending = rising
    place = place - 1
    history = at(stack.history, place)
    point = at(inputs.tree.point, history)
    first, count = at(inputs.tree.first, point), at(inputs.tree.code, point) >> 2
    chosen, sigma = at(stack.action, place), at(stack.sigma, place)
    rho, weight = at(stack.rho, place), at(stack.weight, place)
    if baseline is None:
        begin, guess = first, jnp.zeros_like(estimate)
        excess = estimate / rho
        mean = sigma * excess
    else:
        begin = first
        if config.baseline != "average":
            begin = at(inputs.tree.first_child, history)

        def learn(a: jax.Array, s: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            table, old, expected, guess = s
            new = below
            if config.baseline == "average":
                new = old + config.decay * (estimate - old)
            follows = a == chosen
            table = put(table, begin + a, jnp.where(follows, new, old))
            expected = expected + at(inputs.strategy, first + a) * old
            guess = jnp.where(follows, old, guess)
            after = at(table, begin + jnp.minimum(a + 1, count - 1))
            return table, after, expected, guess

        zero = jnp.zeros_like(estimate)
        start = (baseline, at(baseline, begin), zero, zero)
        learnt = jax.lax.fori_loop(0, count, learn, start)
        baseline, _, expected, guess = learnt
        excess = (estimate - guess) / rho
        mean = expected + sigma * excess
        below = expected + sigma * (below - guess)

    def gain(a: jax.Array, gains: jax.Array) -> jax.Array:
        value = jnp.where(a == chosen, excess, 0)
        if baseline is not None:
            # What the estimate was made with: of the followed action it has changed.
            value = value + jnp.where(a == chosen, guess, at(baseline, begin + a))
        return add(gains, first + a, weight * (value - mean))

    ends = jnp.where(weight != 0, count, 0)
    pending = jax.lax.fori_loop(0, ends, gain, pending)
    return _Rising(place, mean, below, baseline, pending)


def at(array: jax.Array, index: jax.Array) -> jax.Array:
    """array[index], which must exist."""
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def put(array: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """The array with another value at an index, which must exist."""
    return array.at[index].set(
        value, mode="promise_in_bounds", wrap_negative_indices=False
    )


def add(array: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """The array with a value added at an index, which must exist."""
    return array.at[index].add(
        value, mode="promise_in_bounds", wrap_negative_indices=False
    )
