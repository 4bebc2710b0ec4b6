"""Row access in loops that XLA compiles to one piece of machine code.

The functions use slices instead of gathers and scatters, because XLA's CPU compiler
terminates the process if a row is gathered by an index that is gathered itself (jaxlib
0.10).
"""

import jax
import jax.numpy as jnp


def at(array: jax.Array, index: jax.Array) -> jax.Array:
    """Return `array[index]` for an index that must exist."""
    row: jax.Array = jax.lax.dynamic_index_in_dim(
        array, index, keepdims=False, allow_negative_indices=False
    )
    return row


def put(array: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """Return the array with a new row at an index that must exist."""
    updated: jax.Array = jax.lax.dynamic_update_index_in_dim(
        array, jnp.asarray(value, array.dtype), index, 0, allow_negative_indices=False
    )
    return updated
