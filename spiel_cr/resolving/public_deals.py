"""Which private information a subgame of a signal game has: all, or that of a board."""

from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import Groups
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    Hands,
    PayoffMatrix,
    SparseMatrix,
)
from spiel_cr.games.public_tree.public_nodes import ancestors
from spiel_cr.games.sequence_form.decisions import Payoffs
from spiel_cr.resolving.public_decomposition import PublicDecomposition


class BoardDeal(NamedTuple):
    """The signals that a subgame has, and how they compare.

    Attributes:
      first: the subgame's first round, which it counts as round 0.
      signals: for each player and each round from `first` on int32, ascending, signals
        of the whole game.
      parents: as of a signal game, in the deal's numbers.
      payoff_matrices: those of its rounds, in the deal's numbers.
      number: int32 [K of the whole game], the place of each among
        `payoff_matrices`; -1 for those of earlier rounds.
    """

    first: int
    signals: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    parents: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    payoff_matrices: tuple[PayoffMatrix, ...]
    number: np.ndarray

    def num_private_states(self, player: int) -> np.ndarray:
        """int64, how many signals a player has, by round."""
        return np.array([len(parent) for parent in self.parents[player]])

    def ancestors(self, player: int, round: int, above: int) -> np.ndarray:
        """int32 [H], the signal of an earlier round behind each one of a round."""
        return ancestors(self.parents[player], round, above)


def full_deal(game: PublicTreeGame) -> BoardDeal:
    """All signals of all rounds."""
    first, second = (
        tuple(
            np.arange(count, dtype=np.int32)
            for count in game.num_private_states(player)
        )
        for player in range(2)
    )
    number = np.arange(len(game.payoff_matrices), dtype=np.int32)
    return BoardDeal(0, (first, second), game.parents, game.payoff_matrices, number)


class BoardDeals:
    """Cuts the signals of boards out, each when it is asked for.

    Attributes:
      whole: all signals.
    """

    def __init__(self, d: PublicDecomposition) -> None:
        """Takes the boards of a decomposition."""
        self._d = d
        self.whole = full_deal(d.game)
        self._sorted: dict[tuple[int, int], _Sorted] = {}

    def of_board(self, round: int, board: int) -> BoardDeal:
        """The signals of a board in a round, and what becomes of them later on.

        Args:
          round: the first round.
          board: a label of the decomposition's `boards` in that round.
        """
        game, labels = self._d.game, self._d.boards[round]
        if round == 0 and all((label == board).all() for label in labels):
            return self.whole
        signals, parents, places = [], [], []
        for player in range(2):
            kept = [np.flatnonzero(labels[player] == board).astype(np.int32)]
            above = [np.zeros(len(kept[0]), np.int32)]
            place = [_numbered(kept[0], len(labels[player]))]
            for parent in game.parents[player][round + 1 :]:
                kept.append(np.flatnonzero(place[-1][parent] >= 0).astype(np.int32))
                above.append(place[-1][parent[kept[-1]]])
                place.append(_numbered(kept[-1], len(parent)))
            signals.append(tuple(kept))
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
            shape = len(signals[0][later]), len(signals[1][later])
            payoff_matrices.append(
                self._entries(round, k).of(board, later, both, shape)
            )
        return BoardDeal(
            *(round, (signals[0], signals[1]), (parents[0], parents[1])),
            *(tuple(payoff_matrices), number),
        )

    def _entries(self, round: int, k: int) -> "_Sorted":
        if (round, k) not in self._sorted:
            matrix = self._d.game.payoff_matrices[k]
            first, second = (
                label[self._d.game.ancestors(player, matrix.round, round)]
                for player, label in enumerate(self._d.boards[round])
            )
            self._sorted[round, k] = _Sorted(matrix, (first, second))
        return self._sorted[round, k]


class _Sorted:
    """A matrix whose entries, or hands, are found board by board."""

    def __init__(
        self, matrix: PayoffMatrix, labels: tuple[np.ndarray, np.ndarray]
    ) -> None:
        """Sorts it.

        Args:
          matrix: of the whole game.
          labels: for each player int32 [H], the board of each signal.
        """
        self._matrix = matrix
        if isinstance(matrix, HandMatrix):
            self._hands = [
                (hands, Groups(label[hands.signal]))
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
        """The matrix on the signals of a board only.

        Args:
          board: the label.
          round: that of the matrix, as the deal counts.
          places: for each player int32 [H], number of each signal in the deal.
          shape: how many there are.
        """
        if isinstance(self._matrix, HandMatrix):
            first, second = (
                _pick(hands, groups.of(board), place)
                for (hands, groups), place in zip(self._hands, places, strict=True)
            )
            return HandMatrix(round, shape, (first, second), self._matrix.showdown)
        kept = self._groups.of(board)
        rows, columns, values = (field[kept] for field in self._listed)
        entries = Payoffs(places[0][rows], places[1][columns], values)
        return SparseMatrix(round, shape, entries)


def _pick(hands: Hands, kept: np.ndarray, place: np.ndarray) -> Hands:
    picked = Hands(*(field[kept] for field in hands))
    return picked._replace(signal=place[picked.signal])


def _numbered(kept: np.ndarray, count: int) -> np.ndarray:
    """int32 [count], 0, 1, ... at the numbers that are kept, -1 elsewhere."""
    place = np.full(count, -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    return place
