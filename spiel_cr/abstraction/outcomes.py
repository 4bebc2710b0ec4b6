"""How signals do at the end: weights of signals, and what they win in the last round.

Legend for shapes: H signals of one player in one round.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np
from scipy import sparse

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.matrix_operators import make_operator
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    PayoffMatrix,
    compares,
)


class Outcomes(NamedTuple):
    """One player's signals by what they do at the end, if nobody folds.

    Attributes:
      weights: for each round float64 [H], how likely each signal is; they sum to 1.
      strengths: float64 [H of the last round, n], columns that clusters are made by,
        one per matrix of the last round in which somebody compares hands: the player's
        own utility per unit of stake, averaged over the opponent's signals. Where there
        is one such matrix this is twice the win probability (ties count half), minus 1.
    """

    weights: tuple[np.ndarray, ...]
    strengths: np.ndarray

    def means(self, parents: tuple[np.ndarray, ...], round: int) -> np.ndarray:
        """float64 [H, n], strengths averaged over what may follow in later rounds."""
        means = self.strengths
        for r in range(len(parents) - 1, round, -1):
            means = averages(parents[r], self.weights[r], means, self.weights[r - 1])
        return means


def averages(
    parent: np.ndarray, weights: np.ndarray, values: np.ndarray, above: np.ndarray
) -> np.ndarray:
    """Values averaged over the signals that refine each signal.

    Args:
      parent: int32 [h], the signal that each refining signal refines.
      weights: float64 [h], theirs.
      values: float64 [h, n].
      above: float64 [H], weights of the signals.

    Returns:
      float64 [H, n]; 0 where a signal has no weight.
    """
    rows = np.arange(len(parent))
    sums = sparse.csr_array((weights, (parent, rows)), (len(above), len(parent)))
    divisor = np.where(above > 0, above, 1.0)[:, None]
    return (sums @ values) / divisor


def outcomes(game: PublicTreeGame, player: int) -> Outcomes:
    """What a player's signals win in the last round.

    Args:
      game: the game.
      player: whose signals.

    Raises:
      InvalidGameError: nothing is paid in the last round.
    """
    last = game.num_rounds - 1
    payoff_matrices = [
        payoff_matrix
        for payoff_matrix in game.payoff_matrices
        if payoff_matrix.round == last
    ]
    if not payoff_matrices:
        raise InvalidGameError(
            f"{game.game}: nothing is paid in its last round {last}, so its signals "
            "cannot be told apart by what they win; partition them by "
            "gameshrink.lossless_partition"
        )
    everything = np.ones(game.num_private_states(1 - player)[last])
    dealt = max(
        (_dealt(payoff_matrix, player) for payoff_matrix in payoff_matrices), key=np.sum
    )
    compared = [
        payoff_matrix for payoff_matrix in payoff_matrices if compares(payoff_matrix)
    ] or payoff_matrices
    divisor = np.where(dealt != 0, dealt, 1.0)
    columns = [
        _times(payoff_matrix, player, everything) / divisor
        for payoff_matrix in compared
    ]
    weights = [dealt / dealt.sum()]
    for r in range(last, 0, -1):
        count = game.num_private_states(player)[r - 1]
        weights.insert(0, np.bincount(game.parents[player][r], weights[0], count))
    return Outcomes(tuple(weights), np.stack(columns, axis=1))


def _dealt(payoff_matrix: PayoffMatrix, player: int) -> np.ndarray:
    """float64 [H], sums of absolute entries, of hands that of who can have what."""
    if isinstance(payoff_matrix, HandMatrix):
        folded = dataclasses.replace(payoff_matrix, showdown=False)
        return np.abs(_times(folded, player, np.ones(payoff_matrix.shape[1 - player])))
    rows, columns, values = payoff_matrix.coordinates()
    states = rows if player == 0 else columns
    return np.bincount(states, np.abs(values), payoff_matrix.shape[player])


def _times(payoff_matrix: PayoffMatrix, player: int, other: np.ndarray) -> np.ndarray:
    """The player's utility against weights of the opponent's signals.

    Args:
      payoff_matrix: see `games.public_tree.payoff_matrices`.
      player: whose.
      other: float64 [H of the opponent].

    Returns:
      float64 [H].
    """
    if isinstance(payoff_matrix, HandMatrix):
        with jax.enable_x64(True):
            product = make_operator(payoff_matrix, player)
            return np.asarray(product.apply(jax.numpy.asarray(other[None])))[0]
    rows, columns, values = payoff_matrix.coordinates()
    matrix = sparse.csr_array((values, (rows, columns)), shape=payoff_matrix.shape)
    return (matrix if player == 0 else -matrix.T) @ other
