"""Policies and values of self-play: a perceptron or a table, and what it learns from.

A perceptron (see `nets`) sees features and has A + 1 outputs: logits, and the value. A
table has the same numbers for each infoset. Of compiled games decisions are numbers of
infosets, of others they are features. Legend for shapes: n decisions, F features, A
actions of the game, I infosets, M rows of a batch, T steps of the optimiser.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.arrays import padded_size
from spiel_cr.common.jax_utils import deep_packages
from spiel_cr.deep import nets

# Of actions that are not legal: finite, so that nothing times it is not a number.
NEVER = np.float32(-1e9)
# As many decisions at least are asked for together.
_LEAST = 64


class Rows(NamedTuple):
    """Decisions of one network that was played with.

    Attributes:
      seen: bool or float32 [n, F], features; or int32 [n], a model's places.
      legal: bool [n, A].
      action: int32 [n], OpenSpiel's action that was taken.
      before: float32 [n, A], log probabilities of the policy that played.
      advantage: float32 [n], in half ranges of utility.
      returned: float32 [n], what the value is to be, likewise.
      weight: float32 [n], 1; 0 where the row is padding.
    """

    seen: Any
    legal: Any
    action: Any
    before: Any
    advantage: Any
    returned: Any
    weight: Any


class Model(NamedTuple):
    """What a network is made of, besides its parameters.

    Attributes:
      graph: a perceptron's structure, from `nets.make`; None: a table.
      features: float32 [I, F] of all that a perceptron may be asked about, by place;
        None: it is given features.
    """

    graph: Any
    features: Any


class Settings(NamedTuple):
    """What a program of steps is made for; see `SelfPlayConfig`."""

    clip: float
    proximity: float
    value_weight: float
    gradient_norm: float


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
      magnet: parameters of a moving magnet; None: the magnet is uniform.
      optimiser: Adam's state.
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
    model: Model, parameters: Any, seen: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """What a network says.

    Args:
      model: of the network.
      parameters: from `nets.make`, with A + 1 outputs, or from `table`.
      seen: bool or float32 [n, F], features; or int32 [n], places.
      legal: bool [n, A].

    Returns:
      float32 [n, A], log probabilities, `NEVER` where not legal; float32 [n], values in
      half ranges of utility.
    """
    if model.graph is None:
        out = parameters[seen]
    else:
        given = seen if model.features is None else model.features[seen]
        out = nets.outputs(model.graph, parameters, given.astype(jnp.float32))
    logits, value = out[:, :-1], out[:, -1]
    log_policy = jax.nn.log_softmax(jnp.where(legal, logits, NEVER))
    return jnp.where(legal, log_policy, NEVER), value


@functools.partial(jax.jit, static_argnames="graph")
def _apply(graph: Any, features: Any, *rest: Any) -> tuple[jax.Array, jax.Array]:
    return apply(Model(graph, features), *rest)


def evaluate(
    model: Model, parameters: Any, seen: np.ndarray, legal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As `apply`, for any number of decisions, by few programs.

    Numbers of decisions are padded to powers of two.
    """
    count = len(legal)
    padded = padded_size(count, _LEAST)
    filled = _pad(seen, padded), _pad(legal, padded)
    log_policy, value = _apply(*model, parameters, *filled)
    return np.asarray(log_policy)[:count], np.asarray(value)[:count]


def loss(
    model: Model,
    parameters: Any,
    magnet: Any,
    rows: Rows,
    temperature: jax.Array,
    settings: Settings,
) -> tuple[jax.Array, Losses]:
    """What is minimised: a policy gradient with two divergences, and squared errors.

    With r the ratio of the new to the old probability of the action, A its advantage,

        - min(r A, clip(r) A) + temperature KL(new | magnet)
        + proximity KL(new | old) + value_weight (value - returned)^2 / 2

    With proximity 0 and a uniform magnet that is Schulman et al. 2017, eq. 7 and 9 (the
    divergence from uniform is minus the entropy, but for a constant); without clipping
    it is magnetic mirror descent (Sokota et al. 2022, eq. 4) with 1 / eta = proximity,
    whose minimum some steps of the optimiser approach. Both divergences are sums over
    all legal actions.

    Args:
      model: of the network.
      parameters: of the network.
      magnet: parameters of a moving magnet; None: uniform.
      rows: M of them.
      temperature: float32 scalar.
      settings: the weights.

    Returns:
      The loss, and its parts, as means by the rows' weights.
    """
    log_policy, value = apply(model, parameters, rows.seen, rows.legal)
    policy = jnp.where(rows.legal, jnp.exp(log_policy), 0)
    if magnet is None:
        log_magnet = -jnp.log(rows.legal.sum(axis=1, keepdims=True))
        log_magnet = jnp.broadcast_to(log_magnet, log_policy.shape)
    else:
        log_magnet = apply(model, magnet, rows.seen, rows.legal)[0]
    taken = rows.action[:, None]
    after, before = (
        jnp.take_along_axis(one, taken, axis=1)[:, 0]
        for one in (log_policy, rows.before)
    )
    ratio = jnp.exp(after - before)
    near = jnp.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    gain = jnp.minimum(ratio * rows.advantage, near * rows.advantage)
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
        + temperature * parts[1]
        + settings.proximity * parts[2]
        + settings.value_weight / 2 * parts[3]
    )
    return total, Losses(total, *parts)


def begin(parameters: Any, settings: Settings, *, moving: bool) -> Learner:
    """Before the first step; a moving magnet begins where the network does.

    Raises:
      ImportError: optax is missing.
    """
    optimiser = _optimiser(settings.gradient_norm).init(parameters)
    return Learner(parameters, parameters if moving else None, optimiser)


def advance(
    model: Model,
    learner: Learner,
    rows: Rows,
    batches: np.ndarray,
    *,
    temperature: float,
    rate: float,
    magnet_rate: float,
    settings: Settings,
) -> tuple[Learner, Losses]:
    """Steps of Adam, one for each batch; then a moving magnet moves.

    Args:
      model: of the network.
      learner: to go on with.
      rows: n of them, padding included.
      batches: int32 [T, M], rows of each step.
      temperature: of the magnet.
      rate: the learning rate.
      magnet_rate: how far the magnet moves.
      settings: of the loss.

    Returns:
      The learner after T steps, and the mean losses.
    """
    numbers = (np.float32(one) for one in (temperature, rate, magnet_rate))
    found: tuple[Learner, Losses] = _advance(
        *model, learner, rows, batches, *numbers, settings=settings
    )
    return found


@functools.partial(jax.jit, static_argnames=("graph", "settings"))
def _advance(
    graph: Any,
    features: Any,
    learner: Learner,
    rows: Rows,
    batches: jax.Array,
    temperature: jax.Array,
    rate: jax.Array,
    magnet_rate: jax.Array,
    *,
    settings: Settings,
) -> tuple[Learner, Losses]:
    optimiser, model = _optimiser(settings.gradient_norm), Model(graph, features)
    slope_of = jax.grad(loss, argnums=1, has_aux=True)

    def step(carry: Any, chosen: jax.Array) -> tuple[Any, Losses]:
        parameters, state = carry
        batch = Rows(*(array[chosen] for array in rows))
        slope, losses = slope_of(
            model, parameters, learner.magnet, batch, temperature, settings
        )
        updates, state = optimiser.update(slope, state, parameters)
        moved = jax.tree.map(lambda own, by: own - rate * by, parameters, updates)
        return (moved, state), losses

    carry = learner.parameters, learner.optimiser
    (parameters, state), losses = jax.lax.scan(step, carry, batches)
    magnet = learner.magnet
    if magnet is not None:
        magnet = jax.tree.map(
            lambda own, new: own + magnet_rate * (new - own), magnet, parameters
        )
    mean = Losses(*(one.mean() for one in losses))
    return Learner(parameters, magnet, state), mean


def pad_rows(rows: Rows, count: int) -> Rows:
    """The rows, and as many of weight 0 as are missing up to a number of rows."""
    return Rows(*(_pad(array, count) for array in rows))


def _pad(array: np.ndarray, count: int) -> np.ndarray:
    """[n, ...] and zeros, count of them."""
    padded = np.zeros((count, *array.shape[1:]), array.dtype)
    padded[: len(array)] = array
    return padded


@functools.cache
def _optimiser(gradient_norm: float) -> Any:
    """Clipped gradients, scaled as Adam does it, for a step of rate 1."""
    _, optax = deep_packages()
    return optax.chain(
        optax.clip_by_global_norm(gradient_norm), optax.scale_by_adam(eps=1e-5)
    )
