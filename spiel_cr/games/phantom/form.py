"""Sequence form of a phantom game: two incidence matrices, and one payoff per world.

Let U_p[s, w] = 1 if the last sequence s of player p is consistent with the terminal
world w. The payoff coupling is A = U_0 · diag(payoff) · U_1ᵀ, which is never computed.
A player's leaf values are U_p · (payoff · (U_oᵀ · reach of opponent o)): two sparse
products. The vector between them has one element per terminal world, so it stays in a
processor's cache.

Legend for shapes: W terminal worlds, S sequences, L sequences with terminal worlds.
"""

import dataclasses
import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spiel_cr.common.arrays import places_in, ranges
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.jax_utils import typed
from spiel_cr.games.phantom.sides import Incidence, Side, by_world
from spiel_cr.games.sequence_form import layout, packing, treeplex
from spiel_cr.games.sequence_form.decisions import Payoffs, sum_payoffs

# Cost of one more group of rows, in entries that are summed in the same time.
_GROUP_OVERHEAD = 2000
# Number of rows of indices per step of a loop, the fastest in measurements.
_ROWS = 16
# Largest number of pairs of sequences that are listed.
_MOST_LISTED = 20_000_000
# Number of sequences whose sums are computed at once.
_CHUNK = 1 << 19


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PhantomProduct(treeplex.Coupling):
    """Leaf values through terminal worlds; see `treeplex.Coupling`.

    Attributes:
      reach: int32 [k, n] for each group of n worlds, positions of the opponent's k
        sequences that are consistent with each of them; worlds are numbered group by
        group.
      payoffs: The player's utility in each world, and 0 for padding, float [W + 1].
      rows: int32 [k, n] for each group of n sequences of the player, the k worlds of
        each.
    """

    reach: tuple[jax.Array, ...]
    payoffs: jax.Array
    rows: tuple[jax.Array, ...]

    def leaf_values(self, other_reach: jax.Array) -> jax.Array:
        """Return leaf values, float [L]; see `Coupling`."""
        into = [_gathered(other_reach, places) for places in self.reach]
        none = jnp.zeros(self.payoffs.size - sum(map(len, into)), other_reach.dtype)
        weighted = self.payoffs * jnp.concatenate([*into, none])
        return jnp.concatenate([_gathered(weighted, places) for places in self.rows])

    @property
    def num_payoffs(self) -> int:
        """Number of additions of an evaluation; see `treeplex.Coupling`."""
        return sum(places.size for places in (*self.reach, *self.rows))

    @property
    def written_out_rows(self) -> int:
        """Number of rows that are separate operations; see `treeplex.Coupling`."""
        return sum(
            len(places) % _ROWS + min(len(places), _ROWS)
            for places in (*self.reach, *self.rows)
        )


def _gathered(vector: jax.Array, places: jax.Array) -> jax.Array:
    """Return sums, over k, of the entries at int32 [k, n], float [n]."""

    def add(total: jax.Array, rows: jax.Array) -> jax.Array:
        for row in rows:
            # Indexing would look for negative ones, which took a fifth of the time.
            total = total + treeplex.gather(vector, row)
        return total

    def step(i: jax.Array, total: jax.Array) -> jax.Array:
        return add(total, lax.dynamic_slice_in_dim(places, i * _ROWS, _ROWS))

    steps, rest = divmod(len(places), _ROWS)
    total = jnp.zeros(places.shape[1], vector.dtype)
    if steps == 1:
        total = add(total, places[:_ROWS])
    elif steps:
        total = lax.fori_loop(0, steps, step, total)
    return add(total, places[steps * _ROWS :]) if rest else total


def build(sides: tuple[Side, Side], utility: np.ndarray) -> layout.SequenceForm:
    """Build the arrays of both players' trees and the products of the coupling.

    Args:
      sides: Both players' infosets and incidence.
      utility: Player 0's utility in each terminal world, float64 [W].
    """

    def place(player: int) -> tuple[layout.PositionMap, list[treeplex.Level]]:
        side = sides[player]
        # A pure strategy of the other player leads to at most one of the histories that
        # pass through a world, so its reach sums to at most 1. If all of them were
        # counted, regrets a hundred times above the rounding error would be treated as
        # rounding errors.
        totals = _summed(side.incidence, np.abs(utility))
        return layout.place(side.decisions, totals)

    def couple(player: int) -> treeplex.Treeplex:
        product, having = _product(
            sides[player].incidence,
            sides[1 - player].incidence,
            placed[1 - player][0].sequences,
            utility if player == 0 else -utility,
        )
        return _treeplex(*placed[player], product, having)

    # Nearly all of it is done by numpy, which leaves other threads free meanwhile.
    with ThreadPoolExecutor(2) as both:
        placed = list(both.map(place, (0, 1)))
        first, second = both.map(couple, (0, 1))
    return layout.SequenceForm(
        layout.constant((sides[0].decisions, sides[1].decisions)),
        functools.partial(_list, sides, utility),
        layout.constant((placed[0][0], placed[1][0])),
        layout.constant((first, second)),
    )


def _product(
    incidence: Incidence,
    opponent_incidence: Incidence,
    positions: np.ndarray,
    utility: np.ndarray,
) -> tuple[PhantomProduct, np.ndarray]:
    """Return one player's leaf values.

    Args:
      incidence: The player's incidence.
      opponent_incidence: The opponent's incidence.
      positions: Positions of the opponent's sequences, int32 [S'].
      utility: The player's utility, float64 [W].

    Returns:
      The product, and int [L], the sequences that have leaf values.
    """
    count = len(utility)
    starts, sequences = by_world(opponent_incidence, count)
    reach, order = _grouped(starts, positions[sequences], 0, None)
    number = places_in(order, count + 1, absent=count)
    payoff = np.zeros(count + 1)
    payoff[number[:-1]] = utility
    payoff[-1] = 0.0
    rows, having = _grouped(
        incidence.starts, number[incidence.worlds], _GROUP_OVERHEAD, count
    )
    return PhantomProduct(reach, typed(payoff), rows), having


def _grouped(
    starts: np.ndarray, entries: np.ndarray, overhead: float, padding: int | None
) -> tuple[tuple[jax.Array, ...], np.ndarray]:
    """Divide the rows of a sparse matrix into dense groups of similar lengths.

    Args:
      starts: Start of each row's entries, int [n + 1].
      entries: Entries of all rows, row by row, int32.
      overhead: Cost of one more group, in entries; 0: rows are not padded.
      padding: Entry that pads the rows.

    Returns:
      int32 [k, n] for each group, on the device, and the row numbers in this order.
    """
    lengths = np.diff(starts)
    ranked = np.argsort(-lengths, kind="stable")
    groups, order = [], [np.zeros(0, np.int64)]
    for places, high in packing.groups(lengths[ranked], overhead):
        # In their own order, which gathers read faster.
        rows = np.sort(ranked[places])
        order.append(rows)
        column = np.arange(high)[:, None]
        entry = starts[rows] + column
        short = column >= lengths[rows]
        taken = entries.take(entry, mode="clip")
        if short.any():
            taken[short] = padding
        # Stored on the device, because this is most of the memory of a large game.
        groups.append(jax.device_put(taken))
    return tuple(groups), np.concatenate(order)


def _treeplex(
    positions: layout.PositionMap,
    levels: list[treeplex.Level],
    product: PhantomProduct,
    having: np.ndarray,
) -> treeplex.Treeplex:
    """Assemble one player's arrays.

    Args:
      positions: Positions of its sequences.
      levels: Levels from `layout.place`.
      product: Its leaf values.
      having: The sequences of these leaf values, int [L].
    """
    rows = sum(places.shape[1] for places in product.rows)
    source = np.full(positions.size, rows, np.int32)
    source[positions.sequences[having]] = np.arange(len(having), dtype=np.int32)
    complete = []
    for level, part in zip(levels, treeplex.by_level(levels, source), strict=True):
        blocks = zip(level.uniform, level.tolerance, strict=True)
        uniform, tolerance = zip(*(_thin(*block) for block in blocks), strict=True)
        sources = (treeplex.Slices(typed(part)),)
        complete.append(treeplex.Level(level.parent, sources, uniform, tolerance))
    return treeplex.Treeplex(
        tuple(complete), (product,), typed(source[:1]), typed(np.zeros(1))
    )


def _thin(uniform: jax.Array, tolerance: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return a block's uniform strategy and tolerance, compact without padding."""
    if np.isinf(tolerance).any():
        return uniform, tolerance
    return uniform[:, :1], tolerance[:1]


def _summed(incidence: Incidence, numbers: np.ndarray) -> np.ndarray:
    """Return sums of numbers [W] of terminal worlds by sequence, float64 [S]."""
    starts, count = incidence.starts, len(incidence.starts) - 1
    total = np.zeros(count)
    for begin in range(0, count, _CHUNK):
        end = min(begin + _CHUNK, count)
        part = numbers[incidence.worlds[starts[begin] : starts[end]]]
        owner = np.repeat(np.arange(end - begin), np.diff(starts[begin : end + 1]))
        total[begin:end] = np.bincount(owner, part, minlength=end - begin)
    return total


def _list(sides: tuple[Side, Side], utility: np.ndarray) -> Payoffs:
    """Return the coupling in coordinates.

    Raises:
      GameTooLargeError: If there are too many pairs of sequences.
    """
    starts, sequences = zip(
        *(by_world(side.incidence, len(utility)) for side in sides), strict=True
    )
    first, second = (np.diff(some).astype(np.int64) for some in starts)
    size = int((first * second).sum())
    if size > _MOST_LISTED:
        raise GameTooLargeError(
            f"the payoffs of this game are {size:,} pairs of sequences, but at most "
            f"{_MOST_LISTED:,} can be listed; use an algorithm that does not list "
            f"them, such as cfr+"
        )
    world = np.repeat(np.arange(len(utility)), first * second)
    place = ranges(0, first * second)
    rows = sequences[0][starts[0][world] + place // second[world]]
    columns = sequences[1][starts[1][world] + place % second[world]]
    return sum_payoffs(rows, columns, utility[world])
