"""Search bots and the Q-learner that OpenSpiel bundles.

ISMCTS bots have no NashConv of their own: they are asked at every infoset, which gives
a whole strategy that has one. The Q-learner is no solver either: it learns an
approximate best response, see `_q_learning`.
"""

import time
from collections.abc import Callable, Iterable

import numpy as np
import pyspiel
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import ismcts, mcts, tabular_qlearner

from spiel_cr.games.opening import game_checks
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.cpp_judge import Strategy
from spiel_cr.policies import best_responses, conversions

from ..common.game_instance import GameInstance, MissingError
from ..common.plurals import counted
from .protocol import (
    Computed,
    ComputingAdapter,
    Entry,
    Policy,
    SteppingAdapter,
    ask,
    bundled,
)

# Exploration constant of the searches, as multiple of the largest payoff.
_UCT = 2.0
# With fewer simulations an answer may have no visits to tell.
_LEAST = 8

# What a bot tells at a state: pairs of action and probability.
_GetPolicy = Callable[[pyspiel.State], Iterable[tuple[int, float]]]


class _Answers:
    """What a search bot answers where there is a choice, and how long that takes."""

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
    """An information-set Monte Carlo tree search, asked anew at every infoset.

    Iterations are simulations for each answer; probabilities are visit counts.

    Args:
      instance: the game.
      seed: of all bots.
      make_bot: from simulations, exploration constant and two seeds to a new bot.
    """
    seeds = np.random.SeedSequence(seed)
    uct = _UCT * float(np.abs(instance.tree.histories.utility).max())

    def compute(iterations: int) -> Computed:
        bot = make_bot(iterations, uct, seeds.generate_state(2).tolist())
        answers = _Answers(bot)
        strategy = ask(instance.tree, answers)
        count = sum(map(len, instance.tree.infosets))
        return Computed(
            strategy, answers.seconds, note=f"asked at {counted(count, 'infoset')}"
        )

    return ComputingAdapter(compute)


def _cpp_search(instance: GameInstance, seed: int) -> ComputingAdapter:
    """`pyspiel.ISMCTSBot`.

    Not the same in each process: its nodes keep their children in a hash table, whose
    order depends on where the process lies in memory, and draws and ties follow it.
    """
    state = instance.game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    try:
        state.resample_from_infostate(state.current_player(), lambda: 0.5)
    except (pyspiel.SpielError, RuntimeError, TypeError) as error:
        raise MissingError(
            "the C++ bot asks the game for other states of an infoset "
            "(ResampleFromInfostate), which this game does not offer"
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
    """Python's `ISMCTSBot`; other states of an infoset come from the compiled game."""
    histories = instance.tree.histories
    # For each player the histories of each infoset, by its string.
    members: list[dict[str, np.ndarray]] = []
    for player, infosets in enumerate(instance.tree.infosets):
        mine = np.flatnonzero(histories.player == player)
        order = mine[np.argsort(histories.infoset[mine], kind="stable")]
        ends = np.cumsum(np.bincount(histories.infoset[mine]))
        groups = np.split(order, ends[:-1])
        members.append(dict(zip(infosets.keys, groups, strict=True)))

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
            same = members[player][state.information_state_string(player)]
            weights = histories.chance[same]
            chosen = random.choice(same, p=weights / weights.sum())
            return instance.tree.state_at(chosen)

        bot.set_resampler(resample)
        return bot.get_policy

    return _search(instance, seed, make_bot)


def _q_learning(instance: GameInstance, seed: int) -> SteppingAdapter:
    """OpenSpiel's tabular Q-learner as an approximate best response to uniform play.

    A Q-learner needs a fixed opponent, so it is no solver. Here one learner a seat
    learns against an opponent that plays all actions alike; what is judged is the pair
    of greedy strategies. `note` says how much of the exact best responses' gain they
    got, which is what the learner is for.
    """
    learners = _QLearners(instance.game, seed)

    def policy() -> Policy:
        greedy = ask(instance.tree, learners)
        first, second = (_share(instance.tree, p, greedy) for p in range(2))
        adapter.note = (
            f"greedy responses to uniform play, which get {first:.0%} and "
            f"{second:.0%} of the exact best responses' gain over it"
        )
        return learners

    adapter = SteppingAdapter(instance, seed, learners.episodes, policy)
    return adapter


def _share(tree: CompiledGame, player: int, greedy: Strategy) -> float:
    """Of the exact best response's gain over uniform play, the part that is got."""
    form = tree.form
    uniform = [conversions.uniform_behaviour(d) for d in form.decisions]
    other = conversions.reach_from_behaviour(
        form.decisions[1 - player], uniform[1 - player]
    )
    base, got, best = (
        float(best_responses.infoset_values(form, player, other, own)[-1])
        for own in (uniform[player], greedy[player], None)
    )
    return (got - base) / (best - base) if best > base else 1.0


class _QLearners:
    """A learner a seat; the policy is greedy, all of the best actions alike."""

    def __init__(self, game: pyspiel.Game, seed: int) -> None:
        self._game = game
        self._random = np.random.default_rng(seed)
        self._learners = [
            tabular_qlearner.QLearner(player, game.num_distinct_actions())
            for player in range(2)
        ]

    def episodes(self) -> None:
        """One for each learner."""
        for learner in self._learners:
            self._episode(learner)

    def _episode(self, learner: tabular_qlearner.QLearner) -> None:
        state = self._game.new_initial_state()
        player = learner._player_id
        while not state.is_terminal():
            if state.is_chance_node():
                actions, weights = zip(*game_checks.chance_outcomes(state), strict=True)
                action = self._random.choice(actions, p=weights)
            elif state.current_player() != player:
                action = self._random.choice(state.legal_actions())
            else:
                step = _time_step(player, _key(state), state.legal_actions(), None)
                action = learner.step(step).action
            state.apply_action(int(action))
        reward = game_checks.player_return(state, player)
        learner.step(_time_step(player, "end", [], reward))

    def action_probabilities(self, state: pyspiel.State) -> dict[int, float]:
        values = self._learners[state.current_player()]._q_values[_key(state)]
        legal = state.legal_actions()
        best = max(values[action] for action in legal)
        greedy = [action for action in legal if values[action] == best]
        return dict.fromkeys(greedy, 1 / len(greedy))


def _key(state: pyspiel.State) -> str:
    """What the learner is told; it takes an empty string for no state."""
    return f"at {state.information_state_string()}"


def _time_step(
    player: int, key: str, legal: list[int], reward: float | None
) -> rl_environment.TimeStep:
    last = reward is not None
    return rl_environment.TimeStep(
        observations={"info_state": {player: key}, "legal_actions": {player: legal}},
        rewards={player: reward or 0.0},
        discounts={player: 1.0},
        step_type=rl_environment.StepType.LAST if last else rl_environment.StepType.MID,
    )


_SEARCH_HOW = (
    "A search bot has no policy of its own: it is asked at every infoset, anew, and "
    "answers with its visit counts. Iterations are simulations per answer, at "
    f"least {_LEAST}, whatever the budget; each point of the curve is a run from the "
    "beginning."
)

ENTRIES: tuple[Entry, ...] = (
    bundled(
        "ismcts",
        "ISMCTS bot (C++)",
        f"{_SEARCH_HOW} The same seed answers otherwise in another process: the bot "
        "goes through its actions in the order of a hash table, which OpenSpiel seeds "
        "anew in each.",
        _cpp_search,
        way="restarts",
        samples=True,
        least=_LEAST,
    ),
    bundled(
        "ismcts-python",
        "ISMCTS bot (Python)",
        f"{_SEARCH_HOW} States of an infoset are drawn by chance's probabilities.",
        _python_search,
        way="restarts",
        samples=True,
        least=_LEAST,
    ),
    bundled(
        "q-learning",
        "Q-learning responses (Python)",
        "No solver: greedy strategies of two tabular Q-learners, each an approximate "
        "best response to uniform play. One iteration is one episode for each.",
        _q_learning,
        samples=True,
    ),
)
