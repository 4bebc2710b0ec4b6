"""Policies and values of self-play: a perceptron or a table, and what it learns from.

A perceptron sees features and has A + 1 outputs: logits, and the value. A table has the
same numbers for each infoset. Of compiled games decisions are numbers of infosets, of
others they are features. Legend for shapes: n decisions, F features, A
actions of the game, I infosets, M rows of a batch, T steps of the optimiser.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import network_fits, networks
from spiel_cr.common.arrays import padded_size

# As many decisions at least are asked for together.
_LEAST = 64


class Rows(NamedTuple):
    """Decisions of one network that was played with.

    Attributes:
      seen: bool or float32 [n, F], features; or int32 [n], places.
      legal: bool [n, A].
      before: float32 [n, A], log probabilities of the policy that played.
      advantage: float32 [n, A], estimates of each action's advantage, 0 where it is not
        legal. Where only the action taken is known: its advantage over its probability,
        and 0 of the others.
      returned: float32 [n], what the value is to be, in the same units.
      weight: float32 [n], 1; 0 where the row is padding.
    """

    seen: Any
    legal: Any
    before: Any
    advantage: Any
    returned: Any
    weight: Any


class Settings(NamedTuple):
    """What a program of steps is made for; see `SelfPlayConfig`."""

    clip: float
    value_weight: float
    gradient_norm: float


class Rates(NamedTuple):
    """How far steps go, float32 scalars.

    Attributes:
      temperature: weight of the magnet.
      proximity: weight of the policy that played.
      rate: the learning rate.
      magnet: how far the magnet moves.
    """

    temperature: Any
    proximity: Any
    rate: Any
    magnet: Any


class Losses(NamedTuple):
    """Means over decisions; see `loss`."""

    total: Any
    gain: Any
    magnet: Any
    proximity: Any
    value: Any


class Learner(NamedTuple):
    """A network in training.

    Attributes:
      parameters: of policy and value.
      magnet: parameters of the magnet.
      optimiser: Adam's state.

    A critic is one, too, without a magnet.
    """

    parameters: Any
    magnet: Any
    optimiser: Any


def table(num_infosets: int, num_actions: int) -> jax.Array:
    """Parameters of a table: the uniform policy and values of zero.

    Args:
      num_infosets: I.
      num_actions: A.

    Returns:
      float32 [I, A + 1].
    """
    return jnp.zeros((num_infosets, num_actions + 1), jnp.float32)


def apply(
    features: jax.Array | None, parameters: Any, seen: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """What a network says.

    Args:
      features: float32 [I, F] of all that a perceptron may be asked about, by place;
        None: it is given features, or is a table.
      parameters: of a perceptron with A + 1 outputs, or from `table`.
      seen: bool or float32 [n, F], features; or int32 [n], places.
      legal: bool [n, A].

    Returns:
      float32 [n, A], log probabilities, `networks.NEVER` where not legal; float32 [n],
      values.
    """
    if isinstance(parameters, tuple):
        given = seen if features is None else features[seen]
        numbers = networks.outputs(parameters, given)
    else:
        numbers = parameters[seen]
    return networks.policy_and_value(numbers, legal)


_apply = jax.jit(apply)


def evaluate(
    features: jax.Array | None, parameters: Any, seen: np.ndarray, legal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As `apply`, for any number of decisions, by few programs.

    Numbers of decisions are padded to powers of two.
    """
    count = len(legal)
    size = padded_size(count, _LEAST)
    both = (networks.padded(part, size) for part in (seen, legal))
    log_policy, value = _apply(features, parameters, *both)
    return np.asarray(log_policy)[:count], np.asarray(value)[:count]


def loss(
    features: jax.Array | None,
    parameters: Any,
    magnet: Any,
    rows: Rows,
    rates: Rates,
    settings: Settings,
) -> tuple[jax.Array, Losses]:
    """What is minimised: a policy gradient with two divergences, and squared errors.

    With r the ratio of the new to the old probability of an action, A its advantage,
    and the sum over all actions, weighed by their old probabilities,

        - sum min(r A, clip(r) A) + temperature KL(new | magnet)
        + proximity KL(new | old) + value_weight (value - returned)^2 / 2

    With proximity 0 that is Schulman et al. 2017, eq. 7 and 9, with a divergence in the
    place of the entropy; without clipping it is magnetic mirror descent (Sokota et al.
    2022, eq. 4) with 1 / eta = proximity, whose minimum some steps of the optimiser
    approach. Both divergences are sums over all legal actions.

    Args:
      features: see `apply`.
      parameters: of the network.
      magnet: parameters of the magnet.
      rows: M of them.
      rates: the weights of the divergences.
      settings: clipping, and the weight of values.

    Returns:
      The loss, and its parts, as means by the rows' weights.
    """
    log_policy, value = apply(features, parameters, rows.seen, rows.legal)
    policy = jnp.where(rows.legal, jnp.exp(log_policy), 0)
    log_magnet = apply(features, magnet, rows.seen, rows.legal)[0]
    ratio = jnp.exp(jnp.where(rows.legal, log_policy - rows.before, 0))
    near = jnp.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    each = jnp.minimum(ratio * rows.advantage, near * rows.advantage)
    gain = jnp.where(rows.legal, jnp.exp(rows.before) * each, 0).sum(axis=1)
    weight = rows.weight / jnp.maximum(rows.weight.sum(), 1)

    def divergence(other: jax.Array) -> jax.Array:
        apart = jnp.where(rows.legal, log_policy - other, 0)
        return (weight * (policy * apart).sum(axis=1)).sum()

    parts = (
        (weight * gain).sum(),
        divergence(log_magnet),
        divergence(rows.before),
        (weight * jnp.square(value - rows.returned)).sum(),
    )
    total = (
        -parts[0]
        + rates.temperature * parts[1]
        + rates.proximity * parts[2]
        + settings.value_weight / 2 * parts[3]
    )
    return total, Losses(total, *parts)


def begin(parameters: Any, settings: Settings) -> Learner:
    """Before the first step; the magnet begins where the network does.

    Raises:
      ImportError: optax is missing.
    """
    optimiser = _optimiser(1.0, settings).init(parameters)
    return Learner(parameters, parameters, optimiser)


@functools.partial(jax.jit, static_argnames="settings")
def advance(
    features: jax.Array | None,
    learner: Learner,
    rows: Rows,
    batches: np.ndarray,
    rates: Rates,
    *,
    settings: Settings,
) -> tuple[Learner, Losses]:
    """Steps of Adam, one for each batch; then the magnet moves.

    Args:
      features: see `apply`.
      learner: to go on with.
      rows: n of them, padding included.
      batches: int32 [T, M], rows of each step.
      rates: of the steps.
      settings: of the loss.

    Returns:
      The learner after T steps, and the mean losses.
    """

    def objective(parameters: Any, chosen: jax.Array) -> tuple[jax.Array, Losses]:
        batch = Rows(*(array[chosen] for array in rows))
        return loss(features, parameters, learner.magnet, batch, rates, settings)

    (parameters, optimiser), losses = network_fits.descend(
        objective,
        _optimiser(rates.rate, settings),
        (learner.parameters, learner.optimiser),
        batches,
    )
    magnet = jax.tree.map(
        lambda old, new: old + rates.magnet * (new - old), learner.magnet, parameters
    )
    mean = Losses(*(part.mean() for part in losses))
    return Learner(parameters, magnet, optimiser), mean


class Moves(NamedTuple):
    """What a critic learns from.

    Attributes:
      joint: bool or float32 [n, 2 F], what both players knew.
      action: int32 [n], OpenSpiel's action that was taken.
      target: float32 [n], what the critic is to say of it.
      weight: float32 [n], 1; 0 where the row is padding.
    """

    joint: Any
    action: Any
    target: Any
    weight: Any


@functools.partial(jax.jit, static_argnames="settings")
def advance_critic(
    critic: Learner,
    moves: Moves,
    batches: np.ndarray,
    rate: Any,
    *,
    settings: Settings,
) -> tuple[Learner, jax.Array]:
    """Steps of Adam on squared errors, one for each batch.

    Args:
      critic: a perceptron with A outputs, to go on with.
      moves: n of them, padding included.
      batches: int32 [T, M], moves of each step.
      rate: the learning rate.
      settings: the norm of gradients.

    Returns:
      The critic after T steps, and its mean squared error in each.
    """

    def objective(parameters: Any, chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
        some = Moves(*(array[chosen] for array in moves))
        numbers = networks.outputs(parameters, some.joint)
        said = jnp.take_along_axis(numbers, some.action[:, None], axis=1)[:, 0]
        wrong = (some.weight * jnp.square(said - some.target)).sum()
        mean = wrong / jnp.maximum(some.weight.sum(), 1)
        return mean, mean

    (parameters, optimiser), errors = network_fits.descend(
        objective,
        _optimiser(rate, settings),
        (critic.parameters, critic.optimiser),
        batches,
    )
    return critic._replace(parameters=parameters, optimiser=optimiser), errors


def padded(rows: Any, count: int) -> Any:
    """`Rows` or `Moves`, and as many of weight 0 as are missing up to a number."""
    return type(rows)(*(networks.padded(array, count) for array in rows))


def _optimiser(rate: float | jax.Array, settings: Settings) -> Any:
    """Adam with clipped gradients."""
    return network_fits.adam(rate, clip=settings.gradient_norm, eps=1e-5)
