"""Sampling of one trajectory that follows several actions, as scalar code.

This module is like `walk.py`, but several actions of the updating player are followed,
one after another and depth first. In external sampling, all actions are followed
(Lanctot et al. 2009, "Monte Carlo sampling for regret minimization in extensive games",
section 3.2). In average-strategy sampling, each action is followed with a probability
that grows with its share in the average strategy (Gibson et al. 2012, "Efficient Monte
Carlo counterfactual regret minimization in games with many player actions"). The frames
of the updating player's infosets on the path form a stack. The last frame is stored
separately in scalars, so that no step of a loop reads a stack that it writes.

The others' actions and chance outcomes are sampled from their own probabilities. The
weight of a visit is therefore one over the probability that the updating player's
actions on the path were followed. Let rho be this probability for one action. A visit
then adds its weight times the sampled utility over rho to the value of a followed
action, and 0 to the value of any other action. The update subtracts the strategy's
mean.

A trajectory has one random number for each depth. Numbers for several visits of a depth
are derived from it by the order of the visits in the batch, and numbers for the actions
of one visit by the order of the actions.
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

# Distance modulo 1 between the random numbers of consecutive actions or visits of one
# trajectory: the fractional part of the golden ratio, which is far from all fractions
# with small denominators. `_WEYL` is the same distance in units of 2^-32, in which
# integers wrap around without losing digits.
_STRIDE = 0.6180339887498949
_WEYL = np.uint32(2654435769)


class _Reach(NamedTuple):
    """Weight and past reach of the updating player at a history, as scalars.

    Only average-strategy sampling uses it.

    Attributes:
      weight: Trajectory's share divided by the probability that the player's actions on
        the path were followed, float.
      past: Sum of the player's past reaches of its last sequence at the history, float.
    """

    weight: jax.Array
    past: jax.Array


class _Choice(NamedTuple):
    """Choice of the followed actions at an infoset, in average-strategy sampling.

    Attributes:
      weight: Weight of the visit as in `_Reach`, float.
      missing: Missing part of the sums of the infoset's actions, in units of their
        strategy, float.
      total: Sum of the past reaches of all actions, float.
      draw: Random number of the current action in [0, 1), float.
      rho: Probability that the current action is followed, float.
    """

    weight: jax.Array
    missing: jax.Array
    total: jax.Array
    draw: jax.Array
    rho: jax.Array


class _Frame(NamedTuple):
    """Infoset of the updating player on the path: scalars, or D - 1 rows of the stack.

    Attributes:
      entry: Entry of the current action, int32.
      child: History after the current action, int32.
      left: Number of actions after the current one, int32.
      depth: Depth of the child, int32.
      mean: Contribution of the earlier actions to the infoset's value, float.
      choice: Choice of the followed actions; None: all actions are followed.
    """

    entry: jax.Array
    child: jax.Array
    left: jax.Array
    depth: jax.Array
    mean: jax.Array
    choice: _Choice | None


class _BranchPosition(NamedTuple):
    """Current position of a trajectory; all attributes are scalars.

    Attributes:
      history, point, depth: Numbers of the current history, point and depth, int32.
      place: Number of the visit among those at this depth, int32.
      reach: Weight and past reach; None if all actions are followed.
      listed: Flag of a point that is already in the list, bool.
    """

    history: jax.Array
    point: jax.Array
    depth: jax.Array
    place: jax.Array
    reach: _Reach | None
    listed: jax.Array


class _BranchingState(NamedTuple):
    """Complete state of the sampling of a trajectory.

    Attributes:
      position: Current position.
      height: Number of frames, int32 scalar.
      top: Last frame.
      stack: Frames before the last one, from row 1.
      arrivals: Visits of the batch so far by depth, int32 [D].
      scratch: Output of the batch so far.
    """

    position: _BranchPosition
    height: jax.Array
    top: _Frame
    stack: _Frame
    arrivals: jax.Array
    scratch: Scratch


def sample(
    inputs: WalkInputs, arrivals: jax.Array, scratch: Scratch, config: MCCFRConfig
) -> tuple[jax.Array, Scratch]:
    """Sample a trajectory that follows several actions of the updating player.

    Args:
      inputs: Read-only inputs, without targets.
      arrivals: Visits of the batch so far by depth, int32 [D]; counted only at depths
        that follow a depth where the player decides.
      scratch: Output of the batch so far.
      config: Settings of the sampling scheme and exploration.

    Returns:
      Arrivals and output of the batch, including this trajectory.
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
    start = _BranchingState(
        position=_BranchPosition(
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

    def leaf(s: tuple[jax.Array, _BranchingState]) -> tuple[jax.Array, _BranchingState]:
        walk = jax.lax.while_loop(
            lambda w: w.position.point != no_player,
            lambda w: _descend(inputs, config, splits, w),
            s[1],
        )
        walk = _ascend(inputs, config, walk)
        return walk.height == 0, _turn(inputs, walk)

    _, walk = jax.lax.while_loop(lambda s: ~s[0], leaf, (jnp.bool_(False), start))
    return walk.arrivals, walk.scratch


def _descend(
    inputs: WalkInputs, config: MCCFRConfig, splits: jax.Array, walk: _BranchingState
) -> _BranchingState:
    """Follow an action of the updating player, or a sampled action of the others."""
    tree, position, scratch = inputs.tree, walk.position, walk.scratch
    point, depth = position.point, position.depth
    first, code = at(tree.first, point), at(tree.code, point)
    count, is_updating = code >> 2, (code & 3) == inputs.player
    draw = _shifted(at(inputs.draws, depth), position.place)
    action = choose(
        lambda action: at(inputs.strategy, first + action),
        count,
        # A negative number selects the first action immediately.
        jnp.where(is_updating, -1, draw),
    )
    entry, child = first + action, at(tree.first_child, position.history) + action
    scratch = enlist(scratch, point, position.listed, is_updating)
    # If no frame is added, the next one overwrites this row.
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
    continues = jnp.bool_(True)
    if inputs.past is not None and position.reach is not None:
        frame = _first_followed(inputs, config, frame, position, draw, is_updating)
        assert frame.choice is not None
        continues = ~is_updating | _is_followed(frame.choice)
        entry = jnp.where(is_updating, frame.entry, entry)
        child = jnp.where(is_updating, frame.child, child)
    split = at(splits, depth)
    arrivals = add(walk.arrivals, depth + 1, (split & continues).astype(jnp.int32))
    # If no action is followed, the path ends here with value 0, because the utility of
    # a nonterminal history is 0.
    history = jnp.where(continues, child, position.history)
    after = jnp.where(continues, at(tree.point, child), len(tree.code) - 1)
    grows = is_updating & continues
    return _BranchingState(
        position=_BranchPosition(
            history=history,
            point=after,
            depth=depth + 1,
            place=jnp.where(split, at(arrivals, depth + 1) - 1, position.place),
            reach=_reach_after(inputs, position.reach, frame, is_updating),
            listed=at(scratch.listed, after),
        ),
        height=walk.height + grows,
        top=_either(grows, frame, walk.top),
        stack=stack,
        arrivals=arrivals,
        scratch=scratch,
    )


def _shifted(draw: jax.Array, place: jax.Array) -> jax.Array:
    """Return a random number shifted for a visit, by the golden ratio modulo 1."""
    shift = (place.astype(jnp.uint32) * _WEYL).astype(draw.dtype) * 2.0**-32
    return _wrapped(draw + shift)


def _wrapped(draw: jax.Array) -> jax.Array:
    return jnp.where(draw >= 1, draw - 1, draw)


def _past_of(
    past: Past, strategy: jax.Array, missing: jax.Array, entry: jax.Array
) -> jax.Array:
    """Return the sum of the player's past reaches of a sequence, float."""
    return past.sum_of(entry) + missing * at(strategy, entry)


def _first_followed(
    inputs: WalkInputs,
    config: MCCFRConfig,
    frame: _Frame,
    position: _BranchPosition,
    draw: jax.Array,
    is_updating: jax.Array,
) -> _Frame:
    """Return an infoset's frame at the first followed action.

    If no action is followed, the frame is at the last action.

    Args:
      inputs: Read-only inputs.
      config: Settings of exploration.
      frame: Frame at the first action.
      position: Current position.
      draw: Random number of the first action in [0, 1), float.
      is_updating: Flag of histories where the updating player acts, bool.
    """
    past, reach = inputs.past, position.reach
    assert past is not None and reach is not None
    missing = jnp.where(is_updating, reach.past - past.taken_at(position.point), 0)
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
    """Return the frame with the probability that its action is followed."""
    past, choice = inputs.past, frame.choice
    assert past is not None and choice is not None
    share = _past_of(past, inputs.strategy, choice.missing, frame.entry)
    rho = likelihood(config, share * past.unit, choice.total * past.unit)
    return frame._replace(choice=choice._replace(rho=rho))


def likelihood(config: MCCFRConfig, share: jax.Array, total: jax.Array) -> jax.Array:
    """Return the probability of following an action (Gibson et al. 2012, equation 7).

    Args:
      config: Settings epsilon, threshold (tau) and bonus (beta).
      share: Sum of past reaches of the action, float.
      total: Sum over all actions of the infoset, float.

    Returns:
      The probability, float.
    """
    rho = (config.bonus + config.threshold * share) / (config.bonus + total)
    return jnp.clip(rho, config.epsilon, 1)


def _is_followed(choice: _Choice) -> jax.Array:
    """Return True if the frame's action is followed, bool.

    Gibson et al. draw independently for each action. Here one shifted random number
    serves all actions, which have the same probabilities.
    """
    return choice.draw < choice.rho


def _skip(inputs: WalkInputs, config: MCCFRConfig, frame: _Frame) -> _Frame:
    """Return the frame at the current action or the next one that is followed.

    If none is followed, the frame is at the last action.
    """

    def missed(frame: _Frame) -> jax.Array:
        assert frame.choice is not None
        return ~_is_followed(frame.choice) & (frame.left > 0)

    return jax.lax.while_loop(missed, lambda f: _next(inputs, config, f), frame)


def _next(inputs: WalkInputs, config: MCCFRConfig, frame: _Frame) -> _Frame:
    """Return the frame at the next action."""
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
    """Return the reach at a frame's child if the player acts, otherwise the old one."""
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


# Loop condition, value of the child, and the changing parts of a `_BranchingState`:
# height, last frame, and the batch's `pending`.
_Rising: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, _Frame, jax.Array]


def _ascend(
    inputs: WalkInputs, config: MCCFRConfig, walk: _BranchingState
) -> _BranchingState:
    """Pass a sampled value up to the last infoset with an action left to follow."""
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
            # After the last action, the next frame is invalid and the old one is kept.
            moved = _either(done, top, moved)
            moved = _skip(inputs, config, moved)
            assert moved.choice is not None
            done = done | ~_is_followed(moved.choice)
        below = jax.tree.map(lambda column: at(column, height - 1), stack)
        height = height - done
        return done & (height > 0), mean, height, _either(done, below, moved), pending

    start = (
        walk.height > 0,
        at(inputs.tree.utility, walk.position.history),
        walk.height,
        walk.top,
        walk.scratch.pending,
    )
    _, _, height, top, pending = jax.lax.while_loop(lambda s: s[0], credit, start)
    scratch = walk.scratch._replace(pending=pending)
    return walk._replace(height=height, top=top, scratch=scratch)


def _turn(inputs: WalkInputs, walk: _BranchingState) -> _BranchingState:
    """Move to the child of the last frame.

    Without frames, sampling has finished and the position has no meaning.
    """
    top = walk.top
    arrivals = add(walk.arrivals, top.depth, (walk.height > 0).astype(jnp.int32))
    point = at(inputs.tree.point, top.child)
    return walk._replace(
        position=_BranchPosition(
            history=top.child,
            point=point,
            depth=top.depth,
            place=at(arrivals, top.depth) - 1,
            reach=_reach_after(inputs, walk.position.reach, top, jnp.bool_(True)),
            listed=at(walk.scratch.listed, point),
        ),
        arrivals=arrivals,
    )
