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
the opponent's strategies, measured from the uniform strategy: a divergence from the
response before differs from that by a linear function, which is the gradient that the
response answers. So the last response of a step is the one in the condition, and the
first one of the next step, too: three responses and three products make a step. And so
one loop of moves, each of one player, makes it: a program with one pass per player,
which holds no gradients between moves.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.first_order import regularisers
from spiel_cr.solvers.first_order.problem import Problem
from spiel_cr.solvers.first_order.regularisers import mix, respond


class EGTState(NamedTuple):
    """What the excessive gap technique remembers.

    Attributes:
      reach: float [2, S], S of the player who has more: both players' strategies in
        sequence form.
      reply: float [S], the smoothed best response of `owner` to the other's strategy.
      owner: int scalar, a player.
      smoothing: float [2], μ of both players.
      share: float scalar, the length τ of the next step that is tried.
      excess: float scalar, F_0 + F_1 after the last step, in units of 2^exponent;
        above 0 only by rounding.
      products: int scalar, products with the payoff coupling so far.
      iteration: int scalar, steps done.
    """

    reach: jax.Array
    reply: jax.Array
    owner: jax.Array
    smoothing: jax.Array
    share: jax.Array
    excess: jax.Array
    products: jax.Array
    iteration: jax.Array


class _Work(NamedTuple):
    """What there is between moves, and between attempts at a step.

    Attributes:
      reach: float [2, S], what a step makes of both strategies so far.
      reply: float [S], the last response, once there were all moves; before, what the
        chosen player moves towards.
      excess: float scalar, the sum of F of the last two responses.
      move: int scalar, the next move.
      products: int scalar, products with the payoff coupling so far.
    """

    reach: jax.Array
    reply: jax.Array
    excess: jax.Array
    move: jax.Array
    products: jax.Array


class _Tried(NamedTuple):
    """A step with a share that was tried.

    Attributes:
      work: what came of it.
      share: float scalar, of this attempt; where it failed, of the next.
      known: bool scalar, whether `work.reply` is the chosen player's response.
      done: bool scalar.
    """

    work: _Work
    share: jax.Array
    known: jax.Array
    done: jax.Array


def _response(
    problem: Problem, player: jax.Array, reach: jax.Array, scale: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A player's smoothed best response: its value F, float [S], its reach, and whose.

    What is done with the number of the player that is returned is done afterwards: a
    compiler would take rows of strategies out before, and keep them meanwhile.

    Args:
      problem: the game.
      player: int scalar, who responds.
      reach: float [2, S], the other player's strategy among them.
      scale: float scalar, the player's μ.
    """

    def by(mine: int) -> tuple[jax.Array, jax.Array, jax.Array]:
        tree = problem.trees[mine]
        leaves = treeplex.leaf_values(tree, reach[1 - mine])
        answer = respond(
            tree,
            problem.weights[mine],
            leaves,
            scale,
            regularisers.uniform_centre(tree),
        )
        found = treeplex.reach(tree, answer.strategy)
        return answer.value, _padded(found, reach.shape[1]), jnp.int32(mine)

    return jax.lax.cond(player == 0, lambda: by(0), lambda: by(1))


def _padded(vector: jax.Array, size: int) -> jax.Array:
    return jnp.pad(vector, (0, size - len(vector)))


def _moves(
    problem: Problem,
    begun: _Work,
    before: jax.Array,
    chosen: jax.Array,
    share: jax.Array,
    scales: jax.Array,
) -> _Work:
    """The moves of a step that are left; afterwards `excess` is what it comes to.

    Args:
      problem: the game.
      begun: what there is.
      before: float [2, S], strategies before the step.
      chosen: int scalar, who makes moves 0 and 2; the other one 1 and 3.
      share: float scalar, τ.
      scales: float [4], μ at each move.
    """

    def move(work: _Work) -> _Work:
        player = jnp.where(work.move % 2 == 0, chosen, 1 - chosen)
        value, found, player = _response(problem, player, work.reach, scales[work.move])
        # The last one is what the next step begins with.
        last = work.move == 3
        moved = mix(share, before[player], found)
        return _Work(
            work.reach.at[player].set(jnp.where(last, work.reach[player], moved)),
            jnp.where(last, found, work.reply),
            jnp.where(last, work.excess, 0) + value,
            *(work.move + 1, work.products + 1),
        )

    return jax.lax.while_loop(lambda work: work.move < 4, move, begun)


def init(problem: Problem) -> EGTState:
    """The start of Hoda et al.'s algorithm 1, with the least μ of a sequence.

    Theory takes the norm of the payoff coupling for μ. Here μ is doubled from a small
    share of the largest payoff until the condition holds: player 1 moves to its
    response to the uniform strategy, player 0 to that to it.

    Args:
      problem: the game.
    """
    uniform = [
        treeplex.reach(tree, treeplex.uniform_strategy(tree)) for tree in problem.trees
    ]
    size, dtype = max(map(len, uniform)), uniform[0].dtype
    first = jnp.stack([_padded(reach, size) for reach in uniform])
    one, zero = jnp.ones((), dtype), jnp.zeros((), jnp.int32)

    def attempt(state: EGTState) -> EGTState:
        scale = 2 * state.smoothing[0]
        work = _Work(first, state.reply, 0 * one, zero + 1, state.products)
        done = _moves(problem, work, first, zero, one, jnp.full(4, scale))
        return state._replace(
            reach=done.reach,
            reply=done.reply,
            smoothing=jnp.full(2, scale),
            excess=done.excess,
            products=done.products,
        )

    return jax.lax.while_loop(
        lambda state: state.excess > 0,
        attempt,
        EGTState(
            *(first, first[0], zero + 1, jnp.full(2, _FIRST_SMOOTHING / 2, dtype)),
            *(_FIRST_SHARE * one, one, zero, zero),
        ),
    )


# In units of the payoffs over 2^exponent.
_FIRST_SMOOTHING = 1e-3
# τ of the first step that is tried, and what it is multiplied by where the excessive
# gap condition fails.
_FIRST_SHARE, _SHRINKAGE = 0.5, 0.5
# Steps shorter than this gain nothing that rounding does not take.
_LEAST_SHARE = 1e-9


def step(problem: Problem, state: EGTState) -> EGTState:
    """One step: the smoothing of one player is reduced (algorithm 2 of Hoda et al.).

    Player p's is. Move 0: its response to the other's strategy; the step before may
    have left it. Move 1: the other's to p's strategy moved towards that, with which it
    moves. Move 2: p's to the other's as it is now, with the new μ, with which p moves.
    Move 3: what the other has against it all. Where the condition fails, a shorter
    share begins anew.

    Args:
      problem: the game.
      state: the state to advance.
    """
    chosen = (state.smoothing[0] < state.smoothing[1]).astype(jnp.int32)
    own, others = state.smoothing[chosen], state.smoothing[1 - chosen]

    def attempt(tried: _Tried) -> _Tried:
        # What does not depend on the share would else be kept beside all this.
        before, share = jax.lax.optimization_barrier((state.reach, tried.share))
        toward = jnp.where(tried.known, share, 0)
        moved = mix(toward, before[chosen], tried.work.reply)
        work = tried.work._replace(
            reach=before.at[chosen].set(moved), move=tried.known.astype(jnp.int32)
        )
        scales = jnp.stack([own, others, (1 - share) * own, others])
        work = _moves(problem, work, before, chosen, share, scales)
        done = (work.excess <= 0) | (share <= _LEAST_SHARE)
        shorter = jnp.where(done, share, share * _SHRINKAGE)
        return _Tried(work, shorter, jnp.zeros((), bool), done)

    zero = jnp.zeros((), jnp.int32)
    work = _Work(state.reach, state.reply, state.excess, zero, state.products)
    found = jax.lax.while_loop(
        lambda tried: ~tried.done,
        attempt,
        _Tried(work, state.share, state.owner == chosen, jnp.zeros((), bool)),
    )
    return EGTState(
        *(found.work.reach, found.work.reply, 1 - chosen),
        state.smoothing.at[chosen].multiply(1 - found.share),
        jnp.minimum(found.share, _FIRST_SHARE),
        *(found.work.excess, found.work.products, state.iteration + 1),
    )
