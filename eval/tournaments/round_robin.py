"""Round robins: which matches there are, who sits where, and how a folder fills.

The unit is a *deal*: two matches, or sessions of matches, in which chance draws from
the same numbers, and the players swap seats in between.
"""

import csv
import dataclasses
import io
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common import atomic, storage
from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.common.json_log import (
    JsonLog,
    OtherRunError,
    Record,
    check_folder,
    has_begun,
    same_settings,
    sealed,
)
from spiel_cr.common.memory import Limit
from spiel_cr.common.record_checks import Test, is_boolean, is_whole
from spiel_cr.games.tree.compiler import Game
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.many_matches import Slot
from spiel_cr.players import bot_strings

# Where it is played: compiled where a bot needs that.
Instance: TypeAlias = CompiledGame | pyspiel.Game
# Bots by (number, seat).
Made: TypeAlias = Mapping[tuple[int, int], pyspiel.Bot]
_Result = TypeVar("_Result")
Records: TypeAlias = Mapping[Slot, Record]
# For each table what the first of two bots has against the second, and the reverse.
Both: TypeAlias = Mapping[str, tuple[Any, Any]]


class Outcome(NamedTuple, Generic[_Result]):
    """What the lines of a round robin come to.

    Attributes:
      result: of the run.
      summary: the same for `summary.json`, behind the settings.
      csv: the same as a table, one line per pair.
    """

    result: _Result
    summary: Record
    csv: str


@dataclasses.dataclass(frozen=True)
class Kind(Generic[_Result]):
    """What is played in a round robin: matches, or sessions of them.

    Attributes:
      lines: name of the file of JSON lines, without ".jsonl".
      table: name of the file of the CSV table.
      title: of the bar.
      what: one of them, for errors and for the bar.
      play: from where it is played, the bots and a slot to the slot's line.
      check_line: raises ValueError where a line is none of these.
      tabulate: from the lines of the plan.
      check_game: raises ValueError for a game in which this cannot be played.
      settings: what a folder keeps, besides game, bots and seed.
    """

    lines: str
    table: str
    title: str
    what: str
    play: Callable[[Instance, Made, Slot], Record]
    check_line: Callable[[Record], object]
    tabulate: Callable[[Records], Outcome[_Result]]
    check_game: Callable[[Game], object] = lambda game: None
    settings: Record = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RoundRobinConfig:
    """Under which conditions a round robin is played.

    Attributes:
      seed: of chance and of all that bots draw.
      memory_limit: bytes, or a size like "3GB"; refuse bots that need the whole of a
        larger game. It is compiled for such bots only.
      progress: show bars on stderr.
      unwritten: called where a table cannot be written; None: that is raised.
    """

    seed: int = 0
    memory_limit: Limit = bot_strings.MEMORY_LIMIT
    progress: bool = False
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
    """Plays what is not in the folder yet, and writes the tables.

    Args:
      game: OpenSpiel game string, game, or compiled game (with `observations=True`).
      bots: two or more strings for `load_bot`.
      matches: or sessions, of each pair of bots; an odd number is rounded up.
      out: folder; holds `settings.json`, the lines, the table, `summary.json`.
      kind: what is played.
      config: seed, memory, what is shown.

    Raises:
      OSError: a line or a table cannot be written. What was before is kept.
      ValueError: a bad argument, a game too large for a bot, a folder with another
        tournament in it, or a bot that chose what it may not.
      pyspiel.SpielError: OpenSpiel does not know the game.
    """
    check_plan(bots, matches, config.seed)
    folder = check_folder(out)
    # A tournament that is finished is shown again though a bot's file is gone.
    if not has_begun(folder, kind.lines):
        for bot in bots:
            bot_strings.read_bot(bot)
    kind.check_game(game)
    instance = bot_strings.prepare(game, bots, memory_limit=config.memory_limit)
    plan = plan_slots(len(bots), matches)
    with JsonLog(
        folder,
        kind.lines,
        {**settings_of(instance, bots, config.seed), **kind.settings},
        key=Slot._fields,
        facts={"versions": storage.versions()},
        what=kind.what,
        check=kind.check_line,
        merge=same_run,
    ) as log:
        left = [slot for slot in plan if slot not in log.records]
        # Bots first: a misspelt one must not keep the folder for itself.
        made = make_bots(instance, bots, config.seed, config.progress) if left else {}
        log.begin()
        for slot in tqdm(
            left,
            total=len(plan),
            initial=len(plan) - len(left),
            desc=kind.title,
            unit=kind.what,
            disable=not config.progress or not left,
        ):
            log.add(kind.play(instance, made, slot))
        # A folder may hold more than was asked for now.
        found = kind.tabulate({slot: log.records[slot] for slot in plan})
        summary = json.dumps(sealed({**log.settings, **found.summary}), indent=1)
        for name, text in (
            (kind.table, found.csv),
            ("summary.json", summary + "\n"),
        ):
            try:
                atomic.write_text(folder / name, text)
            except OSError as error:
                if config.unwritten is None:
                    raise
                config.unwritten(error)
    return found.result


def check_plan(bots: Sequence[str], matches: int, seed: int) -> None:
    """Refuses what no tournament can be made of.

    Args:
      bots: strings.
      matches: of each pair.
      seed: of chance and of all that bots draw.

    Raises:
      ValueError: fewer than two bots, or a bad number.
    """
    if len(bots) < 2:
        raise ValueError(
            f"bots={';'.join(bots)!r}: a tournament needs two bots or more; write 'A;B'"
        )
    check_iterations(matches, name="matches")
    check_seed(seed)


# Of each line.
SLOT_TESTS: dict[str, Test] = {
    "deal": is_whole,
    "row": is_whole,
    "column": is_whole,
    "swapped": is_boolean,
}


def tables_of(
    size: int, diagonal: Mapping[str, Any], pair: Callable[[int, int], Both]
) -> dict[str, list[list[Any]]]:
    """Tables of bots against bots, by name.

    Args:
      size: how many bots.
      diagonal: of each table, what a bot has against itself.
      pair: of two bots by number, the first one smaller, for each table what the first
        has against the second, and what the second has against the first.
    """
    tables = {n: [[v] * size for _ in range(size)] for n, v in diagonal.items()}
    for i, j in itertools.combinations(range(size), 2):
        for name, (own, other) in pair(i, j).items():
            tables[name][i][j], tables[name][j][i] = own, other
    return tables


def pairs_csv(bots: Sequence[str], tables: Mapping[str, list[list[Any]]]) -> str:
    """CSV, one line per pair: of each table what the first bot has."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["row", "column", *tables])
    for i, j in itertools.combinations(range(len(bots)), 2):
        table.writerow([bots[i], bots[j], *(own[i][j] for own in tables.values())])
    return text.getvalue()


def check_slot(bots: Sequence[str], record: Record) -> None:
    """Raises ValueError where a line is of no slot of these bots."""
    slot = slot_of(record)
    if not slot.row < slot.column < len(bots):
        raise ValueError(f"has no bots {slot.row} and {slot.column} of {len(bots)}")
    if record.get("players") != [bots[number] for number in slot.seats]:
        raise ValueError("has other players than these bots")


def slots_of(records: Records, row: int, column: int) -> list[Slot]:
    """The slots of a pair."""
    return [slot for slot in records if (slot.row, slot.column) == (row, column)]


def slot_of(record: Record) -> Slot:
    """The slot of a line."""
    return Slot(*(record[name] for name in Slot._fields))


def settings_of(instance: Instance, bots: Sequence[str], seed: int) -> Record:
    """What a folder keeps of a tournament."""
    tree = instance if isinstance(instance, CompiledGame) else None
    return {
        "game": str(instance if tree is None else tree.game),
        "bots": list(bots),
        "seed": seed,
        "fingerprint": None if tree is None else fingerprint(tree),
    }


def same_run(found: Record, new: Record) -> Record:
    """Settings of a folder to go on with; for `JsonLog`.

    A game can be written in several ways: its tree is what counts, if known.

    Args:
      found: in the folder.
      new: of this run.

    Raises:
      OtherRunError: they differ, or one run is of sessions and the other of matches.
    """
    same_settings(found, {name: new[name] for name in ("bots", "seed")})
    sessions = found.get("session"), new.get("session")
    if sessions[0] != sessions[1]:
        raise OtherRunError(
            f"holds a tournament with session={sessions[0]}, not {sessions[1]}"
        )
    prints = found.get("fingerprint"), new["fingerprint"]
    if None not in prints and prints[0] == prints[1]:
        return found
    elif None not in prints and found.get("game") == new["game"]:
        raise OtherRunError(f"holds a run with another version of {new['game']}")
    same_settings(found, {"game": new["game"]})
    return found


def plan_slots(num_bots: int, matches: int) -> list[Slot]:
    """Deal by deal, so that a tournament which was stopped has met all pairs alike."""
    pairs = itertools.combinations(range(num_bots), 2)
    return [
        Slot(deal, row, column, swapped)
        for deal, (row, column), swapped in itertools.product(
            range((matches + 1) // 2), pairs, (False, True)
        )
    ]


def make_bots(
    instance: Instance, bots: Sequence[str], seed: int, progress: bool
) -> dict[tuple[int, int], pyspiel.Bot]:
    """Bots by (number, seat)."""
    places = list(itertools.product(range(len(bots)), (0, 1)))
    made = {}
    for number, seat in tqdm(places, desc="warming up", disable=not progress):
        entropy = np.random.SeedSequence(seed, spawn_key=(number, seat))
        # JAX without 64 bits takes 31.
        own = int(entropy.generate_state(1)[0] >> 1)
        made[number, seat] = bot_strings.load_bot(
            bots[number], instance, seat, seed=own
        )
    return made
