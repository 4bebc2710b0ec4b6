"""Private states and payoff matrices of a subgame: of all boards, or of one."""

from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import Groups, places_in
from spiel_cr.common.pairs import pair
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    PayoffMatrix,
    SparseMatrix,
)
from spiel_cr.games.public_tree.public_nodes import ancestors
from spiel_cr.games.sequence_form.decisions import Payoffs
from spiel_cr.resolving.public_decomposition import PublicDecomposition


class BoardDeal(NamedTuple):
    """Private states of a subgame, and their payoff matrices.

    Attributes:
      first: First round of the subgame, which the subgame counts as round 0.
      private_states: Private states of each player in each round from `first`, as
        numbers of the complete game, int32, ascending.
      parents: Private state of the round before, as in `PublicTreeGame`, in the deal's
        numbers.
      payoff_matrices: Payoff matrices of these rounds, in the deal's numbers.
      number: Index of each matrix of the complete game in `payoff_matrices`, int32 [K
        of the complete game]; -1 for matrices of earlier rounds.
    """

    first: int
    private_states: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    parents: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    payoff_matrices: tuple[PayoffMatrix, ...]
    number: np.ndarray

    def num_private_states(self, player: int) -> np.ndarray:
        """Return the number of a player's private states by round, int64."""
        return np.array([len(parent) for parent in self.parents[player]])

    def ancestors(self, player: int, round: int, above: int) -> np.ndarray:
        """Return the private state of an earlier round behind each one, int32 [H]."""
        return ancestors(self.parents[player], round, above)


def full_deal(game: PublicTreeGame) -> BoardDeal:
    """Return all private states of all rounds."""
    private_states = pair(
        tuple(np.arange(len(parent), dtype=np.int32) for parent in parents)
        for parents in game.parents
    )
    number = np.arange(len(game.payoff_matrices), dtype=np.int32)
    return BoardDeal(0, private_states, game.parents, game.payoff_matrices, number)


class BoardDeals:
    """Deals of boards, each computed on demand.

    Attributes:
      whole: Deal of all private states.
    """

    def __init__(self, d: PublicDecomposition) -> None:
        """Prepare the boards of a decomposition."""
        self._d = d
        self.whole = full_deal(d.game)
        self._sorted: dict[tuple[int, int], _Sorted] = {}

    def of_board(self, round: int, board: int) -> BoardDeal:
        """Return the private states of a board in a round, and those that follow later.

        Args:
          round: First round of the deal.
          board: Label of the board in the decomposition's `boards` of that round.
        """
        game, labels = self._d.game, self._d.boards[round]
        if round == 0 and all((label == board).all() for label in labels):
            return self.whole
        private_states, parents, places = [], [], []
        for player in range(2):
            kept = [np.flatnonzero(labels[player] == board).astype(np.int32)]
            above = [np.zeros(len(kept[0]), np.int32)]
            place = [places_in(kept[0], len(labels[player]))]
            for parent in game.parents[player][round + 1 :]:
                kept.append(np.flatnonzero(place[-1][parent] >= 0).astype(np.int32))
                above.append(place[-1][parent[kept[-1]]])
                place.append(places_in(kept[-1], len(parent)))
            private_states.append(tuple(kept))
            parents.append(tuple(above))
            places.append(place)
        payoff_matrices: list[PayoffMatrix] = []
        number = np.full(len(game.payoff_matrices), -1, np.int32)
        for k, matrix in enumerate(game.payoff_matrices):
            if matrix.round < round:
                continue
            later = matrix.round - round
            number[k] = len(payoff_matrices)
            both = places[0][later], places[1][later]
            shape = len(private_states[0][later]), len(private_states[1][later])
            payoff_matrices.append(
                self._entries(round, k).of(board, later, both, shape)
            )
        return BoardDeal(
            *(round, pair(private_states), pair(parents)),
            *(tuple(payoff_matrices), number),
        )

    def _entries(self, round: int, k: int) -> "_Sorted":
        if (round, k) not in self._sorted:
            matrix = self._d.game.payoff_matrices[k]
            labels = pair(
                label[self._d.game.ancestors(player, matrix.round, round)]
                for player, label in enumerate(self._d.boards[round])
            )
            self._sorted[round, k] = _Sorted(matrix, labels)
        return self._sorted[round, k]


class _Sorted:
    """Payoff matrix whose entries, or hands, are sorted by board."""

    def __init__(
        self, matrix: PayoffMatrix, labels: tuple[np.ndarray, np.ndarray]
    ) -> None:
        """Sort the entries or hands of a matrix.

        Args:
          matrix: Payoff matrix of the complete game.
          labels: Board of each private state, int32 [H], for each player.
        """
        self._matrix = matrix
        if isinstance(matrix, HandMatrix):
            self._hands = [
                (hands, Groups(label[hands.private_state]))
                for hands, label in zip(matrix.hands, labels, strict=True)
            ]
        else:
            self._listed = matrix.coordinates()
            self._groups = Groups(labels[0][self._listed.rows])

    def of(
        self,
        board: int,
        round: int,
        places: tuple[np.ndarray, np.ndarray],
        shape: tuple[int, int],
    ) -> PayoffMatrix:
        """Return the matrix restricted to the private states of a board.

        Args:
          board: Label of the board.
          round: Round of the matrix, as the deal counts rounds.
          places: Number of each private state in the deal, int32 [H], for each player.
          shape: Number of each player's private states in the deal.
        """
        if isinstance(self._matrix, HandMatrix):
            both = pair(
                hands.select(groups.of(board)).renumbered(place)
                for (hands, groups), place in zip(self._hands, places, strict=True)
            )
            return HandMatrix(round, shape, both, self._matrix.showdown)
        kept = self._groups.of(board)
        rows, columns, values = (field[kept] for field in self._listed)
        entries = Payoffs(places[0][rows], places[1][columns], values)
        return SparseMatrix(round, shape, entries)
