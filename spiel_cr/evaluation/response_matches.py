"""What a response is worth: exactly where its strategy is known, else by matches."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.evaluation.control_variates import Luck, without_luck
from spiel_cr.evaluation.opponent import Target
from spiel_cr.evaluation.referee import play_match
from spiel_cr.evaluation.response_config import ResponseConfig
from spiel_cr.evaluation.responses.state_responder import BeliefRecord, StateResponder
from spiel_cr.evaluation.result import Seat, mean_of_matches, seated
from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies import best_responses
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.bot_base import Learns
from spiel_cr.policies.rollouts import Answers
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy


def expected_reward(
    form: SequenceForm, player: int, own: np.ndarray, other: np.ndarray
) -> float:
    """A player's expected reward, in the game's units.

    Args:
      form: of the game.
      player: whose.
      own: float64 [S], its action probabilities.
      other: the opponent's.
    """
    reach = reach_of(form, seated(player, own, other))
    return (1 if player == 0 else -1) * best_responses.expected_value(form, reach)


def seat_of(
    target: Target,
    player: int,
    returns: np.ndarray,
    behaviour: np.ndarray | None,
    **facts: Any,
) -> Seat:
    """A response, with what a best response and the policy itself get in its seat.

    Args:
      target: to whom.
      player: the responder.
      returns: float64 [matches], of the response; empty where there were none.
      behaviour: float64 [S], its action probabilities; None: they are not known.
      facts: of the `Seat`, whatever was measured besides.
    """
    largest = largest_utility(target.game)
    mean = mean_of_matches(returns, largest)[0] if len(returns) else math.nan
    seat = Seat(player, mean, False, None, None, returns, **facts)
    seat = seat._replace(largest=largest, behaviour=behaviour)
    if target.form is None or target.behaviour is None:
        return seat
    form = target.form
    own, other = seated(player, *target.behaviour)
    if behaviour is not None:
        value = expected_reward(form, player, behaviour, other)
        seat = seat._replace(value=value, is_exact=True)
    if target.tree is not None:
        largest = float(np.abs(target.tree.histories.utility).max())
    reach = reach_of(form, target.behaviour)[1 - player]
    return seat._replace(
        largest=largest,
        exact_value=best_responses.best_response_value(form, player, reach),
        on_policy=expected_reward(form, player, own, other),
    )


def largest_utility(game: pyspiel.Game) -> float:
    """The largest utility of a game, without sign; 0 where it is not bounded."""
    return float(np.abs(utility_bounds(game) or 0.0).max())


class Played(NamedTuple):
    """A match of a response.

    Attributes:
      value: its return.
      luck: that `control_variates` finds in it; None where it stays.
      beliefs: of a responder that looks ahead on states; None of others.
      simulations: of such a responder.
      asked: how often a `TablePolicy` was asked, and had not met the infoset.
    """

    value: float
    luck: float | None
    beliefs: BeliefRecord | None
    simulations: int
    asked: tuple[int, int]


class ResponseMatches:
    """Matches of a responder, by their numbers; both seats have the same deals."""

    def __init__(
        self,
        target: Target,
        player: int,
        responder: pyspiel.Bot,
        config: ResponseConfig,
        *,
        takes_luck: bool,
    ) -> None:
        """Plays nothing yet.

        Args:
          target: whom it plays; a bot that `Learns` is as new in each match, so that
            they are independent.
          player: the responder.
          responder: plays its seat.
          config: seed of the matches.
          takes_luck: take luck out, with rollouts of `config`; it stays where the
            target is a bot that `Learns`.
        """
        self._target, self._player, self._config = target, player, config
        self._responder, self._known = responder, target.rivals is None
        self._rival = rival = target.bot(1 - player, config.seed)
        self._answers = None
        takes_luck = takes_luck and config.luck_rollouts > 0
        if takes_luck and (self._known or not isinstance(rival, Learns)):
            uniform = openspiel_policy.UniformRandomPolicy(target.game)
            policies = enumerate(seated(player, uniform, target.policy))
            self._answers = {seat: Answers(policy, seat) for seat, policy in policies}

    def __call__(self, number: int) -> Played:
        """Plays a match."""
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
                opponent_is_known=self._known,
            )
        simulations, asked = getattr(responder, "simulations", 0), self._asked()
        if isinstance(responder, StateResponder):
            responder.beliefs = BeliefRecord()
        match = play_match(
            self._target.game,
            seated(player, responder, self._rival),
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
        policy = self._target.policy
        is_table = isinstance(policy, TablePolicy)
        return (policy.asked, policy.unmet) if is_table else (0, 0)


def returns_of(
    target: Target, matches: Sequence[Played]
) -> tuple[np.ndarray, float | None]:
    """The responder's returns, less what luck explains.

    Returns:
      float64 [matches], and half of the 95 % confidence interval without that; None
      where luck stays.
    """
    plain = np.array([match.value for match in matches])
    lucks = [match.luck for match in matches if match.luck is not None]
    if not lucks:
        return plain, None
    half = mean_of_matches(plain, largest_utility(target.game))[1]
    return without_luck(plain, np.array(lucks)), half
