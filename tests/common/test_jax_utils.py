"""What programs are made of."""

import jax
import jax.numpy as jnp

from spiel_cr.common.jax_utils import unfused


def test_a_part_is_one_call_whatever_it_calls():
    """`jnp.where` in it is a call, too, which XLA would not fuse as a part."""

    def step(x):
        return unfused(lambda y: jnp.where(y > 0, y, 0) + jnp.where(y < 1, y, 1), x)

    text = jax.jit(step).lower(jnp.ones(8)).as_text()
    assert text.count("inlineable") == 1
