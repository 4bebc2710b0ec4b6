"""Mirror descent with dilated entropy: optimistic, or drawn towards a magnet.

Both players move at once. Optimistic steps count the last gradient twice and take the
one before off: dilated optimistic multiplicative weights, whose last iterate converges
(Lee, Kroer & Luo 2021, "Last-iterate convergence in extensive-form games", equation 7).
A magnet adds α · D(x, uniform) to what is minimised: magnetic mirror descent (Sokota et
al. 2023, "A unified approach to reinforcement learning, quantal response equilibria,
and two-player zero-sum games", section 3), whose last iterate converges to an
equilibrium of the game with that entropy; α falls with the iterations, so that the
equilibrium becomes that of the game.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.first_order import regularisers
from spiel_cr.first_order.config import MirrorConfig
from spiel_cr.first_order.problem import Problem
from spiel_cr.first_order.regularisers import gradient
from spiel_cr.sequence_form import treeplex
from spiel_cr.sequence_form.treeplex import Blocks


class MirrorState(NamedTuple):
    """What mirror descent remembers.

    Attributes:
      strategy: for each player its behaviour strategy, blocks.
      reach: for each player float [S], the same in sequence form.
      gradients: for each player float [S], that of the iteration before; None without
        optimism.
      iteration: int scalar, steps done.
    """

    strategy: tuple[Blocks, Blocks]
    reach: tuple[jax.Array, jax.Array]
    gradients: tuple[jax.Array, jax.Array] | None
    iteration: jax.Array


def init(problem: Problem, *, config: MirrorConfig) -> MirrorState:
    """Both players begin with the uniform strategy.

    Args:
      problem: the game.
      config: settings.
    """
    first, second = (treeplex.uniform_strategy(tree) for tree in problem.trees)
    reach = (
        treeplex.reach(problem.trees[0], first),
        treeplex.reach(problem.trees[1], second),
    )
    gradients = None
    if config.optimistic:
        gradients = (
            gradient(problem.trees[0], reach[1]),
            gradient(problem.trees[1], reach[0]),
        )
    return MirrorState((first, second), reach, gradients, jnp.zeros((), jnp.int32))


def step(problem: Problem, state: MirrorState, *, config: MirrorConfig) -> MirrorState:
    """One step of both players.

    Args:
      problem: the game.
      state: the state to advance.
      config: settings.
    """
    iteration = state.iteration + 1
    time = iteration.astype(state.reach[0].dtype)
    rate = config.rate * time**-config.rate_decay
    magnet = config.magnet * time**-config.magnet_decay
    strategy, reach, gradients = [], [], []
    for player, tree in enumerate(problem.trees):
        slope = gradient(tree, state.reach[1 - player])
        gradients.append(slope)
        if state.gradients is not None:
            slope = 2 * slope - state.gradients[player]
        centre, pull = state.strategy[player], 1.0 + 0.0 * rate
        if config.magnet:
            # α η D(x, magnet) + D(x, x_t) is one divergence from their geometric mean.
            pull = 1 + rate * magnet
            uniform = treeplex.uniform_strategy(tree)
            centre = regularisers.log_mean(centre, uniform, rate * magnet / pull)
        answer = regularisers.respond(
            *(tree, "entropy", problem.weights[player]), rate * slope, pull, centre
        )
        strategy.append(answer.strategy)
        reach.append(treeplex.reach(tree, answer.strategy))
    kept = None if state.gradients is None else (gradients[0], gradients[1])
    return MirrorState(
        (strategy[0], strategy[1]), (reach[0], reach[1]), kept, iteration
    )
