"""Values of responses: exact if their strategy is known, otherwise by matches."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.evaluation.control_variates import Luck, without_luck
from spiel_cr.evaluation.opponent import Opponent
from spiel_cr.evaluation.referee import play_match
from spiel_cr.evaluation.response_config import ResponseConfig
from spiel_cr.evaluation.responses.state_responder import BeliefRecord, StateResponder
from spiel_cr.evaluation.result import ResponseValue, in_player_order, mean_of_matches
from spiel_cr.games.opening.game_checks import payoff_offset, utility_bounds
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies import best_responses
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.bot_base import Learns
from spiel_cr.policies.rollouts import Answers
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy


def expected_reward(
    form: SequenceForm, player: int, behaviour: np.ndarray, opponent: np.ndarray
) -> float:
    """Return a player's expected utility, in the game's units.

    Args:
      form: The game's sequence form.
      player: The player whose utility it is.
      behaviour: float64 [S], the player's action probabilities.
      opponent: float64 [S'], those of the other player.
    """
    reach = reach_of(form, in_player_order(player, behaviour, opponent))
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
      returns: float64 [matches], the response's returns; None if none were played.
      behaviour: float64 [S], its action probabilities; None if they are not known.
      statistics: Further attributes of the `ResponseValue`.
    """
    largest, offset = largest_utility(opponent.game), payoff_offset(opponent.game)
    statistics["behaviour"] = behaviour
    form, policy = opponent.form, opponent.behaviour
    if form is not None and policy is not None:
        if opponent.tree is not None:
            largest = float(np.abs(opponent.tree.histories.utility).max())
        reach = reach_of(form, policy)[1 - player]
        exact = best_responses.best_response_value(form, player, reach)
        played, other = in_player_order(player, *policy)
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


class Played(NamedTuple):
    """A match of a response.

    Attributes:
      value: The responder's return.
      luck: The control variate, see `control_variates`; None without one.
      beliefs: Statistics of a `StateResponder`'s beliefs; None for other responders.
      simulations: Number of simulations of a `StateResponder`.
      asked: Number of queries of a `TablePolicy`, and of those at unvisited infosets.
    """

    value: float
    luck: float | None
    beliefs: BeliefRecord | None
    simulations: int
    asked: tuple[int, int]


class ResponseMatches:
    """Matches of a responder, by number; both players have the same deals."""

    def __init__(
        self,
        opponent: Opponent,
        player: int,
        responder: pyspiel.Bot,
        config: ResponseConfig,
        *,
        reduces_variance: bool,
    ) -> None:
        """Initialise without playing a match.

        Args:
          opponent: The opponent. A bot that `Learns` is reset before each match, so
            that matches are independent.
          player: The responder.
          responder: The bot that responds.
          config: Settings with the seed of the matches.
          reduces_variance: Whether to compute a control variate, with rollouts of
            `config`. There is none if the opponent is a bot that `Learns`.
        """
        self._opponent, self._player, self._config = opponent, player, config
        self._responder, self._is_known = responder, opponent.bots is None
        self._rival = rival = opponent.bot(1 - player, config.seed)
        self._answers = None
        reduces_variance = reduces_variance and config.luck_rollouts > 0
        if reduces_variance and (self._is_known or not isinstance(rival, Learns)):
            uniform = openspiel_policy.UniformRandomPolicy(opponent.game)
            policies = enumerate(in_player_order(player, uniform, opponent.policy))
            self._answers = {seat: Answers(policy, seat) for seat, policy in policies}

    def __call__(self, number: int) -> Played:
        """Play a match."""
        seed, player, responder = self._config.seed, self._player, self._responder
        random = np.random.default_rng([seed, player, number])
        if isinstance(self._rival, Learns):
            self._rival.forget(int(random.integers(2**31)))
        luck = None
        if self._answers is not None:
            luck = Luck(
                player,
                self._answers,
                np.random.default_rng([seed, 3, player, number]),
                rollouts=self._config.luck_rollouts,
                opponent_is_known=self._is_known,
            )
        simulations, asked = getattr(responder, "simulations", 0), self._asked()
        if isinstance(responder, StateResponder):
            responder.beliefs = BeliefRecord()
        match = play_match(
            self._opponent.game,
            in_player_order(player, responder, self._rival),
            random,
            chance=np.random.default_rng([seed, number]),
            observers=() if luck is None else (luck,),
        )
        now = self._asked()
        return Played(
            match.returns[player],
            None if luck is None else luck.total,
            getattr(responder, "beliefs", None),
            getattr(responder, "simulations", 0) - simulations,
            (now[0] - asked[0], now[1] - asked[1]),
        )

    def _asked(self) -> tuple[int, int]:
        policy = self._opponent.policy
        is_table = isinstance(policy, TablePolicy)
        return (policy.asked, policy.unmet) if is_table else (0, 0)


def returns_of(
    opponent: Opponent, matches: Sequence[Played]
) -> tuple[np.ndarray, float | None]:
    """Return the responder's returns minus what the control variate explains.

    Returns:
      float64 [matches], and half of the 95% confidence interval of the plain returns;
      None if there is no control variate.
    """
    plain = np.array([match.value for match in matches])
    lucks = [match.luck for match in matches if match.luck is not None]
    if not lucks:
        return plain, None
    half_width = mean_of_matches(plain, largest_utility(opponent.game))[1]
    return without_luck(plain, np.array(lucks)), half_width
