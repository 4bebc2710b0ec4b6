"""Approximate NashConv: responses are found, and measured beside the exact ones."""

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_choice, check_iterations, check_whole
from spiel_cr.compilation.game_checks import utility_bounds
from spiel_cr.compilation.tree import TERMINAL, CompiledGame
from spiel_cr.players import bots, opponent_strings
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.bot_base import Learns
from spiel_cr.responses import (
    episodes,
    ismcts_br,
    ismcts_br_bot,
    learn_compiled,
    learn_states,
    opponents,
    posterior,
)
from spiel_cr.responses.arrays import RulesResponder
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.responses.learning import LearningConfig, Stage
from spiel_cr.responses.local_best_response import LBRBot, lbr
from spiel_cr.responses.particles import ParticleConfig
from spiel_cr.responses.poker_roles import NotPokerError
from spiel_cr.responses.rollouts import Answers
from spiel_cr.responses.state_posterior import StatePosterior
from spiel_cr.responses.state_responder import StateResponder
from spiel_cr.sequence_form.decisions import Decisions
from spiel_cr.signals.form import form_of
from spiel_cr.signals.policy import SignalPolicy

from .control_variates import Luck, without_luck
from .match import play_match
from .response_seats import Seat, mean_of_matches, summary

METHODS = ("exact", "ismcts", "lbr", "learned", "flat")

# Of a round of learning on states, where an episode takes a tenth of a second or more.
_EPISODES = 64

Behaviours = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class ResponseConfig:
    """How a response is found and measured.

    Attributes:
      method: one of `METHODS`.
      search: settings of "ismcts", and of the searches of "learned"; of "flat" its
        simulations.
      leaf: of "lbr", see `local_best_response.LEAVES`; None: "call" in poker, else
        "uniform".
      rollouts: of "lbr" where the game is not compiled, per decision.
      rounds: of "learned", of episodes and training.
      matches: to estimate the value by, two or more.
      always_play: play them also where the value is exact, to compare.
      max_histories: of exact beliefs on states; larger ones are approximated.
      particles: of approximate beliefs.
      luck_rollouts: after each move of chance and the opponent and one drawn in its
        place, for the control variate of matches on states; 0: plain returns.
      seed: of searches and matches.
    """

    method: str = "ismcts"
    search: SearchConfig = SearchConfig()
    leaf: str | None = None
    rollouts: int = 1000
    rounds: int = 20
    matches: int = 1000
    always_play: bool = True
    max_histories: int = 100_000
    particles: int = ParticleConfig.particles
    luck_rollouts: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.method, "method", METHODS)
        check_iterations(self.rounds, name="rounds")
        check_iterations(self.rollouts, name="rollouts")
        check_iterations(self.max_histories, name="max_histories")
        check_iterations(self.particles, name="particles")
        check_whole(self.luck_rollouts, "luck_rollouts", 0)
        # An interval needs two.
        check_whole(self.matches, "matches", 2)

    def leaf_for(self, game: pyspiel.Game) -> str:
        """How local best response plays after its action."""
        try:
            opponents.chump(game, "always_call")
        except NotPokerError:
            return self.leaf or "uniform"
        return self.leaf or "call"


class Known(NamedTuple):
    """A compiled game and an opponent whose strategy is known.

    Attributes:
      tree: the compiled game.
      behaviour: both players' action probabilities under the opponent's policy, each
        float64 [S]; the responder's tell what the policy itself gets in its seat.
    """

    tree: CompiledGame
    behaviour: Behaviours


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
    announce(f"{config.method} response of player {player}")
    other, seed = behaviour[1 - player], config.seed
    begun, simulations = time.perf_counter(), 0
    if not len(tree.infosets[player]):
        # Who never decides has one strategy.
        found = np.ones(1)
    elif config.method == "exact":
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
        returns, _ = _play(tree.game, player, responder, rival, config)
        return _seat(tree.game, player, returns, simulations, seconds)
    # Draws of its own for each seat: matches that end at different times would mix
    # equal ones up.
    random = np.random.default_rng([seed, 1, player])
    count = config.matches if config.always_play else 0
    returns = _play_on_tree(tree, both, count, random)[player]
    seat = _seat(tree.game, player, returns, simulations, seconds)
    return _judged(seat, Known(tree, behaviour), found)


def on_signals(
    policy: SignalPolicy, players: Sequence[int], config: ResponseConfig
) -> list[Seat]:
    """Best responses to a policy of a signal game, by its signal form.

    Nothing is compiled. Values are exact for the whole game, also where the policy's
    signals are merged ones: merging is equitable, and `gameshrink.equitable` proves
    that a best response that sees all cards gets no more.

    Args:
      policy: of both players.
      players: the seats of the response.
      config: matches and seed.

    Returns:
      For each of the players a seat.
    """
    form = form_of(policy.signals)
    first, second = map(normalised, form.decisions, policy.behaviour)
    reach = reach_of(form, (first, second))
    worth = best_responses.expected_value(form, reach)
    seats = []
    for player in players:
        begun, other = time.perf_counter(), (first, second)[1 - player]
        found = best_responses.best_response(form, player, reach[1 - player])
        seconds = time.perf_counter() - begun
        best = best_responses.best_response_value(form, player, reach[1 - player])
        both = _seated(player, found, other)
        sign = 1 if player == 0 else -1
        value = sign * best_responses.expected_value(form, reach_of(form, both))
        returns = np.zeros(0)
        if config.always_play:
            response = SignalPolicy(policy.signals, both)
            bot = bots.PolicyBot(player, response, seed=config.seed)
            rival = bots.PolicyBot(1 - player, policy, seed=config.seed)
            returns, _ = _play(policy.game, player, bot, rival, config)
        seat = Seat(player, value, True, best, sign * worth, returns, 0, seconds)
        seats.append(seat._replace(largest=_largest(policy.game)))
    return seats


def normalised(decisions: Decisions, behaviour: np.ndarray) -> np.ndarray:
    """float64 [S], probabilities that sum to 1 also where they were kept in float32."""
    owner, played = decisions.owner[1:], behaviour[1:].astype(np.float64)
    total = np.bincount(owner, played, minlength=len(decisions))
    return np.append(1.0, played / total[owner])


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
    known: Known | None = None,
) -> Seat:
    """Measures a response that searches in matches, on OpenSpiel's states.

    Where the opponent is known on a compiled game, the best response's value is, too,
    and the response is asked at each infoset that it comes to, as in a match; so its
    own value is exact. It stays the mean of matches where these infosets are more than
    the matches, and in matches against a rival.

    Args:
      game: sequential, as from `load_game`.
      player: the responder.
      opponent: its policy.
      config: how; not by the method "exact".
      rival: who plays the matches in the opponent's place, where its policy is an
        estimate.
      known: the opponent on the compiled game; None: the game is too large, or the
        opponent is estimated.

    Raises:
      ValueError: a bad argument, or a method that needs the whole tree.
      ImportError: "learned" without the extra [deep].
    """
    if config.method == "exact":
        raise ValueError(
            f"method={config.method!r} needs the whole tree, and the game was not "
            f"compiled; choose ismcts, lbr, learned or flat, or allow more memory"
        )
    announce(f"{config.method} response of player {player}, on states")
    begun = time.perf_counter()
    responder, simulations = _responder(game, player, opponent, config)
    found = None
    if known is not None and not config.always_play:
        other = known.behaviour[1 - player]
        found = played_strategy(known.tree, responder, other, most=config.matches)
    returns, half = np.zeros(0), None
    if found is None:
        luck = None
        if config.luck_rollouts and not isinstance(rival, Learns):
            uniform = openspiel_policy.UniformRandomPolicy(game)
            policies = _seated(player, uniform, opponent)
            luck = {p: Answers(policy, p) for p, policy in enumerate(policies)}
        opposed = rival or bots.PolicyBot(1 - player, opponent, seed=config.seed)
        returns, half = _play(
            *(game, player, responder, opposed, config),
            luck=luck,
            opponent_is_known=rival is None,
        )
        if known is not None:
            other = known.behaviour[1 - player]
            found = played_strategy(known.tree, responder, other, most=config.matches)
    seconds = time.perf_counter() - begun
    simulations += responder.simulations
    seat = _seat(game, player, returns, simulations, seconds)
    seat = seat._replace(plain_half_width=half, beliefs=responder.beliefs)
    return seat if known is None else _judged(seat, known, found)


def _responder(
    game: pyspiel.Game,
    player: int,
    opponent: openspiel_policy.Policy,
    config: ResponseConfig,
) -> tuple[StateResponder, int]:
    """Who looks ahead in matches, and the simulations that it learned from before."""
    seed, simulations = config.seed, 0
    if config.method == "flat":
        flat = RulesResponder(
            *(game, player, opponent),
            simulations=config.search.simulations,
            particles=config.particles,
            seed=seed,
        )
        return flat, 0
    belief = StatePosterior(
        game,
        player,
        # Against a uniform opponent, every consistent history is possible.
        openspiel_policy.UniformRandomPolicy(game)
        if config.method != "lbr" and config.search.posterior == "uniform"
        else opponent,
        max_histories=config.max_histories,
        particles=ParticleConfig(config.particles),
        seed=seed,
    )
    if config.method == "lbr":
        leaf, rollouts = config.leaf_for(game), config.rollouts
        local = LBRBot(
            *(game, player, opponent),
            leaf=leaf,
            rollouts=rollouts,
            seed=seed,
            belief=belief,
        )
        return local, 0
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
        *(game, player, opponent, config.search),
        seed=seed,
        prior_and_value=prior_and_value,
        rollout=rollout_of(opponent, config.search),
        belief=belief,
    )
    return responder, simulations


def rollout_of(
    opponent: openspiel_policy.Policy, search: SearchConfig
) -> openspiel_policy.Policy | None:
    """How a searching response plays in rollouts: as the policy does in its seat.

    At random where the search is to be the paper's, and where a bot's moves would have
    to be counted for it at many information states.

    Args:
      opponent: the policy, of both seats.
      search: of the response.
    """
    counted = isinstance(opponent, opponents.BotPolicy)
    return opponent if search.histories == "all" and not counted else None


def played_strategy(
    tree: CompiledGame, responder: StateResponder, other: np.ndarray, *, most: int
) -> np.ndarray | None:
    """What a responder plays at each infoset that it comes to.

    Each is reached as in a match: the responder is restarted, and asked at all its
    decisions before. Its draws are made from its seed and what it knows, so it answers
    as it does in matches.

    Args:
      tree: the compiled game.
      responder: what it answers must be pure.
      other: float64 [S'], the opponent's action probabilities.
      most: infosets with a choice at which it is asked.

    Returns:
      float64 [S], action probabilities, uniform where it never comes; None if it comes
      to more than `most` infosets with a choice.
    """
    player = responder.player_id()
    infosets, histories = tree.infosets[player], tree.histories
    decisions = infosets.decisions
    first, counts = decisions.first_sequence, decisions.num_actions
    odds = posterior.weights(tree, player, other)
    own = np.flatnonzero(histories.player == player)
    # The likeliest history of each infoset: the opponent does lead there.
    own = own[np.argsort(odds[own], kind="stable")]
    likeliest = np.zeros(len(infosets), np.int64)
    likeliest[histories.infoset[own]] = own
    possible = odds[likeliest] > 0
    behaviour = conversions.uniform_behaviour(decisions)
    comes = np.zeros(decisions.num_sequences, bool)
    comes[0] = True
    asked = 0
    for infoset in np.argsort(decisions.levels(), kind="stable"):
        if not (possible[infoset] and comes[decisions.parent[infoset]]):
            continue
        place, count = 0, int(counts[infoset])
        if count > 1:
            asked += 1
            if asked > most:
                return None
            answer = _asked_at(tree, responder, int(likeliest[infoset]))
            place = int(np.argmax(answer))
        begin = int(first[infoset])
        behaviour[begin : begin + count] = 0.0
        behaviour[begin + place] = 1.0
        comes[begin + place] = True
    return behaviour


def _asked_at(
    tree: CompiledGame, responder: StateResponder, history: int
) -> list[float]:
    """Probabilities at a history of the responder, in a match that leads there."""
    state = tree.game.new_initial_state()
    responder.restart()
    for action in tree.histories.actions_to(history):
        if state.current_player() == responder.player_id():
            responder.get_policy(state)
        state.apply_action(action)
    return [probability for _, probability in responder.get_policy(state)]


def _seat(
    game: pyspiel.Game,
    player: int,
    returns: np.ndarray,
    simulations: int,
    seconds: float,
) -> Seat:
    """A response by its returns in matches, float64 [matches]; nan without any."""
    largest = _largest(game)
    mean = mean_of_matches(returns, largest)[0] if len(returns) else math.nan
    seat = Seat(player, mean, False, None, None, returns, simulations, seconds)
    return seat._replace(largest=largest)


def _largest(game: pyspiel.Game) -> float:
    """The largest utility of a game, without sign; 0 where it is not bounded."""
    return float(np.abs(utility_bounds(game) or 0.0).max())


def _judged(seat: Seat, known: Known, found: np.ndarray | None) -> Seat:
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
    seated, returns, seed = _seated(player, responder, rival), [], config.seed
    numbers, lucks = range(config.matches), []
    for number in tqdm(numbers, desc=f"matches, player {player}", unit="match"):
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
                    *(player, luck, own),
                    rollouts=config.luck_rollouts,
                    opponent_is_known=opponent_is_known,
                )
            ]
        match = play_match(game, seated, random, chance=chance, observers=observers)
        returns.append(match.returns[player])
        lucks += [observer.total for observer in observers]
    plain = np.array(returns)
    if luck is None:
        return plain, None
    return without_luck(plain, np.array(lucks)), mean_of_matches(plain, _largest(game))[
        1
    ]


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
