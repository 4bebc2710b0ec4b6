"""Policies of self-play, what they learn from, and the critic that says it.

A policy is a perceptron or a table. A perceptron sees features and gives A logits; a
table has the same numbers for each infoset. Of compiled games decisions are numbers of
infosets, of others they are features. Legend for shapes: n decisions, F features, A
actions of the game, I infosets, M rows of a batch, T steps of the optimiser.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import network_fits, networks
from spiel_cr.common.arrays import padded_size

# As many decisions at least, and at most, are asked for together.
_LEAST, _MOST = 64, 1 << 16


class Rows(NamedTuple):
    """Decisions of one network that was played with.

    Attributes:
      seen: bool or float32 [n, F], features; or int32 [n], places.
      legal: bool [n, A].
      before: float32 [n, A], log probabilities of the policy that played.
      advantage: float32 [n, A], of each action; 0 where it is not legal.
      weight: float32 [n], 1; 0 where the row is padding.
    """

    seen: Any
    legal: Any
    before: Any
    advantage: Any
    weight: Any


class Rates(NamedTuple):
    """How far steps go, float32 scalars.

    Attributes:
      temperature: weight of the magnet.
      proximity: weight of the policy that played.
      rate: the learning rate.
      magnet: how far the magnet moves.
      mean: how far the mean of parameters moves.
    """

    temperature: Any
    proximity: Any
    rate: Any
    magnet: Any
    mean: Any


class Losses(NamedTuple):
    """Means over decisions; see `loss`."""

    total: Any
    gain: Any
    magnet: Any
    proximity: Any


class Learner(NamedTuple):
    """A network in training.

    Attributes:
      parameters: of the policy.
      magnet: parameters of the magnet.
      mean: of the parameters that there were, of which the last ones count most.
      optimiser: Adam's state.

    A critic is one, too, without magnet and mean.
    """

    parameters: Any
    magnet: Any
    mean: Any
    optimiser: Any


def table(num_infosets: int, num_actions: int) -> jax.Array:
    """Parameters of a table, float32 [I, A]: zeros, the uniform policy.

    Args:
      num_infosets: I; of a critic, the decisions of the game.
      num_actions: A.
    """
    return jnp.zeros((num_infosets, num_actions), jnp.float32)


def outputs(features: jax.Array | None, parameters: Any, seen: jax.Array) -> jax.Array:
    """A network's numbers, float32 [n, A].

    Args:
      features: float32 [I, F] of all that a perceptron may be asked about, by place;
        None: it is given features, or is a table.
      parameters: of a perceptron with A outputs, or from `table`.
      seen: bool or float32 [n, F], features; or int32 [n], places.
    """
    if isinstance(parameters, tuple):
        rows = seen if features is None else features[seen]
        return networks.outputs(parameters, rows)
    return parameters[seen]


def apply(
    features: jax.Array | None, parameters: Any, seen: jax.Array, legal: jax.Array
) -> jax.Array:
    """What a network plays, as `networks.log_policy` of its `outputs`."""
    numbers = outputs(features, parameters, seen)
    return networks.log_policy(numbers, legal)


_apply, _outputs = jax.jit(apply), jax.jit(outputs)


def evaluate(
    features: jax.Array | None,
    parameters: Any,
    seen: np.ndarray,
    legal: np.ndarray | None = None,
) -> np.ndarray:
    """As `apply`, for any number of decisions, by few programs.

    Numbers of decisions are padded to powers of two.

    Args:
      features: see `outputs`.
      parameters: see `outputs`.
      seen: see `outputs`.
      legal: bool [n, A]; None: what is asked for are `outputs`, of a critic.
    """
    if legal is not None and not len(legal):
        return np.zeros(legal.shape, np.float32)
    parts = [part for part in (seen, legal) if part is not None]
    outputs = []
    for first in range(0, len(seen), _MOST):
        some = [part[first : first + _MOST] for part in parts]
        size = padded_size(len(some[0]), _LEAST)
        program = _outputs if legal is None else _apply
        padded = (networks.padded(part, size) for part in some)
        answers = np.asarray(program(features, parameters, *padded))
        outputs.append(answers[: len(some[0])])
    return np.concatenate(outputs)


def loss(
    features: jax.Array | None,
    parameters: Any,
    magnet: Any,
    rows: Rows,
    rates: Rates,
) -> tuple[jax.Array, Losses]:
    """What is minimised: minus the expected advantage, and two divergences.

        - sum new A + temperature KL(new | magnet) + proximity KL(new | old)

    with sums over all legal actions. That is magnetic mirror descent (Sokota et al.
    2022, eq. 4) with 1 / eta = proximity, whose minimum some steps of the optimiser
    approach.

    Args:
      features: see `apply`.
      parameters: of the network.
      magnet: parameters of the magnet.
      rows: M of them.
      rates: the weights of the divergences.

    Returns:
      The loss, and its parts, as means by the rows' weights.
    """
    log_policy = apply(features, parameters, rows.seen, rows.legal)
    policy = jnp.where(rows.legal, jnp.exp(log_policy), 0)
    log_magnet = apply(features, magnet, rows.seen, rows.legal)
    weight = rows.weight / jnp.maximum(rows.weight.sum(), 1)

    def divergence(other: jax.Array) -> jax.Array:
        log_ratio = jnp.where(rows.legal, log_policy - other, 0)
        return (weight * (policy * log_ratio).sum(axis=1)).sum()

    parts = (
        (weight * (policy * rows.advantage).sum(axis=1)).sum(),
        divergence(log_magnet),
        divergence(rows.before),
    )
    total = -parts[0] + rates.temperature * parts[1] + rates.proximity * parts[2]
    return total, Losses(total, *parts)


def begin(parameters: Any, norm: float) -> Learner:
    """Before the first step; magnet and mean begin where the network does.

    Args:
      parameters: of the network.
      norm: that gradients are clipped to.

    Raises:
      ImportError: optax is missing.
    """
    optimiser = _optimiser(1.0, norm).init(parameters)
    return Learner(parameters, parameters, parameters, optimiser)


@functools.partial(jax.jit, static_argnames="norm")
def advance(
    features: jax.Array | None,
    learner: Learner,
    rows: Rows,
    batches: np.ndarray,
    rates: Rates,
    *,
    norm: float,
) -> tuple[Learner, Losses]:
    """Steps of Adam, one for each batch; then magnet and mean move.

    Args:
      features: see `apply`.
      learner: to go on with.
      rows: n of them, padding included.
      batches: int32 [T, M], rows of each step.
      rates: of the steps.
      norm: that gradients are clipped to.

    Returns:
      The learner after T steps, and the mean losses.
    """

    def objective(parameters: Any, chosen: jax.Array) -> tuple[jax.Array, Losses]:
        batch = Rows(*(array[chosen] for array in rows))
        return loss(features, parameters, learner.magnet, batch, rates)

    learner, losses = _steps(objective, learner, batches, rates.rate, norm)
    magnet = _towards(learner.magnet, learner.parameters, rates.magnet)
    mean = _towards(learner.mean, learner.parameters, rates.mean)
    means = Losses(*(part.mean() for part in losses))
    return learner._replace(magnet=magnet, mean=mean), means


def _steps(
    objective: Any, learner: Learner, batches: np.ndarray, rate: Any, norm: float
) -> tuple[Learner, Any]:
    """Return a learner after steps of Adam, and what the objective reported."""
    start = learner.parameters, learner.optimiser
    (parameters, optimiser), reports = network_fits.descend(
        objective, _optimiser(rate, norm), start, batches
    )
    return learner._replace(parameters=parameters, optimiser=optimiser), reports


def _towards(old: Any, new: Any, share: Any) -> Any:
    """Parameters that go a share of the way to others."""
    return jax.tree.map(lambda one, other: one + share * (other - one), old, new)


class Moves(NamedTuple):
    """What a critic learns from.

    Attributes:
      joint: bool or float32 [n, 2 F], what both players knew; or int32 [n], places.
      action: int32 [n], OpenSpiel's action that was taken.
      target: float32 [n], what the critic is to say of it.
      weight: float32 [n], 1; 0 where the row is padding.
    """

    joint: Any
    action: Any
    target: Any
    weight: Any


@functools.partial(jax.jit, static_argnames="norm")
def advance_critic(
    features: jax.Array | None,
    critic: Learner,
    moves: Moves,
    batches: np.ndarray,
    rate: Any,
    *,
    norm: float,
) -> tuple[Learner, jax.Array]:
    """Steps of Adam on squared errors, one for each batch.

    Args:
      features: see `outputs`.
      critic: to go on with.
      moves: n of them, padding included.
      batches: int32 [T, M], moves of each step.
      rate: the learning rate.
      norm: that gradients are clipped to.

    Returns:
      The critic after T steps, and its mean squared error in each.
    """

    def objective(parameters: Any, chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
        some = Moves(*(array[chosen] for array in moves))
        numbers = outputs(features, parameters, some.joint)
        predicted = jnp.take_along_axis(numbers, some.action[:, None], axis=1)[:, 0]
        wrong = (some.weight * jnp.square(predicted - some.target)).sum()
        mean = wrong / jnp.maximum(some.weight.sum(), 1)
        return mean, mean

    return _steps(objective, critic, batches, rate, norm)


def padded(rows: Any, count: int) -> Any:
    """`Rows` or `Moves`, and as many of weight 0 as are missing up to a number."""
    return type(rows)(*(networks.padded(array, count) for array in rows))


def _optimiser(rate: float | jax.Array, norm: float) -> Any:
    """Adam with clipped gradients."""
    return network_fits.adam(rate, clip=norm, eps=1e-5)
