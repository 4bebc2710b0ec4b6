"""The contestants: spiel_cr's solvers, what OpenSpiel bundles, LiteEFG and plain C.

Every contestant is used in the form its authors ship for speed: Python games become
OpenSpiel's cached tree for the peers, JAX programs are compiled before the clock runs,
and each is asked for whole batches of iterations. What only one contestant needs is
imported by that one, so that the memory of the others' processes stays their own.
"""

import contextlib
import dataclasses
import importlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import pyspiel
from open_spiel.python import policy as policy_lib

import game_defs  # noqa: F401  registers the project's games


@dataclasses.dataclass(frozen=True)
class Description:
    """What a solver's rows say about it.

    Attributes:
      title: for tables.
      family: "spiel_cr", "openspiel" (bundled with it), "c" (the yardstick) or "peer".
      dtype: arithmetic.
      iterative: whether it can be stopped after any number of iterations.
    """

    title: str
    family: str
    dtype: str = "float64"
    iterative: bool = True


class Contestant(Protocol):
    """One solver on one game; made fresh, so its construction is the build time.

    Attributes:
      compile_seconds: compiling apart from building and iterating.
      device: where it iterates, as JAX names it.
    """

    compile_seconds: float
    device: str

    def reset(self) -> None:
        """Starts over; what is compiled stays compiled."""

    def run(self, iterations: int) -> None:
        """Iterates, and returns when that is done."""

    def nash_conv(self) -> float:
        """OpenSpiel's exact NashConv of the average policy."""


_PEERS = {
    "c": Description("C, one thread: CFR+", "c"),
    "openspiel-cpp": Description("OpenSpiel CFRPlusSolver (C++)", "openspiel"),
    "openspiel-python": Description("OpenSpiel CFRPlusSolver (Python)", "openspiel"),
    "openspiel-jax": Description("OpenSpiel JaxCFR, CFR+", "openspiel", "float32"),
    "liteefg": Description("LiteEFG CFR+", "peer"),
    "lp": Description("spiel_cr lp", "spiel_cr", iterative=False),
}


def default_solvers() -> list[str]:
    """All solvers, the yardstick beside the one that is held to it."""
    from spiel_cr.cfr import config as algorithm

    others = [name for name in algorithm.PRESETS if name != "cfr+"]
    peers = [name for name in _PEERS if name not in ("c", "lp")]
    return ["cfr+", "c", "cfr+/float32", *others, "lp", *peers]


def describe(solver: str) -> Description:
    """A solver's description; names that no peer has are spiel_cr's algorithms."""
    if solver in _PEERS:
        return _PEERS[solver]
    algorithm, _, dtype = solver.partition("/")
    return Description(f"spiel_cr {algorithm}", "spiel_cr", dtype or "float64")


def import_modules(solver: str) -> None:
    """Imports what a solver needs, so that building it is not charged with that.

    Raises:
      ImportError: the peer is not installed.
    """
    modules = {
        "openspiel-cpp": [],
        "openspiel-python": ["open_spiel.python.algorithms.cfr"],
        "openspiel-jax": ["open_spiel.python.jax.cfr.jax_cfr"],
        "liteefg": ["LiteEFG", "LiteEFG.baselines.CFRplus"],
    }
    for module in modules.get(solver, ["spiel_cr", "benchmarks.c_reference"]):
        importlib.import_module(module)


def make(solver: str, game: str) -> Contestant:
    """Builds a contestant.

    Args:
      solver: a peer's name, or an algorithm of spiel_cr with "/float32" behind it for
        single precision.
      game: OpenSpiel game string.

    Raises:
      ImportError: the peer is not installed.
      RuntimeError: no C compiler.
      ValueError: spiel_cr does not know the algorithm.
    """
    peers: dict[str, Callable[[str], Contestant]] = {
        "c": _Yardstick,
        "openspiel-cpp": lambda game: _OpenSpiel(game, pyspiel.CFRPlusSolver),
        "openspiel-python": _openspiel_python,
        "openspiel-jax": _JaxCFR,
        "liteefg": _LiteEFG,
        "lp": _LinearProgram,
    }
    if solver in peers:
        return peers[solver](game)
    algorithm, _, dtype = solver.partition("/")
    return _SpielCR(game, algorithm, dtype or "float64")


def load(game: str) -> pyspiel.Game:
    """The game with sequential moves and, if it is a Python one, as a cached tree."""
    loaded = pyspiel.load_game(game)
    if loaded.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        loaded = pyspiel.convert_to_turn_based(loaded)
    if loaded.get_type().short_name.startswith("python_"):
        loaded = pyspiel.convert_to_cached_tree(loaded)
    return loaded


def _judge(game: str, policy: policy_lib.TabularPolicy) -> float:
    """OpenSpiel's NashConv in C++, which equals the one in Python."""
    converted = policy_lib.python_policy_to_pyspiel_policy(policy)
    return float(pyspiel.nash_conv(load(game), converted))


class _Compiled:
    """What contestants on a `CompiledGame` share.

    Attributes:
      compile_game_seconds: the part of building that is `spiel_cr.compile_game`.
    """

    def __init__(self, game: str) -> None:
        import spiel_cr

        self.device = "cpu"
        self.compile_seconds = 0.0
        self._game = game
        started = time.perf_counter()
        self._tree = spiel_cr.compile_game(game)
        self.compile_game_seconds = time.perf_counter() - started

    def _judge_reach(self, average: Callable[[int], np.ndarray]) -> float:
        """NashConv of a strategy in sequence form, by logical sequence."""
        from spiel_cr.policies import conversions as policy

        behaviour = [
            policy.behaviour_from_reach(infosets.decisions, average(p))
            for p, infosets in enumerate(self._tree.infosets)
        ]
        return _judge(self._game, policy.tabular_policy(self._tree, behaviour))


class _SpielCR(_Compiled):
    """A full-width solver of spiel_cr."""

    def __init__(self, game: str, algorithm: str, dtype: str) -> None:
        import jax

        from spiel_cr.cfr import config as algorithm_lib

        super().__init__(game)
        self.device = jax.default_backend()
        self._config = algorithm_lib.parse_algorithm(algorithm)
        self._dtype = dtype
        self.reset()
        self.compile_seconds = self._solver.compile_seconds

    def reset(self) -> None:
        from spiel_cr.cfr import cfr

        self._solver = cfr.make_solver(
            self._tree.form, config=self._config, dtype=np.dtype(self._dtype)
        )

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)

    def nash_conv(self) -> float:
        return self._judge_reach(self._solver.average)


class _LinearProgram(_Compiled):
    """spiel_cr's exact solution; one "iteration" is the whole of it."""

    def reset(self) -> None:
        pass

    def run(self, iterations: int) -> None:
        import spiel_cr

        for _ in range(iterations):
            self._result = spiel_cr.solve(self._tree, "lp")

    def nash_conv(self) -> float:
        return _judge(self._game, self._result.average_policy())


class _Yardstick(_Compiled):
    """The C reference."""

    def __init__(self, game: str) -> None:
        super().__init__(game)
        self.reset()
        self.compile_seconds = self._solver.compile_seconds

    def reset(self) -> None:
        from benchmarks import c_reference

        self._solver = c_reference.CReference(self._tree.form)

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)

    def nash_conv(self) -> float:
        return self._judge_reach(self._solver.average)

    def disagreement(self) -> dict[str, Any]:
        """How far it is from spiel_cr; see `c_reference.disagreement`."""
        from benchmarks import c_reference

        return c_reference.disagreement(self._tree.form)


class _OpenSpiel:
    """A CFRPlusSolver of OpenSpiel, the C++ or the Python one."""

    def __init__(self, game: str, solver: Callable[[pyspiel.Game], Any]) -> None:
        self.compile_seconds = 0.0
        self.device = "cpu"
        self._game, self._make = load(game), solver
        self.reset()

    def reset(self) -> None:
        self._solver = self._make(self._game)

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self._solver.evaluate_and_update_policy()

    def nash_conv(self) -> float:
        policy = self._solver.average_policy()
        if isinstance(policy, policy_lib.TabularPolicy):
            policy = policy_lib.python_policy_to_pyspiel_policy(policy)
        return float(pyspiel.nash_conv(self._game, policy, True))


def _openspiel_python(game: str) -> Contestant:
    from open_spiel.python.algorithms import cfr

    return _OpenSpiel(game, cfr.CFRPlusSolver)


class _JaxCFR:
    """OpenSpiel's JaxCFR, by default CFR+ with alternating updates; float32."""

    def __init__(self, game: str) -> None:
        import jax
        from open_spiel.python.jax.cfr import jax_cfr

        self.device = jax.default_backend()
        self._game = game
        self._solver = jax_cfr.JaxCFR(load(game))
        started = time.perf_counter()
        self.run(1)
        first = time.perf_counter() - started
        started = time.perf_counter()
        self.run(1)
        self.compile_seconds = first - (time.perf_counter() - started)
        self.reset()

    def reset(self) -> None:
        # A new instance would be compiled anew, since its step is jitted per instance.
        import jax.numpy as jnp

        self._solver.regrets = [jnp.zeros_like(r) for r in self._solver.regrets]
        self._solver.averages = [jnp.zeros_like(a) for a in self._solver.averages]
        self._solver.timestep = 1

    def run(self, iterations: int) -> None:
        import jax

        self._solver.multiple_steps(iterations)
        jax.block_until_ready(self._solver.averages)

    def nash_conv(self) -> float:
        # Infosets of reach 0 come out as 0/0; they are uniform, as elsewhere.
        with np.errstate(invalid="ignore"):
            policy = self._solver.average_policy()
        rows, legal = policy.action_probability_array, policy.legal_actions_mask
        unreached = ~np.isfinite(rows).all(axis=1)
        uniform = legal / legal.sum(axis=1, keepdims=True)
        rows[unreached] = uniform[unreached]
        return _judge(self._game, policy)


class _LiteEFG:
    """LiteEFG's CFR+ with linear averaging; one thread is its fastest here."""

    def __init__(self, game: str) -> None:
        import LiteEFG
        from LiteEFG.baselines import CFRplus

        self.compile_seconds = 0.0
        self.device = "cpu"
        self._game, self._library, self._graphs = game, LiteEFG, CFRplus
        self.reset()

    def reset(self) -> None:
        # It writes the game's tree below the home directory and reads it back.
        with _temporary_home():
            self._env = self._library.OpenSpielEnv(
                load(self._game), traverse_type="Enumerate", regenerate=True
            )
        self._graph = self._graphs.graph()
        self._env.set_graph(self._graph)

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self._graph.update_graph(self._env)
            self._env.update_strategy(self._graph.current_strategy())

    def nash_conv(self) -> float:
        policy, _ = self._env.get_strategy(
            self._graph.current_strategy(), "linear-avg-iterate"
        )
        return _judge(self._game, policy)


@contextlib.contextmanager
def _temporary_home() -> Iterator[None]:
    before = os.environ.get("HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["HOME"]
            else:
                os.environ["HOME"] = before
