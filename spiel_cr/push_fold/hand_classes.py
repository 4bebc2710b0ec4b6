"""The 169 classes of two hole cards, and how many deals there are of each.

Class 13 r + c: pairs where r = c, suited where r < c, else offsuit; rows and columns
are ranks from the ace down to the two, as in printed charts.
"""

import functools

import numpy as np

NUM_RANKS, NUM_SUITS = 13, 4
RANKS = "AKQJT98765432"
NUM_CLASSES = NUM_RANKS**2


@functools.cache
def combos() -> np.ndarray:
    """int [1326, 2], all sets of two cards; a card is rank * 4 + suit, twos first."""
    return np.array([(a, b) for a in range(52) for b in range(a)], int)


@functools.cache
def class_of_combo() -> np.ndarray:
    """int [1326], the class of each of `combos`."""
    rank, suit = np.divmod(combos(), NUM_SUITS)
    row = NUM_RANKS - 1 - rank
    high, low = row.min(axis=1), row.max(axis=1)
    suited = suit[:, 0] == suit[:, 1]
    return np.where(suited, NUM_RANKS * high + low, NUM_RANKS * low + high)


def class_names() -> list[str]:
    """The usual names in the order of classes: AA, AKs, …, AKo, KK, …"""
    names = []
    for r, row in enumerate(RANKS):
        for c, column in enumerate(RANKS):
            if r == c:
                names.append(row + column)
            else:
                names.append(row + column + "s" if r < c else column + row + "o")
    return names


@functools.cache
def class_sizes() -> np.ndarray:
    """int [169], combinations of cards per class: 6, 4 or 12."""
    return np.bincount(class_of_combo(), minlength=NUM_CLASSES)


@functools.cache
def pair_deals() -> np.ndarray:
    """float64 [169, 169], deals to two players without a common card."""
    member = _member()
    return np.asarray(member.T @ _disjoint() @ member, float)


@functools.cache
def triple_deals() -> np.ndarray:
    """float32 [169, 169, 169], deals to three players without a common card."""
    member, disjoint = _member(), _disjoint()
    around = disjoint @ member  # [1326, 169], combos of a class apart from a combo
    counts = np.empty((NUM_CLASSES,) * 3, np.float32)
    for c, size in enumerate(class_sizes()):
        # All combos of a class are alike up to suits.
        first = int(np.flatnonzero(class_of_combo() == c)[0])
        allowed = disjoint[first] > 0
        rest = around[allowed] - disjoint[allowed][:, ~allowed] @ member[~allowed]
        counts[c] = size * (member[allowed].T @ rest)
    return counts


def _member() -> np.ndarray:
    """float32 [1326, 169], which combo belongs to which class."""
    return np.eye(NUM_CLASSES, dtype=np.float32)[class_of_combo()]


def _disjoint() -> np.ndarray:
    """float32 [1326, 1326], 1 where two combos have no card in common."""
    a = combos()
    common = (a[:, None, :, None] == a[None, :, None, :]).any(axis=(2, 3))
    return (~common).astype(np.float32)
