"""Operators of payoff matrices of hands that share a deck, without a list of entries.

A hand meets all hands of the opponent except those that share a card with it. Sums over
all hands, minus the sums over the hands with each of the cards, therefore give every
value (inclusion and exclusion; Johanson et al. 2011, "Accelerating best response
calculation in large extensive games", section 5). At a fold, these are the sums of the
opponent's reach. At a showdown, the hands are ordered by strength, and the sums are
prefix sums: let P(i) be the reach of the i weakest hands minus half of the reach of all
n hands, and Q_c the same among the hands that hold card c. If i hands are weaker than a
hand with the cards a and b, and n - j are stronger, then the reach that it beats minus
the reach that beats it is P(i) + P(j) - Q_a(i_a) - Q_a(j_a) - Q_b(i_b) - Q_b(j_b).

The hands of a board form *columns*: one for each card, and further ones for parts of
the order of all hands. Each row of one array thus contains a hand of each column, and
all prefix sums are a single loop over the rows. Leaves are the minor axis, so that the
additions are vectorised. Boards are processed one after another, and the arrays of one
board stay in the processor's cache. The errors are a few units in the last place of the
reach of all hands on a board.

Legend for shapes: L leaves, H private states, K boards, n hands on one board, m rows
and C columns of one board, c cards of a hand; a prime marks the opponent's.
"""

import dataclasses
import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spiel_cr.common.jax_utils import typed
from spiel_cr.games.public_tree.block_operators import (
    MatrixOperator,
    columns,
    number_within,
    rows,
)
from spiel_cr.games.public_tree.payoff_matrices import BoardHands, HandMatrix
from spiel_cr.games.sequence_form.packing import groups


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


class HandSums(NamedTuple):
    """Hands of both players on each board.

    Attributes:
      private_state: The opponent's private state at each row and column, int32 [K, m,
        C]; 0 at padding.
      opponent_weight: Weight of the opponent's hands, float [K, m, C]; 0 at padding.
      weight: The player's weights, with the sign of its utility, float [K, n]; 0 at
        padding.
      sums: Places of the sums that belong to each of the player's hands: at a showdown
        int32 [K, 2 + 2c, n], prefix sums over all hands, then over those with each
        card, first of weaker hands, then of hands that are not stronger; at a fold
        int32 [K, c, n], the columns of the cards.
      twin: For folds, the opponent's private state with the same two cards, which are
        subtracted twice, int32 [K, n], and its weight, float [K, n]; 0 if the opponent
        has no such hand. At a showdown, both tie, and this is None.
    """

    private_state: jax.Array
    opponent_weight: jax.Array
    weight: jax.Array
    sums: jax.Array
    twin: tuple[jax.Array, jax.Array] | None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class HandOperator(MatrixOperator):
    """Operator of folds or showdowns of hands; see `MatrixOperator`.

    Attributes:
      boards: Hands of both players, board by board.
      private_states: Sums over the hands of a private state.
      num_cards: Number of columns that belong to cards.
      showdown: Whether strengths are compared.
    """

    boards: HandSums
    private_states: PublicTreeSums
    num_cards: int = dataclasses.field(metadata={"static": True})
    showdown: bool = dataclasses.field(metadata={"static": True})

    def apply(self, x: jax.Array) -> jax.Array:
        """Return leaf values; see `MatrixOperator`."""
        x = jnp.asarray(x)
        on_board = _showdowns if self.showdown else _folds
        values = lax.map(functools.partial(on_board, x.T, self.num_cards), self.boards)
        return self.private_states.apply(values.reshape(-1, len(x)).T)

    def largest(self) -> float:
        """Return a bound on the absolute entries; see `MatrixOperator`."""
        # The columns after those of the cards contain each hand once.
        heaviest = [
            np.bincount(states.ravel(), weights.ravel()).max()
            for states, weights in zip(
                np.asarray(self.boards.private_state)[..., self.num_cards :],
                np.abs(self.boards.opponent_weight)[..., self.num_cards :],
                strict=True,
            )
        ]
        weight = np.abs(np.asarray(self.boards.weight, np.float64))
        return self.private_states.largest((weight.T * np.array(heaviest)).T.ravel())


def _folds(x: jax.Array, num_cards: int, board: HandSums) -> jax.Array:
    """Return the values of the player's hands on a board, float [n, L].

    Args:
      x: The opponent's reach, float [H', L].
      num_cards: Number of columns that belong to cards.
      board: Hands of the board, without the axis of boards.
    """
    by_column = (rows(x, board.private_state) * board.opponent_weight[..., None]).sum(0)
    values = by_column[num_cards:].sum(0)[None]
    for card in board.sums:
        values = values - rows(by_column, card)
    if board.twin is not None:
        private_state, weight = board.twin
        values = values + rows(x, private_state) * weight[:, None]
    return values * board.weight[:, None]


def _showdowns(x: jax.Array, num_cards: int, board: HandSums) -> jax.Array:
    """Return the values of the player's hands on a board; see `_folds`."""

    def add_row(total: jax.Array, row: Any) -> tuple[jax.Array, jax.Array]:
        private_state, weight = row
        return total + rows(x, private_state) * weight[:, None], total

    private_state, weight = board.private_state, board.opponent_weight
    nothing = jnp.zeros((private_state.shape[1], x.shape[1]), x.dtype)
    by_column, sums = lax.scan(add_row, nothing, (private_state, weight))
    of_parts = by_column[num_cards:]
    until = jnp.cumsum(of_parts, axis=0)
    shift = jnp.concatenate(
        [-by_column[:num_cards] / 2, until - of_parts - until[-1:] / 2]
    )
    sums = (sums + shift[None]).reshape(-1, x.shape[1])
    values = rows(sums, board.sums[0]) + rows(sums, board.sums[1])
    for place in board.sums[2:]:
        values = values - rows(sums, place)
    return values * board.weight[:, None]


def make_hand_operator(matrix: HandMatrix, player: int) -> HandOperator | None:
    """Make the operator of one player's values of hands with one or two cards each.

    Returns:
      The operator, or None if this representation does not support the hands: other
      numbers of cards, a hand that is listed twice, or two cards whose strength differs
      between the players.
    """
    hands, opponent = _on_shared_boards(matrix.hands[player], matrix.hands[1 - player])
    if not len(hands.board):
        return None
    if any(side.cards.shape[1] not in (1, 2) for side in (hands, opponent)):
        return None
    pairs = same_hands(hands, opponent, showdown=matrix.showdown)
    if pairs is None:
        return None
    same, others = pairs
    order, slot = _order(hands, opponent), number_within(hands.board)
    shape = 1 + int(hands.board.max()), 1 + int(slot.max())
    weight, twin_weight = np.zeros(shape), np.zeros(shape)
    sign = 1.0 if matrix.showdown else 1.0 - 2.0 * player
    weight[hands.board, slot] = sign * hands.weight
    twin = np.zeros(shape, np.int32)
    twin[hands.board[same], slot[same]] = opponent.private_state[others]
    twin_weight[hands.board[same], slot[same]] = opponent.weight[others]
    sums = order.below if matrix.showdown else order.held
    places = np.zeros((shape[0], sums.shape[1], shape[1]), np.int32)
    places[hands.board, :, slot] = sums
    boards = HandSums(
        typed(order.private_state),
        typed(order.weight),
        typed(weight),
        typed(places),
        None if matrix.showdown else (typed(twin), typed(twin_weight)),
    )
    private_states = _private_state_sums(
        hands, hands.board * shape[1] + slot, weight.size, matrix.shape[player]
    )
    return HandOperator(boards, private_states, order.num_cards, matrix.showdown)


class _Order(NamedTuple):
    """The opponent's hands by column, and the places of the sums for the player's.

    Attributes:
      private_state, weight: As in `HandSums`.
      num_cards: Number of columns that belong to cards.
      held: Columns of the cards of each of the player's n hands, int64 [n, c].
      below: Places of its prefix sums at a showdown, see `HandSums`, int64 [n, 2 + 2c].
    """

    private_state: np.ndarray
    weight: np.ndarray
    num_cards: int
    held: np.ndarray
    below: np.ndarray


def _order(hands: BoardHands, opponent: BoardHands) -> _Order:
    """Arrange the opponent's hands in columns, in the order of their strengths."""
    both = hands, opponent
    cards = np.unique(np.concatenate([side.cards.ravel() for side in both]))
    held = [np.searchsorted(cards, side.cards) for side in both]
    levels = np.unique(np.concatenate([side.strength for side in both]))
    # Each hand belongs to the group of all hands of its board, which is the first one,
    # and to those of its cards. Keys number groups and, within them, strengths.
    keys = []
    for side, column in zip(both, held, strict=True):
        group = side.board[:, None].astype(np.int64) * (1 + len(cards))
        group = np.concatenate([group, group + 1 + column], axis=1)
        rank = np.searchsorted(levels, side.strength)[:, None]
        keys.append((group * len(levels), rank))
    begin, rank = keys[1]
    by_key = np.argsort((begin + rank).ravel(), kind="stable")
    ordered = (begin + rank).ravel()[by_key]
    # The number of each hand in its group.
    number = np.empty(begin.shape, np.int64)
    number.ravel()[by_key] = np.arange(by_key.size)
    number -= np.searchsorted(ordered, begin)
    height = 2 + int(number[:, 1:].max())
    width = len(cards) + 1 + (1 + int(number[:, 0].max())) // height

    def places(number: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Return the places of numbers [n, 1 + c], those of all hands first."""
        part, row = np.divmod(number[:, :1], height)
        every = row * width + len(cards) + part
        return np.concatenate([every, number[:, 1:] * width + column], axis=1)

    boards = 1 + int(opponent.board.max())
    private_state = np.zeros((boards, height * width), np.int32)
    weight = np.zeros((boards, height * width))
    place = opponent.board[:, None], places(number, held[1])
    private_state[place] = opponent.private_state[:, None]
    weight[place] = opponent.weight[:, None]
    begin, rank = keys[0]
    below = [
        places(
            np.searchsorted(ordered, begin + rank, side)
            - np.searchsorted(ordered, begin),
            held[0],
        )
        for side in ("left", "right")
    ]
    first, second = below
    return _Order(
        private_state.reshape(boards, height, width),
        weight.reshape(boards, height, width),
        len(cards),
        held[0],
        np.concatenate(
            [first[:, :1], second[:, :1], first[:, 1:], second[:, 1:]], axis=1
        ),
    )


def _on_shared_boards(
    player_hands: BoardHands, opponent: BoardHands
) -> tuple[BoardHands, BoardHands]:
    """Return hands with weight on boards that both players have, with new numbers."""
    player_hands = player_hands.select(player_hands.weight != 0)
    opponent = opponent.select(opponent.weight != 0)
    shared = np.intersect1d(player_hands.board, opponent.board)
    player_hands = player_hands.select(np.isin(player_hands.board, shared))
    opponent = opponent.select(np.isin(opponent.board, shared))
    return (
        player_hands._replace(board=np.searchsorted(shared, player_hands.board)),
        opponent._replace(board=np.searchsorted(shared, opponent.board)),
    )


def same_hands(
    hands: BoardHands, opponent: BoardHands, *, showdown: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the places of two cards that both players can hold on the same board.

    Returns:
      Indices of the player's hands and of the opponent's; or None if a hand holds a
      card twice or is listed twice, or if the players' strengths differ at a showdown.
    """
    keys = []
    for side in (hands, opponent):
        cards = np.sort(side.cards.astype(np.int64), axis=1)
        if (cards[:, 1:] == cards[:, :-1]).any() or (cards < 0).any():
            return None
        key = side.board.astype(np.int64)
        for column in cards.T:
            key = key << 8 | column
        if len(np.unique(key)) < len(key):
            return None
        keys.append(key)
    _, same, others = np.intersect1d(keys[0], keys[1], True, True)
    if hands.cards.shape[1] == 1 or opponent.cards.shape[1] == 1:
        same = others = same[:0]  # They share at most one card.
    if showdown and (hands.strength[same] != opponent.strength[others]).any():
        return None
    return same, others


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
