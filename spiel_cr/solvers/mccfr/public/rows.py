"""Rows of arrays in loops that are one piece of machine code.

Slices, not gathers and scatters: XLA's CPU compiler ends the process where a row is
gathered by an index that is gathered itself (jaxlib 0.10).
"""

import jax
import jax.numpy as jnp


def at(array: jax.Array, index: jax.Array) -> jax.Array:
    """array[index], which must exist."""
    row: jax.Array = jax.lax.dynamic_index_in_dim(
        array, index, keepdims=False, allow_negative_indices=False
    )
    return row


def put(array: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """The array with another row at an index, which must exist."""
    updated: jax.Array = jax.lax.dynamic_update_index_in_dim(
        array, jnp.asarray(value, array.dtype), index, 0, allow_negative_indices=False
    )
    return updated
