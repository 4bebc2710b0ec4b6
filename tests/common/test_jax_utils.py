"""Helpers for compiled functions."""

import jax
import jax.numpy as jnp

from spiel_cr.common.jax_utils import unfused


def test_unfused_functions_are_single_calls():
    """Nested calls such as `jnp.where` are not marked, so XLA fuses them."""

    def step(x):
        return unfused(lambda y: jnp.where(y > 0, y, 0) + jnp.where(y < 1, y, 1), x)

    text = jax.jit(step).lower(jnp.ones(8)).as_text()
    assert text.count("inlineable") == 1
