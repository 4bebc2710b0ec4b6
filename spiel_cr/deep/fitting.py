"""Fits of networks: steps of Adam within one program.

The learning rate falls to 0 along a cosine, gradients are clipped to a norm of 1, and
actions that are not legal are in no loss. What is asked for fewer rows than a batch
takes is a full batch in every step; else the rows of each step are drawn in proportion
to their weights, and weigh alike in the loss.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import precision
from spiel_cr.deep import nets
from spiel_cr.deep.memory import Targets

_CLIP = 1.0


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
    whole = count <= plan.batch and not ordered
    if ordered:
        shape = plan.steps, plan.batch
        weight = np.full(shape, 1 / plan.batch, np.float32)
        rows, legal, target = (
            own.reshape(*shape, *own.shape[1:]) for own in (rows, targets.legal, target)
        )
        batch = _Batch(rows, legal, target, weight)
    elif whole:
        weight = (targets.weight / total).astype(np.float32)
        batch = _Batch(rows, targets.legal, target, weight)
    else:
        ends = np.cumsum(targets.weight)
        points = random.random((plan.steps, plan.batch)) * ends[-1]
        drawn = np.minimum(np.searchsorted(ends, points, side="right"), count - 1)
        weight = np.full(drawn.shape, 1 / plan.batch, np.float32)
        batch = _Batch(rows[drawn], targets.legal[drawn], target[drawn], weight)
    with precision(np.dtype(np.float32)):
        parameters, losses = _steps(
            graph, parameters, table, batch, plan=plan, whole=whole
        )
        losses = np.asarray(losses)
    return parameters, float(losses[-max(1, plan.steps // 10) :].mean())


@functools.partial(jax.jit, static_argnames=("graph", "plan", "whole"))
def _steps(
    graph: Any,
    parameters: Any,
    table: jax.Array | None,
    batch: _Batch,
    *,
    plan: Plan,
    whole: bool,
) -> tuple[Any, jax.Array]:
    """All steps of a fit."""
    _, optax = nets.deep_packages()
    schedule = optax.cosine_decay_schedule(plan.learning_rate, plan.steps)
    optimiser = optax.chain(optax.clip_by_global_norm(_CLIP), optax.adam(schedule))
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

    start = (parameters, optimiser.init(parameters))
    if whole:
        (parameters, _), losses = jax.lax.scan(step, start, None, length=plan.steps)
    else:
        (parameters, _), losses = jax.lax.scan(step, start, batch)
    return parameters, losses


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
