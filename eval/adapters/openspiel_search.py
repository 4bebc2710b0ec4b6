"""Search bots that OpenSpiel bundles.

ISMCTS bots have no fixed strategy. They are queried at every infoset, which gives a
complete strategy with a NashConv.
"""

import time
from collections.abc import Callable, Iterable

import numpy as np
import pyspiel
from open_spiel.python.algorithms import ismcts, mcts

from spiel_cr.policies.rollouts import first_decision

from ..common.game_instance import GameInstance, MissingError
from ..common.infosets import members
from ..common.plurals import counted
from .protocol import Computed, ComputingAdapter, Entry, ask, bundled

# Exploration constant of the searches, as multiple of the largest payoff.
_UCT = 2.0
# With fewer simulations there may be no visit counts.
_LEAST = 8

# Function from a state to pairs of action and probability.
_GetPolicy = Callable[[pyspiel.State], Iterable[tuple[int, float]]]


class _Answers:
    """Probabilities of a search bot, and the total time of its searches."""

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

    Iterations are simulations for each answer; probabilities are visit counts.

    Args:
      instance: The game.
      seed: Seed of all bots.
      make_bot: Function from the number of simulations, the exploration constant and
        two seeds to a new bot.
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
    """Return an adapter of `pyspiel.ISMCTSBot`.

    Results differ between processes: its nodes keep children in a hash table whose
    order depends on memory addresses, and random draws and ties follow this order.
    """
    state = first_decision(instance.game)
    try:
        state.resample_from_infostate(state.current_player(), lambda: 0.5)
    except (pyspiel.SpielError, RuntimeError, TypeError) as error:
        raise MissingError(
            "the C++ bot samples other states of an infoset "
            "(ResampleFromInfostate), which this game does not support"
        ) from error

    def make_bot(simulations: int, uct: float, seeds: list[int]) -> _GetPolicy:
        first, second = (int(seed) >> 1 for seed in seeds)
        evaluator = pyspiel.RandomRolloutEvaluator(1, first)
        bot = pyspiel.ISMCTSBot(
            second,
            evaluator,
            uct,
            simulations,
            -1,
            pyspiel.ISMCTSFinalPolicyType.NORMALIZED_VISIT_COUNT,
        )

        def answer_anew(state: pyspiel.State) -> Iterable[tuple[int, float]]:
            # The bot refers to its evaluator but does not keep it alive.
            assert evaluator is not None
            bot.restart()
            return bot.get_policy(state)

        return answer_anew

    return _search(instance, seed, make_bot)


def _python_search(instance: GameInstance, seed: int) -> ComputingAdapter:
    """Return an adapter of the Python `ISMCTSBot`.

    Other states of an infoset are sampled from the game tree.
    """
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


_SEARCH_HOW = (
    "A search bot has no fixed policy: it is restarted and queried at every infoset; "
    "probabilities are visit counts. Iterations are simulations per query, at "
    f"least {_LEAST}, regardless of the budget; each point of the curve is a run from "
    "scratch."
)

ENTRIES: tuple[Entry, ...] = (
    bundled(
        "ismcts",
        "ISMCTS bot (C++)",
        f"{_SEARCH_HOW} The same seed gives different results in another process: the "
        "bot orders actions by a hash table, which OpenSpiel seeds differently in each "
        "process.",
        _cpp_search,
        way="restarts",
        samples=True,
        least=_LEAST,
    ),
    bundled(
        "ismcts-python",
        "ISMCTS bot (Python)",
        f"{_SEARCH_HOW} States of an infoset are sampled by chance probabilities.",
        _python_search,
        way="restarts",
        samples=True,
        least=_LEAST,
    ),
)
