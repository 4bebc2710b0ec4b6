"""Kernels laid out for solvers give what the matrix of their entries gives."""

import numpy as np
import pytest

from spiel_cr.common.jax_utils import cast
from spiel_cr.signals.game import HandKernel, Hands, Kernel, SparseKernel, sum_entries
from spiel_cr.signals.kernels import lay_out


def dense(kernel: Kernel) -> np.ndarray:
    """float64 [H0, H1], by the entries one after another."""
    matrix = np.zeros(kernel.shape)
    for row, column, value in zip(*kernel.coordinates(), strict=True):
        matrix[row, column] += value
    return matrix


def check(kernel: Kernel, leaves: int, rng: np.random.Generator) -> None:
    """Both players' values are those of the matrix, in float64 and float32."""
    matrix = dense(kernel)
    for player, own in enumerate((matrix.T, -matrix)):
        x = rng.random((leaves, own.shape[0]))
        laid = lay_out(kernel, player)
        assert laid.largest() == np.abs(matrix).max(initial=0)
        # Rounding: sums of |products| of which each has an error of a few 2^-53.
        scale = x @ np.abs(own)
        for dtype, tolerance in ((np.float64, 1e-13), (np.float32, 1e-5)):
            values = cast(laid, dtype).apply(x.astype(dtype))
            assert values.dtype == dtype
            assert values.shape == (leaves, own.shape[1])
            assert (np.abs(values - x @ own) <= tolerance * scale).all()


def uneven_blocks(rng: np.random.Generator) -> SparseKernel:
    """Blocks of many sizes, single signals, and signals that meet nobody."""
    shape = (70, 60)
    order = rng.permutation(70), rng.permutation(60)
    rows, columns, first = [], [], [0, 0]
    for high, wide in [(9, 8), (1, 1), (1, 7), (20, 3), (8, 9), (8, 8), (1, 1), (5, 4)]:
        i, j = np.meshgrid(np.arange(high), np.arange(wide), indexing="ij")
        rows.append(order[0][first[0] + i.ravel()])
        columns.append(order[1][first[1] + j.ravel()])
        first = [first[0] + high, first[1] + wide]
    i, j = np.concatenate(rows), np.concatenate(columns)
    kept = rng.random(len(i)) < 0.8
    entries = sum_entries(i[kept], j[kept], rng.normal(size=kept.sum()), shape)
    return SparseKernel(0, shape, entries)


@pytest.mark.parametrize("leaves", [1, 3, 40])
def test_uneven_blocks(leaves):
    rng = np.random.default_rng(leaves)
    check(uneven_blocks(rng), leaves, rng)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (6, 1), (13, 12)])
def test_one_block(shape):
    rng = np.random.default_rng(0)
    i, j = np.indices(shape).reshape(2, -1)
    check(
        SparseKernel(0, shape, sum_entries(i, j, rng.normal(size=i.size), shape)),
        4,
        rng,
    )


def test_no_entries():
    nothing = np.zeros(0, int)
    kernel = SparseKernel(0, (3, 2), sum_entries(nothing, nothing, nothing, (3, 2)))
    check(kernel, 2, np.random.default_rng(0))


def random_hands(
    rng: np.random.Generator, count: int, num_signals: int, num_boards: int, cards: int
) -> Hands:
    deck = 8
    return Hands(
        rng.integers(num_signals, size=count, dtype=np.int32),
        rng.integers(num_boards, size=count, dtype=np.int32),
        np.array([rng.permutation(deck)[:cards] for _ in range(count)], np.int8),
        rng.integers(5, size=count, dtype=np.int32),
        rng.random(count),
    )


@pytest.mark.parametrize("showdown", [False, True])
@pytest.mark.parametrize("cards", [1, 2])
@pytest.mark.parametrize("boards", [1, 4])
def test_hands(showdown, cards, boards):
    rng = np.random.default_rng(cards)
    hands = tuple(random_hands(rng, 60, 25, boards, cards) for _ in range(2))
    check(HandKernel(0, (25, 25), hands, showdown), 5, rng)
