"""External sampling, one trajectory at a time, as scalar code.

As `walk.py`, but the updating player's actions are all followed, one after another,
depth first. The frames of the own infosets on the way are a stack, and the last of them
is kept apart in scalars, so that no turn of a loop reads a stack that it writes.

The others' actions and chance are drawn from their own probabilities, so every visit
weighs the same, and what it adds to the value of an action is the sampled utility. The
update subtracts the strategy's mean.

A depth has one draw in a trajectory. Its visits are kept apart as in `descent`, by
their places; these are the same here, since at every depth the order is.
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from spiel_cr.mccfr.descent import WEYL
from spiel_cr.mccfr.walk import Given, Scratch, add, at, choose, enlist, put


class _Frame(NamedTuple):
    """An own infoset on the way: scalars, or D - 1 of them on the stack.

    Attributes:
      entry: int32, of the action that is followed now.
      child: int32, the history that it leads to.
      left: int32, how many actions are to be followed after it.
      depth: int32, of the child.
      mean: float, what the actions before it add to the infoset's value.
      own: float or None, own reach over sampling probability.
    """

    entry: jax.Array
    child: jax.Array
    left: jax.Array
    depth: jax.Array
    mean: jax.Array
    own: jax.Array | None


class _Front(NamedTuple):
    """Where a walk is, all scalars.

    Attributes:
      history, point, depth: int32.
      place: int32, among the visits at this depth, see `descent`.
      own: float or None, own reach over sampling probability, times the share.
      listed: bool, whether the point is in the list.
    """

    history: jax.Array
    point: jax.Array
    depth: jax.Array
    place: jax.Array
    own: jax.Array | None
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


def external(
    given: Given, arrivals: jax.Array, scratch: Scratch
) -> tuple[jax.Array, Scratch]:
    """A trajectory that follows all actions of the updating player.

    Lanctot et al. 2009, "Monte Carlo sampling for regret minimization in extensive
    games", section 3.2.

    Args:
      given: what it reads; without targets.
      arrivals: int32 [D], visits of the batch so far by depth, at depths that follow
        one at which the player decides.
      scratch: of the batch so far.

    Returns:
      The last two, this trajectory included.
    """
    tree, zero = given.tree, jnp.int32(0)
    root, places = at(tree.point, zero), len(given.draws)
    number, numbers = jnp.zeros_like(given.share), jnp.zeros(places, given.share.dtype)
    whole = jnp.zeros(places, jnp.int32)
    sampled = scratch.owned is not None
    start = _Walk(
        front=_Front(
            history=zero,
            point=root,
            depth=zero,
            place=zero,
            own=given.share if sampled else None,
            listed=at(scratch.listed, root),
        ),
        height=zero,
        top=_Frame(zero, zero, zero, zero, number, number if sampled else None),
        stack=_Frame(whole, whole, whole, whole, numbers, numbers if sampled else None),
        arrivals=arrivals,
        scratch=scratch,
    )
    splits = tree.decides[given.player]
    nobody = len(tree.code) - 1

    def leaf(s: tuple[jax.Array, _Walk]) -> tuple[jax.Array, _Walk]:
        walk = jax.lax.while_loop(
            lambda w: w.front.point != nobody,
            lambda w: _descend(given, splits, w),
            s[1],
        )
        walk = _ascend(given, walk)
        return walk.height == 0, _turn(given, walk)

    _, walk = jax.lax.while_loop(lambda s: ~s[0], leaf, (jnp.bool_(False), start))
    return walk.arrivals, walk.scratch


def _descend(given: Given, splits: jax.Array, walk: _Walk) -> _Walk:
    """Follows the first action of an own infoset, elsewhere one that is drawn."""
    tree, front, scratch = given.tree, walk.front, walk.scratch
    point, depth = front.point, front.depth
    first, code = at(tree.first, point), at(tree.code, point)
    count, own = code >> 2, (code & 3) == given.player
    draw = _shifted(at(given.draws, depth), front.place)
    action = choose(
        lambda action: at(given.strategy, first + action),
        count,
        # Below all probabilities: the first action, at once.
        jnp.where(own, -1, draw),
    )
    entry, child = first + action, at(tree.first_child, front.history) + action
    scratch = enlist(scratch, point, front.listed, own)
    if scratch.owned is not None and front.own is not None:
        added = jnp.where(own, front.own, 0)
        scratch = scratch._replace(owned=add(scratch.owned, point, added))
    # Where no frame comes on top, the next one is written over it.
    stack = jax.tree.map(
        lambda below, top: put(below, walk.height, top), walk.stack, walk.top
    )
    frame = _Frame(
        entry=entry,
        child=child,
        left=count - 1,
        depth=depth + 1,
        mean=jnp.zeros_like(walk.top.mean),
        own=front.own,
    )
    split = at(splits, depth)
    arrivals = add(walk.arrivals, depth + 1, split.astype(jnp.int32))
    after = at(tree.point, child)
    return _Walk(
        front=_Front(
            history=child,
            point=after,
            depth=depth + 1,
            place=jnp.where(split, at(arrivals, depth + 1) - 1, front.place),
            own=_further(given.strategy, front.own, entry, own),
            listed=at(scratch.listed, after),
        ),
        height=walk.height + own,
        top=_either(own, frame, walk.top),
        stack=stack,
        arrivals=arrivals,
        scratch=scratch,
    )


def _shifted(draw: jax.Array, place: jax.Array) -> jax.Array:
    """A draw for this place, by the golden ratio modulo 1."""
    shift = (place.astype(jnp.uint32) * WEYL).astype(draw.dtype) * 2.0**-32
    draw = draw + shift
    return jnp.where(draw >= 1, draw - 1, draw)


def _further(
    strategy: jax.Array, own: jax.Array | None, entry: jax.Array, mine: jax.Array
) -> jax.Array | None:
    """Own reach over sampling probability, after an action."""
    if own is None:
        return None
    sigma = at(strategy, entry)
    return own * jnp.where(mine, sigma, 1 / sigma)


def _either(first: jax.Array, one: _Frame, other: _Frame) -> _Frame:
    chosen: _Frame = jax.tree.map(lambda a, b: jnp.where(first, a, b), one, other)
    return chosen


# Whether it goes on, the value that is taken up, and what of a walk changes: height,
# last frame, and the batch's `pending`.
_Rising: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, _Frame, jax.Array]


def _ascend(given: Given, walk: _Walk) -> _Walk:
    """Takes a value up to the next infoset with an action that is still to follow."""
    scale = given.share * (1 - 2 * given.player).astype(given.share.dtype)
    stack = walk.stack

    def credit(s: _Rising) -> _Rising:
        _, value, height, top, pending = s
        pending = add(pending, top.entry, scale * value)
        mean = top.mean + at(given.strategy, top.entry) * value
        done = top.left == 0
        moved = top._replace(
            entry=top.entry + 1, child=top.child + 1, left=top.left - 1, mean=mean
        )
        below = jax.tree.map(lambda column: at(column, height - 1), stack)
        height = height - done
        return done & (height > 0), mean, height, _either(done, below, moved), pending

    start = (
        walk.height > 0,
        at(given.tree.utility, walk.front.history),
        walk.height,
        walk.top,
        walk.scratch.pending,
    )
    _, _, height, top, pending = jax.lax.while_loop(lambda s: s[0], credit, start)
    scratch = walk.scratch._replace(pending=pending)
    return walk._replace(height=height, top=top, scratch=scratch)


def _turn(given: Given, walk: _Walk) -> _Walk:
    """Goes to the child of the last frame; anywhere if there is none."""
    top = walk.top
    arrivals = add(walk.arrivals, top.depth, (walk.height > 0).astype(jnp.int32))
    point = at(given.tree.point, top.child)
    return walk._replace(
        front=_Front(
            history=top.child,
            point=point,
            depth=top.depth,
            place=at(arrivals, top.depth) - 1,
            own=_further(given.strategy, top.own, top.entry, jnp.bool_(True)),
            listed=at(walk.scratch.listed, point),
        ),
        arrivals=arrivals,
    )
