"""Training of networks: Adam steps inside one compiled function.

The module needs optax, which is imported on first use: `pip install 'spiel_cr[deep]'`.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import networks
from spiel_cr.common.arrays import padded_size
from spiel_cr.common.jax_utils import precision
from spiel_cr.common.networks import Parameters

# Maximum norm of gradients.
_CLIP = 1.0
# Maximum size of the rows that are copied for a block of steps.
_MOST_BYTES = 1 << 26


def optax_package() -> Any:
    """Import and return the package optax.

    Raises:
      ImportError: If optax is missing.
    """
    try:
        import optax
        import optax.contrib
    except ImportError as error:
        raise ImportError(
            f"networks need optax ({error}); install it: pip install 'spiel_cr[deep]'"
        ) from error
    return optax


def adam(
    rate: float | jax.Array,
    *,
    steps: int | None = None,
    clip: float | None = None,
    eps: float = 1e-8,
) -> Any:
    """Return Adam as an optax transformation.

    Args:
      rate: Learning rate; with `steps`, its initial value.
      steps: Number of steps after which the rate has fallen to 0 along a cosine. If
        None, the rate is constant.
      clip: Maximum norm of gradients, which are scaled down to it. If None, gradients
        are not clipped.
      eps: Number that is added to the root of mean squares.

    Raises:
      ImportError: If optax is missing.
    """
    optax = optax_package()
    if steps is not None:
        rate = optax.cosine_decay_schedule(rate, steps)
    descent = optax.adam(rate, eps=eps)
    if clip is None:
        return descent
    return optax.chain(optax.clip_by_global_norm(clip), descent)


def descend(
    objective: Callable[[Any, Any], tuple[jax.Array, Any]],
    optimiser: Any,
    start: tuple[Any, Any],
    batches: Any,
    *,
    steps: int | None = None,
) -> tuple[tuple[Any, Any], Any]:
    """Perform one step of an optimiser per batch; for use inside compiled functions.

    Args:
      objective: Function of parameters and a batch. It returns the scalar to minimise,
        and auxiliary values.
      optimiser: Optax transformation, such as `adam`.
      start: Parameters, and the optimiser's state.
      batches: Pytree of arrays [T, ...].
      steps: T. Required only if `batches` is None.

    Returns:
      Parameters and state after T steps, and the auxiliary values of all steps with an
      additional first axis [T].
    """
    optax = optax_package()

    def step(carry: tuple[Any, Any], batch: Any) -> tuple[tuple[Any, Any], Any]:
        parameters, state = carry
        slope, noted = jax.grad(objective, has_aux=True)(parameters, batch)
        updates, state = optimiser.update(slope, state, parameters)
        return (optax.apply_updates(parameters, updates), state), noted

    return jax.lax.scan(step, start, batches, length=steps)


class Targets(NamedTuple):
    """Rows of training data for a network.

    Attributes:
      rows: Network inputs [n, ...]: features, or row indices of a table of features.
      legal: Legality of each action, bool [n, A].
      target: Target of each action, float32 or float64 [n, A]; arbitrary for actions
        that are not legal.
      weight: Weight in the loss, float64 [n]; 0 for rows without data.
    """

    rows: Any
    legal: Any
    target: Any
    weight: Any


class FitSchedule(NamedTuple):
    """Static settings of a compiled training function.

    Gradients are clipped to a norm of 1.

    Attributes:
      steps: Number of Adam steps.
      batch: Number of rows per step.
      learning_rate: Initial learning rate, which falls to 0 along a cosine.
      loss: "squared" for squared errors of outputs, or "cross" for the cross-entropy
        between the targets, which are probabilities, and the softmax of the outputs.
    """

    steps: int
    batch: int
    learning_rate: float
    loss: str = "squared"

    def optimiser(self) -> Any:
        """Return the optimiser with gradient clipping and cosine decay."""
        return adam(self.learning_rate, steps=self.steps, clip=_CLIP)


def fit(
    parameters: Parameters,
    table: jax.Array | None,
    targets: Targets,
    schedule: FitSchedule,
    random: np.random.Generator,
    *,
    scale: float = 1.0,
    ordered: bool = False,
) -> tuple[Parameters, float]:
    """Train a network on targets.

    If the rows fit into one batch, every step uses all rows. Otherwise, the
    rows of each step are sampled in proportion to their weights, and count equally in
    the loss.

    Args:
      parameters: Initial parameters.
      table: Features, float32 [I, F], to which rows refer. If None, rows are features.
      targets: Training data. If the number of rows is the same in every call, only one
        function is compiled.
      schedule: Number of steps, and loss.
      random: Random generator, which is advanced if rows are sampled.
      scale: Factor by which the network's outputs are multiplied, in units of the
        targets.
      ordered: Whether `targets` contains the rows of each step in order: `steps *
        batch` rows of equal weight. Rows are then not sampled.

    Returns:
      The new parameters, and the mean loss of the last tenth of the steps.
    """
    total = float(targets.weight.sum())
    if not total > 0:
        return parameters, 0.0
    targets = targets._replace(
        rows=targets.rows if table is None else targets.rows.astype(np.int32),
        target=(targets.target / scale).astype(np.float32),
    )
    is_full = len(targets.weight) <= schedule.batch and not ordered
    if is_full:
        batch = targets._replace(weight=(targets.weight / total).astype(np.float32))
        if table is None:
            # The added rows have weight zero.
            size = padded_size(len(batch.weight), networks.LEAST_ROWS)
            batch = Targets(*(networks.padded(part, size) for part in batch))
        parts = iter([batch])
    else:
        parts = _drawn(targets, schedule, None if ordered else random)
    losses = []
    with precision(np.dtype(np.float32)):
        state = _start(parameters, schedule)
        for batch in parts:
            (parameters, state), lost = _steps(
                parameters, state, table, batch, schedule=schedule, is_full=is_full
            )
            losses.append(np.asarray(lost))
    last = np.concatenate(losses)[-max(1, schedule.steps // 10) :]
    return parameters, float(last.mean())


def _drawn(
    targets: Targets, schedule: FitSchedule, random: np.random.Generator | None
) -> Iterator[Targets]:
    """Yield the training rows of all steps, in blocks of several steps.

    Args:
      targets: Rows to sample from.
      schedule: Number of steps, and of rows per step.
      random: Random generator, which is advanced. If None, rows are used in their
        order.

    Yields:
      Arrays [steps, B, ...]; all weights are equal.
    """
    count = len(targets.weight)
    if random is None:
        chosen = np.arange(count).reshape(schedule.steps, schedule.batch)
    else:
        ends = np.cumsum(targets.weight)
        points = random.random((schedule.steps, schedule.batch)) * ends[-1]
        chosen = np.minimum(np.searchsorted(ends, points, side="right"), count - 1)
    arrays = (targets.rows, targets.legal, targets.target)
    row_bytes = sum(array[:1].nbytes for array in arrays)
    most = min(max(1, _MOST_BYTES // (schedule.batch * row_bytes)), schedule.steps)
    size = next(n for n in range(most, 0, -1) if schedule.steps % n == 0)
    weight = np.full((size, schedule.batch), 1 / schedule.batch, np.float32)
    for first in range(0, schedule.steps, size):
        some = chosen[first : first + size]
        rows, legal, target = (array[some] for array in arrays)
        yield Targets(rows, legal, target, weight)


@functools.partial(jax.jit, static_argnames="schedule")
def _start(parameters: Parameters, schedule: FitSchedule) -> Any:
    """Return the optimiser's initial state, compiled as one function."""
    return schedule.optimiser().init(parameters)


@functools.partial(jax.jit, static_argnames=("schedule", "is_full"))
def _steps(
    parameters: Parameters,
    state: Any,
    table: jax.Array | None,
    batch: Targets,
    *,
    schedule: FitSchedule,
    is_full: bool,
) -> tuple[tuple[Parameters, Any], jax.Array]:
    """Perform steps of a fit; return parameters, optimiser's state and losses."""
    if is_full and table is not None:
        # Rows are gathered once instead of in every step.
        batch, table = batch._replace(rows=table[batch.rows]), None

    def objective(
        parameters: Parameters, some: Targets | None
    ) -> tuple[jax.Array, jax.Array]:
        rows, legal, target, weight = batch if some is None else some
        seen = rows if table is None else table[rows]
        numbers = networks.outputs(parameters, seen)
        value = loss(numbers, legal, target, weight, schedule.loss)
        return value, value

    return descend(
        objective,
        schedule.optimiser(),
        (parameters, state),
        None if is_full else batch,
        steps=schedule.steps if is_full else None,
    )


def loss(
    numbers: jax.Array,
    legal: jax.Array,
    target: jax.Array,
    weight: jax.Array,
    kind: str,
) -> jax.Array:
    """Return the weighted loss of a batch, a scalar.

    Args:
      numbers: Outputs of a network, float32 [B, A].
      legal: Legality of actions, bool [B, A]; other actions do not enter the loss.
      target: Targets, float32 [B, A].
      weight: Weights of rows, float32 [B].
      kind: "squared" or "cross", as in `FitSchedule`.
    """
    if kind == "cross":
        inside = jax.nn.log_softmax(jnp.where(legal, numbers, networks.NEVER), axis=1)
        each = -jnp.where(legal, target * inside, 0)
    else:
        each = jnp.square(jnp.where(legal, numbers - target, 0))
    return (weight * each.sum(axis=1)).sum()
