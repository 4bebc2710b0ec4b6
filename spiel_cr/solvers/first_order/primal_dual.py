"""Restarted primal-dual hybrid gradient for the linear program of both players.

The sequence-form saddle point is max over x_0 ≥ 0 and v_1, min over x_1 ≥ 0 and v_0 of
x_0ᵀ A x_1 + v_0 · flow(x_0) − v_1 · flow(x_1). At each infoset, flow is the reach of
the parent sequence minus the sum of the reach of the infoset's sequences, and v_p are
values of p's infosets in p's utility. The steps of the two sides alternate (Chambolle &
Pock 2011). The additions are those of PDLP (Applegate et al. 2021, "Practical
large-scale linear programming using primal-dual hybrid gradient"): diagonal scaling
after Ruiz, a primal weight, and restarts. A restart begins at the average or the last
point, when the normalised KKT error has decreased to 0.2 of its value at the last
restart, or to 0.8 and increases again. Steps have a fixed length, 0.99 divided by the
norm of the scaled program, which a power iteration computes; PDLP adapts it.

The scaling uses the Euclidean norm of rows, not the maximum norm, because products with
random signs can estimate the Euclidean norm without a list of the payoffs.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.treeplex import Treeplex

# Number of steps between two checks of the KKT error.
_CHECK = 64
# Criteria of a restart (Applegate et al. 2021, section 3.2): the error has decreased to
# the first share; or to the second and increases; or the third share of all steps was
# done since the last restart.
_SUFFICIENT, _NECESSARY, _LONGEST = 0.2, 0.8, 0.36
# Rounds of scaling, random vectors for each, and steps of the power iteration.
_ROUNDS, _DRAWS, _POWERS = 10, 16, 60


class Point(NamedTuple):
    """Strategies and values of both players, primal variables first.

    Attributes:
      reach: Strategy of each player, float [S]; feasible only in the limit.
      values: Values of each player's infosets in the player's utility, float [I].
    """

    reach: tuple[jax.Array, jax.Array]
    values: tuple[jax.Array, jax.Array]


class PDHGProblem(NamedTuple):
    """A game and the scaling of its linear program.

    Attributes:
      trees: Treeplex of each player, payoffs divided by 2^exponent.
      scales: Squares of the scaling of every variable, a `Point`.
      length: Length of steps if both sides have equal weight, float scalar.
    """

    trees: tuple[Treeplex, Treeplex]
    scales: Point
    length: jax.Array


class PDHGState(NamedTuple):
    """State of the method.

    Attributes:
      now: The last point.
      mean: Mean of the points since the last restart.
      anchor: Point of the last restart.
      weight: Primal weight, float scalar.
      restart_error: KKT error after the last restart, float scalar.
      last_error: KKT error of the restart candidate at the last check, float scalar.
      since: Number of steps since the last restart, int scalar.
      restarts: Number of restarts, int scalar.
      iteration: Number of steps, int scalar.
    """

    now: Point
    mean: Point
    anchor: Point
    weight: jax.Array
    restart_error: jax.Array
    last_error: jax.Array
    since: jax.Array
    restarts: jax.Array
    iteration: jax.Array

    @property
    def strategies(self) -> tuple[jax.Array, jax.Array]:
        """Strategies of both players in sequence form."""
        return self.now.reach


def gradient(tree: Treeplex, other_reach: jax.Array) -> jax.Array:
    """Multiply the payoff coupling by the opponent's reach.

    Args:
      tree: Treeplex of the player.
      other_reach: Reach of the opponent by position, float [S'].

    Returns:
      Payoff of each of the player's positions, weighted by the reach of the opponent
      and chance, float [S]; 0 at padding.
    """
    leaves = treeplex.leaf_values(tree, other_reach)
    parts = [treeplex.root_value(tree, leaves)[None]]
    parts += [treeplex.leaves_of(level, leaves) for level in tree.levels]
    return jnp.concatenate(parts)


def flow(tree: Treeplex, reach: jax.Array) -> jax.Array:
    """Return the reach before each infoset minus that of its sequences, float [I]."""
    above, parts = reach[:1], []
    cut = treeplex.by_level(tree.levels, reach)
    for level, part in zip(tree.levels, cut, strict=True):
        into = treeplex.take(level.parent, reach if tree.ancestors else above)
        sums = [treeplex.sum_rows(block) for block in level.split(part)]
        parts.append(into - treeplex.join(sums))
        above = part
    return treeplex.join(parts) if parts else reach[:0]


def spread(tree: Treeplex, values: jax.Array) -> jax.Array:
    """Return the transpose of `flow`: values after minus the owner's, float [S]."""
    owned, ends = [], [0]
    for level in tree.levels:
        ends.append(ends[-1] + level.num_infosets)
        owned.append(values[ends[-2] : ends[-1]])
    if not owned:
        return jnp.zeros(1, values.dtype)
    if tree.ancestors:
        owner_values = spread_owner(tree, values)
        return treeplex.with_children(owner_values, tree.levels[0], values)
    below = zip((*tree.levels[1:], None), (*owned[1:], None), strict=True)
    cut = treeplex.by_level(tree.levels, spread_owner(tree, values))
    parts = [
        treeplex.with_children(part, *after)
        for part, after in zip(cut, below, strict=True)
    ]
    return treeplex.join([owned[0].sum()[None], *parts])


def legal_positions(tree: Treeplex) -> jax.Array:
    """Return 1 at sequences, 0 at padding and at the empty sequence, float [S]."""
    namespace = tree.root_source.__array_namespace__()
    rows = [
        namespace.broadcast_to(uniform > 0, shape).reshape(-1)
        for level in tree.levels
        for uniform, shape in zip(level.uniform, level.shapes, strict=True)
    ]
    return namespace.concat([namespace.zeros(1, dtype=bool), *rows])


def _slopes(tree: Treeplex, other_reach: jax.Array, values: jax.Array) -> jax.Array:
    """Return the gain of a player's sequences over its infosets' values, float [S]."""
    return gradient(tree, other_reach) + spread(tree, values)


def _move(
    problem: PDHGProblem,
    player: int,
    point: tuple[jax.Array, jax.Array],
    slope: jax.Array,
    other_flow: jax.Array,
    length: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Take a step of one side: a player's reach, and the other player's values.

    Args:
      problem: The game and its scaling.
      player: Player whose reach moves.
      point: Reach of the player, and values of the other player.
      slope: Slope of the reach, float [S].
      other_flow: Flow of the other player's reach, float [I'].
      length: Length of the step.
    """
    reach, values = point
    step = length * problem.scales.reach[player] * slope
    moved = jnp.maximum(reach + step, 0).at[0].set(1)
    values = values - length * problem.scales.values[1 - player] * other_flow
    return moved, values


def _advance(problem: PDHGProblem, state: PDHGState) -> Point:
    """Take one step of both sides."""
    (first, second), (first_values, other) = state.now
    trees = problem.trees
    short, long = problem.length / state.weight, problem.length * state.weight
    new_first, new_other = _move(
        *(problem, 0, (first, other)),
        *(_slopes(trees[0], second, first_values), flow(trees[1], second), short),
    )
    ahead, ahead_values = 2 * new_first - first, 2 * new_other - other
    new_second, new_first_values = _move(
        *(problem, 1, (second, first_values)),
        *(_slopes(trees[1], ahead, ahead_values), flow(trees[0], ahead), long),
    )
    return Point((new_first, new_second), (new_first_values, new_other))


def kkt_error(problem: PDHGProblem, point: Point, weight: jax.Array) -> jax.Array:
    """Return the scaled and weighted error of the optimality conditions.

    It is 0 at equilibria.

    Args:
      problem: The game and its scaling.
      point: Point to evaluate.
      weight: Primal weight, float scalar.
    """
    squares, gap = [], jnp.zeros((), point.reach[0].dtype)
    for player, tree in enumerate(problem.trees):
        slope = _slopes(tree, point.reach[1 - player], point.values[player])
        gap = gap + slope[0]
        gains = jnp.maximum(slope.at[0].set(0), 0) ** 2 * problem.scales.reach[player]
        lack = flow(tree, point.reach[player]) ** 2 * problem.scales.values[player]
        squares.append((gains.sum(), lack.sum()))
    primal = squares[0][0] + squares[1][1]
    dual = squares[1][0] + squares[0][1]
    return jnp.sqrt(weight**2 * dual + primal / weight**2 + gap**2)


def _distance(problem: PDHGProblem, one: Point, two: Point, player: int) -> jax.Array:
    """Return the scaled distance of two points on the side of a player's reach."""
    total = jnp.zeros((), one.reach[0].dtype)
    for new, old, scale in (
        (one.reach[player], two.reach[player], problem.scales.reach[player]),
        (
            *(one.values[1 - player], two.values[1 - player]),
            problem.scales.values[1 - player],
        ),
    ):
        moved = (new - old) ** 2 / jnp.where(scale > 0, scale, 1)
        total = total + moved.sum()
    return jnp.sqrt(total)


def init(problem: PDHGProblem) -> PDHGState:
    """Return the first state: uniform strategies, and zero values.

    Args:
      problem: The game and its scaling.
    """
    reach = [
        treeplex.reach(tree, treeplex.uniform_strategy(tree)) for tree in problem.trees
    ]
    values = [jnp.zeros_like(scale) for scale in problem.scales.values]
    point = Point((reach[0], reach[1]), (values[0], values[1]))
    one = jnp.ones((), reach[0].dtype)
    error = kkt_error(problem, point, one)
    zero = jnp.zeros((), jnp.int32)
    return PDHGState(point, point, point, one, error, error, zero, zero, zero)


def step(problem: PDHGProblem, state: PDHGState) -> PDHGState:
    """Take one step; every 64 steps, check for a restart.

    Args:
      problem: The game and its scaling.
      state: State to advance.
    """
    now = _advance(problem, state)
    since = state.since + 1
    share = 1 / since.astype(state.weight.dtype)
    mean = jax.tree.map(lambda old, new: old + share * (new - old), state.mean, now)
    state = state._replace(
        now=now, mean=mean, since=since, iteration=state.iteration + 1
    )
    return jax.lax.cond(
        state.iteration % _CHECK == 0, lambda: _check(problem, state), lambda: state
    )


def _check(problem: PDHGProblem, state: PDHGState) -> PDHGState:
    """Restart if one of the criteria holds."""
    errors = [
        kkt_error(problem, point, state.weight) for point in (state.now, state.mean)
    ]
    better = errors[1] < errors[0]
    error = jnp.minimum(errors[0], errors[1])
    time = (
        (error <= _SUFFICIENT * state.restart_error)
        | ((error <= _NECESSARY * state.restart_error) & (error > state.last_error))
        | (state.since >= _LONGEST * state.iteration)
    )

    def restart() -> PDHGState:
        point = jax.tree.map(
            lambda now, mean: jnp.where(better, mean, now), state.now, state.mean
        )
        moved = [_distance(problem, point, state.anchor, p) for p in range(2)]
        sensible = (moved[0] > 0) & (moved[1] > 0)
        ratio = jnp.where(sensible, moved[1], 1) / jnp.where(sensible, moved[0], 1)
        # The new weight is half way on a logarithmic scale (section 3.3).
        weight = jnp.where(sensible, jnp.sqrt(state.weight * ratio), state.weight)
        start_error = kkt_error(problem, point, weight)
        return PDHGState(
            *(point, point, point, weight, start_error, start_error),
            since=jnp.zeros_like(state.since),
            restarts=state.restarts + 1,
            iteration=state.iteration,
        )

    return jax.lax.cond(time, restart, lambda: state._replace(last_error=error))


def scaling(trees: tuple[Treeplex, Treeplex]) -> tuple[Point, jax.Array]:
    """Return the scaling of the linear program, and the length of its steps.

    In each round, every row is divided by the square root of its norm. Random signs are
    fixed, so that equal games have equal scaling.

    Args:
      trees: Treeplex of each player.

    Returns:
      Squares of the scaling, and 0.99 divided by the norm of the scaled program.
    """
    one = trees[0].zeros.dtype
    legal = [legal_positions(tree).astype(one) for tree in trees]
    infosets = [sum(level.num_infosets for level in tree.levels) for tree in trees]
    ones = [jnp.ones(count, one) for count in infosets]
    scales = Point((legal[0], legal[1]), (ones[0], ones[1]))
    key = jax.random.key(0)

    def norms(
        scales: Point, player: int, key: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return squared norms of the rows of a player's reach and values."""
        tree, other = trees[player], scales.reach[1 - player]

        def add(number: jax.Array, total: jax.Array) -> jax.Array:
            signs = jax.random.rademacher(
                jax.random.fold_in(key, number), other.shape, one
            )
            return total + gradient(tree, signs * jnp.sqrt(other)) ** 2

        sums = jax.lax.fori_loop(0, _DRAWS, add, jnp.zeros_like(legal[player]))
        values = scales.values[player]
        # Every entry of `flow` is 1 or -1, and both have the same absolute value.
        around = spread(tree, values)
        first = -2 * spread_owner(tree, values) + around
        rows = sums / _DRAWS + first
        columns = absolute_flow(tree, scales.reach[player])
        return rows, columns

    def round_(number: jax.Array, scales: Point) -> Point:
        norms_by_player = [
            norms(scales, p, jax.random.fold_in(key, 2 * number + p)) for p in range(2)
        ]
        reach, values = [], []
        for p in range(2):
            rows, columns = norms_by_player[p]
            reach.append(scales.reach[p] / _root(rows * scales.reach[p]))
            values.append(scales.values[p] / _root(columns * scales.values[p]))
        return Point((reach[0], reach[1]), (values[0], values[1]))

    scales = jax.lax.fori_loop(0, _ROUNDS, round_, scales)
    return scales, 0.99 / _norm(trees, scales, key)


def _root(squares: jax.Array) -> jax.Array:
    """Return the square root of the root of a squared norm, or 1 if the norm is 0."""
    return jnp.sqrt(jnp.where(squares > 0, squares, 1))


def spread_owner(tree: Treeplex, values: jax.Array) -> jax.Array:
    """Return the owner's part of `spread`: -value, 0 at the root, float [S]."""
    parts, begin = [jnp.zeros(1, values.dtype)], 0
    for level in tree.levels:
        for actions, n in level.shapes:
            block = values[begin : begin + n]
            parts.append(jnp.broadcast_to(-block[None], (actions, n)).reshape(-1))
            begin += n
    return treeplex.join(parts)


def absolute_flow(tree: Treeplex, reach: jax.Array) -> jax.Array:
    """Return the reach before an infoset plus that of its sequences, float [I]."""
    cut = treeplex.by_level(tree.levels, reach)
    sums = [
        treeplex.sum_rows(block)
        for level, part in zip(tree.levels, cut, strict=True)
        for block in level.split(part)
    ]
    if not sums:
        return reach[:0]
    return flow(tree, reach) + 2 * treeplex.join(sums)


def _norm(trees: tuple[Treeplex, Treeplex], scales: Point, key: jax.Array) -> jax.Array:
    """Estimate the largest singular value of the scaled program iteratively."""
    roots = jax.tree.map(jnp.sqrt, scales)

    def half(reach: jax.Array, values: jax.Array, player: int) -> tuple:
        """Multiply the program by a player's scaled reach and the other's values."""
        other = 1 - player
        scaled_reach = roots.reach[player] * reach
        scaled_values = roots.values[other] * values
        slope = gradient(trees[other], scaled_reach) + spread(
            trees[other], scaled_values
        )
        lack = flow(trees[player], scaled_reach)
        return roots.reach[other] * slope, roots.values[player] * lack

    def turn(_: jax.Array, carry: tuple) -> tuple:
        reach, values, _ = carry
        size = jnp.sqrt((reach**2).sum() + (values**2).sum())
        slope, lack = half(reach / size, values / size, 0)
        # In the transpose, the coupling and one of the flows have opposite signs.
        back, scaled_reach = half(slope, -lack, 1)
        return -back, scaled_reach, jnp.sqrt((slope**2).sum() + (lack**2).sum())

    reach = jax.random.normal(key, roots.reach[0].shape, roots.reach[0].dtype)
    values = jax.random.normal(key, roots.values[1].shape, roots.reach[0].dtype)
    start = reach * (roots.reach[0] > 0), values, jnp.zeros((), reach.dtype)
    return jax.lax.fori_loop(0, _POWERS, turn, start)[2]
