"""Algorithms that can be compared, and their adapters.

An adapter is made for a `GameInstance` and a seed, works, and returns its strategy.
`IteratingAdapter` wraps a solver of spiel_cr, `SteppingAdapter` a solver of OpenSpiel,
and `ComputingAdapter` a function that starts from scratch in each call.
"""

import contextlib
import pathlib
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyspiel

import game_defs  # noqa: F401  registers the project's games
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import conversions
from spiel_cr.policies.queries import query

from ..common.exact_evaluator import Strategy
from ..common.game_instance import GameInstance

Mode = Literal["iterates", "restarts", "once"]

# Names, titles and descriptions of algorithms.
CATALOGUE = tomllib.loads(
    pathlib.Path(__file__).with_name("catalogue.toml").read_text("utf-8")
)
# The last round of `seconds_of_compiling` compiles nothing more.
_ROUNDS = 3


class Policy(Protocol):
    """A policy of OpenSpiel, or any other object with its method."""

    def action_probabilities(self, state: pyspiel.State) -> dict[int, float]:
        """Return probabilities of legal actions for the player who acts."""


class SolverAdapter(Protocol):
    """One algorithm on one game, made for each run.

    Attributes:
      compile_seconds: Time that JAX needed to compile functions, as far as it can be
        separated from creating the adapter and running it.
      note: Remark for readers of the result; may be empty.
      iterations: Number of iterations of an entry that works "once"; None if it has no
        iterations.
    """

    compile_seconds: float = 0.0
    note: str = ""
    iterations: int | None = None

    def run(self, iterations: int) -> float | None:
        """Run the algorithm.

        Args:
          iterations: Number of further iterations of an entry that "iterates"; number
            of iterations from scratch of one that "restarts", or seconds as a float if
            it is `timed`; 1 for one that works "once".

        Returns:
          The seconds that count, if a clock around the call would count too much (for
          example compilation); None if that clock is right.
        """

    def strategy(self) -> Strategy:
        """Return the current strategy of both players."""


class Entry(NamedTuple):
    """An algorithm that can be compared.

    Attributes:
      name: Name that users write.
      title: Title in tables.
      is_spiel_cr: Whether it is an algorithm of this project.
      how: Description of the algorithm and of its iterations.
      make: Function from a game instance and a seed to an adapter. May raise
        `MissingError`.
      mode: "iterates": every further iteration improves the same strategy; "restarts":
        the budget has to be known in advance, so each point of a curve is a run of its
        own; "once": the effort does not depend on a budget.
      timed: Whether an entry that "restarts" keeps a time budget by itself.
      samples: Whether results depend on the seed.
      modules: Modules that must be installed.
      extra: Extra of the project that installs them; may be empty.
      least: Least number of iterations.
      meaningful: Number of iterations below which results are not meaningful.
      meaningful_by: Reason for that number, for the note of a row.
      files: Files that must exist.
    """

    name: str
    title: str
    is_spiel_cr: bool
    how: str
    make: Callable[[GameInstance, int], SolverAdapter]
    mode: Mode = "iterates"
    timed: bool = False
    samples: bool = False
    modules: tuple[str, ...] = ()
    extra: str = ""
    least: int = 1
    meaningful: int = 0
    meaningful_by: str = ""
    files: tuple[str, ...] = ()


class NumpyDraws:
    """A stream of NumPy's global random numbers that leaves other streams alone.

    Some algorithms of OpenSpiel draw from NumPy's global generator.
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
    """A solver of OpenSpiel: one method does an iteration, another returns a policy."""

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
        """Store the methods of a solver, and compile its functions.

        Args:
          instance: Game; its tree is used by `strategy` only.
          seed: Seed of NumPy's global generator for the solver and its policy.
          step: Function that does one iteration.
          policy: Function that returns the policy to evaluate, such as the average.
          note: Note for readers of the result.
          wait: Function that returns when the work of all steps is done.
          begin_again: Function that undoes the warm-up, except for compiled functions.
            If None, the solver compiles nothing.
        """
        self.note = note
        self.policy = policy
        self._instance = instance
        self._step = step
        self._wait = wait
        self._draws = NumpyDraws(seed)
        if begin_again is not None:
            with self._draws.installed():
                self.compile_seconds = seconds_of_compiling(lambda: (step(), wait()))
            begin_again()
            self._draws = NumpyDraws(seed)

    def run(self, iterations: int) -> None:
        with self._draws.installed():
            for _ in range(iterations):
                self._step()
            self._wait()

    def strategy(self) -> Strategy:
        with self._draws.installed():
            return ask(self._instance.tree, self.policy())

    def on_states(self) -> "PolicyOnStates":
        """Return the same policy for queries at states, without the game tree."""
        with self._draws.installed():
            policy = self.policy()
        # OpenSpiel's C++ average policies refer to the solver, which must stay alive.
        owner = self._step
        return PolicyOnStates(self._instance.game, policy, self._draws, owner)


class PolicyOnStates(conversions.StatePolicy):
    """The policy of a solver of OpenSpiel, of any kind, queried at states."""

    def __init__(
        self, game: pyspiel.Game, policy: Policy, draws: NumpyDraws, owner: object
    ) -> None:
        """Store a policy.

        Args:
          game: Sequential game.
          policy: Policy of both players.
          draws: Numbers of NumPy's global generator for queries.
          owner: Object that must live as long as the policy.
        """
        super().__init__(game)
        self._policy = policy
        self._draws = draws
        self._owner = owner

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return probabilities; uniform if the solver has none."""
        with self._draws.installed():
            probabilities = self._policy.action_probabilities(state)
        legal = state.legal_actions()
        weights = [float(probabilities.get(action, 0.0)) for action in legal]
        total = sum(weights)
        # OpenSpiel's solvers return nothing, or 0/0, at unvisited infosets.
        if not total > 0:
            return dict.fromkeys(legal, 1 / len(legal))
        return {a: weight / total for a, weight in zip(legal, weights, strict=True)}


class IteratingAdapter(SolverAdapter):
    """A compiled solver with `average_behaviour(player)`, evaluated by its average."""

    def __init__(self, solver: Any) -> None:
        self._solver = solver
        self.compile_seconds = solver.compile_seconds

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)

    def strategy(self) -> Strategy:
        return self._solver.average_behaviour(0), self._solver.average_behaviour(1)


class Computed(NamedTuple):
    """Result of a computation from scratch.

    Attributes:
      strategy: Strategy of both players.
      seconds: Seconds that count; None: those of a clock around the computation.
      compile_seconds: Seconds of JAX compilation.
      iterations: Number of iterations; None if there are none.
      note: Note for readers of the result.
    """

    strategy: Strategy
    seconds: float | None = None
    compile_seconds: float = 0.0
    iterations: int | None = None
    note: str = ""


class ComputingAdapter(SolverAdapter):
    """An algorithm that starts from scratch in each `run`."""

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


def computing(
    compute: Callable[[GameInstance, int, Any], Computed],
) -> Callable[[GameInstance, int], ComputingAdapter]:
    """Return `Entry.make` of a function of the game, the seed and the iterations."""
    return lambda instance, seed: ComputingAdapter(partial(compute, instance, seed))


def ask(tree: GameTree, policy: Policy) -> Strategy:
    """Query a policy at every infoset; probabilities that it lacks are uniform.

    OpenSpiel's solvers return no probabilities, or 0/0, at unvisited infosets.
    """
    return query(tree, policy, fill=True)


def seconds_of_compiling(work: Callable[[], object]) -> float:
    """Return by how many seconds the first calls took longer than the last one."""
    times = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return sum(max(spent - times[-1], 0.0) for spent in times)
