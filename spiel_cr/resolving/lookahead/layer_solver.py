"""Growing, building and solving a layer of a lookahead tree within a time limit.

Gadget games are built in padded shapes that are learned before the first match
(`capacity.py`), so that nothing is compiled during a match.
"""

import math
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from spiel_cr.games.sequence_form import forced
from spiel_cr.games.sequence_form.layout import PaddedShapes, shapes_of
from spiel_cr.resolving.clock import Clock, Cost
from spiel_cr.resolving.lookahead.capacity import Capacities, size_of
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree
from spiel_cr.resolving.lookahead.solved_lookahead import SolvedLookahead
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.subgames import full_width_solver
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.solver import MOST_ITERATIONS, Solver

# A subgame that fits no compiled function's shapes is truncated to this share of its
# histories and built again, at most this often.
_SHRINK = 0.7
_MOST_SHRINKS = 12
# A tree has at least this many histories, however little time is left, if N allows.
_LEAST = 100
# Share of a move's time for growing its tree; the rest is for solving it.
_EXPANSION_SHARE = 0.7
# Factor for the number of iterations at the start of the game. Its solution is
# computed once, and is the incumbent strategy until a better one is accepted.
_START_ITERATIONS = 10

# Function from a tree to the tree with the player's incumbent strategy, or to None if
# the tree cannot be re-solved.
LayOut: TypeAlias = Callable[[LookaheadTree], SolvedLookahead | None]


class LayerSolver:
    """Growth of lookahead trees and solves of their next layer, within given limits.

    Attributes:
      truncations: Number of times that a tree was truncated to fit a compiled
        function's shapes.
      most_histories: Size of the largest tree.
    """

    def __init__(
        self, player: int, config: ResolvingConfig, max_histories: int, clock: Clock
    ) -> None:
        """Start without known shapes.

        Args:
          player: The player, 0 or 1.
          config: Settings of the solves.
          max_histories: N.
          clock: Clock of the player, which records every solve.
        """
        self._player, self._config, self._most = player, config, max_histories
        self._clock = clock
        self._algorithm = find(config.solver, families=(CFR,)).config
        # One set of shapes for each player that may update first: the order of updates
        # is part of a compiled function.
        self._capacities = Capacities(), Capacities()
        # The last game for each player that updates first; used by `close`.
        self._last_games: dict[int, forced.Free] = {}
        self._closed = False
        # Durations as a function of the number of histories: expansion, leaf values,
        # construction of the gadget game; and, as a function of the number of entries
        # in the padded shapes, construction of a solver.
        self._expanding, self._valuing, self._building = Cost(), Cost(), Cost()
        self._making = Cost()
        self.truncations = self.most_histories = 0

    def affordable(self, deadline: float | None, existing: int = 0) -> int:
        """Return how many histories fit into time and memory; 0 if even few do not.

        Args:
          deadline: Deadline on the clock `time.perf_counter`, or None for no deadline.
          existing: Number of these histories that exist already.
        """
        if deadline is None:
            return self._most
        left = _EXPANSION_SHARE * (deadline - time.perf_counter())
        (fixed, each), (more, more_each) = self._expanding.line, self._building.line
        left, each = left - fixed - more + each * existing, each + more_each
        least = min(_LEAST, self._most)
        if left < each * least:
            self._expanding.fade()
            self._building.fade()
            return 0
        return min(max(least, int(left / each)), self._most) if each else self._most

    def expandable(self, deadline: float | None) -> int:
        """Return how many histories can be expanded by a deadline, at most N."""
        fixed, each = self._expanding.line
        if deadline is None or not each:
            return self._most
        left = deadline - time.perf_counter() - fixed
        return min(max(0, int(left / each)), self._most)

    def close(self) -> None:
        """Compile the last functions: nothing is compiled after this.

        Needed only with a time limit; otherwise functions are compiled when needed.
        """
        for first, capacities in enumerate(self._capacities):
            free = self._last_games[first if first in self._last_games else 1 - first]
            if not len(capacities):
                shapes = capacities.learn(shapes_of(free.decisions, free.payoffs))
                assert shapes is not None
                self._solver_for(free, shapes, first, None)
            self._solver_for(free, capacities.close(), first, None)
        self._last_games.clear()
        self._closed = True

    def solve(
        self,
        tree: LookaheadTree,
        prepare: LayOut,
        most: int,
        deadline: float | None,
        *,
        roots: np.ndarray | None = None,
        start: bool = False,
    ) -> SolvedLookahead | None:
        """Grow a tree and solve the layer of its roots, if the solution can be checked.

        Args:
          tree: The tree, which is changed.
          prepare: Function from a tree to the tree with an incumbent strategy; None:
            the tree cannot be re-solved.
          most: Maximum number of histories.
          deadline: Deadline for all steps on the clock `time.perf_counter`, or None for
            no deadline.
          roots: Ids of histories that must be expanded, int64 [n].
          start: Whether this is the start of the game, which is grown to its maximum
            whatever the time, and solved with ten times the iterations.

        Returns:
          The tree with its solution. None if that is impossible.
        """
        started, before, until = time.perf_counter(), len(tree), None
        if deadline is not None and not start:
            until = started + _EXPANSION_SHARE * (deadline - started)
        tree.grow(max(most, before), deadline=until)
        self.most_histories = max(self.most_histories, len(tree))
        if len(tree) > before:
            self._expanding.add(len(tree) - before, time.perf_counter() - started)
        hurry, iterations = deadline, self._config.iterations
        if hurry is not None:
            hurry -= self._clock.after
        if start:
            hurry = None
            if iterations is not None:
                iterations = min(_START_ITERATIONS * iterations, MOST_ITERATIONS)
        for _ in range(_MOST_SHRINKS):
            if roots is not None and not tree.is_expanded(roots):
                if hurry is not None:  # the cost estimates may be too high
                    self._expanding.fade()
                    self._building.fade()
                return None
            if not self._value(tree, hurry):
                return None
            if not _is_time(self._building, len(tree), hurry):
                return None
            started = time.perf_counter()
            solved, free = prepare(tree), None
            game = None if solved is None else solved.forest(self._config.gadget)
            # With a time limit, shapes are learned and functions are compiled before
            # the first match.
            learns = self._config.move_ms is not None and not self._closed
            if solved is not None and game is not None and (solved.exact or learns):
                free = forced.leave_out(game.decisions, game.payoffs)
            # The time counts even if there is no game to solve.
            self._building.add(len(tree), time.perf_counter() - started)
            if solved is None or game is None:
                return None
            first = self._player ^ game.gadget_infosets.other_first
            if free is None:
                return solved
            if learns:
                self._last_games[first] = free
            need = shapes_of(free.decisions, free.payoffs)
            if (shapes := self._capacities[first].learn(need)) is not None:
                in_time = None if learns else hurry
                solver = self._solver_for(free, shapes, first, in_time)
                if solver is None:
                    return None
                if solved.exact:
                    with self._clock.solve(solver, deadline, iterations):
                        solved.accept_if_safe(game, solver)
                return solved
            self.truncations += 1
            if deadline is not None and time.perf_counter() > deadline:
                return None
            tree.truncate(int(_SHRINK * len(tree)))
        return None

    def _value(self, tree: LookaheadTree, deadline: float | None) -> bool:
        """Compute missing leaf values; return False if there is not enough time."""
        if not (count := len(tree.unvalued())):
            return True
        if not _is_time(self._valuing, count, deadline):
            return False
        started = time.perf_counter()
        tree.value_leaves()
        self._valuing.add(count, time.perf_counter() - started)
        return True

    def _solver_for(
        self,
        free: forced.Free,
        shapes: PaddedShapes,
        first: int,
        deadline: float | None,
    ) -> Solver | None:
        """Return a solver in learned shapes, or None if there is not enough time.

        Before the first match with a time limit, the solver of a new shape is made
        twice, and the first one runs: JAX repeats some work when it sees a shape for
        the second time.
        """
        size = size_of(shapes)
        if not _is_time(self._making, size, deadline):
            return None
        started, compilations = time.perf_counter(), cfr.compilations()
        solver = self._make_solver(free, shapes, first)
        if cfr.compilations() != compilations:
            if self._config.move_ms is None or self._closed:
                return solver
            solver.run(1)
            started = time.perf_counter()
            solver = self._make_solver(free, shapes, first)
        self._making.add(size, time.perf_counter() - started)
        return solver

    def _make_solver(
        self, free: forced.Free, shapes: PaddedShapes, first: int
    ) -> Solver:
        form = forced.lay_out(free, shapes)
        return full_width_solver(
            form, self._algorithm, self._config, first, values=False
        )


def _is_time(cost: Cost, count: int, deadline: float | None) -> bool:
    """Return whether work on `count` histories or array entries ends by a deadline.

    If it does not, the cost estimate is reduced a little, so that one slow measurement
    does not prevent the work for ever.

    Args:
      cost: Estimate of the duration of this kind of work.
      count: Number of histories or array entries.
      deadline: Deadline on the clock `time.perf_counter`, or None for no deadline.
    """
    fixed, each = cost.line
    left = math.inf if deadline is None else deadline - time.perf_counter()
    in_time = fixed + count * each <= left
    if not in_time:
        cost.fade()
    return in_time
