"""Tabular solvers that OpenSpiel bundles, in C++, Python and JAX.

Each solver gets the best conditions that OpenSpiel offers: for Python games all of them
use the cached tree.
"""

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..common.game_instance import GameInstance, MissingError
from . import protocol
from .protocol import Computed, ComputingAdapter, Entry, SteppingAdapter, ask, bundled

# Largest number of entries of the dense matrices of OpenSpiel's sequence-form LP.
_MOST_ENTRIES = 50_000_000


# Names of methods that run one iteration.
_STEPS = ("evaluate_and_update_policy", "run_iteration", "iteration")


def _solver(
    name: str,
    title: str,
    how: str,
    solver: str,
    *,
    samples: bool = False,
    **arguments: Any,
) -> Entry:
    """Return the entry of a solver with a method for an iteration and `average_policy`.

    Args:
      name, title, how, samples: Fields of `Entry`.
      solver: Class, "pyspiel.Class" or "module.Class" of OpenSpiel's Python algorithms.
      **arguments: Arguments of the class after the game. C++ classes that sample also
        get the seed; Python classes draw from numpy's global generator.
    """
    module, _, class_name = solver.rpartition(".")
    in_cpp = module == "pyspiel"

    def make(instance: GameInstance, seed: int) -> SteppingAdapter:
        path = module if in_cpp else f"open_spiel.python.algorithms.{module}"
        # C++ seeds are signed 32-bit integers.
        seeds = (
            {"seed": int(np.uint32(seed).view(np.int32))} if in_cpp and samples else {}
        )
        kind = getattr(importlib.import_module(path), class_name)
        solver_object = kind(instance.fast, **arguments, **seeds)
        step = next(
            getattr(solver_object, name)
            for name in _STEPS
            if hasattr(solver_object, name)
        )
        return SteppingAdapter(instance, seed, step, solver_object.average_policy)

    language = "C++" if in_cpp else "Python"
    return bundled(name, f"{title} ({language})", how, make, samples=samples)


def _pair(
    name: str, title: str, how: str, cpp: str, python: str, **options: Any
) -> tuple[Entry, Entry]:
    """Return the same algorithm in C++ and in Python."""
    return (
        _solver(name, title, how, f"pyspiel.{cpp}", **options),
        _solver(f"{name}-python", title, how, python, **options),
    )


def _jax_cfr(instance: GameInstance, seed: int) -> SteppingAdapter:
    """Return OpenSpiel's JaxCFR, in single precision."""
    module = importlib.import_module("open_spiel.python.jax.cfr.jax_cfr")
    solver = module.JaxCFR(
        instance.fast,
        regret_matching_plus=True,
        alternating_updates=True,
        linear_averaging=True,
    )

    def begin_again() -> None:
        solver.regrets = [jnp.zeros_like(r) for r in solver.regrets]
        solver.averages = [jnp.zeros_like(a) for a in solver.averages]
        solver.timestep = 1

    def policy() -> protocol.Policy:
        # Infosets of reach 0 give 0/0.
        with np.errstate(invalid="ignore"):
            return solver.average_policy()

    return SteppingAdapter(
        instance,
        seed,
        solver.step,
        policy,
        wait=lambda: jax.block_until_ready(solver.averages),
        begin_again=begin_again,
    )


def _mirror_descent(instance: GameInstance, seed: int) -> SteppingAdapter:
    """Return mirror descent without magnet (Sokota et al. 2023): average policy.

    With alpha = 0 averages converge to an equilibrium for steps up to 1 / max |A|,
    where A are the payoffs in sequence form.
    """
    module = importlib.import_module("open_spiel.python.algorithms.mmd_dilated")
    solver = module.MMDDilatedEnt(instance.fast, alpha=0.0, stepsize=1.0)
    solver.stepsize = 1.0 / float(np.abs(solver.payoff_mat).max())
    return SteppingAdapter(
        instance, seed, solver.update_sequences, solver.get_avg_policies
    )


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
_BR = "Average policy; each iteration also computes two exact best responses."

ENTRIES: tuple[Entry, ...] = (
    *_pair("cfr", "CFR", _FULL, "CFRSolver", "cfr.CFRSolver"),
    *_pair("cfr+", "CFR+", _FULL, "CFRPlusSolver", "cfr.CFRPlusSolver"),
    bundled(
        "cfr+-jax",
        "CFR+ (JAX)",
        f"{_FULL} Single precision.",
        _jax_cfr,
        modules=("chex",),
        extra="baselines",
    ),
    _solver(
        "dcfr",
        "discounted CFR",
        f"{_FULL} Parameters 3/2, 0, 2.",
        "discounted_cfr.DCFRSolver",
    ),
    _solver("lcfr", "linear CFR", _FULL, "discounted_cfr.LCFRSolver"),
    *_pair("cfr-br", "CFR-BR", _BR, "CFRBRSolver", "cfr_br.CFRBRSolver"),
    _solver(
        "efr",
        "EFR",
        f"{_FULL} Blind counterfactual deviations, its cheapest set.",
        "efr.EFRSolver",
        deviations_name="blind cf",
    ),
    # Exploration 0.6 is the default of both.
    *_pair(
        "os-mccfr",
        "outcome-sampling MCCFR",
        "Average policy; one iteration is one trajectory for each player. "
        "Exploration 0.6.",
        "OutcomeSamplingMCCFRSolver",
        "outcome_sampling_mccfr.OutcomeSamplingSolver",
        samples=True,
    ),
    *_pair(
        "es-mccfr",
        "external-sampling MCCFR",
        "Average policy; one iteration is one sample for each player: chance's and the "
        "other's actions are drawn, all of its own are followed.",
        "ExternalSamplingMCCFRSolver",
        "external_sampling_mccfr.ExternalSamplingSolver",
        samples=True,
    ),
    _solver(
        "xfp",
        "XFP, fictitious play",
        "Average policy; each iteration computes two exact best responses.",
        "fictitious_play.XFPSolver",
    ),
    bundled(
        "mmd",
        "MMD without magnet (Python)",
        "Average policy of mirror descent with dilated entropy, alpha 0 and step "
        "1 / max |payoff|, for which averages tend to an equilibrium.",
        _mirror_descent,
        meaningful=1_000,
        meaningful_by="magnet off: only averages converge, and OpenSpiel's example on "
        "Kuhn poker does 1,000",
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
