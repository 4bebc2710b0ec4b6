"""The way of sampled trajectories down the histories.

`descend` chooses actions at one depth for a whole batch, and keeps what the way up
needs (`baselines.Visit`). The mathematics is in `trajectories.py`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.cfr.config import MCCFRConfig
from spiel_cr.mccfr import baselines, sample_tree
from spiel_cr.mccfr.sample_tree import consecutive, take
from spiel_cr.sequence_form import treeplex

# Numbers that belong to different actions or visits of one trajectory are this far
# apart, modulo 1 (the golden ratio's fraction: far from all small fractions).
_STRIDE = 0.6180339887498949
WEYL = np.uint32(2654435769)
# Draws stay below 1 by more than the rounding error of a sum of probabilities.
_BELOW_ONE = 1 - 2.0**-22


class Tables(NamedTuple):
    """What trajectories read, T entries (see `sample_tree.py`) and padding behind.

    Attributes:
      strategy: float [T + A], current strategies and chance probabilities.
      cumulative: float [T + A], weighted sum of past strategies, for average-strategy
        sampling; None otherwise.
      baseline: see `baselines.py`.
      known: bool [T + A], infosets in the incremental tree, at their first entry; None
        where the tree is not built incrementally.
    """

    strategy: jax.Array
    cumulative: jax.Array | None
    baseline: baselines.Table
    known: jax.Array | None


class Front(NamedTuple):
    """The visits at one depth on the way down; M places.

    Attributes:
      history: int32 [M], index in the level.
      weight: float [M], reach of the others over the probability that an untargeted
        trajectory comes here, times the trajectory's share of the batch.
      ratio: float [M] or None, targeted over untargeted probability to come here.
      own: float [M] or None, own reach times the share, over the probability.
      in_tree: bool [M] or None, in the incremental tree.
      trajectory: int32 [M], the index of the trajectory.
    """

    history: jax.Array
    weight: jax.Array
    ratio: jax.Array | None
    own: jax.Array | None
    in_tree: jax.Array | None
    trajectory: jax.Array


class Batch(NamedTuple):
    """What all depths need: the arguments of `sample`; B trajectories."""

    tree: sample_tree.SampleTree
    tables: Tables
    targeted: jax.Array | None
    plan: sample_tree.Plan
    player: int
    config: MCCFRConfig
    size: int


def top(batch: Batch, shares: jax.Array) -> Front:
    """All trajectories at the root.

    Args:
      batch: the batch.
      shares: float [B], weight of each trajectory in all sums.
    """
    return Front(
        history=jnp.zeros(batch.size, jnp.int32),
        weight=shares,
        ratio=None if batch.targeted is None else jnp.ones_like(shares),
        own=shares if batch.config.averaging == "sampled" else None,
        in_tree=None if batch.tables.known is None else jnp.ones(batch.size, bool),
        trajectory=jnp.arange(batch.size, dtype=jnp.int32),
    )


def follows_several(
    plan: sample_tree.Plan, depth: int, player: int, scheme: str
) -> bool:
    """Whether a sample can follow more than one action at some history of a depth."""
    return scheme != "outcome" and player in plan[depth].players


def descend(
    batch: Batch, known: jax.Array | None, front: Front, draws: jax.Array, depth: int
) -> tuple[baselines.Visit, jax.Array | None, Front]:
    """Chooses actions at one depth and moves on to the next.

    Args:
      batch: the batch.
      known: the incremental tree so far, None where there is none.
      front: the visits at this depth.
      draws: float [D - 1, B], see `trajectories.sample`.
      depth: this one.

    Returns:
      What the way up needs, the incremental tree, and the next front.
    """
    draw = draws[depth]
    if any(
        follows_several(batch.plan, d, batch.player, batch.config.scheme)
        for d in range(depth)
    ):
        # The visits of one trajectory share its draw; keep them apart.
        # Whole numbers wrap around without losing digits: multiples of the golden ratio
        # modulo 1, in units of 2^-32.
        places = jnp.arange(len(front.trajectory), dtype=jnp.uint32) * WEYL
        draw = (draw[front.trajectory] + places.astype(draw.dtype) * 2.0**-32) % 1
    shape, level = batch.plan[depth], batch.tree.levels[depth]
    config, history = batch.config, front.history
    row, count = level.row[history], level.num_actions[history]
    own = level.player[history] == batch.player
    actions = jnp.arange(shape.width, dtype=jnp.int32)[:, None]
    legal = None if shape.full else actions < count[None]
    entries = consecutive(row, shape.width)
    sigma = _mask(batch.tables.strategy[entries], legal)
    rho = sigma
    if batch.player in shape.players:
        in_tree = own if front.in_tree is None else own & front.in_tree
        rho = jnp.where(
            in_tree[None], _explore(batch, entries, count, legal, sigma), sigma
        )
    every = own if config.scheme != "outcome" else jnp.zeros_like(own)
    gain, by_trajectory = None, rho
    if batch.targeted is not None:
        gain = _gain(batch, history, rho, every, depth)
        targeted = batch.targeted[front.trajectory]
        by_trajectory = jnp.where(targeted[None], rho * gain, rho)

    chosen, slots = _choose(by_trajectory, draw), None
    several = follows_several(batch.plan, depth, batch.player, config.scheme)
    if several:
        included = _include(by_trajectory, draw)
        follow = jnp.where(every[None], included, actions == chosen[None])
        follow = _mask(follow, count[None] > 0)
        capacity = batch.size * batch.plan[depth + 1].slots[batch.player]
        slots, parent, taken, empty = _pack(follow, capacity)
        positive = jnp.where(follow, rho, 1)
        step = _Step(parent, taken, positive[taken, parent], sigma[taken, parent])
        child = level.first_child[history[parent]] + taken
        child = jnp.where(empty, level.first_child[-1], child)
    else:
        positive = take(rho, chosen)
        if not shape.full:
            positive = jnp.where(count > 0, positive, 1)
        step = _Step(None, chosen, positive, take(sigma, chosen))
        child = level.first_child[history]
        child = child + (chosen if shape.full else jnp.where(count > 0, chosen, 0))

    visit = baselines.Visit(
        history=history,
        row=row,
        sigma=sigma,
        legal=legal,
        over=None if shape.full else count == 0,
        chosen=None if several else chosen,
        slots=slots,
        rho=positive,
        weight=front.weight * own * (1 - 2 * batch.player),
        own=None if front.own is None else front.own * own,
        in_tree=front.in_tree,
    )
    weighs = several or batch.player in shape.players
    ahead = _advance(front, own, step, child, weighs)
    if gain is not None:
        visit, ahead = _mix(config.delta, front, visit, ahead, gain, step)
    if front.in_tree is not None and known is not None:
        visit, ahead, known = _grow(batch, known, level, visit, ahead, step)
    return visit, known, ahead


class _Step(NamedTuple):
    """The followed actions, M' of them, in the order of the next front.

    Attributes:
      parent: int32 [M'], the visit that each comes from; None: one each, in order.
      action: int32 [M'].
      rho: float [M'], how likely an untargeted trajectory follows it.
      sigma: float [M'], how likely its player takes it.
    """

    parent: jax.Array | None
    action: jax.Array
    rho: jax.Array
    sigma: jax.Array

    def lift(self, values: jax.Array) -> jax.Array:
        """[M] of visits to [M'] of followed actions."""
        return values if self.parent is None else values[self.parent]

    def pick(self, rows: jax.Array) -> jax.Array:
        """[A, M] to [M'] of followed actions."""
        if self.parent is not None:
            return rows[self.action, self.parent]
        return take(rows, self.action)


def _advance(
    front: Front, own: jax.Array, step: _Step, child: jax.Array, weighs: bool
) -> Front:
    """The next front, but for targeting and the incremental tree.

    Args:
      front: the visits.
      own: bool [M], whether the updating player acts there.
      step: what they follow.
      child: int32 [M'], the histories that come next.
      weighs: whether a weight can change: the player acts, or several are followed.
    """
    mine, weight, own_weight = step.lift(own), step.lift(front.weight), front.own
    if weighs:
        # Where the others draw one action from sigma, sigma / rho is one.
        others = step.rho if step.parent is None else step.sigma
        weight = weight * jnp.where(mine, 1, others) / step.rho
    if own_weight is not None:
        own_weight = step.lift(own_weight) * jnp.where(mine, step.sigma, 1) / step.rho
    trajectory = step.lift(front.trajectory)
    return front._replace(
        history=child, weight=weight, own=own_weight, trajectory=trajectory
    )


def _mix(
    delta: float,
    front: Front,
    visit: baselines.Visit,
    ahead: Front,
    gain: jax.Array,
    step: _Step,
) -> tuple[baselines.Visit, Front]:
    """Puts the probabilities of targeted and free trajectories together.

    Until here they were those of free ones. With r = q_targeted / q_free, the mixture
    is q_free (delta r + 1 - delta).
    """
    assert front.ratio is not None
    mixed = delta * front.ratio + 1 - delta
    ratio = step.lift(front.ratio) * step.pick(gain)
    after = ratio if step.parent is None else front.ratio[None] * gain
    share = mixed if step.parent is None else mixed[None]
    rho = visit.rho * (delta * after + 1 - delta) / share
    visit = visit._replace(
        rho=rho,
        weight=visit.weight / mixed,
        own=None if visit.own is None else visit.own / mixed,
    )
    return visit, ahead._replace(ratio=ratio)


def _grow(
    batch: Batch,
    known: jax.Array,
    level: sample_tree.SampleLevel,
    visit: baselines.Visit,
    ahead: Front,
    step: _Step,
) -> tuple[baselines.Visit, Front, jax.Array]:
    """Adds the first unknown infoset on each trajectory; what is below is a rollout."""
    assert visit.in_tree is not None and batch.tables.known is not None
    decides = level.player[visit.history] <= 1
    adds = jnp.where(visit.in_tree & decides, visit.row, len(known) - 1)
    in_tree = visit.in_tree & (batch.tables.known[visit.row] | ~decides)
    visit = visit._replace(
        weight=visit.weight * visit.in_tree,
        own=None if visit.own is None else visit.own * visit.in_tree,
    )
    return visit, ahead._replace(in_tree=step.lift(in_tree)), known.at[adds].set(True)


def _explore(
    batch: Batch,
    entries: jax.Array,
    count: jax.Array,
    legal: jax.Array | None,
    sigma: jax.Array,
) -> jax.Array:
    """float [A, M], how likely a trajectory follows each own action."""
    config = batch.config
    if config.scheme == "outcome":
        even = 1 / jnp.maximum(count, 1).astype(sigma.dtype)[None]
        if config.explore == "balanced":
            even = batch.tree.balanced[entries]
        mixed = (1 - config.epsilon) * sigma + config.epsilon * even
        return _mask(mixed, legal)
    if config.scheme == "external":
        return _mask(jnp.ones_like(sigma), legal)
    assert batch.tables.cumulative is not None
    past = _mask(batch.tables.cumulative[entries], legal)
    # Gibson et al. 2012, equation 7.
    share = (config.bonus + config.threshold * past) / (
        config.bonus + treeplex.sum_rows(past)[None]
    )
    return _mask(jnp.clip(share, config.epsilon, 1), legal)


def _gain(
    batch: Batch, history: jax.Array, rho: jax.Array, every: jax.Array, depth: int
) -> jax.Array:
    """float [A, M], how much likelier targeted trajectories follow each action."""
    after = batch.tree.levels[depth + 1].target
    assert after is not None
    first = batch.tree.levels[depth].first_child[history]
    allowed = after[consecutive(first, rho.shape[0])]
    mass = treeplex.sum_rows(jnp.where(allowed, rho, 0))
    # One action is drawn anew among the allowed ones; of several, the others are left.
    gain = allowed / jnp.where(every | (mass == 0), 1, mass)[None]
    return jnp.where(mass[None] > 0, gain, 1)


def _choose(probabilities: jax.Array, draw: jax.Array) -> jax.Array:
    """int32 [M], one action of each column of float [A, M], by a draw in [0, 1)."""
    width = probabilities.shape[0]
    total = treeplex.sum_rows(probabilities)
    draw = jnp.minimum(draw, _BELOW_ONE) * total
    chosen = jnp.zeros(draw.shape, jnp.int32)
    below = jnp.zeros_like(draw)
    for a in range(width - 1):
        below = below + probabilities[a]
        chosen = chosen + (draw >= below)
    return chosen


def _include(probabilities: jax.Array, draw: jax.Array) -> jax.Array:
    """bool [A, M], each action with its own probability.

    Gibson et al. draw independently for each action; here one shifted draw serves all,
    with the same probabilities.
    """
    actions = jnp.arange(probabilities.shape[0], dtype=draw.dtype)[:, None]
    return (draw[None] + _STRIDE * actions) % 1 < probabilities


def _pack(
    follow: jax.Array, places: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Puts all followed actions into one row of `places`.

    Args:
      follow: bool [A, M].
      places: at least as many as are followed.

    Returns:
      int32 [A, M], the place of each, `places` where not followed; and for each place
      int32 its visit, int32 its action, bool whether it stayed empty.
    """
    width = follow.shape[0]
    flat = follow.T.reshape(-1)
    place = jnp.where(flat, jnp.cumsum(flat, dtype=jnp.int32) - 1, places)
    numbers = jnp.arange(len(flat), dtype=jnp.int32)
    source = jnp.full(places, -1, jnp.int32).at[place].set(numbers, mode="drop")
    at = jnp.maximum(source, 0)
    return place.reshape(-1, width).T, at // width, at % width, source < 0


def _mask(rows: jax.Array, where: jax.Array | None) -> jax.Array:
    """Zero where not."""
    return rows if where is None else jnp.where(where, rows, jnp.zeros_like(rows))
