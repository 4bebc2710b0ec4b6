"""Steps of an optimiser on samples of all parts at once, within one program."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import fits
from spiel_cr.resolving.leaves import set_network
from spiel_cr.resolving.leaves.public_states import PublicStates
from spiel_cr.resolving.leaves.set_network import Parameters, Places
from spiel_cr.resolving.leaves.training.data import Samples
from spiel_cr.resolving.leaves.training.training_config import TrainingConfig

# Newton-Schulz steps of Muon: more of them cost time, and 3 were enough in trials.
_ORTHOGONALISE = 3
# Steps between two looks at the clock.
CHUNK = 50


class Part(NamedTuple):
    """What a network needs to know of a part of the public states.

    Attributes:
      places: of the states.
      features: by player float32 [J0, F] and [J1, F].
    """

    places: Places
    features: tuple[jax.Array, jax.Array]


class Fit(NamedTuple):
    """A network in training.

    Attributes:
      parameters: of the network.
      average: their moving average, which is the result.
      optimiser: its state.
      step: int scalar, steps done.
    """

    parameters: Any
    average: Any
    optimiser: Any
    step: jax.Array


def lay_out(states: PublicStates, features: tuple[np.ndarray, np.ndarray]) -> Part:
    """A part, in single precision."""

    def single(array: np.ndarray) -> np.ndarray:
        return array.astype(np.float32 if array.dtype.kind == "f" else np.int32)

    places = jax.tree.map(single, set_network.find_places(states))
    return Part(places, (jnp.asarray(features[0]), jnp.asarray(features[1])))


def begin(parameters: dict[str, np.ndarray], config: TrainingConfig) -> Fit:
    """Before the first step."""
    start = jax.tree.map(jnp.asarray, parameters)
    optimiser = _optimiser(config).init(start)
    return Fit(start, start, optimiser, jnp.zeros((), jnp.int32))


@functools.partial(jax.jit, static_argnames="config")
def advance(
    fit: Fit,
    parts: tuple[Part, ...],
    samples: tuple[Samples, ...],
    rows: tuple[jax.Array, ...],
    *,
    config: TrainingConfig,
) -> tuple[Fit, jax.Array]:
    """Some steps.

    Args:
      fit: to go on with.
      parts: of the public states.
      samples: of each part.
      rows: of each part int32 [T, B], the samples of each step.
      config: of the optimiser and the loss.

    Returns:
      The network after T steps, and the mean loss.
    """

    def objective(
        parameters: Parameters, chosen: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, jax.Array]:
        batch = tuple(
            jax.tree.map(lambda own, mine=mine: own[mine], one)
            for one, mine in zip(samples, chosen, strict=True)
        )
        found = loss(parameters, parts, batch, config.delta)
        return found, found

    state = fit.optimiser, fit.average, fit.step
    (parameters, (optimiser, average, step)), losses = fits.descend(
        objective, _averaging(config), (fit.parameters, state), rows
    )
    return Fit(parameters, average, optimiser, step), losses.mean()


def loss(
    parameters: Parameters,
    parts: tuple[Part, ...],
    samples: tuple[Samples, ...],
    delta: float | jax.Array,
) -> jax.Array:
    """Weighted mean of Huber's loss of values relative to the largest utility.

    Squares below delta, linear above, over delta: error² / (2 delta), then |error| −
    delta / 2.
    """
    total = weight = jnp.zeros(())
    for part, some in zip(parts, samples, strict=True):
        embedded = (
            set_network.embed(parameters, part.features[0], 0),
            set_network.embed(parameters, part.features[1], 1),
        )

        def of_row(
            first: jax.Array,
            second: jax.Array,
            part: Part = part,
            embedded: Any = embedded,
        ) -> tuple[jax.Array, jax.Array]:
            found = set_network.both_values(
                parameters, embedded, part.places, (first, second)
            )
            return found[0][1], found[1][1]

        for p, own in enumerate(jax.vmap(of_row)(*some.ranges)):
            error = jnp.abs(own - some.targets[p])
            huber = jnp.where(
                error < delta, error * error / (2 * delta), error - delta / 2
            )
            total += (huber * some.weights[p]).sum()
            weight += some.weights[p].sum()
    return total / jnp.maximum(weight, 1e-9)


validation_loss = jax.jit(loss)


def _averaging(config: TrainingConfig) -> Any:
    """The optimiser; its state has the moving average and the number of steps, too."""
    optimiser = _optimiser(config)

    def update(slope: Any, state: Any, parameters: Any) -> tuple[Any, Any]:
        inner, average, step = state
        updates, inner = optimiser.update(slope, inner, parameters)
        # At first the average follows closely.
        age = step.astype(jnp.float32)
        keep = jnp.minimum(config.average, (1 + age) / (10 + age))
        average = jax.tree.map(
            lambda old, own, new: keep * old + (1 - keep) * (own + new),
            *(average, parameters, updates),
        )
        return updates, (inner, average, step + 1)

    return fits.optax_package().GradientTransformation(optimiser.init, update)


def _optimiser(config: TrainingConfig) -> Any:
    """Adam, and Muon for matrices where they have a rate of their own."""
    total = config.total_steps
    descent = fits.adam(config.learning_rate, steps=total)
    optax = fits.optax_package()
    if config.matrix_rate:
        rate = optax.cosine_decay_schedule(config.matrix_rate, total)
        descent = optax.multi_transform(
            {
                "matrix": optax.contrib.muon(rate, ns_steps=_ORTHOGONALISE),
                "other": descent,
            },
            lambda parameters: jax.tree.map(
                lambda own: "matrix" if own.ndim == 2 else "other", parameters
            ),
        )
    return optax.chain(optax.clip_by_global_norm(1.0), descent)
