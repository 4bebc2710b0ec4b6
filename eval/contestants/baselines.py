"""Algorithms that OpenSpiel bundles: all adapters by name, three in one call each."""

import time
from typing import NamedTuple

import pyspiel
from open_spiel.python import policy as policy_lib

from ..common.game_instance import fast_game
from . import openspiel_deep, openspiel_search, openspiel_tabular
from .protocol import Entry

# All adapters, one a baseline, by name.
BUNDLED: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        *openspiel_tabular.ENTRIES,
        *openspiel_search.ENTRIES,
        *openspiel_deep.ENTRIES,
    )
}

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


def _table(game: pyspiel.Game, policy: pyspiel.Policy) -> policy_lib.Policy:
    """Asks a C++ policy at every infoset; unvisited ones are uniform."""
    return policy_lib.tabular_policy_from_callable(game, policy.action_probabilities)


def uniform(game: pyspiel.Game) -> Baseline:
    """Equal probabilities for all legal actions."""
    return Baseline("uniform", policy_lib.UniformRandomPolicy(game), 0, 0.0)


def bundled_cfr_plus(game: pyspiel.Game, iterations: int) -> Baseline:
    """`pyspiel.CFRPlusSolver`, its average policy."""
    solver = pyspiel.CFRPlusSolver(fast_game(game))
    started = time.perf_counter()
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    seconds = time.perf_counter() - started
    policy = _table(game, solver.average_policy())
    return Baseline("OpenSpiel CFR+ (C++)", policy, iterations, seconds)


def outcome_sampling(game: pyspiel.Game, seconds: float, seed: int) -> Baseline:
    """`pyspiel.OutcomeSamplingMCCFRSolver` for a time, its average policy."""
    solver = pyspiel.OutcomeSamplingMCCFRSolver(fast_game(game), 0.6, seed)
    started = time.perf_counter()
    iterations = 0
    while time.perf_counter() - started < seconds:
        for _ in range(_SAMPLING_CHUNK):
            solver.run_iteration()
        iterations += _SAMPLING_CHUNK
    spent = time.perf_counter() - started
    policy = _table(game, solver.average_policy())
    return Baseline("OpenSpiel outcome-sampling MCCFR (C++)", policy, iterations, spent)
