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
    uniform,
)

# First μ that is tried, in units of the payoffs divided by 2^exponent.
_FIRST_SMOOTHING = 1e-3
# Length of the first step that is tried, and its factor if the condition fails. On
# Leduc poker, lengths from 0.4 to 0.5 give similar results.
_FIRST_SHARE, _SHRINKAGE = 0.45, 0.5
# Progress of shorter steps would be smaller than rounding errors.
_LEAST_SHARE = 1e-9


class EGTState(NamedTuple):
    """State of the excessive gap technique.

    Attributes:
      reach: Strategy of each player in sequence form, float [S].
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

    reach: Pair
    replies: Pair
    owner: jax.Array
    smoothing: jax.Array
    share: jax.Array
    excess: jax.Array
    products: jax.Array
    iteration: jax.Array

    @property
    def strategies(self) -> Pair:
        """Strategies of both players in sequence form."""
        return self.reach


def _response(
    problem: SmoothedProblem,
    config: ExcessiveGapConfig,
    player: int,
    other_reach: jax.Array,
    smoothing: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return F of a player, and the smoothed best response in sequence form."""
    tree = problem.trees[player]
    slope = gradient(tree, other_reach)
    answer = respond(
        *(tree, config.prox, problem.weights[player], slope, smoothing, uniform(tree))
    )
    return answer.value, treeplex.reach(tree, answer.strategy)


def _two_responses(
    problem: SmoothedProblem,
    config: ExcessiveGapConfig,
    player: int,
    reach: Pair,
    toward: jax.Array,
    smoothing: tuple[jax.Array, jax.Array],
    share: jax.Array,
) -> tuple[Pair, jax.Array, jax.Array]:
    """Move the opponent, then the player, to smoothed best responses.

    Args:
      problem: The game and its prox functions.
      config: Settings of the method.
      player: The player whose smoothing is reduced.
      reach: Strategy of each player before the step, float [S].
      toward: Strategy of the player to which the opponent responds, float [S].
      smoothing: μ of the player after the step, and μ of the opponent.
      share: Length τ of the step, float scalar.

    Returns:
      Strategies after the step, the opponent's smoothed best response to the player's,
      and the excess F_0 + F_1.
    """
    other = 1 - player
    _, answer = _response(problem, config, other, toward, smoothing[1])
    other_reach = mix(share, reach[other], answer)
    value, answer = _response(problem, config, player, other_reach, smoothing[0])
    player_reach = mix(share, reach[player], answer)
    other_value, reply = _response(problem, config, other, player_reach, smoothing[1])
    moved = (player_reach, other_reach) if player == 0 else (other_reach, player_reach)
    return moved, reply, value + other_value


def init(problem: SmoothedProblem, *, config: ExcessiveGapConfig) -> EGTState:
    """Return the first state as algorithm 1 of Hoda et al., with a smaller μ.

    The theory derives μ from the norm of the payoff coupling. Here μ starts at a small
    share of the largest payoff and is doubled until the condition holds. For each μ,
    player 1 moves to its response to the uniform strategy, and player 0 to its response
    to player 1.
    """
    start = tuple(
        treeplex.reach(tree, treeplex.uniform_strategy(tree)) for tree in problem.trees
    )
    one, zero = jnp.ones((), start[0].dtype), jnp.zeros((), jnp.int32)

    def attempt(state: EGTState) -> EGTState:
        smoothing = 2 * state.smoothing
        reach, reply, excess = _two_responses(
            problem,
            config,
            0,
            (start[0], start[1]),
            start[0],
            (smoothing[0], smoothing[1]),
            one,
        )
        return state._replace(
            reach=reach,
            replies=(start[0], reply),
            smoothing=smoothing,
            excess=excess,
            products=state.products + 3,
        )

    return jax.lax.while_loop(
        lambda state: state.excess > 0,
        attempt,
        EGTState(
            *((start[0], start[1]), (start[0], start[1]), zero + 1),
            jnp.full(2, _FIRST_SMOOTHING / 2, one.dtype),
            *(_FIRST_SHARE * one, one, zero, zero),
        ),
    )


def step(
    problem: SmoothedProblem, state: EGTState, *, config: ExcessiveGapConfig
) -> EGTState:
    """Reduce the smoothing of one player (algorithm 2 of Hoda et al.).

    With balancing it is the player with the larger μ, otherwise players alternate. An
    aggressive step is as long as the last one; without this heuristic it has the
    theory's length 2 / (k + 3). In both cases a step is shortened until the excessive
    gap condition holds.
    """
    chosen = state.smoothing[0] < state.smoothing[1]
    if not config.balancing:
        chosen = state.iteration % 2 == 1
    return jax.lax.cond(
        chosen,
        lambda: _step_of(problem, state, 1, config),
        lambda: _step_of(problem, state, 0, config),
    )


def _step_of(
    problem: SmoothedProblem, state: EGTState, player: int, config: ExcessiveGapConfig
) -> EGTState:
    """Reduce the smoothing of a player by a step."""
    before, smoothing = state.reach, state.smoothing
    reuses = state.owner == player
    answer = jax.lax.cond(
        reuses,
        lambda: state.replies[player],
        lambda: _response(
            problem, config, player, before[1 - player], smoothing[player]
        )[1],
    )
    share = state.share
    if not config.aggressive:
        share = 2 / (state.iteration.astype(share.dtype) + 3)

    def attempt(tried: EGTState) -> EGTState:
        share = tried.share * _SHRINKAGE
        reach, reply, excess = _two_responses(
            problem,
            config,
            player,
            before,
            mix(share, before[player], answer),
            ((1 - share) * smoothing[player], smoothing[1 - player]),
            share,
        )
        return tried._replace(
            reach=reach,
            replies=(reply, answer) if player else (answer, reply),
            share=share,
            excess=excess,
            products=tried.products + 3,
        )

    first = state._replace(
        share=share / _SHRINKAGE,
        excess=jnp.ones_like(state.excess),
        products=state.products + 1 - reuses,
    )
    done = jax.lax.while_loop(
        lambda tried: (tried.excess > 0) & (tried.share > _LEAST_SHARE), attempt, first
    )
    return done._replace(
        owner=jnp.full_like(state.owner, 1 - player),
        smoothing=smoothing.at[player].multiply(1 - done.share),
        iteration=state.iteration + 1,
    )
