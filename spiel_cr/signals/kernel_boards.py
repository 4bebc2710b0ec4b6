"""Kernels board by board, of signals that lie side by side: too large to list.

The early rounds of a game whose later cards are many end in such kernels: the entry of
two hands is summed over all cards to come (`of_rollouts`), and kept as a whole
number. What needs them takes a board at a time: `coarsen` sums them over buckets,
`times` multiplies by weights of signals, `board_responses` responds.

Legend for shapes: B boards, n hands or signals on a board, m completions of it.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tqdm
from scipy import sparse

from spiel_cr.common import memory
from spiel_cr.sequence_form.decisions import Payoffs
from spiel_cr.signals.game import BoardKernel, HandKernel, Hands, SparseKernel

# Bytes of a process beside the entries.
_BASE = 1e9
# Pairs of hands that are compared at once, where they are summed.
_PAIRS = 2_000_000
# Completions in one call, all of one size, so that few programs are compiled.
_COMPLETIONS = 128


def times(kernel: BoardKernel, player: int, other: np.ndarray) -> np.ndarray:
    """A player's utility against weights of the opponent's signals.

    Args:
      kernel: of boards.
      player: whose utility.
      other: float64 [C, H of the opponent].

    Returns:
      float64 [C, H].
    """
    found = np.zeros((len(other), kernel.shape[player]))
    for board in range(len(kernel.values)):
        mine, theirs = kernel.part(player, board), kernel.part(1 - player, board)
        found[:, mine] = times_on(kernel, player, board, other[:, theirs])
    return found


def times_on(
    kernel: BoardKernel, player: int, board: int, other: np.ndarray
) -> np.ndarray:
    """The same on one board: float64 [C, n] of float64 [C, n']."""
    values = kernel.values[board].astype(np.float64)
    weight = kernel.weight[kernel.part(0, board)]
    if player == 0:
        return (other @ values.T) * weight
    return -((other * weight) @ values)


def dealt(kernel: BoardKernel, player: int) -> np.ndarray:
    """float64 [H], sums of absolute entries."""
    found = np.zeros(kernel.shape[player])
    for board, values in enumerate(kernel.values):
        size = np.abs(values).astype(np.float64)
        weight = kernel.weight[kernel.part(0, board)]
        own = size.sum(axis=1) * weight if player == 0 else weight @ size
        found[kernel.part(player, board)] = own
    return found


class _Board(NamedTuple):
    """A board's entries, wherever they come from.

    Attributes:
      rows: integers [n0], player 0's signals.
      columns: integers [n1].
      values: numbers [n0, n1].
      weight: float64 [n0], of rows.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    weight: np.ndarray


def summed(
    kernel: BoardKernel | HandKernel,
    labels: tuple[np.ndarray, np.ndarray],
    *,
    progress: bool = False,
) -> SparseKernel:
    """A kernel summed over classes of signals, without listing its entries.

    Args:
      kernel: whose round the classes are of.
      labels: for each player int32 [H], the class of each signal.
      progress: show boards on stderr.

    Returns:
      The entries of classes that meet; where wins and losses cancel up to rounding,
      none.
    """
    shape = (1 + int(labels[0].max(initial=-1)), 1 + int(labels[1].max(initial=-1)))
    total, size = np.zeros(shape), np.zeros(shape)
    boards = _boards(kernel)
    count = len(kernel.values) if isinstance(kernel, BoardKernel) else None
    for board in tqdm.tqdm(boards, "boards", count, disable=not progress, leave=False):
        first, in_use = np.unique(labels[0][board.rows], return_inverse=True)
        second, to = np.unique(labels[1][board.columns], return_inverse=True)
        left = sparse.csr_array(
            (board.weight, (in_use.reshape(-1), np.arange(len(board.rows)))),
            shape=(len(first), len(board.rows)),
        )
        right = sparse.csr_array(
            (np.ones(len(to)), (to.reshape(-1), np.arange(len(board.columns)))),
            shape=(len(second), len(board.columns)),
        )
        place = np.ix_(first, second)
        values = board.values.astype(np.float64)
        half = right @ values.T
        total[place] += left @ half.T
        size[place] += left @ (right @ np.abs(values).T).T
    total[np.abs(total) < 1e-12 * size] = 0.0
    rows, columns = np.nonzero(total)
    entries = Payoffs(
        rows.astype(np.int32), columns.astype(np.int32), total[rows, columns]
    )
    return SparseKernel(kernel.round, shape, entries)


def _boards(kernel: BoardKernel | HandKernel) -> Iterator[_Board]:
    """The boards of a kernel, one after another."""
    if isinstance(kernel, BoardKernel):
        for board, values in enumerate(kernel.values):
            rows, columns = (
                np.arange(*part.indices(part.stop))
                for part in (kernel.part(0, board), kernel.part(1, board))
            )
            yield _Board(rows, columns, values, kernel.weight[rows])
        return
    orders = [np.argsort(own.board, kind="stable") for own in kernel.hands]
    count = 1 + max(int(own.board.max(initial=-1)) for own in kernel.hands)
    places = [
        np.searchsorted(own.board[order], np.arange(count + 1))
        for own, order in zip(kernel.hands, orders, strict=True)
    ]
    for board in range(count):
        first, second = (
            _taken(own, order[begin[board] : begin[board + 1]])
            for own, order, begin in zip(kernel.hands, orders, places, strict=True)
        )
        step = max(1, _PAIRS // max(1, len(second.signal)))
        for row in range(0, len(first.signal), step):
            some = _taken(first, slice(row, row + step))
            values = _compared(some, second, kernel.showdown)
            yield _Board(some.signal, second.signal, values, some.weight)


def _compared(first: Hands, second: Hands, showdown: bool) -> np.ndarray:
    """float64 [n, n'], signs of hands that fit, times the second one's weight."""
    apart = np.ones((len(first.signal), len(second.signal)), bool)
    for mine in first.cards.T:
        for theirs in second.cards.T:
            apart &= mine[:, None] != theirs
    values: np.ndarray = apart * second.weight
    if showdown:
        wins = first.strength[:, None] > second.strength
        loses = first.strength[:, None] < second.strength
        values *= wins.astype(np.int8) - loses.astype(np.int8)
    return values


def _taken(hands: Hands, chosen: np.ndarray | slice) -> Hands:
    return Hands(*(part[chosen] for part in hands))


def of_rollouts(
    declared: Iterable[Any],
    *,
    progress: bool = False,
    memory_limit: memory.Limit = None,
    what: str = "the kernels",
) -> list[BoardKernel | SparseKernel]:
    """Compares hands on all cards to come.

    Args:
      declared: kernels with the fields of `RolloutKernel` (game_defs.bundled.holdem);
        all of the same rollouts. Those of the last round become kernels of boards;
        earlier ones are summed over signals.
      progress: show boards on stderr; it takes minutes for hold'em's 1 755 flops.
      memory_limit: of the whole process, as for `solve`.
      what: is built, for messages.

    Raises:
      GameTooLargeError: the entries take more memory than the limit.
    """
    kernels = list(declared)
    if not kernels:
        return []
    rollouts = kernels[0].rollouts
    counts = np.diff(rollouts.starts)
    # A showdown's entries are sums over completions for the hands of a signal.
    wide = np.int16 if 24 * rollouts.ways < np.iinfo(np.int16).max else np.int64
    need = float(np.square(counts.astype(float)).sum() * (1 + np.dtype(wide).itemsize))
    # Of one board's hands: strengths of completions, and sums on the way.
    largest = 100.0 * float(counts.max(initial=0)) ** 2
    if len(counts) > 1:
        memory.check_need(
            f"{what} in the form of signals, whose {int(counts.sum()):,} hands on "
            f"{len(counts):,} boards are compared on all cards to come,",
            need + _BASE + largest,
            memory_limit,
            "take fewer rounds (rounds=1), or a smaller deck",
        )
    shown: list[np.ndarray] = []
    folded: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    boards = range(len(counts))
    for board in tqdm.tqdm(
        boards, "hands on boards", disable=not progress, leave=False
    ):
        hands, local = rollouts.hands(board)
        compared = _compare(rollouts, board, hands, rollouts.apart(hands))
        sums = sparse.csr_array(
            (np.ones(len(local), np.int64), (local, np.arange(len(local))))
        )
        members = np.bincount(local, minlength=int(counts[board]))
        # A signal's hands are alike, so these are multiples of their number.
        wins, meets = (
            (sums @ (sums @ part.astype(np.int64)).T).T // members[:, None]
            for part in compared
        )
        shown.append(wins.astype(wide))
        folded.append(meets.astype(np.int8 if meets.max() < 128 else np.int64))
        weights.append(members * rollouts.weight[board])
    weight = np.concatenate(weights)
    made: list[BoardKernel | SparseKernel] = []
    for kernel in kernels:
        values = shown if kernel.showdown else folded
        own = BoardKernel(
            kernel.round,
            (len(weight), len(weight)),
            (rollouts.starts, rollouts.starts),
            weight if kernel.showdown else weight * rollouts.ways,
            tuple(values),
            kernel.showdown,
        )
        last = len(kernel.above) == kernel.shape[0]
        if last and len(counts) > 1:
            made.append(own)
        else:
            made.append(summed(own, (kernel.above, kernel.above)))
    return made


def _compare(
    rollouts: Any, board: int, hands: np.ndarray, apart: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Player 0's wins less losses, and who meets, of hands, [n, n] each."""
    n = len(hands)
    wide = np.int16 if 24 * rollouts.ways < np.iinfo(np.int16).max else np.int32
    wins = jnp.zeros((n, n), wide)
    for strength, free, times in rollouts.completions(board, hands):
        top = np.iinfo(strength.dtype).max
        # Hands that are not free neither win nor lose.
        low = np.where(free, strength, strength.dtype.type(-1))
        high = np.where(free, strength, strength.dtype.type(top))
        for begin in range(0, len(times), _COMPLETIONS):
            part = slice(begin, begin + _COMPLETIONS)
            wins = _add_wins(
                wins,
                _padded(low[part], -1),
                _padded(high[part], top),
                _padded(times[part].astype(wide), 0),
            )
    found = np.asarray(wins)
    return (found - found.T) * apart, apart.astype(np.int8)


def _padded(rows: np.ndarray, filling: int) -> np.ndarray:
    """As many rows as a call takes."""
    found = np.full((_COMPLETIONS, *rows.shape[1:]), filling, rows.dtype)
    found[: len(rows)] = rows
    return found


@jax.jit
def _add_wins(
    wins: jax.Array, low: jax.Array, high: jax.Array, count: jax.Array
) -> jax.Array:
    """Adds completions [m] in which hand i of `low` [m, n] beats hand j of `high`."""

    def add(total: jax.Array, one: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        mine, theirs, times = one
        beats = mine[:, None] > theirs[None]
        return total + jnp.where(beats, times, jnp.zeros_like(times)), None

    return jax.lax.scan(add, wins, (low, high, count))[0]
