"""Matches of all bots in many games, with each move checked against OpenSpiel.

`python -m tests.fuzz moves FIRST LAST` limits bots by iterations. `moves_by_clock`
gives them 50 ms per move and counts deadline misses. A trial is a number of moves of
one bot in one game.

The referee shares no code with the players. It loads the game with `pyspiel`, computes
the legal actions before it queries the bot, and checks the whole policy, not only the
action. Bots play against themselves and against random opponents. Some of their moves
are replaced by random ones, so that they reach positions that they would avoid, and
they are sometimes restarted in the middle of a match.
"""

import contextlib
import dataclasses
import math
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pyspiel

from spiel_cr.common.errors import ImperfectRecallError, UncountableTurnsError
from spiel_cr.players.bots import LookaheadResolvingBot
from spiel_cr.policies import best_responses
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.mccfr import mccfr
from tests.fuzz.bots_and_games import BY_ITERATIONS, Kind, Table, table

# A move misses its deadline if it exceeds the time limit by this many milliseconds.
LATE_MS = 10.0
# Probabilities that a bot's move is replaced by a random one, that a match is left
# before its end, and that a bot is restarted in the middle of a match.
_RANDOM_MOVES, _LEFT, _RESTARTED = 0.1, 0.1, 0.02
# Tolerance between policies that must not change from query to query.
_SAME = 1e-9
_MOST_REMEMBERED = 20_000


class Fault(Exception):
    """A violation of the rules by a bot or a game, described in the message."""


class Answer(NamedTuple):
    """A move of a bot.

    Attributes:
      action: The legal action.
      ms: Time for the move in milliseconds.
      thought: Whether the bot solved or searched for this move.
      programs: Number of functions that JAX compiled meanwhile.
    """

    action: int
    ms: float
    thought: bool
    programs: int


def _programs() -> int:
    """Return the number of compiled functions, for bots with a time limit."""
    return cfr.compilations() + mccfr.compilations() + best_responses.compilations()


def _effort(bot: pyspiel.Bot) -> int:
    """Return a number that grows when the bot solves or searches."""
    statistics = getattr(bot, "statistics", None)
    return statistics.solves if statistics else int(getattr(bot, "simulations", 0))


class Referee:
    """A referee that queries bots and checks their moves.

    Attributes:
      table: The game with the objects that its bots share.
      kind: Kind of the bots.
    """

    def __init__(self, table: Table, kind: Kind) -> None:
        """Start without recorded policies."""
        self.table, self.kind = table, kind
        self._known: dict[tuple[int, str], np.ndarray] = {}

    def ask(
        self, bot: pyspiel.Bot, state: pyspiel.State, rng: np.random.Generator
    ) -> Answer:
        """Query a bot for its move.

        Raises:
          Fault: If the move is illegal, or the policy is invalid or has changed.
        """
        player, number = state.current_player(), state.move_number()
        legal = state.legal_actions()
        clocked = self.kind.move_ms is not None
        before, programs = _effort(bot), _programs() if clocked else 0
        begun = time.perf_counter()
        policy = bot.get_policy(state)
        seconds = time.perf_counter() - begun
        if state.move_number() != number or state.current_player() != player:
            raise Fault("the state was changed")
        given = dict(policy)
        odds = np.array([given.get(a, 0.0) for a in legal])
        if set(given) - set(legal) or len(given) != len(policy):
            raise Fault(f"policy {policy}, but {legal} are legal")
        if not ((odds >= 0).all() and abs(odds.sum() - 1) < 1e-6):
            raise Fault(f"policy {policy} is no distribution")
        begun = time.perf_counter()
        action = bot.choose(state, policy)
        ms = 1000 * (seconds + time.perf_counter() - begun)
        if action not in legal:
            raise Fault(f"action {action!r}, but {legal} are legal")
        if self.kind.repeats:
            key = player, state.information_state_string(player)
            if len(self._known) < _MOST_REMEMBERED:
                self._known.setdefault(key, odds)
            if np.abs(self._known.get(key, odds) - odds).max() > _SAME:
                raise Fault(f"policy {odds} after a restart, before {self._known[key]}")
        thought = _effort(bot) > before
        if rng.random() < _RANDOM_MOVES:
            action = int(rng.choice(legal))
        programs = _programs() - programs if clocked else 0
        return Answer(int(action), ms, thought, programs)

    def play(
        self, bots: Sequence[pyspiel.Bot], number: int, seed: int
    ) -> Iterator[Answer]:
        """Play a match, which may be left before its end.

        Args:
          bots: Bots of both seats.
          number: Number of the match. Of three in a row, one is between both bots, and
            the others are against a random player.
          seed: Seed for all random choices of the referee.

        Raises:
          Fault: If a move is illegal, or returns do not sum to zero.
        """
        rng = np.random.default_rng([seed, number])
        seats = ((0, 1), (0,), (1,))[number % 3]
        left = int(rng.integers(1, 8)) if rng.random() < _LEFT else math.inf
        state = self.table.game.new_initial_state()
        for seat in seats:
            bots[seat].restart()
        while not state.is_terminal() and state.move_number() < left:
            player = state.current_player()
            if state.is_chance_node():
                outcomes, odds = zip(*state.chance_outcomes(), strict=True)
                action = int(rng.choice(outcomes, p=np.array(odds) / sum(odds)))
            elif player in seats:
                if rng.random() < _RESTARTED:
                    bots[player].restart_at(state)
                answer = self.ask(bots[player], state, rng)
                yield answer
                action = answer.action
            else:
                action = int(rng.choice(state.legal_actions()))
            for seat in seats:
                if seat != player:
                    bots[seat].inform_action(state, player, action)
            state.apply_action(action)
        if state.is_terminal() and abs(sum(state.returns())) > 1e-9:
            raise Fault(f"returns {state.returns()} do not sum to zero")


def play_chunk(
    table: Table,
    kind: Kind,
    *,
    seed: int,
    most_moves: int,
    seconds: float = math.inf,
    answers: list[tuple[int, float]] | None = None,
) -> dict[str, Any]:
    """Play matches of a kind of bot in a game.

    Args:
      table: The game.
      kind: Kind of the bots.
      seed: Seed for the bots and for all other random choices.
      most_moves: Number of moves after which no match starts.
      seconds: Number of seconds after which no match starts.
      answers: List that receives each action with its time in milliseconds.

    Returns:
      Counts as a JSON object. `faults` lists violations with their match, and `outcome`
      ends in "refused" if the bots do not support the game.
    """
    random = [seed, zlib.crc32(f"{table.string} {kind.name}".encode())]
    first, second = np.random.default_rng(random).integers(2**31, size=2).tolist()
    referee = Referee(table, kind)
    faults: list[str] = []
    refused = ""
    try:
        bots = [kind.make(table, seat, first) for seat in range(2)]
    except (UncountableTurnsError, ImperfectRecallError) as error:  # nothing to resolve
        bots, most_moves, refused = [], 0, str(error)
    except Exception as error:
        bots, most_moves = [], 0
        faults.append(f"made: {type(error).__name__}: {error}")
    begun = time.perf_counter()
    counts = Counter(dict.fromkeys(("moves", "thought", "late", "programs"), 0))
    matches, most_ms = 0, math.inf if kind.move_ms is None else kind.move_ms + LATE_MS
    while counts["moves"] < most_moves and time.perf_counter() - begun < seconds:
        try:
            for answer in referee.play(bots, matches, second):
                counts["moves"] += 1
                counts["thought"] += answer.thought
                counts["late"] += answer.ms > most_ms
                counts["programs"] += answer.programs
                if answers is not None:
                    answers.append((answer.action, answer.ms))
        except Exception as error:  # Any error is reported, and other matches continue.
            faults.append(f"match {matches}: {type(error).__name__}: {error}")
            counts["moves"] += 1
            if len(faults) > 20:
                break
        matches += 1
    for bot in bots:
        if isinstance(bot, LookaheadResolvingBot):
            counts.update(dataclasses.asdict(bot.counts))
    ended = f"{kind.name}{': refused' * bool(refused)}"
    return {"outcome": ended, "game": table.string, "faults": faults, **counts}


@contextlib.contextmanager
def trials(
    only: Sequence[str], plan: Mapping[str, Sequence[Kind]] = BY_ITERATIONS
) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Prepare trials of all bots in all games in turn.

    A trial plays a tenth of the planned moves of a bot.

    Args:
      only: Games or kinds of bots to use; empty for all.
      plan: Kinds of bots by game.
    """
    cells = [
        (string, kind)
        for string, kinds in plan.items()
        for kind in kinds
        if not only or {string, kind.name} & set(only)
    ]

    def trial(number: int) -> dict[str, Any]:
        string, kind = cells[number % len(cells)]
        with table(string) as game:
            most, seconds = max(20, kind.moves // 10), kind.seconds
            row = play_chunk(game, kind, seed=number, most_moves=most, seconds=seconds)
        # Compiled functions of this game are useless for the next one.
        if number % len(plan[string]) == 0:
            jax.clear_caches()
        return row

    yield trial
