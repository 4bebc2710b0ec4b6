"""What a response is worth: exactly where its strategy is known, else by matches."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common.announcing import is_wanted
from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.judging.control_variates import Luck, without_luck
from spiel_cr.judging.one_match import Observer, play_match
from spiel_cr.judging.response_config import ResponseConfig
from spiel_cr.judging.response_seats import Seat, mean_of_matches
from spiel_cr.judging.targets import Target
from spiel_cr.policies import best_responses
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.bot_base import Learns
from spiel_cr.policies.rollouts import Answers


class Pairing(NamedTuple):
    """A response and whom it plays.

    Attributes:
      game: sequential.
      player: the responder's seat.
      responder: plays it.
      rival: plays the other one; one that `Learns` is as new in each match.
      seed: of all matches.
    """

    game: pyspiel.Game
    player: int
    responder: pyspiel.Bot
    rival: pyspiel.Bot
    seed: int

    def play(self, number: int, observers: Sequence[Observer] = ()) -> float:
        """The responder's return in a match; both seats have the same deals.

        Args:
          number: of the match.
          observers: of it.
        """
        random = np.random.default_rng([self.seed, self.player, number])
        chance = np.random.default_rng([self.seed, number])
        if isinstance(self.rival, Learns):
            # Each match is one of a new bot, so that they are independent.
            self.rival.forget(int(random.integers(2**31)))
        both = seated(self.player, self.responder, self.rival)
        match = play_match(self.game, both, random, chance=chance, observers=observers)
        return match.returns[self.player]


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


def seated(player: int, own: Any, other: Any) -> Any:
    """What belongs to a player and to its opponent, by seat."""
    return (own, other) if player == 0 else (other, own)


def seat_of(
    game: pyspiel.Game,
    player: int,
    returns: np.ndarray,
    simulations: int,
    seconds: float,
) -> Seat:
    """A response by its returns in matches, float64 [matches]; nan without any."""
    largest = largest_utility(game)
    mean = mean_of_matches(returns, largest)[0] if len(returns) else math.nan
    seat = Seat(player, mean, False, None, None, returns, simulations, seconds)
    return seat._replace(largest=largest)


def largest_utility(game: pyspiel.Game) -> float:
    """The largest utility of a game, without sign; 0 where it is not bounded."""
    return float(np.abs(utility_bounds(game) or 0.0).max())


def judged(seat: Seat, target: Target) -> Seat:
    """A seat, with what a best response and the policy itself get there.

    Args:
      seat: by its matches, with the response's behaviour where that is known.
      target: as it is where its strategy is not known.
    """
    if target.form is None or target.behaviour is None:
        return seat
    player, form = seat.player, target.form
    own, other = seated(player, *target.behaviour)
    if seat.behaviour is not None:
        value = expected_reward(form, player, seat.behaviour, other)
        seat = seat._replace(value=value, is_exact=True)
    if target.tree is not None:
        largest = float(np.abs(target.tree.histories.utility).max())
        seat = seat._replace(largest=largest)
    reach = reach_of(form, target.behaviour)[1 - player]
    return seat._replace(
        exact_value=best_responses.best_response_value(form, player, reach),
        on_policy=expected_reward(form, player, own, other),
    )


def play_responses(
    pairing: Pairing,
    config: ResponseConfig,
    *,
    luck: Mapping[int, Answers] | None = None,
    opponent_is_known: bool = False,
) -> tuple[np.ndarray, float | None]:
    """The responder's returns.

    Args:
      pairing: who plays.
      config: how many matches.
      luck: how both players play in rollouts, to take luck out; None: it stays.
      opponent_is_known: the rival plays as `luck` says.

    Returns:
      float64 [matches], less what luck explains, and half of the 95 % confidence
      interval without that; None where luck stays.
    """
    player, returns, lucks = pairing.player, [], []
    for number in tqdm(
        range(config.matches),
        desc=f"matches, player {player}",
        unit="match",
        disable=not is_wanted(),
    ):
        observers = []
        if luck is not None:
            random = np.random.default_rng([pairing.seed, 3, player, number])
            observers = [
                Luck(
                    player,
                    luck,
                    random,
                    rollouts=config.luck_rollouts,
                    opponent_is_known=opponent_is_known,
                )
            ]
        returns.append(pairing.play(number, observers))
        lucks += [observer.total for observer in observers]
    plain = np.array(returns)
    if luck is None:
        return plain, None
    half = mean_of_matches(plain, largest_utility(pairing.game))[1]
    return without_luck(plain, np.array(lucks)), half
