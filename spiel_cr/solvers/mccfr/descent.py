"""The way of sampled trajectories down the histories.

`descend` chooses an action for each trajectory of a batch at one depth, and keeps what
the way up needs (`Visit`). The mathematics is in `trajectories.py`. Whole games have
arrays of their own for every depth (`sample_tree`), subgames one set of arrays for all
depths (`resolving.subgame_sampling`); both are a `SampleLevel`.
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
    """What all depths need; B trajectories, tables of T entries.

    Attributes:
      strategy: float [T], current strategies and chance probabilities.
      explore: float [T], how the updating player explores; None: uniformly.
      stride: how far the entries of a history's actions are apart in tables.
      player: whose values are sampled; int or int32 scalar.
      config: exploration and baselines.
    """

    strategy: jax.Array
    explore: jax.Array | None
    stride: int
    player: int | jax.Array
    config: MCCFRConfig

    def decides_at(self, shape: Depth) -> bool:
        """Whether the updating player may act at some history of a depth."""
        return shape.players is None or self.player in shape.players


class Front(NamedTuple):
    """Where B trajectories are on the way down.

    Attributes:
      history: int32 [B], number in the level.
      weight: float [B], reach of the others over the probability that a trajectory
        comes here, times its share of the batch.
    """

    history: jax.Array
    weight: jax.Array


class Visit(NamedTuple):
    """The visits of B trajectories at one depth.

    Attributes:
      history: int32 [B], number in the level.
      chosen: int32 [B], the followed action.
      rho: float [B], the probability that a trajectory here follows it.
      weight: float [B], reach of the others over the probability that a trajectory
        comes here, times its share of the batch.
    """

    history: jax.Array
    chosen: jax.Array
    rho: jax.Array
    weight: jax.Array


class View(NamedTuple):
    """What there is at the visited histories.

    Attributes:
      row: int32 [B], the first entry of the actions.
      entries: int32 [A, B], all of them.
      sigma: float [A, B], the strategy; 0 beyond the last action.
      legal: bool [A, B], False beyond the last action; None: all are legal.
      over: bool [B], whether the game is over there; None: nowhere.
      is_updating: bool [B], whether the updating player acts.
    """

    row: jax.Array
    entries: jax.Array
    sigma: jax.Array
    legal: jax.Array | None
    over: jax.Array | None
    is_updating: jax.Array


def look(batch: Batch, level: SampleLevel, shape: Depth, history: jax.Array) -> View:
    """What there is at some histories, int32 [B], of a level."""
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
    batch: Batch, level: SampleLevel, shape: Depth, front: Front, draw: jax.Array
) -> tuple[Visit, Front]:
    """Chooses an action for each trajectory at one depth and moves on to the next.

    Args:
      batch: the batch.
      level: the histories of this depth.
      shape: what is known of them when a program is compiled.
      front: the trajectories at this depth.
      draw: float [B] in [0, 1).

    Returns:
      What the way up needs, and the trajectories at the next depth.
    """
    view, history = look(batch, level, shape, front.history), front.history
    first, rho = level.first_child[history], view.sigma
    decides = batch.decides_at(shape)
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
    """float [A, B], how likely a trajectory follows each own action."""
    if batch.explore is None:
        even = 1 / jnp.maximum(count, 1).astype(view.sigma.dtype)[None]
    else:
        even = batch.explore[view.entries]
    epsilon = batch.config.epsilon
    return mask((1 - epsilon) * view.sigma + epsilon * even, view.legal)


def _choose(probabilities: jax.Array, draw: jax.Array) -> jax.Array:
    """int32 [B], one action of each column of float [A, B], by a draw in [0, 1)."""
    draw = jnp.minimum(draw, BELOW_ONE) * treeplex.sum_rows(probabilities)
    chosen = jnp.zeros(draw.shape, jnp.int32)
    below = jnp.zeros_like(draw)
    for action in range(len(probabilities) - 1):
        below = below + probabilities[action]
        chosen = chosen + (draw >= below)
    return chosen


def mask(rows: jax.Array, where: jax.Array | None) -> jax.Array:
    """Zero where not."""
    return rows if where is None else jnp.where(where, rows, jnp.zeros_like(rows))
