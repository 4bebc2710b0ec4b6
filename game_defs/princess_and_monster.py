"""Princess and monster: a pursuit game in which the players never see each other.

Rules. On a grid of squares the princess (player 0) starts in the first corner, the
monster (player 1) in the opposite one. They move in turn, the princess first, to an
orthogonally adjacent square; staying is not allowed. Neither player observes the
other's moves. The princess is caught as soon as both are on the same square, no matter
which of them moved there. The game also ends when both have made `horizon` moves.

Payoffs, zero-sum, with T the horizon: a princess that is never caught receives 2 T; one
that is caught after m moves, counting both players' moves, receives -(2 T - m).
Therefore the monster prefers an early capture, and a capture by its last move pays 0.

Parameters.
  horizon: largest number of moves of each player, up to 50 (default 5). It must be
    large enough for the players to meet, because otherwise a capture is impossible.
  rows, columns: size of the grid, from 2 to 10 (default 3 and 3).

Sizes, 3 x 3. T = 4: 2043 histories (nodes of the tree), 25 infosets for each player,
value 42/13 = 3.2308 for the princess; T = 5: 11,283, 73 and 1.8715572.

Squares are numbered row by row; the first corner is square 0.

Source: Schlindenbuch (2019), thesis on general continual resolving; Lanctot et al.,
"Monte Carlo sampling for regret minimization in extensive games" (2009); the game is
due to Isaacs, "Differential games" (1965).
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyspiel

from game_defs import base, parameters

_NAME = "python_princess_and_monster"
_NO_SQUARE = -1

# Each action is a direction: its name, and the step in rows and columns.
DIRECTIONS = (("Up", -1, 0), ("Right", 0, 1), ("Down", 1, 0), ("Left", 0, -1))

_GAME_TYPE = base.game_type(
    _NAME,
    "Python Princess and Monster",
    parameter_specification={"horizon": 5, "rows": 3, "columns": 3},
)


# Rules as tables and pure functions, which also accept arrays (elementwise).


def neighbour_table(rows: int, columns: int) -> tuple[tuple[int, ...], ...]:
    """Return the square that each direction leads to from each square.

    Returns:
      One row for each of the rows * columns squares, with one target square for each of
      the four `DIRECTIONS`; -1 if the step would leave the grid.
    """

    def target(square: int, down: int, right: int) -> int:
        row, column = square // columns + down, square % columns + right
        inside = 0 <= row < rows and 0 <= column < columns
        return row * columns + column if inside else _NO_SQUARE

    return tuple(
        tuple(target(square, *step) for _, *step in DIRECTIONS)
        for square in range(rows * columns)
    )


def is_over(
    caught: bool | np.ndarray, num_moves: int | np.ndarray, horizon: int
) -> bool | np.ndarray:
    """Return whether the game is over; `num_moves` counts both players' moves."""
    return caught | (num_moves == 2 * horizon)


def utility(
    caught: bool | np.ndarray, num_moves: int | np.ndarray, horizon: int
) -> int | np.ndarray:
    """Return the princess's utility at the end; `num_moves` counts all moves."""
    # 2 T, or num_moves - 2 T if the princess is caught.
    return 2 * horizon - caught * (4 * horizon - num_moves)


@dataclasses.dataclass(frozen=True)
class _PrincessRules(base.Shared):
    """Parameters of the game that its states use."""

    horizon: int
    neighbours: tuple[tuple[int, ...], ...]


class PrincessAndMonsterGame(base.Game):
    """Princess and monster; the module's docstring has its rules and parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        allowed = {"rows": range(2, 11), "columns": range(2, 11)}
        merged = parameters.merge(_GAME_TYPE, params, allowed)
        horizon, rows, columns = merged["horizon"], merged["rows"], merged["columns"]
        moves_to_meet = rows + columns - 2
        horizons = range((moves_to_meet + 1) // 2, 51)
        parameters.check(_NAME, "horizon", horizon, horizons)
        super().__init__(
            _GAME_TYPE,
            merged,
            num_distinct_actions=len(DIRECTIONS),
            max_utility=2.0 * horizon,
            max_game_length=2 * horizon,
        )
        self.rules = _PrincessRules(horizon, neighbour_table(rows, columns))

    def new_initial_state(self) -> "PrincessAndMonsterState":
        """Return the state with both players in their corners."""
        return PrincessAndMonsterState(self)

    def batched_rules(self) -> "BatchedPrincessAndMonster":
        """Return the batched rules."""
        return BatchedPrincessAndMonster(self.rules)

    def _observer(self, shows: pyspiel.IIGObservationType) -> base.Observer:
        return PrincessAndMonsterObserver(
            shows, self.rules.horizon, len(self.rules.neighbours)
        )


class PrincessAndMonsterState(base.State):
    """A state of princess and monster: the squares that both have visited.

    Attributes:
      rules: Parameters of the game.
      squares: Bytes, both start squares, then the squares moved to in turn;
        `squares[player::2]` is one player's path.
    """

    def __init__(self, game: PrincessAndMonsterGame) -> None:
        """Use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.rules = game.rules
        # Clones deep-copy each attribute; bytes are immutable, so copies are free.
        self.squares = bytes((0, len(game.rules.neighbours) - 1))

    def num_moves(self) -> int:
        """Return the number of moves of both players so far."""
        return len(self.squares) - 2

    def is_caught(self) -> bool:
        """Return True if both are on the same square, which the last move led to."""
        return self.squares[-1] == self.squares[-2]

    def current_player(self) -> int:
        """Return the player to move, or TERMINAL at the end."""
        if self.is_terminal():
            return base.TERMINAL
        return len(self.squares) % 2

    def _legal_actions(self, player: int) -> list[int]:
        targets = self.rules.neighbours[self.squares[-2]]
        return [action for action in range(4) if targets[action] != _NO_SQUARE]

    def _apply_action(self, action: int) -> None:
        # The player to move is the one that did not move last.
        target = self.rules.neighbours[self.squares[-2]][action]
        self.squares += bytes((target,))

    def _action_to_string(self, player: int, action: int) -> str:
        return DIRECTIONS[action][0]

    def is_terminal(self) -> bool:
        """Return True if the princess is caught or all moves are made."""
        return bool(is_over(self.is_caught(), self.num_moves(), self.rules.horizon))

    def _utility(self) -> float:
        return float(utility(self.is_caught(), self.num_moves(), self.rules.horizon))

    def bucket_key(self, player: int) -> tuple[int, int]:
        """Return the number of moves and the player's square.

        This key gives imperfect recall: it omits the path to the square.
        """
        return self.num_moves(), self.squares[player::2][-1]

    def __str__(self) -> str:
        princess, monster = _path(self.squares[0::2]), _path(self.squares[1::2])
        return f"princess {princess} monster {monster}"


class PrincessAndMonsterObserver(base.Observer):
    """Observer: a player's path is private; the number of moves is public.

    Parts of the tensor: `path` [T + 1, squares] with perfect recall, the player's start
    and the square after each of its moves; `square` [squares] without perfect recall,
    the last of these squares. `moves` [2 T + 1], the number of both players' moves, and
    `caught` [1] are public.
    """

    def __init__(
        self, shows: pyspiel.IIGObservationType, horizon: int, num_squares: int
    ) -> None:
        private: dict[str, base.Shape] = {"square": (num_squares,)}
        if shows.perfect_recall:
            private = {"path": (horizon + 1, num_squares)}
        super().__init__(shows, private, {"moves": (2 * horizon + 1,), "caught": (1,)})

    def _set_private(
        self, pieces: base.Pieces, state: PrincessAndMonsterState, owner: int
    ) -> None:
        if self._recall:
            base.mark(pieces["path"], state.squares[owner::2])
        else:
            pieces["square"][state.squares[owner::2][-1]] = 1

    def _set_public(self, pieces: base.Pieces, state: PrincessAndMonsterState) -> None:
        pieces["moves"][state.num_moves()] = 1
        pieces["caught"][0] = state.is_caught()

    def _private_text(self, state: PrincessAndMonsterState, owner: int) -> str:
        path = state.squares[owner::2]
        return _private_path_text(owner, path if self._recall else path[-1:])

    def _public_text(self, state: PrincessAndMonsterState) -> str:
        return _moves_text(state.num_moves()) + " caught" * state.is_caught()


class BatchedPrincessAndMonster:
    """Batched states of the game; the methods are those of `pyspiel.State`.

    States are uint8 [n, 3 + 2 T]: the number of moves, then the squares of
    `PrincessAndMonsterState`, followed by zeros for later moves.
    """

    def __init__(self, rules: _PrincessRules) -> None:
        """Use `game.batched_rules()` instead."""
        self._horizon = rules.horizon
        self._neighbours = np.array(rules.neighbours)

    def _square(self, states: np.ndarray, back: int) -> np.ndarray:
        """Return the square that is `back` places from the end: 1 is the last one."""
        return states[np.arange(len(states)), 3 + states[:, 0].astype(int) - back]

    def _is_caught(self, states: np.ndarray) -> np.ndarray:
        return self._square(states, 1) == self._square(states, 2)

    def new_initial_states(self) -> np.ndarray:
        """Return the state with both players in their corners."""
        states = np.zeros((1, 3 + 2 * self._horizon), np.uint8)
        states[0, 2] = len(self._neighbours) - 1
        return states

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the players to move, or TERMINAL; int64 [n]."""
        moves = states[:, 0].astype(np.int64)
        over = is_over(self._is_caught(states), moves, self._horizon)
        return np.where(over, base.TERMINAL, moves % 2)

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return the directions that stay on the grid, bool [n, 4]."""
        return self._neighbours[self._square(states, 2)] != _NO_SQUARE

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after one move each."""
        after = states.copy()
        after[:, 0] += 1
        targets = self._neighbours[self._square(states, 2), actions]
        after[np.arange(len(after)), 2 + after[:, 0].astype(int)] = targets
        return after

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return the princess's utilities at the end, int64 [n]."""
        moves = states[:, 0].astype(np.int64)
        return np.asarray(utility(self._is_caught(states), moves, self._horizon))

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return uint8 [n, 2 + T]: the number of moves and the player's path."""
        return np.concatenate([states[:, :1], states[:, 1 + player :: 2]], axis=1)

    def bucket_key(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return the keys of `PrincessAndMonsterState.bucket_key`, int64 [n, 2]."""
        moves = states[:, 0].astype(np.int64)
        last = 1 + player + 2 * ((moves + 1 - player) // 2)
        return np.stack([moves, states[np.arange(len(states)), last]], axis=1)

    def information_state_strings(self, states: np.ndarray, player: int) -> list[str]:
        """Return the observer's strings with perfect recall, before any capture."""
        texts = []
        for moves, *path in self.information_state(states, player).tolist():
            visited = path[: 1 + (moves + 1 - player) // 2]
            texts.append(f"{_private_path_text(player, visited)} {_moves_text(moves)}")
        return texts


def _private_path_text(player: int, path: Iterable[int]) -> str:
    return f"p{player} at {_path(path)}"


def _moves_text(num_moves: int) -> str:
    return f"moves {num_moves}"


def _path(squares: Iterable[int]) -> str:
    """Return squares in the order of visits, as a readable string."""
    return ">".join([str(square) for square in squares])


pyspiel.register_game(_GAME_TYPE, PrincessAndMonsterGame)
