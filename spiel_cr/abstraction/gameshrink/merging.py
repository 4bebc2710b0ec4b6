"""Merging of equivalent private states, and numbering by boards, for solvers."""

import numpy as np

from spiel_cr.abstraction.gameshrink.equitable import lossless_partition
from spiel_cr.abstraction.gameshrink.partition import Partition, coarsen
from spiel_cr.common.arrays import joint_components
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix


def merged(game: PublicTreeGame) -> PublicTreeGame:
    """Merge private states without loss, if an exact test finds equivalent ones.

    The private states of the result are numbered board by board, so that payoff
    matrices consist of blocks of neighbours
    (`games.public_tree.block_operators.BlockRuns`).

    Games with matrices of hands, which already merge equivalent suits, and games with
    deals that are not equally likely are returned unchanged.
    """
    if any(isinstance(matrix, HandMatrix) for matrix in game.payoff_matrices):
        return game
    try:
        partition = lossless_partition(game)
    except (InvalidGameError, GameTooLargeError):  # no exact test for this game
        return game
    before = [game.num_private_states(player) for player in range(2)]
    if [partition.num_classes(player) for player in range(2)] == before:
        return game
    return coarsen(game, board_by_board(game, partition))


def board_by_board(game: PublicTreeGame, partition: Partition) -> Partition:
    """Return the same classes, numbered so that classes that interact are neighbours.

    Args:
      game: Game in public-tree form; its matrices are listed.
      partition: Partition of its private states.
    """
    labels: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for r in range(game.num_rounds):
        first, second = partition.labels[0][r], partition.labels[1][r]
        count = 1 + int(first.max(initial=-1))
        payoff_matrices = [k.coordinates() for k in game.matrices_in(r).values()]
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
