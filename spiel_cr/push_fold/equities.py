"""Probabilities of all-in hands: a table that is computed once and kept in a folder.

Boards are sampled in blocks. Each block draws three independent combinations of hole
cards for each class, and many boards. Only hands and boards without a common card
count. Given that they have none, cards and boards are uniform, so the estimates are
those of the true deal. The comparisons of three hands are products of the comparisons
of two hands, summed over boards: matrix products.
"""

import contextlib
import itertools
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.common import storage
from spiel_cr.common.checks import check_integer, check_seed
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.common.executor import IN_PROCESS, Executor, in_order
from spiel_cr.common.messages import progress_bar
from spiel_cr.push_fold import hand_classes
from spiel_cr.push_fold.hands import ORDERS, HandTables

# int64 [...] sets of seven cards, one bit per card at 16 * suit + rank -> int [...],
# higher is better.
Strength = Callable[[np.ndarray], np.ndarray]

_BOARDS_OF_BLOCK = 512
# Number of blocks in one task: every result for three hands has 156 MB.
_BLOCKS = 25
_COPIES = 3
_VERSION = 1


class Equities(NamedTuple):
    """Estimated probabilities of finishing orders, given the classes of the hands.

    Attributes:
      win: Probability that the first of two hands is better, float32 [169, 169].
      tie: Probability that two hands tie, float32 [169, 169].
      above: Probability that the first hand is better than the second, and the second
        better than the third, float32 [169, 169, 169].
      tie_above: Probability that the first two hands tie and are better than the third.
      above_tie: Probability that the first hand is better than the others, which tie.
      all_tie: Probability that all three hands tie.
      error: Largest and median standard error of `win`, then of `above`, over pairs and
        triples of classes that can be dealt.
      boards: Number of boards that were sampled.

    The arrays of three hands are empty, [0, 0, 0], if the table has only two hands.
    """

    win: np.ndarray
    tie: np.ndarray
    above: np.ndarray
    tie_above: np.ndarray
    above_tie: np.ndarray
    all_tie: np.ndarray
    error: tuple[float, float, float, float]
    boards: int


class Draws(NamedTuple):
    """The samples from which a table is estimated.

    Attributes:
      players: Number of players, 2 or 3. A table of three hands includes that of two.
      boards: Least number of boards; it is rounded up to whole blocks.
      seed: Seed for all random draws.
    """

    players: int
    boards: int
    seed: int = 0


def through(
    folder: os.PathLike[str] | str,
    strength: Strength,
    draws: Draws,
    *,
    progress: bool | None = None,
    executor: Executor = IN_PROCESS,
) -> Equities:
    """Read the table from a folder, or compute it and save it there.

    Args:
      folder: Folder of tables. It is created if it is missing.
      strength: Function that ranks sets of seven cards; see `Strength`. With workers it
        must be a module-level function.
      draws: Number of players, number of boards and seed.
      progress: True: show a progress bar.
      executor: Executor of the comparisons; each task is a number of blocks.

    Raises:
      ValueError: If an argument is out of range, or the folder is a file.
    """
    check_integer(draws.players, "players", 2, 3)
    check_integer(draws.boards, "boards", 1, 10**8)
    check_seed(draws.seed)
    place = pathlib.Path(folder)
    if place.exists() and not place.is_dir():
        raise ValueError(f"cache={os.fspath(folder)!r} is a file; give a folder")
    name = f"{draws.boards}-{draws.seed}-v{_VERSION}.npz"
    paths = {n: place / f"all-in-{n}-{name}" for n in (2, 3)}
    # A table of three hands includes that of two.
    for path in (paths[3], paths[draws.players]):
        with contextlib.suppress(OSError, CorruptFileError):
            return load(path)
    table = sample(strength, draws, progress=progress, executor=executor)
    save(paths[draws.players], table)
    return table


def save(path: os.PathLike[str], table: Equities) -> None:
    """Write a table to a file.

    Raises:
      OSError: If the file cannot be written.
    """
    arrays = {name: getattr(table, name) for name in Equities._fields[:6]}
    storage.save(path, arrays, {"error": list(table.error), "boards": table.boards})


def load(path: os.PathLike[str] | str) -> Equities:
    """Read a table from a file.

    Raises:
      OSError: If the file does not exist.
      CorruptFileError: If the file is not a table of all-in hands.
    """
    arrays, metadata = storage.load(path)
    if set(arrays) != set(Equities._fields[:6]) or set(metadata) != {"error", "boards"}:
        raise CorruptFileError(
            f"{os.fspath(path)}: not a table of all-in hands; delete the file to "
            f"compute the table again"
        )
    return Equities(
        **arrays, error=tuple(metadata["error"]), boards=int(metadata["boards"])
    )


def sample(
    strength: Strength,
    draws: Draws,
    *,
    progress: bool | None = None,
    executor: Executor = IN_PROCESS,
) -> Equities:
    """Estimate the table by sampling.

    Args:
      strength: Function that ranks sets of seven cards; see `Strength`. With workers it
        must be a module-level function.
      draws: Number of players, number of boards and seed.
      progress: True: show a progress bar.
      executor: Executor of the comparisons; each task is a number of blocks.
    """
    players, boards, seed = draws
    rng = np.random.default_rng(seed)
    blocks = -(-boards // _BOARDS_OF_BLOCK)
    # All draws are made here, and sums are added in order, so the result is bitwise
    # independent of the number of workers.
    drawn = [(_draw_hole_cards(rng), _draw_boards(rng)) for _ in range(blocks)]
    tasks = {n: drawn[n : n + _BLOCKS] for n in range(0, blocks, _BLOCKS)}
    total = _no_counts(players)
    shown = progress_bar(total=blocks, desc="all-in hands", progress=progress)
    counted = executor.map(_Blocks, (strength, players), tasks)
    for task, counts in zip(tasks.values(), in_order(counted, tasks), strict=True):
        for total_counts, task_counts in zip(total, counts, strict=True):
            for sums, more in zip(total_counts, task_counts, strict=True):
                sums += more
        shown.update(len(task))
    shown.close()
    return _estimate(*total, blocks * _BOARDS_OF_BLOCK)


class _Blocks:
    """Function object that compares hands on the boards of blocks."""

    def __init__(self, strength: Strength, players: int) -> None:
        self._strength, self._players = strength, players

    def __call__(
        self, drawn: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> tuple["_EventSums", "_EventSums"]:
        """Return sums over pairs and triples of hands in the given blocks."""
        pair, triple = _no_counts(self._players)
        for cards, boards in drawn:
            values = self._strength(cards[:, None] | boards[:, None]).astype(np.int32)
            # Hands that fit the board; pairs of hands without a common card.
            fits = (cards[:, None] & boards[:, None]) == 0
            disjoint = (cards[:, None, :, None] & cards[None, :, None, :]) == 0
            _count_pairs(pair, values, fits, disjoint)
            if self._players == 3:
                _count_triples(triple, values, fits, disjoint)
        return pair, triple


class _EventSums(NamedTuple):
    """Counts of events, summed over blocks of boards.

    Attributes:
      sums: Number of occurrences of each event, [k, ...]; the last event is the deal.
        It is changed in place.
      squares: Sums for the standard error, [3, ...]: the squared count of the first
        event, its product with the count of deals, and the squared count of deals.
        Blocks are independent.
    """

    sums: np.ndarray
    squares: np.ndarray

    def note(self, at: Any, first: np.ndarray, deals: np.ndarray) -> None:
        """Add one block to the squares at an index behind the first axis."""
        self.squares[0][at] += first**2
        self.squares[1][at] += first * deals
        self.squares[2][at] += deals**2


def _no_counts(players: int) -> tuple[_EventSums, _EventSums]:
    c = hand_classes.NUM_CLASSES
    shape = (c, c, c) if players == 3 else (0, 0, 0)
    pair = _EventSums(np.zeros((3, c, c)), np.zeros((3, c, c)))
    return pair, _EventSums(np.zeros((5, *shape), "f4"), np.zeros((3, *shape), "f4"))


def _draw_hole_cards(rng: np.random.Generator) -> np.ndarray:
    """Draw three independent combos for each class, int64 [3, 169] card sets."""
    order = np.argsort(hand_classes.class_of_combo(), kind="stable")
    sizes = hand_classes.class_sizes()
    first = np.cumsum(sizes) - sizes
    shape = (_COPIES, hand_classes.NUM_CLASSES)
    chosen = order[first + rng.integers(0, sizes, shape)]
    return _bits()[hand_classes.combos()[chosen]].sum(axis=-1)


def _bits() -> np.ndarray:
    """Return one bit for each card, int64 [52]."""
    rank, suit = np.divmod(np.arange(52), hand_classes.NUM_SUITS)
    return np.left_shift(1, 16 * suit + rank, dtype="<i8")


def _draw_boards(rng: np.random.Generator) -> np.ndarray:
    """Sample the boards of a block as bit sets of cards, int64 [boards]."""
    decks = rng.random((_BOARDS_OF_BLOCK, 52)).argpartition(5, axis=1)[:, :5]
    return _bits()[decks].sum(axis=1)


def _compare(
    values: np.ndarray, fits: np.ndarray, a: int, b: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compare two copies of the hands on every board.

    Returns:
      Three arrays, bool [boards, 169, 169]: the first hand is better, both are equal,
      and both have no card in common with the board.
    """
    both = fits[a][:, :, None] & fits[b][:, None, :]
    left, right = values[a][:, :, None], values[b][:, None, :]
    return (left > right) & both, (left == right) & both, both


def _count_pairs(
    counts: _EventSums, values: np.ndarray, fits: np.ndarray, disjoint: np.ndarray
) -> None:
    """Add wins, ties and deals of all pairs of copies, in both orders."""
    block = np.zeros_like(counts.sums)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        ok = disjoint[a, b]
        better, equal, both = (x.sum(axis=0) * ok for x in _compare(values, fits, a, b))
        block[0] += better + (both - better - equal).T
        block[1] += equal + equal.T
        block[2] += both + both.T
    counts.sums[:] += block
    counts.note(..., block[0], block[2])


def _count_triples(
    counts: _EventSums, values: np.ndarray, fits: np.ndarray, disjoint: np.ndarray
) -> None:
    """Add the orders of copies 0, 1 and 2, one class of the middle copy at a time."""
    c = values.shape[2]
    better01, equal01, _ = _compare(values, fits, 0, 1)
    better12, equal12, _ = _compare(values, fits, 1, 2)
    ok = disjoint[0, 1][:, :, None] & disjoint[1, 2][None] & disjoint[0, 2][:, None, :]
    first, last = fits[0].astype(np.float32), fits[2].astype(np.float32)
    for j in range(c):
        left = np.concatenate([better01[:, :, j], equal01[:, :, j]], axis=1)
        right = np.concatenate([better12[:, j], equal12[:, j]], axis=1)
        orders = left.T.astype(np.float32) @ right.astype(np.float32)
        allowed = ok[:, j]
        above = orders[:c, :c] * allowed
        deals = (first.T @ (last * fits[1][:, j, None])) * allowed
        counts.sums[0, :, j] += above
        counts.sums[1, :, j] += orders[c:, :c] * allowed
        counts.sums[2, :, j] += orders[:c, c:] * allowed
        counts.sums[3, :, j] += orders[c:, c:] * allowed
        counts.sums[4, :, j] += deals
        counts.note((slice(None), j), above, deals)


def _estimate(pair: _EventSums, triple: _EventSums, boards: int) -> Equities:
    dealt = np.maximum(pair.sums[2], 1)
    # In small tables some pairs are never dealt: treat them as equally good.
    win = np.where(pair.sums[2] > 0, pair.sums[0] / dealt, 0.5).astype(np.float32)
    tie = (pair.sums[1] / dealt).astype(np.float32)
    errors = _errors(win, pair, hand_classes.pair_deals())
    if not triple.sums.size:
        none = np.zeros((0, 0, 0), np.float32)
        error = (*errors, 0.0, 0.0)
        return Equities(win, tie, none, none, none, none, error, boards)
    dealt3 = np.maximum(triple.sums[4], 1)
    above, tie_above, above_tie, all_tie = triple.sums[:4] / dealt3
    errors3 = _errors(above, triple, hand_classes.triple_deals())
    tie_above = (tie_above + tie_above.transpose(1, 0, 2)) / 2
    above_tie = (above_tie + above_tie.transpose(0, 2, 1)) / 2
    turns = list(itertools.permutations(range(3)))
    all_tie = np.mean([all_tie.transpose(t) for t in turns], axis=0)
    # Each of the 13 orders was estimated from different deals: normalise.
    total = np.sum([above.transpose(t) for t in turns], axis=0) + all_tie
    for t in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        total = total + tie_above.transpose(t) + above_tie.transpose(t)
    # In small tables some triples are never dealt: treat the hands as equally good.
    above = np.where(total > 0, above, 1 / 6)
    total = np.where(total > 0, total, 1)
    parts = (above, tie_above, above_tie, all_tie)
    three = [np.asarray(x / total, np.float32) for x in parts]
    error3 = (*errors, *errors3)
    return Equities(win, tie, three[0], three[1], three[2], three[3], error3, boards)


def _errors(
    chance: np.ndarray, counts: _EventSums, deals: np.ndarray
) -> tuple[float, float]:
    """Return the largest and median standard error of a ratio of sums."""
    used = (deals > 0) & (counts.sums[-1] > 0)
    p, (square, mixed, dealt) = chance[used], (x[used] for x in counts.squares)
    spread = np.maximum(square - 2 * p * mixed + p**2 * dealt, 0)
    error = np.sqrt(spread) / counts.sums[-1][used]
    return float(error.max()), float(np.median(error))


def hand_tables(table: Equities) -> HandTables:
    """Return probabilities of deals and showdowns in the form that `hands` uses.

    Args:
      table: Table of two or of three hands.
    """
    deals = hand_classes.pair_deals()
    deal = deals / deals.sum()
    c = len(deal)
    deal3, order3 = np.zeros((0, c)), np.zeros((len(ORDERS), 0, c))
    if table.above.size:
        deals3 = hand_classes.triple_deals()
        # In float64: millions of small numbers.
        deal3 = deals3 / deals3.sum(dtype=np.float64)
        order3 = np.stack([deal3 * _order(table, ranks) for ranks in ORDERS])
        order3 = order3.reshape(len(ORDERS), c * c, c)
        deal3 = deal3.reshape(c * c, c)
    arrays = (deal, deal * table.win, deal * table.tie, deal3, order3)
    return HandTables(*(np.asarray(a, np.float32) for a in arrays))


def _order(table: Equities, ranks: tuple[int, int, int]) -> np.ndarray:
    """Return the probability that hands a, b, c finish with these ranks, [C, C, C]."""
    order = sorted(range(3), key=lambda hand: ranks[hand])
    first, second, third = (ranks[hand] for hand in order)
    if first < second < third:
        chances = table.above
    elif first == second < third:
        chances = table.tie_above
    elif first < second:
        chances = table.above_tie
    else:
        chances = table.all_tie
    # Axis p of `chances` is the hand order[p].
    return chances.transpose(np.argsort(order))
