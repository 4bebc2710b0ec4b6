"""Iterated smoothing: accelerated descent on a NashConv that is smoothed less and less.

Gilpin, Peña & Sandholm 2012, "First-order algorithm with O(ln(1/ε)) convergence for
ε-equilibrium in two-person zero-sum games", algorithm 2. NashConv as a function of both
strategies, smoothed by η = ε / (2 D), is minimised by Nesterov's method. Each round
starts from the result of the last one and ends when NashConv itself is at most ε; then
ε is divided by e. Rounds need about the same number of steps, so the total grows with
log(1/ε).

There are two deviations from the paper. Distances are dilated Euclidean ones, which can
be minimised exactly in one pass over a treeplex, instead of projections in the
Euclidean distance of sequence forms. The Lipschitz constant is determined by doubling,
so the norm of the payoff coupling is not needed (Nesterov 2013, "Gradient methods for
minimizing composite functions").
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.treeplex import Blocks
from spiel_cr.policies.best_responses import strategy_of
from spiel_cr.solvers.first_order.regularisers import (
    Pair,
    SmoothedProblem,
    gradients,
    mix,
    reach_of,
    respond_both,
)

_PROX = "euclidean"
# First Lipschitz constant times η, in units of 2^exponent squared, and the largest one.
_FIRST_STEEPNESS, _LAST_STEEPNESS = 1e-4, 1e6
# Rounding errors of sums of payoffs, in units of the last place.
_ROUNDING = 64


class SmoothingState(NamedTuple):
    """State of iterated smoothing.

    Attributes:
      strategies: Strategy of each player in sequence form, float [S].
      gradients: Gradient of each player at the other player's strategy, float [S].
      centre: Strategy of each player from which the next step is measured, blocks.
      centre_reach: The same strategies in sequence form, float [S].
      centre_gradients: Gradient of each player at the other player's centre, float [S].
      goal: ε of this round, in units of 2^exponent, float scalar.
      steepness: Lipschitz constant times η, float scalar.
      inner: Number of steps of this round, int scalar.
      products: Number of products with the payoff coupling, each for one player, int
        scalar.
      iteration: Number of steps, int scalar.
    """

    strategies: Pair
    gradients: Pair
    centre: tuple[Blocks, Blocks]
    centre_reach: Pair
    centre_gradients: Pair
    goal: jax.Array
    steepness: jax.Array
    inner: jax.Array
    products: jax.Array
    iteration: jax.Array


def _nash_conv(problem: SmoothedProblem, slopes: Pair) -> jax.Array:
    """Return NashConv, in units of 2^exponent, from both players' gradients."""
    one = jnp.ones((), slopes[0].dtype)
    first, second = respond_both(problem, "none", slopes, one)
    return first.value + second.value


def init(problem: SmoothedProblem) -> SmoothingState:
    """Return the first state: uniform strategies, and ε is their NashConv over e."""
    first, second = map(treeplex.uniform_strategy, problem.trees)
    reach = reach_of(problem, (first, second))
    slopes = gradients(problem, reach)
    goal, zero = _nash_conv(problem, slopes) / math.e, jnp.zeros((), jnp.int32)
    return SmoothingState(
        *(reach, slopes, (first, second), reach, slopes),
        goal=goal,
        steepness=jnp.asarray(_FIRST_STEEPNESS, goal.dtype),
        inner=zero,
        products=zero + 2,
        iteration=zero,
    )


def step(problem: SmoothedProblem, state: SmoothingState) -> SmoothingState:
    """Take an accelerated step; if NashConv is at most ε, start the next round."""
    smoothing = state.goal / (2 * problem.diameters.sum())
    share = 2 / (state.inner.astype(smoothing.dtype) + 2)

    # The smoothed NashConv between the strategies and their centres, and its gradient.
    ahead = jax.tree.map(
        lambda old, new: mix(share, old, new), state.gradients, state.centre_gradients
    )
    first, second = respond_both(problem, _PROX, ahead, smoothing)
    value = first.value + second.value
    size = jnp.abs(first.value) + jnp.abs(second.value)
    slack = _ROUNDING * jnp.finfo(size.dtype).eps * size
    replies = reach_of(problem, (first.strategy, second.strategy))
    downhill = gradients(problem, replies)

    def attempt(trial: tuple[SmoothingState, jax.Array]) -> tuple:
        steepness = 2 * trial[0].steepness
        scale = share * steepness / smoothing
        moved = respond_both(problem, _PROX, downhill, scale, state.centre)
        centre = moved[0].strategy, moved[1].strategy
        centre_reach = reach_of(problem, centre)
        centre_gradients = gradients(problem, centre_reach)
        reach, slopes = jax.tree.map(
            lambda old, new: mix(share, old, new),
            (state.strategies, state.gradients),
            (centre_reach, centre_gradients),
        )
        # The upper model at the new point; the step is too long if it is exceeded.
        bound = value
        for player in range(2):
            old = (downhill[player] * state.centre_reach[player]).sum()
            bound = bound + share * (old - moved[player].value)
        first, second = respond_both(problem, _PROX, slopes, smoothing)
        new = state._replace(
            strategies=reach,
            gradients=slopes,
            centre=centre,
            centre_reach=centre_reach,
            centre_gradients=centre_gradients,
            steepness=steepness,
            products=trial[0].products + 2,
        )
        return new, first.value + second.value > bound + slack

    start = state._replace(steepness=state.steepness / 2, products=state.products + 2)
    done, _ = jax.lax.while_loop(
        lambda trial: trial[1] & (trial[0].steepness < _LAST_STEEPNESS),
        attempt,
        (start, jnp.ones((), bool)),
    )
    # A smaller ε would be below rounding errors.
    goal = jnp.maximum(state.goal / math.e, jnp.finfo(size.dtype).eps)
    first_centre, second_centre = map(strategy_of, problem.trees, done.strategies)
    restarted = done._replace(
        centre=(first_centre, second_centre),
        centre_reach=done.strategies,
        centre_gradients=done.gradients,
        goal=goal,
        steepness=done.steepness / 2,
        inner=jnp.full_like(state.inner, -1),
    )
    reached = _nash_conv(problem, done.gradients) <= state.goal
    done = jax.tree.map(lambda *two: jnp.where(reached, *two), restarted, done)
    return done._replace(inner=done.inner + 1, iteration=state.iteration + 1)
