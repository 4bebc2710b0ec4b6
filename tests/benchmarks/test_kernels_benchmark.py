"""The benchmark of kernels measures the forms that solvers take."""

import numpy as np

from benchmarks.signals import kernels
from spiel_cr.signals.game import SparseKernel, sum_entries
from spiel_cr.signals.kernel_blocks import DenseMatrix


def test_a_row(monkeypatch):
    monkeypatch.setattr(kernels, "_TIMES", 1)
    monkeypatch.setattr(kernels, "_SECONDS", 0.0)
    monkeypatch.setitem(kernels.GAMES, "made", "of three and two signals")
    i, j = np.indices((3, 2)).reshape(2, -1)
    entries = sum_entries(i, j, np.arange(1.0, 7.0), (3, 2))
    kernel = SparseKernel(0, (3, 2), entries)
    laid = kernels.listed_form(kernel)
    assert isinstance(laid, DenseMatrix)
    assert (laid.apply(np.ones((1, 2))) == np.array([[3, 7, 11]])).all()
    row = kernels.measure("made", kernel, laid, 4, "float32")
    assert row["milliseconds"] > 0 and row["megabytes"] == 24e-6
    assert "| made | DenseMatrix | 0 | 3 × 2 | 4 |" in kernels.markdown([row])
