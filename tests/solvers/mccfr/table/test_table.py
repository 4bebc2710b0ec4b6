"""The table of infosets: lookups, memory limits and restored states."""

import logging as std_logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spiel_cr.common import memory
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.solvers.mccfr.table import index, table
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy
from spiel_cr.solvers.mccfr.table.table import ROOTS, InfosetTable

MAX_ACTIONS = 5


def count_of(key: tuple[int, int]) -> int:
    return 2 + sum(key) % (MAX_ACTIONS - 1)


def find_or_insert(made: InfosetTable, keys: list[tuple[int, int]]) -> np.ndarray:
    """Find rows, and insert missing ones, as trajectories do."""
    array = np.array(keys, np.uint64).reshape(-1, 2)
    row = made.find(array)
    new = row < 0
    count = np.array([count_of(key) for key in keys])
    some = np.zeros(np.count_nonzero(new), np.int64)
    row[new] = made.insert(array[new], count[new], some, some)
    return row


# The upper half of the first number determines the first slot of a key: all of these
# keys share the same slot, or one of two.
KEYS = st.tuples(st.integers(0, 40) | st.integers(2**63, 2**63 + 3), st.integers(0, 2))


@given(st.lists(st.lists(KEYS, max_size=30), max_size=8))
@settings(max_examples=25, deadline=None)
def test_rows_equal_those_of_a_dictionary(batches):
    """Batches are arbitrary, with duplicates within and between them."""
    made, rows = InfosetTable(10**6, MAX_ACTIONS, baselines=True), {}
    for keys in batches:
        found = find_or_insert(made, keys)
        for key, row in zip(keys, found.tolist(), strict=True):
            assert rows.setdefault(key, row) == row
    assert made.rows == len(rows) == len(set(rows.values()))
    assert not rows or sorted(rows.values()) == list(range(len(rows)))
    for key, row in rows.items():
        assert tuple(made.key[row].tolist()) == key
        assert made.count[row] == count_of(key)
    # Entries are contiguous.
    ends = made.first[: made.rows].astype(int) + made.count[: made.rows]
    assert [ROOTS, *ends][: made.rows] == made.first[: made.rows].tolist()
    assert made.entries == ROOTS + sum(map(count_of, rows))
    missing = np.array([(41, 0), (2**64 - 1, 2**64 - 1)], np.uint64)
    assert (made.find(missing) == -1).all()


@given(st.lists(KEYS, max_size=40))
@settings(max_examples=20, deadline=None)
def test_distinct_groups_equal_keys(keys):
    array = np.array(keys, np.uint64).reshape(-1, 2)
    chosen, group = index.distinct(array)
    assert len(chosen) == len(set(keys))
    assert (array[chosen][group] == array).all()
    assert [tuple(key) for key in array[chosen].tolist()] == sorted(set(keys))


def test_index_grows_with_the_number_of_rows():
    made, random = (
        InfosetTable(10**8, MAX_ACTIONS, baselines=False),
        np.random.default_rng(1),
    )
    keys = random.integers(0, 2**64, (30_000, 2), np.uint64)
    count = np.full(len(keys), 3)
    rows = []
    for start in range(0, len(keys), 7000):
        some = slice(start, start + 7000)
        zero = np.zeros(len(keys[some]), np.int64)
        rows.append(made.insert(keys[some], count[some], zero, zero))
    assert made.rows == len(keys)
    assert np.array_equal(made.find(keys), np.concatenate(rows))
    assert (made.find(keys + np.uint64(1)) == -1).all()


def test_full_table_rejects_new_rows(caplog):
    """The table fills its memory, warns once and keeps its rows."""
    limit, made = 6000, InfosetTable(6000, MAX_ACTIONS, baselines=True)
    keys = [(number << 50, 0) for number in range(300)]
    with caplog.at_level(std_logging.WARNING, "absl"):
        rows = np.concatenate(
            [find_or_insert(made, keys[i : i + 16]) for i in range(0, 300, 16)]
        )
    assert made.full
    assert len([r for r in caplog.records if "the table is full" in r.message]) == 1
    largest = table.row_bytes() + MAX_ACTIONS * table.entry_bytes(baselines=True)
    assert limit - largest < made.nbytes <= limit
    held = rows >= 0
    assert np.count_nonzero(held) == made.rows
    array = np.array(keys, np.uint64)
    assert np.array_equal(made.find(array), rows)
    # A row that would fit is rejected too, because its earlier rows might be missing.
    assert find_or_insert(made, [(7, 7)]).tolist() == [-1]


@pytest.mark.parametrize("baselines", [False, True])
@pytest.mark.parametrize("width", [2, MAX_ACTIONS])
def test_memory_of_a_full_table_stays_below_its_limit(width, baselines):
    """The limit includes columns, the index and the finished strategy."""
    limit, random = 200_000, np.random.default_rng(2)
    made = InfosetTable(limit, MAX_ACTIONS, baselines=baselines)
    while not made.full:
        keys = random.integers(0, 2**64, (100, 2), np.uint64)
        zero = np.zeros(100, np.int64)
        made.insert(keys, np.full(100, width), zero, zero)
    state = made.state()
    columns = sum(column.nbytes for column in state.values())
    slots = made._index._slots.nbytes
    finished = TableStrategy(
        *(made.key[: made.rows], made.count[: made.rows], made.visits[: made.rows]),
        made.average[ROOTS : made.entries].copy(),
    )
    own = finished.probability.nbytes + finished._first.nbytes
    own += finished._index._slots.nbytes
    assert 0.8 * limit < columns + slots + own <= limit
    largest = table.row_bytes() + width * table.entry_bytes(baselines=baselines)
    assert made.limit - largest < made.nbytes <= made.limit == limit


def test_restore_consumes_the_columns_of_the_state():
    """Otherwise a table and its file would be in memory at the same time."""
    made, other = (InfosetTable(10**5, MAX_ACTIONS, baselines=True) for _ in range(2))
    find_or_insert(made, [(number << 50, 0) for number in range(200)])
    state = {name: column.copy() for name, column in made.state().items()}
    other.restore(state)
    assert set(state) == {"full"}
    assert np.array_equal(other.key, made.key)


def test_rejects_a_limit_that_is_too_small_for_any_row():
    with pytest.raises(GameTooLargeError, match="max_bytes=50: .* allow more"):
        InfosetTable(50, MAX_ACTIONS, baselines=False)


def test_restore_requires_memory_and_the_same_columns():
    made = InfosetTable(10**5, MAX_ACTIONS, baselines=True)
    find_or_insert(made, [(number << 50, 0) for number in range(200)])
    with pytest.raises(ValueError, match="do not fit in .* allow as much memory"):
        InfosetTable(5000, MAX_ACTIONS, baselines=True).restore(made.state())
    with pytest.raises(ValueError, match="state: baseline is float32"):
        InfosetTable(10**5, MAX_ACTIONS, baselines=False).restore(made.state())


def test_memory_is_allocated_when_rows_are_written():
    """Neither the table's construction nor `restore` allocates the whole limit."""
    before = memory.held_bytes()
    made = InfosetTable(3 * 10**9, MAX_ACTIONS, baselines=True)
    find_or_insert(made, [(number << 50, 0) for number in range(200)])
    small = InfosetTable(10**6, MAX_ACTIONS, baselines=True)
    find_or_insert(small, [(5 << 50, 0)])
    state = small.state()
    made.restore(state)
    assert made.rows == 1 and not made.first[1:300].any()
    assert not made.regret[made.entries : 1000].any()
    assert memory.held_bytes() - before < 10**8


def test_table_strategy_finds_rows_by_key():
    key = np.array([[5, 1], [5, 0], [9, 9]], np.uint64)
    probability = np.array([0.5, 0.5, 0.2, 0.3, 0.5, 1, 0], np.float32)
    visits = np.zeros(3, np.uint32)
    made = TableStrategy(key, np.array([2, 3, 2], np.uint16), visits, probability)
    queries = np.array([[9, 9], [5, 0], [5, 2], [5, 1]], np.uint64)
    assert made.find(queries).tolist() == [2, 1, -1, 0]
    assert made.probabilities(1).tolist() == probability[2:5].tolist()
    assert made.probabilities(2).tolist() == [1, 0]
    empty = TableStrategy(key[:0], np.zeros(0, np.uint16), visits[:0], probability[:0])
    assert len(empty) == 0 and empty.find(queries).tolist() == [-1] * 4
