"""Latent tic-tac-toe: a mark is shown only after the opponent's next move.

Rules. Player 0 (x) and player 1 (o) mark cells of a 3 x 3 board in turn. A player marks
a cell that is empty as far as it knows: it has seen all marks but the opponent's last
one, which is shown right after its own move. So the only mark that can conflict with
another is one on the cell that the opponent has just marked. What then happens is the
parameter `conflict`:

  "discard" (default): the later mark is lost. Lines are judged on the marks that stand;
    the game is over when these fill the board.
  "keep": the cell belongs to both. Each player counts its own marks and those of the
    opponent that it has seen, the latter without marks on cells that it had before; the
    game is over when one of them counts eight.

In both variants the game is also over when player 1 has three in a line, or when
player 0 has and player 1 has replied once. Who alone has a line wins 1; else it is a
draw. Nothing is shown after the last move.

Sizes (histories are nodes of the tree; infosets are those of player 0 and player 1):
  discard: 73 159 699 histories, 37 650 720 of them terminal; 8 954 050 and 10 554 490
    infosets; at most 16 moves.
  keep: 4 854 291 histories, 3 584 128 of them terminal; 192 602 and 149 594 infosets;
    at most 10 moves. The value is 0 within 1e-4.

Sources: Lanctot, Waugh, Zinkevich, Bowling, "Monte Carlo sampling for regret
minimization in extensive games" (2009), who introduce the game; Schlindenbuch, "General
continual resolving" (2019), whose text has the rules of "discard" and whose program
plays those of "keep". OpenSpiel's `latent_ttt` has the moves of "discard", but player 1
gets no reply to a line of player 0.

The rules below are functions of one integer, the board, and take numpy arrays of int64
just as well, elementwise. Its bits, from the lowest: nine for the cells that player 0
marked first, nine for those of player 1, nine for the cells that player 0 marked later
than player 1, nine for the opposite, nine for the last mark, the number of moves
modulo 2. The empty board is 0; cell 3 * row + column is bit 3 * row + column.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pyspiel

from game_defs import observation, parameters, zero_sum

__all__ = [
    "FULL",
    "HAS_LINE",
    "LINES",
    "NUM_CELLS",
    "SIZE",
    "LatentTicTacToeGame",
    "LatentTicTacToeObserver",
    "LatentTicTacToeState",
    "cells_of",
    "is_over",
    "legal_cells",
    "play",
    "public_part",
    "utility",
]

_NAME = "python_latent_tic_tac_toe"
_CONFLICTS = ("discard", "keep")
_MAX_MOVES = {"discard": 16, "keep": 10}

_GAME_TYPE = zero_sum.game_type(
    _NAME,
    "Python Latent Tic-Tac-Toe",
    parameter_specification={"conflict": _CONFLICTS[0]},
)

NUM_CELLS = 9
FULL = (1 << NUM_CELLS) - 1
LINES = (
    *(0b111 << 3 * row for row in range(3)),
    *(0b1001001 << column for column in range(3)),
    0b100010001,
    0b001010100,
)
# What a set of cells is worth, for all 512 of them: has it a line, and its size.
HAS_LINE = tuple(
    int(any(cells & line == line for line in LINES)) for cells in range(FULL + 1)
)
SIZE = tuple(cells.bit_count() for cells in range(FULL + 1))

_LATER = 2 * NUM_CELLS  # shift to the cells marked later than the opponent
_LAST = 4 * NUM_CELLS  # shift to the last mark
_TURN = 5 * NUM_CELLS  # shift to the player to move

_CELLS_OF = tuple(
    tuple(cell for cell in range(NUM_CELLS) if cells >> cell & 1)
    for cells in range(FULL + 1)
)
_LETTERS = "xo"

# A board or a set of cells, as bits; or an array of them, int64.
_Bits = TypeVar("_Bits", int, np.ndarray)


def legal_cells(board: _Bits) -> _Bits:
    """Returns the cells that are empty as far as the player to move knows."""
    own_shift = NUM_CELLS * (board >> _TURN)
    own = board >> own_shift
    other = board >> (NUM_CELLS - own_shift)
    hidden = board >> _LAST
    return FULL & ~(own | (other & ~hidden))


def play(board: _Bits, mark: _Bits) -> _Bits:
    """Returns the board after a mark on a legal cell, given as its bit."""
    own_shift = NUM_CELLS * (board >> _TURN)
    later = mark & (board >> (NUM_CELLS - own_shift))
    kept = board & ((1 << _LAST) - 1)
    turn = ((board >> _TURN) ^ 1) << _TURN
    first = (mark ^ later) << own_shift
    return kept | first | (later << (own_shift + _LATER)) | (mark << _LAST) | turn


def cells_of(board: _Bits, player: int, keep: bool) -> _Bits:
    """Returns the cells that belong to a player, hidden ones included."""
    first = board >> (NUM_CELLS * player)
    if keep:
        return (first | (first >> _LATER)) & FULL
    return first & FULL


def utility(board: _Bits, keep: bool) -> _Bits:
    """Returns player 0's utility if the game is over: 1, 0 or -1."""
    line0 = _look_up(HAS_LINE, cells_of(board, 0, keep))
    line1 = _look_up(HAS_LINE, cells_of(board, 1, keep))
    return line0 - line1


def is_over(board: _Bits, keep: bool) -> _Bits:
    """Returns 1 if the game is over, else 0."""
    cells0 = cells_of(board, 0, keep)
    cells1 = cells_of(board, 1, keep)
    # It is player 0's turn again once player 1 has replied.
    replied = (board >> _TURN) ^ 1
    line = _look_up(HAS_LINE, cells1) | (_look_up(HAS_LINE, cells0) & replied)
    if not keep:
        return line | ((cells0 | cells1) == FULL)
    shown = public_part(board)
    count0 = _look_up(SIZE, cells0) + _look_up(SIZE, (shown >> NUM_CELLS) & FULL)
    count1 = _look_up(SIZE, cells1) + _look_up(SIZE, shown & FULL)
    return line | (count0 >= NUM_CELLS - 1) | (count1 >= NUM_CELLS - 1)


def public_part(board: _Bits) -> _Bits:
    """Returns the board without the last mark: what both players have seen."""
    before_last = NUM_CELLS * ((board >> _TURN) ^ 1)
    last = (board >> _LAST) & FULL
    hidden = (last << before_last) | (last << (before_last + _LATER))
    return board & ~hidden & ((1 << _LAST) - 1)


def _look_up(table: tuple[int, ...], cells: _Bits) -> _Bits:
    """The entry of a table for a set of cells, or the entries for an array of them."""
    if isinstance(cells, int):
        return table[cells]
    return np.asarray(table)[cells]


class LatentTicTacToeGame(pyspiel.Game):
    """Latent tic-tac-toe; the module's docstring has its rules and its parameter."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        merged = parameters.merge(_GAME_TYPE, params)
        parameters.check_choice(_NAME, "conflict", merged["conflict"], _CONFLICTS)
        self.max_moves = _MAX_MOVES[merged["conflict"]]
        info = zero_sum.game_info(
            num_distinct_actions=NUM_CELLS,
            max_utility=1.0,
            max_game_length=self.max_moves,
        )
        super().__init__(_GAME_TYPE, info, merged)
        self.keep = merged["conflict"] == "keep"

    def new_initial_state(self) -> "LatentTicTacToeState":
        """Returns the state of the empty board."""
        return LatentTicTacToeState(self)

    def make_py_observer(
        self,
        iig_obs_type: pyspiel.IIGObservationType | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> "LatentTicTacToeObserver":
        """Returns an observer; without a type, that of the observation tensor."""
        return LatentTicTacToeObserver(
            observation.type_to_show(_NAME, iig_obs_type, params),
            self.max_moves,
        )


class LatentTicTacToeState(pyspiel.State):
    """A state of latent tic-tac-toe.

    Attributes:
      keep: whether the game's `conflict` is "keep".
      board: the board as one integer, as the functions of this module take it.
      moves: all moves in order, two characters each, as "x4o4x0".
    """

    def __init__(self, game: LatentTicTacToeGame) -> None:
        """Use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.keep = game.keep
        self.board = 0
        self.moves = ""
        self._player = 0

    def current_player(self) -> int:
        """Returns the player to move, or TERMINAL."""
        return self._player

    def _legal_actions(self, player: int) -> list[int]:
        return list(_CELLS_OF[legal_cells(self.board)])

    def _apply_action(self, action: int) -> None:
        player = self._player
        self.moves += f"{_LETTERS[player]}{action}"
        self.board = board = play(self.board, 1 << action)
        over = is_over(board, self.keep)
        self._player = int(pyspiel.PlayerId.TERMINAL) if over else 1 - player

    def _action_to_string(self, player: int, action: int) -> str:
        return f"{_LETTERS[player]}{action}"

    def is_terminal(self) -> bool:
        """Returns True if the game is over."""
        return self._player < 0

    def returns(self) -> list[float]:
        """Returns both players' utilities; 0 before the end."""
        if self._player >= 0:
            return [0.0, 0.0]
        return zero_sum.returns(utility(self.board, self.keep))

    def __str__(self) -> str:
        """The board in three rows; a capital holds a cell that both have marked."""
        text = _board_text(self.board)
        rows = "\n".join(text[start : start + 3] for start in range(0, NUM_CELLS, 3))
        return f"{rows}\n{self.moves}"


class LatentTicTacToeObserver:
    """Observer: public are the turn and all marks but the last, private the own marks.

    The pieces of the tensor, with L the most moves of the game, for perfect recall:
    `marks` [(L + 1) / 2, 9], private, the player's own moves in order; `shown`
    [L - 1, 9], the moves of both that have been shown. Otherwise: `last_mark` [9],
    private, the player's last move, shown yet or not; `board` [2, 9] and `later`
    [2, 9], the cells shown that each player marked first and later than the other.
    Always: `turn` [L + 1], the number of moves so far, is public; `player` [2], who
    observes, comes with the private pieces of one player. If those of both players are
    shown, they have a leading axis of players.

    In strings a mark that is not shown is "?", so "p1:x4o0x?" is the information of
    player 1 when player 0 has made its second move.
    """

    def __init__(
        self, iig_obs_type: pyspiel.IIGObservationType, max_moves: int
    ) -> None:
        self._recall = iig_obs_type.perfect_recall
        self._public = iig_obs_type.public_info
        self._owners = observation.owners_shown(iig_obs_type.private_info)
        own = (
            {"marks": ((max_moves + 1) // 2, NUM_CELLS)}
            if self._recall
            else {"last_mark": (NUM_CELLS,)}
        )
        shapes = observation.private_shapes(iig_obs_type.private_info, own)
        self._names = ("p0:", "p1:") if "player" in shapes else ("", "")
        if self._public:
            shapes["turn"] = (max_moves + 1,)
            if self._recall:
                shapes["shown"] = (max_moves - 1, NUM_CELLS)
            else:
                shapes["board"] = shapes["later"] = (observation.NUM_PLAYERS, NUM_CELLS)
        self.tensor, self.dict = observation.allocate(shapes)

    def set_from(self, state: LatentTicTacToeState, player: int) -> None:
        """Writes what `player` observes at `state` to `tensor` and so to `dict`."""
        observation.clear(self.tensor, self.dict, player)
        moves = [int(cell) for cell in state.moves[1::2]]
        owners = self._owners[player]
        for i, owner in enumerate(owners):
            own = moves[owner::2]
            if self._recall:
                rows = self.dict["marks"].reshape(len(owners), -1, NUM_CELLS)[i]
                for number, cell in enumerate(own):
                    rows[number, cell] = 1
            elif own:
                self.dict["last_mark"].reshape(len(owners), -1)[i, own[-1]] = 1
        if self._public:
            self.dict["turn"][len(moves)] = 1
            if self._recall:
                for number, cell in enumerate(moves[:-1]):
                    self.dict["shown"][number, cell] = 1
            else:
                self._set_board(public_part(state.board))

    def _set_board(self, board: int) -> None:
        """Writes the pieces `board` and `later`."""
        for i in range(observation.NUM_PLAYERS):
            first = board >> NUM_CELLS * i
            self.dict["board"][i, list(_CELLS_OF[first & FULL])] = 1
            self.dict["later"][i, list(_CELLS_OF[first >> _LATER & FULL])] = 1

    def string_from(self, state: LatentTicTacToeState, player: int) -> str:
        """Returns what `player` observes at `state`."""
        moves = state.moves
        owners = self._owners[player]
        # Every move takes two characters, so this is who made the last one.
        mover = (len(moves) // 2 + 1) % 2
        if self._recall and self._public:
            if moves and mover not in owners:
                moves = moves[:-1] + "?"
            return self._names[player] + moves
        parts = [self._names[player]] if self._names[player] else []
        for owner in owners:
            own = [_LETTERS[owner] + cell for cell in moves[2 * owner + 1 :: 4]]
            if self._recall:
                parts += own
            elif own:
                parts.append(f"last {own[-1]}")
        if self._public:
            board = _board_text(public_part(state.board))
            parts.append(f"turn {len(moves) // 2} board {board}")
        return " ".join(parts)


def _board_text(board: int) -> str:
    """The nine cells as ".", "x", "o", or "X", "O" where the other marked it later."""
    text = ["."] * NUM_CELLS
    for player, letter in enumerate(_LETTERS):
        first = board >> NUM_CELLS * player
        later = board >> (_LATER + NUM_CELLS * (1 - player))
        for cell in _CELLS_OF[first & FULL]:
            text[cell] = letter.upper() if later >> cell & 1 else letter
    return "".join(text)


pyspiel.register_game(_GAME_TYPE, LatentTicTacToeGame)
