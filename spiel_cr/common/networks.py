"""Perceptrons: numbers from what is seen. Pure functions of their parameters.

A perceptron has rectified hidden layers. Its parameters are a pytree of float32 arrays:
of each layer a bias [out] and a kernel [in, out]. This module knows no game; outputs
may be masked as not legal, and what they say means nothing then.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.arrays import padded_size
from spiel_cr.common.jax_utils import precision

# Of each layer its "bias" and "kernel".
Parameters = tuple[dict[str, jax.Array], ...]

# Of what is not legal: finite, so that nothing times it is not a number.
NEVER = np.float32(-1e9)
# Rows are padded to a power of two, and to no fewer than these.
LEAST_ROWS = 8
# Rows of one evaluation, so that hidden layers of large games fit into memory.
_MOST_ROWS = 1 << 16


def make(widths: Sequence[int], seed: int, *, gain: float = 2.0) -> Parameters:
    """A perceptron whose outputs begin near zero.

    Args:
      widths: numbers that it sees, units of each hidden layer, numbers that it gives.
      seed: of its initial weights: truncated normals. Their variance is `gain` over the
        inputs in hidden layers, and 0.01 over them in the last one.
      gain: 2 is for rectified units (He et al. 2015).
    """
    arrays: list[Any] = []
    with precision(np.dtype(np.float32)):
        key = jax.random.key(seed)
        for layer, (wide, out) in enumerate(itertools.pairwise(widths)):
            start = jax.nn.initializers.variance_scaling(
                gain if layer < len(widths) - 2 else 0.01, "fan_in", "truncated_normal"
            )
            # Every other number: so a seed goes on giving the weights that it gave.
            of_layer = jax.random.fold_in(key, 2 * layer)
            arrays += [np.zeros(out), start(of_layer, (wide, out), jnp.float32)]
    return assembled(arrays)


def assembled(arrays: Sequence[np.ndarray]) -> Parameters:
    """The parameters that `leaves` took apart.

    Args:
      arrays: bias and kernel of each layer; all may have further axes in front.
    """
    with precision(np.dtype(np.float32)):
        single = [jnp.asarray(array, jnp.float32) for array in arrays]
    layers = zip(single[::2], single[1::2], strict=True)
    return tuple({"bias": bias, "kernel": kernel} for bias, kernel in layers)


def leaves(parameters: Parameters) -> list[np.ndarray]:
    """Bias and kernel of each layer, float32, in the order of `array_shapes`."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(parameters)]


def array_shapes(widths: Sequence[int]) -> list[tuple[int, ...]]:
    """The shapes of a perceptron's arrays; see `make`."""
    pairs = (((out,), (wide, out)) for wide, out in itertools.pairwise(widths))
    return [shape for pair in pairs for shape in pair]


def check_arrays(widths: Sequence[int], arrays: Sequence[np.ndarray]) -> None:
    """Raises ValueError where arrays are not those of a perceptron of these widths."""
    wanted = array_shapes(widths)
    shapes = [np.shape(array) for array in arrays]
    if shapes != wanted:
        raise ValueError(
            f"arrays of the shapes {shapes} are not of a network of the widths "
            f"{tuple(widths)}, which has {wanted}"
        )


def num_weights(widths: Sequence[int]) -> int:
    """How many numbers a perceptron has, biases included; see `make`."""
    return sum((wide + 1) * out for wide, out in itertools.pairwise(widths))


def outputs(parameters: Parameters, seen: jax.Array) -> jax.Array:
    """The network's numbers, float32 [..., out]; for use inside of programs.

    Args:
      parameters: of the network.
      seen: [..., in].
    """
    hidden = seen.astype(jnp.float32)
    for layer in parameters[:-1]:
        hidden = jax.nn.relu(_affine(layer, hidden))
    return _affine(parameters[-1], hidden)


def _affine(layer: dict[str, jax.Array], hidden: jax.Array) -> jax.Array:
    """float32 [..., out] of [..., in]."""
    bias = jnp.expand_dims(layer["bias"], tuple(range(hidden.ndim - 1)))
    return hidden @ layer["kernel"] + bias


_outputs = jax.jit(outputs)


def evaluate(parameters: Parameters, seen: np.ndarray | jax.Array) -> np.ndarray:
    """The network's numbers, float32 [n, out].

    Rows are padded to a power of two, so that few programs are compiled.

    Args:
      parameters: of the network.
      seen: float32 [n, in]; an array of JAX is a table of one size, left as it is.
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
    """[n, ...] and zeros, so many rows in all."""
    missing = count - len(rows)
    return np.pad(rows, ((0, missing), *((0, 0) for _ in rows.shape[1:])))


def log_policy(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """What logits say of a policy.

    Args:
      logits: float [n, A].
      legal: bool [n, A].

    Returns:
      float [n, A], log probabilities, `NEVER` where not legal.
    """
    log_probabilities = jax.nn.log_softmax(jnp.where(legal, logits, NEVER))
    return jnp.where(legal, log_probabilities, NEVER)
