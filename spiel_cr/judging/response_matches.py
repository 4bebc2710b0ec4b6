"""What a response is worth: exactly where its strategy is known, else by matches."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.stepping.simulator import Positions, play
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.control_variates import Luck, without_luck
from spiel_cr.judging.one_match import play_match
from spiel_cr.judging.response_config import Behaviours, ResponseConfig
from spiel_cr.judging.response_seats import Seat, mean_of_matches
from spiel_cr.judging.root_responses import setting
from spiel_cr.policies import best_responses
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.bot_base import Learns
from spiel_cr.policies.rollouts import Answers


class Known(NamedTuple):
    """A compiled game and an opponent whose strategy is known.

    Attributes:
      tree: the compiled game.
      behaviour: both players' action probabilities under the opponent's policy, each
        float64 [S]; the responder's tell what the policy itself gets in its seat.
    """

    tree: CompiledGame
    behaviour: Behaviours


def expected_reward(
    tree: CompiledGame, player: int, own: np.ndarray, other: np.ndarray
) -> float:
    """A player's expected reward, in the game's units.

    Args:
      tree: the compiled game.
      player: whose.
      own: float64 [S], its action probabilities.
      other: the opponent's.
    """
    reach = reach_of(tree.form, seated(player, own, other))
    return (1 if player == 0 else -1) * best_responses.expected_value(tree.form, reach)


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


def judged(seat: Seat, known: Known, found: np.ndarray | None) -> Seat:
    """A seat, with what a best response and the policy itself get there.

    Args:
      seat: by its matches.
      known: the opponent.
      found: float64 [S], the response's action probabilities; None: not known, and its
        value stays the mean of matches.
    """
    player, form = seat.player, known.tree.form
    own, other = known.behaviour[player], known.behaviour[1 - player]
    if found is not None:
        value = expected_reward(known.tree, player, found, other)
        seat = seat._replace(value=value, is_exact=True)
    reach = reach_of(form, known.behaviour)[1 - player]
    return seat._replace(
        largest=float(np.abs(known.tree.histories.utility).max()),
        exact_value=best_responses.best_response_value(form, player, reach),
        on_policy=expected_reward(known.tree, player, own, other),
    )


def play_responses(
    game: pyspiel.Game,
    player: int,
    responder: pyspiel.Bot,
    rival: pyspiel.Bot,
    config: ResponseConfig,
    *,
    luck: Mapping[int, Answers] | None = None,
    opponent_is_known: bool = False,
) -> tuple[np.ndarray, float | None]:
    """The responder's returns; both seats have the same deals.

    Args:
      game, player, responder, rival, config: of the matches.
      luck: how both players play in rollouts, to take luck out; None: it stays.
      opponent_is_known: the rival plays as `luck` says.

    Returns:
      float64 [matches], less what luck explains, and half of the 95 % confidence
      interval without that; None where luck stays.
    """
    bots, returns, lucks = seated(player, responder, rival), [], []
    seed = config.seed
    for number in tqdm(
        range(config.matches), desc=f"matches, player {player}", unit="match"
    ):
        random = np.random.default_rng([seed, player, number])
        chance = np.random.default_rng([seed, number])
        if isinstance(rival, Learns):
            # Each match is one of a new bot, so that they are independent.
            rival.forget(int(random.integers(2**31)))
        observers = []
        if luck is not None:
            own = np.random.default_rng([seed, 3, player, number])
            observers = [
                Luck(
                    player,
                    luck,
                    own,
                    rollouts=config.luck_rollouts,
                    opponent_is_known=opponent_is_known,
                )
            ]
        match = play_match(game, bots, random, chance=chance, observers=observers)
        returns.append(match.returns[player])
        lucks += [observer.total for observer in observers]
    plain = np.array(returns)
    if luck is None:
        return plain, None
    half = mean_of_matches(plain, largest_utility(game))[1]
    return without_luck(plain, np.array(lucks)), half


def play_on_tree(
    tree: CompiledGame, behaviour: Behaviours, number: int, random: np.random.Generator
) -> np.ndarray:
    """float64 [2, number], both players' returns of matches between strategies."""
    source, fixed, _ = setting.on_tree(tree, behaviour)

    def act(positions: Positions, live: np.ndarray, match: np.ndarray) -> np.ndarray:
        action = np.zeros(len(live), np.int64)
        for player in (0, 1):
            acts = positions.player[live] == player
            if acts.any():
                action[acts] = fixed.draw(positions, live[acts], random)
        return action

    utility = play(source, number, random, act)
    return np.array([utility, -utility])
