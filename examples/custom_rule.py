"""Regret matching by exponential weights, a rule that spiel_cr does not ship.

Hedge (Freund & Schapire 1997) plays every action in proportion to exp(rate * regret).
The rate falls with the root of the iteration and is in units of the largest gain that
was seen at the infoset, so that no payoffs need to be known.
"""

import jax.numpy as jnp

import spiel_cr
from spiel_cr.solvers.cfr import CustomRule


def hedge(state, instantaneous, uniform, iteration):
    """One iteration at a block of infosets; arrays [actions, infosets]."""
    regrets, largest = state
    regrets = regrets + instantaneous
    gain = jnp.abs(instantaneous).max(0, keepdims=True)
    largest = jnp.where(gain > largest, gain, largest)
    rate = 2 / (jnp.where(largest > 0, largest, 1) * jnp.sqrt(iteration))
    legal = jnp.where(uniform > 0, rate * regrets, -jnp.inf)
    return (regrets, largest), jnp.exp(legal - legal.max(0, keepdims=True))


def first(uniform):
    """Zeros: regrets by action, and the largest gain by infoset."""
    return uniform * 0, uniform[:1] * 0


if __name__ == "__main__":
    result = spiel_cr.solve("leduc_poker", CustomRule(hedge, first), 1000)
    print(result, result.nash_conv())
