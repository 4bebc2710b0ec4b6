"""Full-width CFR for hold'em on CPUs, one board after another.

The iterates are those of `cfr` up to rounding. Regrets and average reach are stored
once for each private state and action, and everything else is computed again on each
board (see `board_iteration`). The boards below the root are divided among threads,
whose results are added in a fixed order.
"""

import functools
import importlib.util
import itertools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from spiel_cr.common import memory
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form import locking
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies.conversions import Behaviours, reach_from_behaviour
from spiel_cr.solvers.cfr.cfr import averaging
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.regret_matching import Rule, discount
from spiel_cr.solvers.cfr.solver import Solver, SolverFunctions

# Most threads of an iteration.
_MOST_THREADS = 16
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


def is_installed() -> bool:
    """Return whether numba is installed, and the device is supported."""
    installed = importlib.util.find_spec("numba") is not None
    return installed and jax.default_backend() == "cpu"


def supports(config: Any) -> bool:
    """Return whether the settings, the installation and the device are supported."""
    if not isinstance(config, CFRConfig):
        return False
    rule = config.rule
    changed = rule.custom is not None or rule.predictive or rule.exploration > 0
    plain = config.alternating and config.weights is None and not changed
    return plain and is_installed()


def suits(game: PublicTreeGame) -> bool:
    """Return whether a game is likely to be supported; see `board_arrays.suits`."""
    from spiel_cr.solvers.cfr import board_arrays

    return board_arrays.suits(game)


class BoardEngine:
    """Function `advance` of `SolverFunctions`, and evaluations of the same game.

    Attributes:
      game: Arrays of the game.
      dtype: Data type of the state.
      locks: Locked probabilities by position of each player; None without locks.
    """

    def __init__(self, game: Any, dtype: np.dtype, functions: Any) -> None:
        self.game, self.dtype, self.functions = game, dtype, functions
        self.locks: tuple[np.ndarray, np.ndarray] | None = None
        self.threads = max(1, min(_MOST_THREADS, os.cpu_count() or 1))
        self._executor = ThreadPoolExecutor(self.threads)

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
            numbers = _numbers(config.rule, number, share)
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
        game, result = self.game, []
        for player, part in enumerate(rows):
            result.append(np.full(game.sizes[player], -1.0, self.dtype))
            if part is not None:
                self.functions.fill_positions(
                    *(game.sides[player], game.boards, np.asarray(part)),
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
        sides = self.game.sides
        if locks is not None:
            sides = [
                side._replace(locks=kept)
                for side, kept in zip(sides, locks, strict=True)
            ]
        return self.functions.Sweep(
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

    def run(self, sweep: Any) -> float:
        """Process all boards; return the value of the player's empty sequence."""
        functions, boards = self.functions, sweep.boards
        starts, size = _workspace_sizes(sweep, functions)
        dtype, result = sweep.numbers.dtype, 0.0
        most = int(np.diff(boards.first_child).max(initial=0))
        spaces = [
            functions.Workspace(np.zeros(size, dtype), starts)
            for _ in range(max(1, min(self.threads, most)))
        ]
        for g in range(boards.first_board[1]):
            reach, values, _, other_reach, _, _ = functions.views(sweep, g, spaces[0])
            reach[: sweep.player.first_carried[1]] = 1
            other_reach[: sweep.opponent.first_carried[1]] = 1
            functions.begin(sweep, g, spaces[0])
            first, end = boards.first_child[g : g + 2].tolist()
            cuts = np.linspace(first, end, len(spaces) + 1).astype(np.int64).tolist()
            sums = [np.zeros_like(values) for _ in spaces]
            parts = zip(itertools.pairwise(cuts), spaces, sums, strict=True)
            process = functools.partial(functions.process_below, sweep, g)
            running = [
                self._executor.submit(process, part, spaces[0], space, total)
                for part, space, total in parts
                if part[0] < part[1]
            ]
            for future in running:
                future.result()
            values += sum(sums)
            functions.finish(sweep, g, spaces[0])
            result += float(values[: sweep.player.first_carried[1]].sum(dtype=float))
        return result


def _numbers(rule: Rule, t: np.float64, share: Any) -> list[Any]:
    """Return the numbers of an iteration, see `board_iteration.Sweep`."""
    alpha, beta = rule.alpha, rule.beta
    if rule.ramp:
        done = min(t / rule.ramp, 1)
        alpha, beta = 1 + (alpha - 1) * done, -1 + (beta + 1) * done
    return [discount(alpha, t), discount(beta, t), np.sqrt(t), share]


def _workspace_sizes(sweep: Any, functions: Any) -> tuple[np.ndarray, int]:
    """Return the start of the arrays of each round, and the size of all."""
    player, opponent, first = sweep.player, sweep.opponent, sweep.boards.first_board
    starts = [0]
    for r, (begin, end) in enumerate(zip(first, first[1:], strict=False)):
        n, m = player.size[begin:end].max(), opponent.size[begin:end].max()
        size = 3 * player.num_rows[r] * n + 2 * opponent.num_rows[r] * m
        starts.append(starts[-1] + int(size))
    return np.array(starts), starts[-1] + 5 * scratch_size(player, opponent, functions)


def scratch_size(player: Any, opponent: Any, functions: Any) -> int:
    """Return the size of each of the five arrays for the leaf values of one board."""
    states = int(max(player.size.max(), opponent.size.max()))
    hands = int(np.diff(opponent.first_hand).max())
    size: int = functions.LANES * max(functions.MOST_CARDS, states, 2 * hands + 1)
    return size


class BoardSolver(Solver):
    """Solver whose compiled functions are those of `board_iteration`."""

    _functions: Any
    _shares_memory = False

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

    def regrets(self, player: int) -> np.ndarray:
        """Return cumulative regrets, float64 [S]; see `Solver.regrets`."""
        regrets, arrays = np.asarray(self._state.regrets[player]), self.problem
        result = np.zeros(arrays.sizes[player])
        for at, sequences, (n, count) in _blocks(arrays, player):
            result[sequences] = regrets[at].reshape(count, n).T.ravel()
        return np.ldexp(result, self.exponent)

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
        engine, game = self.engine, self.engine.game
        behaviour = np.empty(game.sizes[player], dtype)
        engine.functions.fill_behaviour(
            game.sides[player],
            game.boards,
            np.asarray(weights),
            game.sequences[player],
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
    from spiel_cr.solvers.cfr import board_arrays, board_iteration

    arrays = board_arrays.board_game(game, dtype)
    memory.trim()  # Building took more memory than the arrays have.
    return None if arrays is None else BoardEngine(arrays, dtype, board_iteration)


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
