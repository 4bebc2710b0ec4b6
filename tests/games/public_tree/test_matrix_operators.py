"""Matrices laid out for solvers give what the matrix of their entries gives."""

import itertools

import jax
import numpy as np
import pytest

from spiel_cr.common import jax_utils
from spiel_cr.common.jax_utils import cast
from spiel_cr.games.public_tree import matrix_operators
from spiel_cr.games.public_tree.block_operators import (
    BlockRuns,
    DenseBlocks,
    DenseMatrix,
    SparseRows,
)
from spiel_cr.games.public_tree.hand_operators import (
    HandOperator,
    make_hand_operator,
)
from spiel_cr.games.public_tree.matrix_operators import make_operator
from spiel_cr.games.public_tree.payoff_matrices import (
    BoardHands,
    HandMatrix,
    PayoffMatrix,
    SparseMatrix,
    sum_entries,
)

# One program for each shape, not one for each operation.
apply = jax.jit(
    lambda laid, x: laid.apply(x), compiler_options=jax_utils.quick_options()
)


def dense(payoff_matrix: PayoffMatrix) -> np.ndarray:
    """float64 [H0, H1], by the entries one after another."""
    matrix = np.zeros(payoff_matrix.shape)
    for row, column, value in zip(*payoff_matrix.coordinates(), strict=True):
        matrix[row, column] += value
    return matrix


def all_hands(payoff_matrix: HandMatrix, player: int) -> np.ndarray:
    """float64 [H', H], what pairs weigh, whatever their cards and strengths."""
    first, second = payoff_matrix.hands[1 - player], payoff_matrix.hands[player]
    weights = np.zeros((payoff_matrix.shape[1 - player], payoff_matrix.shape[player]))
    same = first.board[:, None] == second.board
    i, j = np.nonzero(same)
    np.add.at(
        weights,
        (first.private_state[i], second.private_state[j]),
        first.weight[i] * second.weight[j],
    )
    return weights


def check(
    payoff_matrix: PayoffMatrix,
    leaves: int,
    rng: np.random.Generator,
    form: type,
    dtype: type = np.float64,
) -> None:
    """Both players' values are those of the matrix.

    The tolerance is relative to sums of |products|, each with an error of some 2^-53
    (2^-24).
    """
    matrix = dense(payoff_matrix)
    for player, own in enumerate((matrix.T, -matrix)):
        x = rng.random((leaves, own.shape[0]))
        laid = make_operator(payoff_matrix, player)
        assert type(laid) is form
        assert laid.nbytes > 0
        largest = np.abs(matrix).max(initial=0)
        if isinstance(payoff_matrix, SparseMatrix):
            assert laid.largest() == largest
            scale = x @ np.abs(own)
        else:
            # But for rounding in the bound itself.
            assert largest <= laid.largest() * (1 + 1e-12)
            # Hands that share a card are subtracted from all that there are.
            scale = x @ all_hands(payoff_matrix, player)
        # Two ways to the same sum, each with its rounding.
        tolerance = 1e-13 if dtype == np.float64 else 1e-5
        values = apply(cast(laid, dtype), x.astype(dtype))
        assert values.dtype == dtype
        assert values.shape == (leaves, own.shape[1])
        assert (np.abs(values - x @ own) <= tolerance * scale).all()


def uneven_blocks(rng: np.random.Generator) -> SparseMatrix:
    """Blocks of many sizes, single states, and states that meet nobody."""
    shape = (70, 60)
    order = rng.permutation(70), rng.permutation(60)
    rows, columns, first = [], [], [0, 0]
    for high, wide in [(9, 8), (1, 1), (1, 7), (20, 3), (8, 9), (8, 8), (1, 1), (5, 4)]:
        i, j = np.meshgrid(np.arange(high), np.arange(wide), indexing="ij")
        rows.append(order[0][first[0] + i.ravel()])
        columns.append(order[1][first[1] + j.ravel()])
        first = [first[0] + high, first[1] + wide]
    i, j = np.concatenate(rows), np.concatenate(columns)
    kept = rng.random(len(i)) < 0.8
    entries = sum_entries(i[kept], j[kept], rng.normal(size=kept.sum()), shape)
    return SparseMatrix(0, shape, entries)


@pytest.mark.parametrize(
    ("leaves", "dtype"), [(1, np.float64), (40, np.float64), (3, np.float32)]
)
def test_uneven_blocks(leaves, dtype):
    rng = np.random.default_rng(leaves)
    check(uneven_blocks(rng), leaves, rng, DenseBlocks, dtype)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (6, 1), (13, 12)])
def test_one_block(shape):
    rng = np.random.default_rng(0)
    i, j = np.indices(shape).reshape(2, -1)
    entries = sum_entries(i, j, rng.normal(size=i.size), shape)
    check(SparseMatrix(0, shape, entries), 4, rng, DenseMatrix)


def test_no_entries():
    nothing = np.zeros(0, int)
    payoff_matrix = SparseMatrix(
        0, (3, 2), sum_entries(nothing, nothing, nothing, (3, 2))
    )
    check(payoff_matrix, 2, np.random.default_rng(0), DenseBlocks)


def hands_of_both(
    rng: np.random.Generator,
    cards: int,
    *,
    boards: int = 1,
    deck: int = 12,
    strengths: int = 9,
    private_states: int | None = None,
) -> tuple[tuple[BoardHands, BoardHands], tuple[int, int]]:
    """Ranges of hands on boards of two cards, some of weight zero.

    Args:
      rng: consumed.
      cards: on hand, 1 or 2.
      boards: how many.
      deck: cards, those of the board included.
      strengths: hands of one board have at most so many: others tie.
      private_states: that hands fall into; None: one each, and some without a hand.
    """
    listed, board, strength = [], [], []
    for number in range(boards):
        left = np.setdiff1d(np.arange(deck), rng.choice(deck, 2, replace=False))
        listed.append(np.array(list(itertools.combinations(left, cards)), np.int8))
        count = len(listed[-1])
        board.append(np.full(count, 3 * number, np.int32))
        strength.append(rng.integers(strengths, size=count, dtype=np.int32))
    fields = [np.concatenate(field) for field in (board, listed, strength)]
    both, shape = [], []
    for _ in range(2):
        kept = rng.permutation(len(fields[0]))
        kept = kept[rng.random(len(kept)) < 0.8]
        size = private_states or len(kept) + 2
        private_state = rng.permutation(size)[: len(kept)]
        if private_states:
            private_state = rng.integers(private_states, size=len(kept))
        weight = rng.random(len(kept)) * (rng.random(len(kept)) < 0.9)
        both.append(
            BoardHands(
                private_state.astype(np.int32),
                *(field[kept] for field in fields),
                weight,
            )
        )
        shape.append(size)
    return (both[0], both[1]), (shape[0], shape[1])


SLOW = pytest.mark.slow


@pytest.mark.parametrize("showdown", [False, True])
@pytest.mark.parametrize(
    ("cards", "kind"),
    [
        (1, {"boards": 3, "private_states": 7}),
        pytest.param(1, {}, marks=SLOW),
        # Strengths of which one, two, or most fill a block of 64 hands or more.
        pytest.param(2, {"deck": 24, "strengths": 1}, marks=SLOW),
        (2, {"deck": 24, "strengths": 3}),
        pytest.param(2, {"deck": 24, "strengths": 10**6}, marks=SLOW),
        pytest.param(2, {"boards": 3}, marks=SLOW),
        (2, {"boards": 3, "private_states": 20}),
        pytest.param(2, {"deck": 6}, marks=SLOW),
    ],
)
def test_hands_in_order(showdown, cards, kind, monkeypatch):
    """Also where it would cost less to list the entries."""
    monkeypatch.setattr(matrix_operators, "_FEW_PAIRS", 0)
    rng = np.random.default_rng(5)
    hands, shape = hands_of_both(rng, cards, **kind)
    check(HandMatrix(0, shape, hands, showdown), 5, rng, HandOperator)


@pytest.mark.parametrize("showdown", [False, True])
def test_many_hands_are_not_listed(showdown):
    rng = np.random.default_rng(1)
    hands, shape = hands_of_both(rng, 2, deck=30, strengths=100)
    check(HandMatrix(0, shape, hands, showdown), 3, rng, HandOperator, np.float32)


@pytest.mark.parametrize("showdown", [False, True])
def test_few_hands_are_listed(showdown):
    rng = np.random.default_rng(1)
    hands, shape = hands_of_both(rng, 1, deck=8, boards=30)
    check(HandMatrix(0, shape, hands, showdown), 3, rng, DenseBlocks)


def test_hands_that_are_no_hands_of_one_deck(monkeypatch):
    """Listed twice, or strong in the hands of one player only: entries are listed."""
    monkeypatch.setattr(matrix_operators, "_FEW_PAIRS", 0)
    rng = np.random.default_rng(2)
    (first, second), shape = hands_of_both(rng, 2)
    first = first._replace(weight=first.weight + 0.1)
    stronger = first._replace(strength=first.strength + 100)
    check(HandMatrix(0, shape, (stronger, second), True), 3, rng, DenseBlocks)
    twice = BoardHands(*(np.append(field, field[:1], axis=0) for field in first))
    check(HandMatrix(0, shape, (twice, second), False), 3, rng, DenseBlocks)
    # With a single card strengths may differ: no pair is subtracted twice.
    (first, second), shape = hands_of_both(rng, 1)
    stronger = first._replace(strength=first.strength[::-1])
    check(HandMatrix(0, shape, (stronger, second), True), 3, rng, HandOperator)


def every_hand(
    rng: np.random.Generator, cards: tuple[int, int], *, showdown: bool
) -> HandMatrix:
    """All hands of six cards, of as many cards as each player has."""
    both = []
    for count in cards:
        listed = np.array(list(itertools.combinations(range(6), count)), np.int8)
        size = len(listed)
        number, strength = np.arange(size), rng.integers(5, size=size)
        fields = (number, 0 * number, listed.reshape(size, count), strength)
        both.append(BoardHands(*fields, 0.1 + rng.random(size)))
    shape = len(both[0].board), len(both[1].board)
    return HandMatrix(0, shape, (both[0], both[1]), showdown)


@pytest.mark.parametrize("showdown", [False, True])
def test_one_player_has_a_single_card(showdown, monkeypatch):
    """It is in no pair of hands subtracted twice: 0 and c are not the single card c."""
    monkeypatch.setattr(matrix_operators, "_FEW_PAIRS", 0)
    rng = np.random.default_rng(7)
    check(every_hand(rng, (2, 1), showdown=showdown), 3, rng, HandOperator)


@pytest.mark.parametrize("cards", [(2, 3), (0, 2)])
def test_other_numbers_of_cards_are_listed(cards):
    """Even if only one player has them."""
    rng = np.random.default_rng(7)
    payoff_matrix = every_hand(rng, cards, showdown=False)
    check(payoff_matrix, 3, rng, DenseMatrix)
    for player in range(2):
        assert make_hand_operator(payoff_matrix, player) is None


@pytest.mark.parametrize("showdown", [False, True])
@pytest.mark.parametrize("private_states", [None, 7])
@pytest.mark.parametrize("scale", [1e25, 1e-25])
def test_bounds_of_any_size(scale, private_states, showdown):
    """Products beyond float32, which JAX computes in by default."""
    rng = np.random.default_rng(8)
    (first, second), shape = hands_of_both(rng, 2, private_states=private_states)
    first, second = (
        hands._replace(weight=hands.weight * scale) for hands in (first, second)
    )
    payoff_matrix = HandMatrix(0, shape, (first, second), showdown)
    largest = np.abs(dense(payoff_matrix)).max()
    with jax.enable_x64(False):
        for player in range(2):
            laid = make_hand_operator(payoff_matrix, player)
            assert laid is not None
            assert largest <= laid.largest() * (1 + 1e-12) < 100 * largest


def test_sparse_rows():
    """A long chain of private states, each of which meets its neighbours."""
    rng = np.random.default_rng(3)
    i = np.arange(400)
    rows, columns = np.concatenate([i, i[1:]]), np.concatenate([i, i[:-1]])
    # A few meet more, and the last nobody.
    rows, columns = np.append(rows, [7] * 9), np.append(columns, 100 + i[:9])
    shape = (401, 402)
    entries = sum_entries(rows, columns, rng.normal(size=len(rows)), shape)
    check(SparseMatrix(0, shape, entries), 4, rng, SparseRows, np.float32)


@pytest.mark.parametrize("mixed", [False, True])
def test_neighbouring_blocks_are_one_matrix(mixed):
    """Not where they are mixed, with private states that meet nobody."""
    rng = np.random.default_rng(7)
    sizes = rng.integers(30, 50, size=(30, 2))
    begin, rows, columns = np.zeros(2, int), [], []
    for size in sizes:
        i, j = begin[:, None] + np.indices(size).reshape(2, -1)
        rows.append(i)
        columns.append(j)
        begin += size
    shape = (begin[0] + 3 * mixed, begin[1] + 2 * mixed)
    i, j = np.concatenate(rows), np.concatenate(columns)
    if mixed:
        i, j = rng.permutation(shape[0])[i], rng.permutation(shape[1])[j]
    entries = sum_entries(i, j, rng.normal(size=len(i)), shape)
    payoff_matrix = SparseMatrix(0, shape, entries)
    check(payoff_matrix, 3, rng, DenseBlocks if mixed else BlockRuns)


def test_one_long_narrow_block():
    """Where rows of products are written out."""
    rng = np.random.default_rng(4)
    i, j = np.indices((3, 4)).reshape(2, -1)
    entries = sum_entries(i, j, rng.normal(size=12), (3, 4))
    check(SparseMatrix(0, (3, 4), entries), 5000, rng, DenseMatrix)


def test_a_second_kernel_of_equal_shape_compiles_nothing():
    rng = np.random.default_rng(6)
    traced = []

    @jax.jit
    def values(laid, x):
        traced.append(x.shape)
        return laid.apply(x)

    i, j = np.indices((5, 4)).reshape(2, -1)
    for _ in range(2):
        entries = sum_entries(i, j, rng.normal(size=20), (5, 4))
        laid = make_operator(SparseMatrix(0, (5, 4), entries), 0)
        values(laid, rng.random((3, 4)))
    assert len(traced) == 1
