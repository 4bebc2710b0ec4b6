"""A player's strategy everywhere, by asking it at every infoset.

The *traversing* evaluator. A player that thinks during a match has no table to read. So
it is asked at each of its infosets, after those that lead there: a resolving player has
then resolved all its earlier decisions on the way, as in a match. All infosets of a
subgame come before those of the next one, so that a player that keeps its last
solutions solves each subgame once. A player that learns from what it is asked (online
outcome sampling) is asked at each infoset as in its first match, with what it learned
on the way there and nothing else. What it answers is a whole strategy, and OpenSpiel's
exact tools judge it.
"""

import dataclasses
import math
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common.errors import HiddenTurnsError
from spiel_cr.common.short_repr import short_repr
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.evaluation.referee import statistics_of
from spiel_cr.games.histories import states_in_order
from spiel_cr.games.opening.game_checks import chance_outcomes, player_return
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.bot_base import Learns, gives_policy, policy_at
from spiel_cr.policies.foreign import distribution
from spiel_cr.resolving.decomposition import decompose


class Work(NamedTuple):
    """What answers cost a bot.

    Attributes:
      moves: answers given.
      late_moves: answers after more than the bot's own `move_ms`.
      max_ms: the longest that an answer took.
      programs_compiled: JAX programs compiled while answering.
      seconds: of wall-clock time for all answers.
    """

    moves: int = 0
    late_moves: int = 0
    max_ms: float = 0.0
    programs_compiled: int = 0
    seconds: float = 0.0

    def plus(self, other: "Work") -> "Work":
        return Work(
            self.moves + other.moves,
            self.late_moves + other.late_moves,
            max(self.max_ms, other.max_ms),
            self.programs_compiled + other.programs_compiled,
            self.seconds + other.seconds,
        )


class SeatStrategy(NamedTuple):
    """What is known of a player's strategy in one seat.

    Attributes:
      behaviour: float64 [S], action probabilities by logical sequence; uniform at
        infosets where nothing is known.
      met: int64 [I], how often each infoset was met.
      work: what that cost the bot.
    """

    behaviour: np.ndarray
    met: np.ndarray
    work: Work

    def __repr__(self) -> str:
        return short_repr(self)


class Evaluation(NamedTuple):
    """How good a player is, both seats together.

    Attributes:
      nash_conv: of its strategy, uniform at infosets where it was not met; in the
        game's units.
      infosets: of both players.
      infosets_defined: at how many of them the player was met.
      moves, late_moves, max_ms, programs_compiled, seconds: see `Work`.
      judge: who computed NashConv, one of `openspiel_evaluator.EVALUATORS`.
    """

    nash_conv: float
    infosets: int
    infosets_defined: int
    moves: int
    late_moves: int = 0
    max_ms: float = 0.0
    programs_compiled: int = 0
    seconds: float = 0.0
    judge: str = "openspiel"


class Interview:
    """Asks a bot for its policy, and keeps what that costs the bot."""

    def __init__(self, bot: pyspiel.Bot) -> None:
        self._bot = bot
        self._seconds: list[float] = []
        found = statistics_of(bot)
        self._before = None if found is None else dataclasses.replace(found)

    def ask(self, state: pyspiel.State) -> np.ndarray:
        """float64 [A], the bot's probabilities of the legal actions, in their order.

        Args:
          state: where the bot acts.

        Raises:
          ValueError: the bot gives no policy, or not a distribution over legal actions.
        """
        name = type(self._bot).__name__
        if not gives_policy(self._bot):
            raise ValueError(
                f"bot {name} does not provide probabilities (get_policy); use "
                f"play_matches instead"
            )
        started = time.perf_counter()
        given = policy_at(self._bot, state)
        self._seconds.append(time.perf_counter() - started)
        player = state.current_player()
        answer = distribution(
            given,
            state.legal_actions(),
            state.num_distinct_actions(),
            lambda: (
                f"bot {name} at the information state "
                f"{state.information_state_string(player)!r}"
            ),
        )
        return np.array(answer) / sum(answer)

    def work(self) -> Work:
        """What all answers cost: as the bot recorded it, or as measured here."""
        now, before = statistics_of(self._bot), self._before
        seconds = math.fsum(self._seconds)
        if before is None or now is None:
            slowest = 1000 * max(self._seconds, default=0.0)
            return Work(len(self._seconds), max_ms=slowest, seconds=seconds)
        return Work(
            now.moves - before.moves,
            now.late_moves - before.late_moves,
            now.max_ms,
            now.programs_compiled - before.programs_compiled,
            seconds,
        )


def traverse(
    compiled: GameTree,
    bot: pyspiel.Bot,
    player: int | None = None,
    *,
    progress: bool = False,
) -> SeatStrategy:
    """Asks a bot once at each of its infosets.

    A bot that `Learns` forgets what it learned before, and at each infoset knows what
    it learned at those that lead there, as in its first match. What it answers depends
    on its seed then, and not on the order of the infosets; without a clock it is a
    strategy that it would play in that match.

    Args:
      compiled: the game that the bot was made for.
      bot: for either seat; `restart` is called once, at the beginning.
      player: The bot's player; None: the bot has a method `player_id`.
      progress: show a progress bar on stderr.

    Raises:
      ValueError: the bot gives no policy, or not a distribution over legal actions.
    """
    player = bot.player_id() if player is None else player
    infosets = compiled.infosets[player]
    first = infosets.decisions.first_sequence
    behaviour = conversions.uniform_behaviour(infosets.decisions)
    interview = Interview(bot)
    bot.restart()
    levels = infosets.decisions.levels()
    # What it had learned before each decision of the match, while it learns.
    memories = []
    if isinstance(bot, Learns):
        bot.forget()
        memories.append(bot.memory)
        order = _by_matches(infosets.decisions)
    else:
        order = by_subgames(compiled, player)
    bar = tqdm(order, desc=f"seat {player}", disable=not progress)
    states = states_in_order(compiled.game, compiled.histories, infosets.history[order])
    for infoset, state in zip(bar, states, strict=True):
        if isinstance(bot, Learns):
            del memories[levels[infoset] + 1 :]
            bot.remember(memories[-1])
        answer = interview.ask(state)
        behaviour[first[infoset] : first[infoset] + len(answer)] = answer
        if isinstance(bot, Learns):
            memories.append(bot.memory)
    met = np.ones(len(infosets), np.int64)
    return SeatStrategy(behaviour, met, interview.work())


def by_subgames(compiled: GameTree, player: int) -> np.ndarray:
    """int64 [I], infosets subgame by subgame, each subgame before what lies below it.

    Where the opponent cannot tell the player's turns apart, and there are no subgames,
    those with fewer own decisions before them come first.

    Args:
      compiled: the game; without observations its subgames may be larger than those of
        a player that has them.
      player: whose infosets.
    """
    decisions = compiled.infosets[player].decisions
    parent, levels = decisions.owner[decisions.parent], decisions.levels()
    order = np.argsort(levels, kind="stable")
    try:
        subgame = decompose(compiled, player).player_subgame
    except HiddenTurnsError:
        return order
    # Nodes of the tree of subgames, which is walked depth-first; those of -1 open none,
    # and belong to the last one.
    nodes: dict[tuple[int, int], int] = {}
    node = np.zeros(len(decisions), np.int64)
    for infoset in order:
        above = int(node[parent[infoset]]) if parent[infoset] >= 0 else 0
        opened = int(subgame[infoset])
        if opened >= 0:
            above = nodes.setdefault((above, opened), 1 + len(nodes))
        node[infoset] = above
    below: dict[int, list[tuple[int, int]]] = {}
    for (above, opened), number in nodes.items():
        below.setdefault(above, []).append((opened, number))
    rank, waiting = np.zeros(1 + len(nodes), np.int64), [(0, 0)]
    for place in range(len(rank)):
        _, number = waiting.pop()
        rank[number] = place
        waiting += sorted(below.get(number, []), reverse=True)
    return order[np.argsort(rank[node[order]], kind="stable")]


def _by_matches(decisions: Decisions) -> np.ndarray:
    """int64 [I], infosets, each right after those that lead there or others below."""
    parent = decisions.owner[decisions.parent]
    below: dict[int, list[int]] = {}
    for infoset in reversed(range(len(decisions))):
        below.setdefault(int(parent[infoset]), []).append(infoset)
    order, waiting = [], below.get(-1, [])
    while waiting:
        infoset = waiting.pop()
        order.append(infoset)
        waiting += below.get(infoset, [])
    return np.array(order, np.int64)


def evaluate(
    compiled: GameTree, seats: tuple[SeatStrategy, SeatStrategy]
) -> Evaluation:
    """Judges a player by its strategies in both seats.

    Args:
      compiled: the game.
      seats: as player 0 and as player 1.
    """
    behaviours = seats[0].behaviour, seats[1].behaviour
    work = seats[0].work.plus(seats[1].work)
    if openspiel_evaluator.is_beyond(compiled, None):
        low, high = best_responses.value_bounds(compiled.form, behaviours)
        nash_conv, judge = high - low, "spiel_cr"
    else:
        table = conversions.tabular_policy(compiled, behaviours)
        nash_conv, _, judge, *_ = openspiel_evaluator.evaluate(compiled.game, table)
    return Evaluation(
        nash_conv,
        sum(len(seat.met) for seat in seats),
        sum(int((seat.met > 0).sum()) for seat in seats),
        *work,
        judge=judge,
    )


def summarise(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Repeats as one: mean NashConv, the fewest defined infosets, all the work."""
    work = Work()
    for one in evaluations:
        work = work.plus(Work(*one[3:-1]))
    return Evaluation(
        math.fsum(one.nash_conv for one in evaluations) / len(evaluations),
        evaluations[0].infosets,
        min(one.infosets_defined for one in evaluations),
        *work,
        judge=evaluations[0].judge,
    )


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
    work: Work


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
    interview = Interview(bot)
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


def aggregate(compiled: GameTree, player: int, matches: Iterable[Met]) -> SeatStrategy:
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
    work = Work()
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
    return SeatStrategy(behaviour, met, work)
