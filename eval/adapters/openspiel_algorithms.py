"""Adapters of the algorithms that OpenSpiel bundles, in C++, Python and JAX.

The catalogue lists them. Each runs under the best conditions that OpenSpiel offers: for
Python games all solvers run on the cached tree, and functions are compiled before the
clock starts.
"""

import functools
import importlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from open_spiel.python.algorithms import ismcts, mcts

from spiel_cr.games.histories import after_deals

from ..common.game_instance import GameInstance, MissingError
from ..common.infosets import members
from ..common.plurals import counted
from .protocol import (
    CATALOGUE,
    Computed,
    ComputingAdapter,
    Entry,
    Policy,
    SteppingAdapter,
    ask,
)

# OpenSpiel's sequence-form LP builds dense matrices, here of at most this many entries.
_MOST_ENTRIES = 50_000_000
# Exploration constant of the searches, as a multiple of the largest payoff.
_UCT = 2.0
# Networks are small, for games that have an exact NashConv.
_LAYERS = (64, 64)
_RESERVOIR = 100_000

# A function from a state to pairs of action and probability.
_GetPolicy = Callable[[pyspiel.State], Iterable[tuple[int, float]]]


def _module(name: str) -> Any:
    return importlib.import_module(f"open_spiel.python.{name}")


def _tabular(
    instance: GameInstance,
    seed: int,
    *,
    solver: str,
    step: str,
    samples: bool,
    arguments: dict[str, Any],
) -> SteppingAdapter:
    """Return a solver with a method `step` for an iteration, and `average_policy`.

    C++ classes that sample are given the seed, too; Python classes draw from NumPy's
    global generator.
    """
    module, _, class_name = solver.rpartition(".")
    in_cpp = module == "pyspiel"
    if in_cpp and samples:
        # C++ accepts 32 bits with a sign.
        arguments = {"seed": int(np.uint32(seed).view(np.int32)), **arguments}
    home = pyspiel if in_cpp else _module(f"algorithms.{module}")
    solver_object = getattr(home, class_name)(instance.fast, **arguments)
    average = solver_object.average_policy
    return SteppingAdapter(instance, seed, getattr(solver_object, step), average)


def _jax_cfr(instance: GameInstance, seed: int) -> SteppingAdapter:
    """Return OpenSpiel's JaxCFR, in single precision."""
    solver = _module("jax.cfr.jax_cfr").JaxCFR(
        instance.fast,
        regret_matching_plus=True,
        alternating_updates=True,
        linear_averaging=True,
    )

    def begin_again() -> None:
        solver.regrets = [jnp.zeros_like(r) for r in solver.regrets]
        solver.averages = [jnp.zeros_like(a) for a in solver.averages]
        solver.timestep = 1

    def policy() -> Policy:
        # Infosets of reach 0 have probabilities 0/0.
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
    """Return magnetic mirror descent (Sokota et al. 2023) without magnet.

    With alpha = 0, averages converge to an equilibrium for steps up to 1 / max |A|,
    where A is the payoff matrix of the sequence form.
    """
    solver = _module("algorithms.mmd_dilated").MMDDilatedEnt(
        instance.fast, alpha=0.0, stepsize=1.0
    )
    solver.stepsize = 1.0 / float(np.abs(solver.payoff_mat).max())
    return SteppingAdapter(
        instance, seed, solver.update_sequences, solver.get_avg_policies
    )


def _linear_program(instance: GameInstance, seed: int) -> ComputingAdapter:
    module = _module("algorithms.sequence_form_lp")
    rows, columns = (i.decisions.num_sequences for i in instance.tree.infosets)
    if rows * columns > _MOST_ENTRIES:
        raise MissingError(
            f"its matrices are dense, and would have {rows:,} x {columns:,} entries"
        )

    def compute(iterations: int) -> Computed:
        *_, first, second = module.solve_zero_sum_game(instance.fast)
        return Computed((ask(instance.tree, first)[0], ask(instance.tree, second)[1]))

    return ComputingAdapter(compute)


class _Answers:
    """The answers of a search bot at states with a choice, and their time."""

    def __init__(self, get_policy: _GetPolicy) -> None:
        self._get_policy = get_policy
        self.seconds = 0.0

    def action_probabilities(self, state: pyspiel.State) -> dict[int, float]:
        legal = state.legal_actions()
        if len(legal) == 1:
            return {legal[0]: 1.0}
        started = time.perf_counter()
        answer = dict(self._get_policy(state))
        self.seconds += time.perf_counter() - started
        return answer


def _search(
    instance: GameInstance,
    seed: int,
    make_bot: Callable[[int, float, list[int]], _GetPolicy],
) -> ComputingAdapter:
    """Return an adapter that runs information-set MCTS from scratch at every infoset.

    Args:
      instance: Game.
      seed: Seed of all bots.
      make_bot: Function from the number of simulations, the exploration constant and
        two seeds to the policy of a new bot.
    """
    seeds = np.random.SeedSequence(seed)
    uct = _UCT * float(np.abs(instance.tree.histories.utility).max())

    def compute(iterations: int) -> Computed:
        bot = make_bot(iterations, uct, seeds.generate_state(2).tolist())
        answers = _Answers(bot)
        strategy = ask(instance.tree, answers)
        count = sum(map(len, instance.tree.infosets))
        return Computed(
            strategy, answers.seconds, note=f"queried at {counted(count, 'infoset')}"
        )

    return ComputingAdapter(compute)


def _cpp_search(instance: GameInstance, seed: int) -> ComputingAdapter:
    """Return `pyspiel.ISMCTSBot`, whose answers depend on the process.

    Its nodes keep their children in a hash table, whose order depends on addresses in
    memory, and draws and ties follow that order.
    """
    state = after_deals(instance.game.new_initial_state())
    try:
        state.resample_from_infostate(state.current_player(), lambda: 0.5)
    except (pyspiel.SpielError, RuntimeError, TypeError) as error:
        raise MissingError(
            "the C++ bot needs other states of an infoset (ResampleFromInfostate), "
            "which this game does not offer"
        ) from error

    def make_bot(simulations: int, uct: float, seeds: list[int]) -> _GetPolicy:
        first, second = (int(seed) >> 1 for seed in seeds)
        evaluator = pyspiel.RandomRolloutEvaluator(1, first)
        final = pyspiel.ISMCTSFinalPolicyType.NORMALIZED_VISIT_COUNT
        bot = pyspiel.ISMCTSBot(second, evaluator, uct, simulations, -1, final)

        def answer(state: pyspiel.State) -> Iterable[tuple[int, float]]:
            # The bot refers to its evaluator but does not keep it alive.
            assert evaluator is not None
            bot.restart()
            return bot.get_policy(state)

        return answer

    return _search(instance, seed, make_bot)


def _python_search(instance: GameInstance, seed: int) -> ComputingAdapter:
    """Return Python's `ISMCTSBot`; states of an infoset come from the game tree."""
    same = [members(instance.tree, player) for player in range(2)]

    def make_bot(simulations: int, uct: float, seeds: list[int]) -> _GetPolicy:
        random = np.random.RandomState(seeds[0])
        bot = ismcts.ISMCTSBot(
            instance.game,
            mcts.RandomRolloutEvaluator(1, np.random.RandomState(seeds[1])),
            uct,
            simulations,
            random_state=random,
            final_policy_type=ismcts.ISMCTSFinalPolicyType.NORMALIZED_VISITED_COUNT,
        )

        def resample(state: pyspiel.State, player: int) -> pyspiel.State:
            alike = same[player][state.information_state_string(player)]
            weights = instance.tree.histories.chance[alike]
            chosen = random.choice(alike, p=weights / weights.sum())
            return instance.tree.state_at(chosen)

        bot.set_resampler(resample)
        return bot.get_policy

    return _search(instance, seed, make_bot)


def _deep_cfr(instance: GameInstance, seed: int) -> SteppingAdapter:
    """Return deep CFR (Brown et al. 2019), which compiles functions for each solver.

    The solver runs for a while, and is then reset except for its compiled functions.
    """
    if not instance.game.get_type().provides_information_state_tensor:
        raise MissingError("the game has no information_state_tensor for its networks")
    module = _module("jax.deep_cfr")

    def make() -> Any:
        return module.DeepCFRSolver(
            instance.game,
            policy_network_layers=_LAYERS,
            advantage_network_layers=_LAYERS,
            num_iterations=1,
            num_traversals=20,
            learning_rate=1e-3,
            batch_size_advantage=128,
            batch_size_strategy=128,
            memory_capacity=_RESERVOIR,
            advantage_network_train_steps=200,
            seed=seed,
        )

    def policy() -> Policy:
        solver._cached_policy.clear()
        return solver

    def begin_again() -> None:
        nnx: Any = importlib.import_module("flax.nnx")
        fresh = make()
        # Functions are compiled for these networks, whose first weights are restored.
        networks = ("_advantage_networks", "_advantage_opt")
        policies = ("_policy_network", "_policy_opt")
        for names in (networks, policies):
            used_ones, fresh_ones = (
                [getattr(one, name) for name in names] for one in (solver, fresh)
            )
            nnx.update(used_ones, nnx.state(fresh_ones))
        kept = {*networks, *policies, "_advantage_graphdefs", "_policy_graphdef"}
        for name, value in vars(fresh).items():
            if name not in kept and not name.startswith("_jittable"):
                setattr(solver, name, value)

    solver = make()
    return SteppingAdapter(
        instance,
        seed,
        solver.solve,
        policy,
        note=f"networks {_LAYERS}",
        begin_again=begin_again,
    )


# Adapters of the entries that are not described by a class alone.
_MAKERS = {
    "cfr+-jax": _jax_cfr,
    "mmd": _mirror_descent,
    "lp": _linear_program,
    "ismcts": _cpp_search,
    "ismcts-python": _python_search,
    "deep-cfr": _deep_cfr,
}


def _entry(
    *,
    name: str,
    title: str,
    how: str,
    solver: str = "",
    step: str = "evaluate_and_update_policy",
    arguments: dict[str, Any] | None = None,
    modules: Iterable[str] = (),
    **options: Any,
) -> Entry:
    """Return the entry of a row of the catalogue."""
    make: Any = _MAKERS.get(name)
    if solver:
        settings: Any = {"solver": solver, "step": step, "arguments": arguments or {}}
        samples = options.get("samples", False)
        make = functools.partial(_tabular, **settings, samples=samples)
    options["modules"] = tuple(modules)
    return Entry(f"openspiel-{name}", f"OpenSpiel {title}", False, how, make, **options)


# Algorithms that OpenSpiel bundles, by name.
BUNDLED: dict[str, Entry] = {
    entry.name: entry for entry in (_entry(**row) for row in CATALOGUE["algorithm"])
}
