"""Race of methods that search or learn a response of one player, within a time budget.

Each method gets a tenth of the time first, and the one with the best bound gets the
rest. About a fifth of the time evaluates, in matches from which nothing was learned.
The leading method is chosen by other matches than those of its final bound.

Work is planned by its measured speed, in slices that become shorter towards the
deadline. Each plan is yielded before it is carried out, so that a run that was killed
repeats the same work and comes to the same result.
"""

import itertools
import math
import pathlib
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spiel_cr.common import storage
from spiel_cr.common.json_log import Record
from spiel_cr.common.messages import announce
from spiel_cr.evaluation.opponent import Opponent
from spiel_cr.evaluation.response_config import EXPLOIT_METHODS
from spiel_cr.evaluation.responses.root_search import RootSearch
from spiel_cr.evaluation.responses.table_responder import TableResponder
from spiel_cr.evaluation.responses.table_response import (
    Setting,
    TableResponse,
    setting_for,
    warm_up,
)
from spiel_cr.evaluation.result import ResponseValue, mean_of_bound
from spiel_cr.games.opening.game_checks import payoff_offset, utility_bounds

# Share of the time that each method gets at first, and the part of it for matches.
_FIRST, _EVALUATION = 0.1, 0.2
# Share of the remaining time that a slice uses; the last slice uses all of it. No slice
# starts if less than the share `_SHORT` of the total time remains.
_SLICE, _SHORT = 0.6, 0.01
# Start and duration of the evaluation of the leading method, as shares of its time.
_LOOKS = ((0.4, 0.04), (1.0, 0.16))
# A bound of less than this share of the matches of an earlier one does not replace it.
_FEW_MATCHES = 0.1
# Number of parallel matches: initial, smallest, largest, and largest growth factor; and
# the largest number for one bound.
_PILOT, _LEAST, _SIDE, _GROWTH, _MOST = 8, 4, 4096, 4, 1 << 20

# The last value of the leading method, all values in the order of time, and its
# response; None for exact responses, which are strategies on a represented game.
RaceResult: TypeAlias = tuple[ResponseValue, list[ResponseValue], TableResponse | None]


class RacePlan(NamedTuple):
    """Plan that the races of all players share.

    Attributes:
      names: The methods.
      seed: Seed for all random choices.
      players: Number of players that share the time.
      begin: Seconds since the call when the races begin.
      end: Seconds since the call when they end, if the players take turns.
      folder: Folder for learned tables; None to store none.
    """

    names: Sequence[str]
    seed: int
    players: int
    begin: float
    end: float
    folder: pathlib.Path | None


class MethodRace:
    """All learning and evaluation for one player, with a separate clock.

    The clock advances by `plan.players` seconds per second, as if the players took
    turns. The amount of work therefore does not depend on whether they do.

    Attributes:
      opponent: The opponent.
      plan: The plan of all players.
      player: The responder.
      records: Records of earlier runs and new ones, by method and step.
      curve: The values so far.
      settings: The setting in which each method learns and is evaluated.
    """

    def __init__(
        self, opponent: Opponent, plan: RacePlan, player: int, records: Sequence[Record]
    ) -> None:
        self.opponent, self.plan, self.player = opponent, plan, player
        self.records = {(row["method"], row["step"]): row for row in records}
        self.bounds = utility_bounds(opponent.game)
        self.curve: list[ResponseValue] = []
        self.settings: dict[str, Setting] = {}
        self.set_clock(plan.begin)

    def clock(self) -> float:
        """Return the seconds since the call, including those of earlier runs."""
        return self.plan.players * (time.perf_counter() - self._zero)

    def set_clock(self, seconds: float) -> None:
        """Set the clock to the time at which an earlier run had done the same work."""
        self._zero = time.perf_counter() - seconds / self.plan.players

    def record(self, method: str, step: int, **facts: Any) -> Record:
        """Make the record of a plan or a result, to be yielded."""
        key = {"player": self.player, "method": method, "step": step}
        record = {**key, **facts, "at": self.clock()}
        self.records[method, step] = record
        return record

    def run(self) -> Iterator[Record | RaceResult]:
        """Run all methods for a while, then the leading one; yield its result last."""
        for name in self.plan.names:
            self.settings[name] = setting = setting_for(self.opponent, name)
            # Some batched rules build tables in their first match.
            warm_up(setting.source)
        share = _FIRST * (self.plan.end - self.clock())
        entries: list[_RacingMethod] = []
        for name in self.plan.names:
            entry = _RacingMethod(self, name)
            announce(f"{name}, player {self.player}: {share:.1f} s")
            begin = self.clock()
            yield from entry.learn(begin + (1 - _EVALUATION) * share)
            yield from entry.evaluate(begin + share)
            entries.append(entry)
            if entry.point.is_exact:
                break
        begin = self.clock()
        room = self.plan.end - begin
        chosen = self.records.get(("leader", 0))
        if chosen is None:
            best = max(entries, key=lambda entry: entry.priority(room))
            yield (chosen := self.record("leader", 0, name=best.name))
        # A resumed run keeps the leader that was chosen.
        leader = max(entries, key=lambda entry: entry.name == chosen["name"])
        # The states that other methods store would slow down the leading one.
        del entries, entry
        announce(
            f"{leader.name} leads, player {self.player}: {max(room, 0):.1f} s more"
        )
        for look, duration in _LOOKS:
            if not leader.point.is_exact:
                yield from leader.learn(begin + (look - duration) * room)
                yield from leader.evaluate(begin + look * room)
        yield leader.point, self.curve, leader.response()


class _RacingMethod:
    """A method in the race: its work, and the value of its response.

    Attributes:
      name: The method.
      point: The current value of its response.
    """

    point: ResponseValue

    def __init__(self, race: MethodRace, name: str) -> None:
        self._race, self.name = race, name
        # Numbers of the next record, and of the most matches of a value so far.
        self._step, self._most = 0, 0
        setting, player, seed = race.settings[name], race.player, race.plan.seed
        self._learner: RootSearch | TableResponder = (
            RootSearch(race.opponent, setting, player, seed=seed)
            if name == "search"
            else TableResponder(setting, player, seed=seed)
        )
        folder = race.plan.folder
        self._file = None if folder is None else folder / f"{name}{player}.npz"
        # Units of earlier runs that must be repeated.
        self._pending: list[int] = []
        # Whether more time cannot help; and pairs of seconds and the share of work
        # done.
        self._finished, self._shares = False, [(0.0, 0.0)]
        # Units of work per second and matches per second, as last measured.
        self._speed, self._matches = 0.0, 0.0
        # Number of matches in the last batch.
        self._side = _PILOT

    def priority(self, seconds: float) -> tuple[bool, bool, float]:
        """Return the criteria for giving the method this much more time, in order.

        They are whether the method will finish all its work at its latest speed,
        whether it wins or can still improve, and the bound of its response.
        """
        (before, share), (now, later) = self._shares[0], self._shares[-1]
        rate = (later - share) / max(now - before, 1e-6)
        # The first slice finishes much work at once, such as folds.
        finishes = share > 0 and 1 - later < rate * (1 - _EVALUATION) * seconds
        bound = self.point.at_least
        return finishes, bound > 0 or not self._finished, bound

    def learn(self, until: float) -> Iterator[Record]:
        """Work until the clock shows `until`."""
        race, span = self._race, until - self._race.clock()

        def is_late() -> bool:
            return race.clock() > until + _SHORT * span

        while True:
            record = self._logged()
            if record is None:
                left = until - race.clock()
                # At least one unit, in order to measure its duration.
                if self._finished or (self._shares[-1][0] and left <= _SHORT * span):
                    return
                units = max(1, int(self._speed * left * _SLICE))
                if self._speed and units > self._speed * left:
                    return
                yield (record := self._record(units=units, seconds=None))
            elif "units" not in record:
                return
            if record["seconds"] is None:
                self._catch_up()
                begin = race.clock()
                units = self._learner.learn(record["units"], is_late)
                record = self._record(
                    units=units,
                    seconds=race.clock() - begin,
                    finished=self._learner.finished,
                    share=self._learner.share(),
                )
                yield record
                self._store()
            else:
                self._pending.append(record["units"])
                race.set_clock(record["at"])
            # The first slice also compiles functions and builds tables.
            spent = self._shares[-1][0]
            if spent:
                self._speed = record["units"] / max(record["seconds"], 1e-6)
            self._finished = record["finished"]
            # The last three slices give the latest speed.
            del self._shares[:-2]
            self._shares.append((spent + record["seconds"], record["share"]))
            self._step += 1

    def evaluate(self, until: float) -> Iterator[Record]:
        """Play matches until the clock shows `until`, and set `point`."""
        race = self._race
        record = self._logged()
        if record is None or record["value"] is None:
            response = self.response()
            if response.value is not None:
                record = self._record(matches=0, value=response.value, half_width=0.0)
            else:
                sizes = [] if record is None else record["sizes"]
                record = yield from self._play(response, sizes, until)
            yield record
        else:
            race.set_clock(record["at"])
            self._side = record.get("side", self._side)
            self._matches = record.get("speed", self._matches)
        point = ResponseValue(
            race.player,
            self.name,
            record["value"],
            record["half_width"],
            record["matches"],
            record["at"],
        ).with_offset(payoff_offset(race.opponent.game))
        race.curve.append(point)
        # The last value counts unless there was hardly any time for it, which is
        # decided by the numbers of matches and not by their returns.
        self._most = max(self._most, point.matches)
        if point.is_exact or point.matches > _FEW_MATCHES * self._most:
            self.point = point
        self._step += 1

    def response(self) -> TableResponse:
        """Return the method's current response."""
        self._catch_up()
        return self._learner.response()

    def _play(
        self, response: TableResponse, sizes: list[int], until: float
    ) -> Generator[Record, None, Record]:
        """Play batches of `sizes` matches, and more while there is time.

        The size of the next batch depends on the duration of those before. The matches
        of a batch are played in parallel, so that every match that began is counted. A
        method's first batch, which compiles functions, does not count.
        """
        race, sizes = self._race, list(sizes)
        returns: list[np.ndarray] = []
        for number in itertools.count():
            if number == len(sizes):
                if not (size := self._next_size(until, sum(map(len, returns)))):
                    break
                sizes.append(size)
                yield self._record(sizes=[*sizes], value=None)
            begin, is_warm = race.clock(), self._matches > 0
            random = np.random.default_rng([*self._stream(), number])
            batch = response.play(self._learner.setting, sizes[number], random)
            self._matches = len(batch) / max(race.clock() - begin, 1e-6)
            self._side = len(batch)
            if is_warm:
                returns.append(batch)
        mean, half_width = mean_of_bound(
            np.concatenate(returns),
            race.bounds,
            variance_reduced=not math.isnan(response.start),
        )
        return self._record(
            matches=sum(map(len, returns)),
            value=mean,
            half_width=half_width,
            side=self._side,
            speed=self._matches,
        )

    def _next_size(self, until: float, played: int) -> int:
        """Return the number of matches of the next batch; 0 for no more."""
        if not self._matches:
            return _PILOT
        size = int(self._matches * (until - self._race.clock()))
        # A match takes less time in large batches, so the speed changes.
        side = self._learner.setting.side_by_side(_SIDE)
        size = min(size, _GROWTH * self._side, side, _MOST - played)
        return size if size >= _LEAST else 0 if played else _LEAST

    def _store(self) -> None:
        """Write the table that was learned, so that it need not be learned again."""
        if self._file is not None and isinstance(self._learner, TableResponder):
            storage.save(self._file, self._learner.state(), {}, durable=False)

    def _catch_up(self) -> None:
        """Repeat the work of earlier runs since their last file.

        The clock does not advance, because the earlier runs counted the time.
        """
        pending, self._pending, now = self._pending, [], self._race.clock()
        if pending and self._file is not None and self._file.exists():
            state, _ = storage.load(self._file)
            totals = list(itertools.accumulate(pending))
            assert isinstance(self._learner, TableResponder)
            if (done := int(state["units"])) in totals:
                self._learner.restore(state)
                pending = pending[totals.index(done) + 1 :]
        for units in pending:
            self._learner.learn(units, lambda: False)
            self._race.set_clock(now)

    def _logged(self) -> Record | None:
        """Return the record of an earlier run for this step."""
        return self._race.records.get((self.name, self._step))

    def _record(self, **facts: Any) -> Record:
        """Make the record of a plan or a result of this step."""
        return self._race.record(self.name, self._step, **facts)

    def _stream(self) -> list[int]:
        """Return the seed of the matches of this step."""
        method = EXPLOIT_METHODS.index(self.name)
        return [self._race.plan.seed, 6, self._race.player, method, self._step]
