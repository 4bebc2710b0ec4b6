"""Fits of networks: steps of Adam within one program.

Needs optax, imported when it is first used: `pip install 'spiel_cr[deep]'`.
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

_CLIP = 1.0
# Of the rows that are laid out for some steps of a fit.
_MOST_BYTES = 1 << 26


def optax_package() -> Any:
    """The package optax.

    Raises:
      ImportError: it is missing.
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
    """Adam as an optax transformation.

    Args:
      rate: the learning rate; at first, if there are `steps`.
      steps: after which the rate has fallen to 0 along a cosine; None: it stays.
      clip: norm that gradients are clipped to; None: they are not.
      eps: added to the root of mean squares.

    Raises:
      ImportError: optax is missing.
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
    """Steps of an optimiser, one for each batch; for use inside of programs.

    Args:
      objective: what is minimised, of parameters and a batch, and what else is noted.
      optimiser: an optax transformation, such as `adam`.
      start: parameters, and the optimiser's state.
      batches: a pytree of arrays [T, ...].
      steps: T; only where `batches` is None.

    Returns:
      Parameters and state after T steps; what each step noted, with an axis [T].
    """
    optax = optax_package()

    def step(carry: tuple[Any, Any], batch: Any) -> tuple[tuple[Any, Any], Any]:
        parameters, state = carry
        slope, noted = jax.grad(objective, has_aux=True)(parameters, batch)
        updates, state = optimiser.update(slope, state, parameters)
        return (optax.apply_updates(parameters, updates), state), noted

    return jax.lax.scan(step, start, batches, length=steps)


class Targets(NamedTuple):
    """What a network is fitted to, row by row.

    Attributes:
      rows: [n, ...], of what was seen: features, or rows of a table of them.
      legal: bool [n, A].
      target: float32 or float64 [n, A]; anything where an action is not legal.
      weight: float64 [n], in the loss; 0 where nothing is known.
    """

    rows: Any
    legal: Any
    target: Any
    weight: Any


class FitSchedule(NamedTuple):
    """What a program of steps is made for.

    Gradients are clipped to a norm of 1.

    Attributes:
      steps: of Adam.
      batch: rows per step.
      learning_rate: at first; it falls to 0 along a cosine.
      loss: "squared": of outputs and targets; "cross": cross-entropy of the outputs'
        softmax relative to targets, which are probabilities.
    """

    steps: int
    batch: int
    learning_rate: float
    loss: str = "squared"

    def optimiser(self) -> Any:
        """The optimiser; see `adam`."""
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
    """Fits a network to targets.

    Fewer rows than a batch takes are a full batch in every step; else the rows of each
    step are drawn in proportion to their weights, and weigh alike in the loss.

    Args:
      parameters: to begin with.
      table: float32 [I, F], what rows stand for; None: rows are features.
      targets: with rows of the same number in every call, if one program shall do.
      schedule: steps and loss.
      random: advanced, where rows are drawn.
      scale: what the network's outputs are multiplied with, in the targets' units.
      ordered: targets are those of each step, `steps * batch` rows of equal weight that
        somebody has drawn; nothing is drawn then.

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
            # What is added weighs nothing.
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
                parameters,
                state,
                table,
                batch,
                schedule=schedule,
                is_full=is_full,
            )
            losses.append(np.asarray(lost))
    last = np.concatenate(losses)[-max(1, schedule.steps // 10) :]
    return parameters, float(last.mean())


def _drawn(
    targets: Targets, schedule: FitSchedule, random: np.random.Generator | None
) -> Iterator[Targets]:
    """The rows of all steps, so many steps at a time.

    Args:
      targets: that are drawn from.
      schedule: steps and their rows.
      random: advanced; None: rows are taken in their order.

    Yields:
      Arrays [steps, B, ...], but of the weights, which are alike.
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
    """The optimiser's state before the first step; one program, not one per array."""
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
    """Some steps of a fit, or all: parameters, the optimiser's state, and losses."""
    if is_full and table is not None:
        # Gathered once, not in every step.
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
    """The weighted loss of a batch, a scalar.

    Args:
      numbers: float32 [B, A], a network's outputs.
      legal: bool [B, A], what is in the loss.
      target: float32 [B, A].
      weight: float32 [B].
      kind: "squared" or "cross", see `FitSchedule`.
    """
    if kind == "cross":
        inside = jax.nn.log_softmax(jnp.where(legal, numbers, networks.NEVER), axis=1)
        each = -jnp.where(legal, target * inside, 0)
    else:
        each = jnp.square(jnp.where(legal, numbers - target, 0))
    return (weight * each.sum(axis=1)).sum()
