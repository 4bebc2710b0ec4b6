"""Round robins of seat-swapped matches, with confidence intervals.

The unit is a *deal*: two matches in which chance draws from the same random numbers,
and the players swap seats in between. The mean of a player's returns in both matches is
one observation. Deals are independent, their two matches are not, so intervals are
computed over deals.

Every match is written to `matches.jsonl` as soon as it is over, so that an interrupted
tournament can be resumed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import atomic
from spiel_cr.common import json_records as checks
from spiel_cr.common.json_log import Record
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation import referee
from spiel_cr.evaluation.aivat import Baseline, baseline
from spiel_cr.evaluation.matches import Slot, generator
from spiel_cr.games.opening.game_checks import payoff_offset, utility_bounds
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.bots import policy_of
from spiel_cr.solvers.mccfr.table.table_policy import table_queries

from . import round_robin
from .round_robin import DEFAULTS, Instance, Records, RoundRobinConfig, Tables

_Number = float | None


class Effort(NamedTuple):
    """Moves and times of a bot in all its matches.

    Attributes:
      bot: Bot string.
      moves: Number of moves.
      mean_ms: Mean milliseconds per answer, by the referee's clock.
      max_ms: Milliseconds of the longest answer.
      deadline_misses: Number of answers after the bot's time limit; None if the bot
        does not record them.
      compilations: Number of JAX functions compiled during its moves.
      queried: Number of decisions of its `TablePolicy`; None if it has no such policy.
      unvisited: Number of these decisions at unvisited infosets, where it is uniform.
    """

    bot: str
    moves: int
    mean_ms: float
    max_ms: float
    deadline_misses: int | None
    compilations: int
    queried: int | None = None
    unvisited: int | None = None

    @property
    def unvisited_share(self) -> float | None:
        """The share `unvisited` / `queried`; None without any queries."""
        return (self.unvisited or 0) / self.queried if self.queried else None


class Tournament(NamedTuple):
    """Results of matches: [k, k] tables of each row's bot against each column's.

    Attributes:
      bots: Bot strings.
      mean: Mean return of the row, in the game's units; None on the diagonal.
      half_width: Half width of its 95% confidence interval; None on the diagonal and
        after a single deal.
      matches: Number of matches.
      efforts: Moves and times of each bot.
      plain_half_width: Half width without variance reduction; None if `mean` has none.
      plain_mean: Mean return without variance reduction; not written to files.
    """

    bots: tuple[str, ...]
    mean: list[list[_Number]]
    half_width: list[list[_Number]]
    matches: list[list[int]]
    efforts: list[Effort]
    plain_half_width: list[list[_Number]] | None = None
    plain_mean: list[list[_Number]] | None = None


def play_tournament(
    game: Game,
    bots: Sequence[str],
    matches: int,
    out: atomic.Path,
    config: RoundRobinConfig = DEFAULTS,
    *,
    observers: Sequence[referee.Observer] = (),
    aivat: str | None = None,
) -> Tournament:
    """Play the matches that the folder lacks, and write the tables.

    Bots are made once for each seat, and restarted for each match. For the same seed,
    bots with a budget of iterations and no memory of earlier matches play the same
    matches, even if the tournament is interrupted. `oos` learns from match to match,
    and time limits depend on the clock.

    Args:
      game: OpenSpiel game string, game, or game tree (with `observations=True`).
      bots: Two or more strings for `load_bot`.
      matches: Number of matches of each pair of bots; an odd number is rounded up. A
        later call may raise it.
      out: Folder of `settings.json`, `matches.jsonl`, `table.csv` and `summary.json`.
      config: Seed, memory limit and progress bars.
      observers: Functions called with each action, see `play_match`.
      aivat: Policy for variance reduction by its values against itself, see
        `spiel_cr.evaluation.aivat`; exact if the game tree fits into memory.

    Raises:
      OSError: If a match or a table cannot be written. Earlier ones are kept.
      ValueError: If an argument is invalid, the game is too large for a bot, the folder
        belongs to another tournament, or a bot chose an illegal action.
      pyspiel.SpielError: If OpenSpiel does not know the game.
    """
    kind = _Matches(tuple(bots), config.seed, open_game(game).game, observers)
    if aivat is not None:
        kind.values = baseline(game, aivat, memory_limit=config.memory_limit)
        kind.settings, game = {"aivat": aivat}, kind.values.instance
    return round_robin.run_round_robin(game, bots, matches, out, kind, config)


# Fields with a value for each seat.
_LINE: dict[str, checks.Test] = {
    "returns": checks.is_list(checks.is_number, 2),
    "seconds": checks.is_list(checks.is_list(checks.is_duration), 2),
    "deadline_misses": checks.is_list(checks.optional(checks.is_count), 2),
    "compilations": checks.is_list(checks.is_count, 2),
    "unvisited": checks.is_list(checks.optional(checks.is_list(checks.is_count, 2)), 2),
}
_AS_PLAYER = ("mean_as_player_0", "mean_as_player_1")


class _Matches:
    """Matches as a kind of round robin."""

    unit, lines, table = "match", "matches", "table.csv"
    settings: Record = {}
    values: Baseline | None = None

    def __init__(
        self,
        bots: tuple[str, ...],
        seed: int,
        game: pyspiel.Game,
        observers: Sequence[referee.Observer],
    ) -> None:
        self._bots, self._seed = bots, seed
        self._game, self._observers = game, observers
        self._bounds, self._offset = utility_bounds(game), payoff_offset(game)

    def check(self, record: Record) -> None:
        checks.check_fields(record, {"actions": checks.is_list(checks.is_count)})
        checks.check_fields(record, _LINE)
        if self.values is not None:
            checks.check_fields(record, {"aivat": checks.is_number})

    def play(
        self, instance: Instance, players: Sequence[Sequence[pyspiel.Bot]], slot: Slot
    ) -> Record:
        seated = [bots_of_player[seat] for seat, bots_of_player in enumerate(players)]
        late = [_deadline_misses(bot) for bot in seated]
        policies = [policy_of(bot) for bot in seated]
        queries = [table_queries(policy) for policy in policies]
        compilations = referee.CompilationCounter()
        match = referee.play_match(
            instance,
            seated,
            generator(self._seed, slot, 2 if slot.swapped else 1),
            chance=generator(self._seed, slot, 0),
            observers=(compilations, *self._observers),
        )
        values = self.values
        return {
            **({} if values is None else {"aivat": values.estimate(match)}),
            "returns": [value + self._offset for value in match.returns],
            "actions": match.actions,
            "seconds": [
                [round(s, 7) for s in bots_of_player]
                for bots_of_player in match.seconds
            ],
            "deadline_misses": [
                None if count is None else (_deadline_misses(bot) or 0) - count
                for count, bot in zip(late, seated, strict=True)
            ],
            "compilations": compilations.counts,
            "unvisited": [
                None
                if old is None or new is None
                else [new[0] - old[0], new[1] - old[1]]
                for old, new in zip(queries, map(table_queries, policies), strict=True)
            ],
        }

    def pair(self, records: Records) -> dict[str, tuple[Any, Any]]:
        # For each deal, returns as player 0 and as player 1.
        plain, returns = np.empty((2, len(records) // 2, 2))
        for slot, record in records.items():
            seat = int(slot.swapped)
            paid = [value - self._offset for value in record["returns"]]
            plain[slot.deal, seat] = paid[seat]
            first = paid[0] if self.values is None else record["aivat"]
            returns[slot.deal, seat] = -first if seat else first
        mean, half = mean_and_half_width(returns.mean(axis=1), self._bounds)
        lucky = mean_and_half_width(plain.mean(axis=1), self._bounds)[1]
        first, second = returns.mean(axis=0).tolist()
        offset = self._offset
        without = {} if self.values is None else {"plain_half_width": (lucky, lucky)}
        return {
            "matches": (len(records), len(records)),
            "mean": (offset + mean, offset - mean),
            "half_width": (half, half),
            **without,
            _AS_PLAYER[0]: (offset + first, offset - second),
            _AS_PLAYER[1]: (offset + second, offset - first),
        }

    def result(self, tables: Tables, records: Records) -> tuple[Tournament, Record]:
        efforts = [_effort(bot, n, records) for n, bot in enumerate(self._bots)]
        shown = {name: tables[name] for name in tables if name not in _AS_PLAYER}
        tournament = Tournament(self._bots, **shown, efforts=efforts)
        summary = tournament._asdict() | {"efforts": [e._asdict() for e in efforts]}
        del summary["plain_mean"]
        if self.values is not None:
            lucky = _Matches(self._bots, self._seed, self._game, ()).pair
            plain = round_robin.tables_of(len(self._bots), records, lucky)
            tournament = tournament._replace(plain_mean=plain["mean"])
        return tournament, summary


def _deadline_misses(bot: pyspiel.Bot) -> int | None:
    statistics = referee.statistics_of(bot)
    return None if statistics is None else statistics.deadline_misses


def _effort(bot: str, number: int, records: Records) -> Effort:
    matches = [
        {name: record[name][slot.seats.index(number)] for name in _LINE}
        for slot, record in records.items()
        if number in slot.seats
    ]
    milliseconds = [1000 * s for match in matches for s in match["seconds"]]
    late = [match["deadline_misses"] for match in matches]
    counted = [
        match["unvisited"] for match in matches if match["unvisited"] is not None
    ]
    queried, unvisited = np.sum(counted, axis=0).tolist() if counted else (None, None)
    return Effort(
        bot=bot,
        moves=len(milliseconds),
        mean_ms=float(np.mean(milliseconds)) if milliseconds else 0.0,
        max_ms=max(milliseconds, default=0.0),
        deadline_misses=None if None in late else sum(late),
        compilations=sum(match["compilations"] for match in matches),
        queried=queried,
        unvisited=unvisited,
    )
