"""Define variants of CFR that commands can use by name: rules and delayed averages.

Use as `spiel-cr compare --import examples/cfr_variants.py --algorithms
'cfr_variants:hedge(gamma=5);cfr_variants:delayed;cfr+'`, or run as `python
examples/cfr_variants.py`, which solves Kuhn poker by each variant.
"""

import jax.numpy as jnp

import spiel_cr
from spiel_cr.solvers.cfr import CFRConfig, CustomRule, Rule


def plus(regrets, instantaneous, uniform, iteration):
    """Return the new regrets, which are also the weights of actions."""
    regrets = jnp.maximum(regrets + instantaneous, 0)
    return regrets, regrets


def hedge(regrets, instantaneous, uniform, iteration):
    """Return the new regrets, and weights that grow exponentially with them."""
    regrets = regrets + instantaneous
    legal = jnp.where(uniform > 0, 2 * regrets / jnp.sqrt(iteration), -jnp.inf)
    return regrets, jnp.exp(legal - legal.max(0))


def late(t):
    """Return the averaging weight of iteration t: linear after 100 iterations."""
    return jnp.maximum(t - 100, 0)


delayed = CFRConfig("delayed", Rule(custom=CustomRule(plus)), weights=late)

if __name__ == "__main__":
    for variant in (plus, hedge, delayed, "cfr+"):
        print(variant, spiel_cr.solve("kuhn_poker", variant, 1000).nash_conv())
