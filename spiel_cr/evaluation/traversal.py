"""Strategies of bots, from queries at every infoset or from observed matches.

A bot that thinks during a match has no table to read. It is therefore queried at each
of its infosets, after the infosets that lead there, so that a re-solving bot has solved
all its earlier decisions, as in a match. All infosets of a subgame come before those of
the next one, so that a bot that keeps its last solutions solves each subgame once. A
bot that learns from queries (online outcome sampling) is queried at each infoset as in
its first match: it remembers only the queries at the infosets that lead there.

In games with too many infosets for that, the strategies that are observed in matches
are averaged infoset by infoset. The opponent keeps matches long so that many infosets
are visited: it picks at random among the actions that do not end the game.
"""

import dataclasses
import math
import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.errors import UncountableTurnsError
from spiel_cr.common.messages import progress_bar, short_repr
from spiel_cr.evaluation.referee import statistics_of
from spiel_cr.games.histories import states_in_order
from spiel_cr.games.opening.game_checks import chance_outcomes, player_return
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import conversions
from spiel_cr.policies.bot_base import as_learner, gives_policy, policy_at
from spiel_cr.policies.queries import distribution_at
from spiel_cr.resolving.decomposition import decompose


class Work(NamedTuple):
    """Cost of a bot's answers.

    Attributes:
      moves: Number of answers.
      deadline_misses: Number of answers after more than the bot's `move_ms`.
      max_ms: Longest time of an answer, in milliseconds.
      compilations: Number of functions that XLA compiled meanwhile.
      seconds: Wall-clock time of all answers.
    """

    moves: int = 0
    deadline_misses: int = 0
    max_ms: float = 0.0
    compilations: int = 0
    seconds: float = 0.0

    def plus(self, other: "Work") -> "Work":
        """Return the sum, with the longest time of both."""
        return Work(
            self.moves + other.moves,
            self.deadline_misses + other.deadline_misses,
            max(self.max_ms, other.max_ms),
            self.compilations + other.compilations,
            self.seconds + other.seconds,
        )


class QueriedStrategy(NamedTuple):
    """Strategy of a bot for one player; uniform where the bot was not queried.

    Attributes:
      behaviour: Action probabilities by sequence, float64 [S]; uniform at infosets that
        were not visited.
      visits: Number of visits of each infoset, int64 [I].
      work: Cost of the bot's answers.
    """

    behaviour: np.ndarray
    visits: np.ndarray
    work: Work

    def __repr__(self) -> str:
        return short_repr(self)


class Interview:
    """Queries of a bot, and their cost."""

    def __init__(self, bot: pyspiel.Bot) -> None:
        self._bot = bot
        self._seconds: list[float] = []
        statistics = statistics_of(bot)
        self._before = None if statistics is None else dataclasses.replace(statistics)

    def ask(self, state: pyspiel.State) -> np.ndarray:
        """Return the bot's probabilities of the legal actions, in their order.

        Args:
          state: A state in which the bot acts.

        Returns:
          float64 [A].

        Raises:
          ValueError: If the bot does not provide a distribution over legal actions.
        """
        name = type(self._bot).__name__
        if not gives_policy(self._bot):
            raise ValueError(
                f"bot: {name} does not provide probabilities (get_policy); use "
                f"play_matches instead"
            )
        start = time.perf_counter()
        policy = policy_at(self._bot, state)
        self._seconds.append(time.perf_counter() - start)
        answer = distribution_at(policy, state, f"bot {name}")
        return np.array(answer) / sum(answer)

    def work(self) -> Work:
        """Return the cost of all answers: as the bot recorded it, or as measured."""
        now, before = statistics_of(self._bot), self._before
        seconds = math.fsum(self._seconds)
        if before is None or now is None:
            slowest = 1000 * max(self._seconds, default=0.0)
            return Work(len(self._seconds), max_ms=slowest, seconds=seconds)
        return Work(
            now.moves - before.moves,
            now.deadline_misses - before.deadline_misses,
            now.max_ms,
            now.compilations - before.compilations,
            seconds,
        )


def traverse(
    tree: GameTree, bot: pyspiel.Bot, player: int | None = None
) -> QueriedStrategy:
    """Query a bot once at each of its infosets.

    A bot that `Learns` is reset first. At each infoset it remembers only the queries at
    the infosets that lead there, as in its first match. Its answers then depend on its
    seed, and not on the order of the infosets; without a time limit they are a strategy
    that it could play in that match.

    Args:
      tree: The game tree of the bot's game.
      bot: The bot; `restart` is called once, at the beginning.
      player: The bot's player; None if the bot has a method `player_id`.

    Raises:
      ValueError: If the bot does not provide a distribution over legal actions.
    """
    player = bot.player_id() if player is None else player
    infosets = tree.infosets[player]
    first = infosets.decisions.first_sequence
    behaviour = conversions.uniform_behaviour(infosets.decisions)
    interview = Interview(bot)
    bot.restart()
    levels = infosets.decisions.levels()
    # The bot's memory before each decision of the match, if it learns.
    memories = []
    learner = as_learner(bot)
    if learner is not None:
        learner.reset()
        memories.append(learner.memory)
        order = _depth_first(infosets.decisions, np.arange(len(infosets)))
    else:
        order = by_subgames(tree, player)
    bar = progress_bar(order, desc=f"seat {player}")
    states = states_in_order(tree.game, tree.histories, infosets.history[order])
    for infoset, state in zip(bar, states, strict=True):
        if learner is not None:
            del memories[levels[infoset] + 1 :]
            learner.remember(memories[-1])
        answer = interview.ask(state)
        behaviour[first[infoset] : first[infoset] + len(answer)] = answer
        if learner is not None:
            memories.append(learner.memory)
    visits = np.ones(len(infosets), np.int64)
    return QueriedStrategy(behaviour, visits, interview.work())


def by_subgames(tree: GameTree, player: int) -> np.ndarray:
    """Return a player's infosets subgame by subgame, each before those below it.

    If the game cannot be decomposed into subgames, because the opponent cannot
    distinguish the player's turns, infosets with fewer earlier decisions come first.

    Args:
      tree: The game tree. Without observations its subgames may be larger than those of
        a bot that has them.
      player: The player of the infosets.

    Returns:
      int64 [I].
    """
    decisions = tree.infosets[player].decisions
    try:
        return _depth_first(decisions, decompose(tree, player).player_subgame)
    except UncountableTurnsError:
        return np.argsort(decisions.levels(), kind="stable")


def _depth_first(decisions: Decisions, labels: np.ndarray) -> np.ndarray:
    """Return a player's infosets in the order of a depth-first walk, int64 [I].

    Args:
      decisions: The player's decisions.
      labels: Place of each infoset among those that follow the same one, int [I]. A
        negative one means that the infoset belongs to the place of the one before it.
    """
    parent = decisions.owner[decisions.parent].tolist()
    order = np.argsort(decisions.levels(), kind="stable").tolist()
    paths: list[tuple[int, ...]] = [()] * len(decisions)
    for infoset in order:
        above = paths[parent[infoset]] if parent[infoset] >= 0 else ()
        label = int(labels[infoset])
        paths[infoset] = (*above, label) if label >= 0 else above
    return np.array(sorted(order, key=paths.__getitem__), np.int64)


class ObservedMatch(NamedTuple):
    """Strategy and result of a bot in one match.

    Attributes:
      match: Number of the match.
      player: The bot's player.
      keys: Information states at which the bot was queried.
      policies: Its probabilities of the legal actions there.
      utility: The bot's utility at the end.
      work: Cost of its answers.
    """

    match: int
    player: int
    keys: list[str]
    policies: list[list[float]]
    utility: float
    work: Work


def player_in(match: int) -> int:
    """Return the bot's player in a match; it alternates."""
    return match % 2


def long_matches_action(state: pyspiel.State, random: np.random.Generator) -> int:
    """Sample an action that does not end the game at once; if all do, any action.

    Args:
      state: A state in which the opponent acts.
      random: Random numbers, consumed.
    """
    legal = state.legal_actions()
    continuing = [a for a in legal if not state.child(a).is_terminal()]
    return int(random.choice(continuing or legal))


def play(tree: GameTree, bot: pyspiel.Bot, match: int, *, seed: int) -> ObservedMatch:
    """Play one match against an opponent that avoids ending the game early.

    A bot that `Learns` is reset first.

    Args:
      tree: The game tree.
      bot: The bot. Its actions are sampled here, by the probabilities it returns.
      match: Number of the match. It is part of the seed, so that any match can be
        played again without those before it.
      seed: Seed for chance, the opponent, and the bot's actions.

    Raises:
      ValueError: If the bot does not provide a distribution over legal actions.
    """
    player = bot.player_id()
    random = np.random.default_rng([seed, match])
    interview = Interview(bot)
    keys, policies = [], []
    state = tree.game.new_initial_state()
    bot.restart()
    if (learner := as_learner(bot)) is not None:
        learner.reset()
    while not state.is_terminal():
        actor = state.current_player()
        if state.is_chance_node():
            actions, probabilities = zip(*chance_outcomes(state), strict=True)
            action = int(random.choice(actions, p=probabilities))
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
    return ObservedMatch(match, player, keys, policies, utility, interview.work())


def aggregate(
    tree: GameTree, player: int, matches: Iterable[ObservedMatch]
) -> QueriedStrategy:
    """Average a bot's strategies over matches; uniform at infosets without visits.

    Args:
      tree: The game tree.
      player: The player; matches in which the bot was the other one are skipped.
      matches: The matches, in any order.
    """
    infosets = tree.infosets[player]
    numbers = {key: number for number, key in enumerate(infosets.keys)}
    first = infosets.decisions.first_sequence
    total = np.zeros(infosets.decisions.num_sequences)
    visits = np.zeros(len(infosets), np.int64)
    work = Work()
    for match in matches:
        if match.player != player:
            continue
        work = work.plus(match.work)
        for key, policy in zip(match.keys, match.policies, strict=True):
            number = numbers[key]
            total[first[number] : first[number] + len(policy)] += policy
            visits[number] += 1
    behaviour = conversions.uniform_behaviour(infosets.decisions)
    times = np.concatenate([[0], visits[infosets.decisions.owner[1:]]])
    visited = times > 0
    behaviour[visited] = total[visited] / times[visited]
    return QueriedStrategy(behaviour, visits, work)
