"""Responses on compiled games and signal games, whose values are exact."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.announcing import announce
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.signals.form import form_of
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.response_config import Behaviours, ResponseConfig
from spiel_cr.judging.response_matches import (
    Known,
    judged,
    largest_utility,
    play_on_tree,
    play_responses,
    seat_of,
    seated,
)
from spiel_cr.judging.response_seats import Seat, summary
from spiel_cr.judging.responses import ismcts_br
from spiel_cr.judging.responses.local_best_response import lbr
from spiel_cr.judging.state_responses import on_states
from spiel_cr.players import bots, opponent_strings
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.signal_policy import SignalPolicy


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
    if config.method == "learned":
        # Learned in matches; what it then plays is judged exactly all the same.
        policy = conversions.tabular_policy(tree, behaviour)
        known = None if rival else Known(tree, behaviour)
        return on_states(tree.game, player, policy, config, rival=rival, known=known)
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
    else:
        response = ismcts_br.search_response(
            tree, player, other, config.search, seed=seed, progress=True
        )
        found, simulations = response.behaviour, response.simulations
    seconds = time.perf_counter() - begun
    both = seated(player, found, other)
    if rival is not None:
        responder = bots.PolicyBot(player, conversions.tabular_policy(tree, both))
        returns, _ = play_responses(tree.game, player, responder, rival, config)
        return seat_of(tree.game, player, returns, simulations, seconds)
    # Draws of its own for each seat: matches that end at different times would mix
    # equal ones up.
    random = np.random.default_rng([seed, 1, player])
    count = config.matches if config.always_play else 0
    returns = play_on_tree(tree, both, count, random)[player]
    seat = seat_of(tree.game, player, returns, simulations, seconds)
    return judged(seat, Known(tree, behaviour), found)


def on_signals(
    policy: SignalPolicy, players: Sequence[int], config: ResponseConfig
) -> list[Seat]:
    """Best responses to a policy of a signal game, by its signal form.

    Nothing is compiled. Values are exact for the whole game, also where the policy's
    signals are merged ones: merging is equitable, and
    `abstraction.gameshrink.equitable` proves that a best response that sees all cards
    gets no more.

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
        both = seated(player, found, other)
        sign = 1 if player == 0 else -1
        value = sign * best_responses.expected_value(form, reach_of(form, both))
        returns = np.zeros(0)
        if config.always_play:
            response = SignalPolicy(policy.signals, both)
            bot = bots.PolicyBot(player, response, seed=config.seed)
            rival = bots.PolicyBot(1 - player, policy, seed=config.seed)
            returns, _ = play_responses(policy.game, player, bot, rival, config)
        seat = Seat(player, value, True, best, sign * worth, returns, 0, seconds)
        seats.append(seat._replace(largest=largest_utility(policy.game)))
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
