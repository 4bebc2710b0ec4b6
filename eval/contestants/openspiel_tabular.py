"""Comparing: tabular CFR solvers that OpenSpiel bundles, in C++, Python and JAX.

Each gets the best conditions that OpenSpiel offers: for Python games all of them run on
the cached tree.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from ..common.game_instance import GameInstance, Strategy
from .protocol import Entry, NumpyDraws, ask

_EPSILON = 0.6

_Policy: TypeAlias = pyspiel.Policy | openspiel_policy.Policy


class Solver:
    """A full-width solver with OpenSpiel's usual methods."""

    compile_seconds = 0.0
    note = ""

    def __init__(self, instance: GameInstance, solver: Any, step: str) -> None:
        """Takes a solver.

        Args:
          instance: the game.
          solver: has `average_policy` and a method that does one iteration.
          step: that method's name.
        """
        self._tree = instance.tree
        self._solver = solver
        self._step = getattr(solver, step)

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self._step()

    def policy(self) -> _Policy:
        """OpenSpiel's average policy."""
        return self._solver.average_policy()

    def strategy(self) -> Strategy:
        return ask(self._tree, self.policy())


class Sampling:
    """A sampled solver in Python, which draws from numpy's global generator."""

    compile_seconds = 0.0
    note = ""

    def __init__(self, instance: GameInstance, solver: Any, seed: int) -> None:
        self._tree = instance.tree
        self._solver = solver
        self._draws = NumpyDraws(seed)

    def run(self, iterations: int) -> None:
        with self._draws.installed():
            for _ in range(iterations):
                self._solver.iteration()

    def strategy(self) -> Strategy:
        return ask(self._tree, self._solver.average_policy())


class _JaxCFR:
    """OpenSpiel's JaxCFR, in single precision."""

    note = ""

    def __init__(self, instance: GameInstance, **options: bool) -> None:
        module = importlib.import_module("open_spiel.python.jax.cfr.jax_cfr")
        self._tree = instance.tree
        self._solver = module.JaxCFR(instance.fast, **options)
        # The step is compiled at its first call; that is undone afterwards, in place,
        # since another instance would be compiled anew.
        started = time.perf_counter()
        self.run(1)
        first = time.perf_counter() - started
        started = time.perf_counter()
        self.run(1)
        self.compile_seconds = max(first - (time.perf_counter() - started), 0.0)
        self._solver.regrets = [jnp.zeros_like(r) for r in self._solver.regrets]
        self._solver.averages = [jnp.zeros_like(a) for a in self._solver.averages]
        self._solver.timestep = 1

    def run(self, iterations: int) -> None:
        self._solver.multiple_steps(iterations)
        jax.block_until_ready(self._solver.averages)

    def strategy(self) -> Strategy:
        # Infosets of reach 0 come out as 0/0, which `ask` takes for no answer.
        with np.errstate(invalid="ignore"):
            return ask(self._tree, self._solver.average_policy())


def _cpp(class_name: str) -> Callable[[GameInstance, int], Solver]:
    def make(instance: GameInstance, seed: int) -> Solver:
        solver = getattr(pyspiel, class_name)(instance.fast)
        return Solver(instance, solver, "evaluate_and_update_policy")

    return make


def _python(module: str, class_name: str, **options: Any) -> Callable[..., Solver]:
    def make(instance: GameInstance, seed: int) -> Solver:
        found = importlib.import_module(f"open_spiel.python.algorithms.{module}")
        solver = getattr(found, class_name)(instance.fast, **options)
        return Solver(instance, solver, "evaluate_and_update_policy")

    return make


def _python_sampling(module: str, class_name: str) -> Callable[..., Sampling]:
    def make(instance: GameInstance, seed: int) -> Sampling:
        found = importlib.import_module(f"open_spiel.python.algorithms.{module}")
        return Sampling(instance, getattr(found, class_name)(instance.fast), seed)

    return make


def _outcome_sampling(instance: GameInstance, seed: int) -> Solver:
    solver = pyspiel.OutcomeSamplingMCCFRSolver(instance.fast, _EPSILON, seed)
    return Solver(instance, solver, "run_iteration")


def _external_sampling(instance: GameInstance, seed: int) -> Solver:
    solver = pyspiel.ExternalSamplingMCCFRSolver(instance.fast, seed)
    return Solver(instance, solver, "run_iteration")


def _entry(name: str, title: str, make: Any, how: str, **options: Any) -> Entry:
    return Entry(f"openspiel-{name}", f"OpenSpiel {title}", False, how, make, **options)


_FULL = "Average policy; one iteration updates both players over the whole game."
_EPISODES = "Average policy; one iteration is one trajectory for each player."
_EXTERNAL = (
    "Average policy; one iteration is one sample for each player: chance's and the "
    "other's actions are drawn, all of its own are followed."
)
_BR = "Average policy; each iteration also computes two exact best responses."
_JAX = {"modules": ("chex",), "extra": "baselines"}

ENTRIES: tuple[Entry, ...] = (
    _entry("cfr", "CFR (C++)", _cpp("CFRSolver"), _FULL),
    _entry("cfr-python", "CFR (Python)", _python("cfr", "CFRSolver"), _FULL),
    _entry("cfr+", "CFR+ (C++)", _cpp("CFRPlusSolver"), _FULL),
    _entry("cfr+-python", "CFR+ (Python)", _python("cfr", "CFRPlusSolver"), _FULL),
    _entry(
        "cfr+-jax",
        "CFR+ (JAX)",
        lambda instance, seed: _JaxCFR(
            instance,
            regret_matching_plus=True,
            alternating_updates=True,
            linear_averaging=True,
        ),
        f"{_FULL} Single precision.",
        **_JAX,
    ),
    _entry(
        "dcfr",
        "discounted CFR (Python)",
        _python("discounted_cfr", "DCFRSolver"),
        f"{_FULL} Parameters 3/2, 0, 2.",
    ),
    _entry(
        "lcfr",
        "linear CFR (Python)",
        _python("discounted_cfr", "LCFRSolver"),
        _FULL,
    ),
    _entry("cfr-br", "CFR-BR (C++)", _cpp("CFRBRSolver"), _BR),
    _entry("cfr-br-python", "CFR-BR (Python)", _python("cfr_br", "CFRBRSolver"), _BR),
    _entry(
        "efr",
        "EFR (Python)",
        _python("efr", "EFRSolver", deviations_name="blind cf"),
        f"{_FULL} Blind counterfactual deviations, its cheapest set.",
    ),
    _entry(
        "os-mccfr",
        "outcome-sampling MCCFR (C++)",
        _outcome_sampling,
        f"{_EPISODES} Exploration {_EPSILON}.",
        samples=True,
    ),
    _entry(
        "os-mccfr-python",
        "outcome-sampling MCCFR (Python)",
        _python_sampling("outcome_sampling_mccfr", "OutcomeSamplingSolver"),
        f"{_EPISODES} Exploration {_EPSILON}.",
        samples=True,
    ),
    _entry(
        "es-mccfr",
        "external-sampling MCCFR (C++)",
        _external_sampling,
        _EXTERNAL,
        samples=True,
    ),
    _entry(
        "es-mccfr-python",
        "external-sampling MCCFR (Python)",
        _python_sampling("external_sampling_mccfr", "ExternalSamplingSolver"),
        _EXTERNAL,
        samples=True,
    ),
)
