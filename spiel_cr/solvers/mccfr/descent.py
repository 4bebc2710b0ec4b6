"""Descent of sampled trajectories through the histories.

`descend` samples an action for each trajectory of a batch at one depth and returns the
data that the backward pass needs (`TrajectoryVisits`). The mathematics is in
`trajectories.py`. Game trees have one `SampleLevel` for each depth
(`sample_tree`), subgames one for all depths (`resolving.subgame_sampling`).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr.sample_tree import Depth, SampleLevel, consecutive, take

# Largest draw: below 1 by more than the rounding error of a sum of probabilities.
BELOW_ONE = 1 - 2.0**-22


class Batch(NamedTuple):
    """Batch of B trajectories, with tables over T entries, for all depths.

    Attributes:
      strategy: Current strategies and chance probabilities, float [T].
      explore: Exploration probabilities of the updating player, float [T]; uniform if
        None.
      stride: Distance in the tables between consecutive actions of a history.
      player: Player whose values are sampled, int or int32 scalar.
      config: Settings of exploration and baselines.
    """

    strategy: jax.Array
    explore: jax.Array | None
    stride: int
    player: int | jax.Array
    config: MCCFRConfig


class LevelBatch(NamedTuple):
    """Batch of trajectories together with the histories of one level.

    Attributes:
      batch: Batch of trajectories.
      level: Histories of the level.
      shape: Facts about the level that are known at XLA compilation.
    """

    batch: Batch
    level: SampleLevel
    shape: Depth

    @property
    def decides(self) -> bool:
        """True if the updating player may act at some history of the level."""
        return self.shape.players is None or self.batch.player in self.shape.players


class TrajectoryPositions(NamedTuple):
    """Positions of B trajectories during the descent.

    Attributes:
      history: Number of the history in its level, int32 [B].
      weight: Reach of the others divided by the probability that a trajectory reaches
        the history, times the trajectory's share of the batch, float [B].
    """

    history: jax.Array
    weight: jax.Array


class TrajectoryVisits(NamedTuple):
    """Visits of B trajectories at one depth.

    Attributes:
      history: Number of the history in its level, int32 [B].
      chosen: Sampled action, int32 [B].
      rho: Probability that a trajectory at this history follows the action, float [B].
      weight: Weight before the visit as in `TrajectoryPositions`, float [B].
    """

    history: jax.Array
    chosen: jax.Array
    rho: jax.Array
    weight: jax.Array


class View(NamedTuple):
    """Data of the visited histories.

    Attributes:
      row: Entry of the first action, int32 [B].
      entries: Entries of all actions, int32 [A, B].
      sigma: Strategy, float [A, B]; 0 at padding.
      legal: Mask of existing actions, bool [A, B]; None: all exist.
      over: Mask of terminal histories, bool [B]; None: no history is terminal.
      is_updating: Mask of histories where the updating player acts, bool [B].
    """

    row: jax.Array
    entries: jax.Array
    sigma: jax.Array
    legal: jax.Array | None
    over: jax.Array | None
    is_updating: jax.Array


def look(at_level: LevelBatch, history: jax.Array) -> View:
    """Return the data of the visited histories.

    Args:
      at_level: Batch at this depth.
      history: Numbers of the histories in their level, int32 [B].
    """
    batch, level, shape = at_level
    row, count = level.row[history], level.num_actions[history]
    entries = consecutive(row, shape.width, batch.stride)
    actions = jnp.arange(shape.width, dtype=jnp.int32)[:, None]
    legal = None if shape.full else actions < count[None]
    return View(
        row=row,
        entries=entries,
        sigma=mask(batch.strategy[entries], legal),
        legal=legal,
        over=None if shape.full else count == 0,
        is_updating=level.player[history] == batch.player,
    )


def descend(
    at_level: LevelBatch, positions: TrajectoryPositions, draw: jax.Array
) -> tuple[TrajectoryVisits, TrajectoryPositions]:
    """Sample an action for each trajectory at one depth and follow it.

    Args:
      at_level: Batch at this depth.
      positions: Trajectories at this depth.
      draw: Random numbers in [0, 1), float [B].

    Returns:
      The visits, for the backward pass, and the trajectories at the next depth.
    """
    view, history = look(at_level, positions.history), positions.history
    batch, level, _ = at_level
    first, rho = level.first_child[history], view.sigma
    decides = at_level.decides
    if decides:
        explored = _explore(batch, view, level.num_actions[history])
        rho = jnp.where(view.is_updating[None], explored, rho)
    chosen = _choose(rho, draw)
    taken = take(rho, chosen)
    if view.over is not None:
        taken = jnp.where(view.over, 1, taken)
    # The others sample from their own strategies, so the quotient of their reach and
    # the sampling probability does not change.
    after = positions.weight
    if decides:
        # Do not write this as a division by where(is_updating, taken, 1): XLA would
        # fuse the quotients of several depths into one loop and recompute all actions.
        after = after * jnp.where(view.is_updating, 1, taken) / taken
    child = first + (chosen if view.over is None else jnp.where(view.over, 0, chosen))
    visits = TrajectoryVisits(history, chosen, taken, positions.weight)
    return visits, TrajectoryPositions(child, after)


def _explore(batch: Batch, view: View, count: jax.Array) -> jax.Array:
    """Return the updating player's sampling probabilities, float [A, B]."""
    if batch.explore is None:
        even = 1 / jnp.maximum(count, 1).astype(view.sigma.dtype)[None]
    else:
        even = batch.explore[view.entries]
    if batch.config.sampling is not None:
        even = mask(jnp.broadcast_to(even, view.sigma.shape), view.legal)
        return mask(batch.config.sampling.call(view.sigma, even), view.legal)
    epsilon = batch.config.epsilon
    return mask((1 - epsilon) * view.sigma + epsilon * even, view.legal)


def _choose(probabilities: jax.Array, draw: jax.Array) -> jax.Array:
    """Sample an action for each column of probabilities, int32 [B].

    Args:
      probabilities: Probabilities of actions, float [A, B].
      draw: Random numbers in [0, 1), float [B].
    """
    draw = jnp.minimum(draw, BELOW_ONE) * treeplex.sum_rows(probabilities)
    chosen = jnp.zeros(draw.shape, jnp.int32)
    below = jnp.zeros_like(draw)
    for action in range(len(probabilities) - 1):
        below = below + probabilities[action]
        chosen = chosen + (draw >= below)
    return chosen


def mask(rows: jax.Array, where: jax.Array | None) -> jax.Array:
    """Return rows with zeros where a mask is False; without a mask, return the rows."""
    return rows if where is None else jnp.where(where, rows, jnp.zeros_like(rows))
