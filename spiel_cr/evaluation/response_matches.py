"""Values of responses: exact if their strategy is known, otherwise by matches."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.pairs import ordered_pair
from spiel_cr.evaluation.control_variates import Luck, without_luck
from spiel_cr.evaluation.opponent import Opponent
from spiel_cr.evaluation.referee import play_match
from spiel_cr.evaluation.response_config import ResponseConfig, SearchConfig
from spiel_cr.evaluation.responses.ismcts_bot import ISMCTSBRBot, Predictor
from spiel_cr.evaluation.responses.learned_response import (
    LearningConfig,
    learn_response,
)
from spiel_cr.evaluation.responses.local_best_response import LBRBot
from spiel_cr.evaluation.responses.state_responder import StateResponder
from spiel_cr.evaluation.result import (
    BeliefRecord,
    ResponseValue,
    mean_of_matches,
)
from spiel_cr.games.opening.game_checks import payoff_offset, utility_bounds
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies import best_responses
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.bot_base import as_learner
from spiel_cr.policies.rollouts import Answers
from spiel_cr.solvers.mccfr.table.table_policy import table_queries


def expected_reward(
    form: SequenceForm, player: int, behaviour: np.ndarray, opponent: np.ndarray
) -> float:
    """Return a player's expected utility, in the game's units.

    Args:
      form: The game's sequence form.
      player: The player whose utility it is.
      behaviour: The player's action probabilities, float64 [S].
      opponent: The other player's action probabilities, float64 [S'].
    """
    reach = reach_of(form, ordered_pair(player, behaviour, opponent))
    return (1 if player == 0 else -1) * best_responses.expected_value(form, reach)


def value_of_response(
    opponent: Opponent,
    player: int,
    method: str,
    returns: np.ndarray | None,
    behaviour: np.ndarray | None,
    **statistics: Any,
) -> ResponseValue:
    """Evaluate a response: exactly if its strategy is known, otherwise by its matches.

    Args:
      opponent: The opponent.
      player: The responder.
      method: The method that found the response.
      returns: The response's returns, float64 [matches]; None if none were played.
      behaviour: Its action probabilities, float64 [S]; None if they are not known.
      statistics: Further attributes of the `ResponseValue`.
    """
    largest, offset = largest_utility(opponent.game), payoff_offset(opponent.game)
    statistics["behaviour"] = behaviour
    form, policy = opponent.sequence_form, opponent.behaviour
    if form is not None and policy is not None:
        if opponent.tree is not None:
            largest = float(np.abs(opponent.tree.histories.utility).max())
        reach = reach_of(form, policy)[1 - player]
        exact = best_responses.best_response_value(form, player, reach)
        played, other = ordered_pair(player, *policy)
        statistics["exact_value"] = exact
        statistics["on_policy"] = expected_reward(form, player, played, other)
        if behaviour is not None:
            value = expected_reward(form, player, behaviour, other)
            exact_response = ResponseValue(
                player, method, value, largest=largest, **statistics
            )
            return exact_response.with_offset(offset)
    assert returns is not None
    mean, half = mean_of_matches(returns, largest)
    statistics["returns"] = returns
    estimate = ResponseValue(
        player, method, mean, half, len(returns), largest=largest, **statistics
    )
    return estimate.with_offset(offset)


def largest_utility(game: pyspiel.Game) -> float:
    """Return a game's largest absolute utility; 0 if it is not bounded."""
    return float(np.abs(utility_bounds(game) or 0.0).max())


class ResponseMatch(NamedTuple):
    """A match of a response.

    Attributes:
      value: The responder's return.
      luck: The control variate, see `control_variates`; None if there is none.
      beliefs: Statistics of a `StateResponder`'s beliefs; None for other responders.
      simulations: Number of simulations of a `StateResponder`.
      queries: Number of queries of a `TablePolicy`, and of those at unvisited infosets.
    """

    value: float
    luck: float | None
    beliefs: BeliefRecord | None
    simulations: int
    queries: tuple[int, int]


class ResponseMatches:
    """Matches of a responder, by number; both players have the same deals."""

    def __init__(
        self,
        opponent: Opponent,
        player: int,
        config: ResponseConfig,
        responder: pyspiel.Bot | None = None,
    ) -> None:
        """Initialise without playing a match.

        If the responder looks ahead on states, a control variate is computed with
        rollouts of `config`, unless the opponent is a bot that `Learns`.

        Args:
          opponent: The opponent. A bot that `Learns` is reset before each match, so
            that matches are independent.
          player: The responder.
          config: Settings with the seed of the matches.
          responder: The bot that responds; None for a new `state_responder`.
        """
        if responder is None:
            responder = state_responder(opponent, player, config)
        self._opponent, self._player, self._config = opponent, player, config
        self._responder, self._is_known = responder, opponent.bots is None
        self._rival = opponent.bot(1 - player, config.seed)
        self._learner = as_learner(self._rival)
        self._answers = None
        looks_ahead = isinstance(responder, StateResponder)
        reduces_variance = looks_ahead and config.luck_rollouts > 0
        if reduces_variance and (self._is_known or self._learner is None):
            uniform = openspiel_policy.UniformRandomPolicy(opponent.game)
            policies = enumerate(ordered_pair(player, uniform, opponent.policy))
            self._answers = {seat: Answers(policy, seat) for seat, policy in policies}

    def __call__(self, number: int) -> ResponseMatch:
        """Play a match."""
        seed, player, responder = self._config.seed, self._player, self._responder
        random = np.random.default_rng([seed, player, number])
        if self._learner is not None:
            self._learner.reset(int(random.integers(2**31)))
        luck = None
        if self._answers is not None:
            luck = Luck(
                player,
                self._answers,
                np.random.default_rng([seed, 3, player, number]),
                rollouts=self._config.luck_rollouts,
                opponent_is_known=self._is_known,
            )
        simulations = getattr(responder, "simulations", 0)
        before = table_queries(self._opponent.policy) or (0, 0)
        if isinstance(responder, StateResponder):
            responder.beliefs = BeliefRecord()
        match = play_match(
            self._opponent.game,
            ordered_pair(player, responder, self._rival),
            random,
            chance=np.random.default_rng([seed, number]),
            observers=() if luck is None else (luck,),
        )
        now = table_queries(self._opponent.policy) or (0, 0)
        return ResponseMatch(
            match.returns[player],
            None if luck is None else luck.total,
            getattr(responder, "beliefs", None),
            getattr(responder, "simulations", 0) - simulations,
            (now[0] - before[0], now[1] - before[1]),
        )


def state_responder(
    opponent: Opponent, player: int, config: ResponseConfig
) -> StateResponder:
    """Make a bot that looks ahead during matches.

    The simulations that a bot learned from beforehand count as its own.

    Args:
      opponent: The opponent, whose policy the bot uses.
      player: The responder.
      config: Method ("ismcts", "lbr" or "learned") and settings.
    """
    game, policy, seed = opponent.game, opponent.policy, config.seed
    belief = StatePosterior(
        game,
        player,
        policy,
        max_histories=config.max_histories,
        particles=config.particles,
        seed=seed,
    )
    if config.method == "lbr":
        return LBRBot(
            game,
            player,
            policy,
            leaf=config.leaf_for(game),
            rollouts=config.rollouts,
            seed=seed,
            belief=belief,
        )
    predictor, simulations = Predictor(rollout=rollout_of(policy, config.search)), 0
    if config.method == "learned":
        settings = LearningConfig(search=config.search, rounds=config.rounds)
        learned = learn_response(game, player, policy, settings, seed=seed)
        predictor = predictor._replace(prior_and_value=learned.prior_and_value)
        simulations = learned.simulations
    responder = ISMCTSBRBot(
        game,
        player,
        policy,
        config.search,
        seed=seed,
        predictor=predictor,
        belief=belief,
    )
    responder.simulations = simulations
    return responder


def rollout_of(
    policy: openspiel_policy.Policy, search: SearchConfig
) -> openspiel_policy.Policy | None:
    """Return the evaluated policy as the responder's policy in rollouts.

    The result is None, which means uniform play, if the search is that of the paper, or
    if a bot would have to be queried at many information states.

    Args:
      policy: The evaluated policy of both players.
      search: The response's search settings.
    """
    if search.histories != "all" or getattr(policy, "asks_bots", False):
        return None
    return policy


def returns_of(
    opponent: Opponent, matches: Sequence[ResponseMatch]
) -> tuple[np.ndarray, float | None]:
    """Return the responder's returns after subtraction of the control variate.

    Returns:
      The returns, float64 [matches]; and half of the 95% confidence interval of the
      plain returns, None if there is no control variate.
    """
    plain = np.array([match.value for match in matches])
    lucks = [match.luck for match in matches if match.luck is not None]
    if not lucks:
        return plain, None
    half_width = mean_of_matches(plain, largest_utility(opponent.game))[1]
    return without_luck(plain, np.array(lucks)), half_width
