"""Independent uniform random numbers of a batch, the same however it is walked."""

import jax
import jax.numpy as jnp

# The most trajectories whose numbers are drawn together, and the most numbers. Both are
# small because the draws occur in the middle of scalar code: XLA would compute larger
# arrays with several threads, which fails there.
_CHUNK, _NUMBERS = 16, 1 << 14


def chunk_width(depths: int, batch: int) -> int:
    """The number of trajectories whose random numbers are drawn together."""
    return min(batch, max(1, min(_CHUNK, _NUMBERS // depths)))


def chunk(key: jax.Array, number: jax.Array, depths: int, batch: int) -> jax.Array:
    """Draw the random numbers of the trajectories from `chunk_width` * number on.

    Args:
      key: Key of JAX's random numbers.
      number: int32 scalar, the number of the chunk.
      depths: D, the random numbers of a trajectory.
      batch: The trajectories of a batch.

    Returns:
      float32 [D, chunk_width], uniform in [0, 1).
    """
    chunk_key = jax.random.fold_in(key, number)
    # Single precision for both dtypes: the draws are the same, so runs are similar.
    shape = depths, chunk_width(depths, batch)
    return jax.random.uniform(chunk_key, shape, jnp.float32)
