"""Policies of self-play, their losses, and the critic.

A policy is a perceptron or a table. A perceptron maps features to A logits. A table
stores logits for each infoset. In game trees, decisions are represented by numbers of
infosets, in other games by features. Legend for shapes: n decisions, F features, A
actions of the game, I infosets, M rows of a batch, T steps of the optimiser.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import network_fits, networks
from spiel_cr.common.arrays import padded_size

# Minimum and maximum number of decisions that are evaluated together.
_LEAST, _MOST = 64, 1 << 16


class Rows(NamedTuple):
    """Decisions from which one network learns.

    Attributes:
      seen: Features, bool or float32 [n, F]; or row numbers, int32 [n].
      legal: Legal actions, bool [n, A].
      before: Log probabilities of the policy that played, float32 [n, A].
      advantage: Advantage of each action, float32 [n, A]; 0 if it is illegal.
      weight: Weight of the row, float32 [n]: 1, or 0 for padding.
    """

    seen: Any
    legal: Any
    before: Any
    advantage: Any
    weight: Any


class UpdateRates(NamedTuple):
    """Weights and step sizes of an update, float32 scalars.

    Attributes:
      temperature: Weight of the divergence from the magnet.
      proximity: Weight of the divergence from the policy that played.
      rate: Learning rate.
      magnet: Share by which the magnet moves.
      mean: Share by which the mean of parameters moves.
    """

    temperature: Any
    proximity: Any
    rate: Any
    magnet: Any
    mean: Any


class SelfPlayLosses(NamedTuple):
    """Means of the parts of `loss` over decisions."""

    total: Any
    advantage: Any
    magnet: Any
    proximity: Any


class Learner(NamedTuple):
    """Network in training.

    Attributes:
      parameters: Parameters of the policy.
      magnet: Parameters of the magnet.
      mean: Mean of the parameters so far, with most weight on the last ones.
      optimiser: State of Adam.

    A critic is a learner without magnet and mean.
    """

    parameters: Any
    magnet: Any
    mean: Any
    optimiser: Any


def table(num_infosets: int, num_actions: int) -> jax.Array:
    """Return the parameters of a uniform table, float32 [I, A]: zeros.

    Args:
      num_infosets: Number I of infosets; for a critic, the number of decisions.
      num_actions: Number A of actions.
    """
    return jnp.zeros((num_infosets, num_actions), jnp.float32)


def outputs(features: jax.Array | None, parameters: Any, seen: jax.Array) -> jax.Array:
    """Return the outputs of a network, float32 [n, A].

    Args:
      features: Features of all possible inputs of a perceptron, by row number, float32
        [I, F]; None: its inputs are features, or it is a table.
      parameters: Parameters of a perceptron with A outputs, or from `table`.
      seen: Features, bool or float32 [n, F]; or row numbers, int32 [n].
    """
    if isinstance(parameters, tuple):
        rows = seen if features is None else features[seen]
        return networks.outputs(parameters, rows)
    return parameters[seen]


def apply(
    features: jax.Array | None, parameters: Any, seen: jax.Array, legal: jax.Array
) -> jax.Array:
    """Return the policy of a network, as `networks.log_policy` of its `outputs`."""
    numbers = outputs(features, parameters, seen)
    return networks.log_policy(numbers, legal)


_apply, _outputs = jax.jit(apply), jax.jit(outputs)


def evaluate(
    features: jax.Array | None,
    parameters: Any,
    seen: np.ndarray,
    legal: np.ndarray | None = None,
) -> np.ndarray:
    """Evaluate `apply` at any number of decisions, with few compiled functions.

    Numbers of decisions are padded to powers of two.

    Args:
      features: Features by row number as in `outputs`.
      parameters: Parameters as in `outputs`.
      seen: Inputs as in `outputs`.
      legal: Legal actions, bool [n, A]; None: return the `outputs` of a critic.
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
    rates: UpdateRates,
) -> tuple[jax.Array, SelfPlayLosses]:
    """Compute the loss: minus the expected advantage, plus two divergences.

        - sum new A + temperature KL(new | magnet) + proximity KL(new | old)

    with sums over all legal actions. This is the objective of magnetic mirror descent
    (Sokota et al. 2022, eq. 4) with 1 / eta = proximity. A few steps of the optimiser
    approach its minimum.

    Args:
      features: Features by row number as in `outputs`.
      parameters: Parameters of the network.
      magnet: Parameters of the magnet.
      rows: Decisions, M rows.
      rates: Weights of the divergences.

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
    return total, SelfPlayLosses(total, *parts)


def begin(parameters: Any, norm: float) -> Learner:
    """Return a learner before its first step.

    Magnet and mean are equal to the network.

    Args:
      parameters: Parameters of the network.
      norm: Maximum norm of gradients.

    Raises:
      ImportError: If optax is missing.
    """
    optimiser = _optimiser(1.0, norm).init(parameters)
    return Learner(parameters, parameters, parameters, optimiser)


@functools.partial(jax.jit, static_argnames="norm")
def advance(
    features: jax.Array | None,
    learner: Learner,
    rows: Rows,
    batches: np.ndarray,
    rates: UpdateRates,
    *,
    norm: float,
) -> tuple[Learner, SelfPlayLosses]:
    """Perform a step of Adam for each batch; then move magnet and mean.

    Args:
      features: Features by row number as in `outputs`.
      learner: Learner before the steps.
      rows: Decisions, n rows including padding.
      batches: Decisions of each step, int32 [T, M].
      rates: Weights and step sizes.
      norm: Maximum norm of gradients.

    Returns:
      The learner after T steps, and the mean losses.
    """

    def objective(
        parameters: Any, chosen: jax.Array
    ) -> tuple[jax.Array, SelfPlayLosses]:
        batch = Rows(*(array[chosen] for array in rows))
        return loss(features, parameters, learner.magnet, batch, rates)

    learner, losses = _steps(objective, learner, batches, rates.rate, norm)
    magnet = _towards(learner.magnet, learner.parameters, rates.magnet)
    mean = _towards(learner.mean, learner.parameters, rates.mean)
    means = SelfPlayLosses(*(part.mean() for part in losses))
    return learner._replace(magnet=magnet, mean=mean), means


def _steps(
    objective: Any, learner: Learner, batches: np.ndarray, rate: Any, norm: float
) -> tuple[Learner, Any]:
    """Train a learner with Adam; return it and what the objective reports per step."""
    start = learner.parameters, learner.optimiser
    (parameters, optimiser), reports = network_fits.descend(
        objective, _optimiser(rate, norm), start, batches
    )
    return learner._replace(parameters=parameters, optimiser=optimiser), reports


def _towards(old: Any, new: Any, share: Any) -> Any:
    """Return parameters that are moved by a share towards new ones."""
    return jax.tree.map(lambda one, other: one + share * (other - one), old, new)


class Moves(NamedTuple):
    """Samples for a critic.

    Attributes:
      joint: Features of joint information, bool or float32 [n, 2 F]; or row numbers,
        int32 [n].
      action: Action that was played, numbered as in OpenSpiel, int32 [n].
      target: Target of the critic, float32 [n].
      weight: Weight of the row, float32 [n]: 1, or 0 for padding.
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
    """Perform a step of Adam on squared errors for each batch.

    Args:
      features: Features by row number as in `outputs`.
      critic: Critic before the steps.
      moves: Samples, n rows including padding.
      batches: Samples of each step, int32 [T, M].
      rate: Learning rate.
      norm: Maximum norm of gradients.

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
    """Return `Rows` or `Moves`, padded to a number of rows with rows of weight 0."""
    return type(rows)(*(networks.padded(array, count) for array in rows))


def _optimiser(rate: float | jax.Array, norm: float) -> Any:
    """Return Adam with clipped gradients."""
    return network_fits.adam(rate, clip=norm, eps=1e-5)
