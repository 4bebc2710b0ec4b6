"""Last stage: a player's strategy everywhere, by asking it at every infoset.

The *traversing* evaluator. A player that thinks during a match has no table to read.
So it is asked at each of its infosets, those with fewer own decisions before them
first: a resolving player has then resolved all its earlier decisions on the way, as in
a match. What it answers is a whole strategy, and OpenSpiel's exact tools judge it.
"""

import json
import math
import pathlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from scipy import stats
from tqdm import tqdm

from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.policies import conversions
from spiel_cr.resolving import clock

from ..judging import python_judge

# Of the interval that `half_width` gives.
CONFIDENCE = 0.95

# Probabilities in a bot's answer may miss a sum of one by this much; several bots
# compute in single precision.
_SUM_TOLERANCE = 1e-5


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


class Evaluation(NamedTuple):
    """How good a player is, both seats together.

    Attributes:
      nash_conv: of its strategy, by OpenSpiel's exact tool, in the game's units.
      infosets: of both players.
      infosets_defined: at how many of them the player was met.
      moves, late_moves, max_ms, programs_compiled, seconds: see `Work`.
    """

    nash_conv: float
    infosets: int
    infosets_defined: int
    moves: int
    late_moves: int
    max_ms: float
    programs_compiled: int
    seconds: float


def traverse(
    compiled: CompiledGame, bot: pyspiel.Bot, *, progress: bool = False
) -> SeatStrategy:
    """Asks a bot once at each of its infosets.

    A bot that keeps what it learned (online outcome sampling does, also from match to
    match) is asked in the same order and thinks anew at each infoset.

    Args:
      compiled: the game that the bot was made for.
      bot: for either seat; `restart` is called once, at the beginning.
      progress: show a progress bar on stderr.

    Raises:
      ValueError: the bot gives no policy, or not a distribution over legal actions.
    """
    player = bot.player_id()
    infosets = compiled.infosets[player]
    first = infosets.decisions.first_sequence
    behaviour = conversions.uniform_behaviour(infosets.decisions)
    before, times = work_so_far(bot), []
    bot.restart()
    levels = infosets.decisions.levels()
    order = np.argsort(levels, kind="stable")
    for infoset in tqdm(order, desc=f"seat {player}", disable=not progress):
        state = compiled.state_at(infosets.history[infoset])
        started = time.perf_counter()
        answer = ask(bot, state)
        times.append(time.perf_counter() - started)
        behaviour[first[infoset] : first[infoset] + len(answer)] = answer
    met = np.ones(len(infosets), np.int64)
    return SeatStrategy(behaviour, met, work_since(bot, before, times))


def ask(bot: pyspiel.Bot, state: pyspiel.State) -> np.ndarray:
    """float64 [A], the bot's probabilities of the legal actions, in their order.

    Args:
      bot: the player to act.
      state: where it acts.

    Raises:
      ValueError: the bot gives no policy, or not a distribution over legal actions.
    """
    if not bot.provides_policy():
        raise ValueError(
            f"{type(bot).__name__} tells actions but no probabilities; evaluators need "
            f"a bot with get_policy, play matches with this one"
        )
    given = dict(bot.get_policy(state))
    legal = state.legal_actions()
    answer = np.array([given.get(action, 0.0) for action in legal], np.float64)
    total = answer.sum()
    good = set(given) <= set(legal) and np.isfinite(answer).all()
    if not good or (answer < 0).any() or abs(total - 1) > _SUM_TOLERANCE:
        where = state.information_state_string(state.current_player())
        raise ValueError(
            f"{type(bot).__name__} answers {given} at {where!r}; get_policy must give "
            f"a distribution over the legal actions {legal}"
        )
    return answer / total


def work_so_far(bot: pyspiel.Bot) -> Work | None:
    """What the bot itself recorded since it was made; None if it keeps no record."""
    holder = getattr(bot, "resolver", bot)
    statistics = getattr(holder, "statistics", None)
    if not isinstance(statistics, clock.Statistics):
        return None
    return Work(
        statistics.moves,
        statistics.late_moves,
        statistics.max_ms,
        statistics.programs_compiled,
    )


def work_since(bot: pyspiel.Bot, before: Work | None, times: Sequence[float]) -> Work:
    """What the bot did after `before`.

    Args:
      bot: the bot.
      before: from `work_so_far`.
      times: seconds that each answer since then took, as measured from outside; all
        that there is for bots without a record of their own.
    """
    now = work_so_far(bot)
    if before is None or now is None:
        return Work(
            moves=len(times),
            max_ms=1000 * max(times, default=0.0),
            seconds=math.fsum(times),
        )
    return Work(
        now.moves - before.moves,
        now.late_moves - before.late_moves,
        now.max_ms,
        now.programs_compiled - before.programs_compiled,
        math.fsum(times),
    )


def evaluate(
    compiled: CompiledGame, seats: tuple[SeatStrategy, SeatStrategy]
) -> Evaluation:
    """Judges a player by its strategies in both seats.

    Args:
      compiled: the game.
      seats: as player 0 and as player 1.
    """
    table = conversions.tabular_policy(compiled, [seat.behaviour for seat in seats])
    work = seats[0].work.plus(seats[1].work)
    return Evaluation(
        python_judge.judge(compiled.game, table).nash_conv,
        sum(len(seat.met) for seat in seats),
        sum(int((seat.met > 0).sum()) for seat in seats),
        *work,
    )


def summarise(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Repeats as one: mean NashConv, the fewest defined infosets, all the work."""
    work = Work()
    for one in evaluations:
        work = work.plus(Work(*one[3:]))
    return Evaluation(
        math.fsum(one.nash_conv for one in evaluations) / len(evaluations),
        evaluations[0].infosets,
        min(one.infosets_defined for one in evaluations),
        *work,
    )


def half_width(values: Sequence[float]) -> float:
    """Half of the confidence interval of a mean, by Student's t distribution.

    Args:
      values: at least two independent repeats.
    """
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
    return float(quantile * np.std(values, ddof=1) / math.sqrt(len(values)))


class Journal:
    """JSON lines that a run adds to, and that the next run continues from."""

    def __init__(
        self, folder: str | None, name: str, settings: dict[str, object]
    ) -> None:
        """Reads what is there.

        Args:
          folder: where the file is, made if need be; None: nothing is kept.
          name: of the file.
          settings: what all lines depend on; the file's first line.

        Raises:
          ValueError: the file is of a run with other settings, or damaged.
        """
        self._path: pathlib.Path | None = None
        self._rows: list[dict[str, Any]] = []
        if folder is None:
            return
        self._path = pathlib.Path(folder) / f"{name}.jsonl"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._read(settings)
        if not self._rows:
            self._write({"settings": settings}, "w")

    def find(self, key: dict[str, int]) -> list[dict[str, Any]]:
        """The rows that have these values."""
        return [row for row in self._rows if key.items() <= row.items()]

    def add(self, row: dict[str, Any]) -> None:
        """Writes a row at once."""
        if self._path is not None:
            self._write(row, "a")

    def _write(self, row: dict[str, Any], mode: str) -> None:
        assert self._path is not None
        with self._path.open(mode, encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def _read(self, settings: dict[str, object]) -> None:
        assert self._path is not None
        text = self._path.read_text(encoding="utf-8")
        # An interrupted write leaves half a line without its end.
        whole = text[: text.rfind("\n") + 1]
        try:
            rows = [json.loads(line) for line in whole.splitlines()]
            found = rows[0]["settings"] if rows else settings
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self._path} is damaged ({error}); remove it or choose another --out"
            ) from error
        for name, value in settings.items():
            if found.get(name) != value:
                raise ValueError(
                    f"{self._path} is of another run: its {name} is "
                    f"{found.get(name)!r}, not {value!r}; remove it or choose another "
                    f"--out"
                )
        if whole != text:
            self._path.write_text(whole, encoding="utf-8")
        self._rows = rows
