"""Comparing: what else OpenSpiel bundles: fictitious play, mirror descent, LP, search.

Fictitious play, magnetic mirror descent and the bundled linear program give policies as
solvers do. ISMCTS bots have no NashConv of their own: they are asked at every infoset,
which gives a whole strategy that has one. The Q-learner is no solver either: it learns
an approximate best response, see `QLearning`.
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import ismcts, tabular_qlearner

from spiel_cr.policies import best_responses
from spiel_cr.policies import conversions as policy_lib

from ..common.game_instance import GameInstance, MissingError, Strategy
from .openspiel_tabular import Solver
from .protocol import Entry, NumpyDraws, ask, states

# Sequence-form LP of OpenSpiel builds dense matrices of this many entries at most.
_MOST_ENTRIES = 50_000_000
# Exploration constant of the searches, as multiple of the largest payoff.
_UCT = 2.0


class _MirrorDescent(Solver):
    """Magnetic mirror descent (Sokota et al. 2023) without magnet: average policy.

    With alpha = 0 averages tend to an equilibrium for steps up to 1 / max |A|, A being
    the payoffs in sequence form.
    """

    def __init__(self, instance: GameInstance) -> None:
        module = importlib.import_module("open_spiel.python.algorithms.mmd_dilated")
        first = module.MMDDilatedEnt(instance.fast, alpha=0.0, stepsize=1.0)
        first.stepsize = 1.0 / float(np.abs(first.payoff_mat).max())
        super().__init__(instance, first, "update_sequences")

    def policy(self) -> openspiel_policy.Policy:
        return self._solver.get_avg_policies()


def _fictitious_play(instance: GameInstance, seed: int) -> Solver:
    module = importlib.import_module("open_spiel.python.algorithms.fictitious_play")
    return Solver(instance, module.XFPSolver(instance.fast), "iteration")


class _LinearProgram:
    compile_seconds = 0.0
    note = ""

    def __init__(self, instance: GameInstance) -> None:
        name = "open_spiel.python.algorithms.sequence_form_lp"
        self._module = importlib.import_module(name)
        rows, columns = (i.decisions.num_sequences for i in instance.tree.infosets)
        if rows * columns > _MOST_ENTRIES:
            raise MissingError(
                f"its matrices are dense, {rows:,} x {columns:,} entries here"
            )
        self._arena = instance
        self._policies: list[Any] = []

    def run(self, iterations: int) -> None:
        self._policies = list(self._module.solve_zero_sum_game(self._arena.fast)[2:])

    def strategy(self) -> Strategy:
        first, second = (ask(self._arena.tree, policy) for policy in self._policies)
        return first[0], second[1]


class _Search:
    """An information-set Monte Carlo tree search, asked anew at every infoset.

    Iterations are simulations for each answer; probabilities are visit counts.
    """

    compile_seconds = 0.0

    def __init__(self, instance: GameInstance, seed: int) -> None:
        self._tree = instance.tree
        self._states = [states(instance.tree, player) for player in range(2)]
        self._answers: list[np.ndarray] = []
        self._seeds = np.random.SeedSequence(seed)
        count = sum(map(len, self._states))
        self.note = f"asked at {count:,} infosets"
        histories = instance.tree.histories
        self._uct = _UCT * float(np.abs(histories.utility).max())

    def answers(self, simulations: int) -> Callable[[pyspiel.State], Any]:
        """A newly made bot's `get_policy`."""
        raise NotImplementedError

    def run(self, iterations: int) -> None:
        answer_at = self.answers(iterations)
        self._answers = []
        for player, infosets in enumerate(self._tree.infosets):
            first = infosets.decisions.first_sequence
            behaviour = policy_lib.uniform_behaviour(infosets.decisions)
            for infoset, state in enumerate(self._states[player]):
                legal = state.legal_actions()
                if len(legal) == 1:
                    continue
                given = dict(answer_at(state))
                begin = first[infoset]
                row = [given.get(action, 0.0) for action in legal]
                behaviour[begin : begin + len(legal)] = np.array(row) / sum(row)
            self._answers.append(behaviour)

    def strategy(self) -> Strategy:
        return self._answers[0], self._answers[1]


class _FastSearch(_Search):
    """`pyspiel.ISMCTSBot`."""

    def __init__(self, instance: GameInstance, seed: int) -> None:
        super().__init__(instance, seed)
        state = self._states[0][0]
        try:
            state.resample_from_infostate(state.current_player(), lambda: 0.5)
        except (pyspiel.SpielError, RuntimeError, TypeError) as error:
            raise MissingError(
                "the C++ bot asks the game for other states of an infoset "
                "(ResampleFromInfostate), which this game does not offer"
            ) from error

    def answers(self, simulations: int) -> Callable[[pyspiel.State], Any]:
        entropy = self._seeds.generate_state(2) >> 1
        # Referred to by the bot, which does not keep it alive.
        self._evaluator = pyspiel.RandomRolloutEvaluator(1, int(entropy[0]))
        bot = pyspiel.ISMCTSBot(
            int(entropy[1]),
            self._evaluator,
            self._uct,
            simulations,
            -1,
            pyspiel.ISMCTSFinalPolicyType.NORMALIZED_VISIT_COUNT,
        )

        def answer(state: pyspiel.State) -> Any:
            bot.restart()
            return bot.get_policy(state)

        return answer


class _SlowSearch(_Search):
    """Python's `ISMCTSBot`; other states of an infoset come from the compiled game."""

    def __init__(self, instance: GameInstance, seed: int) -> None:
        super().__init__(instance, seed)
        histories = instance.tree.histories
        self._members: list[list[np.ndarray]] = []
        self._lookup = [
            {key: number for number, key in enumerate(infosets.keys)}
            for infosets in instance.tree.infosets
        ]
        for player, infosets in enumerate(instance.tree.infosets):
            mine = np.flatnonzero(histories.player == player)
            order = mine[np.argsort(histories.infoset[mine], kind="stable")]
            ends = np.cumsum(np.bincount(histories.infoset[mine]))
            assert len(ends) == len(infosets)
            self._members.append(np.split(order, ends[:-1]))

    def answers(self, simulations: int) -> Callable[[pyspiel.State], Any]:
        first, second = self._seeds.generate_state(2)
        module: Any = importlib.import_module("open_spiel.python.algorithms.mcts")
        random = np.random.RandomState(first)
        bot = ismcts.ISMCTSBot(
            self._tree.game,
            module.RandomRolloutEvaluator(1, np.random.RandomState(second)),
            self._uct,
            simulations,
            random_state=random,
            final_policy_type=ismcts.ISMCTSFinalPolicyType.NORMALIZED_VISITED_COUNT,
        )
        histories = self._tree.histories

        def resample(state: pyspiel.State, player: int) -> pyspiel.State:
            key = state.information_state_string(player)
            members = self._members[player][self._lookup[player][key]]
            weights = histories.chance[members]
            chosen = random.choice(members, p=weights / weights.sum())
            return self._tree.state_at(chosen)

        bot.set_resampler(resample)
        return bot.get_policy


class QLearning:
    """OpenSpiel's tabular Q-learner as an approximate best response to uniform play.

    A Q-learner needs a fixed opponent, so it is no solver. Here one learner a seat
    learns against an opponent that plays all actions alike; what is judged is the pair
    of greedy strategies. `note` says how much of the exact best responses' gain they
    got, which is what the learner is for.
    """

    compile_seconds = 0.0
    note = ""

    def __init__(self, instance: GameInstance, seed: int) -> None:
        self._tree = instance.tree
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
        found = []
        for player, infosets in enumerate(self._tree.infosets):
            first = infosets.decisions.first_sequence
            behaviour = policy_lib.uniform_behaviour(infosets.decisions)
            values = self._learners[player]._q_values
            for infoset, key in enumerate(infosets.keys):
                begin = int(first[infoset])
                end = begin + int(infosets.decisions.num_actions[infoset])
                actions = infosets.actions[begin - 1 : end - 1]
                row = np.array([values[_seen(key)][int(a)] for a in actions])
                best = row == row.max()
                behaviour[begin:end] = best / best.sum()
            found.append(behaviour)
        self.note = self._share(found)
        return found[0], found[1]

    def _share(self, found: list[np.ndarray]) -> str:
        form = self._tree.form
        uniform = [policy_lib.uniform_behaviour(d) for d in form.decisions]
        shares = []
        for player in range(2):
            other = policy_lib.reach_from_behaviour(
                form.decisions[1 - player], uniform[1 - player]
            )
            base, got, best = (
                float(best_responses.infoset_values(form, player, other, own)[-1])
                for own in (uniform[player], found[player], None)
            )
            shares.append((got - base) / (best - base) if best > base else 1.0)
        return (
            f"greedy responses to uniform play, which get {shares[0]:.0%} and "
            f"{shares[1]:.0%} of the exact best responses' gain over it"
        )

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
                key = _seen(state.information_state_string(player))
                step = _time_step(player, key, state.legal_actions(), None)
                state.apply_action(int(learner.step(step).action))
        reward = float(state.player_return(player))
        learner.step(_time_step(player, "end", [], reward))


def _seen(key: str) -> str:
    """What the learner is told; it takes an empty string for no state."""
    return f"at {key}"


def _time_step(
    player: int, key: str, legal: list[int], reward: float | None
) -> rl_environment.TimeStep:
    last = reward is not None
    kind = rl_environment.StepType.LAST if last else rl_environment.StepType.MID
    return rl_environment.TimeStep(
        observations={
            "info_state": {player: key},
            "legal_actions": {player: legal},
        },
        rewards={player: reward or 0.0},
        discounts={player: 1.0},
        step_type=kind,
    )


# With fewer simulations an answer may have no visits to tell.
_LEAST = 8
_SEARCH_HOW = (
    "A search bot has no policy of its own: it is asked at every infoset, anew, and "
    "answers with its visit counts. Iterations are simulations an answer, at "
    f"least {_LEAST}, whatever the budget; each point of the curve is a run from the "
    "beginning."
)

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "openspiel-xfp",
        "OpenSpiel XFP, fictitious play (Python)",
        False,
        "Average policy; each iteration computes two exact best responses.",
        _fictitious_play,
    ),
    Entry(
        "openspiel-mmd",
        "OpenSpiel MMD (Python)",
        False,
        "Average policy of mirror descent with dilated entropy, alpha 0 and step "
        "1 / max |payoff|, for which averages tend to an equilibrium.",
        lambda instance, seed: _MirrorDescent(instance),
    ),
    Entry(
        "openspiel-lp",
        "OpenSpiel sequence-form LP (Python)",
        False,
        "Exact equilibrium by dense linear programs (ECOS, through cvxpy).",
        lambda instance, seed: _LinearProgram(instance),
        way="once",
        modules=("cvxpy", "ecos"),
        extra="baselines",
    ),
    Entry(
        "openspiel-ismcts",
        "OpenSpiel ISMCTS bot (C++)",
        False,
        _SEARCH_HOW,
        _FastSearch,
        way="restarts",
        samples=True,
        least=_LEAST,
    ),
    Entry(
        "openspiel-ismcts-python",
        "OpenSpiel ISMCTS bot (Python)",
        False,
        f"{_SEARCH_HOW} States of an infoset are drawn by chance's probabilities.",
        _SlowSearch,
        way="restarts",
        samples=True,
        least=_LEAST,
    ),
    Entry(
        "openspiel-q-learning",
        "OpenSpiel Q-learning responses (Python)",
        False,
        "No solver: greedy strategies of two tabular Q-learners, each an approximate "
        "best response to uniform play. One iteration is one episode for each.",
        QLearning,
        samples=True,
    ),
)
