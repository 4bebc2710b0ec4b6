"""Values of strategies in hold'em games, computed one board after another.

An evaluation needs both strategies once more, in the order of boards, and the memory of
one board. The sequence form of the game is never built.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.sequence_form.locking import Rows
from spiel_cr.solvers.cfr.board_solver import (
    BoardEngine,
    is_available,
    make_engine,
)
from spiel_cr.solvers.cfr.board_tables import scratch_size

# Action probabilities by logical sequence, float [S] of each player.
Strategies = tuple[np.ndarray, np.ndarray]
# Maximum number of action values that are computed together.
_MOST_VALUES = 20_000_000


class BoardValues:
    """Values of strategies; see `layout.Evaluator`.

    Attributes:
      engine: The game in the order of boards.
    """

    def __init__(self, engine: BoardEngine) -> None:
        self.engine = engine

    def best_values(self, behaviours: Strategies, locks: Rows) -> tuple[float, float]:
        """See `layout.Evaluator.best_values`."""
        return self.engine.best_values(
            self._positions(behaviours), locks=self.engine.by_position(locks)
        )

    def expected_value(self, behaviours: Strategies) -> float:
        """See `layout.Evaluator.expected_value`."""
        sweep = self.engine.sweep(0, self._positions(behaviours), np.dtype(float))
        return math.ldexp(self.engine.run(sweep), self.engine.game.exponent)

    def action_values(
        self, behaviours: Strategies, player: int, sequence: int
    ) -> dict[int, np.ndarray]:
        """See `layout.Evaluator.action_values`.

        The values of all decisions of the round are returned if these are not too many.
        """
        game = self.engine.game
        side, starts = game.sides[player], game.sequences[player]
        first = int(np.flatnonzero(starts == sequence)[0])
        ends = side.rounds["first_decision"]
        r = int(np.searchsorted(ends, first, "right")) - 1
        boards = range(*game.boards.first_board[r : r + 2].tolist())
        states = int(side.boards["size"][boards.start : boards.stop].sum())
        decisions = range(first, first + 1)
        if states * side.rounds["num_actions"][r] <= _MOST_VALUES:
            decisions = range(*ends[r : r + 2].tolist())
        counts, offsets = side.decisions["num_actions"], side.decisions["offset"]
        width = int(counts[decisions].sum())
        record = np.zeros(states * width)
        sweep = self.engine.sweep(player, self._positions(behaviours), record.dtype)
        recorded = np.array([decisions.start, decisions.stop, width])
        self.engine.run(sweep._replace(recorded=recorded, record=record))
        record, values = np.ldexp(record, game.exponent), {}
        for d in decisions:
            count = int(counts[d])
            values[int(starts[d])] = block = np.empty((states, count))
            for g in boards:
                start, n = side.boards[g].tolist()
                offset = int(offsets[d] - offsets[decisions.start])
                at = start * width + offset * n
                part = record[at : at + count * n].reshape(count, n)
                block[start : start + n] = part.T
        return values

    def matrix_values(
        self, player: int, round: int, reach: np.ndarray, *, showdown: bool
    ) -> np.ndarray:
        """See `layout.Evaluator.matrix_values`."""
        from spiel_cr.solvers.cfr import board_iteration

        game = self.engine.game
        side, opponent, boards = game.sides[player], game.sides[1 - player], game.boards
        first, end = boards.first_matrix[round : round + 2].tolist()
        k = first + int(np.argmax(boards.is_showdown[first:end]))
        first, end = boards.first_board[round : round + 2].tolist()
        values = np.zeros(int(side.boards["size"][first:end].sum()))
        scratch = np.zeros((3, scratch_size(side, opponent)))
        board_iteration.add_matrix(
            *(boards, side, opponent, k, showdown, reach, values, scratch)
        )
        return np.ldexp(values, game.exponents[k])

    def _positions(self, behaviours: Strategies) -> Any:
        return self.engine.by_position(behaviours)


def with_values(
    game: PublicTreeGame, form: SequenceForm, dtype: np.dtype
) -> SequenceForm:
    """Return a form whose values are computed board by board, if that is supported.

    Args:
      game: The game.
      form: The game in sequence form.
      dtype: Data type of strategies, float64 or float32.
    """
    if form.evaluator is not None or not form.is_zero_sum or not is_available():
        return form
    engine = make_engine(game, dtype)
    if engine is None:
        return form
    return dataclasses.replace(form, evaluator=BoardValues(engine))
