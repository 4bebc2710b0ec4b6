"""All bots of the project in many games, each move checked by OpenSpiel itself.

`python -m tests.fuzz.moves` plays by iterations until there are a million moves;
`--clock` plays with 50 ms per move and counts late answers. What was played is kept in
a folder, and a run that was stopped goes on from there.

The referee shares no code with the players: it loads the game by `pyspiel`, asks the
state for its legal actions before the bot is asked, and looks at the whole policy, not
only at the action drawn. Bots meet themselves and random opponents, are made to play
random moves of their own now and then (so that they stand where they would not go),
are restarted in the middle of matches and asked to go on from there.
"""

import argparse
import dataclasses
import itertools
import math
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pyspiel
from tqdm import tqdm

from benchmarks.frame import Option, facts
from spiel_cr.common.errors import HiddenTurnsError
from spiel_cr.common.json_log import JsonLog
from spiel_cr.players.partial_bots import PartialResolvingBot
from spiel_cr.policies import best_responses
from spiel_cr.resolving.clock import KeepsStatistics
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.mccfr import mccfr
from tests.fuzz.bots_and_games import BY_CLOCK, BY_ITERATIONS, Kind, Table, table

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
    return cfr.programs() + mccfr.programs() + best_responses.programs()


def _effort(bot: pyspiel.Bot) -> int:
    """A number that grows when the bot solves or searches."""
    if isinstance(bot, KeepsStatistics):
        return bot.statistics.solves
    return int(getattr(bot, "simulations", 0))


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
        before, programs = _effort(bot), _programs()
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
        return Answer(int(action), ms, thought, _programs() - programs)

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
    begun, referee = time.perf_counter(), Referee(table, kind)
    faults: list[str] = []
    refused = ""
    try:
        bots = [kind.make(table, seat, first) for seat in range(2)]
    except HiddenTurnsError as error:  # such games have no layers to resolve
        bots, most_moves, refused = [], 0, str(error)
    except Exception as error:
        bots, most_moves = [], 0
        faults.append(f"made: {type(error).__name__}: {error}")
    made = time.perf_counter() - begun
    moves = thought = late = programs = matches = 0
    worst = spent = pondered = 0.0
    begun = time.perf_counter()
    while moves < most_moves and time.perf_counter() - begun < seconds:
        try:
            for answer in referee.play(bots, matches, second):
                moves, programs = moves + 1, programs + answer.programs
                thought += answer.thought
                spent += answer.ms
                pondered += answer.ms * answer.thought
                worst = max(worst, answer.ms)
                late += kind.move_ms is not None and answer.ms > kind.move_ms + LATE_MS
                if answers is not None:
                    answers.append((answer.action, answer.ms))
        except Exception as error:  # whatever it is, it is reported, and others go on
            faults.append(f"match {matches}: {type(error).__name__}: {error}")
            moves += 1
            if len(faults) > 20:
                break
        matches += 1
    counts = Counter[str]()
    for bot in bots:
        if isinstance(bot, PartialResolvingBot):
            counts += Counter(dataclasses.asdict(bot.counts))
    return {
        "matches": matches,
        "moves": moves,
        "thought": thought,
        "late": late,
        "max_ms": worst,
        "mean_ms": spent / max(1, moves),
        "mean_thought_ms": pondered / max(1, thought),
        "programs": programs,
        "plan": counts["plan"],
        "blueprint": counts["blueprint"],
        "made_s": made,
        "refused": refused,
        "faults": faults,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays what is not in the folder yet; 1 if anything went wrong."""
    options = parser().parse_args(arguments)
    plan = BY_CLOCK if options.clock else BY_ITERATIONS
    name = "moves_clock" if options.clock else "moves"
    out = options.out or f"out/fuzz/{name}"
    target = options.moves or (100_000 if options.clock else 1_000_000)
    settings = {"clock": options.clock, "seed": options.seed}
    key = "part", "game", "bot"
    cells = [
        (string, kind)
        for string in options.games or plan
        for kind in plan.get(string, ())
        if not options.bots or kind.name in options.bots
    ]
    if not cells:
        raise SystemExit("--games and --bots: none of these games has such a bot")
    with JsonLog(out, "chunks", settings, key=key, facts=facts()) as log:
        done = sum(record["moves"] for record in log.records.values())
        with tqdm(
            total=target, initial=done, unit="move", disable=options.quiet
        ) as progress:
            for part in itertools.count():
                left = [
                    (string, kind)
                    for string, kind in cells
                    if (part, string, kind.name) not in log.records
                ]
                before = done
                for string, kinds in itertools.groupby(left, key=lambda cell: cell[0]):
                    if done < target:
                        chosen = [kind for _, kind in kinds]
                        done += _play_game(string, chosen, part, log, options, progress)
                if done >= target or (left and done == before):
                    break
        rows = list(log.records.values())
    print(report(rows))
    return 1 if any(row["faults"] or row["late"] for row in rows) else 0


def _play_game(
    string: str,
    kinds: Sequence[Kind],
    part: int,
    log: JsonLog,
    options: argparse.Namespace,
    progress: tqdm,
) -> int:
    """One part of a game; how many moves were made."""
    moves = 0
    with table(string) as game:
        for kind in kinds:
            progress.set_postfix_str(f"{string[:24]} {kind.name}")
            row = play_chunk(
                *(game, kind),
                seed=options.seed + part,
                most_moves=max(1, int(kind.moves * options.share)),
                seconds=kind.seconds,
            )
            log.add({"part": part, "game": string, "bot": kind.name, **row})
            progress.update(row["moves"])
            moves += row["moves"]
            for fault in row["faults"]:
                again = f"--games '{string}' --bots '{kind.name}'"
                tqdm.write(f"FAULT {again}, part {part}, {fault}")
    # Programs of this game are of no use to the next one.
    jax.clear_caches()
    return moves


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.moves",
        description="Play all bots in many games and check every move.",
    )
    parser.add_argument("--clock", action="store_true", help="50 ms per move")
    words = "to play in all (default: a million, and 100000 by the clock)"
    Option(None, words, kind=int).add(parser, "moves")
    words = "of the moves of each bot in each game, per part"
    Option(1.0, words).add(parser, "share")
    parser.add_argument("--games", nargs="+", help="of the plan; default: all")
    parser.add_argument("--bots", nargs="+", help="of the plan; default: all")
    Option(0, "of everything", least=0).add(parser, "seed")
    parser.add_argument("--out", help="folder of the run (default out/fuzz/moves...)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


_SUMS = "moves", "thought", "late", "programs", "plan", "blueprint", "matches"


def report(rows: Sequence[dict[str, Any]]) -> str:
    """Counts by bot, by game and in all, as text."""
    lines = []
    for group in ("bot", "game"):
        lines.append(
            f"{group:58} {'moves':>9} {'thought':>9} {'late':>5} {'longest':>9} "
            f"{'mean':>8} {'thinking':>8} {'programs':>8} {'plan':>8} "
            f"{'blueprint':>9} {'faults':>6}"
        )
        for name in dict.fromkeys(row[group] for row in rows):
            lines.append(_line(name, [row for row in rows if row[group] == name]))
        lines.append("")
    lines.append(_line("all", rows))
    games = len({row["game"] for row in rows})
    lines.append(f"{games} games, {len({row['bot'] for row in rows})} bots; ms")
    return "\n".join(lines)


def _line(name: str, rows: Sequence[dict[str, Any]]) -> str:
    total = {key: sum(row[key] for row in rows) for key in _SUMS}
    mean = sum(row["mean_ms"] * row["moves"] for row in rows) / max(1, total["moves"])
    thinking = sum(row["mean_thought_ms"] * row["thought"] for row in rows)
    thinking /= max(1, total["thought"])
    worst = max((row["max_ms"] for row in rows), default=0.0)
    faults = sum(len(row["faults"]) for row in rows)
    return (
        f"{name[:58]:58} {total['moves']:9,} {total['thought']:9,} {total['late']:5} "
        f"{worst:9.1f} {mean:8.2f} {thinking:8.2f} {total['programs']:8} "
        f"{total['plan']:8} {total['blueprint']:9} {faults:6}"
    )


if __name__ == "__main__":
    sys.exit(main())
