"""Outcome sampling of one trajectory at a time, as scalar code.

The mathematics is that of `trajectories.py`. There, a batch moves through the depths
together and each depth is array code. Here, loops over depths and actions process a
single trajectory. XLA compiles them to one piece of machine code whose cost depends
only on the visited histories. The updating player's visited infosets are recorded in a
list, so that the update (`visited.py`) does not need to search for them.

In these loops, a step writes to an array before it reads from it: each step reads the
entries that the next step needs at its end and passes them on. If a step read an array
before writing to it, XLA would copy the complete array.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr.flat_tree import FlatTree

# Function that returns the probability of an action.
Chance: TypeAlias = Callable[[jax.Array], jax.Array]


class DoubleSums(NamedTuple):
    """Numbers with more digits than one array can store: `high + low`."""

    high: jax.Array
    low: jax.Array


class Past(NamedTuple):
    """Sums of a player's past reach, for average-strategy sampling.

    Attributes:
      sums: Sums by entry up to their last update (see `visited.py`), two float [T].
      taken: Sums of the infosets' parent sequences at the last update of each infoset,
        two float [P].
      start: Sum of the player's empty sequence, float scalar.
      unit: Factor that scales the weight of the last iteration to 1, float scalar.
    """

    sums: DoubleSums
    taken: DoubleSums
    start: jax.Array
    unit: jax.Array

    def sum_of(self, entry: jax.Array) -> jax.Array:
        """Return the sum of a sequence, a float."""
        return at(self.sums.high, entry) + at(self.sums.low, entry)

    def taken_at(self, point: jax.Array) -> jax.Array:
        """Return an infoset's parent-sequence sum at its last update, a float."""
        return at(self.taken.high, point) + at(self.taken.low, point)


class Scratch(NamedTuple):
    """Output of a batch that the update consumes; empty between iterations.

    Attributes:
      pending: Sums of the batch's sampled regrets, float [T]. If several actions are
        followed, these are sampled values, which the update converts to regrets.
      listed: Mask of the points in the list, bool [P].
      points: Visited infosets of the updating player, ancestors first, int32 [P].
      length: Number of points in the list, int32 scalar.
    """

    pending: jax.Array
    listed: jax.Array
    points: jax.Array
    length: jax.Array


class WalkInputs(NamedTuple):
    """Read-only inputs of a sampled trajectory.

    Attributes:
      tree: Histories of the game.
      strategy: Current strategies and chance probabilities, float [T].
      draws: Independent random numbers, uniform in [0, 1), float [D - 1].
      targeted: Flag of a trajectory that must reach the target, bool scalar; None
        without targets.
      share: Weight of the trajectory in all sums, float scalar.
      player: Player whose values are sampled, int32 scalar.
      past: Sums of the player's past reach; None except in average-strategy sampling.
    """

    tree: FlatTree
    strategy: jax.Array
    draws: jax.Array
    targeted: jax.Array | None
    share: jax.Array
    player: jax.Array
    past: Past | None


class _Stack(NamedTuple):
    """Visits since the root: all, or only those to update; D - 1 rows each.

    Attributes:
      history: Number of the history, int32.
      action: Sampled action, int32.
      rho: Probability that a trajectory follows the action, float.
      sigma: Probability that the acting player chooses the action, float.
      weight: Importance weight w(h), float; negative for player 1, and 0 at visits that
        are not updated.
    """

    history: jax.Array
    action: jax.Array
    rho: jax.Array
    sigma: jax.Array
    weight: jax.Array


class _PathPosition(NamedTuple):
    """Position of a trajectory during the descent; all attributes are scalars.

    Attributes:
      history, point, depth: Numbers of the current history, point and depth, int32.
      place: Next free row on the stack, int32.
      weight: Reach of the others divided by the probability that an untargeted
        trajectory reaches the history, times the share, float.
      ratio: Quotient of the targeted and the untargeted probability of reaching the
        history, float; None without targets.
      listed: Flag of a point that is already in the list, bool.
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
    """Sample a trajectory that follows one action at each history.

    Args:
      inputs: Read-only inputs.
      baseline: Baselines so far, float [T] ("average") or [N] ("expected"); None
        without baselines.
      scratch: Output of the batch so far.
      config: Settings of exploration and baselines.

    Returns:
      The new baselines, the output of the batch including this trajectory, and the
      trajectory's estimate of player 0's utility.
    """
    tree, share = inputs.tree, inputs.share
    no_player = len(tree.code) - 1
    root = at(tree.point, jnp.int32(0))
    position = _PathPosition(
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
    position, stack, scratch = jax.lax.while_loop(
        lambda s: s[0].point != no_player,
        lambda s: _descend(inputs, config, *s),
        (position, stack, scratch),
    )
    utility = at(tree.utility, position.history)
    up = _Rising(position.place, utility, utility, baseline, scratch.pending)
    up = jax.lax.while_loop(
        lambda up: up.place > 0, lambda up: _ascend(inputs, config, stack, up), up
    )
    return up.baseline, scratch._replace(pending=up.pending), up.estimate


def _descend(
    inputs: WalkInputs,
    config: MCCFRConfig,
    position: _PathPosition,
    stack: _Stack,
    scratch: Scratch,
) -> tuple[_PathPosition, _Stack, Scratch]:
    """Sample an action and move on to the next history."""
    tree, point = inputs.tree, position.point
    first, code = at(tree.first, point), at(tree.code, point)
    count, actor = code >> 2, code & 3
    is_updating = actor == inputs.player
    likely = _explored(inputs, config, first, count, is_updating)
    child = at(tree.first_child, position.history)
    gain = None
    if tree.target is not None:
        gain = _gain(tree.target, likely, child, count)
    draw = at(inputs.draws, position.depth)
    action = choose(_led(likely, gain, inputs.targeted), count, draw)
    rho, sigma = likely(action), at(inputs.strategy, first + action)
    weight, visit_rho, ratio = position.weight, rho, position.ratio
    if gain is not None and ratio is not None:
        # With r = q_targeted / q_free, the mixture of targeted and free trajectories
        # is q_free (delta r + 1 - delta).
        mixed = config.delta * ratio + 1 - config.delta
        ratio = ratio * gain(action)
        visit_rho = rho * (config.delta * ratio + 1 - config.delta) / mixed
        weight = weight / mixed
    sign = (1 - 2 * inputs.player).astype(weight.dtype)
    visit = _Stack(
        history=position.history,
        action=action,
        rho=visit_rho,
        sigma=sigma,
        weight=jnp.where(is_updating, sign * weight, 0),
    )
    stack = jax.tree.map(lambda rows, row: put(rows, position.place, row), stack, visit)
    scratch = enlist(scratch, point, position.listed, is_updating)
    history = child + action
    after = at(tree.point, history)
    position = _PathPosition(
        history=history,
        point=after,
        depth=position.depth + 1,
        # Others sample from their own strategies, so sigma / rho is 1. Without a
        # baseline their visits do not change the value and are omitted.
        place=position.place
        + jnp.where(is_updating, 1, 0 if _skips(tree, config) else 1),
        weight=position.weight / jnp.where(is_updating, rho, 1),
        ratio=ratio,
        listed=at(scratch.listed, after),
    )
    return position, stack, scratch


def _explored(
    inputs: WalkInputs,
    config: MCCFRConfig,
    first: jax.Array,
    count: jax.Array,
    is_updating: jax.Array,
) -> Chance:
    """Return the action probabilities of an untargeted trajectory, as a function.

    Args:
      inputs: Read-only inputs.
      config: Settings of exploration.
      first: Entry of the first action, int32 scalar.
      count: Number of actions, int32 scalar.
      is_updating: Flag of histories where the updating player acts, bool scalar; other
        players do not explore.
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
    """Return the action probabilities of a trajectory as a function.

    The trajectory may be targeted.
    """
    if gain is None or targeted is None:
        return likely
    return lambda action: likely(action) * jnp.where(targeted, gain(action), 1)


def _skips(tree: FlatTree, config: MCCFRConfig) -> bool:
    """Return True if the backward pass can omit visits that are not updated."""
    return config.baseline == "none" and tree.target is None


def _gain(
    target: jax.Array, likely: Chance, child: jax.Array, count: jax.Array
) -> Chance:
    """Return the factors by which a target changes probabilities, as a function."""
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
    """Return the action that a random number in [0, 1) selects, int32.

    If the probabilities sum to less than the random number because of rounding, the
    result is the last action with a positive probability.
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
    """Add a point to the list unless it is already listed.

    Args:
      scratch: Output of the batch so far.
      point: Number of the point, int32 scalar.
      listed: Value of `scratch.listed` at the point, read before this call, bool
        scalar.
      visited: Flag of points that belong in the list, bool scalar.
    """
    return scratch._replace(
        listed=put(scratch.listed, point, listed | visited),
        # If the point is not added, the next point overwrites it.
        points=put(scratch.points, scratch.length, point),
        length=scratch.length + (visited & ~listed),
    )


class _Rising(NamedTuple):
    """State of the backward pass of a trajectory.

    Attributes:
      place: Row on the stack of the last processed visit, int32 scalar.
      estimate: Sampled utility of player 0 at this visit, float scalar.
      below: Expectation of the baselines at this visit, float scalar.
      baseline: Baselines as in `outcome`.
      pending: Sampled regrets as in `Scratch`.
    """

    place: jax.Array
    estimate: jax.Array
    below: jax.Array
    baseline: jax.Array | None
    pending: jax.Array


def _ascend(
    inputs: WalkInputs, config: MCCFRConfig, stack: _Stack, rising: _Rising
) -> _Rising:
    """Process the value of the followed action at the next visit towards the root."""
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
            # The estimate used the old baselines. The table already contains the new
            # value of the followed action, so its old value is `guess`.
            value = value + jnp.where(a == chosen, guess, at(baseline, begin + a))
        return add(gains, first + a, weight * (value - mean))

    ends = jnp.where(weight != 0, count, 0)
    pending = jax.lax.fori_loop(0, ends, gain, pending)
    return _Rising(place, mean, below, baseline, pending)


def at(array: jax.Array, index: jax.Array) -> jax.Array:
    """Return `array[index]` for an index that must exist."""
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def put(array: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """Return the array with a new value at an index that must exist."""
    return array.at[index].set(
        value, mode="promise_in_bounds", wrap_negative_indices=False
    )


def add(array: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """Return the array with a value added at an index that must exist."""
    return array.at[index].add(
        value, mode="promise_in_bounds", wrap_negative_indices=False
    )
