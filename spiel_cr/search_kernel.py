"""Fourth stage: the program of ISMCTS-BR: a batch of simulations, and what they tell.

Of the simulations side by side, those that meet at an information state share out the
visits that PUCT would give one after another there, were its values to stay as they
are. One alone takes the best action by PUCT.

Where the paper backs up the mean of what simulations got, here Q(s, a) is what they got
with the action that is visited most at each later decision: exploration further down
costs visits, but does not lower the value of what leads there. An information state
that was never visited is played by the prior, which makes a random rollout of it, and
is recorded like any other. Where the game may end right after an action, the
expectation of that, given the responder's belief, is backed up.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr import search_tree
from spiel_cr.search_tree import SearchTree, Shape

__all__ = ["Guide", "Roots", "Table", "programs", "run"]

# Halvings in the search for PUCT's level; the shares are normalised afterwards.
_HALVINGS = 12


class Table(NamedTuple):
    """Search statistics.

    Attributes:
      visits: float [S + A], how many simulations took each action, by sequence.
      value: float [S + A], Q(s, a): the mean reward of the action, if the most visited
        one follows at every later decision; the responder's utility.
      reached: float [I + 1], how many simulations were at each infoset.
      arrived: float [I + 1], the same without those that began there.
      infoset_value: float [I + 1], value of the most visited action.
    """

    visits: jax.Array
    value: jax.Array
    reached: jax.Array
    arrived: jax.Array
    infoset_value: jax.Array


class Roots(NamedTuple):
    """Where simulations begin.

    Attributes:
      infosets: int32 [I + 1], the first `number` of them.
      number: R.
      rounds: of simulations side by side.
      interval: rounds between two times that values are backed up.
    """

    infosets: jax.Array
    number: int
    rounds: int
    interval: int


class Guide(NamedTuple):
    """What is thought of infosets before they are searched.

    Attributes:
      prior: float [S + A], P(a | s) by sequence.
      value: float [I + 1] or None, what an infoset is worth to the responder where a
        simulation leaves the tree; None: a random rollout tells.
    """

    prior: jax.Array
    value: jax.Array | None


def programs() -> int:
    """How many programs this process has compiled for searches."""
    return int(run._cache_size())  # type: ignore[attr-defined]


@functools.partial(jax.jit, static_argnames=("shape",), donate_argnames=("table",))
def run(
    arrays: SearchTree,
    table: Table,
    guide: Guide,
    roots: Roots,
    points: jax.Array,
    key: jax.Array,
    exploration: jax.Array,
    shape: Shape,
) -> Table:
    """Rounds of simulations; the roots take turns."""
    width = points.shape[1]
    # Each root has consecutive points, which cover the space evenly.
    power = jnp.floor(jnp.log2(jnp.maximum(width // roots.number, 1)))
    each = jnp.exp2(power).astype(jnp.int32)

    def one(i: jax.Array, table: Table) -> Table:
        shift = jax.random.uniform(jax.random.fold_in(key, i), (len(points), 1))
        # A randomly shifted point set: each simulation's draws are uniform and
        # independent of one another, and those side by side cover more ground.
        draw = ((points + shift) % 1).astype(table.visits.dtype)
        turn = (i * (width // each) + jnp.arange(width) // each) % roots.number
        root = roots.infosets[turn]
        return _simulate(arrays, table, guide, root, draw, exploration, shape)

    def several(k: jax.Array, table: Table) -> Table:
        end = jnp.minimum((k + 1) * roots.interval, roots.rounds)
        table = jax.lax.fori_loop(k * roots.interval, end, one, table)
        return _back_up(arrays, table, guide, shape)

    looks = -(-roots.rounds // roots.interval)
    return jax.lax.fori_loop(0, looks, several, table)


class _Walk(NamedTuple):
    """B simulations on their way down.

    Attributes:
      node: int32 [B], where each is.
      alive: bool [B], neither over nor at a leaf that the guide values.
      path: int32 [D, B], sequences taken; the last one of the table where none.
      where: int32 [D, B], infosets passed; the last one of the table where none.
    """

    node: jax.Array
    alive: jax.Array
    path: jax.Array
    where: jax.Array


def _simulate(
    arrays: SearchTree,
    table: Table,
    guide: Guide,
    root: jax.Array,
    draw: jax.Array,
    exploration: jax.Array,
    shape: Shape,
) -> Table:
    """One simulation from each of B roots."""
    begin, end = arrays.member_start[root], arrays.member_start[root + 1]
    place = search_tree.pick(arrays.belief, begin, end, draw[0], shape.members)
    unused, nowhere = len(table.visits) - 1, len(table.reached) - 1

    def step(depth: jax.Array, walk: _Walk) -> _Walk:
        infoset = arrays.infoset[walk.node]
        where = jnp.where(walk.alive, infoset, nowhere)
        alive = walk.alive
        if guide.value is not None:
            alive = alive & ((table.reached[infoset] > 0) | (depth == 0))
        action = _choose(
            arrays, table, guide, where, draw[2 * depth + 1], exploration, shape
        )
        edge = jnp.where(alive, arrays.edge[walk.node] + action, 0)
        begin, end = arrays.start[edge], arrays.start[edge + 1]
        luck, going = draw[2 * depth + 2], arrays.going[edge]
        below = search_tree.pick(
            arrays.odds, begin, end, luck / jnp.maximum(going, luck), shape.below
        )
        sequence = jnp.where(alive, arrays.first[infoset] + action, unused)
        return _Walk(
            node=below,
            alive=alive & (luck < going),
            path=walk.path.at[depth].set(sequence),
            where=walk.where.at[depth].set(where),
        )

    room = (shape.depth, len(root))
    dtype = table.visits.dtype
    walk = _Walk(
        arrays.member[place],
        jnp.ones(len(root), bool),
        jnp.full(room, unused, jnp.int32),
        jnp.full(room, nowhere, jnp.int32),
    )
    walk = jax.lax.fori_loop(0, shape.depth, step, walk)
    ones = jnp.ones(room, dtype)
    return table._replace(
        visits=table.visits.at[walk.path].add(ones),
        reached=table.reached.at[walk.where].add(ones),
        arrived=table.arrived.at[walk.where[1:]].add(ones[1:]),
    )


def _back_up(arrays: SearchTree, table: Table, guide: Guide, shape: Shape) -> Table:
    """Values of all actions, from the last level of decisions to the first."""
    total = table.visits * arrays.reward
    infoset_value = table.infoset_value
    for begin, end in reversed(shape.levels):
        first, count = arrays.first[begin:end], arrays.actions[begin:end]
        most = jnp.full(first.shape, -1, total.dtype)
        best = jnp.zeros(first.shape, total.dtype)
        for a in range(shape.actions):
            visits = jnp.where(a < count, table.visits[first + a], -1)
            value = total[first + a] / jnp.maximum(visits, 1)
            better = (visits > most) | ((visits == most) & (value > best))
            most = jnp.where(better, visits, most)
            best = jnp.where(better, value, best)
        if guide.value is not None:
            best = jnp.where(most > 0, best, guide.value[begin:end])
        infoset_value = infoset_value.at[begin:end].set(best)
        total = total.at[arrays.parent[begin:end]].add(table.arrived[begin:end] * best)
    value = total / jnp.maximum(table.visits, 1)
    return table._replace(value=value, infoset_value=infoset_value)


def _choose(
    arrays: SearchTree,
    table: Table,
    guide: Guide,
    infoset: jax.Array,
    draw: jax.Array,
    exploration: jax.Array,
    shape: Shape,
) -> jax.Array:
    """int32 [B], an action for each simulation, by PUCT."""
    meeting = jnp.zeros_like(table.reached).at[infoset].add(1)[infoset]
    reached = table.reached[infoset]
    count, first = arrays.actions[infoset], arrays.first[infoset]
    actions = range(shape.actions)
    taken = [1 + table.visits[first + a] for a in actions]
    known = [table.value[first + a] for a in actions]
    mean = sum(
        jnp.where(a < count, (n - 1) * q, 0)
        for a, n, q in zip(actions, taken, known, strict=True)
    ) / jnp.maximum(reached, 1)
    value = [jnp.where(n > 1, q, mean) for n, q in zip(taken, known, strict=True)]
    drive = exploration * jnp.sqrt(reached + meeting)
    push = [jnp.where(a < count, drive * guide.prior[first + a], 0) for a in actions]

    def highest(extra: jax.Array | float) -> jax.Array:
        """The best score if every action had so many more visits."""
        return functools.reduce(
            jnp.maximum,
            [
                jnp.where(p > 0, q + p / (n + extra), -jnp.inf)
                for q, p, n in zip(value, push, taken, strict=True)
            ],
        )

    def shares(level: jax.Array) -> list[jax.Array]:
        """How many visits lower each action's score to a level."""
        return [
            jnp.maximum(p / jnp.maximum(level - q, 1e-9) - n, 0)
            for q, p, n in zip(value, push, taken, strict=True)
        ]

    low, high = highest(meeting), highest(0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = functools.reduce(jnp.add, shares(middle)) > meeting
        low, high = jnp.where(enough, middle, low), jnp.where(enough, high, middle)
    weight = shares(low)
    running, chosen = jnp.zeros_like(draw), jnp.zeros(len(infoset), jnp.int32)
    target = draw * functools.reduce(jnp.add, weight)
    for a in actions[:-1]:
        running = running + weight[a]
        chosen = chosen + ((running <= target) & (a + 1 < count)).astype(jnp.int32)
    score = [
        jnp.where(p > 0, q + p / n, -jnp.inf)
        for q, p, n in zip(value, push, taken, strict=True)
    ]
    best = jnp.argmax(jnp.stack(score), axis=0).astype(jnp.int32)
    return jnp.where(meeting > 1, chosen, best)
