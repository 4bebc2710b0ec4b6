"""Signal games as solvers like them: nothing told apart in vain, boards together."""

import numpy as np

from spiel_cr.abstraction.gameshrink.equitable import lossless_partition
from spiel_cr.abstraction.gameshrink.partition import Partition, coarsen
from spiel_cr.common.arrays import joint_components
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix


def merged(signals: PublicTreeGame) -> PublicTreeGame:
    """The game without distinctions that make no difference, where these are found.

    Its signals are numbered board by board, so that matrices are made of blocks of
    neighbours (`games.public_tree.block_operators.BlockRuns`).

    Matrices of hands, which take account of suits already, and deals that are not
    equally likely are left as they are.
    """
    if any(isinstance(matrix, HandMatrix) for matrix in signals.payoff_matrices):
        return signals
    try:
        partition = lossless_partition(signals)
    except (InvalidGameError, GameTooLargeError):  # no exact test for this game
        return signals
    before = [signals.num_private_states(player) for player in range(2)]
    if [partition.num_classes(player) for player in range(2)] == before:
        return signals
    return coarsen(signals, board_by_board(signals, partition))


def board_by_board(signals: PublicTreeGame, partition: Partition) -> Partition:
    """The same classes, those that meet each other numbered side by side.

    Args:
      signals: the game; its matrices are listed.
      partition: of its signals.
    """
    labels: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for r in range(signals.num_rounds):
        first, second = partition.labels[0][r], partition.labels[1][r]
        count = 1 + int(first.max(initial=-1))
        payoff_matrices = [
            k.coordinates() for k in signals.payoff_matrices if k.round == r
        ]
        none = [np.zeros(0, np.int64)]
        rows = np.concatenate([*(first[k.rows] for k in payoff_matrices), *none])
        columns = np.concatenate([*(second[k.columns] for k in payoff_matrices), *none])
        shape = count, 1 + int(second.max(initial=-1))
        parts = joint_components(rows, columns, shape)
        for player_labels, classes, boards in (
            (labels[0], first, parts.rows),
            (labels[1], second, parts.columns),
        ):
            rank = np.empty(len(boards), np.int32)
            rank[np.argsort(boards, kind="stable")] = np.arange(len(boards))
            player_labels.append(rank[classes])
    return Partition((tuple(labels[0]), tuple(labels[1])))
