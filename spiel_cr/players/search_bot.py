"""An OpenSpiel bot that searches by update equivalence.

At each decision the bot takes one mirror step from its blueprint, see
`resolving.update_equivalence`. The step needs a belief and rollouts under the
blueprint, and the probability of the player's information under uniform play. It needs
no public states, so the bot also plays games with hidden turns. Matches pass the true
state of the game to bots. This bot uses only its player's information and actions.
"""

import dataclasses
import math
import time
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import draws
from spiel_cr.common.checks import COUNT, check_number, check_settings
from spiel_cr.common.messages import announce
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.state_source import StateSource
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.policies.array_queries import rules_for
from spiel_cr.policies.beliefs.array_belief import ArrayBelief
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs, distribution_of
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.policies.rollouts import generator_at
from spiel_cr.resolving import update_equivalence
from spiel_cr.resolving.clock import Clock, Statistics, check_budget
from spiel_cr.resolving.leaves.rollout_values import Rollouts
from spiel_cr.resolving.lookahead.blueprint import blueprint_of, check_blueprint
from spiel_cr.solvers.policy_files import load_policy

# Approximate number of histories in a batch. With a time limit: initial number of
# simulations and largest growth, because the time of few predicts little.
_AT_ONCE, _FIRST, _GROWTH = 1 << 16, 4, 8
# Number of rollouts before the first match, which measure their time.
_PILOTS = 8
# Factor by which fewer histories estimate the probability under uniform play.
_FEWER = 4
# Share of the remaining time that is planned for a step.
_CAUTION = 0.5


@dataclasses.dataclass(frozen=True)
class SearchBotConfig:
    """Settings of a `SearchBot`.

    Attributes:
      blueprint: Strategy of both players in the full game: an OpenSpiel policy or the
        path of a policy file. If None, the bot samples one when it is made, without
        building the game tree.
      simulations: Number of simulations per decision; with a time limit, the largest
        number. A simulation samples a history from the belief and plays it to its end
        after each action.
      move_ms: Milliseconds per move; None for no time limit.
      init_ms: Milliseconds for sampling a blueprint; None for the time of ten moves.
      eta: Step size if the values are exact, and the opponent's blueprint reaches the
        decision as often as uniform play.
      particles: Largest number of histories in a belief; a quarter of it is used for
        uniform play.
      blueprint_iterations: Number of sampled batches for a blueprint without a time
        limit.
    """

    blueprint: str | openspiel_policy.Policy | None = None
    simulations: int | None = None
    move_ms: float | None = None
    init_ms: float | None = None
    eta: float = 1.0
    particles: int = 1000
    blueprint_iterations: int = 500

    def __post_init__(self) -> None:
        check_settings(self, {"particles blueprint_iterations": COUNT})
        times = self.move_ms, self.init_ms
        check_budget("searching", "simulations", self.simulations, *times)
        check_number(self.eta, "eta", "[0, inf)", remedy="0 plays the blueprint")
        check_blueprint(self.blueprint)


class _Belief(NamedTuple):
    """Histories at a decision.

    Attributes:
      source: Simulator of the histories.
      states: States [n, ...] of the source.
      weight: Probabilities of the histories, float64 [n].
      trust: Factor of the step size, from 0 to 1 (range-mismatch damping).
      random: Random numbers of this decision.
      complete: Whether no history was dropped.
    """

    source: RulesSource | StateSource
    states: np.ndarray
    weight: np.ndarray
    trust: float
    random: np.random.Generator
    complete: bool


class SearchBot(PolicyPlayer):
    """A bot that plays one mirror step from its blueprint at each decision.

    Answers depend on the player's information and on the seed alone, and with a time
    limit on the time. They do not depend on earlier queries.

    Attributes:
      blueprint: The blueprint of both players.
      step_scale: Factor of the size of the last step, from 0 to 1.
    """

    def __init__(
        self, game: Game, player: int, config: SearchBotConfig, *, seed: int = 0
    ) -> None:
        """Load the blueprint, or sample one.

        Args:
          game: OpenSpiel game string, game, or game tree.
          player: The player, 0 or 1.
          config: Settings of the search.
          seed: Seed for all random choices.

        Raises:
          OSError, CorruptFileError: If the blueprint's file cannot be read.
          ValueError: If the game, player or seed is invalid, or the blueprint belongs
            to another game.
        """
        super().__init__(player, seed=seed)
        self._config, self._seed = config, seed
        self._clock = Clock(config.move_ms, config.simulations)
        announce(f"player {player}: the blueprint")
        self.blueprint = self._make_blueprint(game)
        game = open_game(game).game
        self._scale = (1 - 2 * player) / update_equivalence.largest_utility(game)
        self._rollouts = Rollouts(self.blueprint, 1, 1, seed)
        rules = rules_for(game, self.blueprint)
        # Beliefs under the blueprint and uniform play, on arrays if possible.
        uniform, self._source = openspiel_policy.UniformRandomPolicy(game), None
        few = math.ceil(config.particles / _FEWER)
        policies = (self.blueprint, config.particles), (uniform, few)
        if rules is None:
            self._posteriors = [
                StatePosterior(
                    game, player, p, max_histories=most, particles=most, seed=seed
                )
                for p, most in policies
            ]
        else:
            self._source = RulesSource(game, rules)
            self._beliefs = [
                ArrayBelief(game, rules, player, p, most=most, seed=seed)
                for p, most in policies
            ]
        self.step_scale = 0.0
        if config.move_ms is not None:
            self._warm_up(game, rules, config.move_ms / 1000)

    def _warm_up(
        self, game: pyspiel.Game, rules: BatchedRules | None, seconds: float
    ) -> None:
        """Measure the time of rollouts and compile functions, for a time limit."""
        announce(f"player {self._player}: warming up")
        if (compile_for := getattr(self.blueprint, "compile_for", None)) is not None:
            # An ensemble is queried for all decisions of the player in a match.
            most = _AT_ONCE if rules is not None else game.max_game_length()
            compile_for(min(most, _AT_ONCE), seconds)
        if rules is None:
            first = np.array([game.new_initial_state()] * _PILOTS, object)
        else:
            first = np.repeat(rules.new_initial_states(), _PILOTS, axis=0)
        group = np.arange(len(first))
        self._rollouts.play(rules, first, self._player, group, math.inf)

    def _make_blueprint(self, game: Game) -> openspiel_policy.Policy:
        config, seconds = self._config, None
        if isinstance(config.blueprint, str):
            return load_policy(config.blueprint, game)
        if (end := self._clock.init_deadline(config.init_ms)) is not None:
            seconds = end - time.perf_counter()
        return blueprint_of(
            open_game(game).game,
            config.blueprint,
            config.blueprint_iterations,
            seconds,
            self._seed,
        )

    @property
    def statistics(self) -> Statistics:
        """Counts and times since the bot was made; iterations are simulations."""
        return self._clock.statistics

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        actions = sorted(state.legal_actions())
        with self._clock.move():
            answer = self.blueprint.action_probabilities(state, self._player)
            probabilities = np.array([answer.get(action, 0.0) for action in actions])
            if np.count_nonzero(probabilities) > 1:
                probabilities = self._step(probabilities, self._believed(state))
        return list(zip(actions, probabilities.tolist(), strict=True))

    def beliefs(self, state: pyspiel.State) -> BotBeliefs:
        """Return the opponent's range at a decision, by the blueprint.

        The bot uses no public states and solves no subgames, so the other fields are
        None.

        Args:
          state: A state at which the bot acts.

        Raises:
          ValueError: If the bot's player does not act.
        """
        self.check_turn(state)
        belief = self._believed(state)
        if not len(belief.states):
            return BotBeliefs(self._player, sampled=True)
        labels = belief.source.strings(belief.states, 1 - self._player)
        probabilities = distribution_of(labels, belief.weight)
        return BotBeliefs(self._player, probabilities, sampled=not belief.complete)

    def _step(self, probabilities: np.ndarray, belief: _Belief) -> np.ndarray:
        """Return the mirror step from the blueprint's probabilities, float64 [A]."""
        self.step_scale = 0.0
        if not len(belief.states) or not belief.trust:
            return probabilities
        random = belief.random
        sums, done = np.zeros((2, len(probabilities))), 0
        deadline = self._clock.deadline()
        most = self._config.simulations or 2**31 - 1
        start = time.perf_counter()
        count = _AT_ONCE // len(probabilities) if deadline is None else _FIRST
        while done < most:
            count = min(count, most - done, max(1, _AT_ONCE // len(probabilities)))
            chosen = draws.systematic(belief.weight, count, random.random())
            if deadline is not None:
                # Shuffle, because there may be time for the first histories only.
                chosen = random.permutation(chosen)
            drawn = belief._replace(states=belief.states[chosen])
            values = self._action_values(drawn, len(probabilities), deadline)
            count = len(values)
            if not count:
                break
            advantage = values - (values @ probabilities)[:, None]
            sums += advantage.sum(axis=0), (advantage**2).sum(axis=0)
            done += count
            if deadline is not None:
                now = time.perf_counter()
                fit = _CAUTION * (deadline - now) / ((now - start) / done)
                if fit < 1:
                    break
                count = min(int(fit), _GROWTH * done)
        if not done:
            return probabilities
        self._clock.statistics.iterations += done
        self._clock.statistics.solves += 1
        self.step_scale = belief.trust * update_equivalence.shrinkage(
            probabilities, sums, done
        )
        return update_equivalence.mirror_step(
            probabilities,
            sums[0] / done,
            np.zeros(len(probabilities), int),
            eta=self._config.eta * self.step_scale,
        )

    def _believed(self, state: pyspiel.State) -> _Belief:
        """Return the belief at a decision; on states without batched rules."""
        if self._source is not None:
            belief, uniform = self._beliefs
            histories, trust = belief.at(state), 0.0
            if len(histories.states):
                likely = uniform.at(state).log_reach
                trust = update_equivalence.damping(histories.log_reach, likely)
            random = np.random.default_rng([self._seed, self._player, belief.seen_id])
            parts = histories.states, histories.weights, trust, random
            return _Belief(self._source, *parts, histories.complete)
        posterior, other = self._posteriors
        posterior.update(state)
        trust = 0.0
        if not posterior.surprised:
            other.update(state)
            trust = update_equivalence.damping(posterior.log_reach, other.log_reach)
        rows = np.fromiter(posterior.states, object, len(posterior.states))
        random = generator_at(self._seed, state, self._player)
        source = StateSource(state.get_game())
        complete = not posterior.approximate
        return _Belief(source, rows, posterior.weights, trust, random, complete)

    def _action_values(
        self, belief: _Belief, actions: int, deadline: float | None
    ) -> np.ndarray:
        """Return the values of each history's actions, in [-1, 1], float64 [n, A].

        All actions of a history use the same random numbers. If the time runs out, the
        remaining histories are left out, which favours histories that end early.
        """
        count = len(belief.states)
        acts, source = np.full(count, self._player, np.int8), belief.source
        after, _ = source.below(belief.states, acts, observations=False)
        self._rollouts.draw_from(int(belief.random.integers(2**63)))
        group = np.repeat(np.arange(count), actions)
        values = self._rollouts.play(source.rules, after, self._player, group, deadline)
        values = self._scale * values.reshape(-1, actions)
        return values if deadline is None else values[~np.isnan(values).any(axis=1)]
