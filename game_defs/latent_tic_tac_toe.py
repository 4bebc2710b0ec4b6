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

The rules themselves are in `latent_board`.
"""

from collections.abc import Mapping
from typing import Any

import pyspiel

from game_defs import (
    latent_board,
    latent_vectorised,
    observation,
    parameters,
    zero_sum,
)
from game_defs.latent_board import CELLS_OF, FULL, HIDDEN, LATER, LETTERS, NUM_CELLS

__all__ = [
    "LatentTicTacToeGame",
    "LatentTicTacToeObserver",
    "LatentTicTacToeState",
]

_NAME = "python_latent_tic_tac_toe"
_CONFLICTS = ("discard", "keep")
_MAX_MOVES = {"discard": 16, "keep": 10}

_GAME_TYPE = zero_sum.game_type(
    _NAME,
    "Python Latent Tic-Tac-Toe",
    parameter_specification={"conflict": _CONFLICTS[0]},
)


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

    def vectorised(self) -> latent_vectorised.VectorisedLatentTicTacToe:
        """Returns the rules on arrays of states."""
        return latent_vectorised.VectorisedLatentTicTacToe(self.keep)

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
        return list(CELLS_OF[latent_board.legal_cells(self.board)])

    def _apply_action(self, action: int) -> None:
        player = self._player
        self.moves += f"{LETTERS[player]}{action}"
        self.board = board = latent_board.play(self.board, 1 << action)
        over = latent_board.is_over(board, self.keep)
        self._player = int(pyspiel.PlayerId.TERMINAL) if over else 1 - player

    def _action_to_string(self, player: int, action: int) -> str:
        return f"{LETTERS[player]}{action}"

    def is_terminal(self) -> bool:
        """Returns True if the game is over."""
        return self._player < 0

    def returns(self) -> list[float]:
        """Returns both players' utilities; 0 before the end."""
        if self._player >= 0:
            return [0.0, 0.0]
        return zero_sum.returns(latent_board.utility(self.board, self.keep))

    def bucket_key(self, player: int) -> int:
        """Returns the own map of the player to move, without the order of the marks.

        A key of imperfect recall: what a player forgets is when it learned what.
        """
        return latent_board.known_map(self.board, player, self.keep)

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
                self._set_board(latent_board.public_part(state.board))

    def _set_board(self, board: int) -> None:
        """Writes the pieces `board` and `later`."""
        for i in range(observation.NUM_PLAYERS):
            first = board >> NUM_CELLS * i
            self.dict["board"][i, list(CELLS_OF[first & FULL])] = 1
            self.dict["later"][i, list(CELLS_OF[first >> LATER & FULL])] = 1

    def string_from(self, state: LatentTicTacToeState, player: int) -> str:
        """Returns what `player` observes at `state`."""
        moves = state.moves
        owners = self._owners[player]
        # Every move takes two characters, so this is who made the last one.
        mover = (len(moves) // 2 + 1) % 2
        if self._recall and self._public:
            if moves and mover not in owners:
                moves = moves[:-1] + HIDDEN
            return self._names[player] + moves
        parts = [self._names[player]] if self._names[player] else []
        for owner in owners:
            own = [LETTERS[owner] + cell for cell in moves[2 * owner + 1 :: 4]]
            if self._recall:
                parts += own
            elif own:
                parts.append(f"last {own[-1]}")
        if self._public:
            board = _board_text(latent_board.public_part(state.board))
            parts.append(f"turn {len(moves) // 2} board {board}")
        return " ".join(parts)


def _board_text(board: int) -> str:
    """The nine cells as ".", "x", "o", or "X", "O" where the other marked it later."""
    text = ["."] * NUM_CELLS
    for player, letter in enumerate(LETTERS):
        first = board >> NUM_CELLS * player
        later = board >> (LATER + NUM_CELLS * (1 - player))
        for cell in CELLS_OF[first & FULL]:
            text[cell] = letter.upper() if later >> cell & 1 else letter
    return "".join(text)


pyspiel.register_game(_GAME_TYPE, LatentTicTacToeGame)
