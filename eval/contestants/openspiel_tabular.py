"""Tabular solvers that OpenSpiel bundles, in C++, Python and JAX.

Each gets the best conditions that OpenSpiel offers: for Python games all of them run on
the cached tree.
"""

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..common.game_instance import GameInstance, MissingError, Strategy
from .protocol import (
    Computed,
    ComputingAdapter,
    Entry,
    Policy,
    SteppingAdapter,
    ask,
    bundled,
    seconds_of_compiling,
)

_EPSILON = 0.6
# Sequence-form LP of OpenSpiel builds dense matrices of this many entries at most.
_MOST_ENTRIES = 50_000_000


def _solver(
    name: str,
    title: str,
    how: str,
    solver: str,
    *,
    step: str = "evaluate_and_update_policy",
    samples: bool = False,
    **arguments: Any,
) -> Entry:
    """A solver that has a method for an iteration, and `average_policy`.

    Args:
      name, title, how, samples: see `Entry`.
      solver: "pyspiel.Class", or "module.Class" of OpenSpiel's Python algorithms.
      step: the method that does an iteration.
      **arguments: of the class, behind the game. C++ classes that sample get the seed,
        too; Python ones draw from numpy's global generator.
    """
    module, _, class_name = solver.rpartition(".")
    in_cpp = module == "pyspiel"

    def make(instance: GameInstance, seed: int) -> SteppingAdapter:
        path = module if in_cpp else f"open_spiel.python.algorithms.{module}"
        seeds = {"seed": seed} if in_cpp and samples else {}
        kind = getattr(importlib.import_module(path), class_name)
        made = kind(instance.fast, **arguments, **seeds)
        return SteppingAdapter(instance, seed, getattr(made, step), made.average_policy)

    return bundled(name, title, how, make, samples=samples)


class _JaxCFR:
    """OpenSpiel's JaxCFR, in single precision."""

    note = ""
    iterations: int | None = None

    def __init__(self, instance: GameInstance, seed: int) -> None:
        module = importlib.import_module("open_spiel.python.jax.cfr.jax_cfr")
        self._instance = instance
        self._solver = module.JaxCFR(
            instance.fast,
            regret_matching_plus=True,
            alternating_updates=True,
            linear_averaging=True,
        )
        self.compile_seconds = seconds_of_compiling(lambda: self.run(1))
        self.restart()

    def restart(self) -> None:
        """Begins again in place; another instance would be compiled anew."""
        self._solver.regrets = [jnp.zeros_like(r) for r in self._solver.regrets]
        self._solver.averages = [jnp.zeros_like(a) for a in self._solver.averages]
        self._solver.timestep = 1

    def run(self, iterations: int) -> None:
        self._solver.multiple_steps(iterations)
        jax.block_until_ready(self._solver.averages)

    def policy(self) -> Policy:
        """OpenSpiel's average policy; infosets of reach 0 come out as 0/0."""
        with np.errstate(invalid="ignore"):
            return self._solver.average_policy()

    def strategy(self) -> Strategy:
        return ask(self._instance.tree, self.policy())


def _mirror_descent(instance: GameInstance, seed: int) -> SteppingAdapter:
    """Magnetic mirror descent (Sokota et al. 2023) without magnet: average policy.

    With alpha = 0 averages tend to an equilibrium for steps up to 1 / max |A|, A being
    the payoffs in sequence form.
    """
    module = importlib.import_module("open_spiel.python.algorithms.mmd_dilated")
    made = module.MMDDilatedEnt(instance.fast, alpha=0.0, stepsize=1.0)
    made.stepsize = 1.0 / float(np.abs(made.payoff_mat).max())
    return SteppingAdapter(instance, seed, made.update_sequences, made.get_avg_policies)


def _linear_program(instance: GameInstance, seed: int) -> ComputingAdapter:
    module = importlib.import_module("open_spiel.python.algorithms.sequence_form_lp")
    rows, columns = (i.decisions.num_sequences for i in instance.tree.infosets)
    if rows * columns > _MOST_ENTRIES:
        raise MissingError(
            f"its matrices are dense, {rows:,} x {columns:,} entries here"
        )

    def compute(iterations: int) -> Computed:
        *_, first, second = module.solve_zero_sum_game(instance.fast)
        return Computed((ask(instance.tree, first)[0], ask(instance.tree, second)[1]))

    return ComputingAdapter(compute)


_FULL = "Average policy; one iteration updates both players over the whole game."
_EPISODES = (
    "Average policy; one iteration is one trajectory for each player. "
    f"Exploration {_EPSILON}."
)
_EXTERNAL = (
    "Average policy; one iteration is one sample for each player: chance's and the "
    "other's actions are drawn, all of its own are followed."
)
_BR = "Average policy; each iteration also computes two exact best responses."

ENTRIES: tuple[Entry, ...] = (
    _solver("cfr", "CFR (C++)", _FULL, "pyspiel.CFRSolver"),
    _solver("cfr-python", "CFR (Python)", _FULL, "cfr.CFRSolver"),
    _solver("cfr+", "CFR+ (C++)", _FULL, "pyspiel.CFRPlusSolver"),
    _solver("cfr+-python", "CFR+ (Python)", _FULL, "cfr.CFRPlusSolver"),
    bundled(
        "cfr+-jax",
        "CFR+ (JAX)",
        f"{_FULL} Single precision.",
        _JaxCFR,
        modules=("chex",),
        extra="baselines",
    ),
    _solver(
        "dcfr",
        "discounted CFR (Python)",
        f"{_FULL} Parameters 3/2, 0, 2.",
        "discounted_cfr.DCFRSolver",
    ),
    _solver("lcfr", "linear CFR (Python)", _FULL, "discounted_cfr.LCFRSolver"),
    _solver("cfr-br", "CFR-BR (C++)", _BR, "pyspiel.CFRBRSolver"),
    _solver("cfr-br-python", "CFR-BR (Python)", _BR, "cfr_br.CFRBRSolver"),
    _solver(
        "efr",
        "EFR (Python)",
        f"{_FULL} Blind counterfactual deviations, its cheapest set.",
        "efr.EFRSolver",
        deviations_name="blind cf",
    ),
    _solver(
        "os-mccfr",
        "outcome-sampling MCCFR (C++)",
        _EPISODES,
        "pyspiel.OutcomeSamplingMCCFRSolver",
        step="run_iteration",
        samples=True,
        epsilon=_EPSILON,
    ),
    _solver(
        "os-mccfr-python",
        "outcome-sampling MCCFR (Python)",
        _EPISODES,
        "outcome_sampling_mccfr.OutcomeSamplingSolver",
        step="iteration",
        samples=True,
    ),
    _solver(
        "es-mccfr",
        "external-sampling MCCFR (C++)",
        _EXTERNAL,
        "pyspiel.ExternalSamplingMCCFRSolver",
        step="run_iteration",
        samples=True,
    ),
    _solver(
        "es-mccfr-python",
        "external-sampling MCCFR (Python)",
        _EXTERNAL,
        "external_sampling_mccfr.ExternalSamplingSolver",
        step="iteration",
        samples=True,
    ),
    _solver(
        "xfp",
        "XFP, fictitious play (Python)",
        "Average policy; each iteration computes two exact best responses.",
        "fictitious_play.XFPSolver",
        step="iteration",
    ),
    bundled(
        "mmd",
        "MMD (Python)",
        "Average policy of mirror descent with dilated entropy, alpha 0 and step "
        "1 / max |payoff|, for which averages tend to an equilibrium.",
        _mirror_descent,
    ),
    bundled(
        "lp",
        "sequence-form LP (Python)",
        "Exact equilibrium by dense linear programs (ECOS, through cvxpy).",
        _linear_program,
        way="once",
        modules=("cvxpy", "ecos"),
        extra="baselines",
    ),
)
