"""Search bots and the Q-learner that OpenSpiel bundles.

ISMCTS bots have no NashConv of their own: they are asked at every infoset, which gives
a whole strategy that has one. The Q-learner is no solver either: it learns an
approximate best response, see `_QLearning`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import ismcts, mcts, tabular_qlearner

from spiel_cr.policies import best_responses, conversions

from ..common.game_instance import GameInstance, MissingError, Strategy
from .protocol import (
    Computed,
    ComputingAdapter,
    Entry,
    NumpyDraws,
    SolverAdapter,
    ask_at,
    bundled,
    first_states,
)

# Exploration constant of the searches, as multiple of the largest payoff.
_UCT = 2.0
# With fewer simulations an answer may have no visits to tell.
_LEAST = 8

# From simulations, exploration constant and two seeds to a new bot's `get_policy`.
_MakeBot = Callable[[int, float, Sequence[int]], Callable[[pyspiel.State], Any]]


def _search(instance: GameInstance, seed: int, make_bot: _MakeBot) -> ComputingAdapter:
    """An information-set Monte Carlo tree search, asked anew at every infoset.

    Iterations are simulations for each answer; probabilities are visit counts.
    """
    states = first_states(instance.tree)
    seeds = np.random.SeedSequence(seed)
    uct = _UCT * float(np.abs(instance.tree.histories.utility).max())

    def compute(iterations: int) -> Computed:
        get_policy = make_bot(iterations, uct, seeds.generate_state(2).tolist())

        def answer(state: pyspiel.State, legal: Sequence[int]) -> list[float]:
            given = dict(get_policy(state))
            return [given.get(action, 0.0) for action in legal]

        return Computed(ask_at(states, answer))

    return ComputingAdapter(
        compute, f"asked at {len(states[0]) + len(states[1]):,} infosets"
    )


def _cpp_search(instance: GameInstance, seed: int) -> ComputingAdapter:
    """`pyspiel.ISMCTSBot`."""
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

    def make_bot(simulations: int, uct: float, seeds: Sequence[int]) -> Any:
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
        return functools.partial(_answer_anew, bot, evaluator)

    return _search(instance, seed, make_bot)


def _answer_anew(
    bot: pyspiel.Bot, evaluator: pyspiel.Evaluator, state: pyspiel.State
) -> Any:
    """The bot refers to its evaluator but does not keep it alive: this call does."""
    bot.restart()
    return bot.get_policy(state)


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

    def make_bot(simulations: int, uct: float, seeds: Sequence[int]) -> Any:
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


class _QLearning(SolverAdapter):
    """OpenSpiel's tabular Q-learner as an approximate best response to uniform play.

    A Q-learner needs a fixed opponent, so it is no solver. Here one learner a seat
    learns against an opponent that plays all actions alike; what is judged is the pair
    of greedy strategies. `note` says how much of the exact best responses' gain they
    got, which is what the learner is for.
    """

    def __init__(self, instance: GameInstance, seed: int) -> None:
        self._tree = instance.tree
        self._states = first_states(instance.tree)
        self._draws = NumpyDraws(seed)
        self._random = np.random.default_rng(seed)
        actions = instance.game.num_distinct_actions()
        self._learners = [tabular_qlearner.QLearner(p, actions) for p in range(2)]

    def run(self, iterations: int) -> None:
        with self._draws.installed():
            for _ in range(iterations):
                for player in range(2):
                    self._episode(player)

    def strategy(self) -> Strategy:
        greedy = ask_at(self._states, self._greedy)
        first, second = (self._share(player, greedy) for player in range(2))
        self.note = (
            f"greedy responses to uniform play, which get {first:.0%} and "
            f"{second:.0%} of the exact best responses' gain over it"
        )
        return greedy

    def _greedy(self, state: pyspiel.State, legal: Sequence[int]) -> np.ndarray:
        player = state.current_player()
        values = self._learners[player]._q_values[_key(state, player)]
        row = np.array([values[action] for action in legal])
        return row == row.max()

    def _share(self, player: int, greedy: Strategy) -> float:
        """Of the exact best response's gain over uniform play, the part that is got."""
        form = self._tree.form
        uniform = [conversions.uniform_behaviour(d) for d in form.decisions]
        other = conversions.reach_from_behaviour(
            form.decisions[1 - player], uniform[1 - player]
        )
        base, got, best = (
            float(best_responses.infoset_values(form, player, other, own)[-1])
            for own in (uniform[player], greedy[player], None)
        )
        return (got - base) / (best - base) if best > base else 1.0

    def _episode(self, player: int) -> None:
        state = self._tree.game.new_initial_state()
        learner = self._learners[player]
        while not state.is_terminal():
            if state.is_chance_node():
                actions, weights = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(int(self._random.choice(actions, p=weights)))
            elif state.current_player() != player:
                state.apply_action(int(self._random.choice(state.legal_actions())))
            else:
                key = _key(state, player)
                step = _time_step(player, key, state.legal_actions(), None)
                state.apply_action(int(learner.step(step).action))
        reward = float(state.player_return(player))
        learner.step(_time_step(player, "end", [], reward))


def _key(state: pyspiel.State, player: int) -> str:
    """What the learner is told; it takes an empty string for no state."""
    return f"at {state.information_state_string(player)}"


def _time_step(
    player: int, key: str, legal: Sequence[int], reward: float | None
) -> rl_environment.TimeStep:
    last = reward is not None
    return rl_environment.TimeStep(
        observations={
            "info_state": {player: key},
            "legal_actions": {player: legal},
        },
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
        _SEARCH_HOW,
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
        _QLearning,
        samples=True,
    ),
)
