"""Operators of payoff matrices of hands that share a deck, without a list of entries.

The value of a fold depends only on the hands that are compatible: it is the reach of
all hands minus that of the hands with a shared card, which follows from one sum for
each card (inclusion and exclusion; Johanson et al. 2011, "Accelerating best response
calculation in large extensive games", section 5). In matrix form, it is the product
with a matrix whose rank is at most 1 plus the number of cards.

At a showdown, hands are ordered by strength and divided into blocks. Within a block all
pairs are compared. Between two blocks one hand always beats the other, or all tie, so a
block needs only the sums of the others: the sums of each block by card, a product with
the signs between blocks, and the way back. Only shared cards are subtracted, so
rounding errors are a few units in the last place of the reach of all hands on a board.

The matrices say which hands hold which cards, and which of two hands wins. Compiled
functions that iterate make them once, see `ready`; the matrices of very many boards are
made in every call, board by board, which costs less than the products.

Legend for shapes: L leaves, H private states, K boards, n blocks of one board, b hands
in one block, c cards of a hand, C number of cards that occur in hands on a board, plus
one; a prime marks the opponent's.
"""

import dataclasses
import functools
import itertools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spiel_cr.common.jax_utils import typed, unfused
from spiel_cr.games.public_tree.block_operators import (
    GATHER,
    MatrixOperator,
    columns,
    number_within,
)
from spiel_cr.games.public_tree.payoff_matrices import BoardHands, HandMatrix
from spiel_cr.games.sequence_form.packing import groups

# Possible numbers of hands in one block of a showdown. The one with the least cost is
# used: if many hands tie, some blocks are not full. On the rivers that were measured,
# 32 and 128 were never faster.
_BLOCKS = (48, 64, 96)

# Rooms for hands in batches are multiples of this, which XLA multiplies faster.
_SIDE = 8

# Boards of one product. Measured on a turn and a river: a tenth faster than one by one;
# 16 are not.
_TOGETHER = 4

# Most numbers of dense matrices that a compiled function keeps for a payoff matrix.
KEPT = 1 << 25


class PublicTreeSums(NamedTuple):
    """Sums of values over the hands that belong to one private state.

    Attributes:
      slots: One int32 [w, r] for each number w of hands: the slots of private states
        that have w hands, padded by the zero after all slots; empty if every private
        state has one hand.
      place: Place of each private state's sum, int32 [H]: among those of `slots` and
        one zero, or among the slots themselves; None: private states and slots are the
        same.
    """

    slots: tuple[jax.Array, ...]
    place: jax.Array | None

    def apply(self, values: jax.Array) -> jax.Array:
        """Return the sums of values [L, slots], float [L, H]."""
        if self.place is None:
            return values
        zero = jnp.zeros((len(values), 1), values.dtype)
        values = jnp.concatenate([values, zero], axis=1)
        if self.slots:
            parts = [
                functools.reduce(
                    operator.add, [columns(values, slot) for slot in slots]
                )
                for slots in self.slots
            ]
            values = jnp.concatenate([*parts, zero], axis=1)
        return columns(values, self.place)

    def largest(self, values: np.ndarray) -> float:
        """Return the largest sum, computed with numpy.

        Args:
          values: Value of each slot, at least 0, float64 [slots].
        """
        values = np.append(values, 0.0)
        sums = [values[np.asarray(slots)].sum(axis=0) for slots in self.slots]
        return float(max(some.max(initial=0) for some in sums or [values]))


class Placed(NamedTuple):
    """One player's hands, arranged in k boards or blocks.

    Attributes:
      weight: Weight of each hand, float [k, b]; 0 at padding.
      card: The place of each card among those of its board, from 1, int8 [k, b, c].
      strength: Rank of each hand in the order of all strengths, int32 [k, b].
    """

    weight: jax.Array
    card: jax.Array
    strength: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Folds(MatrixOperator):
    """Operator of compatible hands with weights, for folds; see `MatrixOperator`.

    Attributes:
      private_state: The opponent's private state of each hand, int32 [K, b']; 0 at
        padding.
      opponent_placed: The opponent's hands.
      player_placed: The player's hands, with signed weights.
      twin: The opponent's private state with the same two cards, which were subtracted
        twice, int32 [K, b]; None if a player's hands are single cards.
      twin_weight: The player's own utility against it, float [K, b]; 0 if it does not
        exist.
      sums: Sums over the hands of a private state.
      count: C.
      kept: Result of `_matrices`; None if it is computed in each call.
    """

    private_state: jax.Array
    opponent_placed: Placed
    player_placed: Placed
    twin: jax.Array | None
    twin_weight: jax.Array | None
    sums: PublicTreeSums
    count: int = dataclasses.field(metadata={"static": True})
    kept: tuple[jax.Array, jax.Array] | None = None

    def apply(self, x: jax.Array) -> jax.Array:
        """Return leaf values; see `MatrixOperator`."""
        x = jnp.asarray(x)
        if self.kept is None:
            on_board = functools.partial(_folds_on_board, x, self.count)
            parts = self.private_state, self.opponent_placed, self.player_placed
            values = lax.map(on_board, parts, batch_size=_TOGETHER)
        else:
            into, back = self.kept
            hands = columns(x, self.private_state).transpose(1, 2, 0)
            by_card = jnp.einsum("kil,kic->klc", hands, into)
            values = jnp.einsum("klc,kcj->klj", by_card, back)
        values = values.transpose(1, 0, 2)
        if self.twin is not None and self.twin_weight is not None:
            values += columns(x, self.twin) * self.twin_weight[None]
        return self.sums.apply(values.reshape(len(x), -1))

    def largest(self) -> float:
        """Return a bound on the absolute entries; see `MatrixOperator`."""
        return _bound(
            self.private_state,
            self.opponent_placed.weight,
            self.player_placed.weight,
            self.sums,
        )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Showdowns(MatrixOperator):
    """Operator of showdowns with weights; see `MatrixOperator`.

    Attributes:
      private_state: The opponent's private state of each hand, int32 [K, n, b']; 0 at
        padding.
      opponent_placed: The opponent's hands, [K, n, ...].
      player_placed: The player's hands, in the same arrangement.
      sign: 1 if the player's hands beat those of the opponent's block, -1 if they lose,
        0 within a block and if all tie, float [K, n, n'].
      sums: Sums over the hands of a private state.
      count: C.
      kept: Result of `_matrices`; None if it is computed in each call.
    """

    private_state: jax.Array
    opponent_placed: Placed
    player_placed: Placed
    sign: jax.Array
    sums: PublicTreeSums
    count: int = dataclasses.field(metadata={"static": True})
    kept: tuple[jax.Array, jax.Array] | None = None

    def apply(self, x: jax.Array) -> jax.Array:
        """Return leaf values; see `MatrixOperator`."""
        x = jnp.asarray(x)
        parts = (
            self.private_state,
            self.opponent_placed,
            self.player_placed,
            self.kept,
            self.sign,
        )
        # What belongs to one board stays in the processor's cache.
        on_board = functools.partial(_on_board, x, self.count)
        values = lax.map(on_board, parts, batch_size=_TOGETHER)
        values = values.reshape(-1, *values.shape[2:]).transpose(1, 0, 2)
        return self.sums.apply(values.reshape(len(x), -1))

    def largest(self) -> float:
        """Return a bound on the absolute entries; see `MatrixOperator`."""
        private_state, opponent_placed, player_placed = (
            np.asarray(array).reshape(len(self.sign), -1)
            for array in (
                self.private_state,
                self.opponent_placed.weight,
                self.player_placed.weight,
            )
        )
        return _bound(private_state, opponent_placed, player_placed, self.sums)


def _folds_on_board(x: jax.Array, count: int, parts: tuple[Any, ...]) -> jax.Array:
    """Return values of the hands of a board at folds, float [L, b]."""
    private_state, opponent_placed, player_placed = parts
    into, back = _matrices(opponent_placed, player_placed, count)
    by_card = jnp.einsum("li,ic->lc", columns(x, private_state), into)
    return jnp.einsum("lc,cj->lj", by_card, back)


def _on_board(x: jax.Array, count: int, parts: tuple[Any, ...]) -> jax.Array:
    """Return values of the hands of a board at showdowns, float [n, L, b]."""
    private_state, opponent_placed, player_placed, kept, sign = parts
    into, back = kept or _matrices(opponent_placed, player_placed, count, showdown=True)
    hands = columns(x, private_state).transpose(1, 0, 2)
    by_card = jnp.einsum("nli,nic->nlc", hands, into)
    below = jnp.einsum("ab,bs->as", sign, by_card.reshape(len(sign), -1))
    both = jnp.concatenate([below.reshape(by_card.shape), hands], axis=2)
    return jnp.einsum("nlc,ncj->nlj", both, back)


def ready(arrays: Any) -> Any:
    """Add dense matrices to the payoff matrices of hands that are not large.

    Args:
      arrays: A tree of arrays, such as a treeplex, that may contain such operators.

    Returns:
      The same tree as compiled functions use it.
    """

    def with_matrices(part: Any) -> Any:
        if not isinstance(part, Folds | Showdowns):
            return part
        wide, high = (
            part.opponent_placed.weight.shape[-1],
            part.player_placed.weight.shape[-1],
        )
        showdown = isinstance(part, Showdowns)
        numbers = part.count * (wide + high) + showdown * wide * high
        if part.private_state.size // wide * numbers > KEPT:
            return part
        kept = _matrices(
            part.opponent_placed, part.player_placed, part.count, showdown=showdown
        )
        return dataclasses.replace(part, kept=kept)

    payoff_matrices = Folds, Showdowns
    return jax.tree.map(
        with_matrices, arrays, is_leaf=lambda part: isinstance(part, payoff_matrices)
    )


def _matrices(
    opponent_placed: Placed,
    player_placed: Placed,
    count: int,
    *,
    showdown: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Make the matrices by which reaches of hands are multiplied.

    Args:
      opponent_placed: The opponent's hands, with any axes before those of one board
        or block.
      player_placed: The player's hands.
      count: C.
      showdown: Whether to compare hands of one block, too.

    Returns:
      [..., b', C], the weight of each of the opponent's hands, at place 0 and at its
      cards; [..., C, b], that of each of the player's hands, negative at cards, and
      below it, if `showdown`, [..., b', b], the weighted result of two hands that share
      no card.
    """
    into = _holds(opponent_placed, count, 1) * opponent_placed.weight[..., None]
    back = (
        _holds(player_placed, count, -1) * player_placed.weight[..., None]
    ).swapaxes(-1, -2)
    if showdown:
        dtype = back.dtype
        first, second = (
            player_placed.strength[..., None, :],
            opponent_placed.strength[..., :, None],
        )
        wins = (first > second).astype(dtype) - (first < second).astype(dtype)
        cards = itertools.product(_cards(player_placed), _cards(opponent_placed))
        same = [a[..., None, :] == b[..., :, None] for a, b in cards]
        fit = ~functools.reduce(operator.or_, same)
        pairs = (
            player_placed.weight[..., None, :] * opponent_placed.weight[..., :, None]
        )
        back = unfused(_stacked, back, wins * fit * pairs)
    return into, back


def _stacked(above: jax.Array, below: jax.Array) -> jax.Array:
    return jnp.concatenate([above, below], axis=-2)


def _holds(hands: Placed, count: int, sign: int) -> jax.Array:
    """Return float [..., b, C], `sign` at the cards of each hand, and 1 at place 0."""
    place = jnp.arange(count, dtype=hands.card.dtype)
    place = place.reshape((1,) * hands.weight.ndim + (count,))
    is_held = [card[..., None] == place for card in _cards(hands)]
    held = functools.reduce(operator.or_, is_held).astype(hands.weight.dtype)
    return jnp.where(place == 0, 1, sign * held)


def _cards(hands: Placed) -> list[jax.Array]:
    """Return int8 [..., b] for each card of a hand; an unrolled loop is fast."""
    return [hands.card[..., i] for i in range(hands.card.shape[-1])]


def make_hand_operator(matrix: HandMatrix, player: int) -> Folds | Showdowns | None:
    """Make the operator of one player's values of hands with one or two cards each.

    Returns:
      The operator, or None if this representation does not support the hands: other
      numbers of cards, a hand that is listed twice, or two cards whose strength differs
      between the players.
    """
    player_hands, opponent = (
        matrix.hands[player],
        matrix.hands[1 - player],
    )
    player_hands, opponent = _on_shared_boards(player_hands, opponent)
    if not len(player_hands.board):
        return None
    if any(hands.cards.shape[1] not in (1, 2) for hands in (player_hands, opponent)):
        return None
    keys = _keys(player_hands, opponent)
    if keys is None:
        return None
    if not matrix.showdown:
        return _folds(
            player_hands,
            opponent,
            keys,
            matrix.shape[player],
            1.0 - 2.0 * player,
        )
    if _of_two_cards(player_hands, opponent) and not _agree(
        player_hands, opponent, keys
    ):
        return None
    return _showdowns(player_hands, opponent, matrix.shape[player])


def hands_cost(matrix: HandMatrix, player: int) -> int:
    """Return the approximate cost of `make_hand_operator` per leaf, in products."""
    player_hands, opponent = _on_shared_boards(
        matrix.hands[player], matrix.hands[1 - player]
    )
    if not len(player_hands.board):
        return 0
    boards = int(player_hands.board.max()) + 1
    most = max(
        int(np.bincount(hands.board, minlength=boards).max())
        for hands in (player_hands, opponent)
    )
    cards = int(player_hands.cards.max(initial=-1)) + 2
    width = _round_up(min(most, _BLOCKS[0]))
    blocks = -(-most // width)
    product = 2 * most * cards
    if matrix.showdown:
        product = blocks * (blocks * cards + width * (2 * cards + width))
    gathered = boards * (4 * most if matrix.showdown else 3 * most) + len(
        player_hands.board
    )
    return boards * product + GATHER * gathered


def _on_shared_boards(
    player_hands: BoardHands, opponent: BoardHands
) -> tuple[BoardHands, BoardHands]:
    """Return hands with weight on boards that both players have, with new numbers."""
    player_hands, opponent = (
        BoardHands(*(np.asarray(field)[hands.weight != 0] for field in hands))
        for hands in (player_hands, opponent)
    )
    shared = np.intersect1d(player_hands.board, opponent.board)
    player_hands, opponent = (
        BoardHands(*(field[np.isin(hands.board, shared)] for field in hands))
        for hands in (player_hands, opponent)
    )
    return (
        player_hands._replace(board=np.searchsorted(shared, player_hands.board)),
        opponent._replace(board=np.searchsorted(shared, opponent.board)),
    )


def _of_two_cards(hands: BoardHands, opponent: BoardHands) -> bool:
    """Return whether two hands can share two cards, which are then subtracted twice."""
    return hands.cards.shape[1] == opponent.cards.shape[1] == 2


def _keys(player_hands: BoardHands, opponent: BoardHands) -> list[np.ndarray] | None:
    """Return for each player int64 [hands], a number for each board and set of cards.

    None if a hand holds a card twice, or a hand of two cards is listed twice.
    """
    keys = []
    for hands in (player_hands, opponent):
        cards = np.sort(hands.cards.astype(np.int64), axis=1)
        if (cards[:, 1:] == cards[:, :-1]).any() or (cards < 0).any():
            return None
        key = hands.board.astype(np.int64)
        for column in cards.T:
            key = key << 8 | column
        if len(np.unique(key)) < len(key):
            return None
        keys.append(key)
    return keys


def _agree(hands: BoardHands, opponent: BoardHands, keys: list[np.ndarray]) -> bool:
    """Return whether the same cards are equally strong in both players' hands."""
    _, i, j = np.intersect1d(keys[0], keys[1], True, True)
    return bool((hands.strength[i] == opponent.strength[j]).all())


def _folds(
    hands: BoardHands,
    opponent: BoardHands,
    keys: list[np.ndarray],
    num_private_states: int,
    sign: float,
) -> Folds:
    boards = 1 + int(hands.board.max())
    card, count = _card_places(hands, opponent, boards)
    slot, width = _in_order(hands.board)
    other_slot, other_width = _in_order(opponent.board)
    weighted = hands._replace(weight=sign * hands.weight)
    player_placed = _placed(weighted, card[0], hands.board, slot, (boards, width))
    shape = boards, other_width
    opponent_placed = _placed(opponent, card[1], opponent.board, other_slot, shape)
    private_state = np.zeros(shape, np.int32)
    private_state[opponent.board, other_slot] = opponent.private_state
    twin = twin_weight = None
    if _of_two_cards(hands, opponent):
        twin = np.zeros((boards, width), np.int32)
        twin_weight = np.zeros((boards, width))
        _, i, j = np.intersect1d(keys[0], keys[1], True, True)
        twin[hands.board[i], slot[i]] = opponent.private_state[j]
        twin_weight[hands.board[i], slot[i]] = (
            sign * hands.weight[i] * opponent.weight[j]
        )
    return Folds(
        typed(private_state),
        opponent_placed,
        player_placed,
        None if twin is None else typed(twin),
        None if twin_weight is None else typed(twin_weight),
        _private_state_sums(
            hands, hands.board * width + slot, boards * width, num_private_states
        ),
        count,
    )


def _showdowns(
    hands: BoardHands, opponent: BoardHands, num_private_states: int
) -> Showdowns:
    boards = 1 + int(hands.board.max())
    card, count = _card_places(hands, opponent, boards)

    def cost(most: int) -> int:
        """Return the cost per board and leaf with blocks of at most this many hands."""
        blocks = _strength_blocks(hands, opponent, boards, most)[2]
        products = most * count + blocks * count + (count + most) * most
        return blocks * (products + 2 * GATHER * most)

    most = min(_BLOCKS, key=cost)
    block, level, per_board = _strength_blocks(hands, opponent, boards, most)
    # Blocks of board k are numbered k · per_board + 0, 1, 2, ...
    rank = [number_within(part) for part in block]
    high, wide = (_round_up(1 + int(part.max())) for part in rank)
    size = boards * per_board
    shape = boards, per_board, wide
    player_placed = _placed(
        hands, card[0], block[0], rank[0], (boards, per_board, high)
    )
    opponent_placed = _placed(opponent, card[1], block[1], rank[1], shape)
    private_state = np.zeros((size, wide), np.int32)
    private_state[block[1], rank[1]] = opponent.private_state
    sign = np.sign(level[:, :, None] - level[:, None, :]).astype(np.float64)
    return Showdowns(
        typed(private_state.reshape(shape)),
        opponent_placed,
        player_placed,
        typed(sign),
        _private_state_sums(
            hands, block[0] * high + rank[0], size * high, num_private_states
        ),
        count,
    )


def _placed(
    hands: BoardHands,
    card: np.ndarray,
    block: np.ndarray,
    slot: np.ndarray,
    shape: tuple[int, ...],
) -> Placed:
    """Arrange hands in an array of some shape, whose last axis contains the slots."""
    size = int(np.prod(shape[:-1])), shape[-1]
    weight, strength = np.zeros(size), np.zeros(size, np.int32)
    cards = np.zeros((*size, card.shape[1]), np.int8)
    weight[block, slot] = hands.weight
    cards[block, slot] = card
    strength[block, slot] = hands.strength
    return Placed(
        typed(weight.reshape(shape)),
        typed(cards.reshape(*shape, -1)),
        typed(strength.reshape(shape)),
    )


def _card_places(
    player_hands: BoardHands, opponent: BoardHands, boards: int
) -> tuple[tuple[np.ndarray, np.ndarray], int]:
    """Number the cards of each board from 1.

    Returns:
      For each player int [hands, c], and the largest number of cards of a board plus
      one.
    """
    cards = 1 + max(int(player_hands.cards.max()), int(opponent.cards.max()))
    used = np.zeros((boards, cards), bool)
    for hands in (player_hands, opponent):
        used[hands.board[:, None], hands.cards] = True
    place = np.cumsum(used, axis=1)
    first, second = (place[h.board[:, None], h.cards] for h in (player_hands, opponent))
    return (first, second), 1 + int(place[:, -1].max())


def _in_order(board: np.ndarray) -> tuple[np.ndarray, int]:
    """Return each hand's index on its board, and the number of slots per board."""
    slot = number_within(board)
    width = 1 + int(slot.max())
    return slot, width if board.max() == 0 else _round_up(width)


def _round_up(size: int) -> int:
    """Return the next multiple of `_SIDE`."""
    return -(-size // _SIDE) * _SIDE


def _strength_blocks(
    player_hands: BoardHands, opponent: BoardHands, boards: int, room: int
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, int]:
    """Divide the hands of each board into blocks of neighbouring strengths.

    Hands of different blocks have one common result: a strength that fills more than
      one
    block shares none of them with other strengths.

    Args:
      player_hands: The player's hands.
      opponent: The opponent's hands.
      boards: Number of boards.
      room: Number of hands of each player in one block.

    Returns:
      For each player int64 [hands], the block; int64 [boards, n], the rank of each
      block among the strengths of its board, equal if all hands tie; and n.
    """
    # Strengths in order, board by board.
    strengths, number = np.unique(
        np.concatenate([_board_strength(hands) for hands in (player_hands, opponent)]),
        return_inverse=True,
    )
    numbers = number[: len(player_hands.board)], number[len(player_hands.board) :]
    sizes = [np.bincount(part, minlength=len(strengths)) for part in numbers]
    counts = np.maximum(sizes[0], sizes[1])
    board = strengths >> 32
    first = np.zeros(len(strengths), np.int64)
    offset = [np.zeros(len(strengths), np.int64) for _ in range(2)]
    levels: list[list[int]] = [[] for _ in range(boards)]
    shared, filled = False, [0, 0]
    for s in range(len(strengths)):
        board_levels = levels[board[s]]
        size = sizes[0][s], sizes[1][s]
        fits = max(filled[0] + size[0], filled[1] + size[1]) <= room
        if not (shared and board_levels and fits):
            board_levels.append(s)
            filled = [0, 0]
        first[s] = len(board_levels) - 1
        offset[0][s], offset[1][s] = filled
        filled = [filled[0] + size[0], filled[1] + size[1]]
        # Blocks of one strength only, which are full.
        shared = bool(counts[s] <= room)
        board_levels.extend([s] * (-(-int(counts[s]) // room) - 1))
    most = max(len(board_levels) for board_levels in levels)
    level = np.zeros((boards, most), np.int64)
    for k, board_levels in enumerate(levels):
        level[k, : len(board_levels)] = board_levels
    blocks = []
    for part, begins, hands in zip(
        numbers, offset, (player_hands, opponent), strict=True
    ):
        within = begins[part] + number_within(part)
        blocks.append(hands.board * most + first[part] + within // room)
    return (blocks[0], blocks[1]), level, most


def _board_strength(hands: BoardHands) -> np.ndarray:
    """Return ranks in the order of boards, then of strengths, int64 [hands]."""
    return hands.board.astype(np.int64) << 32 | (
        hands.strength.astype(np.int64) + (1 << 31)
    )


def _private_state_sums(
    hands: BoardHands, slot: np.ndarray, num_slots: int, num_private_states: int
) -> PublicTreeSums:
    """Make the sums that turn values of slots into values of private states."""
    order = np.argsort(hands.private_state, kind="stable")
    counts = np.bincount(hands.private_state, minlength=num_private_states)
    if counts.max() <= 1:
        place = np.full(num_private_states, num_slots, np.int32)
        place[hands.private_state] = slot
        same = num_private_states == num_slots and (place == np.arange(num_slots)).all()
        return PublicTreeSums((), None if same else typed(place))
    begins = np.cumsum(counts) - counts
    by_count = np.argsort(-counts, kind="stable")
    slot = np.append(slot[order], num_slots).astype(np.int32)
    place = np.full(num_private_states, np.count_nonzero(counts), np.int32)
    sums, size = [], 0
    for members, width in groups(counts[by_count], 0.0):
        private_states = by_count[members]
        entry = begins[private_states] + np.arange(width)[:, None]
        entry = np.where(np.arange(width)[:, None] < counts[private_states], entry, -1)
        sums.append(typed(slot[entry]))
        place[private_states] = size + np.arange(len(private_states), dtype=np.int32)
        size += len(private_states)
    return PublicTreeSums(tuple(sums), typed(place))


def _bound(
    private_state: np.ndarray | jax.Array,
    weight: np.ndarray | jax.Array,
    player_weight: np.ndarray | jax.Array,
    sums: PublicTreeSums,
) -> float:
    """Return the largest weight of a pair of private states of both players.

    Args:
      private_state: The opponent's private states, int32 [K, hands'].
      weight: Weights of the opponent's hands, float [K, hands'].
      player_weight: Weights of the player's hands, of either sign, float [K, hands].
      sums: Sums over the player's hands.
    """
    private_state, weight = np.asarray(private_state), np.abs(np.asarray(weight))
    heaviest = [
        np.bincount(private_states, weights).max()
        for private_states, weights in zip(private_state, weight, strict=True)
    ]
    bounds = np.abs(np.asarray(player_weight, np.float64)) * np.array(heaviest)[:, None]
    return sums.largest(bounds.reshape(-1))
