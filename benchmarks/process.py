"""A function called in a process of its own, so that its memory is its own."""

import concurrent.futures
import multiprocessing
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


def in_a_process(function: Callable[..., _Result], *arguments: object) -> _Result:
    """Calls a function of a module in a new process, and waits for it."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()
