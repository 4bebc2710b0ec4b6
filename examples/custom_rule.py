"""Define a regret minimiser for `solve`: Hedge, with exponential weights.

Hedge (Freund & Schapire 1997) plays every action in proportion to exp(rate * regret).
The rate is proportional to 1 / sqrt(iteration) and to the inverse of the largest gain
observed at the infoset, so that it does not depend on the scale of the payoffs.

Run as `python examples/custom_rule.py`.
"""

import jax.numpy as jnp

import spiel_cr
from spiel_cr.solvers.cfr import CustomRule


def hedge(state, instantaneous, uniform, iteration):
    """Return the new state and weights of the actions, [actions, infosets].

    The state has regrets [actions, infosets] and the largest gain [1, infosets].
    """
    regrets, largest = state
    regrets = regrets + instantaneous
    gain = jnp.abs(instantaneous).max(0, keepdims=True)
    largest = jnp.where(gain > largest, gain, largest)
    rate = 2 / (jnp.where(largest > 0, largest, 1) * jnp.sqrt(iteration))
    legal = jnp.where(uniform > 0, rate * regrets, -jnp.inf)
    return (regrets, largest), jnp.exp(legal - legal.max(0, keepdims=True))


def first(uniform):
    """Return the initial state: regrets of 0, and a largest gain of 0."""
    return uniform * 0, uniform[:1] * 0


if __name__ == "__main__":
    result = spiel_cr.solve("leduc_poker", CustomRule(hedge, first), 1000)
    print(result, result.nash_conv())
