"""Independent uniform random numbers of a batch, the same for both samplers."""

import jax
import jax.numpy as jnp

# Maximum numbers of trajectories and of numbers that are drawn together. Both are
# small because the draws occur in the middle of scalar code: XLA would compute larger
# arrays with several threads, which fails there.
_CHUNK, _NUMBERS = 16, 1 << 14


def chunk_width(depths: int, batch: int) -> int:
    """Return the number of trajectories whose random numbers are drawn together."""
    return min(batch, max(1, min(_CHUNK, _NUMBERS // depths)))


def chunk(key: jax.Array, number: jax.Array, depths: int, batch: int) -> jax.Array:
    """Draw the random numbers of one chunk of trajectories.

    The chunk contains the trajectories from `chunk_width` times `number` on.

    Args:
      key: Key of JAX's random numbers.
      number: Number of the chunk, int32 scalar.
      depths: Number D of random numbers of each trajectory.
      batch: Number of trajectories of a batch.

    Returns:
      Random numbers in [0, 1), float32 [D, chunk_width].
    """
    chunk_key = jax.random.fold_in(key, number)
    # Always single precision, so that runs in both dtypes use the same draws.
    shape = depths, chunk_width(depths, batch)
    return jax.random.uniform(chunk_key, shape, jnp.float32)
