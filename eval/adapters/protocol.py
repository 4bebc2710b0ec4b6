"""What an algorithm must offer to be compared, and what its adapter is made of.

An adapter takes a `GameInstance` and a seed, works, and tells its strategy. Most are
one call: `IteratingAdapter` wraps a solver of spiel_cr, `SteppingAdapter` one of
OpenSpiel, `ComputingAdapter` a function that works from the beginning each time.
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

# The last round of `seconds_of_compiling` compiles nothing more.
_ROUNDS = 3


class Policy(Protocol):
    """What `ask` needs of a policy of OpenSpiel, or of anything else that answers."""

    def action_probabilities(self, state: pyspiel.State) -> dict[int, float]:
        """Return probabilities of legal actions, for the player to act."""


class SolverAdapter(Protocol):
    """One algorithm on one game, made fresh for each run.

    Attributes:
      compile_seconds: of making it and running it, what went into compiling JAX
        programs (where that can be told apart).
      note: what a reader of the result should know besides; may be empty.
      iterations: of an entry that works "once", how many that took; None where there
        is no such thing.
    """

    compile_seconds: float = 0.0
    note: str = ""
    iterations: int | None = None

    def run(self, iterations: int) -> float | None:
        """Do its work.

        Args:
          iterations: of an entry that "iterates", how many more; of one that
            "restarts", how many from the beginning; of one that works "once", 1.

        Returns:
          The seconds that count, where the clock outside would count too much
          (compiling, for example); None: the clock outside is right.
        """

    def strategy(self) -> Strategy:
        """What it plays after what it did so far, everywhere in the game."""


class Entry(NamedTuple):
    """An algorithm by name.

    Attributes:
      name: what users write.
      title: for tables.
      is_spiel_cr: of this project; otherwise bundled with OpenSpiel, or nobody's.
      how: one sentence on how its numbers come about.
      make: from game instance and seed to an adapter. May raise `MissingError`.
      way: "iterates": every further iteration improves the same strategy; "restarts":
        a budget has to be known beforehand, so that each point of its curve is a run
        of its own; "once": it takes the time that it takes.
      samples: whether seeds make a difference.
      modules: that must be installed.
      extra: which extra of the project installs them; empty: none.
      least: iterations at least.
      meaningful: iterations that its makers let it do; what it comes to after fewer
        means nothing.
      meaningful_by: who says so, for the note of such a row.
      files: that must exist.
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
      name, title: without OpenSpiel's name before them.
      how, make, **options: see `Entry`.
    """
    return Entry(f"openspiel-{name}", f"OpenSpiel {title}", False, how, make, **options)


class NumpyDraws:
    """A stream of numpy's global random numbers that leaves the others' alone.

    Some of what OpenSpiel bundles draws from numpy's global generator.
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
    """A solver of OpenSpiel: a method does one iteration, another gives a policy."""

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
        """Take a solver's methods.

        Args:
          instance: the game; its tree is needed by `strategy` only.
          seed: of numpy's global generator while it works and while it is asked.
          step: does one iteration.
          policy: what is judged, such as the solver's average policy.
          note: see `SolverAdapter`.
          wait: returns when the work of all steps is done.
          begin_again: leaves nothing of the warm-up but compiled programs; None: there
            are no programs.
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
        """What `strategy` judges, asked state by state: it needs no tree."""
        with self._draws.installed():
            policy = self.policy()
        # OpenSpiel's average policies in C++ point into the solver, which must live.
        owner = self._step
        return PolicyOnStates(self._instance.game, policy, self._draws, owner)


class PolicyOnStates(conversions.StatePolicy):
    """What a solver of OpenSpiel plays, whatever kind of policy it has itself."""

    def __init__(
        self, game: pyspiel.Game, policy: Policy, draws: NumpyDraws, owner: object
    ) -> None:
        """Take what a solver learned.

        Args:
          game: the sequential game.
          policy: of both players.
          draws: numpy's global generator while it is asked.
          owner: what the policy needs to be alive.
        """
        super().__init__(game)
        self._policy = policy
        self._draws = draws
        self._owner = owner

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`; alike where the solver has none."""
        with self._draws.installed():
            probabilities = self._policy.action_probabilities(state)
        legal = state.legal_actions()
        weights = [float(probabilities.get(action, 0.0)) for action in legal]
        total = sum(weights)
        # OpenSpiel's solvers give nothing, or 0/0, where they never were.
        if not total > 0:
            return dict.fromkeys(legal, 1 / len(legal))
        return {a: weight / total for a, weight in zip(legal, weights, strict=True)}


class Iterating(Protocol):
    """A solver of spiel_cr, whose programs are compiled."""

    compile_seconds: float

    def run(self, iterations: int) -> object: ...

    def average_behaviour(self, player: int) -> np.ndarray: ...


class IteratingAdapter(SolverAdapter):
    """A solver of spiel_cr, judged by its average strategy."""

    def __init__(self, solver: Iterating) -> None:
        self._solver = solver
        self.compile_seconds = solver.compile_seconds

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)

    def strategy(self) -> Strategy:
        return self._solver.average_behaviour(0), self._solver.average_behaviour(1)


class Computed(NamedTuple):
    """What work from the beginning gave.

    Attributes:
      strategy: for both players.
      seconds: that count; None: those of the clock outside.
      compile_seconds, iterations, note: see `SolverAdapter`.
    """

    strategy: Strategy
    seconds: float | None = None
    compile_seconds: float = 0.0
    iterations: int | None = None
    note: str = ""


class ComputingAdapter(SolverAdapter):
    """Work that begins anew at each `run`, by a function of the iterations."""

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
    """Return a policy's answers at every infoset; uniform where it has none.

    OpenSpiel's solvers give no probabilities, or 0/0, where they never were.
    """
    return query(tree, policy, fill=True)


def seconds_of_compiling(work: Callable[[], None]) -> float:
    """Return how many seconds longer the first calls took than the last."""
    times = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return sum(max(spent - times[-1], 0.0) for spent in times)
