"""The excessive gap technique (EGT): two smoothed values that never cross.

Nesterov 2005, "Excessive gap technique in nonsmooth convex minimization", for
sequential games: Hoda, Gilpin, Peña & Sandholm 2010, "Smoothing techniques for
computing Nash equilibria of sequential games", algorithms 1 to 3, with the two
heuristics of Gilpin, Hoda, Peña & Sandholm 2007, "Gradient-based algorithms for finding
Nash equilibria in extensive form games": aggressive reduction of μ, and balancing.

Let F_p(y) = max_x ⟨g_p(y), x⟩ − μ_p d_p(x) be player p's smoothed best-response value
against y, in p's utility. The excessive gap condition is F_0(x_1) + F_1(x_0) ≤ 0. If it
holds, NashConv of (x_0, x_1) is at most Σ_p μ_p max d_p.

There is one deviation. The paper measures the last response of a step from the one
before it by a Bregman divergence. For the entropy this is the smoothed best response to
the opponent's mean strategy with the reduced μ, which is computed here for both prox
functions. The condition is checked after every step, so the bound holds for both.

The last response of a step is the first one of the next step, if that is the other
player's. Such a step needs three products with the payoff coupling, others four.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.first_order.first_order_config import ExcessiveGapConfig
from spiel_cr.solvers.first_order.primal_dual import gradient
from spiel_cr.solvers.first_order.regularisers import (
    Pair,
    SmoothedProblem,
    mix,
    respond,
)

# First μ that is tried with the aggressive heuristic, in units of 2^exponent, and steps
# of the power iteration without it.
_FIRST_SMOOTHING, _POWERS = 1e-3, 30
# Length of the first step that is tried, and its factor if the condition fails. On
# Leduc poker, lengths from 0.4 to 0.5 give similar results.
_FIRST_SHARE, _SHRINKAGE = 0.45, 0.5
# Progress of shorter steps would be smaller than rounding errors.
_LEAST_SHARE = 1e-9


class EGTState(NamedTuple):
    """State of the excessive gap technique.

    Attributes:
      strategies: Strategy of each player in sequence form, float [S].
      replies: Smoothed best response of each player, float [S].
      owner: Player whose response is to the current strategy, int scalar.
      smoothing: μ of both players, float [2].
      share: Length τ of the next step that is tried, float scalar.
      excess: F_0 + F_1 after the last step, in units of 2^exponent, float scalar;
        positive only by rounding errors.
      products: Number of products with the payoff coupling, each for one player, int
        scalar.
      iteration: Number of steps, int scalar.
    """

    strategies: Pair
    replies: Pair
    owner: jax.Array
    smoothing: jax.Array
    share: jax.Array
    excess: jax.Array
    products: jax.Array
    iteration: jax.Array


def _response(
    problem: SmoothedProblem,
    config: ExcessiveGapConfig,
    player: int,
    other_reach: jax.Array,
    smoothing: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return F of a player, and the smoothed best response in sequence form."""
    tree, weights = problem.trees[player], problem.weights[player]
    slope = gradient(tree, other_reach)
    answer = respond(tree, config.prox, weights, slope, smoothing[player])
    return answer.value, treeplex.reach(tree, answer.strategy)


def _moved(
    problem: SmoothedProblem,
    config: ExcessiveGapConfig,
    player: int,
    state: EGTState,
    answer: jax.Array,
    smoothing: jax.Array,
    share: jax.Array,
) -> EGTState:
    """Move the opponent, then the player, to smoothed best responses.

    Args:
      problem: The game and its prox functions.
      config: Settings of the method.
      player: The player whose smoothing is reduced.
      state: The state before the step.
      answer: The player's smoothed best response before the step, float [S].
      smoothing: μ of both players after the step, float [2].
      share: Length τ of the step, float scalar.

    Returns:
      The state after the step, in which `excess` may be positive.
    """
    other, reach = 1 - player, list(state.strategies)
    toward = mix(share, reach[player], answer)
    _, reply = _response(problem, config, other, toward, smoothing)
    reach[other] = mix(share, reach[other], reply)
    value, reply = _response(problem, config, player, reach[other], smoothing)
    reach[player] = mix(share, reach[player], reply)
    other_value, reply = _response(problem, config, other, reach[player], smoothing)
    return state._replace(
        strategies=(reach[0], reach[1]),
        replies=(reply, answer) if player else (answer, reply),
        owner=jnp.full_like(state.owner, other),
        smoothing=smoothing,
        share=share,
        excess=value + other_value,
        iteration=state.iteration + 1,
    )


def _norm(problem: SmoothedProblem, prox: str) -> jax.Array:
    """Return the norm of the payoff coupling that belongs to a prox function.

    For the entropy, it is the largest absolute entry, which is at most 1 in units of
    2^exponent. For the Euclidean distance, a power iteration estimates it.
    """
    first, second = problem.trees
    one = jnp.ones((), problem.moduli.dtype)
    if prox == "entropy":
        return one

    def turn(_: jax.Array, reach: jax.Array) -> jax.Array:
        unit = reach / jnp.maximum(jnp.linalg.norm(reach), jnp.finfo(one.dtype).tiny)
        return gradient(second, gradient(first, unit))

    start = gradient(second, treeplex.reach(first, treeplex.uniform_strategy(first)))
    return jnp.sqrt(jnp.linalg.norm(jax.lax.fori_loop(0, _POWERS, turn, start)))


def init(problem: SmoothedProblem, *, config: ExcessiveGapConfig) -> EGTState:
    """Return the first state as algorithm 1 of Hoda et al.

    Player 1 moves to its response to the uniform strategy, and player 0 to its response
    to player 1. The theory derives μ from the norm ‖A‖ of the payoff coupling and the
    moduli of the prox functions, μ = ‖A‖ / √(σ_0 σ_1). With the aggressive heuristic, μ
    is instead a small share of the largest payoff. In both cases μ is doubled until the
    condition holds.
    """
    smoothing: float | jax.Array = _FIRST_SMOOTHING
    if not config.aggressive:
        smoothing = _norm(problem, config.prox) / jnp.sqrt(problem.moduli.prod())
    first, second = (
        treeplex.reach(tree, treeplex.uniform_strategy(tree)) for tree in problem.trees
    )
    one, zero = jnp.ones((), first.dtype), jnp.zeros((), jnp.int32)
    start = EGTState(
        *((first, second), (first, second), zero),
        jnp.full(2, smoothing / 2, one.dtype),
        *(_FIRST_SHARE * one, one, zero, zero - 1),
    )

    def attempt(tried: EGTState) -> EGTState:
        moved = _moved(problem, config, 0, start, first, 2 * tried.smoothing, one)
        return moved._replace(share=start.share, products=tried.products + 3)

    return jax.lax.while_loop(lambda tried: tried.excess > 0, attempt, start)


def step(
    problem: SmoothedProblem, state: EGTState, *, config: ExcessiveGapConfig
) -> EGTState:
    """Reduce the smoothing of one player (algorithm 2 of Hoda et al.).

    With balancing it is the player with the larger μ, otherwise players alternate. An
    aggressive step is as long as the last one; without this heuristic it has the
    theory's length 2 / (k + 3). In both cases a step is shortened until the excessive
    gap condition holds.
    """
    smaller, odd = state.smoothing[0] < state.smoothing[1], state.iteration % 2 == 1
    chosen = smaller if config.balancing else odd
    return jax.lax.cond(
        chosen,
        lambda: _step_of(problem, state, 1, config),
        lambda: _step_of(problem, state, 0, config),
    )


def _step_of(
    problem: SmoothedProblem, state: EGTState, player: int, config: ExcessiveGapConfig
) -> EGTState:
    """Reduce the smoothing of a player by a step."""
    reuses = state.owner == player
    answer = jax.lax.cond(
        reuses,
        lambda: state.replies[player],
        lambda: _response(
            problem, config, player, state.strategies[1 - player], state.smoothing
        )[1],
    )
    share = state.share
    if not config.aggressive:
        share = 2 / (state.iteration.astype(share.dtype) + 3)

    def attempt(tried: EGTState) -> EGTState:
        share = tried.share * _SHRINKAGE
        smoothing = state.smoothing.at[player].multiply(1 - share)
        moved = _moved(problem, config, player, state, answer, smoothing, share)
        return moved._replace(products=tried.products + 3)

    first = state._replace(
        share=share / _SHRINKAGE,
        excess=jnp.ones_like(state.excess),
        products=state.products + 1 - reuses,
    )
    return jax.lax.while_loop(
        lambda tried: (tried.excess > 0) & (tried.share > _LEAST_SHARE), attempt, first
    )
