"""The rules of `latent_tic_tac_toe`, as functions of one integer, the board.

The functions also accept numpy arrays of int64, elementwise. The bits of a board are,
from the lowest: nine for the cells that player 0 marked first, nine for those of player
1, nine for the cells that player 0 marked later than player 1, nine for the reverse,
nine for the last mark, and the number of moves modulo 2. The empty board is 0; cell 3 *
row + column is bit 3 * row + column.
"""

from typing import TypeVar

import numpy as np

NUM_CELLS = 9
FULL = (1 << NUM_CELLS) - 1
LINES = (
    *(0b111 << 3 * row for row in range(3)),
    *(0b1001001 << column for column in range(3)),
    0b100010001,
    0b001010100,
)
# For each of the 512 sets of cells: whether it contains a line, and its size.
HAS_LINE = tuple(
    int(any(cells & line == line for line in LINES)) for cells in range(FULL + 1)
)
SIZE = tuple(cells.bit_count() for cells in range(FULL + 1))

LATER = 2 * NUM_CELLS  # shift to the cells marked later than the opponent
_LAST = 4 * NUM_CELLS  # shift to the last mark
TURN = 5 * NUM_CELLS  # shift to the player to move, unless the game is over

CELLS_OF = tuple(
    tuple(cell for cell in range(NUM_CELLS) if cells >> cell & 1)
    for cells in range(FULL + 1)
)
LETTERS = "xo"  # Letters of the players.

# A board or a set of cells as bits; an integer or an int64 array.
_Bits = TypeVar("_Bits", int, np.ndarray)


def legal_cells(board: _Bits) -> _Bits:
    """Return the cells that are empty in the information of the player to move."""
    player_shift = NUM_CELLS * (board >> TURN)
    player_cells = board >> player_shift
    other = board >> (NUM_CELLS - player_shift)
    hidden = board >> _LAST
    return FULL & ~(player_cells | (other & ~hidden))


def play(board: _Bits, mark: _Bits) -> _Bits:
    """Return the board after a mark on a legal cell, given as its bit."""
    player_shift = NUM_CELLS * (board >> TURN)
    later = mark & (board >> (NUM_CELLS - player_shift))
    kept = board & ((1 << _LAST) - 1)
    turn = ((board >> TURN) ^ 1) << TURN
    first = (mark ^ later) << player_shift
    return kept | first | (later << (player_shift + LATER)) | (mark << _LAST) | turn


def cells_of(board: _Bits, player: int, keep: bool) -> _Bits:
    """Return the cells that belong to a player, including hidden ones."""
    first = board >> (NUM_CELLS * player)
    if keep:
        return (first | (first >> LATER)) & FULL
    return first & FULL


def visible_map(board: _Bits, player: int, keep: bool) -> _Bits:
    """Return the map of the player to move, without the order of moves.

    The map has nine bits for the player's cells, then nine for the opponent's cells
    that the player has observed. A cell that both players have marked counts as the
    player's own if the variant lets it keep such a cell.
    """
    player_cells = cells_of(board, player, keep)
    other = (public_part(board) >> (NUM_CELLS * (1 - player))) & FULL
    return player_cells | ((other & ~player_cells) << NUM_CELLS)


def utility(board: _Bits, keep: bool) -> _Bits:
    """Return player 0's utility if the game is over: 1, 0 or -1."""
    line0 = _look_up(HAS_LINE, cells_of(board, 0, keep))
    line1 = _look_up(HAS_LINE, cells_of(board, 1, keep))
    return line0 - line1


def is_over(board: _Bits, keep: bool) -> _Bits:
    """Return 1 if the game is over, otherwise 0."""
    cells0 = cells_of(board, 0, keep)
    cells1 = cells_of(board, 1, keep)
    # It is player 0's turn again once player 1 has replied.
    replied = (board >> TURN) ^ 1
    line = _look_up(HAS_LINE, cells1) | (_look_up(HAS_LINE, cells0) & replied)
    if not keep:
        return line | ((cells0 | cells1) == FULL)
    shown = public_part(board)
    count0 = _look_up(SIZE, cells0) + _look_up(SIZE, (shown >> NUM_CELLS) & FULL)
    count1 = _look_up(SIZE, cells1) + _look_up(SIZE, shown & FULL)
    return line | (count0 >= NUM_CELLS - 1) | (count1 >= NUM_CELLS - 1)


def public_part(board: _Bits) -> _Bits:
    """Return the board without the last mark, which both players have observed."""
    before_last = NUM_CELLS * ((board >> TURN) ^ 1)
    last = (board >> _LAST) & FULL
    hidden = (last << before_last) | (last << (before_last + LATER))
    return board & ~hidden & ((1 << _LAST) - 1)


def _look_up(table: tuple[int, ...], cells: _Bits) -> _Bits:
    """Return the entry of a table for each set of cells."""
    if isinstance(cells, int):
        return table[cells]
    return np.asarray(table)[cells]
