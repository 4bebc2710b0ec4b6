"""Sampled solvers of OpenSpiel and of spiel_cr, behind one interface."""

from typing import Any, Protocol

import numpy as np
import pyspiel
from open_spiel.python import policy as policy_lib
from open_spiel.python.algorithms import outcome_sampling_mccfr

import spiel_cr
from benchmarks import cfr, peers
from spiel_cr.cfr import cfr as cfr_lib
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.mccfr import mccfr
from spiel_cr.policies import conversions as spiel_cr_policy

# Contestants that OpenSpiel bundles; any other name is an algorithm of spiel_cr.
PEERS = {
    "openspiel-outcome": "OpenSpiel outcome sampling (C++)",
    "openspiel-external": "OpenSpiel external sampling (C++)",
    "openspiel-python": "OpenSpiel outcome sampling (Python)",
}


class Contestant(Protocol):
    """One solver on one game.

    Attributes:
      trajectories: of one iteration, for both players; 0 if it is full width.
      compile_seconds: tracing and compiling, apart from all else.
    """

    trajectories: int
    compile_seconds: float

    def start(self, seed: int) -> None:
        """Starts over; what is compiled stays compiled."""

    def run(self, iterations: int) -> None:
        """Iterates, and returns when that is done."""

    def nash_conv(self) -> float:
        """NashConv of the average policy by `pyspiel.nash_conv`."""


class Arena:
    """A game and what its contestants share.

    Attributes:
      name: for tables.
      string: OpenSpiel game string.
      game: for OpenSpiel's solvers and its judge.
      tree: the compiled game.
      compile_seconds: by configuration; JAX keeps programs, so a second solver with
        the same configuration would seem to compile in no time.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.string = cfr.GAMES.get(name, name)
        self.game = peers.load(self.string)
        self.tree = spiel_cr.compile_game(self.string)
        self.compile_seconds: dict[object, float] = {}

    def contestant(self, name: str) -> Contestant:
        """Builds and compiles a contestant."""
        return _OpenSpiel(self, name) if name in PEERS else _SpielCR(self, name)


class _SpielCR:
    """A solver of spiel_cr in its default precision."""

    def __init__(self, arena: Arena, algorithm: str) -> None:
        self._arena = arena
        self._config = algorithm_lib.parse_any(algorithm)
        self.trajectories = 0
        if isinstance(self._config, algorithm_lib.MCCFRConfig):
            self.trajectories = 2 * self._config.batch
        self.start(0)
        self.compile_seconds = arena.compile_seconds.setdefault(
            self._config, self._solver.compile_seconds
        )

    def start(self, seed: int) -> None:
        tree, config = self._arena.tree, self._config
        if isinstance(config, algorithm_lib.MCCFRConfig):
            self._solver = mccfr.make_solver(tree, config=config, seed=seed)
        else:
            self._solver = cfr_lib.make_solver(
                tree.form, config=config, dtype=np.float64
            )

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)

    def nash_conv(self) -> float:
        behaviours = [self._solver.average_behaviour(p) for p in range(2)]
        policy = spiel_cr_policy.tabular_policy(self._arena.tree, behaviours)
        converted = policy_lib.python_policy_to_pyspiel_policy(policy)
        return float(pyspiel.nash_conv(self._arena.game, converted))


class _OpenSpiel:
    """A sampled solver of OpenSpiel; an iteration updates each player once."""

    trajectories = 2
    compile_seconds = 0.0

    def __init__(self, arena: Arena, name: str) -> None:
        self._game, self._name = arena.game, name
        self.start(0)

    def start(self, seed: int) -> None:
        solver: Any
        if self._name == "openspiel-outcome":
            solver = pyspiel.OutcomeSamplingMCCFRSolver(
                self._game, epsilon=0.6, seed=seed
            )
        elif self._name == "openspiel-external":
            solver = pyspiel.ExternalSamplingMCCFRSolver(self._game, seed=seed)
        else:
            # It draws from numpy's global generator and explores with 0.6.
            np.random.seed(seed)
            solver = outcome_sampling_mccfr.OutcomeSamplingSolver(self._game)
        python = self._name == "openspiel-python"
        self._step = solver.iteration if python else solver.run_iteration
        self._average = solver.average_policy

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self._step()

    def nash_conv(self) -> float:
        policy = self._average()
        if self._name == "openspiel-python":
            policy = policy_lib.tabular_policy_from_callable(
                self._game, policy.action_probabilities
            )
            policy = policy_lib.python_policy_to_pyspiel_policy(policy)
        return float(pyspiel.nash_conv(self._game, policy, True))
