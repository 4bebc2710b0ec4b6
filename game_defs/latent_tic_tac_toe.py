"""Latent tic-tac-toe: a mark becomes visible only after the opponent's next move.

Rules. Player 0 (x) and player 1 (o) mark cells of a 3 x 3 board in turn. A player marks
a cell that looks empty to it. It has seen all marks except the opponent's last one,
which becomes visible after the player's next move. Therefore a mark can conflict only
with the mark that the opponent has just made. The parameter `conflict` determines the
result of a conflict:

  "discard" (default): the later mark is lost. Only the remaining marks form lines, and
    the game is over when they fill the board.
  "keep": both players have marks on the cell. A player counts its own marks and those
    of the opponent that it has seen, except opponent marks on cells that the player
    had marked before. The game is over when one of the players counts eight.

In both variants the game is also over when player 1 has three in a line, or when
player 0 has three in a line and player 1 has replied once. If only one player has a
line, it wins 1; otherwise, the game is a draw. The last move is not revealed.

Sizes (histories are nodes of the tree; infosets are those of player 0 and player 1):
  discard: 73,159,699 histories, 37,650,720 of them terminal; 8,954,050 and 10,554,490
    infosets; at most 16 moves.
  keep: 4,854,291 histories, 3,584,128 of them terminal; 192,602 and 149,594 infosets;
    at most 10 moves. The value is 0 within 1e-4.

Sources: Lanctot, Waugh, Zinkevich, Bowling, "Monte Carlo sampling for regret
minimization in extensive games" (2009), introduce the game. The text of Schlindenbuch,
"General continual resolving" (2019), describes the rules of "discard", while its
program plays those of "keep". OpenSpiel's `latent_ttt` has the moves of "discard", but
player 1 does not get a reply to a line of player 0.

The module `latent_board` implements the rules.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from game_defs import base, latent_board, parameters
from game_defs.latent_board import CELLS_OF, FULL, LATER, LETTERS, NUM_CELLS, TURN

_NAME = "python_latent_tic_tac_toe"
_HIDDEN = "?"  # Text of a hidden cell.
_CONFLICTS = ("discard", "keep")
_MASKS = np.array(
    [[c in CELLS_OF[s] for c in range(NUM_CELLS)] for s in range(FULL + 1)]
)
_BASE = 1 + NUM_CELLS
_MAX_MOVES = {"discard": 16, "keep": 10}

_GAME_TYPE = base.game_type(
    _NAME,
    "Python Latent Tic-Tac-Toe",
    parameter_specification={"conflict": _CONFLICTS[0]},
)


class LatentTicTacToeGame(base.Game):
    """Latent tic-tac-toe; the module's docstring has its rules and its parameter."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        merged = parameters.merge(_GAME_TYPE, params, {"conflict": _CONFLICTS})
        self.max_moves = _MAX_MOVES[merged["conflict"]]
        super().__init__(
            _GAME_TYPE,
            merged,
            num_distinct_actions=NUM_CELLS,
            max_utility=1.0,
            max_game_length=self.max_moves,
        )
        self.keep = merged["conflict"] == "keep"

    def new_initial_state(self) -> "LatentTicTacToeState":
        """Return the state of the empty board."""
        return LatentTicTacToeState(self)

    def batched_rules(self) -> "BatchedLatentTicTacToe":
        """Return the batched rules."""
        return BatchedLatentTicTacToe(self.keep)

    def _observer(self, shows: pyspiel.IIGObservationType) -> base.Observer:
        return LatentTicTacToeObserver(shows, self.max_moves)


class LatentTicTacToeState(base.State):
    """A state of latent tic-tac-toe.

    Attributes:
      keep: Whether the game's `conflict` is "keep".
      board: The board as one integer in the format of `latent_board`.
      moves: All moves in order, two characters each, such as "x4o4x0".
    """

    def __init__(self, game: LatentTicTacToeGame) -> None:
        """Use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.keep = game.keep
        self.board = 0
        self.moves = ""
        self._player = 0

    def cells(self) -> list[int]:
        """Return the cells of all moves, in order."""
        return [int(cell) for cell in self.moves[1::2]]

    def current_player(self) -> int:
        """Return the player to move, or TERMINAL."""
        return self._player

    def _legal_actions(self, player: int) -> list[int]:
        return list(CELLS_OF[latent_board.legal_cells(self.board)])

    def _apply_action(self, action: int) -> None:
        player = self._player
        self.moves += f"{LETTERS[player]}{action}"
        self.board = board = latent_board.play(self.board, 1 << action)
        over = latent_board.is_over(board, self.keep)
        self._player = base.TERMINAL if over else 1 - player

    def _action_to_string(self, player: int, action: int) -> str:
        return f"{LETTERS[player]}{action}"

    def is_terminal(self) -> bool:
        """Return True if the game is over."""
        return self._player < 0

    def _utility(self) -> int:
        return latent_board.utility(self.board, self.keep)

    def bucket_key(self, player: int) -> int:
        """Return the marks that the player sees, without their order.

        This key gives imperfect recall: it omits the order in which the player made and
        saw the marks.
        """
        return latent_board.visible_map(self.board, player, self.keep)

    def __str__(self) -> str:
        """Return the board; capitals are cells that both players have marked."""
        text = _board_text(self.board)
        rows = "\n".join(text[start : start + 3] for start in range(0, NUM_CELLS, 3))
        return f"{rows}\n{self.moves}"


class LatentTicTacToeObserver(base.Observer):
    """Observer: a player's marks are private; all marks but the last are public.

    Parts of the tensor with perfect recall, with L the largest number of moves in a
    game: `marks` [(L + 1) / 2, 9], private, the player's own moves in order; `shown` [L
    - 1, 9], the revealed moves of both players. Parts without perfect recall:
    `last_mark` [9], private, the player's last move, revealed or not; `board` [2, 9]
    and `later` [2, 9], the revealed cells that each player marked first, and those that
    it marked later than the other player. In both cases `turn` [L + 1], the number of
    moves so far, is public.

    In strings "?" is a hidden mark. For example, "p1:x4o0x?" is the information of
    player 1 after the second move of player 0.
    """

    def __init__(self, shows: pyspiel.IIGObservationType, max_moves: int) -> None:
        private: dict[str, base.Shape] = {"last_mark": (NUM_CELLS,)}
        public: dict[str, base.Shape] = {"turn": (max_moves + 1,)}
        if shows.perfect_recall:
            private = {"marks": ((max_moves + 1) // 2, NUM_CELLS)}
            public["shown"] = (max_moves - 1, NUM_CELLS)
        else:
            public["board"] = public["later"] = (base.NUM_PLAYERS, NUM_CELLS)
        super().__init__(shows, private, public)
        self._names = ("p0:", "p1:") if "player" in self.dict else ("", "")

    def _set_private(
        self, pieces: base.Pieces, state: LatentTicTacToeState, owner: int
    ) -> None:
        player_marks = state.cells()[owner::2]
        if self._recall:
            base.mark(pieces["marks"], player_marks)
        else:
            pieces["last_mark"][player_marks[-1:]] = 1

    def _set_public(self, pieces: base.Pieces, state: LatentTicTacToeState) -> None:
        cells = state.cells()
        pieces["turn"][len(cells)] = 1
        if self._recall:
            base.mark(pieces["shown"], cells[:-1])
            return
        board = latent_board.public_part(state.board)
        for i in range(base.NUM_PLAYERS):
            first = board >> NUM_CELLS * i
            pieces["board"][i, list(CELLS_OF[first & FULL])] = 1
            pieces["later"][i, list(CELLS_OF[first >> LATER & FULL])] = 1

    def string_from(self, state: LatentTicTacToeState, player: int) -> str:
        """Return what `player` observes at `state`."""
        moves = state.moves
        owners = self._owners[player]
        # Each move has two characters, so this is the player of the last move.
        mover = (len(moves) // 2 + 1) % 2
        if self._recall and self._public:
            if moves and mover not in owners:
                moves = moves[:-1] + _HIDDEN
            return self._names[player] + moves
        parts = [self._names[player]] if self._names[player] else []
        for owner in owners:
            text = [LETTERS[owner] + cell for cell in moves[2 * owner + 1 :: 4]]
            if self._recall:
                parts += text
            elif text:
                parts.append(f"last {text[-1]}")
        if self._public:
            board = _board_text(latent_board.public_part(state.board))
            parts.append(f"turn {len(moves) // 2} board {board}")
        return " ".join(parts)


class BatchedLatentTicTacToe:
    """Batched states of latent tic-tac-toe; the methods are those of `pyspiel.State`.

    States are int64 [n, 2]: the board, and all moves as the digits of a decimal number,
    each the cell plus 1. Information states are such numbers, too, with 0 for a hidden
    cell.
    """

    def __init__(self, keep: bool) -> None:
        """Use `game.batched_rules()` instead.

        Args:
          keep: Whether the game's `conflict` is "keep".
        """
        self._keep = keep

    def new_initial_states(self) -> np.ndarray:
        """Return the empty board."""
        return np.zeros((1, 2), np.int64)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the players to move, or TERMINAL; int64 [n]."""
        board = states[:, 0]
        over = latent_board.is_over(board, self._keep) != 0
        return np.where(over, base.TERMINAL, board >> TURN)

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return the cells that look empty, bool [n, 9]."""
        return _MASKS[latent_board.legal_cells(states[:, 0])]

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after a mark on a legal cell each."""
        after = np.empty_like(states)
        after[:, 0] = latent_board.play(states[:, 0], np.int64(1) << actions)
        after[:, 1] = states[:, 1] * _BASE + actions + 1
        return after

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utilities at the end, int64 [n]."""
        return latent_board.utility(states[:, 0], self._keep)

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return the moves with the opponent's last one hidden, int64 [n]."""
        moves = states[:, 1]
        hidden = states[:, 0] >> TURN == player
        return np.where(hidden, moves - moves % _BASE, moves)

    def bucket_key(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return the keys of `LatentTicTacToeState.bucket_key`, int64 [n]."""
        return latent_board.visible_map(states[:, 0], player, self._keep)

    def information_state_strings(self, states: np.ndarray, player: int) -> list[str]:
        """Return the strings of `LatentTicTacToeObserver` with perfect recall."""
        texts = []
        hidden = states[:, 0] >> TURN == player
        for moves, hides in zip(states[:, 1].tolist(), hidden.tolist(), strict=True):
            cells = [int(digit) - 1 for digit in str(moves)] if moves else []
            signs = "".join([f"{LETTERS[i % 2]}{cell}" for i, cell in enumerate(cells)])
            if hides and signs:
                signs = signs[:-1] + _HIDDEN
            texts.append(f"p{player}:{signs}")
        return texts


def _board_text(board: int) -> str:
    """Return the cells as ".", "x", "o"; a capital if the other marked it later."""
    text = ["."] * NUM_CELLS
    for player, letter in enumerate(LETTERS):
        first = board >> NUM_CELLS * player
        later = board >> (LATER + NUM_CELLS * (1 - player))
        for cell in CELLS_OF[first & FULL]:
            text[cell] = letter.upper() if later >> cell & 1 else letter
    return "".join(text)


pyspiel.register_game(_GAME_TYPE, LatentTicTacToeGame)
