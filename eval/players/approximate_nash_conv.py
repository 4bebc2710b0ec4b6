"""Approximate NashConv: responses that were found, measured beside the exact ones."""

import dataclasses
import math
import time
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common.checks import check_choice, check_whole
from spiel_cr.compilation.tree import TERMINAL, CompiledGame
from spiel_cr.players import bots, opponent_strings
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.responses import (
    episodes,
    ismcts_br,
    ismcts_br_bot,
    learn_compiled,
    learn_states,
    opponents,
)
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.responses.learning import LearningConfig, Stage
from spiel_cr.responses.local_best_response import LBRBot, lbr
from spiel_cr.responses.state_responder import StateResponder

from ..common.statistics import mean_and_half_width
from .match import play_match

METHODS = ("exact", "ismcts", "lbr", "learned")

# Of a round of learning on states, where an episode takes a tenth of a second or more.
_EPISODES = 64

Behaviours = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class ResponseConfig:
    """How a response is found and measured.

    Attributes:
      method: one of `METHODS`.
      search: settings of "ismcts", and of the searches of "learned".
      leaf: of "lbr", see `local_best_response.LEAVES`; None: "call" in poker, else
        "uniform".
      rollouts: of "lbr" where the game is not compiled, per decision.
      rounds: of "learned", of episodes and training.
      matches: to estimate the value by, two or more.
      seed: of searches and matches.
    """

    method: str = "ismcts"
    search: SearchConfig = SearchConfig()
    leaf: str | None = None
    rollouts: int = 1000
    rounds: int = 20
    matches: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.method, "method", METHODS)
        # An interval needs two.
        check_whole(self.matches, "matches", 2)

    def leaf_for(self, game: pyspiel.Game) -> str:
        """How local best response plays after its action."""
        try:
            opponents.chump(game, "always_call")
        except opponents.NotPokerError:
            return self.leaf or "uniform"
        return self.leaf or "call"


class Seat(NamedTuple):
    """A response in one seat. Values are expected rewards of the responder, in the
    game's units.

    Attributes:
      player: the responder.
      value: exact where the game was compiled and the opponent's policy is known, else
        `matches_value`.
      exact_value: of a best response; None where it is not known.
      on_policy: what the opponent's own policy gets in this seat; None where not known.
      matches_value: mean of matches.
      half_width: half of the 95 % confidence interval of `matches_value`.
      matches: how many were played.
      simulations: or rollouts, to find the response; 0 where there are none.
      seconds: to find the response.
    """

    player: int
    value: float
    exact_value: float | None
    on_policy: float | None
    matches_value: float
    half_width: float
    matches: int
    simulations: int
    seconds: float

    def beside(self, tree: CompiledGame, behaviour: Behaviours) -> "Seat":
        """The same, with what a best response and the policy itself get in the seat.

        Args:
          tree: the compiled game.
          behaviour: both players' action probabilities under the policy.
        """
        player = self.player
        reach = reach_of(tree.form, behaviour)[1 - player]
        own, other = behaviour[player], behaviour[1 - player]
        return self._replace(
            exact_value=best_responses.best_response_value(tree.form, player, reach),
            on_policy=expected_reward(tree, player, own, other),
        )


def opponent_behaviour(tree: CompiledGame, text: str, *, seed: int = 0) -> Behaviours:
    """An opponent from a string, see `opponent_strings.load_opponent`.

    Returns:
      For each seat float64 [S], its action probabilities.
    """
    if text == "uniform":
        first, second = (
            conversions.uniform_behaviour(own.decisions) for own in tree.infosets
        )
        return first, second
    policy = opponent_strings.load_opponent(text, tree, seed=seed)
    return conversions.behaviour_from_policy(tree, policy)


def on_tree(
    tree: CompiledGame,
    player: int,
    behaviour: Behaviours,
    config: ResponseConfig,
    *,
    rival: pyspiel.Bot | None = None,
) -> Seat:
    """Finds a response on a compiled game and measures it.

    Args:
      tree: the compiled game.
      player: the responder.
      behaviour: both players' action probabilities; the responder's tell what the
        policy itself gets in its seat.
      config: how.
      rival: the opponent itself where `behaviour` is an estimate of it: the value is
        then what the response gets in matches against it, and no exact one is known.

    Raises:
      ValueError: a bad argument.
      ImportError: "learned" without the extra [deep].
    """
    other, seed = behaviour[1 - player], config.seed
    begun, simulations = time.perf_counter(), 0
    if config.method == "exact":
        reach = reach_of(tree.form, behaviour)[1 - player]
        found = best_responses.best_response(tree.form, player, reach)
    elif config.method == "lbr":
        found = lbr(tree, player, other, leaf=config.leaf_for(tree.game))
    elif config.method == "learned":
        stage = Stage("opponent", other, config.rounds)
        settings = LearningConfig(search=config.search, evaluate_every=config.rounds)
        learned = learn_compiled.learn_response(
            tree, player, [stage], settings, seed=seed, progress=True
        )
        found, simulations = learned.behaviour, learned.simulations
    else:
        response = ismcts_br.search_response(
            tree, player, other, config.search, seed=seed, progress=True
        )
        found, simulations = response.behaviour, response.simulations
    seconds = time.perf_counter() - begun
    both = _seated(player, found, other)
    if rival is not None:
        responder = bots.PolicyBot(player, conversions.tabular_policy(tree, both))
        returns = _play(tree.game, player, responder, rival, config)
        return _seat(player, returns, simulations, seconds)
    random = np.random.default_rng([seed, 1])
    returns = _play_on_tree(tree, both, config.matches, random)[player]
    seat = _seat(player, returns, simulations, seconds)
    value = expected_reward(tree, player, found, other)
    return seat._replace(value=value).beside(tree, behaviour)


def both_on_tree(
    tree: CompiledGame, behaviour: Behaviours, config: ResponseConfig
) -> dict[str, Any]:
    """The `summary` of the responses in both seats, see `on_tree`."""
    return summary([on_tree(tree, p, behaviour, config) for p in (0, 1)])


def on_states(
    game: pyspiel.Game,
    player: int,
    opponent: openspiel_policy.Policy,
    config: ResponseConfig,
    *,
    rival: pyspiel.Bot | None = None,
) -> Seat:
    """Measures a response that searches in matches, on OpenSpiel's states.

    Args:
      game: sequential, as from `load_game`.
      player: the responder.
      opponent: its policy.
      config: how; not by the method "exact".
      rival: who plays the matches in the opponent's place, where its policy is an
        estimate.

    Raises:
      ValueError: a bad argument, or a method that needs the whole tree.
      ImportError: "learned" without the extra [deep].
    """
    seed = config.seed
    begun, simulations = time.perf_counter(), 0
    if config.method == "exact":
        raise ValueError(
            f"method={config.method!r} needs the whole tree, and the game was not "
            f"compiled; choose ismcts, lbr or learned, or allow more memory"
        )
    if config.method == "lbr":
        leaf, rollouts = config.leaf_for(game), config.rollouts
        responder: StateResponder = LBRBot(
            game, player, opponent, leaf=leaf, rollouts=rollouts, seed=seed
        )
    else:
        prior_and_value: ismcts_br_bot.StatePriorAndValue = ismcts_br_bot.uniform_prior
        if config.method == "learned":
            stage = Stage("opponent", opponent, config.rounds)
            settings = LearningConfig(
                search=config.search, episodes=_EPISODES, evaluate_every=config.rounds
            )
            learned = learn_states.learn_on_states(
                game, player, [stage], settings, seed=seed, matches=1, progress=True
            )
            prior_and_value, simulations = learned.prior_and_value, learned.simulations
        responder = ismcts_br_bot.ISMCTSBRBot(
            game,
            player,
            opponent,
            config.search,
            seed=seed,
            prior_and_value=prior_and_value,
        )
    if rival is None:
        rival = bots.PolicyBot(1 - player, opponent, seed=seed)
    returns = _play(game, player, responder, rival, config)
    seconds = time.perf_counter() - begun
    return _seat(player, returns, simulations + responder.simulations, seconds)


def _seat(player: int, returns: np.ndarray, simulations: int, seconds: float) -> Seat:
    """A response by its returns in matches, float64 [matches]."""
    mean, half = mean_and_half_width(returns)
    assert half is not None
    return Seat(
        player, mean, None, None, mean, half, len(returns), simulations, seconds
    )


def summary(seats: list[Seat]) -> dict[str, Any]:
    """What is known of one seat, or of both together (approximate NashConv).

    Returns:
      `value`, `exact_value`, `share`, `half_width`, `matches_value`, `matches`,
      `simulations`, `seconds` and `seats`. `share` is the gain over the opponent's own
      policy that was found, divided by that of a best response; with both seats that is
      NashConv found by NashConv. It and `exact_value` are None where not known.
    """
    exact = share = None
    if all(seat.exact_value is not None for seat in seats):
        exact = sum(seat.exact_value or 0.0 for seat in seats)
        base = sum(seat.on_policy or 0.0 for seat in seats)
        if exact - base > 1e-12:
            share = (sum(seat.value for seat in seats) - base) / (exact - base)
    summed = ("value", "matches_value", "matches", "simulations", "seconds")
    return {
        **{name: sum(getattr(seat, name) for seat in seats) for name in summed},
        "exact_value": exact,
        "share": share,
        "half_width": math.sqrt(sum(seat.half_width**2 for seat in seats)),
        "seats": [seat._asdict() for seat in seats],
    }


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
    reach = reach_of(tree.form, _seated(player, own, other))
    return (1 if player == 0 else -1) * best_responses.expected_value(tree.form, reach)


def _seated(player: int, own: Any, other: Any) -> Any:
    """What belongs to a player and to its opponent, by seat."""
    return (own, other) if player == 0 else (other, own)


def _play(
    game: pyspiel.Game,
    player: int,
    responder: pyspiel.Bot,
    rival: pyspiel.Bot,
    config: ResponseConfig,
) -> np.ndarray:
    """float64 [matches], the responder's returns; equal deals for equal seeds."""
    seated, returns, seed = _seated(player, responder, rival), [], config.seed
    numbers = range(config.matches)
    for number in tqdm(numbers, desc=f"matches, player {player}", unit="match"):
        random = np.random.default_rng([seed, player, number])
        chance = np.random.default_rng([seed, number])
        match = play_match(game, seated, random, chance=chance)
        returns.append(match.returns[player])
    return np.array(returns)


def _play_on_tree(
    tree: CompiledGame, behaviour: Behaviours, number: int, random: np.random.Generator
) -> np.ndarray:
    """float64 [2, number], both players' returns of matches between strategies."""
    step = conversions.move_probabilities(tree, behaviour)
    moves = episodes.drawable_moves(tree, np.append(0.0, step))
    stops = tree.histories.player == TERMINAL
    reached = episodes.roll_out(moves, np.zeros(number, np.int64), stops, random)
    utility = tree.histories.utility[reached]
    return np.array([utility, -utility])
