"""Networks of deep CFR: what is known at a decision → a number for each action.

A perceptron with rectified hidden layers. Its structure (`graph`) is hashable and its
parameters are a pytree of float32 arrays, so that functions of both are pure. Numbers
of actions that are not legal mean nothing, and every use of them is masked.

Needs flax and optax, imported when they are first used: `pip install 'spiel_cr[deep]'`.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.arrays import padded_size
from spiel_cr.common.jax_utils import deep_packages, precision

# Rows of one evaluation, so that hidden layers of large games fit into memory.
_MOST_ROWS = 1 << 16
# Rows are padded to a power of two, and to no fewer than these.
LEAST_ROWS = 8


class Shape(NamedTuple):
    """What a perceptron is made of; equal shapes have equal structures.

    Attributes:
      features: F, numbers that it sees.
      actions: A, numbers that it gives.
      hidden: units of each hidden layer.
      layers: hidden layers.
    """

    features: int
    actions: int
    hidden: int
    layers: int


def num_weights(shape: Shape) -> int:
    """How many numbers a perceptron has, biases included."""
    wide = [shape.features, *[shape.hidden] * shape.layers, shape.actions]
    return sum((a + 1) * b for a, b in itertools.pairwise(wide))


def make(shape: Shape, seed: int) -> tuple[Any, Any]:
    """A perceptron whose outputs begin near zero.

    Args:
      shape: of it.
      seed: of its initial weights.

    Returns:
      Its structure (flax nnx's graph definition, hashable) and its parameters.

    Raises:
      ImportError: flax or optax is missing.
    """
    nnx, _ = deep_packages()
    with precision(np.dtype(np.float32)):
        rngs = nnx.Rngs(seed)
        layers: list[Any] = []
        width = shape.features
        start = nnx.initializers.he_normal()
        for _ in range(shape.layers):
            layers += [
                nnx.Linear(width, shape.hidden, kernel_init=start, rngs=rngs),
                nnx.relu,
            ]
            width = shape.hidden
        small = nnx.initializers.variance_scaling(0.01, "fan_in", "truncated_normal")
        last = nnx.Linear(width, shape.actions, kernel_init=small, rngs=rngs)
        graph, parameters = nnx.split(nnx.Sequential(*layers, last))
    return graph, parameters


def outputs(graph: Any, parameters: Any, features: jax.Array) -> jax.Array:
    """The network's numbers, float32 [..., A]; for use inside of programs.

    Args:
      graph: its structure.
      parameters: its parameters.
      features: float32 [..., F].
    """
    nnx, _ = deep_packages()
    found: jax.Array = nnx.merge(graph, parameters)(features.astype(jnp.float32))
    return found


@functools.partial(jax.jit, static_argnames="graph")
def _outputs(graph: Any, parameters: Any, features: jax.Array) -> jax.Array:
    return outputs(graph, parameters, features)


def evaluate(graph: Any, parameters: Any, features: Any) -> np.ndarray:
    """The network's numbers, float32 [n, A].

    Rows are padded to a power of two, so that few programs are compiled.

    Args:
      graph: its structure.
      parameters: its parameters.
      features: float32 [n, F], an array of numpy or of JAX.
    """
    parts = []
    with precision(np.dtype(np.float32)):
        for first in range(0, len(features), _MOST_ROWS):
            some = features[first : first + _MOST_ROWS]
            count = len(some)
            missing = padded_size(count, LEAST_ROWS) - count
            # A table of all infosets has one size, and is left as it is.
            if missing and not isinstance(some, jax.Array):
                some = np.concatenate(
                    [some, np.zeros((missing, some.shape[1]), some.dtype)]
                )
            parts.append(np.asarray(_outputs(graph, parameters, some))[:count])
    if not parts:
        return np.zeros((0, _actions(parameters)), np.float32)
    return np.concatenate(parts)


def _actions(parameters: Any) -> int:
    """A, from the last bias."""
    return min(leaf.shape[-1] for leaf in jax.tree.leaves(parameters)[-2:])


def leaves(parameters: Any) -> list[np.ndarray]:
    """A network's arrays, float32, in an order that depends on its shape alone."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(parameters)]


def from_leaves(shape: Shape, arrays: Sequence[np.ndarray]) -> tuple[Any, Any]:
    """The structure and the parameters of what `leaves` took apart.

    Args:
      shape: of the network.
      arrays: from `leaves`.

    Raises:
      ValueError: they are not of such a network.
      ImportError: flax or optax is missing.
    """
    graph, parameters = make(shape, 0)
    wanted = [leaf.shape for leaf in jax.tree.leaves(parameters)]
    given = [np.shape(array) for array in arrays]
    if given != wanted:
        raise ValueError(
            f"arrays of the shapes {given} are not of a network with {shape}, which "
            f"has {wanted}"
        )
    with precision(np.dtype(np.float32)):
        on_device = [jnp.asarray(array, jnp.float32) for array in arrays]
    return graph, jax.tree.unflatten(jax.tree.structure(parameters), on_device)


def regret_matching(
    advantages: np.ndarray, legal: np.ndarray, fallback: str = "argmax"
) -> np.ndarray:
    """Strategies in proportion to positive advantages, float64 [n, A].

    Args:
      advantages: [n, A]; anything where an action is not legal.
      legal: bool [n, A], at least one in a row.
      fallback: "argmax" or "uniform", where no advantage is positive.
    """
    positive = np.where(legal, np.maximum(advantages, 0), 0).astype(np.float64)
    total = positive.sum(axis=1)
    none = ~(total > 0)
    if none.any():
        if fallback == "argmax":
            best = np.where(legal[none], advantages[none], -np.inf).argmax(axis=1)
            positive[none] = np.arange(legal.shape[1]) == best[:, None]
        else:
            positive[none] = legal[none]
        total[none] = positive[none].sum(axis=1)
    strategy: np.ndarray = positive / total[:, None]
    return strategy


def softmax(logits: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """Strategies of a network of averages, float64 [n, A].

    Args:
      logits: [n, A]; anything where an action is not legal.
      legal: bool [n, A], at least one in a row.
    """
    inside = np.where(legal, logits, -np.inf).astype(np.float64)
    weight = np.exp(inside - inside.max(axis=1)[:, None])
    strategy: np.ndarray = weight / weight.sum(axis=1)[:, None]
    return strategy
