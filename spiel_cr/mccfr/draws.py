"""Third stage: the random numbers of a batch of trajectories."""

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.cfr.config import MCCFRConfig


def draw(
    points: jax.Array | None,
    key: jax.Array,
    depths: int,
    config: MCCFRConfig,
    dtype: np.dtype,
) -> tuple[jax.Array, jax.Array]:
    """Uniform numbers for one batch.

    Args:
      points: float [D, B] from `spread`; None: independent draws.
      key: of JAX's random numbers; consumed.
      depths: D, the depths of the game; the last has no decisions.
      config: batch size, and the share of targeted trajectories.
      dtype: of the result.

    Returns:
      float [D - 1, B] in [0, 1), independent over depths for each trajectory; and bool
      [B], who is targeted.
    """
    # In single precision always: the same draws, so nearly the same run, in both.
    if points is None:
        draws = jax.random.uniform(key, (depths, config.batch), jnp.float32)
    else:
        # A randomly shifted point set (Cranley & Patterson 1976): every trajectory's
        # draws are uniform and independent over depths.
        shift = jax.random.uniform(key, (depths, 1), jnp.float32)
        draws = (points.astype(jnp.float32) + shift) % 1
    draws = draws.astype(dtype)
    return draws[:-1], draws[-1] < config.delta
