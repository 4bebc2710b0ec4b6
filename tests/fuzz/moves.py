"""All bots of the project in many games, each move checked by OpenSpiel itself.

`python -m tests.fuzz moves FIRST LAST` plays by iterations, `moves_by_clock` with 50 ms
per move and counts late answers; a trial is some moves of one bot in one game.

The referee shares no code with the players: it loads the game by `pyspiel`, asks the
state for its legal actions before the bot is asked, and looks at the whole policy, not
only at the action drawn. Bots meet themselves and random opponents, are made to play
random moves of their own now and then (so that they stand where they would not go),
are restarted in the middle of matches and asked to go on from there.
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
from spiel_cr.players.lookahead_bot import LookaheadResolvingBot
from spiel_cr.policies import best_responses
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.mccfr import mccfr
from tests.fuzz.bots_and_games import BY_ITERATIONS, Kind, Table, table

# An answer is late if it takes this many milliseconds more than its clock allows.
LATE_MS = 10.0
# How often a bot's own move is replaced by a random one; matches are left before their
# end; a bot is asked to go on in the middle of a match.
_RANDOM_MOVES, _LEFT, _RESTARTED = 0.1, 0.1, 0.02
# Policies that must be equal each time they are asked for may differ by this.
_SAME = 1e-9
_MOST_REMEMBERED = 20_000


class Fault(Exception):
    """A bot or a game did what it may not; the message says what."""


class Answer(NamedTuple):
    """How a bot came to a move.

    Attributes:
      action: legal.
      ms: what it took.
      thought: it solved or searched for this answer.
      programs: JAX programs compiled meanwhile.
    """

    action: int
    ms: float
    thought: bool
    programs: int


def _programs() -> int:
    """How many programs there are; asked beside a clock only."""
    return cfr.compilations() + mccfr.compilations() + best_responses.compilations()


def _effort(bot: pyspiel.Bot) -> int:
    """A number that grows when the bot solves or searches."""
    statistics = getattr(bot, "statistics", None)
    return statistics.solves if statistics else int(getattr(bot, "simulations", 0))


class Referee:
    """Asks bots for their moves.

    Attributes:
      table: the game and how its bots are made.
      kind: of the bots.
    """

    def __init__(self, table: Table, kind: Kind) -> None:
        """Knows no policies yet."""
        self.table, self.kind = table, kind
        self._known: dict[tuple[int, str], np.ndarray] = {}

    def ask(
        self, bot: pyspiel.Bot, state: pyspiel.State, rng: np.random.Generator
    ) -> Answer:
        """A bot's move.

        Raises:
          Fault: it is illegal, or the policy is none, or not what it was before.
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
        """A match, which may be left before its end.

        Args:
          bots: of both seats.
          number: of the match. Of three in a row, one is between both bots, the others
            are against a random player.
          seed: of all that is drawn here.

        Raises:
          Fault: an illegal move, or returns that do not sum to zero.
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
    """Matches of a kind of bot in a game.

    Args:
      table: the game.
      kind: of the bots.
      seed: of the bots and of all else.
      most_moves: no match begins after these.
      seconds: nor after these.
      answers: takes each action, and the milliseconds that it took.

    Returns:
      What was counted, ready for JSON. `faults` has what went wrong, with the match;
      `refused` says why these bots do not play this game.
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
        except Exception as error:  # whatever it is, it is reported, and others go on
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
    """Trials of all bots in all games in turn; `only`: games, or kinds of bots.

    Of each bot a trial plays a tenth of the moves of the plan.
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
        # Programs of this game are of no use to the next one.
        if number % len(plan[string]) == 0:
            jax.clear_caches()
        return row

    yield trial
