"""Perceptrons as pure functions of their parameters and of input features.

A perceptron has rectified hidden layers. Its parameters are a pytree of float32 arrays:
for each layer a bias [out] and a kernel [in, out]. This module does not depend on
games. Outputs of actions that are not legal are meaningless; callers mask them.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.arrays import padded_size
from spiel_cr.common.jax_utils import precision

# "bias" and "kernel" of each layer.
Parameters = tuple[dict[str, jax.Array], ...]

# Logit of an action that is not legal; finite, so that products with 0 are not NaN.
NEVER = np.float32(-1e9)
# Rows are padded to a power of two that is at least this number.
LEAST_ROWS = 8
# Maximum number of rows of one evaluation, which bounds the memory of hidden layers.
_MOST_ROWS = 1 << 16


def make(
    widths: Sequence[int], seed: int, *, variance_factor: float = 2.0
) -> Parameters:
    """Initialise a perceptron with outputs near zero.

    Args:
      widths: Number of inputs, of units of each hidden layer, and of outputs.
      seed: Seed for the initial weights, which are truncated normals. Their variance is
        the factor divided by the number of inputs in hidden layers, and 0.01 divided by
        it in the last layer.
      variance_factor: Variance factor; 2 suits rectified units (He et al. 2015).
    """
    arrays: list[Any] = []
    with precision(np.dtype(np.float32)):
        key = jax.random.key(seed)
        for layer, (wide, out) in enumerate(itertools.pairwise(widths)):
            start = jax.nn.initializers.variance_scaling(
                variance_factor if layer < len(widths) - 2 else 0.01,
                "fan_in",
                "truncated_normal",
            )
            # Even numbers, for the same weights per seed as in earlier versions.
            of_layer = jax.random.fold_in(key, 2 * layer)
            arrays += [np.zeros(out), start(of_layer, (wide, out), jnp.float32)]
    return assembled(arrays)


def assembled(arrays: Sequence[np.ndarray]) -> Parameters:
    """Return parameters from the arrays that `leaves` returns.

    Args:
      arrays: Bias and kernel of each layer. All may have the same additional leading
        axes.
    """
    with precision(np.dtype(np.float32)):
        single = [jnp.asarray(array, jnp.float32) for array in arrays]
    layers = zip(single[::2], single[1::2], strict=True)
    return tuple({"bias": bias, "kernel": kernel} for bias, kernel in layers)


def leaves(parameters: Parameters) -> list[np.ndarray]:
    """Return bias and kernel of each layer, float32, in the order of `array_shapes`."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(parameters)]


def array_shapes(widths: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the shapes of a perceptron's arrays for the widths of `make`."""
    pairs = (((out,), (wide, out)) for wide, out in itertools.pairwise(widths))
    return [shape for pair in pairs for shape in pair]


def check_arrays(widths: Sequence[int], arrays: Sequence[np.ndarray]) -> None:
    """Raise ValueError if arrays do not have the shapes for these widths."""
    wanted = array_shapes(widths)
    shapes = [np.shape(array) for array in arrays]
    if shapes != wanted:
        raise ValueError(
            f"arrays: shapes {shapes} do not fit a network of the widths "
            f"{tuple(widths)}, which needs {wanted}"
        )


def num_weights(widths: Sequence[int]) -> int:
    """Return the number of parameters of a perceptron, biases included."""
    return sum((wide + 1) * out for wide, out in itertools.pairwise(widths))


def outputs(parameters: Parameters, seen: jax.Array) -> jax.Array:
    """Return the network's outputs, float32 [..., out]; for use in compiled functions.

    Args:
      parameters: Parameters of the network.
      seen: Input features [..., in].
    """
    hidden = seen.astype(jnp.float32)
    for layer in parameters[:-1]:
        hidden = jax.nn.relu(_affine(layer, hidden))
    return _affine(parameters[-1], hidden)


def _affine(layer: dict[str, jax.Array], hidden: jax.Array) -> jax.Array:
    """Return the affine map of a layer, from [..., in] to float32 [..., out]."""
    bias = jnp.expand_dims(layer["bias"], tuple(range(hidden.ndim - 1)))
    return hidden @ layer["kernel"] + bias


_outputs = jax.jit(outputs)


def evaluate(parameters: Parameters, seen: np.ndarray | jax.Array) -> np.ndarray:
    """Return the network's outputs, float32 [n, out].

    Rows are padded to a power of two, so that few functions are compiled.

    Args:
      parameters: Parameters of the network.
      seen: Input features, float32 [n, in]. An array of JAX is not padded, because it
        is assumed to be a table of constant size.
    """
    parts = [np.zeros((0, len(parameters[-1]["bias"])), np.float32)]
    with precision(np.dtype(np.float32)):
        for first in range(0, len(seen), _MOST_ROWS):
            some = seen[first : first + _MOST_ROWS]
            count = len(some)
            if isinstance(some, np.ndarray):
                some = padded(some, padded_size(count, LEAST_ROWS))
            parts.append(np.asarray(_outputs(parameters, some))[:count])
    return np.concatenate(parts)


def padded(rows: np.ndarray, count: int) -> np.ndarray:
    """Append rows of zeros to an array [n, ...] up to a number of rows."""
    missing = count - len(rows)
    return np.pad(rows, ((0, missing), *((0, 0) for _ in rows.shape[1:])))


def log_policy(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """Return the log probabilities of the policy that logits define.

    Args:
      logits: Float [n, A].
      legal: Legality of actions, bool [n, A].

    Returns:
      Float [n, A], log probabilities, `NEVER` for actions that are not legal.
    """
    log_probabilities = jax.nn.log_softmax(jnp.where(legal, logits, NEVER))
    return jnp.where(legal, log_probabilities, NEVER)
