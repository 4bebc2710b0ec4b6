"""The compiled function of ISMCTS-BR: batches of simulations and their statistics.

Simulations run in parallel with the same statistics. Those that reach one information
state share the visits that PUCT would give one after another with fixed values. The
number of simulations that will reach it is predicted by that of the last round. A
single simulation takes the best action by PUCT.

The paper backs up the mean return of simulations. Here Q(s, a) is the mean return if
the most visited action follows at each later decision, so that exploration further down
costs visits but does not lower values above. Information states without visits are
played by the prior, as in a random rollout, and are recorded like all others. If the
game can end right after an action, the expectation given the responder's belief is
backed up.
"""

import dataclasses
import functools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import quick_options
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.beliefs import tree_posterior


class SearchShape(NamedTuple):
    """Static properties of a game, for which a function is compiled.

    Attributes:
      actions: Largest number of actions of an infoset, A.
      depth: Largest number of the responder's decisions in a match.
      below: Largest number of nodes below an edge.
      members: Largest number of nodes of an infoset.
      levels: Begin and end of the infosets of each level of the player's decisions.
      half_range: Half of the range of the game's utilities; 1 if the range is zero.
    """

    actions: int
    depth: int
    below: int
    members: int
    levels: tuple[tuple[int, int], ...]
    half_range: float


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SearchTree:
    """The M nodes: the histories at which the responder decides.

    An *edge* is an action at one of them; edge 0 is the start of the game. Nodes are
    sorted by the edge that leads to them, so the nodes below an edge are consecutive.

    Attributes:
      infoset: The responder's infoset, int32 [M].
      edge: The edge of its first action, int32 [M].
      start: The nodes below edge e are `start[e]:start[e + 1]`, int32 [E + 1].
      probabilities: Cumulative probability of the nodes below an edge, given that the
        player acts again, float [M].
      going: Probability that the player acts again, float [E].
      reward: Expected reward by sequence, float [S + A]: the responder's utility if the
        game ends before that, times the probability that it does, given the infoset.
      first: Each infoset's first sequence, int32 [I + 1].
      actions: Its number of actions, int32 [I + 1]; 0 at the last, which is padding.
      parent: Its parent sequence, int32 [I].
      member: The nodes again, infoset after infoset, int32 [M].
      member_start: An infoset's nodes are `member[member_start[i]:member_start[i +
        1]]`, int32 [I + 1].
      belief: Cumulative probability of the nodes of an infoset, float [M].
      shape: Static properties of the game.
    """

    infoset: jax.Array
    edge: jax.Array
    start: jax.Array
    probabilities: jax.Array
    going: jax.Array
    reward: jax.Array
    first: jax.Array
    actions: jax.Array
    parent: jax.Array
    member: jax.Array
    member_start: jax.Array
    belief: jax.Array
    shape: SearchShape = dataclasses.field(metadata={"static": True})


def build(
    tree: GameTree,
    player: int,
    other_behaviour: np.ndarray,
    *,
    dtype: np.typing.DTypeLike = np.float32,
) -> SearchTree:
    """Build the arrays of a game for one responder, in numpy.

    Args:
      tree: The game tree.
      player: The responder.
      other_behaviour: The opponent's action probabilities, float64 [S'].
      dtype: Data type of utilities and probabilities.

    Raises:
      ValueError: If the player or the strategy is invalid, or the responder has no
        decisions.
    """
    tree_posterior.check_opponent(tree, player, other_behaviour)
    histories, decisions = tree.histories, tree.infosets[player].decisions
    if not len(decisions):
        raise ValueError(
            f"{tree.game}: player {player} has no decisions; choose the other "
            f"player, or a game with decisions"
        )
    acts = histories.player == player
    # At other nodes, the number is that of another player's infoset, or -1.
    player_infoset = np.where(acts, histories.infoset, 0)
    counts = np.where(acts, decisions.num_actions[player_infoset], 0)
    # Edge 0 is the start; then every node's actions, in order.
    edge_of = np.where(acts, 1 + np.cumsum(counts) - counts, 0)
    edges = 1 + int(counts.sum())
    through, last, probabilities = _jumps(tree, player, other_behaviour, edge_of)
    nodes = np.flatnonzero(acts)
    nodes = nodes[np.argsort(through[nodes], kind="stable")]
    start = np.searchsorted(through[nodes], np.arange(edges + 1))
    over = np.flatnonzero(histories.player == TERMINAL)
    infoset = histories.infoset[nodes]
    member = np.argsort(infoset, kind="stable")
    member_start = np.searchsorted(infoset[member], np.arange(len(decisions) + 1))
    levels = decisions.levels()
    belief = tree_posterior.beliefs(tree, player, other_behaviour)
    utility = histories.utility[over]
    # The search depends on ratios of utilities only, and float32 ends at 2^128.
    if np.abs(utility).max() >= 2.0**60:
        utility = np.ldexp(utility, -int(np.frexp(np.abs(utility).max())[1]))
    gain = belief[last[over]] * probabilities[over] * utility
    reward = np.bincount(
        histories.sequence[player][over],
        gain * (1 if player == 0 else -1),
        minlength=decisions.num_sequences,
    )
    actions = int(decisions.num_actions.max())
    depth = int(levels.max()) + 1
    ends = [int(i) for i in np.searchsorted(levels, np.arange(depth + 1))]
    shape = SearchShape(
        actions=actions,
        depth=depth,
        below=int(np.diff(start).max()),
        members=int(np.diff(member_start).max()),
        levels=tuple(zip(ends[:-1], ends[1:], strict=True)),
        half_range=float(np.ptp(utility)) / 2 or 1.0,
    )
    return SearchTree(
        infoset=_index(infoset),
        edge=_index(edge_of[nodes]),
        start=_index(start),
        probabilities=_real(
            _cumulate(probabilities[nodes], through[nodes], edges), dtype
        ),
        going=_real(
            np.bincount(through[nodes], probabilities[nodes], minlength=edges), dtype
        ),
        reward=_real(np.concatenate([reward, np.zeros(actions)]), dtype),
        first=_index(np.append(decisions.first_sequence, 0)),
        actions=_index(np.append(decisions.num_actions, 0)),
        parent=_index(decisions.parent),
        member=_index(member),
        member_start=_index(member_start),
        belief=_real(
            _cumulate(belief[nodes[member]], infoset[member], len(decisions)), dtype
        ),
        shape=shape,
    )


def pick(
    probabilities: jax.Array,
    begin: jax.Array,
    end: jax.Array,
    draw: jax.Array,
    most: int,
) -> jax.Array:
    """Return the first place of begin:end whose cumulative probability exceeds a draw.

    Args:
      probabilities: Probabilities that are cumulative within each range, and at least 1
        at its end, float [M].
      begin: Start of each range, int32 [B].
      end: End of each range, int32 [B].
      draw: Random numbers in [0, 1), float [B].
      most: Length of the longest range.
    """
    low, high = begin, jnp.maximum(end - 1, begin)
    for _ in range(int(np.ceil(np.log2(max(1, most))))):
        middle = (low + high) // 2
        beyond = probabilities[middle] <= draw
        low = jnp.where(beyond, jnp.minimum(middle + 1, high), low)
        high = jnp.where(beyond, high, middle)
    return low


def padded_sequences(
    decisions: Decisions, infosets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sequences of some infosets, in rows of equal length.

    Args:
      decisions: Decisions of one player.
      infosets: Infosets, int [R].

    Returns:
      int [R, A], sequences, 0 at padding, and bool [R, A], not padding.
    """
    place = np.arange(int(decisions.num_actions.max()))
    legal = place < decisions.num_actions[infosets][:, None]
    sequence = decisions.first_sequence[infosets][:, None] + place
    return np.where(legal, sequence, 0), legal


def _jumps(
    tree: GameTree, player: int, other_behaviour: np.ndarray, edge_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each history's last edge and node, and its probability given the edge."""
    histories = tree.histories
    step = tree_posterior.transitions(tree, player, other_behaviour)
    through = np.zeros(len(histories), np.int64)
    last = np.zeros(len(histories), np.int64)
    probabilities = np.ones(len(histories))
    starts = histories.level_start
    sequence = histories.sequence[player]
    first = tree.infosets[player].decisions.first_sequence
    for begin, end in zip(starts[1:-1], starts[2:], strict=True):
        above = histories.parent[begin:end]
        acts = histories.player[above] == player
        infoset = np.where(acts, histories.infoset[above], 0)
        action = sequence[begin:end] - first[infoset]
        through[begin:end] = np.where(acts, edge_of[above] + action, through[above])
        last[begin:end] = np.where(acts, above, last[above])
        probabilities[begin:end] = np.where(
            acts, 1.0, probabilities[above] * step[begin:end]
        )
    return through, last, probabilities


def _cumulate(weight: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """Return cumulative shares within runs of equal `group`; the last positive is 1."""
    total = np.bincount(group, weights=weight, minlength=groups)
    begin = np.searchsorted(group, np.arange(groups))
    running = np.cumsum(weight)
    before = np.where(begin > 0, running[begin - 1], 0.0)
    share = (running - before[group]) / np.where(total > 0, total, 1.0)[group]
    # Rounding may leave the last positive one a little below 1.
    place = np.arange(len(weight))
    last = np.zeros(groups, np.int64)
    np.maximum.at(last, group, np.where(weight > 0, place, 0))
    share[place >= last[group]] = 1.0
    return share


def _index(values: np.ndarray) -> jax.Array:
    return cast(jax.Array, values.astype(np.int32))


def _real(values: np.ndarray, dtype: np.typing.DTypeLike) -> jax.Array:
    return cast(jax.Array, values.astype(dtype))


# The value of an infoset is the mean of its actions' values, weighted by visits to this
# power. With few visits it is close to the plain mean, with many to the value of the
# most visited action, which would be a lucky one at the start.
_SHARPNESS = 4
# Halvings in the search for PUCT's level; the shares are normalised afterwards.
_HALVINGS = 10


class SearchStatistics(NamedTuple):
    """Search statistics.

    Attributes:
      visits: Number of simulations of each action, by sequence, float [S + A].
      value: Q(s, a), float [S + A]: mean reward of the action if the most visited ones
        follow at every later decision, in the responder's utility.
      started: Number of simulations that began at each infoset, float [I].
      reached: Number of simulations that reached each infoset, float [I].
    """

    visits: jax.Array
    value: jax.Array
    started: jax.Array
    reached: jax.Array


class Roots(NamedTuple):
    """Infosets at which simulations begin.

    Attributes:
      infosets: Infosets, of which the first `number` are used, int32 [I].
      number: R, number of roots.
      rounds: Number of rounds of parallel simulations.
      interval: Number of rounds between two backups of values.
    """

    infosets: jax.Array
    number: int
    rounds: int
    interval: int


def compilations() -> int:
    """Return how many functions this process has compiled for searches."""
    return int(run()._cache_size())


@functools.cache
def run() -> Any:
    """Return `search`, jitted, with a donated table."""
    # The code is as fast as with the newer emitters, and compiles in two thirds of the
    # time.
    return jax.jit(search, donate_argnames="table", compiler_options=quick_options())


def search(
    arrays: SearchTree,
    table: SearchStatistics,
    prior: jax.Array,
    roots: Roots,
    points: jax.Array,
    key: jax.Array,
    exploration: jax.Array,
) -> SearchStatistics:
    """Run rounds of simulations; the roots take turns."""
    width = points.shape[1]
    # Each root has consecutive points, which cover the space evenly. The power of two
    # must be exact, which logarithms and powers of XLA are not: if it were smaller by
    # one, `started` would miss some simulations, which would then count above their
    # root.
    share = jnp.asarray(jnp.maximum(width // roots.number, 1), jnp.int32)
    each = 1 << (31 - jax.lax.clz(share))
    turns = width // each
    started = table.started
    known = table.reached

    def simulate_round(i: jax.Array, carry: _SimulationArrays) -> _SimulationArrays:
        """Run round i, one simulation for each of the points."""
        # Single precision gives the same draws for any default precision of the caller.
        shift_key = jax.random.fold_in(key, i)
        shift = jax.random.uniform(shift_key, (len(points), 1), jnp.float32)
        # A randomly shifted point set: the draws of each simulation are uniform and
        # independent; parallel simulations cover the space evenly.
        draw = ((points.astype(jnp.float32) + shift) % 1).astype(table.visits.dtype)
        turn = (i * turns + jnp.arange(width) // each) % roots.number
        root = roots.infosets[turn]
        return _simulate(arrays, carry, root, draw)

    def simulate_and_back_up(
        k: jax.Array, carry: tuple[SearchStatistics, jax.Array]
    ) -> tuple[SearchStatistics, jax.Array]:
        """Run the rounds of interval k, and back up their values."""
        table, expected = carry
        end = jnp.minimum((k + 1) * roots.interval, roots.rounds)
        ends = _choices(arrays, table, prior, expected, exploration, width)
        batch = _SimulationArrays(table.visits, ends)
        batch = jax.lax.fori_loop(k * roots.interval, end, simulate_round, batch)
        slots = end * turns
        place = jnp.arange(len(roots.infosets))
        full = each * (slots // roots.number + (place < slots % roots.number))
        new = jnp.where(place < roots.number, full, 0).astype(started.dtype)
        after = table._replace(
            visits=batch.visits, started=started.at[roots.infosets].add(new)
        )
        after = _back_up(arrays, after)
        return after, after.reached - table.reached

    intervals, start = -(-roots.rounds // roots.interval), jnp.zeros_like(known)
    table, _ = jax.lax.fori_loop(0, intervals, simulate_and_back_up, (table, start))
    return table


class _SimulationArrays(NamedTuple):
    """Arrays that simulations use and change between two backups of values.

    Attributes:
      visits: Number of simulations of each action, as in `SearchStatistics`, float [S +
        A].
      ends: Cumulative probabilities of each infoset's actions, float [S + A].
    """

    visits: jax.Array
    ends: jax.Array


class _Simulations(NamedTuple):
    """B simulations on their way down the tree.

    Attributes:
      node: Current nodes, int32 [B].
      alive: Whether the simulations continue, bool [B].
      path: Sequences of the played actions, int32 [D, B]; padded with the table's last.
    """

    node: jax.Array
    alive: jax.Array
    path: jax.Array


def _simulate(
    arrays: SearchTree, batch: _SimulationArrays, root: jax.Array, draw: jax.Array
) -> _SimulationArrays:
    """Run one simulation from each of B roots."""
    shape = arrays.shape
    begin, end = arrays.member_start[root], arrays.member_start[root + 1]
    place = pick(arrays.belief, begin, end, draw[0], arrays.shape.members)
    unused = len(batch.visits) - 1

    def step(depth: jax.Array, walk: _Simulations) -> _Simulations:
        infoset = arrays.infoset[walk.node]
        alive = walk.alive
        first, luck = arrays.first[infoset], draw[2 * depth + 1]
        action, beyond = jnp.zeros_like(first), jnp.ones_like(alive)
        for a in range(shape.actions - 1):
            beyond = beyond & (batch.ends[first + a] <= luck)
            action = action + beyond
        # The last entry may be a little below 1; the next one is of another infoset.
        action = jnp.minimum(action, arrays.actions[infoset] - 1)
        edge = arrays.edge[walk.node] + action
        luck, going = draw[2 * depth + 2], arrays.going[edge]
        below = pick(
            arrays.probabilities,
            arrays.start[edge],
            arrays.start[edge + 1],
            luck / jnp.maximum(going, luck),
            shape.below,
        )
        path = walk.path.at[depth].set(jnp.where(alive, first + action, unused))
        return _Simulations(below, alive & (luck < going), path)

    walk = _Simulations(
        arrays.member[place],
        jnp.ones(len(root), bool),
        jnp.full((shape.depth, len(root)), unused, jnp.int32),
    )
    walk = jax.lax.fori_loop(0, shape.depth, step, walk)
    return batch._replace(visits=batch.visits.at[walk.path].add(1))


def _back_up(arrays: SearchTree, table: SearchStatistics) -> SearchStatistics:
    """Back up the values of all actions, from the last level to the first."""
    total = table.visits * arrays.reward
    counts = []
    for begin, end in reversed(arrays.shape.levels):
        rows, legal = _rows(arrays, begin, end)
        visits = jnp.where(legal, table.visits[rows], -1)
        value = total[rows] / jnp.maximum(visits, 1)
        most = visits.max(axis=0)
        share = jnp.maximum(visits, 0) / jnp.maximum(most, 1)[None]
        weight = share**_SHARPNESS
        best = (weight * value).sum(axis=0) / jnp.maximum(weight.sum(axis=0), 1)
        reached = jnp.maximum(visits, 0).sum(axis=0)
        arrived = reached - table.started[begin:end]
        total = total.at[arrays.parent[begin:end]].add(arrived * best)
        counts.append(reached)
    return table._replace(
        value=total / jnp.maximum(table.visits, 1),
        reached=jnp.concatenate(counts[::-1]),
    )


def _rows(arrays: SearchTree, begin: int, end: int) -> tuple[jax.Array, jax.Array]:
    """Return int32, bool [A, n]: the padded sequences of infosets, and a mask."""
    actions = jnp.arange(arrays.shape.actions)[:, None]
    first, count = arrays.first[None, begin:end], arrays.actions[None, begin:end]
    return first + actions, actions < count


def _choices(
    arrays: SearchTree,
    table: SearchStatistics,
    prior: jax.Array,
    expected: jax.Array,
    exploration: jax.Array,
    width: int,
) -> jax.Array:
    """Return cumulative probabilities of actions by PUCT, float [S + A].

    Args:
      arrays: The game.
      table: Search statistics.
      prior: P(a | s) by sequence, float [S + A].
      expected: Expected number of simulations at each infoset, float [I].
      exploration: Constant c of PUCT, in units of utility.
      width: Number of parallel simulations.
    """
    rows, legal = _rows(arrays, 0, len(table.reached))
    coming = jnp.maximum(expected, 1)
    visits = jnp.where(legal, table.visits[rows], 0)
    value = table.value[rows]
    mean = (visits * value).sum(axis=0) / jnp.maximum(visits.sum(axis=0), 1)
    value = jnp.where(visits > 0, value, mean[None])
    drive = exploration * jnp.sqrt(table.reached + coming)
    push = jnp.where(legal, drive[None] * prior[rows], 0)

    def scores(extra: jax.Array) -> jax.Array:
        """Return PUCT's scores if every action had this many more visits."""
        return jnp.where(push > 0, value + push / (1 + visits + extra[None]), -jnp.inf)

    def shares(level: jax.Array) -> jax.Array:
        """Return how many visits lower each action's score to a level."""
        above = jnp.maximum(level[None] - value, 1e-9 * exploration)
        return jnp.where(push > 0, jnp.maximum(push / above - 1 - visits, 0), 0)

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]) -> Any:
        low, high = bounds
        middle = (low + high) / 2
        enough = shares(middle).sum(axis=0) > coming
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    none = jnp.zeros_like(coming)
    if width == 1:
        best = scores(none).argmax(axis=0)
        actions = jnp.arange(arrays.shape.actions)[:, None]
        weight = (actions == best[None]).astype(push.dtype)
    else:
        bounds = scores(coming).max(axis=0), scores(none).max(axis=0)
        low, _ = jax.lax.fori_loop(0, _HALVINGS, halve, bounds)
        weight = shares(low)
    ends = jnp.cumsum(weight, axis=0) / weight.sum(axis=0)[None]
    unused = len(table.visits) - 1
    return jnp.ones_like(table.visits).at[jnp.where(legal, rows, unused)].set(ends)
