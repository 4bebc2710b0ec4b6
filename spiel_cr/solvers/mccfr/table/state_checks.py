"""What no run can have left in a checkpoint is refused, before it does harm."""

from collections.abc import Iterator, Mapping

import numpy as np

from spiel_cr.solvers.mccfr.table.table import ROOTS

# Columns with a number for each row, and with one for each entry.
_ROWS = ("first", "count", "parent", "depth", "visits", "taken")
_ENTRIES = ("regret", "average")
# Numbers that only grow from 0, and numbers that may be anything finite.
_POSITIVE = ("average", "taken", "mass", "seconds", "counts")
_FINITE = ("regret", "baseline")
# Numbers that are looked at together.
_CHUNK = 1 << 16


def check_state(
    state: Mapping[str, np.ndarray],
    fresh: Mapping[str, np.ndarray],
    *,
    max_actions: int,
) -> None:
    """Refuses the state of a solver of a game that is not compiled.

    Args:
      state: to be checked, see `SampledTableSolver.arrays`.
      fresh: of a solver with the same settings that has done nothing.
      max_actions: the most actions of a decision.

    Raises:
      ValueError: arrays are missing or of other types or lengths; rows do not lie one
        after another, or before the rows that they lead to; or numbers are none.
    """
    if set(state) != set(fresh):
        raise ValueError(f"it has the arrays {sorted(state)}, not {sorted(fresh)}")
    for name, like in fresh.items():
        if state[name].dtype != like.dtype or state[name].ndim != like.ndim:
            raise ValueError(f"its {name} is an array of another type")
    count, entries = state["count"], len(state["average"])
    lengths = {
        "key": (len(count), 2),
        "counts": fresh["counts"].shape,
        "baseline": (entries if len(fresh["baseline"]) else 0,),
        **{name: (len(count),) for name in _ROWS},
        **{name: (entries,) for name in _ENTRIES},
    }
    for name, shape in lengths.items():
        if state[name].shape != shape:
            raise ValueError(f"its {name} has the shape {state[name].shape}")
    _check_rows(state, entries, max_actions)
    for name in (*_POSITIVE, *_FINITE):
        for some in _chunks(len(np.atleast_1d(state[name]))):
            numbers = np.atleast_1d(state[name])[some]
            # Written so that NaN fails.
            least = 0 if name in _POSITIVE else -np.inf
            if not (np.isfinite(numbers) & (numbers >= least)).all():
                raise ValueError(f"its {name} holds numbers that no run leaves")


def _check_rows(
    state: Mapping[str, np.ndarray], entries: int, max_actions: int
) -> None:
    """Refuses rows that do not lie one after another, or before others.

    Args:
      state: with arrays of fitting types and shapes.
      entries: how many it has.
      max_actions: as for `check_state`.

    Raises:
      ValueError: as there.
    """
    rows, end = len(state["count"]), ROOTS
    for some in _chunks(rows):
        count = state["count"][some].astype(np.int64)
        if (count < 1).any() or (count > max_actions).any():
            raise ValueError(f"its rows do not have from 1 to {max_actions} actions")
        first = end + np.cumsum(count) - count
        end += int(count.sum())
        if (state["first"][some] != first).any():
            raise ValueError("its rows do not lie one after another")
        behind = state["parent"][some] >= first
        if behind.any() or (state["depth"][some] > rows).any():
            raise ValueError("its rows do not lie behind those that lead there")
    if entries != end:
        raise ValueError("its rows do not lie one after another")


def _chunks(size: int) -> Iterator[slice]:
    """Parts of a long array, so that what is computed of them takes little memory."""
    for start in range(0, size, _CHUNK):
        yield slice(start, start + _CHUNK)
