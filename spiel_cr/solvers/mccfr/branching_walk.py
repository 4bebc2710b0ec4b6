"""Sampling that follows several actions, one trajectory at a time, as scalar code.

As `walk.py`, but of the updating player's actions several are followed, one after
another, depth first: all of them in external sampling (Lanctot et al. 2009, "Monte
Carlo sampling for regret minimization in extensive games", section 3.2), in
average-strategy sampling each with a probability that grows with its share in the
average strategy (Gibson et al. 2012, "Efficient Monte Carlo counterfactual regret
minimization in games with many player actions"). The frames of the own infosets on the
way are a stack, and the last of them is kept apart in scalars, so that no turn of a
loop reads a stack that it writes.

The others' actions and chance are drawn from their own probabilities, so a visit weighs
what its own actions make it weigh: one over the probability that they were followed.
With rho of an action that probability, what a visit adds to the value of an action is
its weight times the sampled utility over rho, and 0 where the action is not followed.
The update subtracts the strategy's mean.

A depth has one draw in a trajectory. Its visits are kept apart by their places, in the
order in which a batch comes to the depth, and the actions of one by their numbers.
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr.walk import (
    Past,
    Scratch,
    WalkInputs,
    add,
    at,
    choose,
    enlist,
    put,
)

# Numbers that belong to different actions or visits of one trajectory are this far
# apart, modulo 1 (the golden ratio's fraction: far from all small fractions), or in
# units of 2^-32, where whole numbers wrap around without losing digits.
_STRIDE = 0.6180339887498949
_WEYL = np.uint32(2654435769)


class _Reach(NamedTuple):
    """How a walk came to a history, for average-strategy sampling; scalars.

    Attributes:
      weight: float, the trajectory's share over the probability that the own actions on
        the way were followed.
      past: float, the sum of the player's past reaches of its last sequence there.
    """

    weight: jax.Array
    past: jax.Array


class _Choice(NamedTuple):
    """How the actions of an own infoset are chosen, in average-strategy sampling.

    Attributes:
      weight: float, see `_Reach`, of the visit.
      missing: float, what the sums of its actions lack, in units of their strategy.
      total: float, the sum of the past reaches of all its actions.
      draw: float in [0, 1), of the action that is followed now.
      rho: float, how likely that one is followed.
    """

    weight: jax.Array
    missing: jax.Array
    total: jax.Array
    draw: jax.Array
    rho: jax.Array


class _Frame(NamedTuple):
    """An own infoset on the way: scalars, or D - 1 of them on the stack.

    Attributes:
      entry: int32, of the action that is followed now.
      child: int32, the history that it leads to.
      left: int32, how many actions there are after it.
      depth: int32, of the child.
      mean: float, what the actions before it add to the infoset's value.
      choice: how actions are chosen; None: all are followed.
    """

    entry: jax.Array
    child: jax.Array
    left: jax.Array
    depth: jax.Array
    mean: jax.Array
    choice: _Choice | None


class _Front(NamedTuple):
    """Where a walk is, all scalars.

    Attributes:
      history, point, depth: int32.
      place: int32, among the visits at this depth.
      reach: None where all actions are followed.
      listed: bool, whether the point is in the list.
    """

    history: jax.Array
    point: jax.Array
    depth: jax.Array
    place: jax.Array
    reach: _Reach | None
    listed: jax.Array


class _Walk(NamedTuple):
    """All of a walk.

    Attributes:
      front: where it is.
      height: int32 scalar, the number of frames.
      top: the last frame.
      stack: the frames before it, from place 1.
      arrivals: int32 [D], visits of the batch so far by depth.
      scratch: of the batch.
    """

    front: _Front
    height: jax.Array
    top: _Frame
    stack: _Frame
    arrivals: jax.Array
    scratch: Scratch


def sample(
    inputs: WalkInputs, arrivals: jax.Array, scratch: Scratch, config: MCCFRConfig
) -> tuple[jax.Array, Scratch]:
    """A trajectory that follows several actions of the updating player.

    Args:
      inputs: what it reads; without targets.
      arrivals: int32 [D], visits of the batch so far by depth, at depths that follow
        one at which the player decides.
      scratch: of the batch so far.
      config: scheme and exploration.

    Returns:
      The batch's arrivals and scratch, this trajectory included.
    """
    tree, zero = inputs.tree, jnp.int32(0)
    number = jnp.zeros_like(inputs.share)
    empty = _Frame(
        entry=zero,
        child=zero,
        left=zero,
        depth=zero,
        mean=number,
        choice=None if inputs.past is None else _Choice(*[number] * 5),
    )
    places = len(inputs.draws)
    root = at(tree.point, zero)
    start = _Walk(
        front=_Front(
            history=zero,
            point=root,
            depth=zero,
            place=zero,
            reach=None
            if inputs.past is None
            else _Reach(inputs.share, inputs.past.start),
            listed=at(scratch.listed, root),
        ),
        height=zero,
        top=empty,
        stack=jax.tree.map(lambda scalar: jnp.zeros(places, scalar.dtype), empty),
        arrivals=arrivals,
        scratch=scratch,
    )
    splits = tree.decides[inputs.player]
    no_player = len(tree.code) - 1

    def leaf(s: tuple[jax.Array, _Walk]) -> tuple[jax.Array, _Walk]:
        walk = jax.lax.while_loop(
            lambda w: w.front.point != no_player,
            lambda w: _descend(inputs, config, splits, w),
            s[1],
        )
        walk = _ascend(inputs, config, walk)
        return walk.height == 0, _turn(inputs, walk)

    _, walk = jax.lax.while_loop(lambda s: ~s[0], leaf, (jnp.bool_(False), start))
    return walk.arrivals, walk.scratch


def _descend(
    inputs: WalkInputs, config: MCCFRConfig, splits: jax.Array, walk: _Walk
) -> _Walk:
    """Follows the first action of an own infoset, elsewhere one that is drawn."""
    tree, front, scratch = inputs.tree, walk.front, walk.scratch
    point, depth = front.point, front.depth
    first, code = at(tree.first, point), at(tree.code, point)
    count, is_updating = code >> 2, (code & 3) == inputs.player
    draw = _shifted(at(inputs.draws, depth), front.place)
    action = choose(
        lambda action: at(inputs.strategy, first + action),
        count,
        # Below all probabilities: the first action, at once.
        jnp.where(is_updating, -1, draw),
    )
    entry, child = first + action, at(tree.first_child, front.history) + action
    scratch = enlist(scratch, point, front.listed, is_updating)
    # Where no frame comes on top, the next one is written over it.
    stack = jax.tree.map(
        lambda below, top: put(below, walk.height, top), walk.stack, walk.top
    )
    frame = _Frame(
        entry=entry,
        child=child,
        left=jnp.where(is_updating, count - 1, 0),
        depth=depth + 1,
        mean=jnp.zeros_like(walk.top.mean),
        choice=None,
    )
    goes_on = jnp.bool_(True)
    if inputs.past is not None and front.reach is not None:
        frame = _first_followed(inputs, config, frame, front, draw, is_updating)
        assert frame.choice is not None
        goes_on = ~is_updating | _is_followed(frame.choice)
        entry = jnp.where(is_updating, frame.entry, entry)
        child = jnp.where(is_updating, frame.child, child)
    split = at(splits, depth)
    arrivals = add(walk.arrivals, depth + 1, (split & goes_on).astype(jnp.int32))
    # Where no action is followed the walk ends, and is worth nothing: a history that is
    # not over has no utility.
    history = jnp.where(goes_on, child, front.history)
    after = jnp.where(goes_on, at(tree.point, child), len(tree.code) - 1)
    grows = is_updating & goes_on
    return _Walk(
        front=_Front(
            history=history,
            point=after,
            depth=depth + 1,
            place=jnp.where(split, at(arrivals, depth + 1) - 1, front.place),
            reach=_reach_after(inputs, front.reach, frame, is_updating),
            listed=at(scratch.listed, after),
        ),
        height=walk.height + grows,
        top=_either(grows, frame, walk.top),
        stack=stack,
        arrivals=arrivals,
        scratch=scratch,
    )


def _shifted(draw: jax.Array, place: jax.Array) -> jax.Array:
    """A draw for this place, by the golden ratio modulo 1."""
    shift = (place.astype(jnp.uint32) * _WEYL).astype(draw.dtype) * 2.0**-32
    return _wrapped(draw + shift)


def _wrapped(draw: jax.Array) -> jax.Array:
    return jnp.where(draw >= 1, draw - 1, draw)


def _past_of(
    past: Past, strategy: jax.Array, missing: jax.Array, entry: jax.Array
) -> jax.Array:
    """float, the sum of the player's past reaches of a sequence."""
    return past.sum_of(entry) + missing * at(strategy, entry)


def _first_followed(
    inputs: WalkInputs,
    config: MCCFRConfig,
    frame: _Frame,
    front: _Front,
    draw: jax.Array,
    is_updating: jax.Array,
) -> _Frame:
    """The frame of an own infoset at the first action that is followed, if any is.

    Args:
      inputs: what the walk reads.
      config: exploration.
      frame: at the first action.
      front: where the walk is.
      draw: float in [0, 1), of the first action.
      is_updating: bool, whether the updating player acts at all.
    """
    past, reach = inputs.past, front.reach
    assert past is not None and reach is not None
    missing = jnp.where(is_updating, reach.past - past.taken_at(front.point), 0)
    total = jax.lax.fori_loop(
        0,
        jnp.where(is_updating, frame.left + 1, 0),
        lambda a, sum_: (
            sum_ + _past_of(past, inputs.strategy, missing, frame.entry + a)
        ),
        jnp.zeros_like(draw),
    )
    choice = _Choice(reach.weight, missing, total, draw, jnp.zeros_like(draw))
    frame = frame._replace(choice=choice)
    return _skip(inputs, config, _with_rho(inputs, config, frame))


def _with_rho(inputs: WalkInputs, config: MCCFRConfig, frame: _Frame) -> _Frame:
    """A frame with the probability that its action is followed."""
    past, choice = inputs.past, frame.choice
    assert past is not None and choice is not None
    share = _past_of(past, inputs.strategy, choice.missing, frame.entry)
    rho = likelihood(config, share * past.unit, choice.total * past.unit)
    return frame._replace(choice=choice._replace(rho=rho))


def likelihood(config: MCCFRConfig, share: jax.Array, total: jax.Array) -> jax.Array:
    """float, how likely an own action is followed (Gibson et al. 2012, equation 7).

    Args:
      config: epsilon, threshold (tau) and bonus (beta).
      share: float, the sum of past reaches of the action.
      total: float, the sum over all actions of the infoset.
    """
    rho = (config.bonus + config.threshold * share) / (config.bonus + total)
    return jnp.clip(rho, config.epsilon, 1)


def _is_followed(choice: _Choice) -> jax.Array:
    """bool, whether the frame's action is followed.

    Gibson et al. draw independently for each action; here one shifted draw serves all,
    with the same probabilities.
    """
    return choice.draw < choice.rho


def _skip(inputs: WalkInputs, config: MCCFRConfig, frame: _Frame) -> _Frame:
    """The frame at the next action from its own on that is followed; else the last."""

    def missed(frame: _Frame) -> jax.Array:
        assert frame.choice is not None
        return ~_is_followed(frame.choice) & (frame.left > 0)

    return jax.lax.while_loop(missed, lambda f: _next(inputs, config, f), frame)


def _next(inputs: WalkInputs, config: MCCFRConfig, frame: _Frame) -> _Frame:
    """The frame at the next action."""
    frame = frame._replace(
        entry=frame.entry + 1, child=frame.child + 1, left=frame.left - 1
    )
    if frame.choice is None:
        return frame
    draw = _wrapped(frame.choice.draw + _STRIDE)
    frame = frame._replace(choice=frame.choice._replace(draw=draw))
    return _with_rho(inputs, config, frame)


def _reach_after(
    inputs: WalkInputs, reach: _Reach | None, frame: _Frame, is_updating: jax.Array
) -> _Reach | None:
    """How the walk comes to the child of a frame, where the player acts; else as it
    was."""
    choice = frame.choice
    if reach is None or choice is None or inputs.past is None:
        return None
    past = _past_of(inputs.past, inputs.strategy, choice.missing, frame.entry)
    return _Reach(
        weight=jnp.where(is_updating, choice.weight / choice.rho, reach.weight),
        past=jnp.where(is_updating, past, reach.past),
    )


def _either(first: jax.Array, one: _Frame, other: _Frame) -> _Frame:
    chosen: _Frame = jax.tree.map(lambda a, b: jnp.where(first, a, b), one, other)
    return chosen


# Whether it goes on, the value that is taken up, and what of a walk changes: height,
# last frame, and the batch's `pending`.
_Rising: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, _Frame, jax.Array]


def _ascend(inputs: WalkInputs, config: MCCFRConfig, walk: _Walk) -> _Walk:
    """Takes a value up to the next infoset with an action that is still to follow."""
    sign = (1 - 2 * inputs.player).astype(inputs.share.dtype)
    stack = walk.stack

    def credit(s: _Rising) -> _Rising:
        _, value, height, top, pending = s
        weight = sign * inputs.share
        if top.choice is not None:
            value, weight = value / top.choice.rho, sign * top.choice.weight
        pending = add(pending, top.entry, weight * value)
        mean = top.mean + at(inputs.strategy, top.entry) * value
        done = top.left == 0
        moved = _next(inputs, config, top._replace(mean=mean))
        if moved.choice is not None:
            # Past the last action, whose frame nobody goes on with.
            moved = _either(done, top, moved)
            moved = _skip(inputs, config, moved)
            assert moved.choice is not None
            done = done | ~_is_followed(moved.choice)
        below = jax.tree.map(lambda column: at(column, height - 1), stack)
        height = height - done
        return done & (height > 0), mean, height, _either(done, below, moved), pending

    start = (
        walk.height > 0,
        at(inputs.tree.utility, walk.front.history),
        walk.height,
        walk.top,
        walk.scratch.pending,
    )
    _, _, height, top, pending = jax.lax.while_loop(lambda s: s[0], credit, start)
    scratch = walk.scratch._replace(pending=pending)
    return walk._replace(height=height, top=top, scratch=scratch)


def _turn(inputs: WalkInputs, walk: _Walk) -> _Walk:
    """Goes to the child of the last frame; anywhere if there is none."""
    top = walk.top
    arrivals = add(walk.arrivals, top.depth, (walk.height > 0).astype(jnp.int32))
    point = at(inputs.tree.point, top.child)
    return walk._replace(
        front=_Front(
            history=top.child,
            point=point,
            depth=top.depth,
            place=at(arrivals, top.depth) - 1,
            reach=_reach_after(inputs, walk.front.reach, top, jnp.bool_(True)),
            listed=at(walk.scratch.listed, point),
        ),
        arrivals=arrivals,
    )
