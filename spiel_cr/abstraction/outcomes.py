"""Weights of private states, and their strengths in the last round.

Legend for shapes: H private states of one player in one round.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np
from scipy import sparse

from spiel_cr.common.compilation_cache import caching
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.matrix_operators import make_operator
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    PayoffMatrix,
    compares,
)


class Outcomes(NamedTuple):
    """Weights and strengths of one player's private states, if no player folds.

    Attributes:
      weights: Probability of each private state by round, float64 [H]; they sum
        to 1.
      strengths: The features for clustering, one column per payoff matrix of the last
        round that compares hands, float64 [H of the last round, n]: the player's own
        utility per unit of stake, averaged over the opponent's private states. With one
        such matrix it is twice the win probability (ties count half), minus 1.
    """

    weights: tuple[np.ndarray, ...]
    strengths: np.ndarray

    def means(self, parents: tuple[np.ndarray, ...], round: int) -> np.ndarray:
        """Return strengths averaged over later rounds, float64 [H, n]."""
        means = self.strengths
        for r in range(len(parents) - 1, round, -1):
            means = averages(parents[r], self.weights[r], means, self.weights[r - 1])
        return means


def averages(
    parent: np.ndarray, weights: np.ndarray, values: np.ndarray, above: np.ndarray
) -> np.ndarray:
    """Average values over the private states that refine each private state.

    Args:
      parent: Private state that each refining one refines, int32 [h].
      weights: Weights of the refining private states, float64 [h].
      values: Values of the refining private states, float64 [h, n].
      above: Weights of the refined private states, float64 [H].

    Returns:
      Averages, float64 [H, n]; 0 where a private state has no weight.
    """
    rows = np.arange(len(parent))
    sums = sparse.csr_array((weights, (parent, rows)), (len(above), len(parent)))
    divisor = np.where(above > 0, above, 1.0)[:, None]
    return (sums @ values) / divisor


def outcomes(game: PublicTreeGame, player: int) -> Outcomes:
    """Compute weights and strengths of a player's private states.

    Args:
      game: Game in public-tree form.
      player: Player of the private states.

    Raises:
      InvalidGameError: If the last round has no payoffs.
    """
    last = game.num_rounds - 1
    matrices = game.matrices_in(last).values()
    if not matrices:
        raise InvalidGameError(
            f"{game.game}: its last round {last} has no payoffs, so private states "
            "cannot be distinguished by strength; use "
            "gameshrink.lossless_partition"
        )
    everything = np.ones(game.num_private_states(1 - player)[last])
    dealt = max((_dealt(one, player, everything) for one in matrices), key=np.sum)
    compared = list(filter(compares, matrices)) or matrices
    divisor = np.where(dealt != 0, dealt, 1.0)
    columns = [_times(matrix, player, everything) / divisor for matrix in compared]
    weights = [dealt / dealt.sum()]
    for r in range(last, 0, -1):
        count = game.num_private_states(player)[r - 1]
        weights.insert(0, np.bincount(game.parents[player][r], weights[0], count))
    return Outcomes(tuple(weights), np.stack(columns, axis=1))


def deal_weights(
    game: PublicTreeGame, player: int, round: int, other: np.ndarray
) -> np.ndarray:
    """Return the total weight of the deals of each of a player's private states.

    Deals are weighted by chance, and by a weight of the opponent's private state. They
    are read from the payoff matrix of the last round with the largest entries: of a
    fold, or of comparisons without ties.

    Args:
      game: Game in public-tree form.
      player: Player of the private states.
      round: Round of both players' private states.
      other: Weights of the opponent's private states, float64 [H'].

    Returns:
      Weights up to a common factor, float64 [H].
    """
    last = max(matrix.round for matrix in game.payoff_matrices)
    behind, other_behind = (
        game.ancestors(p, last, round) for p in (player, 1 - player)
    )
    other, matrices = other[other_behind], game.matrices_in(last).values()
    sums = [_dealt(matrix, player, other) for matrix in matrices]
    count = game.num_private_states(player)[round]
    return np.bincount(behind, max(sums, key=np.sum), count)


def _dealt(payoff_matrix: PayoffMatrix, player: int, other: np.ndarray) -> np.ndarray:
    """Return the weight of the deals of each private state, up to a factor.

    For hands it is the total weight of compatible hands of the opponent; otherwise the
    sum of absolute entries; float64 [H].

    Args:
      payoff_matrix: Payoff matrix.
      player: Player of the private states.
      other: Weights of the opponent's private states, float64 [H'].
    """
    if isinstance(payoff_matrix, HandMatrix):
        folded = dataclasses.replace(payoff_matrix, showdown=False)
        return np.abs(_times(folded, player, other))
    rows, columns, values = payoff_matrix.coordinates()
    states, others = (rows, columns) if player == 0 else (columns, rows)
    weights = np.abs(values) * other[others]
    return np.bincount(states, weights, payoff_matrix.shape[player])


def _times(payoff_matrix: PayoffMatrix, player: int, other: np.ndarray) -> np.ndarray:
    """Return the player's utility against weights of the opponent's private states.

    Args:
      payoff_matrix: Payoff matrix, see `games.public_tree.payoff_matrices`.
      player: Player of the utility.
      other: Weights of the opponent's private states, float64 [H'].

    Returns:
      Utilities, float64 [H].
    """
    if isinstance(payoff_matrix, HandMatrix):
        with caching(), jax.enable_x64(True):
            product = make_operator(payoff_matrix, player)
            return np.asarray(product.apply(jax.numpy.asarray(other[None])))[0]
    rows, columns, values = payoff_matrix.coordinates()
    matrix = sparse.csr_array((values, (rows, columns)), shape=payoff_matrix.shape)
    return (matrix if player == 0 else -matrix.T) @ other
