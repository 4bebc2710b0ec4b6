"""Small helpers around JAX: precision, types, compiler options, random points."""

import contextlib
import functools
import typing
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata

from spiel_cr.common.compilation_cache import caching


@contextlib.contextmanager
def precision(dtype: np.dtype) -> Iterator[None]:
    """Enable or disable double precision during a block, and cache its functions.

    Matrix products in the block are as precise as `dtype`. By default, GPUs would round
    the factors of float32 products to ten bits (TF32).
    """
    x64 = jax.enable_x64(dtype == np.float64)
    with caching(), x64, jax.default_matmul_precision("highest"):
        yield


def cast(arrays: Any, dtype: np.dtype) -> Any:
    """Convert the floating-point arrays in a pytree of numpy arrays to `dtype`."""

    def one(array: np.ndarray) -> np.ndarray:
        floating = np.issubdtype(array.dtype, np.floating)
        return array.astype(dtype, copy=False) if floating else array

    return jax.tree.map(one, arrays)


def typed(array: np.ndarray) -> jax.Array:
    """Return a numpy array unchanged, but typed as an array of JAX."""
    return typing.cast(jax.Array, array)


@functools.cache
def quick_options(*, optimise: bool = True) -> dict[str, bool | int] | None:
    """Return options of `jax.jit` that reduce compile time to a half or to a fifth.

    XLA's older CPU emitters produce code that takes up to 1.5 times as long to run; if
    gathers dominate, the speed is the same. The result is None if this jaxlib does not
    support the options.

    Args:
      optimise: Whether LLVM optimises. If not, code takes up to three times as long.
        GPUs always optimise.
    """
    options: dict[str, bool | int] = {"xla_cpu_use_fusion_emitters": False}
    if not optimise and jax.default_backend() == "cpu":
        options |= {"xla_backend_optimization_level": 0}
        options |= {"xla_cpu_parallel_codegen_split_count": 1}
    try:
        jax.jit(lambda x: x + 1, compiler_options=options)(np.int32(0))
    except jax.errors.JaxRuntimeError:
        return None
    return options


@jax.jit
def on_device(arrays: Any) -> Any:
    """Copy numpy arrays to the device with one compiled function per set of shapes.

    For many small arrays with recurring shapes, this takes an eighth of the time of
    `jax.device_put`, which iterates over them in Python. Like `jax.device_put`, it may
    share memory instead of copying it.
    """
    return arrays


def as_one_function(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of arrays as one unit inside a compiled function.

    This helps loops over scalars: XLA's CPU runtime dispatches each operation of a
    compiled function separately, which takes longer than an addition. The operations
    within such a call are compiled together. On other devices nothing changes.
    """
    with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
        return jax.jit(function)(*arguments)


def unfused(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of arrays in a compiled function, without fusion with the rest.

    XLA computes operations that are fused with a concatenation or a reshape element by
    element. On CPUs this takes several times as long as writing and copying the result.
    """
    with set_xla_metadata(inlineable="false"):
        return jax.jit(_fused_within(function))(*arguments)


@functools.cache
def _fused_within(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with normal fusion of the JAX functions that it calls."""

    @functools.wraps(function)
    def inside(*arguments: Any) -> Any:
        with set_xla_metadata(inlineable=None):
            return function(*arguments)

    return inside


def spread(depths: int, batch: int) -> np.ndarray:
    """Return the first points of a Sobol sequence, float64 [depths, batch]."""
    from scipy.stats import qmc  # Slow to import, like JAX.

    power = max(0, int(np.ceil(np.log2(batch))))
    points = qmc.Sobol(depths, scramble=False).random_base2(power)
    return np.ascontiguousarray(points[:batch].T)
