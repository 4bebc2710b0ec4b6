"""Tables of a hold'em game, arguments of the compiled functions that process boards.

A *board* is a set of public cards at the beginning of a round. Both players' private
states of a round belong to one board each. See `board_iteration`. The numbers of a
player are in few tables with named columns, because the time for compiling a function
grows with the number of arrays that it is given.

On each board, the rows of working memory belong to a player's public sequences: those
that were *carried* from the round before, and then those of the round.

Legend for shapes: R rounds, B boards of all rounds, D public decisions of a player, in
the order of rounds, K payoff matrices, in the order of rounds, F boards of all payoff
matrices, L rows of leaf values, T terms of leaf values, N hands of a player on all
boards, S positions of a player's sequences, n private states of a player on one board,
A actions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

# Rows of leaf values that are computed together, so that the indices of hands are read
# once for all of them. The functions on tuples in `board_iteration` have this length.
LANES = 8
# Largest number of different cards of the hands of a matrix.
MOST_CARDS = 64


class BoardSide(NamedTuple):
    """One player's decisions, private states and hands.

    Attributes:
      rounds: Table of rounds [R + 1], whose last row only has the first two columns,
        int64: first decision; first carried row; position of the first sequence; number
        of private states of earlier rounds; number of actions of all decisions; number
        of rows of a board.
      decisions: Table of decisions [D]: row of the sequence before each, row of its
        first action, number of its actions, uint32; number of actions of earlier
        decisions of the round, int64.
      boards: Table of boards [B], int64: first private state in the round, number of
        private states.
      carried: Row of each carried row on the board of the round before, uint32.
      above: Place of the earlier private state on its board, for the private states of
        all rounds, uint32.
      payoffs: Sums of absolute stakes below each decision, times the relative rounding
        error, float [D, K].
      bounds: Bounds on the values of private states of all rounds per unit of stake,
        float [K, states].
      first_leaf: First row of leaf values of each matrix, int64 [K + 1].
      leaves: Table of rows of leaf values [L + 1], whose last row only has the second
        column: row of the sequence, uint32; first term, int64.
      terms: Table of terms [T]: the opponent's row, uint32; the player's stake, float.
      first_hand: First hand on each board of a matrix, int64 [F + 1].
      hands: Table of hands [N]: place of the private state on the board of its round,
        uint32; numbers of the opponent's hands on the board that are weaker and
        stronger, uint16; one more than the place of the opponent's hand with the same
        cards on the board, or 0 if there is none, uint16; places of both cards among
        those of the matrix, uint8; weight, float.
      locks: Locked probabilities, negative at free infosets, float [S]; empty if no
        infoset is locked.
    """

    rounds: np.ndarray
    decisions: np.ndarray
    boards: np.ndarray
    carried: np.ndarray
    above: np.ndarray
    payoffs: np.ndarray
    bounds: np.ndarray
    first_leaf: np.ndarray
    leaves: np.ndarray
    terms: np.ndarray
    first_hand: np.ndarray
    hands: np.ndarray
    locks: np.ndarray


class BoardTree(NamedTuple):
    """Boards of all rounds, and the boards of payoff matrices.

    Attributes:
      round: Round of each board, int64 [B].
      first_board: First board of each round, int64 [R + 1].
      first_child: First board of the next round below each board, int64 [B + 1].
      first_matrix: First matrix of each round, int64 [R + 1].
      is_showdown: Whether each matrix compares strengths, bool [K].
      first_place: First place of each matrix in `matrix_board`, int64 [K].
      matrix_board: First board of the matrix for each board of the matrix's round, for
        each matrix, followed by the end, int64.
    """

    round: np.ndarray
    first_board: np.ndarray
    first_child: np.ndarray
    first_matrix: np.ndarray
    is_showdown: np.ndarray
    first_place: np.ndarray
    matrix_board: np.ndarray


class Sweep(NamedTuple):
    """Arguments of the update or evaluation of one player.

    Attributes:
      boards: The boards.
      player, opponent: Both players' sides.
      weights: Numbers whose positive parts are proportional to the player's strategy,
        float [S]: regrets, or average reach.
      average: The player's average reach, float [S].
      opponent_weights: As `weights`, for the opponent.
      numbers: Discounts of positive and negative regrets, factor of tolerances, and
        weight of the iteration in the average, float [4].
      best: Whether the player responds best instead.
      update: Whether regrets and averages are updated.
      positive: Whether negative regrets are set to zero.
      recorded: First decision whose action values are recorded, their end, and the
        number of their actions, int64 [3].
      record: Recorded values, float: for each board, decision and action [n].
    """

    boards: BoardTree
    player: BoardSide
    opponent: BoardSide
    weights: np.ndarray
    average: np.ndarray
    opponent_weights: np.ndarray
    numbers: np.ndarray
    best: bool
    update: bool
    positive: bool
    recorded: np.ndarray
    record: np.ndarray


class Workspace(NamedTuple):
    """Working memory of one thread.

    Attributes:
      memory: Arrays of one board of each round, and three arrays for the leaf values of
        one board, float [M].
      starts: Place of the arrays of each round, and of the three, int64 [R + 1].
    """

    memory: np.ndarray
    starts: np.ndarray


def table(**columns: np.ndarray | Sequence[int]) -> np.ndarray:
    """Return a table whose columns have names; shorter columns end with zeros."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    fields: Any = [(name, column.dtype) for name, column in arrays.items()]
    rows = max(map(len, arrays.values()))
    result = np.zeros(rows, np.dtype(fields, align=True))
    for name, column in arrays.items():
        result[name][: len(column)] = column
    return result


def with_type(records: np.ndarray, name: str, dtype: np.dtype) -> np.ndarray:
    """Return a table with another data type of one column."""
    assert records.dtype.names is not None
    columns = {each: records[each] for each in records.dtype.names}
    return table(**columns | {name: columns[name].astype(dtype)})


def scratch_size(first: BoardSide, second: BoardSide) -> int:
    """Return the size of each of the three arrays for the leaf values of one board.

    One of them also contains an opponent's strategy at one decision.
    """
    sides = first, second
    states = max(side.boards["size"].max() for side in sides)
    actions = max(side.decisions["num_actions"].max(initial=0) for side in sides)
    return int(max(MOST_CARDS, states)) * int(max(LANES, actions))
