"""Estimate of the memory that solving a public-tree game requires.

The estimate follows from the sizes of the game alone, and nothing large is allocated.
The factors were fitted to the peak memory of processes on CPUs
(docs/development/lab-notes/public-trees.md).
"""

import dataclasses
from typing import Any

import numpy as np

from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix, PayoffMatrix

# Memory of a process that solves the smallest game; and memory of XLA for all compiled
# functions, for each kind of decision, because each kind becomes a block of arrays.
_BASE, _KIND = 350e6, 6.3e6
# For each infoset the tolerance, on the host and cast, and the arrays of an evaluation;
# for each sequence the logical numbers, while a result is constructed.
_INFOSET, _SEQUENCE = 16, 8
# Copies of the state at the peak: the state, and temporary arrays of an iteration.
_STATES = 1.6
# Best responses: number of float64 vectors over sequences that exist at once.
_VECTORS = 1
# Copies of the game's arrays: as declared, in the form of both players, and cast.
_GAMES = 3
# For each hand of a matrix of hands: its arrays for both players, on the host and cast.
_HAND = 450
# Of iterations board by board: memory of a process that compiles them, and for each
# hand of a matrix, in the game and in the order of boards.
_BOARD_BASE, _BOARD_HAND = 450e6, 280


def game_bytes(game: PublicTreeGame) -> int:
    """Return the size of the arrays of a public-tree game, with payoff matrices."""
    parts = game.betting, game.parents, game.payoff_matrices, game.terms
    return sum(map(_bytes, parts))


def _bytes(part: Any) -> int:
    """Return the size of an array, or of all arrays in a tuple or dataclass."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    if dataclasses.is_dataclass(part):
        values = (getattr(part, field.name) for field in dataclasses.fields(part))
        return sum(map(_bytes, values))
    return sum(map(_bytes, part)) if isinstance(part, tuple) else 0


def num_kinds(game: PublicTreeGame) -> int:
    """Return the number of kinds of public decisions of both players.

    Decisions are of one kind if they have the same round, the same number of previous
    decisions of the player, and about the same number of actions (rounded up to a power
    of two).
    """
    betting, count = game.betting, 0
    levels = betting.levels()[1:]
    for player in range(2):
        acts = betting.player == player
        before = np.zeros(len(betting), np.int32)
        for nodes in levels:
            above = betting.parent[nodes]
            before[nodes] = before[above] + acts[above]
        width = np.ceil(np.log2(np.maximum(betting.num_actions, 1))).astype(np.int32)
        kinds = np.stack([before, betting.round, width])[:, acts]
        count += np.unique(kinds, axis=1).shape[1]
    return count


def _hand_bytes(matrix: PayoffMatrix) -> float:
    """Return the memory of a matrix of hands for both players; 0 for other matrices."""
    if not isinstance(matrix, HandMatrix):
        return 0.0
    return float(_HAND * sum(len(side.board) for side in matrix.hands))


def peak_bytes(game: PublicTreeGame, dtype: np.typing.DTypeLike) -> float:
    """Return the peak memory of solving the game by full-width iterations.

    Args:
      game: The public-tree game.
      dtype: Floating-point type of the computation.
    """
    infosets = sum(side.num_infosets for side in game.public_decisions)
    sequences = sum(side.num_sequences for side in game.public_decisions)
    state = 4 * sequences * np.dtype(dtype).itemsize
    host = float(_INFOSET * infosets + _SEQUENCE * sequences)
    host += _GAMES * game_bytes(game)
    host += sum(_hand_bytes(matrix) for matrix in game.payoff_matrices)
    vectors = 8 * _VECTORS * sequences
    return _BASE + compilation_bytes(game) + host + _STATES * state + vectors


def board_bytes(game: PublicTreeGame, dtype: np.typing.DTypeLike) -> float:
    """Return the peak memory of solving the game board by board, without JAX.

    Args:
      game: The public-tree game, whose payoff matrices are matrices of hands.
      dtype: Floating-point type of the computation.
    """
    sequences = sum(side.num_sequences for side in game.public_decisions)
    hands = sum(_hand_bytes(matrix) for matrix in game.payoff_matrices) / _HAND
    state = 2 * sequences * np.dtype(dtype).itemsize
    return _BOARD_BASE + state + _BOARD_HAND * hands


def compilation_bytes(game: PublicTreeGame) -> float:
    """Return the memory that the compilation of full-width iterations requires."""
    return _KIND * num_kinds(game)
