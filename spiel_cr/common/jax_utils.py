"""Small helpers around JAX: precision, types, compiler options, random points."""

import contextlib
import functools
import typing
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata


@contextlib.contextmanager
def precision(dtype: np.dtype) -> Iterator[None]:
    """Switches double precision on or off for a block of code only.

    Matrix products in it are as precise as `dtype`: by default GPUs keep ten bits of
    what float32 products multiply (TF32).
    """
    with jax.enable_x64(dtype == np.float64), jax.default_matmul_precision("highest"):
        yield


def cast(arrays: Any, dtype: np.dtype) -> Any:
    """A tree of numpy arrays with the floating ones in `dtype`."""

    def one(array: np.ndarray) -> np.ndarray:
        floating = np.issubdtype(array.dtype, np.floating)
        return array.astype(dtype, copy=False) if floating else array

    return jax.tree.map(one, arrays)


def typed(array: np.ndarray) -> jax.Array:
    """A numpy array, typed as what it becomes when a program takes it to a device."""
    return typing.cast(jax.Array, array)


@functools.cache
def quick_options(*, optimise: bool = True) -> dict[str, bool | int] | None:
    """Options of `jax.jit` that compile in about half the time, or in a fifth.

    XLA's older CPU emitters give code that is slower by up to a half, or as fast where
    gathers dominate. None where this jaxlib has no such option.

    Args:
      optimise: whether LLVM optimises; if not, code takes up to three times as long.
        GPUs know no code that is not optimised.
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
    """Puts arrays of numpy on the device, by a program for each set of shapes.

    Where shapes repeat and arrays are many and small, that takes an eighth of the time
    of `jax.device_put`, which goes through them in Python. Like that it may lend memory
    instead of copying it.
    """
    return arrays


def as_one_function(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function of arrays, within a program, as one piece of machine code.

    For loops over scalars: XLA's CPU runtime starts each operation of a program on its
    own, which takes longer than an addition does. Operations within such a call it
    compiles together. On other devices nothing changes.
    """
    with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
        return jax.jit(function)(*arguments)


def unfused(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function of arrays, within a program, so that XLA fuses nothing with it.

    What is fused with a concatenation or a reshape is computed one number at a time:
    on CPUs several times as long as to write it and to copy it.
    """
    with set_xla_metadata(inlineable="false"):
        return jax.jit(_fused_within(function))(*arguments)


@functools.cache
def _fused_within(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; what JAX calls in it (`jnp.where`) is fused as it is elsewhere."""

    @functools.wraps(function)
    def inside(*arguments: Any) -> Any:
        with set_xla_metadata(inlineable=None):
            return function(*arguments)

    return inside


def spread(depths: int, batch: int) -> np.ndarray:
    """float64 [depths, batch], the first points of a Sobol sequence."""
    from scipy.stats import qmc  # Here, since it takes nearly as long to import as JAX.

    power = max(0, int(np.ceil(np.log2(batch))))
    points = qmc.Sobol(depths, scramble=False).random_base2(power)
    return np.ascontiguousarray(points[:batch].T)
