"""Iterated smoothing: accelerated descent on NashConv, smoothed less and less.

Gilpin, Peña & Sandholm 2012, "First-order algorithm with O(ln(1/ε)) convergence for
ε-equilibrium in two-person zero-sum games" (AAAI 2008), algorithm 2. NashConv as a
function of both strategies, smoothed by η = ε / (2 D), is minimised by Nesterov's
method from where the last round ended until the true NashConv is below ε; then ε is
divided by e. Each round takes about as many steps, so their number grows with log(1/ε).

Two things differ from the paper. Distances are dilated Euclidean ones, exact on a
treeplex in one pass, instead of a projection in the Euclidean distance of sequence
forms. And the Lipschitz constant is found by doubling, so that no norm of the payoff
coupling is needed (Nesterov 2013, "Gradient methods for minimizing composite
functions").
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.treeplex import Blocks
from spiel_cr.solvers.first_order import regularisers
from spiel_cr.solvers.first_order.problem import Problem
from spiel_cr.solvers.first_order.regularisers import gradient, mix

_Pair = tuple[jax.Array, jax.Array]


class SmoothingState(NamedTuple):
    """What iterated smoothing remembers.

    Attributes:
      reach: for each player float [S], its strategy in sequence form.
      gradients: for each player float [S], at the other's reach.
      centre: for each player the strategy from which the next step is measured, blocks.
      centre_reach: the same in sequence form.
      centre_gradients: for each player float [S], at the other's centre.
      goal: float scalar, ε of this round, in units of 2^exponent.
      nash_conv: float scalar, at `reach`, likewise.
      steepness: float scalar, the Lipschitz constant times η.
      inner: int scalar, steps of this round.
      rounds: int scalar, rounds that came to their goal.
      products: int scalar, products with the payoff coupling so far.
      iteration: int scalar, steps done.
    """

    reach: _Pair
    gradients: _Pair
    centre: tuple[Blocks, Blocks]
    centre_reach: _Pair
    centre_gradients: _Pair
    goal: jax.Array
    nash_conv: jax.Array
    steepness: jax.Array
    inner: jax.Array
    rounds: jax.Array
    products: jax.Array
    iteration: jax.Array


class _Trial(NamedTuple):
    """A step with a Lipschitz constant that is tried."""

    reach: _Pair
    gradients: _Pair
    centre: tuple[Blocks, Blocks]
    centre_reach: _Pair
    centre_gradients: _Pair
    steepness: jax.Array
    refused: jax.Array
    products: jax.Array


class _Descent(NamedTuple):
    """Where a step goes, whatever the Lipschitz constant.

    Attributes:
      smoothing: float scalar, η of this round.
      share: float scalar, of the new centre in the new strategies.
      downhill: for each player float [S], what pays it against smoothed responses.
      value: float scalar, the smoothed NashConv ahead.
      slack: float scalar, what rounding may add to it.
    """

    smoothing: jax.Array
    share: jax.Array
    downhill: _Pair
    value: jax.Array
    slack: jax.Array


def _gradients(problem: Problem, reach: _Pair) -> _Pair:
    first, second = problem.trees
    return gradient(first, reach[1]), gradient(second, reach[0])


def nash_conv_of(problem: Problem, gradients: _Pair) -> jax.Array:
    """NashConv, in units of 2^exponent, from the gradients at both strategies."""
    total = jnp.zeros((), gradients[0].dtype)
    for tree, slope in zip(problem.trees, gradients, strict=True):
        child: treeplex.Level | None = None
        child_values: jax.Array | None = None
        parts = regularisers.split(tree, slope)
        for level, part in reversed(list(zip(tree.levels, parts, strict=True))):
            blocks = level.split(treeplex.with_children(part, child, child_values))
            best = [
                jnp.where(
                    uniform[0] > 0, jnp.where(uniform > 0, block, -jnp.inf).max(0), 0
                )
                for block, uniform in zip(blocks, level.uniform, strict=True)
            ]
            child, child_values = level, treeplex.join(best)
        total = total + slope[0]
        if child_values is not None:
            total = total + child_values.sum()
    return total


def init(problem: Problem) -> SmoothingState:
    """Both players begin with the uniform strategy, ε with its NashConv over e.

    Args:
      problem: the game.
    """
    first, second = (treeplex.uniform_strategy(tree) for tree in problem.trees)
    reach = (
        treeplex.reach(problem.trees[0], first),
        treeplex.reach(problem.trees[1], second),
    )
    gradients = _gradients(problem, reach)
    found = nash_conv_of(problem, gradients)
    zero = jnp.zeros((), jnp.int32)
    return SmoothingState(
        *(reach, gradients, (first, second), reach, gradients),
        goal=found / math.e,
        nash_conv=found,
        steepness=jnp.asarray(_FIRST_STEEPNESS, found.dtype),
        inner=zero,
        rounds=zero,
        products=zero + 2,
        iteration=zero,
    )


# The Lipschitz constant times η, in units of 2^exponent squared, is doubled from this.
_FIRST_STEEPNESS = 1e-4


def _respond(
    problem: Problem,
    player: int,
    slope: jax.Array,
    scale: jax.Array,
    centre: Blocks | None = None,
) -> regularisers.Response:
    tree = problem.trees[player]
    if centre is None:
        centre = regularisers.uniform_centre(tree)
    return regularisers.respond(
        *(tree, "euclidean", problem.weights[player], slope, scale, centre)
    )


def _descend(problem: Problem, state: SmoothingState) -> _Descent:
    """Looks downhill from between the strategies and their centres."""
    smoothing = state.goal / (2 * problem.diameter)
    share = 2 / (state.inner.astype(smoothing.dtype) + 2)
    ahead = tuple(
        mix(share, a, b)
        for a, b in zip(state.gradients, state.centre_gradients, strict=True)
    )
    answers = [_respond(problem, p, ahead[p], smoothing) for p in range(2)]
    value = answers[0].value + answers[1].value
    size = jnp.abs(answers[0].value) + jnp.abs(answers[1].value)
    slack = _ROUNDING * jnp.finfo(size.dtype).eps * size
    replies = [
        treeplex.reach(tree, answer.strategy)
        for tree, answer in zip(problem.trees, answers, strict=True)
    ]
    downhill = _gradients(problem, (replies[0], replies[1]))
    return _Descent(smoothing, share, downhill, value, slack)


def _attempt(
    problem: Problem,
    state: SmoothingState,
    descent: _Descent,
    steepness: jax.Array,
    products: jax.Array,
) -> _Trial:
    """A step with a Lipschitz constant, refused where it lies over the upper model."""
    smoothing, share, downhill, value, slack = descent
    scale = share * steepness / smoothing
    moved = [
        _respond(problem, p, downhill[p], scale, state.centre[p]) for p in range(2)
    ]
    centre = moved[0].strategy, moved[1].strategy
    centre_reach = (
        treeplex.reach(problem.trees[0], centre[0]),
        treeplex.reach(problem.trees[1], centre[1]),
    )
    centre_gradients = _gradients(problem, centre_reach)
    reach, gradients = (
        (mix(share, old[0], new[0]), mix(share, old[1], new[1]))
        for old, new in (
            (state.reach, centre_reach),
            (state.gradients, centre_gradients),
        )
    )
    found = sum(_respond(problem, p, gradients[p], smoothing).value for p in range(2))
    # Upper model at the new point: what the step gained, less what it went.
    bound = value
    for p in range(2):
        old = (downhill[p] * state.centre_reach[p]).sum()
        bound = bound + share * (old - moved[p].value)
    refused = found > bound + slack
    return _Trial(
        reach,
        gradients,
        centre,
        centre_reach,
        centre_gradients,
        steepness,
        refused,
        products + 2,
    )


def step(problem: Problem, state: SmoothingState) -> SmoothingState:
    """One accelerated step; where it comes to the goal, the next round begins.

    Args:
      problem: the game.
      state: the state to advance.
    """
    descent = _descend(problem, state)
    # The loop does the first trial, too, so that the program holds one.
    before = _Trial(
        state.reach,
        state.gradients,
        state.centre,
        state.centre_reach,
        state.centre_gradients,
        steepness=state.steepness / 2,
        refused=jnp.ones((), bool),
        products=state.products + 2,
    )
    done = jax.lax.while_loop(
        lambda trial: trial.refused & (trial.steepness < 1e6),
        lambda trial: _attempt(
            problem, state, descent, 2 * trial.steepness, trial.products
        ),
        before,
    )
    found = nash_conv_of(problem, done.gradients)
    reached = found <= state.goal

    def restart(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(reached, new, old)

    own = tuple(
        regularisers.behaviour(tree, reach)
        for tree, reach in zip(problem.trees, done.reach, strict=True)
    )
    return SmoothingState(
        done.reach,
        done.gradients,
        jax.tree.map(restart, own, done.centre),
        jax.tree.map(restart, done.reach, done.centre_reach),
        jax.tree.map(restart, done.gradients, done.centre_gradients),
        # Below rounding there is nothing to smooth.
        goal=restart(
            jnp.maximum(state.goal / math.e, jnp.finfo(found.dtype).eps),
            state.goal,
        ),
        nash_conv=found,
        steepness=restart(done.steepness / 2, done.steepness),
        inner=restart(jnp.zeros_like(state.inner), state.inner + 1),
        rounds=state.rounds + reached,
        products=done.products,
        iteration=state.iteration + 1,
    )


# Of sums of payoffs, in units of the last place: less than that refuses no step.
_ROUNDING = 64
