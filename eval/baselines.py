"""Algorithms that OpenSpiel bundles, behind one signature: a game in, a policy out.

Each adapter gives its peer the best conditions that OpenSpiel offers: the C++ solver
where there is one, and for Python games the cached tree, which makes C++ algorithms on
them about a hundred times faster.
"""

import time
from typing import NamedTuple

import pyspiel
from open_spiel.python import policy as policy_lib

__all__ = ["Baseline", "bundled_cfr_plus", "outcome_sampling", "uniform"]

# Iterations of outcome sampling between two looks at the clock.
_SAMPLING_CHUNK = 1000


class Baseline(NamedTuple):
    """What a bundled algorithm gave.

    Attributes:
      name: for tables.
      policy: for both players.
      iterations: done.
      seconds: spent iterating.
    """

    name: str
    policy: policy_lib.Policy
    iterations: int
    seconds: float


def _fast(game: pyspiel.Game) -> pyspiel.Game:
    """The same game in C++ if it is a Python one."""
    if game.get_type().short_name.startswith("python_"):
        return pyspiel.convert_to_cached_tree(game)
    return game


def _table(game: pyspiel.Game, policy: pyspiel.Policy) -> policy_lib.Policy:
    """Asks a C++ policy at every infoset; unvisited ones are uniform."""
    return policy_lib.tabular_policy_from_callable(game, policy.action_probabilities)


def uniform(game: pyspiel.Game) -> Baseline:
    """Equal probabilities for all legal actions."""
    return Baseline("uniform", policy_lib.UniformRandomPolicy(game), 0, 0.0)


def bundled_cfr_plus(game: pyspiel.Game, iterations: int) -> Baseline:
    """`pyspiel.CFRPlusSolver`, its average policy."""
    solver = pyspiel.CFRPlusSolver(_fast(game))
    started = time.perf_counter()
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    seconds = time.perf_counter() - started
    policy = _table(game, solver.average_policy())
    return Baseline("OpenSpiel CFR+ (C++)", policy, iterations, seconds)


def outcome_sampling(game: pyspiel.Game, seconds: float, seed: int) -> Baseline:
    """`pyspiel.OutcomeSamplingMCCFRSolver` for a time, its average policy."""
    solver = pyspiel.OutcomeSamplingMCCFRSolver(_fast(game), 0.6, seed)
    started = time.perf_counter()
    iterations = 0
    while time.perf_counter() - started < seconds:
        for _ in range(_SAMPLING_CHUNK):
            solver.run_iteration()
        iterations += _SAMPLING_CHUNK
    spent = time.perf_counter() - started
    policy = _table(game, solver.average_policy())
    return Baseline("OpenSpiel outcome-sampling MCCFR (C++)", policy, iterations, spent)
