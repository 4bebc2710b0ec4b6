"""The way of sampled trajectories down the histories.

`descend` chooses an action for each trajectory of a batch at one depth, and keeps what
the way up needs (`Visit`). The mathematics is in `trajectories.py`. Game trees have one
`SampleLevel` for every depth (`sample_tree`), subgames one for all depths
(`resolving.subgame_sampling`).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr.sample_tree import Depth, SampleLevel, consecutive, take

# Draws stay below 1 by more than the rounding error of a sum of probabilities.
BELOW_ONE = 1 - 2.0**-22


class Batch(NamedTuple):
    """A batch of B trajectories, and tables over T entries, for all depths.

    Attributes:
      strategy: Current strategies and chance probabilities, float [T].
      explore: Exploration of the updating player, float [T]; None: uniform.
      stride: Distance of the entries of a history's actions in tables.
      player: The player whose values are sampled, int or int32 scalar.
      config: Settings of exploration and baselines.
    """

    strategy: jax.Array
    explore: jax.Array | None
    stride: int
    player: int | jax.Array
    config: MCCFRConfig


class LevelBatch(NamedTuple):
    """A batch at the histories of one level.

    Attributes:
      batch: The batch.
      level: Histories of the level.
      shape: Facts about the level that are known when a function is compiled.
    """

    batch: Batch
    level: SampleLevel
    shape: Depth

    @property
    def decides(self) -> bool:
        """Whether the updating player may act at some history of the level."""
        return self.shape.players is None or self.batch.player in self.shape.players


class Front(NamedTuple):
    """Positions of B trajectories on the way down.

    Attributes:
      history: Number of the history in its level, int32 [B].
      weight: Reach of the others over the probability that a trajectory comes here,
        times the trajectory's share of the batch, float [B].
    """

    history: jax.Array
    weight: jax.Array


class Visit(NamedTuple):
    """Visits of B trajectories at one depth.

    Attributes:
      history: Number of the history in its level, int32 [B].
      chosen: The followed action, int32 [B].
      rho: Probability that a trajectory here follows it, float [B].
      weight: See `Front`.
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
      legal: Whether an action exists, bool [A, B]; None: all do.
      over: Whether the game is over, bool [B]; None: nowhere.
      is_updating: Whether the updating player acts, bool [B].
    """

    row: jax.Array
    entries: jax.Array
    sigma: jax.Array
    legal: jax.Array | None
    over: jax.Array | None
    is_updating: jax.Array


def look(at_level: LevelBatch, history: jax.Array) -> View:
    """Return what matters at some histories, int32 [B]."""
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


def descend(at_level: LevelBatch, front: Front, draw: jax.Array) -> tuple[Visit, Front]:
    """Choose an action for each trajectory at one depth, and move on to the next depth.

    Args:
      at_level: The batch at this depth.
      front: The trajectories at this depth.
      draw: Random numbers in [0, 1), float [B].

    Returns:
      The visits, for the way up, and the trajectories at the next depth.
    """
    view, history = look(at_level, front.history), front.history
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
    # The others draw from their own strategies: their reach over it stays.
    after = front.weight
    if decides:
        # So and not over where(own, taken, 1): XLA would put the quotients of several
        # depths into one loop, which chooses all their actions again.
        after = after * jnp.where(view.is_updating, 1, taken) / taken
    child = first + (chosen if view.over is None else jnp.where(view.over, 0, chosen))
    return Visit(history, chosen, taken, front.weight), Front(child, after)


def _explore(batch: Batch, view: View, count: jax.Array) -> jax.Array:
    """Return the probabilities that a trajectory follows own actions, float [A, B]."""
    if batch.explore is None:
        even = 1 / jnp.maximum(count, 1).astype(view.sigma.dtype)[None]
    else:
        even = batch.explore[view.entries]
    epsilon = batch.config.epsilon
    return mask((1 - epsilon) * view.sigma + epsilon * even, view.legal)


def _choose(probabilities: jax.Array, draw: jax.Array) -> jax.Array:
    """Return an action for each column of probabilities, int32 [B].

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
    """Return rows with zeros wherever a mask, if any, is False."""
    return rows if where is None else jnp.where(where, rows, jnp.zeros_like(rows))
