"""Matrix operators of solvers equal the dense matrices of their entries."""

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

# Compile one function for each shape instead of one for each operation.
apply = jax.jit(
    lambda operator, x: operator.apply(x), compiler_options=jax_utils.quick_options()
)


def dense(payoff_matrix: PayoffMatrix) -> np.ndarray:
    """Return the matrix of all entries, float64 [H0, H1]."""
    matrix = np.zeros(payoff_matrix.shape)
    for row, column, value in zip(*payoff_matrix.coordinates(), strict=True):
        matrix[row, column] += value
    return matrix


def all_hands(payoff_matrix: HandMatrix, player: int) -> np.ndarray:
    """Return the weights of all pairs of hands, float64 [H', H], without blocking."""
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
    """Check that both players' values equal those of the dense matrix.

    The tolerance is relative to sums of absolute products, each of which has a relative
    error of about 2^-53 (float64) or 2^-24 (float32).
    """
    matrix = dense(payoff_matrix)
    for player, own in enumerate((matrix.T, -matrix)):
        x = rng.random((leaves, own.shape[0]))
        operator = make_operator(payoff_matrix, player)
        assert type(operator) is form
        assert operator.nbytes > 0
        largest = np.abs(matrix).max(initial=0)
        if isinstance(payoff_matrix, SparseMatrix):
            assert operator.largest() == largest
            scale = x @ np.abs(own)
        else:
            # The bound itself is rounded.
            assert largest <= operator.largest() * (1 + 1e-12)
            # The operator subtracts hands that share a card from sums over all hands.
            scale = x @ all_hands(payoff_matrix, player)
        # Both ways to compute the sum have rounding errors.
        tolerance = 1e-13 if dtype == np.float64 else 1e-5
        values = apply(cast(operator, dtype), x.astype(dtype))
        assert values.dtype == dtype
        assert values.shape == (leaves, own.shape[1])
        assert (np.abs(values - x @ own) <= tolerance * scale).all()


def uneven_blocks(rng: np.random.Generator) -> SparseMatrix:
    """Return blocks of many sizes, with private states that have no opponents."""
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
def test_blocks_of_many_sizes_are_dense_blocks(leaves, dtype):
    rng = np.random.default_rng(leaves)
    check(uneven_blocks(rng), leaves, rng, DenseBlocks, dtype)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (6, 1), (13, 12)])
def test_one_block_is_a_dense_matrix(shape):
    rng = np.random.default_rng(0)
    i, j = np.indices(shape).reshape(2, -1)
    entries = sum_entries(i, j, rng.normal(size=i.size), shape)
    check(SparseMatrix(0, shape, entries), 4, rng, DenseMatrix)


def test_matrix_without_entries_uses_dense_blocks():
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
    """Return random ranges of hands on boards of two cards, some with weight zero.

    Args:
      rng: Random generator, which is advanced.
      cards: Number of private cards, 1 or 2.
      boards: Number of boards.
      deck: Number of cards, including those of the board.
      strengths: Maximum number of different strengths per board.
      private_states: Number of private states that hands are assigned to. None: one for
        each hand, and some without a hand.
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
        # One, a few, or most strengths fill a block of 64 hands or more.
        pytest.param(2, {"deck": 24, "strengths": 1}, marks=SLOW),
        (2, {"deck": 24, "strengths": 3}),
        pytest.param(2, {"deck": 24, "strengths": 10**6}, marks=SLOW),
        pytest.param(2, {"boards": 3}, marks=SLOW),
        (2, {"boards": 3, "private_states": 20}),
        pytest.param(2, {"deck": 6}, marks=SLOW),
    ],
)
def test_hand_operator_equals_the_listed_matrix(showdown, cards, kind, monkeypatch):
    """The operator is used even if listing the entries would be cheaper."""
    monkeypatch.setattr(matrix_operators, "_FEW_PAIRS", 0)
    rng = np.random.default_rng(5)
    hands, shape = hands_of_both(rng, cards, **kind)
    check(HandMatrix(0, shape, hands, showdown), 5, rng, HandOperator)


@pytest.mark.parametrize("showdown", [False, True])
def test_many_hands_use_the_hand_operator(showdown):
    rng = np.random.default_rng(1)
    hands, shape = hands_of_both(rng, 2, deck=30, strengths=100)
    check(HandMatrix(0, shape, hands, showdown), 3, rng, HandOperator, np.float32)


@pytest.mark.parametrize("showdown", [False, True])
def test_few_hands_use_listed_entries(showdown):
    rng = np.random.default_rng(1)
    hands, shape = hands_of_both(rng, 1, deck=8, boards=30)
    check(HandMatrix(0, shape, hands, showdown), 3, rng, DenseBlocks)


def test_inconsistent_hands_use_listed_entries(monkeypatch):
    """Hands occur twice, or their strengths differ between the players."""
    monkeypatch.setattr(matrix_operators, "_FEW_PAIRS", 0)
    rng = np.random.default_rng(2)
    (first, second), shape = hands_of_both(rng, 2)
    first = first._replace(weight=first.weight + 0.1)
    stronger = first._replace(strength=first.strength + 100)
    check(HandMatrix(0, shape, (stronger, second), True), 3, rng, DenseBlocks)
    twice = BoardHands(*(np.append(field, field[:1], axis=0) for field in first))
    check(HandMatrix(0, shape, (twice, second), False), 3, rng, DenseBlocks)
    # With a single card, strengths may differ, because no pair is subtracted twice.
    (first, second), shape = hands_of_both(rng, 1)
    stronger = first._replace(strength=first.strength[::-1])
    check(HandMatrix(0, shape, (stronger, second), True), 3, rng, HandOperator)


def every_hand(
    rng: np.random.Generator, cards: tuple[int, int], *, showdown: bool
) -> HandMatrix:
    """Return all hands of a deck of six, with `cards[p]` cards of player p."""
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
def test_hand_operator_supports_one_and_two_cards(showdown, monkeypatch):
    """The pair of cards (0, c) is distinguished from the single card c."""
    monkeypatch.setattr(matrix_operators, "_FEW_PAIRS", 0)
    rng = np.random.default_rng(7)
    check(every_hand(rng, (2, 1), showdown=showdown), 3, rng, HandOperator)


@pytest.mark.parametrize("cards", [(2, 3), (0, 2)])
def test_other_numbers_of_cards_use_listed_entries(cards):
    """One player with another number of cards is enough."""
    rng = np.random.default_rng(7)
    payoff_matrix = every_hand(rng, cards, showdown=False)
    check(payoff_matrix, 3, rng, DenseMatrix)
    for player in range(2):
        assert make_hand_operator(payoff_matrix, player) is None


@pytest.mark.parametrize("showdown", [False, True])
@pytest.mark.parametrize("private_states", [None, 7])
@pytest.mark.parametrize("scale", [1e25, 1e-25])
def test_largest_bounds_entries_of_any_scale(scale, private_states, showdown):
    """The products overflow or underflow in float32, the default type of JAX."""
    rng = np.random.default_rng(8)
    (first, second), shape = hands_of_both(rng, 2, private_states=private_states)
    first, second = (
        hands._replace(weight=hands.weight * scale) for hands in (first, second)
    )
    payoff_matrix = HandMatrix(0, shape, (first, second), showdown)
    largest = np.abs(dense(payoff_matrix)).max()
    with jax.enable_x64(False):
        for player in range(2):
            operator = make_hand_operator(payoff_matrix, player)
            assert operator is not None
            assert largest <= operator.largest() * (1 + 1e-12) < 100 * largest


def test_long_chains_use_sparse_rows():
    """Each private state of a long chain has payoffs with its neighbours."""
    rng = np.random.default_rng(3)
    i = np.arange(400)
    rows, columns = np.concatenate([i, i[1:]]), np.concatenate([i, i[:-1]])
    # One state has nine more opponents, and the last state has none.
    rows, columns = np.append(rows, [7] * 9), np.append(columns, 100 + i[:9])
    shape = (401, 402)
    entries = sum_entries(rows, columns, rng.normal(size=len(rows)), shape)
    check(SparseMatrix(0, shape, entries), 4, rng, SparseRows, np.float32)


@pytest.mark.parametrize("mixed", [False, True])
def test_contiguous_blocks_use_block_runs(mixed):
    """Permuted blocks, with private states without opponents, use dense blocks."""
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


def test_narrow_block_with_many_leaves_uses_a_dense_matrix():
    """The operator is a dense matrix for 5,000 leaves, too."""
    rng = np.random.default_rng(4)
    i, j = np.indices((3, 4)).reshape(2, -1)
    entries = sum_entries(i, j, rng.normal(size=12), (3, 4))
    check(SparseMatrix(0, (3, 4), entries), 5000, rng, DenseMatrix)


def test_matrices_of_equal_shape_share_compiled_functions():
    rng = np.random.default_rng(6)
    traced = []

    @jax.jit
    def values(operator, x):
        traced.append(x.shape)
        return operator.apply(x)

    i, j = np.indices((5, 4)).reshape(2, -1)
    for _ in range(2):
        entries = sum_entries(i, j, rng.normal(size=20), (5, 4))
        operator = make_operator(SparseMatrix(0, (5, 4), entries), 0)
        values(operator, rng.random((3, 4)))
    assert len(traced) == 1
