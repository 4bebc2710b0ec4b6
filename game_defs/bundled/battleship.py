"""Batched rules of `battleship`.

Both players place their ships in turn, without observing the other's. Then they shoot
in turn at the other's cells, and observe for each of their shots whether it hit water,
a ship, or the last cell of a ship. Sunk ships pay their values.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyspiel

from game_defs import base

_WATER, _HIT, _SUNK = 0, 1, 2
_LETTERS = "WHS"


def batched_battleship(game: pyspiel.Game) -> "BatchedBattleship | None":
    """Return the batched rules of a game `battleship`, or None.

    The result is None if ships can be placed so that a later one does not fit, because
    OpenSpiel forbids this with a long lookahead. It is also None if the game is not
    zero-sum.
    """
    params = game.get_parameters()
    rows, columns = params["board_height"], params["board_width"]
    sizes = [int(size) for size in params["ship_sizes"].strip("[]").split(";")]
    values = [float(value) for value in params["ship_values"].strip("[]").split(";")]
    room = all(
        # Number of disjoint positions of this size; each occupied cell blocks at most
        # one of them.
        max(rows * (columns // size), columns * (rows // size)) > sum(sizes[:number])
        for number, size in enumerate(sizes)
    )
    if not room:
        return None
    return BatchedBattleship(
        *(rows, columns, sizes, values, params["num_shots"]),
        repeats=params["allow_repeated_shots"],
    )


class BatchedBattleship:
    """Many states of battleship; the methods are those of `pyspiel.State`.

    States are int16 [n, ...]: the number of moves so far; then, for each player: the
    placements of its ships, as actions plus 1; its shots, as 3 cell + result + 1; the
    ship on each of its cells, from 1; whether each of its cells was shot at; and the
    number of cells of each ship that were not hit.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        sizes: Sequence[int],
        values: Sequence[float],
        num_shots: int,
        *,
        repeats: bool,
    ) -> None:
        """Prepare the rules; use `batched_battleship` instead.

        Args:
          rows: Number of rows of the board.
          columns: Number of columns of the board.
          sizes: Sizes of the ships.
          values: Values of the ships.
          num_shots: Number of shots of each player.
          repeats: Whether a cell may be shot at again.
        """
        self._rows, self._columns, self._cells = rows, columns, rows * columns
        self._ships, self._shots = len(sizes), num_shots
        self._values, self._repeats = np.array(values), repeats
        widths = [self._ships, num_shots, self._cells, self._cells, self._ships]
        ends = 1 + np.cumsum(np.tile(widths, base.NUM_PLAYERS)).astype(int)
        parts = [
            slice(int(e) - w, int(e)) for e, w in zip(ends, widths * 2, strict=True)
        ]
        # Columns of each part, for each player.
        self._parts = parts[:5], parts[5:]
        self._first = np.zeros((1, int(ends[-1])), np.int16)
        for placed in self._parts:
            self._first[:, placed[4]] = sizes
        self._covers = np.stack([_covered(rows, columns, size) for size in sizes])

    def new_initial_states(self) -> np.ndarray:
        """Return the empty boards."""
        return self._first.copy()

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the player to place a ship or to shoot, or TERMINAL; int64 [n]."""
        moves = states[:, 0].astype(np.int64)
        over = moves == 2 * (self._ships + self._shots)
        for parts in self._parts:
            over |= ~states[:, parts[4]].any(axis=1)
        return np.where(over, base.TERMINAL, moves % 2)

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return bool [n, 3 cells]: shots, horizontal ships, vertical ships."""
        cells = self._cells
        mask = np.zeros((len(states), 3 * cells), bool)
        for player, number, places in _groups(states):
            if number >= self._ships:
                mask[places, :cells] = True
                if not self._repeats:
                    shot_at = states[places, self._parts[1 - player][3]]
                    mask[places, :cells] = shot_at == 0
                continue
            covers = self._covers[number]
            taken = (states[places, self._parts[player][2]] > 0).astype(np.float32)
            free = taken @ covers.T.astype(np.float32) == 0
            mask[places, cells:] = free & covers.any(axis=1)
        return mask

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after one ship or shot each."""
        after = states.copy()
        after[:, 0] += 1
        for player, number, places in _groups(states):
            action = actions[places]
            if number >= self._ships:
                self._shoot(after, places, player, action, number - self._ships)
                continue
            parts = self._parts[player]
            after[places, parts[0].start + number] = action + 1
            cover = self._covers[number, action - self._cells]
            after[places, parts[2]] += cover * np.int16(number + 1)
        return after

    def _shoot(
        self,
        after: np.ndarray,
        places: np.ndarray,
        player: int,
        cell: np.ndarray,
        number: int,
    ) -> None:
        """Apply shots of one player to some of the states, in place.

        Args:
          after: The states.
          places: Indices of the states, int64 [m].
          player: Player that shoots.
          cell: Cells of the shots, int [m].
          number: Number of the player's shots before.
        """
        other = self._parts[1 - player]
        ship = after[places, other[2].start + cell] - 1
        new = after[places, other[3].start + cell] == 0
        hit = ship >= 0
        after[places, other[3].start + cell] = 1
        result = np.full(len(places), _WATER)
        hits = np.flatnonzero(hit)
        at, left = places[hits], other[4].start + ship[hits]
        after[at, left] -= new[hits].astype(np.int16)
        result[hits] = np.where(after[at, left] > 0, _HIT, _SUNK)
        after[places, self._parts[player][1].start + number] = 3 * cell + result + 1

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utilities at the end, float64 [n]."""
        first, second = (
            (states[:, parts[4]] == 0) @ self._values for parts in self._parts
        )
        return second - first

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int16 [n, k]: moves, own ships and shots, shots at own cells."""
        parts, opponent_parts = self._parts[player], self._parts[1 - player]
        shots = states[:, opponent_parts[1]]
        cells = np.where(shots > 0, (shots - 1) // 3 + 1, 0)
        return np.concatenate(
            [states[:, :1], states[:, parts[0]], states[:, parts[1]], cells], axis=1
        )

    def information_state_tensor(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return OpenSpiel's tensors, bool [n, F].

        They contain whether the game is over, the observer and the player to move, the
        placement of the observer's ships, and for every shot its player and cell; for
        the observer's shots also the result.
        """
        parts, count = self._parts[player], len(states)
        moving = self.current_player(states)
        looking, seats = np.full(count, player), np.arange(base.NUM_PLAYERS)
        head = [moving == base.TERMINAL, *(looking == seats[:, None])]
        head += list(moving == seats[:, None])
        ships = states[:, parts[0]]
        kind, cell = np.divmod(ships - 1, self._cells)
        placed = [_one_hot(kind - 1, 2), *self._place(cell)]
        shots = np.stack([states[:, parts[1]] for parts in self._parts], axis=2)
        cell, result = np.divmod(shots - 1, 3)
        whose = np.broadcast_to(seats, shots.shape)
        seen = np.where(whose == player, result, -1)
        shot = [_one_hot(whose, 2), *self._place(cell), _one_hot(seen, 3)]
        blocks = [np.stack(head, axis=1)]
        for codes, bits in ((ships, placed), (shots, shot)):
            entries = np.concatenate(bits, axis=-1) & (codes > 0)[..., None]
            blocks.append(entries.reshape(count, -1))
        return np.concatenate(blocks, axis=1)

    def _place(self, cell: np.ndarray) -> list[np.ndarray]:
        """Return rows and columns of cells, one-hot."""
        row, column = np.divmod(cell, self._columns)
        return [_one_hot(row, self._rows), _one_hot(column, self._columns)]

    def information_state_strings(self, states: np.ndarray, player: int) -> list[str]:
        """Return OpenSpiel's strings: own ships, then all shots in order."""
        parts, opponent_parts = self._parts[player], self._parts[1 - player]
        columns = [0, *range(parts[0].start, parts[1].stop)]
        columns += range(opponent_parts[1].start, opponent_parts[1].stop)
        return [
            self._text(player, row[0], row[1:]) for row in states[:, columns].tolist()
        ]

    def _text(self, player: int, moves: int, entries: list[int]) -> str:
        ships, shots = self._ships, self._shots
        text = [f"T={moves} "]
        for entry in entries[:ships]:
            if entry:
                kind, cell = divmod(entry - 1, self._cells)
                text.append(f"/{'hv'[kind - 1]}_{self._cell(cell)}")
        both = entries[ships : ships + shots], entries[ships + shots :]
        for pair in zip(*both, strict=True):
            for whose in (0, 1):
                entry = pair[0 if whose == player else 1]
                if entry:
                    cell, result = divmod(entry - 1, 3)
                    name = "shot_" if whose == player else "oppshot_"
                    seen = f":{_LETTERS[result]}" if whose == player else ""
                    text.append(f"/{name}{self._cell(cell)}{seen}")
        return "".join(text)

    def _cell(self, cell: int) -> str:
        row, column = divmod(cell, self._columns)
        return f"{row}_{column}"


def _one_hot(numbers: np.ndarray, count: int) -> np.ndarray:
    """Return a one-hot encoding, bool [..., count]; all False for -1."""
    return numbers[..., None] == np.arange(count)


def _groups(states: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield groups of states after the same number of moves.

    Yields:
      Player to move, the number of its moves so far, and the indices of the states.
    """
    moves = states[:, 0]
    if len(moves) and (moves == moves[0]).all():
        # Parallel rollouts usually have this form, which halves the cost.
        num_moves = int(moves[0])
        yield num_moves % 2, num_moves // 2, np.arange(len(moves))
        return
    for num_moves in np.unique(moves).tolist():
        yield num_moves % 2, num_moves // 2, np.flatnonzero(moves == num_moves)


def _covered(rows: int, columns: int, size: int) -> np.ndarray:
    """Return the cells of a horizontal or vertical ship, bool [2 cells, cells].

    The first axis is the direction, horizontal first, and the ship's first cell. A row
    is empty if the ship does not fit, or if it is vertical and covers one cell.
    """
    covers = np.zeros((2, rows, columns, rows, columns), bool)
    for row in range(rows):
        for column in range(columns):
            if column + size <= columns:
                covers[0, row, column, row, column : column + size] = True
            if row + size <= rows and size > 1:
                covers[1, row, column, row : row + size, column] = True
    return covers.reshape(2 * rows * columns, rows * columns)
