"""The excessive gap technique: two smoothed values that never cross, brought together.

Nesterov 2005, "Excessive gap technique in nonsmooth convex minimization", for
sequential games: Hoda, Gilpin, Peña & Sandholm 2010, algorithms 1 to 3, with the two
heuristics of Gilpin, Hoda, Peña & Sandholm 2007: steps as long as the excessive gap
condition allows ("aggressive μ reduction"), and the player whose smoothing weighs more
is smoothed less next ("balancing").

With F_p(y) = max_x ⟨g_p(y), x⟩ − μ_p d_p(x), player p's smoothed best response value in
its own utility, the condition is F_0(x_1) + F_1(x_0) ≤ 0; then NashConv of (x_0, x_1)
is at most Σ μ_p max d_p.

A step moves towards three smoothed responses. Each is the best one against a mean of
gradients, measured from the uniform strategy: a divergence from the response before
differs from that by a linear function, which is the gradient that the response answers.
So the last response of a step is the one in the condition, too. And so one loop of
moves, each of one player, makes a step: a program with one pass per player.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.first_order import regularisers
from spiel_cr.first_order.config import EGTConfig
from spiel_cr.first_order.problem import Problem
from spiel_cr.first_order.regularisers import gradient, mix, respond
from spiel_cr.sequence_form import treeplex


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


class _Work(NamedTuple):
    """What a step, or the start, works with between moves.

    Attributes:
      reach: for each player float [S], its last response.
      gradients: for each player float [S], at the other's last response.
      values: float [2], F of each player's last response.
      share: float scalar, the τ that is tried; at the start, the μ.
      move: int scalar, the next move of the step; the last one: it is done.
      products: int scalar, products with the payoff coupling so far.
    """

    reach: tuple[jax.Array, jax.Array]
    gradients: tuple[jax.Array, jax.Array]
    values: jax.Array
    share: jax.Array
    move: jax.Array
    products: jax.Array


def _respond(
    problem: Problem,
    player: jax.Array,
    slopes: Callable[[int], jax.Array],
    scale: jax.Array,
    work: _Work,
    judge: jax.Array,
) -> _Work:
    """A player's smoothed best response; what it does to the other player's gradient.

    Args:
      problem: the game.
      player: int scalar, who responds.
      slopes: float [S], what a player responds to.
      scale: float scalar, its μ.
      work: what there is; the answer takes its place.
      judge: only the value is asked for.
    """

    def by(mine: int) -> _Work:
        tree = problem.trees[mine]
        answer = respond(
            *(tree, "entropy", problem.weights[mine], slopes(mine), scale),
            regularisers.uniform_centre(tree),
        )
        values = work.values.at[mine].set(answer.value)

        def moved() -> tuple[jax.Array, jax.Array]:
            reach = treeplex.reach(tree, answer.strategy)
            return reach, gradient(problem.trees[1 - mine], reach)

        reach, pull = jax.lax.cond(
            judge, lambda: (work.reach[mine], work.gradients[1 - mine]), moved
        )
        return work._replace(
            reach=_exchanged(work.reach, mine, reach),
            gradients=_exchanged(work.gradients, 1 - mine, pull),
            values=values,
            products=work.products + jnp.where(judge, 0, 1),
        )

    return jax.lax.cond(player == 0, lambda: by(0), lambda: by(1))


def _exchanged(
    pair: tuple[jax.Array, jax.Array], player: int, new: jax.Array
) -> tuple[jax.Array, jax.Array]:
    return (new, pair[1]) if player == 0 else (pair[0], new)


def _nothing(problem: Problem, share: jax.Array, products: jax.Array) -> _Work:
    """Before the first move."""
    sizes = [
        1 + sum(level.num_sequences for level in tree.levels) for tree in problem.trees
    ]
    empty = [jnp.zeros(size, share.dtype) for size in sizes]
    return _Work(
        *((empty[0], empty[1]), (empty[0], empty[1]), jnp.zeros(2, share.dtype), share),
        *(jnp.zeros((), jnp.int32), products),
    )


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

    def move(work: _Work) -> _Work:
        # Player 1 against the uniform strategy, player 0 against that; then it is
        # judged what player 1 has against player 0.
        def slopes(player: int) -> jax.Array:
            if player == 0:
                return work.gradients[0]
            return jnp.where(work.move == 0, slope, work.gradients[1])

        player = jnp.where(work.move == 1, 0, 1)
        judge = work.move == 2
        found = _respond(problem, player, slopes, work.share, work, judge)
        again = judge & (found.values.sum() > 0)
        return found._replace(
            move=jnp.where(again, 0, work.move + 1),
            share=jnp.where(again, 2 * work.share, work.share),
        )

    scale, one = jnp.asarray(_FIRST_SMOOTHING, dtype), jnp.ones((), jnp.int32)
    found = jax.lax.while_loop(
        lambda work: work.move < 3, move, _nothing(problem, scale, one)
    )
    return EGTState(
        *(found.reach, found.gradients, jnp.stack([found.share, found.share])),
        *(jnp.asarray(config.first_share, dtype), found.values.sum()),
        *(found.products, jnp.zeros((), jnp.int32)),
    )


# In units of the payoffs over 2^exponent.
_FIRST_SMOOTHING = 1e-3
# Steps shorter than this gain nothing that rounding does not take.
_LEAST_SHARE = 1e-9


def step(problem: Problem, state: EGTState, *, config: EGTConfig) -> EGTState:
    """One step: the smoothing of one player is reduced (algorithm 2 of Hoda et al.).

    Player p's is. Move 0: its response to the gradient that it has. Move 1: the
    other's to a mean of its gradient and of that. Move 2: p's to a mean of its own
    gradient and of that, with the new μ. Move 3: what the other has against it all.
    Where the condition fails, a shorter share begins at move 0.

    Args:
      problem: the game.
      state: the state to advance.
      config: settings.
    """
    chosen = jnp.where(state.smoothing[0] < state.smoothing[1], 1, 0)

    def move(work: _Work) -> _Work:
        def slopes(player: int) -> jax.Array:
            share = jnp.where(work.move == 0, 0, work.share)
            return mix(share, state.gradients[player], work.gradients[player])

        player = jnp.where(work.move % 2 == 0, chosen, 1 - chosen)
        scale = state.smoothing[player]
        scale = jnp.where(work.move == 2, (1 - work.share) * scale, scale)
        judge = work.move == 3
        found = _respond(problem, player, slopes, scale, work, judge)
        again = judge & (found.values.sum() > 0) & (work.share > _LEAST_SHARE)
        return found._replace(
            move=jnp.where(again, 0, work.move + 1),
            share=jnp.where(again, work.share * config.shrinkage, work.share),
        )

    found = jax.lax.while_loop(
        lambda work: work.move < 4,
        move,
        _nothing(problem, state.share, state.products),
    )

    def moved(old: tuple, new: tuple) -> tuple[jax.Array, jax.Array]:
        return mix(found.share, old[0], new[0]), mix(found.share, old[1], new[1])

    return EGTState(
        moved(state.reach, found.reach),
        moved(state.gradients, found.gradients),
        state.smoothing.at[chosen].multiply(1 - found.share),
        jnp.minimum(found.share * config.growth, config.first_share),
        *(found.values.sum(), found.products, state.iteration + 1),
    )
