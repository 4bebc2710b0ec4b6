"""Last stage: round robins of seat-swapped matches, with confidence intervals.

The unit is a *deal*: two matches in which chance draws from the same numbers, and the
players swap seats in between. The mean of a player's returns in both is one
observation; these are independent, their matches are not. So intervals are computed
over deals.

Every match is a line of `matches.jsonl` as soon as it is over. A tournament that was
stopped plays on from there.
"""

import csv
import io
import itertools
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyspiel
from scipy import special
from tqdm import tqdm

import spiel_cr
from spiel_cr.common import storage
from spiel_cr.common.checks import check_iterations
from spiel_cr.compilation.compiler import Game
from spiel_cr.compilation.fingerprints import fingerprint
from spiel_cr.players import bot_strings

from .match import Observer, count_programs, late_moves, play_match

_SETTINGS = "settings.json"
_LOG = "matches.jsonl"
_BY_SEAT = ("returns", "seconds", "late_moves", "programs_compiled")
_CONFIDENCE = 0.95

_Number = float | None
# Where it is played: compiled where a bot needs that.
_Arena: TypeAlias = spiel_cr.CompiledGame | pyspiel.Game


class Effort(NamedTuple):
    """What a bot did in all its matches.

    Attributes:
      bot: its string.
      moves: that it chose.
      mean_ms: milliseconds an answer, by the referee's clock.
      max_ms: the longest.
      late_moves: answers after its own time was up; None: it keeps no record.
      programs_compiled: JAX programs that were compiled while it was thinking.
    """

    bot: str
    moves: int
    mean_ms: float
    max_ms: float
    late_moves: int | None
    programs_compiled: int


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


class _Slot(NamedTuple):
    """A match of the plan: bots by number, `row` in seat 0 unless swapped."""

    deal: int
    row: int
    column: int
    swapped: bool

    @property
    def seats(self) -> tuple[int, int]:
        """The bots in seats 0 and 1."""
        return (self.column, self.row) if self.swapped else (self.row, self.column)


_Log = dict[_Slot, dict[str, Any]]


def play_tournament(
    game: Game,
    bots: Sequence[str],
    matches: int,
    out: storage.Path,
    *,
    seed: int = 0,
    progress: bool = False,
    observers: Sequence[Observer] = (),
    memory_limit: int | str | None = bot_strings.MEMORY_LIMIT,
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
      seed: of chance and of all that bots draw.
      progress: show bars on stderr.
      observers: see `play_match`.
      memory_limit: bytes, or a size like "3GB"; refuse bots that need the whole of a
        larger game. It is compiled for such bots only.

    Raises:
      ValueError: a bad argument, a game too large for a bot, a folder with another
        tournament in it, or a bot that chose what it may not.
      pyspiel.SpielError: OpenSpiel does not know the game.
    """
    _check(bots, matches, seed)
    folder = _check_folder(out)
    instance = bot_strings.prepare(game, bots, memory_limit=memory_limit)
    settings = _settings(folder, instance, bots, seed)
    plan = _plan(len(bots), matches)
    log = _read_log(folder / _LOG)
    if any(slot not in log for slot in plan):
        made = _make_bots(instance, bots, seed, progress)
        # Not earlier: a misspelt bot must not keep the folder for itself.
        if not (folder / _SETTINGS).exists():
            folder.mkdir(parents=True, exist_ok=True)
            storage.write_text(folder / _SETTINGS, json.dumps(settings, indent=1))
        with (folder / _LOG).open("a", encoding="utf-8") as file:
            for slot in _missing(plan, log, progress):
                log[slot] = _play(instance, bots, made, slot, seed, observers)
                file.write(json.dumps(log[slot]) + "\n")
                file.flush()
    # A folder may hold more matches than were asked for now.
    log = {slot: log[slot] for slot in plan}
    tournament = _tabulate(bots, log)
    storage.write_text(folder / "table.csv", _table(tournament, log))
    efforts = [effort._asdict() for effort in tournament.efforts]
    summary = {**settings, **tournament._asdict(), "efforts": efforts}
    storage.write_text(folder / "summary.json", json.dumps(summary, indent=1))
    return tournament


def mean_and_half_width(deals: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half of its 95 % confidence interval by Student's t.

    Args:
      deals: independent observations, one or more.

    Returns:
      The half width is None for a single observation, which tells nothing about it.
    """
    n = len(deals)
    mean = float(np.mean(deals))
    if n == 1:
        return mean, None
    error = np.std(deals, ddof=1) / np.sqrt(n)
    return mean, float(special.stdtrit(n - 1, (1 + _CONFIDENCE) / 2) * error)


def _check(bots: Sequence[str], matches: int, seed: int) -> None:
    if len(bots) < 2:
        raise ValueError(
            f"bots={';'.join(bots)!r}: a tournament needs two bots or more"
        )
    check_iterations(matches, name="matches")
    if seed < 0:
        raise ValueError(f"seed={seed} must be 0 or more")


def _check_folder(out: storage.Path) -> pathlib.Path:
    folder = pathlib.Path(out)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out={folder} is a file; give the path of a folder")
    storage.check_writable(folder / _LOG)
    return folder


def _settings(
    folder: pathlib.Path, instance: _Arena, bots: Sequence[str], seed: int
) -> dict[str, Any]:
    """This tournament's; raises ValueError if the folder is another one's."""
    tree = instance if isinstance(instance, spiel_cr.CompiledGame) else None
    settings = {
        "game": str(instance if tree is None else tree.game),
        "bots": list(bots),
        "seed": seed,
        "fingerprint": None if tree is None else fingerprint(tree),
    }
    path = folder / _SETTINGS
    new = {**settings, "versions": storage.versions()}
    remedy = "choose another folder, or delete this one"
    if not path.exists():
        if (folder / _LOG).exists():
            raise ValueError(f"out={folder} has {_LOG} but no {_SETTINGS}; {remedy}")
        return new
    try:
        found = json.loads(path.read_text("utf-8"))
        different = {key: found[key] for key in settings if found[key] != settings[key]}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error!r}); {remedy}") from error
    # The same game can be written in several ways; its tree is what counts, if known.
    if None in (settings["fingerprint"], found["fingerprint"]):
        different.pop("fingerprint", None)
    elif "fingerprint" not in different:
        different.pop("game", None)
    elif "game" not in different:
        different["game"] = f"another version of {settings['game']}"
    different.pop("fingerprint", None)
    for key, value in different.items():
        raise ValueError(
            f"out={folder} holds a tournament with {key}={value!r}, not "
            f"{settings[key]!r}; {remedy}"
        )
    return new


def _plan(num_bots: int, matches: int) -> list[_Slot]:
    """Deal by deal, so that a tournament which was stopped has met all pairs alike."""
    pairs = itertools.combinations(range(num_bots), 2)
    return [
        _Slot(deal, row, column, swapped)
        for deal, (row, column), swapped in itertools.product(
            range((matches + 1) // 2), pairs, (False, True)
        )
    ]


def _missing(plan: Sequence[_Slot], log: _Log, progress: bool) -> tqdm:
    """Slots to play, with a bar that also counts those on disk."""
    left = [slot for slot in plan if slot not in log]
    return tqdm(
        left,
        total=len(plan),
        initial=len(plan) - len(left),
        desc="tournament",
        unit="match",
        disable=not progress,
    )


def _read_log(path: pathlib.Path) -> _Log:
    """Matches on disk; cuts off a line whose writing was interrupted."""
    if not path.exists():
        return {}
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    log: _Log = {}
    for number, line in enumerate(content[:whole].splitlines(), 1):
        try:
            record = json.loads(line)
            slot = _Slot(*(record[name] for name in _Slot._fields))
            shapes = [len(record[name]) for name in _BY_SEAT]
            if shapes != [2] * len(_BY_SEAT):
                raise ValueError(f"two values are due in each of {_BY_SEAT}")
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path}, line {number}, is not a match ({error!r}); delete the line "
                f"to play it again"
            ) from error
        log[slot] = record
    return log


def _make_bots(
    instance: _Arena, bots: Sequence[str], seed: int, progress: bool
) -> dict[tuple[int, int], pyspiel.Bot]:
    """Bots by (number, seat)."""
    places = list(itertools.product(range(len(bots)), (0, 1)))
    made = {}
    for number, seat in tqdm(places, desc="warming up", disable=not progress):
        entropy = np.random.SeedSequence(seed, spawn_key=(number, seat))
        # JAX without 64 bits takes 31.
        own = int(entropy.generate_state(1)[0] >> 1)
        made[number, seat] = spiel_cr.load_bot(bots[number], instance, seat, seed=own)
    return made


def _play(
    instance: _Arena,
    bots: Sequence[str],
    made: Mapping[tuple[int, int], pyspiel.Bot],
    slot: _Slot,
    seed: int,
    observers: Sequence[Observer],
) -> dict[str, Any]:
    """Plays a match; returns its line of the log."""
    names = [bots[number] for number in slot.seats]
    players = [made[number, seat] for seat, number in enumerate(slot.seats)]
    key = (slot.deal, slot.row, slot.column)
    chance, draws = (
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*key, stream)))
        for stream in (0, 2 if slot.swapped else 1)
    )
    late = [late_moves(player) for player in players]
    with count_programs() as (programs, count):
        try:
            match = play_match(
                instance, players, draws, chance=chance, observers=(count, *observers)
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
            None if before is None else (late_moves(player) or 0) - before
            for before, player in zip(late, players, strict=True)
        ],
        "programs_compiled": programs,
    }


def _row_returns(log: _Log, row: int, column: int) -> np.ndarray:
    """float [deals, 2], the row's returns as player 0 and as player 1."""
    slots = [slot for slot in log if (slot.row, slot.column) == (row, column)]
    returns = np.empty((len(slots) // 2, 2))
    for slot in slots:
        seat = int(slot.swapped)
        returns[slot.deal, seat] = log[slot]["returns"][seat]
    return returns


def _tabulate(bots: Sequence[str], log: _Log) -> Tournament:
    k = len(bots)
    mean: list[list[_Number]] = [[None] * k for _ in range(k)]
    half_width: list[list[_Number]] = [[None] * k for _ in range(k)]
    matches = [[0] * k for _ in range(k)]
    for i, j in itertools.combinations(range(k), 2):
        returns = _row_returns(log, i, j)
        won, half = mean_and_half_width(returns.mean(axis=1).tolist())
        mean[i][j], mean[j][i] = won, 0.0 - won
        half_width[i][j] = half_width[j][i] = half
        matches[i][j] = matches[j][i] = returns.size
    efforts = [_effort(bot, number, log) for number, bot in enumerate(bots)]
    return Tournament(tuple(bots), mean, half_width, matches, efforts)


def _effort(bot: str, number: int, log: _Log) -> Effort:
    own = [
        (record, slot.seats.index(number))
        for slot, record in log.items()
        if number in slot.seats
    ]
    milliseconds = [1000 * s for record, seat in own for s in record["seconds"][seat]]
    late = [record["late_moves"][seat] for record, seat in own]
    return Effort(
        bot=bot,
        moves=len(milliseconds),
        mean_ms=float(np.mean(milliseconds)) if milliseconds else 0.0,
        max_ms=max(milliseconds, default=0.0),
        late_moves=None if None in late else sum(late),
        programs_compiled=sum(
            record["programs_compiled"][seat] for record, seat in own
        ),
    )


def _table(tournament: Tournament, log: _Log) -> str:
    """CSV, one line a pair."""
    bots = tournament.bots
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    by_seat = [f"mean_as_player_{seat}" for seat in (0, 1)]
    table.writerow(["row", "column", "matches", "mean", "half_width", *by_seat])
    for i, j in itertools.combinations(range(len(bots)), 2):
        results = (tournament.matches, tournament.mean, tournament.half_width)
        means = _row_returns(log, i, j).mean(axis=0).tolist()
        table.writerow([bots[i], bots[j], *(r[i][j] for r in results), *means])
    return text.getvalue()
