"""Round robins of seat-swapped matches, with confidence intervals.

The unit is a *deal*: two matches in which chance draws from the same numbers, and the
players swap seats in between. The mean of a player's returns in both is one
observation; these are independent, their matches are not. So intervals are computed
over deals.

Every match is a line of `matches.jsonl` as soon as it is over. A tournament that was
stopped plays on from there.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import atomic
from spiel_cr.common.json_log import Record
from spiel_cr.common.record_checks import (
    Test,
    check_fields,
    is_duration,
    is_list,
    is_number,
    is_whole,
    optional,
)
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import Game
from spiel_cr.judging.many_matches import Slot, generator
from spiel_cr.judging.one_match import (
    Observer,
    ProgramCounter,
    play_match,
    statistics_of,
)
from spiel_cr.players.bots import PolicyBot
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

from .round_robin import (
    DEFAULTS,
    SLOT_TESTS,
    Both,
    Instance,
    Kind,
    Made,
    Outcome,
    Records,
    RoundRobinConfig,
    check_slot,
    pairs_csv,
    run_round_robin,
    slots_of,
    tables_of,
)

_BY_SEAT = ("returns", "seconds", "late_moves", "programs_compiled")

_Number = float | None


class Effort(NamedTuple):
    """What a bot did in all its matches.

    Attributes:
      bot: its string.
      moves: that it chose.
      mean_ms: milliseconds per answer, by the referee's clock.
      max_ms: the longest.
      late_moves: answers after its own time was up; None: it keeps no record.
      programs_compiled: JAX programs that were compiled while it was thinking.
      asked: decisions of its `TablePolicy`; None: it has none.
      unmet: those among them at infosets that were never met, where it is uniform.
    """

    bot: str
    moves: int
    mean_ms: float
    max_ms: float
    late_moves: int | None
    programs_compiled: int
    asked: int | None = None
    unmet: int | None = None

    @property
    def unmet_share(self) -> float | None:
        """`unmet` of `asked`; None where it was never asked."""
        return (self.unmet or 0) / self.asked if self.asked else None


class Tournament(NamedTuple):
    """Results; [k, k] of bots, a row's results against a column's.

    Attributes:
      bots: strings.
      mean: the row's mean return, in the game's units; None on the diagonal.
      half_width: of the 95 % confidence interval around the mean; None on the diagonal
        and where one deal was played only.
      matches: played.
      efforts: each bot's.
    """

    bots: tuple[str, ...]
    mean: list[list[_Number]]
    half_width: list[list[_Number]]
    matches: list[list[int]]
    efforts: list[Effort]


def play_tournament(
    game: Game,
    bots: Sequence[str],
    matches: int,
    out: atomic.Path,
    config: RoundRobinConfig = DEFAULTS,
    *,
    observers: Sequence[Observer] = (),
) -> Tournament:
    """Plays what is not in the folder yet, and writes the tables.

    Bots are made once for each seat, and restarted for each match. Bots whose budget is
    iterations, and which forget between matches, play the same matches for the same
    seed, however often the tournament was stopped. (`oos` goes on learning from match
    to match, and a clock never ticks twice alike.)

    Args:
      game: OpenSpiel game string, game, or compiled game (with `observations=True`).
      bots: two or more strings for `load_bot`.
      matches: of each pair of bots; an odd number is rounded up. May be raised later.
      out: folder; holds `settings.json`, `matches.jsonl`, `table.csv`, `summary.json`.
      config: seed, memory, what is shown.
      observers: see `play_match`.

    Raises:
      OSError: a match or a table cannot be written. What was before is kept.
      ValueError: a bad argument, a game too large for a bot, a folder with another
        tournament in it, or a bot that chose what it may not.
      pyspiel.SpielError: OpenSpiel does not know the game.
    """
    kind = Kind(
        lines="matches",
        table="table.csv",
        title="tournament",
        what="match",
        play=lambda instance, made, slot: _play(
            instance, bots, made, slot, config.seed, observers
        ),
        check_line=functools.partial(_check_line, tuple(bots)),
        tabulate=lambda records: _outcome(
            bots,
            records,
            utility_bounds(open_game(game).game),
        ),
    )
    return run_round_robin(game, bots, matches, out, kind, config)


_EACH_SEAT: dict[str, Test] = {
    "returns": is_number,
    "seconds": is_list(is_duration),
    "late_moves": optional(is_whole),
    "programs_compiled": is_whole,
}
_LINE: dict[str, Test] = {
    **SLOT_TESTS,
    "actions": is_list(is_whole),
    **{name: is_list(test) for name, test in _EACH_SEAT.items()},
    "unmet": is_list(optional(is_list(is_whole, 2)), 2),
}


def _check_line(bots: Sequence[str], record: Record) -> None:
    """Raises ValueError where a line is no match of these bots."""
    check_fields(record, _LINE)
    if [len(record[name]) for name in _BY_SEAT] != [2] * len(_BY_SEAT):
        raise ValueError(f"is wrong: two values are due in each of {_BY_SEAT}")
    check_slot(bots, record)


def _play(
    instance: Instance,
    bots: Sequence[str],
    made: Made,
    slot: Slot,
    seed: int,
    observers: Sequence[Observer],
) -> dict[str, Any]:
    """Plays a match; returns its line of the log."""
    names = [bots[number] for number in slot.seats]
    players = [made[number, seat] for seat, number in enumerate(slot.seats)]
    chance = generator(seed, slot, 0)
    draws = generator(seed, slot, 2 if slot.swapped else 1)
    late = [_late_moves(player) for player in players]
    counts = [_counts(player) for player in players]
    programs = ProgramCounter()
    try:
        match = play_match(
            instance, players, draws, chance=chance, observers=(programs, *observers)
        )
    except ValueError as error:
        raise ValueError(
            f"match of {names[0]} and {names[1]}, deal {slot.deal}: {error}"
        ) from error
    return {
        **slot._asdict(),
        "players": names,
        "returns": match.returns,
        "actions": match.actions,
        "seconds": [[round(s, 7) for s in own] for own in match.seconds],
        "late_moves": [
            None if before is None else (_late_moves(player) or 0) - before
            for before, player in zip(late, players, strict=True)
        ],
        "programs_compiled": programs.counts,
        "unmet": [
            None
            if before is None or after is None
            else np.subtract(after, before).tolist()
            for before, after in zip(counts, map(_counts, players), strict=True)
        ],
    }


def _late_moves(bot: pyspiel.Bot) -> int | None:
    statistics = statistics_of(bot)
    return None if statistics is None else statistics.late_moves


def _counts(bot: pyspiel.Bot) -> tuple[int, int] | None:
    """How often a bot's `TablePolicy` was asked, and had not met the infoset."""
    policy = bot.policy if isinstance(bot, PolicyBot) else None
    if isinstance(policy, TablePolicy):
        return policy.asked, policy.unmet
    return None


_AS_PLAYER = ("mean_as_player_0", "mean_as_player_1")
_DIAGONAL = {"matches": 0, **dict.fromkeys(("mean", "half_width", *_AS_PLAYER))}


def _outcome(
    bots: Sequence[str], records: Records, bounds: tuple[float, float] | None
) -> Outcome[Tournament]:
    pair = functools.partial(_pair, records, bounds)
    tables = tables_of(len(bots), _DIAGONAL, pair)
    efforts = [_effort(bot, number, records) for number, bot in enumerate(bots)]
    own = {name: table for name, table in tables.items() if name not in _AS_PLAYER}
    found = Tournament(tuple(bots), **own, efforts=efforts)
    summary = found._asdict() | {"efforts": [effort._asdict() for effort in efforts]}
    return Outcome(found, summary, pairs_csv(bots, tables))


def _pair(
    records: Records, bounds: tuple[float, float] | None, row: int, column: int
) -> Both:
    """What two bots won from each other."""
    slots = slots_of(records, row, column)
    # Of each deal, as player 0 and as player 1.
    returns = np.empty((len(slots) // 2, 2))
    for slot in slots:
        seat = int(slot.swapped)
        returns[slot.deal, seat] = records[slot]["returns"][seat]
    mean, half = mean_and_half_width(returns.mean(axis=1), bounds)
    first, second = returns.mean(axis=0).tolist()
    return {
        "matches": (len(slots), len(slots)),
        "mean": (mean, 0.0 - mean),
        "half_width": (half, half),
        _AS_PLAYER[0]: (first, -second),
        _AS_PLAYER[1]: (second, -first),
    }


def _effort(bot: str, number: int, records: Records) -> Effort:
    matches = [
        {name: record[name][slot.seats.index(number)] for name in (*_BY_SEAT, "unmet")}
        for slot, record in records.items()
        if number in slot.seats
    ]
    milliseconds = [1000 * s for match in matches for s in match["seconds"]]
    late = [match["late_moves"] for match in matches]
    counted = [match["unmet"] for match in matches if match["unmet"] is not None]
    asked, unmet = np.sum(counted, axis=0).tolist() if counted else (None, None)
    return Effort(
        bot=bot,
        moves=len(milliseconds),
        mean_ms=float(np.mean(milliseconds)) if milliseconds else 0.0,
        max_ms=max(milliseconds, default=0.0),
        late_moves=None if None in late else sum(late),
        programs_compiled=sum(match["programs_compiled"] for match in matches),
        asked=asked,
        unmet=unmet,
    )
