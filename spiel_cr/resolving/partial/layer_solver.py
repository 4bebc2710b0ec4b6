"""A layer of a partial tree, grown, laid out and solved, under a clock or without one.

Growth and solving take turns: each solve says where both players go, and so what the
next one should see. Trees are laid out in padded shapes that are learnt before the
first match (`capacity.py`), so that nothing is compiled in it.
"""

import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cr.games.sequence_form.layout import PaddedShapes, build, shapes_of
from spiel_cr.resolving.clock import Clock, Cost
from spiel_cr.resolving.gadget import Forest
from spiel_cr.resolving.partial.capacity import Capacities
from spiel_cr.resolving.partial.partial_config import PartialConfig
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.resolving.partial.solved_tree import SolvedTree
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.solver import Solver

# A subgame that fits no program's shapes keeps this share of its histories and is tried
# again, at most this often.
_SHRINK = 0.7
_MOST_SHRINKS = 12
# A tree has at least this many histories, however little time is left, if N allows.
_LEAST = 100
# Share of a move's time for growing its tree; the rest is for solving it.
EXPANSION_SHARE = 0.7
# Programs are chosen as for moves under a clock: these run shortly.
_SHORT_RUN = 1
# Rounds of growth and solving: up to which share of the room a tree grows in each, and
# which share of the iterations, or of the time for them, is for solving it then. Under
# a clock as many rounds as leave most of the time for what is not paid per round.
_ROUNDS = ((0.25, 0.1), (0.5, 0.1), (0.75, 0.2), (1.0, 0.6))
_FEWER_ROUNDS = {
    1: ((1.0, 1.0),),
    2: ((0.5, 0.2), (1.0, 0.8)),
    3: ((0.25, 0.1), (0.5, 0.2), (1.0, 0.7)),
    4: _ROUNDS,
}
_ROUNDS_SHARE = 0.3

# A solve of fewer iterations under a clock says less than a blueprint.
_LEAST_ITERATIONS = 30

LayOut: TypeAlias = Callable[[SolvedTree | None], SolvedTree | None]


class _Laid(NamedTuple):
    """A tree that is ready to be solved."""

    after: SolvedTree
    game: Forest
    solver: Solver


class LayerSolver:
    """Grows trees and solves their next layer, as well as time and room allow.

    Attributes:
      compiled: programs compiled so far, and seconds for that.
      shrunk: times that a tree had to be made smaller to fit a program's shapes.
      most_histories: of any tree that grew.
    """

    def __init__(
        self,
        player: int,
        config: ResolvingConfig,
        settings: PartialConfig,
        clock: Clock,
    ) -> None:
        """Knows no shapes yet.

        Args:
          player: 0 or 1, who resolves.
          config: how subgames are solved.
          settings: how partial trees are made.
          clock: of the player; it takes in every solve.
        """
        self._player, self._config, self._settings = player, config, settings
        self._clock, self._algorithm = (
            clock,
            find(config.solver, families=(CFR,)).config,
        )
        # By who updates first, to whose order a program belongs.
        self._capacities = Capacities(), Capacities()
        # For `close`, the last game of either; None: it will not be asked for again.
        self._laid_out: dict[int, Forest] | None = None
        if config.move_ms is not None:
            self._laid_out = {}
        # To expand histories, and then to lay them out for solving.
        self._expanding, self._laying = Cost(), Cost()
        self.compiled = 0, 0.0
        self.shrunk = self.most_histories = 0

    def has_no_time(self, deadline: float | None) -> bool:
        """Whether not even the least tree would be ready in time."""
        if deadline is None:
            return False
        left = deadline - time.perf_counter()
        fixed, each = self._cost(left)
        return left < fixed + each * min(_LEAST, self._settings.max_histories)

    def affordable(self, deadline: float | None) -> int:
        """How many histories there is time for, and room."""
        most = self._settings.max_histories
        if deadline is None:
            return most
        left = EXPANSION_SHARE * (deadline - time.perf_counter())
        fixed, each = self._cost(left)
        fits = (left - fixed) / each if each else most
        return min(max(_LEAST, int(fits)), most)

    def grown_by(self, deadline: float, most: int) -> float:
        """When a tree must be grown that is laid out once, by `time.perf_counter`.

        Args:
          deadline: for all of it.
          most: histories that it may have.
        """
        now, (fixed, each) = time.perf_counter(), self._laying.line
        until = now + EXPANSION_SHARE * (deadline - now)
        return until - (fixed + each * most)

    def close(self) -> None:
        """Compiles the last programs: nothing is compiled after this.

        Only under a clock: otherwise there is time to compile whenever it is needed.
        """
        laid_out, self._laid_out = self._laid_out or {}, None
        for first, capacities in enumerate(self._capacities):
            game = laid_out[first if first in laid_out else 1 - first]
            if not len(capacities):
                shapes = capacities.learn(shapes_of(game.decisions, game.payoffs))
                assert shapes is not None
                self._make_solver(game, shapes, first)
            self._make_solver(game, capacities.close(), first)

    def grow_and_solve(
        self,
        tree: PartialTree,
        lay_out: LayOut,
        most: int,
        deadline: float | None,
        seconds: float | None,
    ) -> SolvedTree | None:
        """Takes turns at growing a tree and solving its next layer.

        Args:
          tree: grows.
          lay_out: the tree as it is, after a smaller one that was solved before; None:
            it cannot be resolved.
          most: histories to have at most.
          deadline: for all of it; None: none.
          seconds: for solving; None: there is no clock.

        Returns:
          The last tree, solved; None: there is none, or there was no time for enough
          iterations, where a blueprint can be played instead.
        """
        begun, least, left = time.perf_counter(), len(tree), 1.0
        until = None
        if deadline is not None:
            until = begun + EXPANSION_SHARE * (deadline - begun)
        rounds = self._rounds(None if until is None else until - begun)
        if seconds is None:
            # If all of it fits, all iterations are for that.
            tree.grow(max(most, least), guided=True)
            if tree.can_grow:
                tree.truncate(least)
            else:
                rounds = ((1.0, 1.0),)
        done: _Laid | None = None
        at_most: int | None = None
        for number, (size, share) in enumerate(rounds):
            self._grow(tree, least + int(size * max(0, most - least)), most, until)
            laid = self._lay_out(tree, lay_out, done and done.after, deadline)
            last = number + 1 == len(rounds) or not tree.can_grow or laid is None
            done = laid or done
            if done is None:
                return None
            if until is not None and time.perf_counter() > until:
                last = True
            now = left if last else share
            left -= now
            end = None if seconds is None else time.perf_counter() + now * seconds
            if last and deadline is not None:
                end = deadline
            iterations = self._config.iterations
            at_most = None if iterations is None else max(1, round(now * iterations))
            with self._clock.solve(done.solver, end, at_most):
                done.after.take_strategies(done.game, done.solver)
                if last:
                    done.after.take_values(done.game, done.solver)
                tree.set_reach(done.after.snapshot.ids, done.after.reach())
            if last:
                break
        if done is None or self._is_too_short(done.solver, deadline, at_most):
            return None
        return done.after

    def _is_too_short(
        self, solver: Solver, deadline: float | None, most: int | None
    ) -> bool:
        """Whether the blueprint, if there is one, is better than what was solved.

        Args:
          solver: of the last round.
          deadline: of the decision; None: none.
          most: iterations that it should have had; None: as many as there is time for.
        """
        if deadline is None or not self._settings.has_blueprint:
            return False
        least = _LEAST_ITERATIONS if most is None else min(_LEAST_ITERATIONS, most)
        return solver.iterations < least

    def _lay_out(
        self,
        tree: PartialTree,
        lay_out: LayOut,
        before: SolvedTree | None,
        deadline: float | None,
    ) -> _Laid | None:
        """A solver for a tree, made smaller until it fits a program's shapes."""
        for _ in range(_MOST_SHRINKS):
            begun, programs = time.perf_counter(), cfr.programs()
            after = lay_out(before)
            if after is None:
                return None
            game = after.forest(self._config.gadget)
            solver = self._solver_for(game)
            if solver is not None:
                if cfr.programs() == programs:
                    self._laying.add(len(tree), time.perf_counter() - begun)
                return _Laid(after, game, solver)
            self.shrunk += 1
            if deadline is not None and time.perf_counter() > deadline:
                return None
            tree.truncate(int(_SHRINK * len(tree)))
        return None

    def _rounds(self, seconds: float | None) -> tuple[tuple[float, float], ...]:
        """Rounds of growth and solving for some time; None: there is no clock."""
        if seconds is not None and self._settings.until_end:
            return _FEWER_ROUNDS[1]  # of a tree that reaches the end of the game
        fixed = self._expanding.line[0] + self._laying.line[0]
        if seconds is None or not fixed:
            return _ROUNDS
        return _FEWER_ROUNDS[int(np.clip(_ROUNDS_SHARE * seconds / fixed, 1, 4))]

    def _cost(self, seconds: float) -> tuple[float, float]:
        """Seconds for a tree of n histories, a + b n, but for solving it.

        Args:
          seconds: for all of that.
        """
        rounds = self._rounds(seconds)
        (fixed, each), (more, more_each) = self._expanding.line, self._laying.line
        laid = sum(size for size, _ in rounds)
        return len(rounds) * (fixed + more), each + laid * more_each

    def _grow(
        self,
        tree: PartialTree,
        size: int,
        most: int,
        until: float | None,
    ) -> None:
        """Expands as much as there is time for."""
        begun, before = time.perf_counter(), len(tree)
        tree.grow(max(size, before), guided=True, capacity=most, deadline=until)
        self.most_histories = max(self.most_histories, len(tree))
        seconds, grown = time.perf_counter() - begun, len(tree) - before
        if grown:
            self._expanding.add(grown, seconds)

    def _solver_for(self, game: Forest) -> Solver | None:
        """A solver of learnt shapes; None: the game fits none."""
        first = self._player ^ game.front.other_first
        capacity = self._capacities[first].learn(
            shapes_of(game.decisions, game.payoffs)
        )
        if self._laid_out is not None:
            self._laid_out[first] = game
        return None if capacity is None else self._make_solver(game, capacity, first)

    def _make_solver(self, game: Forest, capacity: PaddedShapes, first: int) -> Solver:
        form = build(game.decisions, game.payoffs, capacity=capacity)
        before = cfr.programs()
        solver = cfr.make_solver(
            form,
            config=self._algorithm,
            values=True,
            first=first,
            compile=cfr.compile_for(form, self._config.iterations or _SHORT_RUN),
        )
        if new := cfr.programs() - before:
            programs, seconds = self.compiled
            self.compiled = programs + new, seconds + solver.compile_seconds
        return solver
