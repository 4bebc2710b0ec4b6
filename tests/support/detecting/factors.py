"""Payoff matrices of leaves as kernels times stakes."""

import numpy as np

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.sequence_form.decisions import Payoffs
from spiel_cr.games.signals.game import SparseKernel, Terms
from tests.support.detecting.knowledge import Signals
from tests.support.detecting.table import Table

# Matrices whose entries agree that well, largest entry 1, share a kernel.
_GRID = 1e-9


def factorise(table: Table, signals: Signals) -> tuple[tuple[SparseKernel, ...], Terms]:
    """The payoff matrices of leaves as kernels times stakes."""
    kernels: list[SparseKernel] = []
    leaves, numbers, stakes = [], [], []
    for number, part in enumerate(table.rounds):
        rows = np.flatnonzero(table.player[part.nodes] == TERMINAL)
        shape = tuple(int(signals[p][number].max()) + 1 for p in range(2))
        pairs, pair = np.unique(
            signals[0][number].astype(np.int64) * shape[1] + signals[1][number],
            return_inverse=True,
        )
        by_pair = np.argsort(pair, kind="stable")
        begins = np.searchsorted(pair[by_pair], np.arange(len(pairs)))
        utility = table.tree.histories.utility[part.history[rows]]
        matrices = np.add.reduceat((utility * part.chance)[:, by_pair], begins, axis=1)
        size = np.abs(matrices).max(axis=1, initial=0)
        rows, utility, matrices, size = (
            array[size > 0] for array in (rows, utility, matrices, size)
        )
        normal = matrices / size[:, None]
        leading = np.argmax(np.abs(normal) > _GRID, axis=1)
        sign = np.sign(normal[np.arange(len(rows)), leading])
        # The odd offset keeps round numbers away from the edges of the grid.
        grid = np.floor(normal * sign[:, None] / _GRID + 0.31).astype(np.int64)
        known: dict[bytes, tuple[int, float]] = {}
        for k in range(len(rows)):
            key = grid[k].tobytes()
            if key not in known:
                unit = float(np.abs(utility[k]).max())
                known[key] = len(kernels), unit / size[k]
                some = np.flatnonzero(matrices[k])
                first, second = np.divmod(pairs[some], shape[1])
                values = sign[k] * matrices[k, some] / unit
                entries = Payoffs(
                    first.astype(np.int32), second.astype(np.int32), values
                )
                kernels.append(SparseKernel(number, (shape[0], shape[1]), entries))
            kernel, units = known[key]
            numbers.append(kernel)
            stakes.append(sign[k] * size[k] * units)
        leaves.append(part.nodes[rows])
    terms = Terms(
        np.concatenate(leaves).astype(np.int32),
        np.array(numbers, np.int32),
        np.array(stakes, np.float64),
    )
    order = np.argsort(terms.leaf, kind="stable")
    return tuple(kernels), Terms(*(array[order] for array in terms))
