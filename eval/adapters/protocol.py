"""Interface of the algorithms of comparisons, and building blocks of adapters.

An adapter is created from a `GameInstance` and a seed, runs, and returns its strategy.
Most are one call: `IteratingAdapter` wraps a solver of spiel_cr, `SteppingAdapter` one
of OpenSpiel, `ComputingAdapter` a function that works from scratch each time.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyspiel

import game_defs  # noqa: F401  registers the project's games
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import conversions
from spiel_cr.policies.queries import query

from ..common.exact_evaluator import Strategy
from ..common.game_instance import GameInstance

Way = Literal["iterates", "restarts", "once"]

# Number of calls in `seconds_of_compiling`; the last one compiles nothing.
_ROUNDS = 3


class Policy(Protocol):
    """A policy of OpenSpiel, or any other object with action probabilities."""

    def action_probabilities(self, state: pyspiel.State) -> dict[int, float]:
        """Return probabilities of legal actions for the player who acts."""


class SolverAdapter(Protocol):
    """One algorithm on one game, created for each run.

    Attributes:
      compile_seconds: Time of JAX compilation during construction and runs, if it can
        be measured separately.
      note: Additional information for readers of the result; may be empty.
      iterations: Number of iterations of an entry that works "once"; None if it has
        none.
    """

    compile_seconds: float = 0.0
    note: str = ""
    iterations: int | None = None

    def run(self, iterations: int) -> float | None:
        """Run the algorithm.

        Args:
          iterations: Number of iterations. For an entry that "iterates", additional
            ones; for one that "restarts", those from scratch; for one that works
            "once", 1.

        Returns:
          The seconds that count, if the outer clock would include too much (such as
          compilation); None: use the outer clock.
        """

    def strategy(self) -> Strategy:
        """Return the complete strategy of both players after the work so far."""


class Entry(NamedTuple):
    """An algorithm that can be compared.

    Attributes:
      name: Name on the command line.
      title: Title in tables.
      is_spiel_cr: True: the algorithm belongs to this project. Otherwise it is bundled
        with OpenSpiel, or is a baseline.
      how: Sentence about the method behind its numbers.
      make: Function from game instance and seed to an adapter. It may raise
        `MissingError`.
      way: Mode of work. "iterates": further iterations improve the same strategy;
        "restarts": the budget must be known in advance, so each point of the curve is a
        separate run; "once": the algorithm has a fixed amount of work.
      samples: True: results depend on the seed.
      modules: Modules that must be installed.
      extra: Extra of the project that installs them; empty: none.
      least: Least number of iterations.
      meaningful: Number of iterations that its authors use. Results after fewer
        iterations are not meaningful.
      meaningful_by: Source of `meaningful`, for notes in tables.
      files: Files that must exist.
    """

    name: str
    title: str
    is_spiel_cr: bool
    how: str
    make: Callable[[GameInstance, int], SolverAdapter]
    way: Way = "iterates"
    samples: bool = False
    modules: tuple[str, ...] = ()
    extra: str = ""
    least: int = 1
    meaningful: int = 0
    meaningful_by: str = ""
    files: tuple[str, ...] = ()


def bundled(
    name: str,
    title: str,
    how: str,
    make: Callable[[GameInstance, int], SolverAdapter],
    **options: Any,
) -> Entry:
    """Return the entry of an algorithm that OpenSpiel bundles.

    Args:
      name, title: Name and title without the prefix "OpenSpiel".
      how, make, **options: Other fields of `Entry`.
    """
    return Entry(f"openspiel-{name}", f"OpenSpiel {title}", False, how, make, **options)


class NumpyDraws:
    """A separate stream of numpy's global random numbers.

    Some algorithms that OpenSpiel bundles draw from numpy's global generator.
    """

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed).get_state()

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Use this stream for draws inside the block."""
        others = np.random.get_state()
        np.random.set_state(self._state)
        try:
            yield
        finally:
            self._state = np.random.get_state()
            np.random.set_state(others)


class SteppingAdapter(SolverAdapter):
    """Adapter of a solver of OpenSpiel, from its methods."""

    def __init__(
        self,
        instance: GameInstance,
        seed: int,
        step: Callable[[], Any],
        policy: Callable[[], Policy],
        *,
        note: str = "",
        wait: Callable[[], Any] = lambda: None,
        begin_again: Callable[[], None] | None = None,
    ) -> None:
        """Store the methods of a solver, and compile its functions if it has any.

        Args:
          instance: Game; its tree is needed by `strategy` only.
          seed: Seed of numpy's global generator during runs and queries.
          step: Function that runs one iteration.
          policy: Function that returns the policy to evaluate, such as an average
            policy.
          note: Note for readers of the result, see `SolverAdapter`.
          wait: Function that returns when the work of all steps is done.
          begin_again: Function that resets the solver after the warm-up, except its
            compiled functions; None: there is nothing to compile.
        """
        self.note = note
        self.policy = policy
        self._instance = instance
        self._step = step
        self._wait = wait
        self._draws = NumpyDraws(seed)
        if begin_again is not None:
            with self._draws.installed():
                self.compile_seconds = seconds_of_compiling(self._one)
            begin_again()
            self._draws = NumpyDraws(seed)

    def _one(self) -> None:
        self._step()
        self._wait()

    def run(self, iterations: int) -> None:
        with self._draws.installed():
            for _ in range(iterations):
                self._step()
            self._wait()

    def strategy(self) -> Strategy:
        with self._draws.installed():
            return ask(self._instance.tree, self.policy())

    def on_states(self) -> "PolicyOnStates":
        """Return the policy behind `strategy`, for queries by state without a tree."""
        with self._draws.installed():
            policy = self.policy()
        # OpenSpiel's C++ average policies refer to the solver, which must stay alive.
        owner = self._step
        return PolicyOnStates(self._instance.game, policy, self._draws, owner)


class PolicyOnStates(conversions.StatePolicy):
    """The policy of any solver of OpenSpiel, as probabilities by state."""

    def __init__(
        self, game: pyspiel.Game, policy: Policy, draws: NumpyDraws, owner: object
    ) -> None:
        """Store a policy.

        Args:
          game: Sequential game.
          policy: Policy of both players.
          draws: Stream of numpy's global generator during queries.
          owner: Object that must stay alive as long as the policy.
        """
        super().__init__(game)
        self._policy = policy
        self._draws = draws
        self._owner = owner

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return probabilities, see `StatePolicy`; uniform if the solver has none."""
        with self._draws.installed():
            probabilities = self._policy.action_probabilities(state)
        legal = state.legal_actions()
        weights = [float(probabilities.get(action, 0.0)) for action in legal]
        total = sum(weights)
        # OpenSpiel's solvers return nothing, or 0/0, at infosets they never visited.
        if not total > 0:
            return dict.fromkeys(legal, 1 / len(legal))
        return {a: weight / total for a, weight in zip(legal, weights, strict=True)}


class Iterating(Protocol):
    """A solver of spiel_cr with compiled functions."""

    compile_seconds: float

    def run(self, iterations: int) -> object: ...

    def average_behaviour(self, player: int) -> np.ndarray: ...


class IteratingAdapter(SolverAdapter):
    """Adapter of a solver of spiel_cr, evaluated by its average strategy."""

    def __init__(self, solver: Iterating) -> None:
        self._solver = solver
        self.compile_seconds = solver.compile_seconds

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)

    def strategy(self) -> Strategy:
        return self._solver.average_behaviour(0), self._solver.average_behaviour(1)


class Computed(NamedTuple):
    """The result of a run from scratch.

    Attributes:
      strategy: Strategy of both players.
      seconds: Time that counts; None: the time of the outer clock.
      compile_seconds, iterations, note: Attributes of `SolverAdapter`.
    """

    strategy: Strategy
    seconds: float | None = None
    compile_seconds: float = 0.0
    iterations: int | None = None
    note: str = ""


class ComputingAdapter(SolverAdapter):
    """Adapter of a function of the number of iterations, which starts from scratch."""

    def __init__(self, compute: Callable[[int], Computed]) -> None:
        self._compute = compute

    def run(self, iterations: int) -> float | None:
        self._computed = self._compute(iterations)
        self.compile_seconds += self._computed.compile_seconds
        self.note = self._computed.note
        self.iterations = self._computed.iterations
        return self._computed.seconds

    def strategy(self) -> Strategy:
        return self._computed.strategy


def ask(tree: GameTree, policy: Policy) -> Strategy:
    """Query a policy at every infoset; uniform where it has no probabilities.

    OpenSpiel's solvers return no probabilities, or 0/0, at infosets that they never
    visited.
    """
    return query(tree, policy, fill=True)


def seconds_of_compiling(work: Callable[[], None]) -> float:
    """Return the additional time of the first calls compared with the last one."""
    times = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return sum(max(spent - times[-1], 0.0) for spent in times)
