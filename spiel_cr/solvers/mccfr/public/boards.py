"""Boards: what all players see of the deals, found from who can meet whom.

Two signals lie on one board where they can come together, directly or through others.
Matrices, reach and values fall apart by boards, so a trajectory that samples public
cards looks at the hands of one board per round only.

Legend for shapes: H signals of one player in one round, B boards of a round, h the most
hands that a player has on a board, M boards of all rounds.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import scipy.sparse

from spiel_cr.common import memory
from spiel_cr.common.arrays import joint_components
from spiel_cr.games.public_tree.game import PublicTreeGame


class Round(NamedTuple):
    """The boards of a round.

    Attributes:
      size: B.
      above: int32 [B], the board of the round before; 0 in round 0. Ascending.
      probability: float64 [B], how likely the board is, as far as anything is at stake.
      board: for each player int32 [H], the board of a signal; -1: it meets nobody.
      slot: for each player int32 [H], its number among the hands of its board.
      signals: for each player int32 [B, h], the other way round; -1 at padding.
    """

    size: int
    above: np.ndarray
    probability: np.ndarray
    board: tuple[np.ndarray, np.ndarray]
    slot: tuple[np.ndarray, np.ndarray]
    signals: tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Boards:
    """A signal game's boards.

    Attributes:
      rounds: top to bottom.
      mass: float64 [M, h, h], how much can be at stake between two hands (player 0's,
        then 1's), per unit of stake: with a matrix of folds the probability of their
        deals. Round by round.
      first: int64 [R], the first board of each round in `mass`.
      payoff_matrices: float64 [K', h, h], entries, matrix by matrix and board by board
        of its round.
      matrix_first: int64 [K], where each matrix begins.
    """

    rounds: tuple[Round, ...]
    mass: np.ndarray
    first: np.ndarray
    payoff_matrices: np.ndarray
    matrix_first: np.ndarray

    @property
    def hands(self) -> int:
        """h."""
        return int(self.mass.shape[1])


def find(game: PublicTreeGame, memory_limit: memory.Limit = None) -> Boards:
    """The boards of a signal game.

    Args:
      game: the game.
      memory_limit: for the tables, as for `build_tree`.

    Raises:
      GameTooLargeError: the tables do not fit.
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
    of_matrix = np.array(
        [sizes[payoff_matrix.round] for payoff_matrix in game.payoff_matrices]
    )
    hands = max(part.signals[p].shape[1] for part in rounds for p in range(2))
    need = 8.0 * hands * hands * float(sizes.sum() + of_matrix.sum())
    size = memory.parse_limit(memory_limit)
    if need > size:
        raise memory.too_large(
            game.game,
            f"has hands and boards whose matrices take {memory.describe_bytes(need)}",
            *(memory_limit, size),
        )
    blocks = [
        _blocks(matrix.tocoo(), part, hands)
        for matrix, part in zip(stakes, rounds, strict=True)
    ]
    payoff_matrices = []
    for payoff_matrix in game.payoff_matrices:
        entries = payoff_matrix.coordinates()
        coordinates = (entries.rows, entries.columns)
        listed = scipy.sparse.coo_array(
            (entries.values, coordinates), payoff_matrix.shape
        )
        payoff_matrices.append(_blocks(listed, rounds[payoff_matrix.round], hands))
    return Boards(
        tuple(rounds),
        np.concatenate(blocks),
        np.cumsum(sizes) - sizes,
        np.concatenate([*payoff_matrices, np.zeros((0, hands, hands))]),
        np.cumsum(of_matrix) - of_matrix,
    )


def _stakes(game: PublicTreeGame) -> list[scipy.sparse.csr_array]:
    """For each round [H0, H1], the most that any matrix of it says of two signals, or
    that matrices of later rounds say of what they become."""
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
        for payoff_matrix in game.payoff_matrices:
            if payoff_matrix.round == number:
                entries = payoff_matrix.coordinates()
                at = (entries.rows, entries.columns)
                round_stakes = scipy.sparse.coo_array(
                    (np.abs(entries.values), at), shape
                )
                matrix = matrix.maximum(round_stakes.tocsr())
        stakes.insert(0, matrix)
    return stakes


def _round(
    matrix: scipy.sparse.csr_array, above: tuple[np.ndarray, np.ndarray]
) -> Round:
    """The boards of a round.

    Args:
      matrix: [H0, H1], what is at stake between signals.
      above: for each player int [H], the board before.
    """
    entries = matrix.tocoo()
    parts = joint_components(entries.row, entries.col, matrix.shape)
    meets = np.flatnonzero((parts.heights > 0) & (parts.widths > 0))
    before = np.zeros(parts.number, np.int64)
    before[parts.rows] = above[0]
    meets = meets[np.argsort(before[meets], kind="stable")]
    number = np.full(len(before), -1, np.int64)
    number[meets] = np.arange(len(meets))
    sides = number[parts.rows], number[parts.columns]
    probability = np.bincount(sides[0][entries.row], entries.data, minlength=len(meets))
    boards, slots, signals = [], [], []
    for player_boards in sides:
        order = np.argsort(player_boards, kind="stable")
        begins = np.searchsorted(player_boards[order], player_boards)
        within = np.empty(len(player_boards), np.int32)
        within[order] = np.arange(len(player_boards)) - begins[order]
        boards.append(player_boards.astype(np.int32))
        slots.append(within)
    width = 1 + max(int(s[b >= 0].max()) for s, b in zip(slots, boards, strict=True))
    for player_boards, slot in zip(boards, slots, strict=True):
        table = np.full((len(meets), width), -1, np.int32)
        on_board = np.flatnonzero(player_boards >= 0)
        table[player_boards[on_board], slot[on_board]] = on_board
        signals.append(table)
    return Round(
        len(meets),
        before[meets].astype(np.int32),
        probability,
        (boards[0], boards[1]),
        (slots[0], slots[1]),
        (signals[0], signals[1]),
    )


def _blocks(matrix: scipy.sparse.coo_array, part: Round, hands: int) -> np.ndarray:
    """float64 [B, h, h], a matrix of signals by boards."""
    blocks = np.zeros((part.size, hands, hands))
    board = part.board[0][matrix.row]
    blocks[board, part.slot[0][matrix.row], part.slot[1][matrix.col]] = matrix.data
    return blocks
