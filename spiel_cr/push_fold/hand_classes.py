"""The 169 classes of two hole cards, and the number of deals of each.

Class 13 r + c is a pair if r = c, suited if r < c, otherwise offsuit. Rows and columns
are ranks from the ace down to the two, as in printed charts.
"""

import functools
import itertools

import numpy as np

NUM_RANKS, NUM_SUITS = 13, 4
RANKS = "AKQJT98765432"
NUM_CLASSES = NUM_RANKS**2


@functools.cache
def combos() -> np.ndarray:
    """Return all combos, int [1326, 2]; a card is rank * 4 + suit, twos first."""
    return np.array([(a, b) for a in range(52) for b in range(a)], int)


@functools.cache
def class_of_combo() -> np.ndarray:
    """Return the class of each of `combos`, int [1326]."""
    rank, suit = np.divmod(combos(), NUM_SUITS)
    row = NUM_RANKS - 1 - rank
    high, low = row.min(axis=1), row.max(axis=1)
    suited = suit[:, 0] == suit[:, 1]
    return np.where(suited, NUM_RANKS * high + low, NUM_RANKS * low + high)


def class_names() -> list[str]:
    """Return the usual names in the order of classes: AA, AKs, …, AKo, KK, …"""
    return [
        RANKS[min(r, c)] + RANKS[max(r, c)] + ("" if r == c else "s" if r < c else "o")
        for r, c in itertools.product(range(NUM_RANKS), repeat=2)
    ]


@functools.cache
def class_sizes() -> np.ndarray:
    """Return the number of combos of each class, int [169]: 6, 4 or 12."""
    return np.bincount(class_of_combo(), minlength=NUM_CLASSES)


@functools.cache
def pair_deals() -> np.ndarray:
    """Count deals to two players without a common card, float64 [169, 169]."""
    member = _member()
    return np.asarray(member.T @ _disjoint() @ member, float)


@functools.cache
def triple_deals() -> np.ndarray:
    """Count deals to three players without a common card, float32 [169, 169, 169]."""
    member, disjoint = _member(), _disjoint()
    around = disjoint @ member  # [1326, 169], combos of a class disjoint from a combo
    counts = np.empty((NUM_CLASSES,) * 3, np.float32)
    for c, size in enumerate(class_sizes()):
        # All combos of a class are equal up to suits.
        first = int(np.flatnonzero(class_of_combo() == c)[0])
        allowed = disjoint[first] > 0
        rest = around[allowed] - disjoint[allowed][:, ~allowed] @ member[~allowed]
        counts[c] = size * (member[allowed].T @ rest)
    return counts


def _member() -> np.ndarray:
    """Return indicators of combos in classes, float32 [1326, 169]."""
    return np.eye(NUM_CLASSES, dtype=np.float32)[class_of_combo()]


def _disjoint() -> np.ndarray:
    """Return 1 for each pair of combos without a common card, float32 [1326, 1326]."""
    a = combos()
    common = (a[:, None, :, None] == a[None, :, None, :]).any(axis=(2, 3))
    return (~common).astype(np.float32)
