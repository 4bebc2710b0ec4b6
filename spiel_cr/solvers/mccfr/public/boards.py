"""Boards: the public part of the dealt cards, derived from compatible private states.

Two private states belong to the same board if they can occur together, directly or
through a chain of others. Matrices, reach and values are block-diagonal with one block
for each board. A trajectory that samples public cards therefore uses the hands of only
one board in each round.

Legend for shapes: H private states of one player in one round, B boards of a round, h
largest number of hands of a player on a board, M boards of all rounds.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import scipy.sparse

from spiel_cr.common import memory
from spiel_cr.common.arrays import joint_components
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form.decisions import Payoffs


class Round(NamedTuple):
    """Boards of one round.

    Attributes:
      size: Number B of boards.
      above: Board of the previous round, int32 [B], ascending; 0 in round 0.
      probability: Weight of each board, float64 [B]: its probability, restricted to
        deals with a payoff.
      board: Board of each private state, int32 [H] for each player; -1 if no private
        state of the opponent is compatible.
      slot: Number of each private state among the hands of its board, int32 [H] for
        each player.
      private_states: Private state of each hand of a board, int32 [B, h] for each
        player; -1 at padding.
    """

    size: int
    above: np.ndarray
    probability: np.ndarray
    board: tuple[np.ndarray, np.ndarray]
    slot: tuple[np.ndarray, np.ndarray]
    private_states: tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Boards:
    """Boards of all rounds of a game in public-tree form.

    Attributes:
      rounds: Boards of each round from first to last.
      mass: Largest absolute payoff per unit of stake for each pair of hands (player
        0's, then player 1's), float64 [M, h, h], round by round; with a payoff matrix
        of folds, the probability of the two deals.
      first: First board of each round in `mass`, int64 [R].
      payoff_matrices: Entries of the payoff matrices, float64 [K', h, h], matrix by
        matrix and, within a matrix, board by board of its round.
      matrix_first: First block of each payoff matrix, int64 [K].
    """

    rounds: tuple[Round, ...]
    mass: np.ndarray
    first: np.ndarray
    payoff_matrices: np.ndarray
    matrix_first: np.ndarray

    @property
    def hands(self) -> int:
        """Largest number h of hands of a player on a board."""
        return int(self.mass.shape[1])


def find(game: PublicTreeGame, memory_limit: memory.Limit = None) -> Boards:
    """Return the boards of a game in public-tree form.

    Args:
      game: Game in public-tree form.
      memory_limit: Memory limit for the tables, as for `build_tree`.

    Raises:
      GameTooLargeError: If the tables do not fit in memory.
    """
    stakes = _stakes(game)
    rounds: list[Round] = []
    for number, matrix in enumerate(stakes):
        above = (np.zeros(matrix.shape[0], int), np.zeros(matrix.shape[1], int))
        if number:
            before = rounds[-1].board
            parents = (game.parents[p][number] for p in range(2))
            above = tuple(b[up] for b, up in zip(before, parents, strict=True))
        rounds.append(_round(matrix, above))
    sizes = np.array([part.size for part in rounds])
    of_matrix = np.array([sizes[matrix.round] for matrix in game.payoff_matrices])
    hands = max(part.private_states[p].shape[1] for part in rounds for p in range(2))
    need = 8.0 * hands * hands * float(sizes.sum() + of_matrix.sum())
    size = memory.parse_limit(memory_limit)
    if need > size:
        raise memory.too_large(
            game.game,
            f"needs {memory.describe_bytes(need)} for matrices of hands on boards",
            *(memory_limit, size),
        )
    masses = [
        _blocks(Payoffs(matrix.row, matrix.col, matrix.data), part, hands)
        for matrix, part in zip((one.tocoo() for one in stakes), rounds, strict=True)
    ]
    payoff_matrices = [
        _blocks(matrix.coordinates(), rounds[matrix.round], hands)
        for matrix in game.payoff_matrices
    ]
    return Boards(
        tuple(rounds),
        np.concatenate(masses),
        np.cumsum(sizes) - sizes,
        np.concatenate([*payoff_matrices, np.zeros((0, hands, hands))]),
        np.cumsum(of_matrix) - of_matrix,
    )


def _stakes(game: PublicTreeGame) -> list[scipy.sparse.csr_array]:
    """Return the largest absolute payoffs of pairs of private states in each round.

    The maximum is over the payoff matrices of the round and, through the private states
    of later rounds, over the later payoff matrices. Each result has the shape [H0, H1].
    """
    stakes: list[scipy.sparse.csr_array] = []
    counts = [game.num_private_states(p) for p in range(2)]
    for number in reversed(range(game.num_rounds)):
        shape = (counts[0][number], counts[1][number])
        matrix = scipy.sparse.csr_array(shape)
        if stakes:
            below = stakes[0].tocoo()
            up = (
                game.parents[0][number + 1][below.row],
                game.parents[1][number + 1][below.col],
            )
            matrix = scipy.sparse.coo_array((below.data, up), shape).tocsr()
        for payoff_matrix in game.matrices_in(number).values():
            rows, columns, values = payoff_matrix.coordinates()
            sizes = scipy.sparse.coo_array((np.abs(values), (rows, columns)), shape)
            matrix = matrix.maximum(sizes.tocsr())
        stakes.insert(0, matrix)
    return stakes


def _round(
    matrix: scipy.sparse.csr_array, above: tuple[np.ndarray, np.ndarray]
) -> Round:
    """Return the boards of a round.

    Args:
      matrix: Largest absolute payoffs between private states, [H0, H1].
      above: Board of the previous round of each private state, int [H] for each player.
    """
    entries = matrix.tocoo()
    parts = joint_components(entries.row, entries.col, matrix.shape)
    occupied = np.flatnonzero((parts.heights > 0) & (parts.widths > 0))
    before = np.zeros(parts.number, np.int64)
    before[parts.rows] = above[0]
    occupied = occupied[np.argsort(before[occupied], kind="stable")]
    number = np.full(len(before), -1, np.int64)
    number[occupied] = np.arange(len(occupied))
    sides = number[parts.rows], number[parts.columns]
    probability = np.bincount(
        sides[0][entries.row], entries.data, minlength=len(occupied)
    )
    boards, slots, private_states = [], [], []
    for player_boards in sides:
        order = np.argsort(player_boards, kind="stable")
        begins = np.searchsorted(player_boards[order], player_boards)
        within = np.empty(len(player_boards), np.int32)
        within[order] = np.arange(len(player_boards)) - begins[order]
        boards.append(player_boards.astype(np.int32))
        slots.append(within)
    width = 1 + max(int(s[b >= 0].max()) for s, b in zip(slots, boards, strict=True))
    for player_boards, slot in zip(boards, slots, strict=True):
        table = np.full((len(occupied), width), -1, np.int32)
        on_board = np.flatnonzero(player_boards >= 0)
        table[player_boards[on_board], slot[on_board]] = on_board
        private_states.append(table)
    return Round(
        len(occupied),
        before[occupied].astype(np.int32),
        probability,
        (boards[0], boards[1]),
        (slots[0], slots[1]),
        (private_states[0], private_states[1]),
    )


def _blocks(entries: Payoffs, part: Round, hands: int) -> np.ndarray:
    """Return a matrix of private states, split by boards, float64 [B, h, h]."""
    rows, columns, values = entries
    blocks = np.zeros((part.size, hands, hands))
    board = part.board[0][rows]
    blocks[board, part.slot[0][rows], part.slot[1][columns]] = values
    return blocks
