"""Fits of networks: steps of Adam within one program.

The learning rate falls to 0 along a cosine, gradients are clipped to a norm of 1, and
actions that are not legal are in no loss. What is asked for fewer rows than a batch
takes is a full batch in every step; else the rows of each step are drawn in proportion
to their weights, and weigh alike in the loss.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.arrays import padded_size
from spiel_cr.common.jax_utils import deep_packages, precision
from spiel_cr.deep import nets
from spiel_cr.deep.memory import Targets

_CLIP = 1.0
# Of the rows that are laid out for some steps of a fit.
_MOST_BYTES = 1 << 26


class Plan(NamedTuple):
    """What a program of steps is made for.

    Attributes:
      steps: of Adam.
      batch: rows per step.
      learning_rate: at first.
      loss: "squared": of outputs and targets; "cross": cross-entropy of the outputs'
        softmax relative to targets, which are probabilities.
    """

    steps: int
    batch: int
    learning_rate: float
    loss: str = "squared"


class _Batch(NamedTuple):
    """Rows that a step looks at; with an axis [steps] in front, each step's own.

    Attributes:
      rows: int32 [B], rows of a table, or float32 [B, F], features.
      legal: bool [B, A], what is in the loss.
      target: float32 [B, A].
      weight: float32 [B].
    """

    rows: Any
    legal: Any
    target: Any
    weight: Any


def fit(
    graph: Any,
    parameters: Any,
    table: jax.Array | None,
    targets: Targets,
    plan: Plan,
    random: np.random.Generator,
    *,
    scale: float = 1.0,
    ordered: bool = False,
) -> tuple[Any, float]:
    """Fits a network to targets.

    Args:
      graph: the network's structure.
      parameters: to begin with.
      table: float32 [I, F], what rows stand for; None: rows are features.
      targets: with rows of the same number in every call, if one program shall do.
      plan: steps and loss.
      random: advanced, where rows are drawn.
      scale: what the network's outputs are multiplied with, in the targets' units.
      ordered: targets are those of each step, `steps * batch` rows of equal weight that
        somebody has drawn; nothing is drawn then.

    Returns:
      The new parameters, and the mean loss of the last tenth of the steps.
    """
    count = len(targets.weight)
    total = float(targets.weight.sum())
    if not total > 0:
        return parameters, 0.0
    rows: np.ndarray = targets.rows
    if table is not None:
        rows = rows.astype(np.int32)
    target = (targets.target / scale).astype(np.float32)
    given = (rows, targets.legal, target)
    whole = count <= plan.batch and not ordered
    if whole:
        weight = (targets.weight / total).astype(np.float32)
        batch = _Batch(*given, weight)
        if table is None:
            batch = _padded(batch)
        parts = iter([batch])
    else:
        if ordered:
            drawn = np.arange(count).reshape(plan.steps, plan.batch)
        else:
            ends = np.cumsum(targets.weight)
            points = random.random((plan.steps, plan.batch)) * ends[-1]
            drawn = np.minimum(np.searchsorted(ends, points, side="right"), count - 1)
        size = _steps_at_once(plan, sum(own[:1].nbytes for own in given))
        parts = _drawn(given, drawn, size)
    losses = []
    with precision(np.dtype(np.float32)):
        state = _start(parameters, plan)
        for batch in parts:
            parameters, state, lost = _steps(
                *(graph, parameters, state, table, batch),
                plan=plan,
                whole=whole,
            )
            losses.append(np.asarray(lost))
    last = np.concatenate(losses)[-max(1, plan.steps // 10) :]
    return parameters, float(last.mean())


def _padded(batch: _Batch) -> _Batch:
    """To a power of two, so that few programs are compiled; the rest weighs nothing."""
    count = len(batch.weight)
    missing = padded_size(count, nets.LEAST_ROWS) - count
    return _Batch(
        *(np.pad(own, ((0, missing), *([(0, 0)] * (own.ndim - 1)))) for own in batch)
    )


def _steps_at_once(plan: Plan, row_bytes: int) -> int:
    """How many steps' rows are laid out together: a divisor of all steps."""
    most = max(1, _MOST_BYTES // (plan.batch * row_bytes))
    return next(n for n in range(min(most, plan.steps), 0, -1) if plan.steps % n == 0)


def _drawn(
    given: tuple[np.ndarray, ...], drawn: np.ndarray, size: int
) -> Iterator[_Batch]:
    """The rows of all steps, so many steps at a time.

    Args:
      given: rows, legal actions and targets.
      drawn: int64 [steps, B], which of them each step takes.
      size: steps of a part.
    """
    weight = np.full((size, drawn.shape[1]), 1 / drawn.shape[1], np.float32)
    for first in range(0, len(drawn), size):
        some = drawn[first : first + size]
        rows, legal, target = (own[some] for own in given)
        yield _Batch(rows, legal, target, weight)


def _optimiser(plan: Plan) -> Any:
    """Adam, its rate falling along a cosine, gradients clipped."""
    _, optax = deep_packages()
    schedule = optax.cosine_decay_schedule(plan.learning_rate, plan.steps)
    return optax.chain(optax.clip_by_global_norm(_CLIP), optax.adam(schedule))


@functools.partial(jax.jit, static_argnames="plan")
def _start(parameters: Any, plan: Plan) -> Any:
    """The optimiser's state before the first step; one program, not one per array."""
    return _optimiser(plan).init(parameters)


@functools.partial(jax.jit, static_argnames=("graph", "plan", "whole"))
def _steps(
    graph: Any,
    parameters: Any,
    state: Any,
    table: jax.Array | None,
    batch: _Batch,
    *,
    plan: Plan,
    whole: bool,
) -> tuple[Any, Any, jax.Array]:
    """Some steps of a fit, or all: parameters, the optimiser's state, and losses."""
    _, optax = deep_packages()
    optimiser = _optimiser(plan)
    if whole and table is not None:
        # Gathered once, not in every step.
        batch, table = batch._replace(rows=table[batch.rows]), None

    def step(carry: Any, own: _Batch | None) -> tuple[Any, jax.Array]:
        parameters, state = carry
        mine = batch if own is None else own
        features = mine.rows if table is None else table[mine.rows]

        def objective(parameters: Any) -> jax.Array:
            found = nets.outputs(graph, parameters, features)
            return loss(found, mine.legal, mine.target, mine.weight, plan.loss)

        value, slope = jax.value_and_grad(objective)(parameters)
        updates, state = optimiser.update(slope, state, parameters)
        return (optax.apply_updates(parameters, updates), state), value

    start = (parameters, state)
    steps = plan.steps if whole else None
    (parameters, state), losses = jax.lax.scan(
        step, start, None if whole else batch, length=steps
    )
    return parameters, state, losses


def loss(
    found: jax.Array, legal: jax.Array, target: jax.Array, weight: jax.Array, kind: str
) -> jax.Array:
    """The weighted loss of a batch, a scalar.

    Args:
      found: float32 [B, A], a network's outputs.
      legal: bool [B, A], what is in the loss.
      target: float32 [B, A].
      weight: float32 [B].
      kind: "squared" or "cross", see `Plan`.
    """
    if kind == "cross":
        inside = jax.nn.log_softmax(jnp.where(legal, found, -1e9), axis=1)
        each = -jnp.where(legal, target * inside, 0)
    else:
        each = jnp.square(jnp.where(legal, found - target, 0))
    return (weight * each.sum(axis=1)).sum()
