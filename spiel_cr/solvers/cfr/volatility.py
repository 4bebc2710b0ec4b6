"""Volatility-adaptive discounted CFR (VAD-CFR), found by a search over programs.

Implements listing 5 of Li et al. 2026. With the instantaneous counterfactual regrets
r(a) of an infoset in the units of the game, m = max |r(a)| and iterations t from 1,
`RULE` is

    E <- m if t = 1, otherwise 0.1 m + 0.9 E      v = min(1, E / 2)
    alpha = max(0.1, 1.5 - 0.5 v)                 beta = min(alpha, -0.1 - 0.5 v)
    d(R) = t^x / (t^x + 1), where x = alpha if R >= 0, otherwise beta
    g(a) = 1.1 r(a) if r(a) > 0, otherwise r(a)
    R(a) <- max(-20, d(R(a)) R(a) + g(a))
    strategy ~ max(0, d(R(a)) R(a) + w g(a))^1.5 with the new R(a)
    w = max(0, 1 - 0.5 v) / (1 + (t - 1) / 100)
    averaging weight t^c (1 + m/2)^0.5 / (1 + m^1.5) if t > 500, otherwise 0
    c = min(4, 2 + 1.5 min(1, m/2))

Deviations: The paper leaves open whether infosets share E, whether r(a) is the sum over
the histories of an infoset, and in which order players update; here, each infoset has
its own E, r(a) is the sum, and players update in turn, as in OpenSpiel's CFR. Until
t = 500, the result is the current strategy. Listing 3 of the paper, a summary, has
other formulas, which are not used: it adds w instead of w g(a), for example.
"""

import jax
import jax.numpy as jnp

from spiel_cr.solvers.cfr.regret_matching import CustomRule, discount

# Share of the newest iteration in the mean size of regrets, and the size of regrets, in
# the game's units, at which the volatility has its maximum of 1.
_NEWEST, _VOLATILE = 0.1, 2.0
# Factor of positive regrets, and the least cumulative regret, in the game's units.
_BOOST, _LEAST = 1.1, -20.0
# Exponent of the matched regrets, and the number of iterations before the average.
_POWER, _DELAY = 1.5, 500

# Cumulative regrets, float [A, n], and the mean size of regrets, float [1, n].
_State = tuple[jax.Array, jax.Array]


def _start(uniform: jax.Array) -> _State:
    return uniform * 0, uniform[:1] * 0


def _volatility(size: jax.Array) -> jax.Array:
    return jnp.minimum(size / _VOLATILE, 1)


def _size_of(instantaneous: jax.Array) -> jax.Array:
    return jnp.abs(instantaneous).max(axis=0, keepdims=True)


def _update(
    state: _State, instantaneous: jax.Array, uniform: jax.Array, iteration: jax.Array
) -> tuple[_State, jax.Array]:
    """Return the new state and the weights of actions; see `CustomRule`."""
    regrets, mean_size = state
    newest = jnp.where(iteration == 1, 1, _NEWEST)
    mean_size = newest * _size_of(instantaneous) + (1 - newest) * mean_size
    volatility = _volatility(mean_size)
    alpha = jnp.maximum(1.5 - 0.5 * volatility, 0.1)
    beta = jnp.minimum(-0.1 - 0.5 * volatility, alpha)

    def discounted(regrets: jax.Array) -> jax.Array:
        return regrets * discount(jnp.where(regrets >= 0, alpha, beta), iteration)

    boosted = instantaneous * jnp.where(instantaneous > 0, _BOOST, 1)
    regrets = jnp.maximum(discounted(regrets) + boosted, _LEAST)
    optimism = jnp.maximum(1 - 0.5 * volatility, 0) / (1 + (iteration - 1) / 100)
    expected = jnp.maximum(discounted(regrets) + optimism * boosted, 0)
    return (regrets, mean_size), expected**_POWER


def _averaging(
    state: _State, instantaneous: jax.Array, uniform: jax.Array, iteration: jax.Array
) -> jax.Array:
    """Return the weight of the iteration at each infoset, float [1, n]."""
    size = _size_of(instantaneous)
    gamma = jnp.minimum(2 + 1.5 * _volatility(size), 4)
    weight = iteration**gamma * (1 + size / 2) ** 0.5 / (1 + size**1.5)
    return jnp.where(iteration > _DELAY, weight, 0)


RULE = CustomRule(_update, _start, _averaging, raw=True)
