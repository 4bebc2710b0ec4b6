"""Solution of a push/fold tournament: heads-up, then three players, then evaluation."""

import dataclasses
import math
import os
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.common import atomic, checks, storage
from spiel_cr.common.errors import CorruptFileError, GameTooLargeError
from spiel_cr.push_fold import outer, rules
from spiel_cr.push_fold.chip_model import chip_model
from spiel_cr.push_fold.engine import Engine, InnerSettings
from spiel_cr.push_fold.outer import ALGORITHMS, OuterRound
from spiel_cr.push_fold.tournament import TournamentGame, TournamentSetting

# Default numbers of rounds and of steps of fictitious play, by number of players.
_ROUNDS = {2: 20, 3: 7}
_STEPS = {2: 300, 3: 40}
_REFRESH = 20
# Dense linear systems of all states and positions are solved.
_MOST_STATES = 3000
# Tolerance of the decision processes of the check, as a share of the first prize.
_TOLERANCE = 2e-5


@dataclasses.dataclass(frozen=True)
class SolveSettings:
    """Settings of the solution of a tournament.

    Attributes:
      algorithm: Value or policy iteration around fictitious play (vi-fp, pi-fp), or
        fictitious play around value or policy iteration (fp-vi, fp-pi).
      rounds: Number of rounds of the outer loop. If None, 20 with two players, 7 with
        three.
      steps: Number of steps of fictitious play per round. If None, 300 with two
        players, 40 with three.

    With three players the tournament of the last two is always solved by pi-fp with
    these defaults.
    """

    algorithm: str = "pi-fp"
    rounds: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if a setting is out of range."""
        checks.check_choice(self.algorithm, "algorithm", ALGORITHMS)
        checks.check_settings(self, {"rounds steps": checks.COUNT}, optional=True)


class SolvedTournament(NamedTuple):
    """The solution of a tournament of n players.

    Attributes:
      setting: Setting of the tournament, in units of chips.
      stacks: Chips in each of the N states, by position at the table, int [N, n].
      profile: Probabilities of jamming, see `rules.infosets`, float32 [N, I, C].
      values: Expected prizes of playing by the profile to the end, float64 [N, n].
      regrets: Regret of each player, float64 [N, n]: the gain of the best deviation
        from the profile by this player alone.
      rounds: Number of rounds played.
    """

    setting: TournamentSetting
    stacks: np.ndarray
    profile: np.ndarray
    values: np.ndarray
    regrets: np.ndarray
    rounds: int


class TournamentSolution(NamedTuple):
    """The solution of a tournament and of the smaller tournaments that it leads to.

    Attributes:
      unit: Number of chips in one unit.
      start: Index of the given stacks among the states of the first level.
      levels: Solutions of the tournament of all players, then of one fewer, down to
        two.
      seconds: Wall-clock time of this process, without that before a checkpoint.
    """

    unit: int
    start: int
    levels: tuple[SolvedTournament, ...]
    seconds: float


def units_of(
    stacks: Sequence[int], prizes: Sequence[float], blinds: Sequence[int]
) -> tuple[int, TournamentSetting]:
    """Check a tournament, and convert it to the largest unit that divides all chips.

    Args:
      stacks: Chips by position, of two or three players: button, small blind, big
        blind, or small blind, big blind.
      prizes: Prizes from the first place on, not rising; missing ones are 0.
      blinds: Small and big blind, in chips.

    Returns:
      The unit, and the setting in units.

    Raises:
      ValueError: If an argument is invalid.
      GameTooLargeError: If the tournament has too many states.
    """
    if len(stacks) not in (2, 3):
        raise ValueError(
            f"stacks={list(stacks)}: tournaments have 2 or 3 players; "
            f"give 2 or 3 stacks"
        )
    if len(blinds) != 2:
        raise ValueError(f"blinds={list(blinds)} must be the small and the big blind")
    for name, amounts in (("stacks", stacks), ("blinds", blinds)):
        for chips in amounts:
            checks.check_integer(chips, name, 1)
    if blinds[0] > blinds[1]:
        raise ValueError(f"blinds={list(blinds)}: give the small one first")
    n = len(stacks)
    if not 1 <= len(prizes) <= n:
        raise ValueError(
            f"prizes={list(prizes)} must be at most {n}, one per player; leave some out"
        )
    for prize in prizes:
        checks.check_number(prize, "prizes", "[0, inf)")
    # A single prize is above those of the other places, which are 0.
    last = prizes[-1] if len(prizes) > 1 else 0
    if prizes[0] <= last or sorted(prizes, reverse=True) != list(prizes):
        raise ValueError(
            f"prizes={list(prizes)} must not rise, and the first must be above the "
            f"last; order them from the first place on"
        )
    unit = math.gcd(*stacks, *blinds)
    total = sum(stacks) // unit
    states = math.comb(total - 1, n - 1)
    if states > _MOST_STATES:
        raise GameTooLargeError(
            f"stacks={list(stacks)}, blinds={list(blinds)}: {total} units of {unit} "
            f"chips make {states} states, more than {_MOST_STATES}; round stacks to "
            f"multiples of the small blind"
        )
    filled = tuple(float(p) for p in prizes) + (0.0,) * (n - len(prizes))
    return unit, TournamentSetting(
        total, n, (blinds[0] // unit, blinds[1] // unit), filled
    )


def solve_tournament(
    stacks: Sequence[int],
    prizes: Sequence[float],
    blinds: Sequence[int],
    engine: Engine,
    *,
    settings: SolveSettings | None = None,
    checkpoint: atomic.Path | None = None,
    on_round: Callable[[int, OuterRound], None] | None = None,
) -> TournamentSolution:
    """Compute an approximate equilibrium, and the regret of each player.

    Args:
      stacks: Chips by position, see `units_of`.
      prizes: Prizes from the first place on, see `units_of`.
      blinds: Small and big blind in chips, see `units_of`.
      engine: Engine with tables for the number of players.
      settings: Settings of the solution; None: the defaults.
      checkpoint: File from which the run resumes if it exists; it is written after each
        round of the largest tournament. A resumed run gives bitwise identical results.
      on_round: Function that is called with the number of players and each round.

    Raises:
      ValueError: If an argument is invalid, or the checkpoint belongs to another
        tournament.
      FileInUseError: If another run uses the checkpoint.
    """
    started = time.perf_counter()
    settings = settings or SolveSettings()
    unit, setting = units_of(stacks, prizes, blinds)
    levels: list[SolvedTournament] = []
    rest = deviating = None
    with atomic.reserved(checkpoint, "checkpoint"):
        for players in range(2, setting.players + 1):
            part = setting._replace(players=players, prizes=setting.prizes[:players])
            last = players == setting.players
            kept = None
            if last and checkpoint is not None:
                kept = _RoundCheckpoint(checkpoint, settings, part, engine)
            level_settings = settings if last else SolveSettings()
            level, deviating = _solve_level(
                *(part, engine, level_settings, (rest, deviating), kept, on_round)
            )
            rest = level.values
            levels.insert(0, level)
    start_stacks = np.array(stacks) // unit
    start = int(np.flatnonzero((levels[0].stacks == start_stacks).all(axis=1))[0])
    return TournamentSolution(unit, start, tuple(levels), time.perf_counter() - started)


def _solve_level(
    setting: TournamentSetting,
    engine: Engine,
    settings: SolveSettings,
    rest: tuple[np.ndarray | None, np.ndarray | None],
    kept: "_RoundCheckpoint | None",
    on_round: Callable[[int, OuterRound], None] | None,
) -> tuple[SolvedTournament, np.ndarray]:
    """Solve the tournament for one number of players.

    Args:
      rest: Values of the tournament of one player fewer, and the values there of a
        player who deviates.

    Returns:
      The level, and the values [N, n] of a player who deviates.
    """
    players = setting.players
    game = TournamentGame(setting, engine, rest[0])
    inner = InnerSettings(settings.steps or _STEPS[players], _REFRESH)
    tolerance = _TOLERANCE * setting.prizes[0]
    most = settings.rounds or _ROUNDS[players]
    last = kept.read() if kept else None
    if last is None or last.number < most:
        played = outer.rounds(game, settings.algorithm, inner, start=last)
        for last in played:
            if kept:
                kept.write(last)
            if on_round:
                on_round(players, last)
            if last.number >= most:
                break
    assert last is not None
    values = game.evaluate(last.profile)
    freer = TournamentGame(setting, engine, rest[1])
    best, _ = outer.best_deviation(freer, last.profile, tolerance=tolerance)
    regrets = np.maximum(best - values, 0)
    level = SolvedTournament(
        setting, game.stacks, last.profile, values, regrets, last.number
    )
    return level, best


class _RoundCheckpoint(NamedTuple):
    """The checkpoint of a level; `path` may be None."""

    path: atomic.Path
    settings: SolveSettings
    setting: TournamentSetting
    engine: Engine

    def _identity(self) -> dict[str, Any]:
        tables = self.engine.tables
        return {
            "kind": "jam or fold",
            "setting": [*self.setting[:2], *self.setting.blinds, *self.setting.prizes],
            "algorithm": self.settings.algorithm,
            "steps": self.settings.steps,
            "tables": [zlib.crc32(np.ascontiguousarray(t).data) for t in tables[:3]],
        }

    def read(self) -> OuterRound | None:
        """Return the last round, or None if the file does not exist.

        Raises:
          CorruptFileError: If the file is not a valid checkpoint.
          ValueError: If the file belongs to another tournament or other settings.
        """
        if not os.path.exists(self.path):
            return None
        arrays, metadata = storage.load(self.path)
        number = metadata.pop("number", None)
        if metadata != self._identity():
            raise ValueError(
                f"checkpoint={os.fspath(self.path)!r}: the file belongs to another "
                f"tournament or other settings; use another path, or delete the file "
                f"to start again"
            )
        try:
            return OuterRound(
                int(number), arrays["profile"], arrays["values"], math.inf
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptFileError(
                f"checkpoint={os.fspath(self.path)!r}: not a checkpoint of a "
                f"tournament; use another path, or delete the file to start again"
            ) from error

    def write(self, last: OuterRound) -> None:
        """Write a round to the file."""
        arrays = {"profile": last.profile, "values": last.values}
        storage.save(self.path, arrays, {**self._identity(), "number": last.number})


def summary(solution: TournamentSolution) -> dict[str, Any]:
    """Return a JSON-serialisable summary of a solution.

    Values and regrets at the start are by position. Regrets are also given as a
    percentage of the first prize, at the start and at the worst state.
    """
    level = solution.levels[0]
    setting, start = level.setting, solution.start
    stacks, prizes = level.stacks[start], np.array(setting.prizes)
    percent = 100 / setting.prizes[0]
    return {
        "unit": solution.unit,
        "total": setting.total * solution.unit,
        "blinds": [b * solution.unit for b in setting.blinds],
        "stacks": (stacks * solution.unit).tolist(),
        "prizes": prizes.tolist(),
        "states": [len(one.stacks) for one in solution.levels],
        "rounds": [one.rounds for one in solution.levels],
        "chip_model": chip_model(stacks, prizes).tolist(),
        "values": level.values[start].tolist(),
        "regrets": level.regrets[start].tolist(),
        "regrets_percent": (level.regrets[start] * percent).tolist(),
        "worst_regrets_percent": (level.regrets.max(axis=0) * percent).tolist(),
        "seconds": solution.seconds,
        "jams": {
            describe(before, setting.players): [
                round(float(p), 6) for p in level.profile[start, i]
            ]
            for i, before in enumerate(rules.infosets(setting.players))
        },
    }


def describe(before: Sequence[bool], players: int) -> str:
    """Describe an infoset in words, such as "big blind after jam, fold"."""
    names = ("button", "small blind", "big blind")[3 - players :]
    done = ", ".join("jam" if jam else "fold" for jam in before)
    return names[len(before)] + (f" after {done}" if done else "")


def save(path: atomic.Path, solution: TournamentSolution) -> None:
    """Write all states, strategies, values and regrets to an .npz file.

    Arrays are `stacks3`, `profile3`, `values3`, `regrets3` for three players, and the
    same with 2; the order of classes is that of `hand_classes.class_names`.

    Raises:
      OSError: If the file cannot be written.
    """
    arrays = {
        f"{name}{level.setting.players}": getattr(level, name)
        for level in solution.levels
        for name in ("stacks", "profile", "values", "regrets")
    }
    storage.save(path, arrays, summary(solution))
