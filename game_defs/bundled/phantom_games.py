"""Batched rules of `phantom_ttt` and `dark_hex`.

Both players place stones on the same board and do not see the opponent's stones. A
player that tries an occupied cell learns that it is occupied and does not get it. In
the classical variants the same player then tries another cell; in the abrupt variants
the turn is over. With `reveal-numturns`, a player also observes when the opponent has
tried a cell.

Phantom tic-tac-toe is won by three in a row. In dark hex, player 0 connects the first
row with the last one, player 1 the first column with the last one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyspiel

from game_defs import base
from game_defs.bundled.packing import Packing
from game_defs.latent_board import LINES

# Cells are bits of one integer, and so are turns if the game reveals them.
_MOST_BITS = 62
# Columns of the states, before those of sequences.
_PLAYER, _TURN, _WINNER, _STONES, _TRIED, _SEQUENCES = 0, 1, 2, 3, 5, 7
# Values of the column _WINNER other than the players.
_GOES_ON, _DRAW = -1, 2

_SYMBOLS = "xo"


def batched_phantom_ttt(game: pyspiel.Game) -> "BatchedPhantomRules":
    """Return the batched rules of a game `phantom_ttt`."""
    params = game.get_parameters()
    turns = params["obstype"] == "reveal-numturns"
    return BatchedPhantomRules(
        *(3, 3),
        _three_in_a_row,
        abrupt=params["gameversion"] == "abrupt",
        sees_turns=turns,
        # The string contains the number of turns only if turns are revealed.
        counts_turns=turns,
        tensor=_View(cell=1, symbol=9, empty=0, stones=(2, 1)),
    )


def batched_dark_hex(game: pyspiel.Game) -> "BatchedPhantomRules | None":
    """Return the batched rules of a game `dark_hex`, or None for very large boards.

    The result is also None for boards with one row or column, because OpenSpiel 2.0.2
    does not detect that a single stone touches both sides.
    """
    params = game.get_parameters()
    rows, columns = params["num_rows"], params["num_cols"]
    turns = params["obstype"] == "reveal-numturns"
    bits = rows * columns * (2 if turns else 1)
    if bits > _MOST_BITS or min(rows, columns) < 2:
        return None
    return BatchedPhantomRules(
        *(rows, columns),
        _Hex(rows, columns).connects,
        abrupt=params["gameversion"] == "adh",
        sees_turns=turns,
        counts_turns=True,
        # OpenSpiel reserves symbols for stones at a side; views do not use them.
        tensor=_View(cell=9, symbol=1, empty=4, stones=(5, 3)),
    )


class _View(NamedTuple):
    """Positions in a tensor of the entries for a player's view of the cells.

    Attributes:
      cell: Distance between the entries of consecutive cells.
      symbol: Distance between the entries of consecutive symbols.
      empty: Symbol of a cell of unknown content.
      stones: Symbols of both players' stones.
    """

    cell: int
    symbol: int
    empty: int
    stones: tuple[int, int]

    @property
    def symbols(self) -> int:
        """Number of entries of a cell."""
        return self.cell if self.symbol == 1 else max(self.stones) + 1


class BatchedPhantomRules:
    """Batched states of a phantom game; the methods are those of `pyspiel.State`.

    States are int64 [n, 7 + ...]: the player to act; the number of turns so far; the
    winner; the stones of both players, as bits; the cells that each player has tried,
    as bits. Then follow each player's tries in order, 2 cell + 1 if the try succeeded
    and 2 cell + 2 if the cell was occupied. If players observe turns, the last column
    contains the turns of player 1, as bits.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        wins: Callable[[np.ndarray, int], np.ndarray],
        *,
        abrupt: bool,
        sees_turns: bool,
        counts_turns: bool,
        tensor: _View,
    ) -> None:
        """Use `batched_phantom_ttt` or `batched_dark_hex` instead.

        Args:
          rows: Number of rows of the board.
          columns: Number of columns of the board.
          wins: Function of stones, int64 [n], and their player that returns bool [n],
            whether that player has won.
          abrupt: Whether the turn is over even if the cell is occupied.
          sees_turns: Whether players observe when the opponent tries a cell.
          counts_turns: Whether information states contain the number of turns.
          tensor: Positions of the player's view in the tensor.
        """
        self._shape = rows, columns
        self._wins = wins
        self._abrupt = abrupt
        self._sees_turns = sees_turns
        self._counts_turns = counts_turns
        self._tensor = tensor
        self._cells = np.arange(rows * columns)
        self._tries = Packing(len(self._cells), 2 * len(self._cells))
        self._try_columns = [
            self._tries.columns(_SEQUENCES, p) for p in range(base.NUM_PLAYERS)
        ]
        self._movers = self._try_columns[-1].stop

    def new_initial_states(self) -> np.ndarray:
        """Return the empty board."""
        states = np.zeros((1, self._movers + self._sees_turns), np.int64)
        states[:, _WINNER] = _GOES_ON
        return states

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the players to act, or TERMINAL; int64 [n]."""
        goes_on = states[:, _WINNER] == _GOES_ON
        return np.where(goes_on, states[:, _PLAYER], base.TERMINAL)

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return the cells that the player to act has not tried, bool [n, cells]."""
        tried = _of(states, _TRIED, states[:, _PLAYER])
        return tried[:, None] >> self._cells & 1 == 0

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after one try each."""
        after = states.copy()
        player = states[:, _PLAYER]
        bit = 1 << actions
        taken = _of(states, _STONES, 1 - player) & bit != 0
        for p in range(base.NUM_PLAYERS):
            moves = player == p
            after[:, _TRIED + p] |= np.where(moves, bit, 0)
            after[:, _STONES + p] |= np.where(moves & ~taken, bit, 0)
            place = np.bitwise_count(states[:, _TRIED + p]).astype(np.int64)
            entry = np.where(moves, 2 * actions + 1 + taken, 0)
            self._tries.put(after[:, self._try_columns[p]], place, entry)
            may_win = moves & ~taken
            may_win[may_win] = self._wins(after[may_win, _STONES + p], p)
            after[may_win, _WINNER] = p
        full = after[:, _STONES] | after[:, _STONES + 1]
        full = full == (1 << len(self._cells)) - 1
        after[full & (after[:, _WINNER] == _GOES_ON), _WINNER] = _DRAW
        after[:, _PLAYER] = np.where(taken & (not self._abrupt), player, 1 - player)
        if self._sees_turns:
            after[:, self._movers] |= player << states[:, _TURN]
        after[:, _TURN] += 1
        return after

    def move_outcomes(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return which tries would succeed, and which would meet an occupied cell.

        Both are [n, cells]; the second is 1 for occupied cells. The result is None if
        players observe more than that: if a rejected try ends the turn, or turns are
        revealed. The number of turns in the strings of `dark_hex` is ignored, because
        this method describes the observation that reveals nothing.
        """
        if self._abrupt or self._sees_turns:
            return None
        player = states[:, _PLAYER]
        stones, other = _of(states, _STONES, player), _of(states, _STONES, 1 - player)
        taken = other[:, None] >> self._cells & 1
        return (stones[:, None] >> self._cells & 1) + taken == 0, taken

    def abrupt_board(self) -> tuple[int, Callable[..., np.ndarray]] | None:
        """Return the number of cells, and `wins`; None for classical variants.

        The result is also None if turns are revealed, because players then have more
        information.
        """
        if not self._abrupt or self._sees_turns:
            return None
        return len(self._cells), self._wins

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utilities at the end, int64 [n]."""
        return np.array([1, -1, 0])[states[:, _WINNER]]

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int64 [n, k]: the player's tries, results, and turns if revealed."""
        columns = [states[:, self._try_columns[player]]]
        if self._counts_turns:
            columns.append(states[:, _TURN, None])
        if self._sees_turns:
            columns.append(states[:, self._movers, None])
        return np.concatenate(columns, axis=1)

    def information_state_strings(self, states: np.ndarray, player: int) -> list[str]:
        """Return OpenSpiel's strings: the player's view, turns, and its tries."""
        num_cells = len(self._cells)
        tries = self._tries.unpack(states[:, self._try_columns[player]], num_cells)
        turns = states[:, _TURN].tolist()
        movers = turns
        if self._sees_turns:
            movers = states[:, self._movers].tolist()
        rows = zip(tries.tolist(), turns, movers, strict=True)
        return [self._text(player, *row) for row in rows]

    def information_state_tensor(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return OpenSpiel's tensors, bool [n, F]: the player's view, and its tries.

        If turns are revealed, the tries of both players in order replace the player's;
        cells that the opponent tried are unknown.
        """
        view, cells = self._tensor, len(self._cells)
        tries = self._tries.unpack(states[:, self._try_columns[player]], cells)
        state, place = np.nonzero(tries)
        cell, taken = np.divmod(tries[state, place] - 1, 2)
        moves = np.zeros((len(states), cells, cells), bool)
        moves[state, place, cell] = 1
        seen = np.zeros((len(states), cells * view.symbols), bool)
        seen[:, view.empty * view.symbol + self._cells * view.cell] = 1
        seen[state, view.empty * view.symbol + cell * view.cell] = 0
        symbol = np.where(taken, view.stones[1 - player], view.stones[player])
        seen[state, symbol * view.symbol + cell * view.cell] = 1
        if self._sees_turns:
            moves = self._all_moves(states, player, moves)
        return np.concatenate([seen, moves.reshape(len(states), -1)], axis=1)

    def _all_moves(
        self, states: np.ndarray, player: int, player_tries: np.ndarray
    ) -> np.ndarray:
        """Return all tries in order, bool [n, turns, 1 + cells + 1].

        The first column is set for tries of player 1, and the last one if the cell is
        unknown.

        Args:
          states: States of the game.
          player: The player that observes the tries.
          player_tries: The player's own tries, bool [n, cells, cells].
        """
        cells = len(self._cells)
        turn = np.arange(2 * cells - 1)
        is_over = turn < states[:, _TURN, None]
        mover = np.where(is_over, states[:, self._movers, None] >> turn & 1, -1)
        moves = np.zeros((*mover.shape, cells + 2), bool)
        moves[:, :, 0] = mover == 1
        moves[:, :, -1] = mover == 1 - player
        is_player = mover == player
        state, place = np.nonzero(is_player)
        number = np.cumsum(is_player, axis=1)[state, place] - 1
        moves[state, place, 1:-1] = player_tries[state, number]
        return moves

    def _text(self, player: int, tries: list[int], turns: int, movers: int) -> str:
        view = ["."] * len(tries)
        player_tries = []
        for entry in tries:
            if entry:
                cell, taken = divmod(entry - 1, 2)
                view[cell] = _SYMBOLS[1 - player if taken else player]
                player_tries.append(f"{player},{cell} ")
        width = self._shape[1]
        lines = ["".join(view[i : i + width]) for i in range(0, len(view), width)]
        if self._counts_turns:
            lines.append(str(turns))
        if not self._sees_turns:
            return "\n".join([*lines, "".join(player_tries)])
        player_tries.reverse()
        players = [movers >> turn & 1 for turn in range(turns)]
        shown = [player_tries.pop() if p == player else f"{p},? " for p in players]
        return "\n".join([*lines, "".join(shown)])


def _of(states: np.ndarray, first: int, player: np.ndarray) -> np.ndarray:
    """Return the column of each state's `player`; `first` is the column of player 0."""
    return np.where(player == 0, states[:, first], states[:, first + 1])


def _three_in_a_row(stones: np.ndarray, player: int) -> np.ndarray:
    """Return whether the stones contain a line, bool [n]; the same for both players."""
    del player
    return np.any([stones & line == line for line in LINES], axis=0)


class _Hex:
    """Test whether stones on a hexagonal board connect two opposite sides."""

    def __init__(self, rows: int, columns: int) -> None:
        self._columns = columns
        cells = np.arange(rows * columns).reshape(rows, columns)
        # The sides that a player connects: rows for player 0, columns for player 1.
        self._from = _bits(cells[0]), _bits(cells[:, 0])
        self._to = _bits(cells[-1]), _bits(cells[:, -1])
        self._not_first = ~_bits(cells[:, 0])
        self._not_last = ~_bits(cells[:, -1])

    def connects(self, stones: np.ndarray, player: int) -> np.ndarray:
        """Return whether the stones of a player connect its two sides, bool [n]."""
        reached = stones & self._from[player]
        while True:
            left, right = reached & self._not_first, reached & self._not_last
            beside = left >> 1 | right << 1 | left << self._columns - 1
            above = reached >> self._columns | reached << self._columns
            further = (reached | beside | above | right >> self._columns - 1) & stones
            if np.array_equal(further, reached):
                return reached & self._to[player] != 0
            reached = further


def _bits(cells: np.ndarray) -> int:
    return sum(1 << int(cell) for cell in cells)
