"""Laid-out games on their way: solvers of tables and of linear programs as runs."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spiel_cr.common import memory
from spiel_cr.common.announcing import announce
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form import forced, locking
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import Behaviours
from spiel_cr.policies.result import CurvePoint, Held
from spiel_cr.solvers import footprint, lp
from spiel_cr.solvers.cfr import bucket_labels, cfr
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.first_order import solvers as methods
from spiel_cr.solvers.locks import lock
from spiel_cr.solvers.mccfr import mccfr
from spiel_cr.solvers.mccfr.public import public_solver as public
from spiel_cr.solvers.representation import Laid
from spiel_cr.solvers.run import AfterChunk, Run, settings_text
from spiel_cr.solvers.task import Task


def full_width(laid: Laid, task: Task) -> Run:
    """Tables updated by passes over the whole game; arguments, errors as `Maker`."""
    held = _hold(laid, task)
    solver = _full_width(
        held, task.algorithm.config, dtype=task.kind, buckets=_labels(held, task)
    )
    return TabularRun(solver, held)


def _full_width(
    held: Held, config: Any, *, dtype: np.dtype, buckets: bucket_labels.Labels
) -> Solver:
    """A solver of tables; forced moves are left out where no buckets number them."""
    form = held.form
    if all(labels is None for labels in buckets):
        form = forced.without(form)
    return cfr.make_solver(form, config=config, dtype=dtype, buckets=buckets)


def first_order(laid: Laid, task: Task) -> Run:
    """A first-order method on the whole game; arguments, errors as `Maker`."""
    held = _hold(laid, task)
    config, form = task.algorithm.config, forced.without(held.form)
    solver = methods.make_solver(form, config=config, dtype=task.kind)
    return TabularRun(solver, held)


def sampled(laid: Laid, task: Task) -> Run:
    """Tables updated by sampled histories; arguments, errors as `Maker`."""
    held = _hold(laid, task)
    assert isinstance(held.laid, GameTree)
    config = task.algorithm.config
    solver = mccfr.make_solver(
        held.laid,
        config=config,
        dtype=task.kind,
        seed=task.seed,
        buckets=_labels(held, task),
    )
    return TabularRun(solver, held, batch=config.batch, seed=task.seed)


def sampled_in_public(laid: Laid, task: Task) -> Run:
    """Tables updated by sampled public actions; arguments, errors as `Maker`."""
    held = _hold(laid, task)
    assert isinstance(held.laid, PublicTreeGame)
    solver = public.make_solver(
        held.laid,
        held.form,
        task.algorithm.config,
        dtype=task.kind,
        seed=task.seed,
        memory_limit=task.options.memory_limit,
    )
    return TabularRun(solver, held, batch=1, seed=task.seed)


def linear(laid: Laid, task: Task) -> Run:
    """A linear program of the whole game; arguments, errors as `Maker`."""
    held = _hold(laid, task)
    if not isinstance(held.laid, GameTree):
        need = memory.BASE_BYTES + footprint.linear_bytes(held.form)
        remedy = "take cfr+, or choose smaller game parameters"
        limit = task.options.memory_limit
        memory.check_need(f"{task.algorithm.name} on {held.game}", need, limit, remedy)
    return LinearRun(held)


def _labels(held: Held, task: Task) -> bucket_labels.Labels:
    """Numbers the buckets that a user gave; raises ValueError."""
    buckets, forget = task.options.buckets, task.options.imperfect_recall
    if isinstance(held.laid, GameTree):
        return bucket_labels.labels_of(held.laid, buckets, imperfect_recall=forget)
    if isinstance(held.laid, PhantomGame):
        return None, None  # `Task.need` refuses them
    labels = []
    for player, given in enumerate(bucket_labels.of_both(buckets)):
        if given is not None:
            assert not isinstance(given, Mapping)  # `Task.need` refuses them
            infosets = len(held.form.decisions[player])
            given = bucket_labels.labels_by_number(given, infosets, player)
            _check_actions(held.laid, given, player)
        labels.append(given)
    return labels[0], labels[1]


def _check_actions(signals: PublicTreeGame, labels: np.ndarray, player: int) -> None:
    """Raises ValueError where a bucket holds infosets with different actions."""
    decisions = signals.public_decisions[player]
    finder = signals.finder
    kinds: dict[tuple[int, ...], int] = {}
    kind = [
        kinds.setdefault(tuple(finder.actions(node)), len(kinds))
        for node in decisions.node.tolist()
    ]
    kind_of = np.repeat(np.array(kind, np.int32), decisions.num_private_states)
    odd = kind_of != kind_of[bucket_labels.first_members(labels)[labels]]
    if odd.any():
        infoset = int(np.argmax(odd))
        usual = int(bucket_labels.first_members(labels)[labels[infoset]])
        raise ValueError(
            f"{signals.game}: infosets {usual} and {infoset} of player {player} are in "
            f"one bucket and have different legal actions; put them into buckets of "
            f"their own"
        )


def _hold(laid: Laid, task: Task) -> Held:
    """A laid-out game as results hold it, after a check of the memory.

    Args:
      laid: the game in its form.
      task: what is asked for.

    Raises:
      GameTooLargeError: solving it takes more than the limit; of a signal game this is
        told before its form is laid out.
    """
    assert not isinstance(laid.game, Opened)
    # What a linear program takes is known of a tree, else of a form alone.
    if isinstance(laid.game, GameTree) or task.algorithm.family.iterates:
        limit = task.options.memory_limit
        footprint.check(laid.game, task.algorithm.config, task.kind, limit)
    locks = task.options.locks
    if isinstance(laid.game, GameTree):
        return Held(laid.game, lock(laid.game.sequence_form, laid.game, locks))
    memory.trim()
    form = lock(laid.game.sequence_form, laid.game, locks)
    held = Held(laid.game, form, task.kind)
    memory.trim()
    return held


class TabularRun(Run):
    """A solver of a laid-out game.

    Attributes:
      simplex: iterations at most of each of two linear programs, on what the average
        plays, that follow the last iteration; 0: there are none.
      enough: nor are there any where NashConv is at most this.
      stalls: of a run in single precision, whether double precision is to go on, by
        what was evaluated; None: it never is.
    """

    simplex: int = 0
    enough: float = 0.0
    stalls: Callable[[Sequence[CurvePoint]], bool] | None = None

    def __init__(
        self, solver: Solver, held: Held, *, batch: int = 0, seed: int | None = None
    ) -> None:
        """Takes a solver as it is.

        Args:
          solver: of the game.
          held: the game in its form.
          batch: trajectories of an iteration and player.
          seed: of the run, where it samples.
        """
        super().__init__(solver)
        self._held, self._batch, self._seed = held, batch, seed
        self._solution: lp.Solution | None = None
        self.compile_seconds = solver.compile_seconds

    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""
        return {f"leaf{i}": leaf for i, leaf in enumerate(self.solver.leaves())}

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """See `checkpoint.Kept`."""
        names = [f"leaf{i}" for i in range(len(arrays))]
        if set(names) != set(arrays):
            raise ValueError("its arrays have other names")
        self.solver.restore([arrays[name] for name in names], seconds=seconds)

    def advance(
        self, count: int, seconds: float | None, after_chunk: AfterChunk
    ) -> bool:
        """See `run.Run`; a chunk takes about a quarter of a second."""
        return self.solver.run(count, seconds=seconds, after_chunk=after_chunk)

    def nash_conv_with_locks(self) -> float | None:
        """See `run.Run`."""
        if not locking.has_locks(self._held.form):
            return None
        return self.solver.nash_conv_with_locks()

    def going_on(self, curve: Sequence[CurvePoint]) -> None:
        """See `run.Run`."""
        if not curve or self.stalls is None or not self.stalls(curve):
            return
        announce("going on in float64, since float32 stalls")
        single, double = self.solver, np.dtype(np.float64)
        config, buckets, seconds = single.config, single.buckets, single.seconds
        state = [
            leaf.astype(double if leaf.dtype.kind == "f" else leaf.dtype)
            for leaf in single.leaves()
        ]
        compiling = single.compile_seconds
        # Both would not always fit.
        self.solver = single = self.stalls = None
        self._held = dataclasses.replace(self._held, dtype=double)
        self.solver = _full_width(self._held, config, dtype=double, buckets=buckets)
        self.solver.restore(state, seconds=seconds)
        self.solver.compile_seconds += compiling
        self.compile_seconds = self.solver.compile_seconds
        self.why += f"; float64 after {self.iterations:,} iterations, where it stalled"

    def identity(self) -> dict[str, Any]:
        """See `run.Run`."""
        form, seal = self._held.identity()
        return {
            "game": str(self._held.game),
            "form": form,
            "fingerprint": seal,
            "config": settings_text(self.solver.config),
            "dtype": self.solver.dtype.name,
            "seed": self._seed,
            "buckets": bucket_labels.digest(self.solver.buckets),
            "locks": bucket_labels.digest(self.solver.form.locks),
        }

    def finish(self, *, progress: bool) -> None:
        """See `run.Run`; what linear programs give is taken if it is better."""
        self._solution = None
        if not self.simplex or (before := self.evaluate().gap) <= self.enough:
            return
        started = time.perf_counter()
        average = self.solver.average_behaviour(0), self.solver.average_behaviour(1)
        found = lp.polished(self._held.form, average, self.simplex)
        self.solver.seconds += time.perf_counter() - started
        if found is not None and found.nash_conv_with_locks < before:
            self._solution = found
            name = "NashConv"
            if locking.has_locks(self._held.form):
                name = "NashConv with locks"
            said = (
                f"then a linear program on what it plays: {name} {before:.1e} to "
                f"{found.nash_conv_with_locks:.1e}"
            )
            self.why += f"; {said}"
            announce(said, progress=progress)

    def outcome(self) -> dict[str, Any]:
        """See `run.Run`."""
        kind = self._held.dtype

        def both(read: Callable[..., np.ndarray]) -> Behaviours:
            first, second = (read(player, kind or np.float64) for player in range(2))
            return first.astype(kind, copy=False), second.astype(kind, copy=False)

        return {
            "held": self._held,
            "average": self._solution.behaviour
            if self._solution
            else both(self.solver.average_behaviour),
            "current": both(self.solver.current_behaviour),
            "compile_seconds": self.solver.compile_seconds,
            "trajectories": 2 * self._batch * self.iterations,
        }


class LinearRun(Run):
    """A linear program, which is solved in one step."""

    in_one_step = True
    seconds = 0.0
    iterations = 0

    def __init__(self, held: Held) -> None:
        """Takes a game in its form."""
        self.name, self._held = "lp", held
        self._solution: lp.Solution | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        """Nothing is kept."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """Nothing is kept."""

    def advance(
        self, count: int, seconds: float | None, after_chunk: AfterChunk
    ) -> bool:
        """Solves it, whatever is given."""
        if self._solution is None:
            self.solve()
        return True

    def solve(self, seconds: float | None = None) -> None:
        """Solves it.

        Args:
          seconds: give up after about these; None: take what it takes.

        Raises:
          SolverFailedError: see `lp.equilibrium`.
        """
        started = time.perf_counter()
        held = self._held
        if isinstance(held.laid, GameTree):
            histories = held.laid.histories
            utility = histories.utility[histories.player == TERMINAL]
        else:
            utility = np.array([held.game.min_utility(), held.game.max_utility()])
        self._solution = lp.equilibrium(held.form, utility, seconds)
        self.iterations = self._solution.iterations
        self.seconds = time.perf_counter() - started

    def nash_conv(self) -> float:
        """See `run.Run`."""
        assert self._solution is not None
        form = self._held.form
        if not locking.has_locks(form):
            return self._solution.nash_conv_with_locks
        reach = best_responses.reach_of(form, self._solution.behaviour)
        return best_responses.nash_conv(locking.lifted(form), reach)

    def nash_conv_with_locks(self) -> float | None:
        """See `run.Run`."""
        assert self._solution is not None
        if not locking.has_locks(self._held.form):
            return None
        return self._solution.nash_conv_with_locks

    def identity(self) -> dict[str, Any]:
        """Nothing is kept."""
        return {}

    def outcome(self) -> dict[str, Any]:
        """See `run.Run`."""
        assert self._solution is not None
        return {"held": self._held, "average": self._solution.behaviour}
