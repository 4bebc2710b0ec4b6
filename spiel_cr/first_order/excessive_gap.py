"""The excessive gap technique: two smoothed values that never cross, brought together.

Nesterov 2005, "Excessive gap technique in nonsmooth convex minimization", for
sequential games: Hoda, Gilpin, Peña & Sandholm 2010, algorithms 1 to 3, with the two
heuristics of Gilpin, Hoda, Peña & Sandholm 2007: steps as long as the excessive gap
condition allows ("aggressive μ reduction"), and the player whose smoothing weighs more
is smoothed less next ("balancing").

With F_p(y) = max_x ⟨g_p(y), x⟩ − μ_p d_p(x), player p's smoothed best response value in
its own utility, the condition is F_0(x_1) + F_1(x_0) ≤ 0; then NashConv of (x_0, x_1)
is at most Σ μ_p max d_p.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.first_order import regularisers
from spiel_cr.first_order.config import EGTConfig
from spiel_cr.first_order.problem import Problem
from spiel_cr.first_order.regularisers import gradient, mix, respond
from spiel_cr.sequence_form import treeplex
from spiel_cr.sequence_form.treeplex import Blocks


class EGTState(NamedTuple):
    """What the excessive gap technique remembers.

    Attributes:
      reach: for each player float [S], its strategy in sequence form.
      gradients: for each player float [S], `gradient` at the other's reach.
      smoothing: float [2], μ of both players.
      share: float scalar, the length τ of the next step that is tried.
      excess: float scalar, F_0 + F_1 after the last step, in units of 2^exponent;
        above 0 only by rounding.
      products: int scalar, products with the payoff coupling so far.
      iteration: int scalar, steps done.
    """

    reach: tuple[jax.Array, jax.Array]
    gradients: tuple[jax.Array, jax.Array]
    smoothing: jax.Array
    share: jax.Array
    excess: jax.Array
    products: jax.Array
    iteration: jax.Array


class _Trial(NamedTuple):
    """A step of a length that is tried."""

    reach: tuple[jax.Array, jax.Array]
    gradients: tuple[jax.Array, jax.Array]
    smoothing: jax.Array
    share: jax.Array
    excess: jax.Array
    products: jax.Array


def _respond(
    problem: Problem, player: int, slope: jax.Array, scale: jax.Array, centre: Blocks
) -> regularisers.Response:
    return respond(
        *(problem.trees[player], "entropy", problem.weights[player]),
        *(slope, scale, centre),
    )


def _excess(
    problem: Problem, gradients: tuple[jax.Array, jax.Array], smoothing: jax.Array
) -> jax.Array:
    """F_0 + F_1: at most 0 where the excessive gap condition holds."""
    values = [
        _respond(problem, p, gradients[p], smoothing[p], _centre(problem, p)).value
        for p in range(2)
    ]
    return values[0] + values[1]


def _centre(problem: Problem, player: int) -> Blocks:
    return regularisers.uniform_centre(problem.trees[player])


def init(problem: Problem, *, config: EGTConfig) -> EGTState:
    """The start of Hoda et al.'s algorithm 1, with the least μ of a sequence.

    Theory takes the norm of the payoff coupling for μ. Here μ is doubled from a small
    share of the largest payoff until the condition holds.

    Args:
      problem: the game.
      config: settings.
    """
    trees = problem.trees
    uniform = treeplex.reach(trees[0], treeplex.uniform_strategy(trees[0]))
    slope = gradient(trees[1], uniform)
    dtype = uniform.dtype

    def attempt(scale: jax.Array, products: jax.Array) -> _Trial:
        answer = _respond(problem, 1, slope, scale, _centre(problem, 1))
        other = treeplex.reach(trees[1], answer.strategy)
        own_slope = gradient(trees[0], other)
        step = _respond(problem, 0, own_slope, scale, _centre(problem, 0))
        own = treeplex.reach(trees[0], step.strategy)
        gradients = own_slope, gradient(trees[1], own)
        smoothing = jnp.stack([scale, scale])
        return _Trial(
            (own, other),
            gradients,
            smoothing,
            scale,
            _excess(problem, gradients, smoothing),
            products + 2,
        )

    first = attempt(jnp.asarray(_FIRST_SMOOTHING, dtype), jnp.asarray(1, jnp.int32))
    found = jax.lax.while_loop(
        lambda trial: trial.excess > 0,
        lambda trial: attempt(2 * trial.share, trial.products),
        first,
    )
    return EGTState(
        found.reach,
        found.gradients,
        found.smoothing,
        jnp.asarray(config.first_share, dtype),
        found.excess,
        found.products,
        jnp.zeros((), jnp.int32),
    )


# In units of the payoffs over 2^exponent.
_FIRST_SMOOTHING = 1e-3
# Steps shorter than this gain nothing that rounding does not take.
_LEAST_SHARE = 1e-9


def step(problem: Problem, state: EGTState, *, config: EGTConfig) -> EGTState:
    """One step: the smoothing of one player is reduced (algorithm 2 of Hoda et al.).

    Args:
      problem: the game.
      state: the state to advance.
      config: settings.
    """
    chosen = state.smoothing[0] < state.smoothing[1]

    def shrink(player: int) -> _Trial:
        return _shrink(problem, state, player, config)

    found = jax.lax.cond(chosen, lambda: shrink(1), lambda: shrink(0))
    longer = jnp.minimum(found.share * config.growth, config.first_share)
    return EGTState(
        found.reach,
        found.gradients,
        found.smoothing,
        longer,
        found.excess,
        found.products,
        state.iteration + 1,
    )


def _shrink(
    problem: Problem, state: EGTState, player: int, config: EGTConfig
) -> _Trial:
    """Reduces one player's smoothing by the longest share tried that keeps the gap."""
    other = 1 - player
    trees = problem.trees
    own_tree, other_tree = trees[player], trees[other]
    mine, theirs = state.smoothing[player], state.smoothing[other]
    slope = state.gradients[player]
    best = _respond(problem, player, slope, mine, _centre(problem, player))
    reach = treeplex.reach(own_tree, best.strategy)
    towards = gradient(other_tree, reach)

    def attempt(share: jax.Array, products: jax.Array) -> _Trial:
        ahead = mix(share, state.gradients[other], towards)
        answer = _respond(problem, other, ahead, theirs, _centre(problem, other))
        other_reach = treeplex.reach(other_tree, answer.strategy)
        pull = gradient(own_tree, other_reach)
        weight = share / (1 - share)
        target = _respond(problem, player, weight * pull, mine, best.strategy)
        target_reach = treeplex.reach(own_tree, target.strategy)
        own = mix(share, state.reach[player], target_reach)
        opposite = mix(share, state.reach[other], other_reach)
        own_slope = mix(share, slope, pull)
        other_slope = mix(
            share, state.gradients[other], gradient(other_tree, target_reach)
        )
        smoothing = state.smoothing.at[player].multiply(1 - share)
        ordered = (own_slope, other_slope) if player == 0 else (other_slope, own_slope)
        return _Trial(
            (own, opposite) if player == 0 else (opposite, own),
            ordered,
            smoothing,
            share,
            _excess(problem, ordered, smoothing),
            products + 2,
        )

    def refused(trial: _Trial) -> jax.Array:
        return (trial.excess > 0) & (trial.share > _LEAST_SHARE)

    first = attempt(state.share, state.products + 1)
    return jax.lax.while_loop(
        refused,
        lambda trial: attempt(trial.share * config.shrinkage, trial.products),
        first,
    )
