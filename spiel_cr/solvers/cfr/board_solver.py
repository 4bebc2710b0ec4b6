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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form import locking
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.solvers.cfr.cfr import averaging
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver, SolverFunctions

# Number of parts of the boards below the root, and thus most threads. The values of
# each part are added up, so a result does not depend on the number of threads.
_PARTS = 16


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


def supports(config: Any) -> bool:
    """Return whether the settings, the installation and the device are supported."""
    if not isinstance(config, CFRConfig) or importlib.util.find_spec("numba") is None:
        return False
    rule = config.rule
    changed = rule.custom is not None or rule.predictive or rule.exploration > 0
    plain = config.alternating and config.weights is None and not changed
    return plain and jax.default_backend() == "cpu"


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


class _BoardEngine:
    """Function `advance` of `SolverFunctions`, and evaluations of the same game.

    Attributes:
      game: Arrays of the game.
      dtype: Data type of the state.
      locks: Locked probabilities by position of each player, empty if no infoset is
        locked.
    """

    def __init__(
        self,
        game: Any,
        dtype: np.dtype,
        compiled: Any,
        locks: tuple[np.ndarray, np.ndarray],
    ) -> None:
        self.game, self.dtype, self.compiled, self.locks = game, dtype, compiled, locks
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
            self._run(self._sweep(0, regrets, average[0], self.dtype))
        for t in range(iteration + 1, iteration + 1 + int(iterations)):
            number: Any = np.float64(t)
            weight, share = averaging(config, weight, number)
            numbers = [*config.rule.discounts(number), np.sqrt(number), share]
            for player in range(2):
                sweep = self._sweep(player, regrets, average[player], self.dtype)
                self._run(
                    sweep._replace(
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
        self, average: tuple[np.ndarray, ...], *, locks: bool
    ) -> tuple[float, float]:
        """Return each player's best-response value, computed in double precision.

        Args:
          average: Average strategies by position, see `BoardState`. Only the
            proportions at each infoset matter.
          locks: Whether locked infosets are played as locked.
        """
        dtype, values = np.dtype(float), []
        for player in range(2):
            sweep = self._sweep(player, average, average[player], dtype, locks=locks)
            total = self._run(sweep._replace(best=True))
            values.append(math.ldexp(total, self.game.exponent))
        return values[0], values[1]

    def _sweep(
        self,
        player: int,
        weights: Any,
        average: np.ndarray,
        dtype: np.dtype,
        *,
        locks: bool = True,
    ) -> Any:
        sides = self._memory(dtype).sides
        if not locks:
            first, second = (side._replace(locks=side.locks[:0]) for side in sides)
            sides = first, second
        return self.compiled.Sweep(
            boards=self.game.boards,
            player=sides[player],
            opponent=sides[1 - player],
            weights=weights[player],
            average=average,
            opponent_weights=weights[1 - player],
            numbers=np.zeros(4, dtype),
            best=False,
            update=False,
            positive=False,
        )

    def _allocate(self, dtype: np.dtype) -> _Memory:
        """Allocate the working memory for a data type."""
        boards, compiled = self.game.boards, self.compiled
        first, second = (
            side._replace(
                stake=side.stake.astype(dtype),
                weight=side.weight.astype(dtype),
                locks=locks.astype(dtype),
            )
            for side, locks in zip(self.game.sides, self.locks, strict=True)
        )
        # Sizes of an array of rows of each player on the largest board of each round.
        rows = [
            [side.num_rows[r] * side.size[begin:end].max() for side in (first, second)]
            for r, (begin, end) in enumerate(itertools.pairwise(boards.first_board))
        ]
        starts = np.cumsum([0, *(2 * max(pair) + sum(pair) for pair in rows)])
        states, actions = (
            max(getattr(side, name).max(initial=0) for side in (first, second))
            for name in ("size", "num_actions")
        )
        leaves = max(compiled.MOST_CARDS, states) * max(compiled.LANES, actions)
        spaces = [
            compiled.Workspace(np.zeros(starts[-1] + 3 * int(leaves), dtype), starts)
            for _ in range(self._threads)
        ]
        totals = np.zeros((_PARTS, max(rows[0])), dtype)
        return _Memory((first, second), spaces, totals)

    def _run(self, sweep: Any) -> float:
        """Process all boards; return the value of the player's empty sequence."""
        compiled, boards, result = self.compiled, sweep.boards, 0.0
        _, spaces, totals = self._memory(sweep.numbers.dtype)
        shares = np.linspace(0, _PARTS, len(spaces) + 1).astype(np.int64).tolist()
        for g in range(boards.first_board[1]):
            first, end = boards.first_child[g : g + 2]
            root = sweep, g, spaces[0]
            if first == end:
                result += compiled.process_root(*root, totals[:0], True, True)
                continue
            compiled.process_root(*root, totals[:0], True, False)
            cuts = np.linspace(first, end, _PARTS + 1).astype(np.int64)
            process = functools.partial(compiled.process_parts, sweep, g, cuts)
            running = [
                self._executor.submit(process, parts, spaces[0], space, totals)
                for parts, space in zip(itertools.pairwise(shares), spaces, strict=True)
            ]
            for future in running:
                future.result()
            result += compiled.process_root(*root, totals, False, True)
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

    def regrets(self, player: int) -> np.ndarray:
        """Return cumulative regrets, float64 [S]; see `Solver.regrets`."""
        regrets, arrays = np.asarray(self._state.regrets[player]), self.problem
        result = np.zeros(arrays.sizes[player])
        for at, sequences, (n, count) in _blocks(arrays, player):
            result[sequences] = regrets[at].reshape(count, n).T.ravel()
        return np.ldexp(result, self.exponent)

    def _behaviour(
        self, player: int, weights: np.ndarray, dtype: np.typing.DTypeLike
    ) -> np.ndarray:
        engine = self._functions.advance
        game = engine.game
        behaviour = np.empty(game.sizes[player], dtype)
        engine.compiled.fill_behaviour(
            game.sides[player],
            game.boards,
            np.asarray(weights),
            game.sequences[player],
            behaviour,
        )
        return locking.kept(self.form, player, behaviour)

    def _value_bounds(self, form: SequenceForm) -> tuple[float, float]:
        average = tuple(np.asarray(part) for part in self._state.average)
        locks = locking.has_locks(form)
        first, second = self._functions.advance.best_values(average, locks=locks)
        return -second, first


class _StateCheck:
    """Check of states that were read from a checkpoint."""

    def check(self, state: BoardState) -> None:
        """Raise ValueError if the averages are not reach probabilities."""
        if any((part < 0).any() or (part > 1 + 1e-3).any() for part in state.average):
            raise ValueError("the state has probabilities outside [0, 1]")


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
    if not form.is_zero_sum:
        return None
    from spiel_cr.solvers.cfr import board_arrays, board_iteration

    arrays = board_arrays.board_game(game, dtype)
    if arrays is None:
        return None
    locks = np.zeros(0), np.zeros(0)
    if locking.has_locks(form):
        first, second = (
            by_position(arrays, p, form.locks[p], np.dtype(float)) for p in range(2)
        )
        locks = first, second
    engine = _BoardEngine(arrays, dtype, board_iteration, locks)
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


def by_position(
    arrays: Any, player: int, locks: np.ndarray | None, dtype: np.dtype
) -> np.ndarray:
    """Return locked probabilities by position, negative at free infosets.

    Args:
      arrays: The `board_arrays.BoardGame`.
      player: The player.
      locks: Probabilities by logical sequence, float64, NaN at free infosets; or None.
      dtype: Data type of the result.
    """
    result = np.full(arrays.sizes[player], -1.0, dtype)
    if locks is not None:
        kept = np.where(np.isnan(locks), -1.0, locks)
        for at, sequences, shape in _blocks(arrays, player):
            result[at] = kept[sequences].reshape(shape).T.ravel()
    return result


def _blocks(arrays: Any, player: int) -> Iterator[tuple[slice, slice, tuple[int, int]]]:
    """Yield positions and logical sequences of each board and decision.

    Yields:
      Positions of the sequences, by action and private state; logical sequences, by
      private state and action; numbers of private states and of actions.
    """
    side, boards = arrays.sides[player], arrays.boards
    for g, r in enumerate(boards.round):
        n = int(side.size[g])
        origin = side.base[r] + side.start[g] * side.round_actions[r]
        for d in range(side.first_decision[r], side.first_decision[r + 1]):
            count = int(side.num_actions[d])
            first = arrays.sequences[player][d] + side.start[g] * count
            at = origin + side.offset[d] * n
            size = n * count
            yield slice(at, at + size), slice(first, first + size), (n, count)
