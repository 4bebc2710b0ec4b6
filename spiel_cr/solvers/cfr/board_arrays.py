"""Arrays of a hold'em game for the compiled functions of `board_iteration`.

For the shapes see `board_tables`.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.common.arrays import joint_components, ranges
from spiel_cr.games.public_tree.form import ROUNDING, absolute_row_sums
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.hand_operators import same_hands
from spiel_cr.games.public_tree.matrix_operators import has_many_hands, in_units
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix
from spiel_cr.games.public_tree.public_nodes import ancestors
from spiel_cr.games.public_tree.public_terms import public_form
from spiel_cr.solvers.cfr.board_tables import MOST_CARDS, BoardSide, BoardTree, table


class BoardGame(NamedTuple):
    """A game for the compiled functions.

    Attributes:
      boards: The boards.
      sides: Both players' decisions, private states and hands, without locks; stakes
        and weights are float64.
      sequences: Logical number of the first sequence of each decision, for each player
        int64 [D].
      sizes: Number of positions of each player.
      exponent: Exponent of the scale: stakes are divided by 2^exponent.
      exponents: Exponent of the scale of each matrix, whose entries are divided by
        2^exponent, int64 [K].
    """

    boards: BoardTree
    sides: tuple[BoardSide, BoardSide]
    sequences: tuple[np.ndarray, np.ndarray]
    sizes: tuple[int, int]
    exponent: int
    exponents: np.ndarray


class _Rounds(NamedTuple):
    """Boards of each round.

    Attributes:
      board: Board of each private state in its round, for each round and player.
      above: Board of the round before of each board, for each round.
      of_matrix: Board of the round of each board of a matrix, by matrix.
    """

    board: list[tuple[np.ndarray, np.ndarray]]
    above: list[np.ndarray]
    of_matrix: dict[int, np.ndarray]


class _Terms(NamedTuple):
    """Terms of leaf values, with matrices in the order of rounds.

    Attributes:
      sequences: Public sequences of each player, int32 [T].
      matrix: Matrix of each term, int64 [T].
      round: Round of each term, int64 [T].
      stake: Player 0's stake at showdowns and its utility at folds, float64 [T].
    """

    sequences: tuple[np.ndarray, np.ndarray]
    matrix: np.ndarray
    round: np.ndarray
    stake: np.ndarray


def suits(game: PublicTreeGame) -> bool:
    """Return whether a game has no rake, and hands of two cards that meet on boards.

    A single round of few hands is left to JAX, which is as fast there and needs less
    time for compilation.
    """
    if game.rake is not None or not game.payoff_matrices:
        return False
    matrices: Any = game.payoff_matrices
    for matrix in matrices:
        if not isinstance(matrix, HandMatrix):
            return False
        if any(side.cards.shape[1] != 2 for side in matrix.hands):
            return False
    return game.num_rounds > 1 or any(has_many_hands(matrix) for matrix in matrices)


def board_game(game: PublicTreeGame, dtype: np.dtype) -> BoardGame | None:
    """Build the arrays of a game.

    Returns:
      The arrays, or None if the compiled functions do not support the game, see
      `suits`; its private states must also be numbered board by board.
    """
    matrices: list[Any] = list(game.payoff_matrices)
    if not suits(game) or not all(map(_is_supported, matrices)):
        return None
    rounds = _rounds_of(game)
    if rounds is None:
        return None
    by_round = sorted(range(len(matrices)), key=lambda k: matrices[k].round)
    scaled = [in_units(matrices[k]) for k in by_round]
    hands: list[Any] = [matrix for matrix, _ in scaled]
    number = np.argsort(by_round)[game.terms.matrix]
    exponents = np.array([e for _, e in scaled])
    stake = np.ldexp(game.terms.stake, exponents[number])
    exponent = int(np.frexp(np.abs(stake).max(initial=0))[1])
    sides, by_sequence = public_form(game.betting, game.terms)
    round_of = np.array([matrix.round for matrix in hands])
    terms = _Terms(
        by_sequence.sequences, number, round_of[number], np.ldexp(stake, -exponent)
    )
    boards, order = _boards(game, rounds, hands, by_round)
    arranged = [_hands(matrix, some) for matrix, some in zip(hands, order, strict=True)]
    rows = _rows_of(sides, terms, game)
    builders = [_SideBuilder(game, rounds, p, sides[p], terms, rows) for p in range(2)]
    first, second = (
        b.side(hands, [pair[b.player] for pair in arranged], dtype) for b in builders
    )
    sizes = builders[0].num_positions, builders[1].num_positions
    sequences = builders[0].first_sequences, builders[1].first_sequences
    return BoardGame(boards, (first, second), sequences, sizes, exponent, exponents)


def _is_supported(matrix: HandMatrix) -> bool:
    """Return whether the players share the strengths of hands, and cards are few."""
    both = matrix.hands
    if len(np.unique(np.concatenate([side.cards for side in both]))) > MOST_CARDS:
        return False
    return same_hands(*both, showdown=matrix.showdown) is not None


def _rounds_of(game: PublicTreeGame) -> _Rounds | None:
    """Find the boards of each round; None if states of a board are not consecutive.

    Private states are on one board if they are connected by the boards of matrices.
    """
    rounds = _Rounds([], [], {})
    for r in range(game.num_rounds):
        sizes = [len(game.parents[p][r]) for p in range(2)]
        rows, columns, starts, count = [], [], {}, 0
        for k, matrix in enumerate(game.payoff_matrices):
            if matrix.round != r or not isinstance(matrix, HandMatrix):
                continue
            starts[k] = count
            for p, side in enumerate(matrix.hands):
                rows.append(count + side.board.astype(np.int64))
                columns.append(p * sizes[0] + side.private_state.astype(np.int64))
            count += 1 + max(int(side.board.max()) for side in matrix.hands)
        if not starts:
            return None
        ends = np.concatenate(rows), np.concatenate(columns)
        parts = joint_components(*ends, (count, sum(sizes)))
        numbers, first = np.unique(parts.columns[: sizes[0]], return_index=True)
        rank = np.full(parts.number, -1)
        rank[numbers[np.argsort(first)]] = np.arange(len(numbers))
        board = rank[parts.columns[: sizes[0]]], rank[parts.columns[sizes[0] :]]
        above = []
        for p, of_state in enumerate(board):
            if not np.array_equal(np.unique(of_state), np.arange(len(numbers))):
                return None
            if (np.diff(of_state) < 0).any():
                return None
            behind = game.parents[p][r]
            up = rounds.board[-1][p][behind] if r else np.zeros(len(behind), np.int64)
            above.append(up[np.searchsorted(of_state, np.arange(len(numbers)))])
            if (up != above[-1][of_state]).any() or (np.diff(above[-1]) < 0).any():
                return None
        if min(board[0].min(), board[1].min()) < 0 or (above[0] != above[1]).any():
            return None
        rounds.board.append(board)
        rounds.above.append(above[0])
        ends_of = [*list(starts.values())[1:], count]
        for (k, start), end in zip(starts.items(), ends_of, strict=True):
            rounds.of_matrix[k] = rank[parts.rows[start:end]]
    return rounds


def _boards(
    game: PublicTreeGame,
    rounds: _Rounds,
    matrices: list[HandMatrix],
    by_round: list[int],
) -> tuple[BoardTree, list[np.ndarray]]:
    """Return the boards, and the order of the boards of each matrix."""
    counts = [len(above) for above in rounds.above]
    first_board = np.concatenate([[0], np.cumsum(counts)])
    first_child = np.full(first_board[-1] + 1, first_board[-1])
    for r in range(game.num_rounds - 1):
        begins = np.searchsorted(rounds.above[r + 1], np.arange(counts[r]))
        first_child[first_board[r] : first_board[r + 1]] = first_board[r + 1] + begins
    first_place, order, done = [], [], 0
    places: list[np.ndarray] = []
    for k, matrix in zip(by_round, matrices, strict=True):
        board = rounds.of_matrix[k]
        listed = np.argsort(board, kind="stable")
        listed = listed[board[listed] >= 0]
        ends = np.searchsorted(board[listed], np.arange(counts[matrix.round] + 1))
        first_place.append(sum(len(ends) for ends in places))
        places.append(done + ends)
        order.append(listed)
        done += len(listed)
    round_of = [matrix.round for matrix in matrices]
    boards = BoardTree(
        round=np.repeat(np.arange(game.num_rounds), counts),
        first_board=first_board,
        first_child=first_child,
        first_matrix=np.searchsorted(round_of, np.arange(game.num_rounds + 1)),
        is_showdown=np.array([matrix.showdown for matrix in matrices]),
        first_place=np.array(first_place),
        matrix_board=np.concatenate(places),
    )
    return boards, order


class _RowNumbers(NamedTuple):
    """Rows of one player's public sequences on the boards of each round.

    Attributes:
      carried: Public sequences that are carried into each round.
      row: Row of each public sequence in each round, -1 if it has none.
    """

    carried: list[np.ndarray]
    row: list[np.ndarray]


def _rows_of(sides: Any, terms: _Terms, game: PublicTreeGame) -> list[_RowNumbers]:
    """Number the rows of both players' public sequences."""
    result = []
    for side, sequences in zip(sides, terms.sequences, strict=True):
        rounds = side.sequence_rounds
        # The last round in which each sequence has decisions or leaf values below it.
        last = np.full(len(rounds), -1)
        np.maximum.at(last, side.parent, side.round)
        np.maximum.at(last, sequences, terms.round)
        rows = _RowNumbers([], [])
        for r in range(game.num_rounds):
            carried = np.flatnonzero((rounds < r) & (last >= r))
            held = np.concatenate([carried, np.flatnonzero(rounds == r)])
            row = np.full(len(rounds), -1)
            row[held] = np.arange(len(held))
            rows.carried.append(carried)
            rows.row.append(row)
        result.append(rows)
    return result


@dataclasses.dataclass(frozen=True)
class _SideBuilder:
    """Builder of one player's arrays.

    Attributes:
      game: The game.
      rounds: Boards of each round.
      player: The player.
      public: The player's public decisions.
      terms: Terms of leaf values.
      rows: Rows of both players' public sequences.
    """

    game: PublicTreeGame
    rounds: _Rounds
    player: int
    public: Any
    terms: _Terms
    rows: list[_RowNumbers]

    @functools.cached_property
    def by_round(self) -> np.ndarray:
        """Decisions in the order of rounds, int64 [D]."""
        return np.argsort(self.public.round, kind="stable")

    @functools.cached_property
    def round(self) -> np.ndarray:
        """Round of each decision, in the order of rounds."""
        return self.public.round[self.by_round].astype(np.int64)

    @functools.cached_property
    def states(self) -> np.ndarray:
        """Number of private states of each round, int64 [R]."""
        return np.array(self.game.num_private_states(self.player), np.int64)

    @functools.cached_property
    def round_actions(self) -> np.ndarray:
        """Number of actions of all decisions of each round, int64 [R]."""
        counts = self.public.num_actions.astype(np.int64)
        return np.bincount(self.public.round, counts, len(self.states)).astype(np.int64)

    @property
    def num_positions(self) -> int:
        """S, with the empty sequence."""
        return 1 + int((self.states * self.round_actions).sum())

    @property
    def first_sequences(self) -> np.ndarray:
        """Logical number of the first sequence of each decision, int64 [D]."""
        decisions = self.game.public_decisions[self.player]
        return np.asarray(decisions.first_sequence[self.by_round], np.int64)

    def side(
        self, matrices: list[HandMatrix], hands: list["_Hands"], dtype: np.dtype
    ) -> BoardSide:
        """Return the player's side."""
        counts = self.public.num_actions[self.by_round].astype(np.int64)
        first = np.searchsorted(self.round, np.arange(len(self.states) + 1))
        begins = np.cumsum(counts) - counts
        child = self.public.decisions.first_sequence[self.by_round]
        parent = self.public.parent[self.by_round]
        rows = self.rows[self.player]
        row = np.stack(rows.row)
        widths = [len(carried) for carried in rows.carried]
        places = zip(self.rounds.board, self.rounds.above, strict=True)
        starts = [
            np.searchsorted(board[self.player], np.arange(len(above) + 1))
            for board, above in places
        ]
        weaker, stronger, twin = (
            _unsigned([getattr(some, name) for some in hands], np.uint16)
            for name in ("weaker", "stronger", "twin")
        )
        cards = np.concatenate([some.cards for some in hands]).astype(np.uint8)
        return BoardSide(
            rounds=table(
                first_decision=first,
                first_carried=np.concatenate([[0], np.cumsum(widths)]),
                base=1 + _before(self.states * self.round_actions),
                first_state=_before(self.states),
                num_actions=self.round_actions,
                num_rows=np.array(widths) + self.round_actions,
            ),
            decisions=table(
                parent=_unsigned(row[self.round, parent]),
                child=_unsigned(row[self.round, child]),
                num_actions=_unsigned(counts),
                offset=begins - np.append(begins, counts.sum())[first[self.round]],
            ),
            boards=table(
                start=np.concatenate([start[:-1] for start in starts]),
                size=np.concatenate([np.diff(start) for start in starts]),
            ),
            carried=_unsigned(
                [
                    rows.row[r - 1][carried] if r else 0 * carried
                    for r, carried in enumerate(rows.carried)
                ]
            ),
            above=_unsigned(
                [
                    self._on_board(r - 1, parents) if r else parents
                    for r, parents in enumerate(self.game.parents[self.player])
                ]
            ),
            **self._bounds(matrices, child, counts, dtype),
            **self._leaves(matrices),
            first_hand=np.concatenate(
                [[0], np.cumsum(np.concatenate([some.counts for some in hands]))]
            ),
            hands=table(
                state=_unsigned(
                    [
                        self._on_board(matrix.round, some.state)
                        for matrix, some in zip(matrices, hands, strict=True)
                    ]
                ),
                weaker=weaker,
                stronger=stronger,
                twin=twin,
                first_card=cards[:, 0],
                second_card=cards[:, 1],
                weight=np.concatenate([some.weight for some in hands]),
            ),
            locks=np.zeros(0, dtype),
        )

    def _on_board(self, round: int, state: np.ndarray) -> np.ndarray:
        """Return the places of private states of a round on their boards."""
        board = self.rounds.board[round][self.player]
        return state - np.searchsorted(board, board[state])

    def _bounds(
        self,
        matrices: list[HandMatrix],
        child: np.ndarray,
        counts: np.ndarray,
        dtype: np.dtype,
    ) -> dict[str, np.ndarray]:
        """Return the factors of the sums of absolute payoffs below infosets."""
        terms, player = self.terms, self.player
        below = np.zeros((len(self.public.sequence_rounds), len(matrices)))
        np.add.at(below, (terms.sequences[player], terms.matrix), np.abs(terms.stake))
        payoffs = np.zeros((len(child), len(matrices)))
        for d in range(len(child) - 1, -1, -1):
            payoffs[d] = below[child[d] : child[d] + counts[d]].sum(axis=0)
            below[self.public.parent[self.by_round[d]]] += payoffs[d]
        bounds = np.zeros((len(matrices), int(self.states.sum())))
        starts = _before(self.states)
        for k, matrix in enumerate(matrices):
            sums = absolute_row_sums(matrix, player)
            for r in range(matrix.round + 1):
                behind = ancestors(self.game.parents[player], matrix.round, r)
                part = slice(starts[r], starts[r] + self.states[r])
                bounds[k, part] = np.bincount(behind, sums, minlength=self.states[r])
        return {
            "payoffs": (ROUNDING * payoffs).astype(dtype),
            "bounds": bounds.astype(dtype),
        }

    def _leaves(self, matrices: list[HandMatrix]) -> dict[str, np.ndarray]:
        """Return the rows of leaf values, and their terms."""
        terms, player = self.terms, self.player
        width = len(self.public.sequence_rounds)
        keys = terms.matrix * width + terms.sequences[player]
        order = np.argsort(keys, kind="stable")
        distinct, first = np.unique(keys[order], return_index=True)
        matrix, sequence = np.divmod(distinct, width)
        round_of = np.array([one.round for one in matrices])
        row, other_row = (np.stack(self.rows[p].row) for p in (player, 1 - player))
        other = terms.sequences[1 - player][order]
        # The entries of a matrix of folds are gains of player 0.
        showdown = np.array([one.showdown for one in matrices])[terms.matrix]
        stake = terms.stake * np.where(showdown, 1, 1 - 2 * player)
        return {
            "first_leaf": np.searchsorted(matrix, np.arange(len(matrices) + 1)),
            "leaves": table(
                row=_unsigned(row[round_of[matrix], sequence]),
                first_term=np.append(first, len(order)),
            ),
            "terms": table(
                row=_unsigned(other_row[terms.round[order], other]),
                stake=stake[order],
            ),
        }


class _Hands(NamedTuple):
    """One player's hands of a matrix, board by board and in the order of strengths.

    Attributes:
      counts: Number of hands on each board.
      state: Private state of each hand, int64 [n].
      weight, cards, weaker, stronger, twin: As in `BoardSide`.
    """

    counts: np.ndarray
    state: np.ndarray
    weight: np.ndarray
    cards: np.ndarray
    weaker: np.ndarray
    stronger: np.ndarray
    twin: np.ndarray


def _hands(matrix: HandMatrix, boards: np.ndarray) -> tuple[_Hands, _Hands]:
    """Arrange both players' hands on some boards of a matrix, in their order."""
    number = np.full(1 + max(int(side.board.max()) for side in matrix.hands), -1)
    number[boards] = np.arange(len(boards))
    cards = np.unique(np.concatenate([side.cards.ravel() for side in matrix.hands]))
    levels = np.unique(np.concatenate([side.strength for side in matrix.hands]))
    ordered, keys, places, counts = [], [], [], []
    for side in matrix.hands:
        board = number[side.board]
        # Boards, and within them strengths, as one number.
        key = board * len(levels) + np.searchsorted(levels, side.strength)
        order = np.argsort(key, kind="stable")
        order = order[board[order] >= 0]
        counts.append(np.bincount(board[order], minlength=len(boards)))
        places.append(np.zeros(len(key), np.int64))
        places[-1][order] = 1 + ranges(0, counts[-1])
        ordered.append(order)
        keys.append(key[order])
    same = same_hands(*matrix.hands, showdown=matrix.showdown)
    assert same is not None
    result = []
    for p, side in enumerate(matrix.hands):
        others, order = keys[1 - p], ordered[p]
        twin = np.zeros(len(side.board), np.int64)
        twin[same[p]] = places[1 - p][same[1 - p]]
        until = np.cumsum(counts[1 - p])
        board = number[side.board[order]]
        result.append(
            _Hands(
                counts[p],
                side.private_state[order].astype(np.int64),
                side.weight[order],
                np.searchsorted(cards, side.cards[order]),
                np.searchsorted(others, keys[p]) - (until - counts[1 - p])[board],
                until[board] - np.searchsorted(others, keys[p], "right"),
                twin[order],
            )
        )
    return result[0], result[1]


def _unsigned(values: Any, dtype: type = np.uint32) -> np.ndarray:
    """Return places or counts; numba reads them faster than signed numbers.

    Args:
      values: Integers, or a list of arrays, which are concatenated.
      dtype: Data type of the result.
    """
    array = np.concatenate(values) if isinstance(values, list) else values
    return np.ascontiguousarray(array, dtype)


def _before(counts: np.ndarray) -> np.ndarray:
    """Return the sums of the counts before each, int64 [n]."""
    return (np.cumsum(counts) - counts).astype(np.int64)
