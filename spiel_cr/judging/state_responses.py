"""Responses that look ahead in matches, on OpenSpiel's states."""

import time

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.announcing import announce
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.response_config import ResponseConfig
from spiel_cr.judging.response_matches import (
    Known,
    judged,
    play_responses,
    seat_of,
    seated,
)
from spiel_cr.judging.response_seats import Seat
from spiel_cr.judging.responses import ismcts_br_bot, posterior
from spiel_cr.judging.responses.ismcts_config import SearchConfig
from spiel_cr.judging.responses.learning import LearningConfig, learn_response
from spiel_cr.judging.responses.local_best_response import LBRBot
from spiel_cr.judging.responses.particles import ParticleConfig
from spiel_cr.judging.responses.state_posterior import StatePosterior
from spiel_cr.judging.responses.state_responder import StateResponder
from spiel_cr.players import bots, opponents
from spiel_cr.policies import conversions
from spiel_cr.policies.bot_base import Learns
from spiel_cr.policies.rollouts import Answers


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
            f"compiled; choose ismcts, lbr or learned, or allow more memory"
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
            policies = seated(player, uniform, opponent)
            luck = {p: Answers(policy, p) for p, policy in enumerate(policies)}
        opposed = rival or bots.PolicyBot(1 - player, opponent, seed=config.seed)
        returns, half = play_responses(
            game,
            player,
            responder,
            opposed,
            config,
            luck=luck,
            opponent_is_known=rival is None,
        )
        if known is not None:
            other = known.behaviour[1 - player]
            found = played_strategy(known.tree, responder, other, most=config.matches)
    seconds = time.perf_counter() - begun
    simulations += responder.simulations
    seat = seat_of(game, player, returns, simulations, seconds)
    seat = seat._replace(plain_half_width=half, beliefs=responder.beliefs)
    return seat if known is None else judged(seat, known, found)


def _responder(
    game: pyspiel.Game,
    player: int,
    opponent: openspiel_policy.Policy,
    config: ResponseConfig,
) -> tuple[StateResponder, int]:
    """Who looks ahead in matches, and the simulations that it learned from before."""
    seed, simulations = config.seed, 0
    belief = StatePosterior(
        game,
        player,
        opponent,
        max_histories=config.max_histories,
        particles=ParticleConfig(config.particles),
        seed=seed,
    )
    if config.method == "lbr":
        leaf, rollouts = config.leaf_for(game), config.rollouts
        local = LBRBot(
            game,
            player,
            opponent,
            leaf=leaf,
            rollouts=rollouts,
            seed=seed,
            belief=belief,
        )
        return local, 0
    prior_and_value: ismcts_br_bot.StatePriorAndValue = ismcts_br_bot.uniform_prior
    if config.method == "learned":
        settings = LearningConfig(search=config.search, rounds=config.rounds)
        learned = learn_response(
            game, player, opponent, settings, seed=seed, progress=True
        )
        prior_and_value, simulations = learned.prior_and_value, learned.simulations
    responder = ismcts_br_bot.ISMCTSBRBot(
        game,
        player,
        opponent,
        config.search,
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
