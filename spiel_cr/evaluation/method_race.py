"""Race of methods that search or learn a response in one seat."""

import itertools
import math
import pathlib
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.common import storage
from spiel_cr.common.json_log import Record
from spiel_cr.common.messages import announce
from spiel_cr.evaluation.opponent import Target
from spiel_cr.evaluation.responses import table_response as settings
from spiel_cr.evaluation.responses.root_search import RootSearch
from spiel_cr.evaluation.responses.table_responder import TableResponder
from spiel_cr.evaluation.responses.table_response import Response, Setting
from spiel_cr.evaluation.result import Point, bound_of
from spiel_cr.games.opening.game_checks import utility_bounds

INSTRUMENTS = {
    "exact": "a best response, where the game is laid out as a whole",
    "search": "whole beliefs, from the start of the game to its ends",
    "table": "a table of the responder's infosets, learned in whole matches",
}

# Of the time: for each instrument at first, and of it for matches that judge.
_FIRST, _JUDGING = 0.1, 0.2
# A slice takes this share of what is left, the last one all; under so many seconds
# nothing more is begun.
_SLICE, _SHORT = 0.6, 0.01
# When the leader is judged, for the curve and at the end: at these shares of its time,
# and how much of it each takes.
_LOOKS = ((0.4, 0.04), (1.0, 0.16))
# A bound of less than this share of the matches of an earlier one does not replace it.
_HARDLY = 0.1
# Matches side by side: at first, at least, at most, how many times as many as before;
# and the most of one bound.
_PILOT, _LEAST, _SIDE, _GROWTH, _MOST = 8, 4, 4096, 4, 1 << 20


class SeatResponse(NamedTuple):
    """What came of a seat; float64 [S], its strategy on the form, is exact."""

    point: Point
    curve: list[Point]
    response: Response | np.ndarray


def setting_for(target: Target, name: str) -> Setting:
    """Where an instrument learns and is judged."""
    return settings.of_target(target, use_rules=name != "search")


class RacePlan(NamedTuple):
    """What all seats are to do.

    Attributes:
      names: of instruments.
      seed: of all draws.
      seats: so many share the time.
      begin: seconds since the call, when they begin.
      end: when they are to end, if one goes after the other.
      folder: where tables are kept that were learned; None: nowhere.
    """

    names: Sequence[str]
    seed: int
    seats: int
    begin: float
    end: float
    folder: pathlib.Path | None


class MethodRace:
    """All that is learned and judged in a seat, by a clock of its own.

    It goes as fast as if seats took turns, so what is done does not depend on whether
    they do.

    Attributes:
      target: who is exploited.
      plan: of all seats.
      player: the seat.
      records: of earlier runs, and new ones, by instrument and step.
      curve: points so far.
      settings: in which instruments learn and are judged, by their names.
    """

    def __init__(
        self, target: Target, plan: RacePlan, player: int, records: Sequence[Record]
    ) -> None:
        self.target, self.plan, self.player = target, plan, player
        self.records = {(row["instrument"], row["step"]): row for row in records}
        self.bounds = utility_bounds(target.game)
        self.curve: list[Point] = []
        self.settings: dict[str, Setting] = {}
        self.jump(plan.begin)

    def clock(self) -> float:
        """Seconds since the call, with those of the runs that this one goes on from."""
        return self.plan.seats * (time.perf_counter() - self._zero)

    def jump(self, seconds: float) -> None:
        """Sets the clock to what it was when a result of an earlier run was there."""
        self._zero = time.perf_counter() - seconds / self.plan.seats

    def note(self, instrument: str, step: int, **facts: Any) -> Record:
        """A record of what is planned, or done, to be yielded."""
        key = {"player": self.player, "instrument": instrument, "step": step}
        record = {**key, **facts, "at": self.clock()}
        self.records[instrument, step] = record
        return record

    def run(self) -> Iterator[Record | SeatResponse]:
        """All instruments for a while, then the leader; what came of it is the last."""
        for name in self.plan.names:
            self.settings[name] = setting = setting_for(self.target, name)
            # Some rules make tables in their first match.
            settings.warm_up(setting.source)
        share = _FIRST * (self.plan.end - self.clock())
        tried: list[_Entry] = []
        for name in self.plan.names:
            entry = _Entry(self, name)
            announce(f"{name}, player {self.player}: {share:.1f} s")
            begin = self.clock()
            yield from entry.learn(begin + (1 - _JUDGING) * share)
            yield from entry.judge(begin + share)
            tried.append(entry)
            if entry.point.is_exact:
                break
        begin = self.clock()
        room = self.plan.end - begin
        chosen = self.records.get(("leader", 0))
        if chosen is None:
            best = max(tried, key=lambda entry: entry.promise(room))
            yield (chosen := self.note("leader", 0, name=best.name))
        # A run that goes on keeps to what was chosen.
        leader = max(tried, key=lambda entry: entry.name == chosen["name"])
        # What others hold, states above all, slows everything down.
        del tried, entry
        announce(
            f"{leader.name} leads, player {self.player}: {max(room, 0):.1f} s more"
        )
        for look, judging in _LOOKS:
            if not leader.point.is_exact:
                yield from leader.learn(begin + (look - judging) * room)
                yield from leader.judge(begin + look * room)
        yield SeatResponse(leader.point, self.curve, leader.response())


class _Entry:
    """An instrument that learns in a seat: what it did, and what came of it.

    Attributes:
      name: of the instrument.
      point: what is known of its response now.
    """

    point: Point

    def __init__(self, race: MethodRace, name: str) -> None:
        """Learns nothing yet."""
        self._race, self.name = race, name
        # The next record; the most matches of a point so far.
        self._step, self._most = 0, 0
        setting, player, seed = race.settings[name], race.player, race.plan.seed
        self._learner: RootSearch | TableResponder = (
            RootSearch(race.target, setting, player, seed=seed)
            if name == "search"
            else TableResponder(setting, player, seed=seed)
        )
        folder = race.plan.folder
        self._file = None if folder is None else folder / f"{name}{player}.npz"
        # Work of earlier runs that is to be done again.
        self._owed: list[int] = []
        # Whether more time is of no use; after how many seconds how much was done.
        self._finished, self._shares = False, [(0.0, 0.0)]
        # Units of work and matches per second, as measured last.
        self._speed, self._matches = 0.0, 0.0
        # So many matches were played side by side.
        self._side = _PILOT

    def promise(self, seconds: float) -> tuple[bool, bool, float]:
        """What speaks for giving it so much more time: that it comes to all ends, as
        fast as it has gone on lately; that it wins or may go on; what it wins now."""
        (before, share), (now, later) = self._shares[0], self._shares[-1]
        rate = (later - share) / max(now - before, 1e-6)
        # The first slice comes to many ends at once, such as folds.
        ends = share > 0 and 1 - later < rate * (1 - _JUDGING) * seconds
        return ends, self.point.at_least > 0 or not self._finished, self.point.at_least

    def learn(self, until: float) -> Iterator[Record]:
        """Works until the clock shows so much."""
        race, span = self._race, until - self._race.clock()

        def is_late() -> bool:
            return race.clock() > until + _SHORT * span

        while True:
            record = self._logged()
            if record is None:
                left = until - race.clock()
                # At least one unit; if time is left, the next tells how long one takes.
                if self._finished or (self._shares[-1][0] and left <= _SHORT * span):
                    return
                units = max(1, int(self._speed * left * _SLICE))
                if self._speed and units > self._speed * left:
                    return
                yield (record := self._note(units=units, seconds=None))
            elif "units" not in record:
                return
            if record["seconds"] is None:
                self._catch_up()
                begin = race.clock()
                units = self._learner.learn(record["units"], is_late)
                seconds = race.clock() - begin
                learner = self._learner
                record = self._note(
                    units=units,
                    seconds=seconds,
                    finished=learner.finished,
                    share=learner.share(),
                )
                yield record
                self._keep()
            else:
                self._owed.append(record["units"])
                race.jump(record["at"])
            # The first one makes programs and tables.
            spent = self._shares[-1][0]
            if spent:
                self._speed = record["units"] / max(record["seconds"], 1e-6)
            self._finished = record["finished"]
            # All but the last three, which say how it goes on.
            del self._shares[:-2]
            self._shares.append((spent + record["seconds"], record["share"]))
            self._step += 1

    def judge(self, until: float) -> Iterator[Record]:
        """Plays matches until the clock shows so much; `point` says what came of it."""
        race = self._race
        record = self._logged()
        if record is None or record["value"] is None:
            response = self.response()
            if response.value is not None:
                value = response.value
                record = self._note(matches=0, value=value, at_least=value)
            else:
                sizes = [] if record is None else record["sizes"]
                record = yield from self._judged(response, sizes, until)
            yield record
        else:
            race.jump(record["at"])
            self._side = record.get("side", self._side)
            self._matches = record.get("speed", self._matches)
        self._passed(record)

    def response(self) -> Response:
        """What the instrument would play now."""
        self._catch_up()
        return self._learner.response()

    def _judged(
        self, response: Response, sizes: list[int], until: float
    ) -> Generator[Record, None, Record]:
        """Plays parts of so many matches, and more while there is time.

        How many come next is decided by how long those before took; these are played
        side by side, so that all that began are counted. The first ones of an
        instrument, which make programs, do not count.
        """
        race, sizes = self._race, list(sizes)
        returns: list[np.ndarray] = []
        for number in itertools.count():
            if number == len(sizes):
                if not (size := self._next(until, sum(map(len, returns)))):
                    break
                sizes.append(size)
                yield self._note(sizes=[*sizes], value=None)
            begin, warm = race.clock(), self._matches > 0
            random = np.random.default_rng([*self._stream(), number])
            found = response.play(self._learner.setting, sizes[number], random)
            self._matches = len(found) / max(race.clock() - begin, 1e-6)
            self._side = len(found)
            if warm:
                returns.append(found)
        together = np.concatenate(returns)
        takes_out = not math.isnan(response.start)
        mean, low = bound_of(together, race.bounds, without_luck=takes_out)
        facts = {"matches": len(together), "value": mean, "at_least": low}
        return self._note(**facts, side=self._side, speed=self._matches)

    def _next(self, until: float, played: int) -> int:
        """How many matches to play side by side now; 0: no more."""
        if not self._matches:
            return _PILOT
        size = int(self._matches * (until - self._race.clock()))
        # Many take less time each than few, so that what was measured soon changes.
        side = self._learner.setting.side_by_side(_SIDE)
        size = min(size, _GROWTH * self._side, side, _MOST - played)
        return size if size >= _LEAST else 0 if played else _LEAST

    def _keep(self) -> None:
        """Writes what a table has learned, so that it need not be learned again."""
        if self._file is not None and isinstance(self._learner, TableResponder):
            storage.save(self._file, self._learner.state(), {}, durable=False)

    def _catch_up(self) -> None:
        """Does what earlier runs did again, from their last file on.

        They have counted the time that it takes.
        """
        owed, self._owed, now = self._owed, [], self._race.clock()
        if owed and self._file is not None and self._file.exists():
            state, _ = storage.load(self._file)
            totals = list(itertools.accumulate(owed))
            assert isinstance(self._learner, TableResponder)
            if (done := int(state["units"])) in totals:
                self._learner.restore(state)
                owed = owed[totals.index(done) + 1 :]
        for units in owed:
            self._learner.learn(units, lambda: False)
            self._race.jump(now)

    def _logged(self) -> Record | None:
        """What an earlier run did, or planned, at this step."""
        return self._race.records.get((self.name, self._step))

    def _note(self, **facts: Any) -> Record:
        """What is planned, or done, at this step."""
        return self._race.note(self.name, self._step, **facts)

    def _passed(self, record: Record) -> None:
        """The step is over, and gives a point."""
        numbers = record["value"], record["at_least"], record["matches"]
        point = Point(record["at"], self._race.player, self.name, *numbers)
        self._race.curve.append(point)
        # The last one counts, unless there was hardly time for it: which one is decided
        # by the numbers of matches, and not by what these brought.
        self._most = max(self._most, point.matches)
        if point.is_exact or point.matches > _HARDLY * self._most:
            self.point = point
        self._step += 1

    def _stream(self) -> list[int]:
        """What random numbers of matches are drawn by."""
        name = list(INSTRUMENTS).index(self.name)
        return [self._race.plan.seed, 6, self._race.player, name, self._step]
