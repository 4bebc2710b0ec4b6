"""What no run can have left in a checkpoint is refused, before it does harm."""

from collections.abc import Mapping

import numpy as np

from spiel_cr.uncompiled.table import ROOTS

# Columns with a number for each row, and with one for each entry.
_ROWS = ("first", "count", "parent", "depth", "visits", "taken")
_ENTRIES = ("regret", "average")
# Numbers that only grow from 0, and numbers that may be anything finite.
_POSITIVE = ("average", "taken", "mass", "seconds", "counts")
_FINITE = ("regret", "baseline")


def check_state(
    state: Mapping[str, np.ndarray],
    fresh: Mapping[str, np.ndarray],
    *,
    max_actions: int,
) -> None:
    """Refuses the state of a solver of a game that is not compiled.

    Args:
      state: to be checked, see `UncompiledSolver.state`.
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
    first = ROOTS + np.cumsum(count, dtype=np.int64) - count
    if (count < 1).any() or (count > max_actions).any():
        raise ValueError(f"its rows do not have from 1 to {max_actions} actions")
    if (state["first"] != first).any() or entries != ROOTS + count.sum(dtype=np.int64):
        raise ValueError("its rows do not lie one after another")
    if (state["parent"] >= first).any() or (state["depth"] > len(count)).any():
        raise ValueError("its rows do not lie behind those that lead there")
    for name in (*_POSITIVE, *_FINITE):
        fine = np.isfinite(state[name])
        if name in _POSITIVE:
            fine &= state[name] >= 0
        if not fine.all():
            raise ValueError(f"its {name} holds numbers that no run leaves")
