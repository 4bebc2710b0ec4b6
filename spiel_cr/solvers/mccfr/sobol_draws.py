"""Independent uniform random numbers of a batch, the same however it is walked."""

import jax
import jax.numpy as jnp

# Trajectories whose numbers are drawn together. Few, since they are drawn in the midst
# of scalar code, where XLA cannot use several threads and fails if it wants to.
CHUNK = 16


def chunk(key: jax.Array, number: jax.Array, depths: int, batch: int) -> jax.Array:
    """float32 [D, min(B, CHUNK)] in [0, 1), for the trajectories from CHUNK * number.

    Args:
      key: of JAX's random numbers.
      number: int32 scalar.
      depths: D.
      batch: B.
    """
    own = jax.random.fold_in(key, number)
    # In single precision always: the same draws, so nearly the same run, in both.
    return jax.random.uniform(own, (depths, min(batch, CHUNK)), jnp.float32)
