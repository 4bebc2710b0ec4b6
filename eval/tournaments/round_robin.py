"""Round robins between bots: the plan of matches, seats, and the folder of results.

The unit is a *deal*: two matches, or sessions of matches, in which chance draws from
the same random numbers. The players swap seats in between.
"""

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import pyspiel

from spiel_cr.common import atomic, json_log, storage
from spiel_cr.common import json_records as checks
from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.common.executor import Executor
from spiel_cr.common.json_log import Record
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import progress_bar
from spiel_cr.evaluation.matches import Slot
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.player_specs import MEMORY_LIMIT, load_bot, prepare
from spiel_cr.players.player_strings import read_string

from ..common.files import csv_text, write_all

# The game, in the form that the bots need.
Instance: TypeAlias = GameTree | PublicTreeGame | pyspiel.Game
Records: TypeAlias = Mapping[Slot, Record]
# Tables by name: results of the row's bot against the column's bot.
Tables: TypeAlias = dict[str, list[list[Any]]]
_Result = TypeVar("_Result", covariant=True)


class Kind(Protocol[_Result]):
    """Unit of a round robin: matches, or sessions of several hands.

    Attributes:
      unit: Noun for one unit, for errors and progress bars.
      lines: Name of the file of JSON lines, without ".jsonl".
      table: Name of the file of the CSV table.
      settings: Settings of the folder, in addition to game, bots and seed.
    """

    unit: str
    lines: str
    table: str
    settings: Record

    def check(self, record: Record) -> None:
        """Raise ValueError if a line is invalid, except for slot and players."""

    def play(
        self, instance: Instance, players: Sequence[Sequence[pyspiel.Bot]], slot: Slot
    ) -> Record:
        """Play one unit.

        Args:
          instance: Game.
          players: Bots of both players of the slot, for seats 0 and 1.
          slot: Slot of the plan.

        Returns:
          Fields of the line, in addition to slot and players.

        Raises:
          ValueError: If a bot chose an illegal action.
        """

    def pair(self, records: Records) -> dict[str, tuple[Any, Any]]:
        """Return the entries of a pair of bots in each table, and the reverse entries.

        Args:
          records: Records of the slots of the pair.
        """

    def result(self, tables: Tables, records: Records) -> tuple[_Result, Record]:
        """Return the result of a run, and its form for `summary.json`."""


@dataclasses.dataclass(frozen=True)
class RoundRobinConfig:
    """Settings of a round robin.

    Attributes:
      seed: Seed for all random choices of chance and of the bots.
      memory_limit: Memory limit for game trees that bots need: bytes, or a size such as
        "3GB".
      executor: Executor of the matches. Bots that learn from match to match (oos) learn
        separately in each worker.
      progress: Whether to show progress bars on stderr.
      unwritten: Function that is called with the error if a table cannot be written. If
        None, the error is raised.
    """

    seed: int = 0
    memory_limit: Limit = MEMORY_LIMIT
    executor: Executor = Executor()
    progress: bool | None = None
    unwritten: Callable[[OSError], object] | None = None


DEFAULTS = RoundRobinConfig()


def run_round_robin(
    game: Game,
    bots: Sequence[str],
    matches: int,
    out: atomic.Path,
    kind: Kind[_Result],
    config: RoundRobinConfig,
) -> _Result:
    """Play the units that the folder lacks, and write the tables.

    Args:
      game: OpenSpiel game string, game, or game tree (with `observations=True`).
      bots: Two or more strings for `load_bot`.
      matches: Number of units of each pair of bots; an odd number is rounded up.
      out: Folder of `settings.json`, the lines, the table and `summary.json`.
      kind: Unit of the round robin.
      config: Seed, memory limit and progress bars.

    Raises:
      OSError: If a line or a table cannot be written. Earlier ones are kept.
      ValueError: If an argument is invalid, the game is too large for a bot, the folder
        belongs to another tournament, or a bot chose an illegal action.
      pyspiel.SpielError: If OpenSpiel does not know the game.
    """
    if len(bots) < 2:
        raise ValueError(
            f"bots={';'.join(bots)!r}: a tournament needs two bots or more; write 'A;B'"
        )
    check_iterations(matches, name="matches")
    check_seed(config.seed)
    folder = json_log.check_folder(out)
    # A finished tournament is shown again even if the file of a bot was removed.
    if not json_log.has_lines(folder, kind.lines):
        for bot in bots:
            read_string(bot, "bot")
    instance = prepare(game, bots, memory_limit=config.memory_limit)
    plan = _plan(len(bots), matches)

    def check(record: Record) -> None:
        _check_slot(bots, record)
        kind.check(record)

    with json_log.JsonLog(
        folder,
        kind.lines,
        {**_settings(instance, bots, config.seed), **kind.settings},
        key=Slot._fields,
        facts={"versions": storage.versions()},
        label=kind.unit,
        check=check,
        merge=_same_run,
    ) as log:
        done = sum(slot in log.records for slot in plan)
        shown = config.progress and config.executor.is_in_process
        setup = instance, bots, config.seed, kind, shown
        for _ in progress_bar(
            log.map(config.executor, _SlotWorker, setup, {slot: slot for slot in plan}),
            total=len(plan),
            initial=done,
            desc="tournament",
            unit=kind.unit,
            progress=config.progress,
            disable=done == len(plan),
        ):
            pass
        # A folder may contain more units than this call requests.
        records = {slot: log.records[slot] for slot in plan}
        tables = tables_of(len(bots), records, kind.pair)
        result, summary = kind.result(tables, records)
        text = json.dumps(json_log.sealed({**log.settings, **summary}), indent=1)
        files = {kind.table: _pairs_csv(bots, tables), "summary.json": f"{text}\n"}
        write_all(folder, files, config.unwritten)
    return result


def _plan(num_bots: int, matches: int) -> list[Slot]:
    """Return all slots, deal by deal, so that early slots cover all pairs alike."""
    pairs = itertools.combinations(range(num_bots), 2)
    return [
        Slot(deal, row, column, swapped)
        for deal, (row, column), swapped in itertools.product(
            range((matches + 1) // 2), pairs, (False, True)
        )
    ]


# Fields of each line.
_SLOT: dict[str, checks.Test] = {
    "deal": checks.is_count,
    "row": checks.is_count,
    "column": checks.is_count,
    "swapped": checks.is_boolean,
}


def _check_slot(bots: Sequence[str], record: Record) -> None:
    """Raise ValueError if a line does not belong to a slot of these bots."""
    checks.check_fields(record, _SLOT)
    slot = Slot(*(record[name] for name in Slot._fields))
    if not slot.row < slot.column < len(bots):
        raise ValueError(f"has no bots {slot.row} and {slot.column} of {len(bots)}")
    if record.get("players") != [bots[number] for number in slot.seats]:
        raise ValueError("has other players than these bots")


def tables_of(
    size: int, records: Records, pair: Callable[[Records], dict[str, tuple[Any, Any]]]
) -> Tables:
    """Return tables of all pairs of bots.

    Args:
      size: Number of bots.
      records: Records of all slots.
      pair: Function like `Kind.pair`.
    """
    tables: Tables = {}
    for i, j in itertools.combinations(range(size), 2):
        records_of_pair = {
            s: records[s] for s in records if (s.row, s.column) == (i, j)
        }
        for name, (result, other) in pair(records_of_pair).items():
            # No bot plays against itself: counts are 0 there, all other entries None.
            alone = 0 if isinstance(result, int) else None
            table = tables.setdefault(name, [[alone] * size for _ in range(size)])
            table[i][j], table[j][i] = result, other
    return tables


def _pairs_csv(bots: Sequence[str], tables: Tables) -> str:
    """Return a line per pair, with the first bot's entry of each table."""
    return csv_text(
        ["row", "column", *tables],
        (
            [bots[i], bots[j], *(table[i][j] for table in tables.values())]
            for i, j in itertools.combinations(range(len(bots)), 2)
        ),
    )


def _settings(instance: Instance, bots: Sequence[str], seed: int) -> Record:
    """Return the settings of a tournament that its folder contains."""
    tree = instance if isinstance(instance, GameTree) else None
    return {
        "game": str(open_game(instance).game),
        "bots": list(bots),
        "seed": seed,
        "fingerprint": None if tree is None else tree.game_id,
    }


def _same_run(settings: Record, new: Record) -> Record:
    """Return the settings with which a folder is continued; for `JsonLog`.

    Strings of one game can differ, so its tree is compared, if it was built.

    Args:
      settings: Settings in the folder.
      new: Settings of this run.

    Raises:
      OtherRunError: If they differ, or one run has sessions and the other matches.
    """
    json_log.same_settings(settings, {name: new[name] for name in ("bots", "seed")})
    for name in ("session", "aivat"):
        if settings.get(name) != new.get(name):
            raise json_log.OtherRunError(
                f"holds a tournament with {name}={settings.get(name)}, "
                f"not {new.get(name)}"
            )
    prints = settings.get("fingerprint"), new["fingerprint"]
    if None not in prints and prints[0] == prints[1]:
        return settings
    elif None not in prints and settings.get("game") == new["game"]:
        raise json_log.OtherRunError(
            f"holds a run with another version of {new['game']}"
        )
    json_log.same_settings(settings, {"game": new["game"]})
    return settings


class _SlotWorker:
    """A worker that plays slots with bots that are made once."""

    def __init__(
        self,
        instance: Instance,
        bots: Sequence[str],
        seed: int,
        kind: Kind[Any],
        progress: bool | None,
    ) -> None:
        """Create each bot twice, once for each seat."""
        self._instance, self._bots, self._kind = instance, bots, kind
        places = list(itertools.product(range(len(bots)), (0, 1)))
        self._made: list[list[pyspiel.Bot]] = [[] for _ in bots]
        for number, seat in progress_bar(places, desc="warming up", progress=progress):
            entropy = np.random.SeedSequence(seed, spawn_key=(number, seat))
            # JAX without 64 bits accepts 31 bits.
            bot_seed = int(entropy.generate_state(1)[0] >> 1)
            bot = load_bot(instance, bots[number], seat, seed=bot_seed)
            self._made[number].append(bot)

    def __call__(self, slot: Slot) -> Record:
        """Return the line of a slot."""
        names = [self._bots[number] for number in slot.seats]
        seated = [self._made[number] for number in slot.seats]
        try:
            played = self._kind.play(self._instance, seated, slot)
        except ValueError as error:
            raise ValueError(
                f"{self._kind.unit} of {names[0]} and {names[1]}, deal {slot.deal}: "
                f"{error}"
            ) from error
        return {**slot._asdict(), "players": names, **played}
