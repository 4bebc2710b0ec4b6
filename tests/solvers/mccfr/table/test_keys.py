"""Keys of information states: uniqueness, evenly set bits and stability."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spiel_cr.games.simulation import keys

ROWS = [
    [1650559466229749275, 13662443954154324479],
    [17488356961223656179, 12233838819138562703],
]
TEXTS = [
    [8727188616783957099, 7342283151745050724],
    [6746207651498464365, 14272553535392721142],
]
_INT64 = st.integers(-(2**63), 2**63 - 1)


def test_keys_never_change():
    """Files contain keys, so these numbers must stay the same."""
    rows = keys.of_rows(np.array([[1, 2], [3, -4]]), 0)
    assert rows.tolist() == ROWS
    assert keys.of_bytes([b"0,1 ", b""], 1).tolist() == TEXTS


@given(st.lists(st.tuples(_INT64, _INT64, _INT64), min_size=1, max_size=50))
def test_keys_of_different_rows_differ(rows):
    """Even the halves differ: they are equal by chance with probability 1e-16."""
    found = [keys.of_rows(np.array(rows), player) for player in range(2)]
    both = np.concatenate(found)
    for half in range(2):
        assert len(set(both[:, half].tolist())) == 2 * len(set(rows))
    assert (both[:, 0] != both[:, 1]).all()
    again = keys.of_rows(np.array(rows[::-1]), 0)
    assert np.array_equal(again[::-1], found[0])


def test_bits_of_keys_are_evenly_distributed():
    """Information consists of small consecutive numbers, so their keys are tested.

    Each of 128 bits is set in 20,000 of 40,000 keys, with standard deviation 100. One
    of them exceeds 6 standard deviations with a chance of 3e-7. Slots are tested
    likewise.
    """
    rows = np.stack(np.divmod(np.arange(40_000), 7), axis=1)
    found = keys.of_rows(rows, 1)
    for half in range(2):
        bits = np.unpackbits(np.ascontiguousarray(found[:, half]).view(np.uint8))
        ones = bits.reshape(len(rows), 64).sum(axis=0, dtype=np.int64)
        assert (abs(ones - 20_000) < 600).all()
    slots = np.bincount((found[:, 0] >> np.uint64(54)).astype(int), minlength=1024)
    assert (abs(slots - 40_000 / 1024) < 6 * 6.3).all()


def test_keys_of_rows_of_different_widths_differ():
    narrow, wide = np.zeros((1, 1), np.int64), np.zeros((1, 2), np.int64)
    assert keys.of_rows(narrow, 0).tolist() != keys.of_rows(wide, 0).tolist()


def test_keys_of_different_texts_and_players_differ():
    texts = [b"", b"a", b"b", b"ab"]
    found = [tuple(k) for p in range(2) for k in keys.of_bytes(texts, p).tolist()]
    assert len(set(found)) == 8
    assert keys.of_bytes([], 0).shape == (0, 2)
