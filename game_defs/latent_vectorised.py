"""Latent tic-tac-toe on arrays of states, by the rules of `latent_board`."""

from collections.abc import Sequence

import numpy as np
import pyspiel

from game_defs import latent_board
from game_defs.latent_board import CELLS_OF, FULL, HIDDEN, LETTERS, NUM_CELLS, TURN

__all__ = ["VectorisedLatentTicTacToe"]

_MASKS = np.array(
    [[c in CELLS_OF[s] for c in range(NUM_CELLS)] for s in range(FULL + 1)]
)
_BASE = 1 + NUM_CELLS


class VectorisedLatentTicTacToe:
    """Many states of latent tic-tac-toe; the methods are those of `pyspiel.State`.

    States are int64 [n, 2]: the board, and all moves as the digits of a decimal number,
    each the cell plus 1. Information is such a number, too, with 0 for a hidden cell.
    """

    def __init__(self, keep: bool) -> None:
        """Use `game.vectorised()` instead.

        Args:
          keep: whether the game's `conflict` is "keep".
        """
        self._keep = keep

    def new_initial_states(self) -> np.ndarray:
        """Returns the empty board."""
        return np.zeros((1, 2), np.int64)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Returns the players to move, or TERMINAL; int64 [n]."""
        board = states[:, 0]
        over = latent_board.is_over(board, self._keep) != 0
        return np.where(over, int(pyspiel.PlayerId.TERMINAL), board >> TURN)

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Returns bool [n, 9], the cells that look empty."""
        return _MASKS[latent_board.legal_cells(states[:, 0])]

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Returns the states after a mark on a legal cell each."""
        after = np.empty_like(states)
        after[:, 0] = latent_board.play(states[:, 0], np.int64(1) << actions)
        after[:, 1] = states[:, 1] * _BASE + actions + 1
        return after

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Returns player 0's utilities at the end, int64 [n]."""
        return latent_board.utility(states[:, 0], self._keep)

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Returns int64 [n], the moves with the opponent's last one hidden."""
        moves = states[:, 1]
        hidden = states[:, 0] >> TURN == player
        return np.where(hidden, moves - moves % _BASE, moves)

    def bucket_key(self, states: np.ndarray, player: int) -> np.ndarray:
        """Returns int64 [n], the keys of `LatentTicTacToeState.bucket_key`."""
        return latent_board.known_map(states[:, 0], player, self._keep)

    def information_state_strings(
        self, states: np.ndarray, player: int
    ) -> Sequence[str]:
        """Returns the strings of `LatentTicTacToeObserver` for perfect recall."""
        texts = []
        hidden = states[:, 0] >> TURN == player
        for moves, hides in zip(states[:, 1].tolist(), hidden.tolist(), strict=True):
            cells = [int(digit) - 1 for digit in str(moves)] if moves else []
            signs = "".join([f"{LETTERS[i % 2]}{cell}" for i, cell in enumerate(cells)])
            if hides and signs:
                signs = signs[:-1] + HIDDEN
            texts.append(f"p{player}:{signs}")
        return texts
