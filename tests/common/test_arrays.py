"""Array helpers: ranges, ranks of rows, order of pairs and components."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csgraph

from spiel_cr.common import arrays


@pytest.mark.parametrize(
    "rows",
    [
        np.array([5, 3, 5, -7, 3]),
        np.array([-128, 127, -128], np.int8),
        np.tile(np.arange(-100, 101, dtype=np.int8), 2),
        np.array([2**63 - 1, -(2**63), 0, 2**63 - 1]),
        np.array([2**64 - 1, 0, 2**64 - 1, 1], np.uint64),
        np.array([[1, 2], [2, 1], [1, 2], [2, 2]]),
        np.array([[2**62, -(2**62)], [-(2**62), 2**62], [2**62, -(2**62)]] * 2),
        np.array([[2**64 - 1, 1], [0, 2**64 - 1], [2**64 - 1, 1]], np.uint64),
        np.arange(60, dtype=np.uint8).reshape(4, 15) // 31,
        np.random.default_rng(0).integers(-2, 2, (300, 5)).astype(np.int16),
        np.random.default_rng(1).integers(0, 10**12, (300, 3)) % (10**11 + 3) // 10**10,
        np.random.default_rng(2).integers(0, 3, (500, 9)) * (2**60),
    ],
    ids=lambda rows: f"{rows.dtype}{rows.shape}",
)
def test_ranks_are_equal_iff_rows_are_equal(rows):
    numbers = arrays.ranks([rows[:1], rows[1:]])
    assert numbers.dtype == np.int32
    tuples = [tuple(np.ravel(row).tolist()) for row in rows]
    assert len(set(zip(tuples, numbers.tolist(), strict=True))) == len(set(tuples))
    assert sorted(set(numbers.tolist())) == list(range(len(set(tuples))))


def test_places_in_a_permutation_are_its_inverse():
    order = np.random.default_rng(0).permutation(50)
    places = arrays.places_in(order, 50)
    assert places.dtype == np.int32
    assert (order[places] == np.arange(50)).all()


def test_places_of_absent_numbers():
    assert arrays.places_in(np.array([3, 0]), 5).tolist() == [1, -1, -1, 0, -1]
    assert arrays.places_in(np.array([1]), 3, absent=7).tolist() == [7, 0, 7]


def test_pieces_are_consecutive():
    parts = arrays.pieces(np.arange(7), [2, 0, 3], begin=1)
    assert [part.tolist() for part in parts] == [[1, 2], [], [3, 4, 5]]


def test_ranges_are_concatenated():
    starts, counts = np.array([5, 0, 7, 2], np.int32), np.array([2, 0, 1, 3])
    assert arrays.ranges(starts, counts).tolist() == [5, 6, 7, 2, 3, 4]
    assert arrays.ranges(0, counts.astype(np.int32)).tolist() == [0, 1, 0, 0, 1, 2]
    nothing = arrays.ranges(starts[:0], counts[:0])
    assert nothing.dtype == np.int64 and nothing.tolist() == []


@pytest.mark.parametrize("high", [1, 2**10, 2**31 - 1])
def test_order_of_pairs_equals_lexsort(high):
    """Small numbers are packed with their index before sorting; large ones are not."""
    rng = np.random.default_rng(high)
    first, second = rng.integers(0, high, (2, 3000), dtype=np.int32)
    second[:1000] = second[-1000:] = first[:1000] = first[-1000:]
    order = arrays.order_pairs(first, second)
    assert order.tolist() == np.lexsort((second, first)).tolist()
    assert arrays.order_pairs(first[:0], second[:0]).tolist() == []
    assert arrays.order_pairs(first[:1], second[:1]).tolist() == [0]


def test_padded_sizes_are_powers_of_two():
    sizes = [arrays.padded_size(count) for count in range(10)]
    assert sizes == [1, 1, 2, 4, 4, 8, 8, 8, 8, 16]
    assert [arrays.padded_size(count, 8) for count in (0, 8, 9)] == [8, 8, 16]


@pytest.mark.parametrize(
    ("height", "width", "count"), [(0, 0, 0), (5, 4, 0), (60, 50, 40), (400, 300, 500)]
)
def test_joint_components_equal_those_of_scipy(height, width, count):
    """Components are numbered by their first row, or by their first column."""
    random = np.random.default_rng(count)
    rows, columns = (random.integers(max(n, 1), size=count) for n in (height, width))
    links = scipy.sparse.coo_array(
        (np.ones(count), (rows, height + columns)), shape=(height + width,) * 2
    )
    number, part = csgraph.connected_components(links, directed=False)
    found = arrays.joint_components(rows, columns, (height, width))
    assert found.number == number
    np.testing.assert_array_equal(np.append(found.rows, found.columns), part)
    assert found.heights.sum() == height and found.widths.sum() == width


@pytest.mark.parametrize("shuffled", [False, True])
def test_components_of_a_long_chain_are_found_quickly(shuffled):
    """The number of rounds stays small for every numbering of the rows."""
    count = 100_000
    chain = np.roll(np.arange(count), -1)
    if shuffled:
        chain = np.random.default_rng(0).permutation(count)
    rows, columns = np.append(chain, chain[1:]), np.append(chain, chain[:-1])
    found = arrays.joint_components(rows, columns, (count, count))
    assert found.number == 1 and not found.rows.any() and not found.columns.any()
