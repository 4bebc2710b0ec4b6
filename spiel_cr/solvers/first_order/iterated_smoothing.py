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
from spiel_cr.solvers.first_order.regularisers import (
    Pair,
    Response,
    SmoothedProblem,
    behaviour,
    gradients,
    mix,
    respond,
    uniform,
)

_PROX = "euclidean"
# First Lipschitz constant times η, in units of 2^exponent squared, and the largest one.
_FIRST_STEEPNESS, _LAST_STEEPNESS = 1e-4, 1e6
# Rounding errors of sums of payoffs, in units of the last place.
_ROUNDING = 64


class SmoothingState(NamedTuple):
    """State of iterated smoothing.

    Attributes:
      reach: Strategy of each player in sequence form, float [S].
      gradients: Gradient of each player at the other player's reach, float [S].
      centre: Strategy of each player from which the next step is measured, blocks.
      centre_reach: The same strategies in sequence form, float [S].
      centre_gradients: Gradient of each player at the other player's centre, float [S].
      goal: ε of this round, in units of 2^exponent, float scalar.
      nash_conv: NashConv of `reach` in the same units, float scalar.
      steepness: Lipschitz constant times η, float scalar.
      inner: Number of steps of this round, int scalar.
      rounds: Number of completed rounds, int scalar.
      products: Number of products with the payoff coupling, each for one player, int
        scalar.
      iteration: Number of steps, int scalar.
    """

    reach: Pair
    gradients: Pair
    centre: tuple[Blocks, Blocks]
    centre_reach: Pair
    centre_gradients: Pair
    goal: jax.Array
    nash_conv: jax.Array
    steepness: jax.Array
    inner: jax.Array
    rounds: jax.Array
    products: jax.Array
    iteration: jax.Array

    @property
    def strategies(self) -> Pair:
        """Strategies of both players in sequence form."""
        return self.reach


def nash_conv_of(problem: SmoothedProblem, slopes: Pair) -> jax.Array:
    """Return NashConv, in units of 2^exponent, from both players' gradients."""
    total = jnp.zeros((), slopes[0].dtype)
    for tree, slope in zip(problem.trees, slopes, strict=True):
        child: treeplex.Level | None = None
        child_values: jax.Array | None = None
        parts = treeplex.by_level(tree.levels, slope)
        for level, part in reversed(list(zip(tree.levels, parts, strict=True))):
            blocks = level.split(treeplex.with_children(part, child, child_values))
            best = [
                jnp.where(legal[0] > 0, jnp.where(legal > 0, block, -jnp.inf).max(0), 0)
                for block, legal in zip(blocks, level.uniform, strict=True)
            ]
            child, child_values = level, treeplex.join(best)
        total = total + slope[0]
        if child_values is not None:
            total = total + child_values.sum()
    return total


def init(problem: SmoothedProblem) -> SmoothingState:
    """Return the first state: uniform strategies, and ε is their NashConv over e."""
    first, second = (treeplex.uniform_strategy(tree) for tree in problem.trees)
    reach = (
        treeplex.reach(problem.trees[0], first),
        treeplex.reach(problem.trees[1], second),
    )
    slopes = gradients(problem, reach)
    nash_conv = nash_conv_of(problem, slopes)
    zero = jnp.zeros((), jnp.int32)
    return SmoothingState(
        *(reach, slopes, (first, second), reach, slopes),
        goal=nash_conv / math.e,
        nash_conv=nash_conv,
        steepness=jnp.asarray(_FIRST_STEEPNESS, nash_conv.dtype),
        inner=zero,
        rounds=zero,
        products=zero + 2,
        iteration=zero,
    )


def step(problem: SmoothedProblem, state: SmoothingState) -> SmoothingState:
    """Take an accelerated step; if NashConv is at most ε, start the next round."""
    smoothing = state.goal / (2 * problem.diameters.sum())
    share = 2 / (state.inner.astype(smoothing.dtype) + 2)

    def answer(player: int, slope: jax.Array) -> Response:
        tree = problem.trees[player]
        return respond(
            *(tree, _PROX, problem.weights[player], slope, smoothing),
            uniform(tree),
        )

    # The smoothed NashConv between the strategies and their centres, and its gradient.
    ahead = jax.tree.map(
        lambda old, new: mix(share, old, new), state.gradients, state.centre_gradients
    )
    answers = [answer(player, ahead[player]) for player in range(2)]
    value = answers[0].value + answers[1].value
    size = jnp.abs(answers[0].value) + jnp.abs(answers[1].value)
    slack = _ROUNDING * jnp.finfo(size.dtype).eps * size
    replies = [
        treeplex.reach(tree, response.strategy)
        for tree, response in zip(problem.trees, answers, strict=True)
    ]
    downhill = gradients(problem, (replies[0], replies[1]))

    def attempt(trial: tuple[SmoothingState, jax.Array]) -> tuple:
        steepness = 2 * trial[0].steepness
        moved = [
            respond(
                *(problem.trees[player], _PROX, problem.weights[player]),
                *(downhill[player], share * steepness / smoothing),
                state.centre[player],
            )
            for player in range(2)
        ]
        centre = moved[0].strategy, moved[1].strategy
        centre_reach = (
            treeplex.reach(problem.trees[0], centre[0]),
            treeplex.reach(problem.trees[1], centre[1]),
        )
        centre_gradients = gradients(problem, centre_reach)
        reach, slopes = jax.tree.map(
            lambda old, new: mix(share, old, new),
            (state.reach, state.gradients),
            (centre_reach, centre_gradients),
        )
        # The upper model at the new point; the step is too long if it is exceeded.
        bound = value
        for player in range(2):
            old = (downhill[player] * state.centre_reach[player]).sum()
            bound = bound + share * (old - moved[player].value)
        smoothed = answer(0, slopes[0]).value + answer(1, slopes[1]).value
        new = state._replace(
            reach=reach,
            gradients=slopes,
            centre=centre,
            centre_reach=centre_reach,
            centre_gradients=centre_gradients,
            steepness=steepness,
            products=trial[0].products + 2,
        )
        return new, smoothed > bound + slack

    first = state._replace(steepness=state.steepness / 2, products=state.products + 2)
    done, _ = jax.lax.while_loop(
        lambda trial: trial[1] & (trial[0].steepness < _LAST_STEEPNESS),
        attempt,
        (first, jnp.ones((), bool)),
    )
    nash_conv = nash_conv_of(problem, done.gradients)
    reached = nash_conv <= state.goal

    def restart(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(reached, new, old)

    strategies = tuple(
        behaviour(tree, reach)
        for tree, reach in zip(problem.trees, done.reach, strict=True)
    )
    return done._replace(
        centre=jax.tree.map(restart, strategies, done.centre),
        centre_reach=jax.tree.map(restart, done.reach, done.centre_reach),
        centre_gradients=jax.tree.map(restart, done.gradients, done.centre_gradients),
        # A smaller ε would be below rounding errors.
        goal=restart(
            jnp.maximum(state.goal / math.e, jnp.finfo(size.dtype).eps), state.goal
        ),
        nash_conv=nash_conv,
        steepness=restart(done.steepness / 2, done.steepness),
        inner=restart(jnp.zeros_like(state.inner), state.inner + 1),
        rounds=state.rounds + reached,
        iteration=state.iteration + 1,
    )
