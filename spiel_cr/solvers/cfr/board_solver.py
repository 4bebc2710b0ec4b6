"""Full-width CFR for hold'em on CPUs, one board after another.

The iterates are those of `cfr` up to rounding. Regrets and average reach are stored
once for each private state and action, and everything else is computed again on each
board (see `board_iteration`). The boards below the root are divided into parts, which
threads process, and whose results are added in a fixed order.
"""

import functools
import importlib.util
import itertools
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from spiel_cr.common import memory
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form import locking
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies.conversions import Behaviours, reach_from_behaviour
from spiel_cr.solvers.cfr import board_arrays, board_tables
from spiel_cr.solvers.cfr.cfr import averaging
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver, SolverFunctions

# Number of parts of the boards below the root, and thus most threads. The values of
# each part are added up, so a result does not depend on the number of threads.
_PARTS = 16
# Most sequences of a game whose result has the last iterate.
MOST_KEPT = 5_000_000


class BoardState(NamedTuple):
    """State of a solve.

    Attributes:
      regrets: Cumulative regrets of each player by position, in units of
        2^`Solver.exponent`, float [S].
      average: Weighted mean of the reach of each player by position, float [S].
      iteration: Number of iterations completed, int64 scalar.
      weight: Sum of averaging weights, see `cfr.CFRState`, float64 scalar.
    """

    regrets: tuple[np.ndarray, np.ndarray]
    average: tuple[np.ndarray, np.ndarray]
    iteration: np.ndarray
    weight: np.ndarray


def is_available() -> bool:
    """Return whether numba is installed and JAX uses a CPU."""
    installed = importlib.util.find_spec("numba") is not None
    return installed and jax.default_backend() == "cpu"


def supports(config: Any) -> bool:
    """Return whether the settings, the installation and the device are supported."""
    if not isinstance(config, CFRConfig):
        return False
    rule = config.rule
    changed = rule.custom is not None or rule.predictive or rule.exploration > 0
    plain = config.alternating and config.weights is None and not changed
    return plain and is_available()


class _Memory(NamedTuple):
    """Working memory for computations in one data type.

    Attributes:
      sides: Both players' sides, with numbers of the type.
      spaces: One `board_iteration.Workspace` per thread.
      totals: Values that each part adds to the rows of the board above, float [16, M].
    """

    sides: tuple[Any, Any]
    spaces: list[Any]
    totals: np.ndarray


class BoardEngine:
    """Function `advance` of `SolverFunctions`, and evaluations of the same game.

    Attributes:
      game: Arrays of the game.
      dtype: Data type of the state.
      locks: Locked probabilities by position of each player; None without locks.
    """

    def __init__(self, game: Any, dtype: np.dtype) -> None:
        self.game, self.dtype = game, dtype
        self.locks: tuple[np.ndarray, np.ndarray] | None = None
        most = max(1, int(np.diff(game.boards.first_child).max(initial=0)))
        self._threads = min(_PARTS, _num_processors(), most)
        self._executor = ThreadPoolExecutor(self._threads)
        self._memory = functools.cache(self._allocate)

    def __call__(
        self, problem: Any, state: BoardState, iterations: Any, *, config: CFRConfig
    ) -> BoardState:
        """Run some iterations, which overwrite the arrays of the state."""
        regrets, average = (
            tuple(x if x.flags.writeable else x.copy() for x in map(np.asarray, pair))
            for pair in (state.regrets, state.average)
        )
        weight: Any = np.float64(state.weight)
        iteration = int(state.iteration)
        if not iterations:  # The functions are compiled when they are first called.
            self.run(self.sweep(0, regrets, self.dtype, locks=self.locks))
            memory.trim()
        for t in range(iteration + 1, iteration + 1 + int(iterations)):
            number: Any = np.float64(t)
            weight, share = averaging(config, weight, number)
            numbers = [*config.rule.discounts(number), np.sqrt(number), share]
            for player in range(2):
                sweep = self.sweep(player, regrets, self.dtype, locks=self.locks)
                self.run(
                    sweep._replace(
                        average=average[player],
                        numbers=np.array(numbers, self.dtype),
                        update=True,
                        positive=config.rule.beta == -math.inf,
                    )
                )
            iteration = t
        return BoardState(
            (regrets[0], regrets[1]),
            (average[0], average[1]),
            np.asarray(iteration),
            np.asarray(weight),
        )

    def best_values(
        self, average: tuple[np.ndarray, ...], *, locks: Any
    ) -> tuple[float, float]:
        """Return each player's best-response value, computed in double precision.

        Args:
          average: Average strategies by position, see `BoardState`. Only the
            proportions at each infoset matter.
          locks: Locked probabilities of each player, as `locks`, or None.
        """
        dtype, values = np.dtype(float), []
        for player in range(2):
            sweep = self.sweep(player, average, dtype, locks=locks)
            total = self.run(sweep._replace(best=True))
            values.append(math.ldexp(total, self.game.exponent))
        return values[0], values[1]

    def by_position(
        self, rows: Sequence[np.ndarray | None]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return numbers of sequences by position, negative where they are NaN.

        Args:
          rows: Strategies or locked probabilities of each player by logical sequence,
            float; or None, if all are NaN.

        Returns:
          Float [S] of each player, or None if no player has any.
        """
        if all(part is None for part in rows):
            return None
        from spiel_cr.solvers.cfr import board_iteration

        game, result = self.game, []
        for player, part in enumerate(rows):
            result.append(np.full(game.sizes[player], -1.0, self.dtype))
            if part is not None:
                board_iteration.fill_positions(
                    *(game.sides[player], game.boards.round, np.asarray(part)),
                    *(game.sequences[player], result[-1]),
                )
        return result[0], result[1]

    def sweep(
        self, player: int, weights: Any, dtype: np.dtype, *, locks: Any = None
    ) -> Any:
        """Return the arguments of an evaluation of a player's strategy.

        Args:
          player: The player.
          weights: Numbers proportional to both players' strategies, by position.
          dtype: Data type of the arithmetic.
          locks: As for `best_values`.
        """
        sides = self._memory(dtype).sides
        if locks is not None:
            first, second = (
                side._replace(locks=kept)
                for side, kept in zip(sides, locks, strict=True)
            )
            sides = first, second
        return board_tables.Sweep(
            boards=self.game.boards,
            player=sides[player],
            opponent=sides[1 - player],
            weights=weights[player],
            average=weights[player],
            opponent_weights=weights[1 - player],
            numbers=np.zeros(4, dtype),
            best=False,
            update=False,
            positive=False,
            recorded=np.zeros(3, np.int64),
            record=np.zeros(0, dtype),
        )

    def _allocate(self, dtype: np.dtype) -> _Memory:
        """Allocate the working memory for a data type."""
        boards = self.game.boards
        first, second = (
            side._replace(
                terms=board_tables.with_type(side.terms, "stake", dtype),
                hands=board_tables.with_type(side.hands, "weight", dtype),
            )
            for side in self.game.sides
        )
        # Sizes of an array of rows of each player on the largest board of each round.
        rows = [
            [
                side.rounds["num_rows"][r] * side.boards["size"][begin:end].max()
                for side in (first, second)
            ]
            for r, (begin, end) in enumerate(itertools.pairwise(boards.first_board))
        ]
        starts = np.cumsum([0, *(2 * max(pair) + sum(pair) for pair in rows)])
        size = int(starts[-1]) + 3 * board_tables.scratch_size(first, second)
        spaces = [
            board_tables.Workspace(np.zeros(size, dtype), starts)
            for _ in range(self._threads)
        ]
        totals = np.zeros((_PARTS, max(rows[0])), dtype)
        return _Memory((first, second), spaces, totals)

    def run(self, sweep: Any) -> float:
        """Process all boards; return the value of the player's empty sequence."""
        from spiel_cr.solvers.cfr import board_iteration as functions

        boards, result = sweep.boards, 0.0
        _, spaces, totals = self._memory(sweep.numbers.dtype)
        shares = np.linspace(0, _PARTS, len(spaces) + 1).astype(np.int64).tolist()
        for g in range(boards.first_board[1]):
            first, end = boards.first_child[g : g + 2]
            root = sweep, g, spaces[0]
            if first == end:
                result += functions.process_root(*root, totals[:0], True, True)
                continue
            functions.process_root(*root, totals[:0], True, False)
            cuts = np.linspace(first, end, _PARTS + 1).astype(np.int64)
            process = functools.partial(functions.process_parts, sweep, g, cuts)
            running = [
                self._executor.submit(process, parts, spaces[0], space, totals)
                for parts, space in zip(itertools.pairwise(shares), spaces, strict=True)
            ]
            for future in running:
                future.result()
            result += functions.process_root(*root, totals, False, True)
        return result


def _num_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class BoardSolver(Solver):
    """Solver whose compiled functions are those of `board_iteration`."""

    _functions: Any
    _shares_memory = False
    _extra = "poker"

    @property
    def engine(self) -> BoardEngine:
        """The game in the order of boards."""
        engine: BoardEngine = self._functions.advance
        return engine

    def average_behaviour(
        self, player: int, dtype: np.typing.DTypeLike = np.float64
    ) -> np.ndarray:
        """Return the average strategy's action probabilities, [S], in `dtype`."""
        return self._behaviour(player, self._state.average[player], dtype)

    def current_behaviour(
        self, player: int, dtype: np.typing.DTypeLike = np.float64
    ) -> np.ndarray:
        """Return the last iterate's action probabilities, [S], in `dtype`."""
        return self._behaviour(player, self._state.regrets[player], dtype)

    def average(self, player: int) -> np.ndarray:
        """Return the average strategy in sequence form, float64 [S]."""
        behaviour = self.average_behaviour(player)
        return reach_from_behaviour(self.form.decisions[player], behaviour)

    def _strategies(self, dtype: np.dtype) -> tuple[Behaviours, Behaviours | None]:
        """See `Solver._strategies`; in a large game, the state is deleted meanwhile.

        The last iterate of a large game is omitted, because it takes as much memory as
        the average strategy.
        """
        if sum(self.engine.game.sizes) <= MOST_KEPT:
            return super()._strategies(dtype)
        none, average = np.zeros(0, self.dtype), []
        self._state = self._state._replace(regrets=(none, none))
        for player in range(2):
            average.append(self.average_behaviour(player, dtype))
            kept = (none, none) if player else (none, self._state.average[1])
            self._state = self._state._replace(average=kept)
            memory.trim()
        return (average[0], average[1]), None

    def _behaviour(
        self, player: int, weights: np.ndarray, dtype: np.typing.DTypeLike
    ) -> np.ndarray:
        from spiel_cr.solvers.cfr import board_iteration

        game = self.engine.game
        behaviour = np.empty(game.sizes[player], dtype)
        board_iteration.fill_behaviour(
            *(game.sides[player], game.boards.round, np.asarray(weights)),
            game.sequences[player],
            np.zeros((2, board_tables.scratch_size(*game.sides)), behaviour.dtype),
            behaviour,
        )
        return locking.kept(self.form, player, behaviour)

    def _value_bounds(self, form: SequenceForm) -> tuple[float, float]:
        average = tuple(np.asarray(part) for part in self._state.average)
        engine = self.engine
        locks = engine.locks if locking.has_locks(form) else None
        first, second = engine.best_values(average, locks=locks)
        return -second, first


class _StateCheck:
    """Check of states that were read from a checkpoint."""

    def check(self, state: BoardState) -> None:
        """Raise ValueError if the averages are not reach probabilities."""
        if any((part < 0).any() or (part > 1 + 1e-3).any() for part in state.average):
            raise ValueError("the state has probabilities outside [0, 1]")


def make_engine(game: PublicTreeGame, dtype: np.dtype) -> BoardEngine | None:
    """Make the arrays of a game, or return None if they do not support it.

    Args:
      game: The game.
      dtype: Data type of the state and of strategies, float64 or float32.
    """
    arrays = board_arrays.board_game(game, dtype)
    memory.trim()  # Building took more memory than the arrays have.
    return None if arrays is None else BoardEngine(arrays, dtype)


def make_solver(
    game: PublicTreeGame, form: SequenceForm, *, config: CFRConfig, dtype: np.dtype
) -> BoardSolver | None:
    """Make a solver.

    Args:
      game: The game.
      form: The game in sequence form, with locks.
      config: Settings that are supported, see `supports`.
      dtype: Data type of the arithmetic, float64 or float32.

    Returns:
      The solver, or None if it does not support the game.
    """
    engine = make_engine(game, dtype) if form.is_zero_sum else None
    if engine is None:
        return None
    arrays = engine.game
    engine.locks = engine.by_position(form.locks)
    zeros: list[Any] = [
        tuple(np.zeros(size, dtype) for size in arrays.sizes) for _ in range(2)
    ]
    state: Any = BoardState(zeros[0], zeros[1], np.asarray(0), np.asarray(0.0))
    put: Callable[[Any], Any] = lambda arrays: arrays  # noqa: E731
    return BoardSolver(
        form,
        arrays,
        state,
        SolverFunctions(
            engine,
            config,
            dtype,
            exponent=arrays.exponent,
            reader=_StateCheck(),  # type: ignore[arg-type]
            consumes=True,
        ),
        put=put,
    )
