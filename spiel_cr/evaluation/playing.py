"""A player's strategy where it is met, by playing matches.

The *game-playing* evaluator, for games whose infosets are too many to ask at each. The
strategies that a player shows in matches are averaged infoset by infoset, and NashConv
of the whole is judged with uniform play where it was never met. The opponent keeps
matches long, so that much of the game is met: it picks at random among the actions that
do not end the game.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.evaluation import traversing
from spiel_cr.games.opening.game_checks import chance_outcomes, player_return
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import conversions
from spiel_cr.policies.bot_base import Learns


class Met(NamedTuple):
    """What a match showed of a player.

    Attributes:
      match: its number.
      seat: the player's.
      keys: the information states at which it was asked.
      policies: its probabilities of the legal actions there.
      utility: the player's, at the end.
      work: what the match cost it.
    """

    match: int
    seat: int
    keys: list[str]
    policies: list[list[float]]
    utility: float
    work: traversing.Work


def seat_of(match: int) -> int:
    """The seats alternate from match to match."""
    return match % 2


def long_matches_action(state: pyspiel.State, random: np.random.Generator) -> int:
    """Any action that does not end the game at once; if all do, any action.

    Args:
      state: where the opponent acts.
      random: consumed.
    """
    legal = state.legal_actions()
    going_on = [a for a in legal if not state.child(a).is_terminal()]
    return int(random.choice(going_on or legal))


def play(compiled: GameTree, bot: pyspiel.Bot, match: int, *, seed: int) -> Met:
    """Plays one match; the opponent avoids ending the game early.

    A bot that `Learns` forgets what it learned in other matches.

    Args:
      compiled: the game.
      bot: the player; its actions are drawn here, by the probabilities that it gives.
      match: number of the match: part of the seed, so that any match can be played
        again, or after an interruption, without those before it.
      seed: of chance, the opponent, and the bot's actions.

    Raises:
      ValueError: the bot gives no policy, or not a distribution over legal actions.
    """
    player = bot.player_id()
    random = np.random.default_rng([seed, match])
    interview = traversing.Interview(bot)
    keys, policies = [], []
    state = compiled.game.new_initial_state()
    bot.restart()
    if isinstance(bot, Learns):
        bot.forget()
    while not state.is_terminal():
        actor = state.current_player()
        if state.is_chance_node():
            actions, chances = zip(*chance_outcomes(state), strict=True)
            action = int(random.choice(actions, p=chances))
        elif actor == player:
            answer = interview.ask(state)
            keys.append(state.information_state_string(player))
            policies.append(answer.tolist())
            action = int(random.choice(state.legal_actions(), p=answer))
        else:
            action = long_matches_action(state, random)
            bot.inform_action(state, actor, action)
        state.apply_action(action)
    utility = player_return(state, player)
    return Met(match, player, keys, policies, utility, interview.work())


def aggregate(
    compiled: GameTree, player: int, matches: Iterable[Met]
) -> traversing.SeatStrategy:
    """The mean of what a player showed in one seat; uniform where it was never met.

    Args:
      compiled: the game.
      player: the seat; matches of the other one are passed over.
      matches: in any order.
    """
    infosets = compiled.infosets[player]
    numbers = {key: number for number, key in enumerate(infosets.keys)}
    first = infosets.decisions.first_sequence
    total = np.zeros(infosets.decisions.num_sequences)
    met = np.zeros(len(infosets), np.int64)
    work = traversing.Work()
    for match in matches:
        if match.seat != player:
            continue
        work = work.plus(match.work)
        for key, shown in zip(match.keys, match.policies, strict=True):
            number = numbers[key]
            total[first[number] : first[number] + len(shown)] += shown
            met[number] += 1
    behaviour = conversions.uniform_behaviour(infosets.decisions)
    times = np.concatenate([[0], met[infosets.decisions.owner[1:]]])
    known = times > 0
    behaviour[known] = total[known] / times[known]
    return traversing.SeatStrategy(behaviour, met, work)
