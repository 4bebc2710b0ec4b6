"""Summaries of the lines of results for reports."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from spiel_cr.common.json_log import Record

from ..adapters import registry
from ..adapters.protocol import Entry


class Range(NamedTuple):
    """Median, minimum and maximum of a number over seeds."""

    median: float
    least: float
    greatest: float

    @property
    def single(self) -> bool:
        """Whether all seeds have the same value."""
        return self.least == self.greatest


class CurveBand(NamedTuple):
    """A point of a curve over seeds.

    Attributes:
      seconds: Median of seconds.
      iterations: Median number of iterations; None if there are none.
      nash_conv: Median and range of NashConv.
    """

    seconds: float
    iterations: float | None
    nash_conv: Range


class Row(NamedTuple):
    """The results of an algorithm on a game, over all seeds.

    Attributes:
      entry: Entry of the algorithm.
      seeds: Number of seeds with a result.
      nash_conv: NashConv over seeds.
      game_value: Value of the game over seeds.
      seconds: Seconds of work over seeds.
      setup_seconds: Seconds of the set-up over seeds.
      compile_seconds: Seconds of compilation over seeds.
      iterations: Median number of iterations; None if there are none.
      judges: Tools that computed NashConv.
      note: Note of the first seed.
      curve: Points of the curve.
    """

    entry: Entry
    seeds: int
    nash_conv: Range
    game_value: Range
    seconds: Range
    setup_seconds: Range
    compile_seconds: Range
    iterations: float | None
    judges: tuple[str, ...]
    note: str
    curve: tuple[CurveBand, ...]

    @property
    def doubt(self) -> str:
        """The reason why its NashConv means nothing; empty if it is meaningful."""
        if self.iterations is None or self.iterations >= self.entry.meaningful:
            return ""
        return f"too few iterations to mean anything ({self.entry.meaningful_by})"


# Values of a record that a row has over seeds.
_RANGES = "nash_conv game_value seconds setup_seconds compile_seconds".split()


class GameSummary(NamedTuple):
    """The results of all algorithms on a game.

    Attributes:
      game: Game string.
      rows: Rows, lowest NashConv first.
      absent: Pairs (entry, reason) of algorithms that could not run.
      failed: Triples (entry, seed, error) of runs that failed.
      expected: Number of runs of the comparison on this game.
      done: Number of finished runs.
    """

    game: str
    rows: tuple[Row, ...]
    absent: tuple[tuple[Entry, str], ...]
    failed: tuple[tuple[Entry, int, str], ...]
    expected: int
    done: int

    def best(self, *, is_spiel_cr: bool) -> Row | None:
        """Return the iterative solver with the lowest NashConv."""
        rows = (
            r
            for r in self.rows
            if r.entry.is_spiel_cr == is_spiel_cr and r.entry.mode == "iterates"
        )
        return next(rows, None)

    @property
    def exact(self) -> Row | None:
        """The row of a linear program, which has the value of the game."""
        rows = (r for r in self.rows if r.entry.name in ("lp", "openspiel-lp"))
        return next(rows, None)


def summarise(settings: Record, records: Sequence[Record]) -> list[GameSummary]:
    """Return a summary for each game of a comparison.

    Args:
      settings: Settings of the comparison.
      records: Lines of `results.jsonl`, each run once.
    """
    entries = [registry.find(name) for name in settings["algorithms"]]
    expected = sum(settings["seeds"] if entry.samples else 1 for entry in entries)
    summaries = []
    for game in settings["games"]:
        rows: list[Row] = []
        # Each reason is listed once, in order.
        absent: dict[tuple[Entry, str], None] = {}
        failed: list[tuple[Entry, int, str]] = []
        records_of_game = [record for record in records if record["game"] == game]
        for entry in entries:
            runs = [
                record
                for record in records_of_game
                if record["algorithm"] == entry.name
            ]
            for record in runs:
                if record.get("missing"):
                    absent[entry, record["missing"]] = None
                elif record["error"]:
                    failed.append((entry, record["seed"], record["error"]))
            good = [record for record in runs if record["nash_conv"] is not None]
            if good:
                rows.append(_row(entry, good))
        rows.sort(key=lambda row: row.nash_conv.median)
        summaries.append(
            GameSummary(
                game,
                tuple(rows),
                tuple(absent),
                tuple(failed),
                expected,
                len(records_of_game),
            )
        )
    return summaries


def _row(entry: Entry, records: Sequence[Record]) -> Row:
    ranges = {name: _range([record[name] for record in records]) for name in _RANGES}
    curves = [record["curve"] for record in records]
    return Row(
        entry=entry,
        seeds=len(records),
        **ranges,
        iterations=_median([record["iterations"] for record in records]),
        judges=tuple(sorted({record["evaluator"] for record in records})),
        note=records[0]["note"],
        curve=_bands(
            _runs_in_common(curves) if entry.mode == "restarts" else _points(curves)
        ),
    )


def _range(values: Sequence[float]) -> Range:
    return Range(float(statistics.median(values)), min(values), max(values))


def _median(counts: Sequence[int | None]) -> float | None:
    """Return the median of the counts that are not None."""
    present = [count for count in counts if count is not None]
    return statistics.median(present) if present else None


# Points of a curve, each [seconds, iterations, NashConv].
_Curve = list[list[Any]]


def _points(curves: Sequence[_Curve]) -> list[_Curve]:
    """Group points by their place from the end, because slow seeds skip the first."""
    length = min(len(curve) for curve in curves)
    return [[curve[place] for curve in curves] for place in range(-length, 0)]


def _runs_in_common(curves: Sequence[_Curve]) -> list[_Curve]:
    """Group runs with the same number of iterations in all seeds, and the final runs.

    Fast seeds have more runs than slow ones, so only equal numbers are one point.
    """
    of = [{point[1]: point for point in curve} for curve in curves]
    shared = [count for count in of[0] if all(count in other for other in of)]
    joined = [[points[count] for points in of] for count in shared]
    final = [curve[-1] for curve in curves]
    return joined if joined and joined[-1] == final else [*joined, final]


def _bands(groups: Sequence[_Curve]) -> tuple[CurveBand, ...]:
    """Return medians and ranges of groups of points."""
    return tuple(
        CurveBand(
            statistics.median(seconds for seconds, _, _ in points),
            _median([count for _, count, _ in points]),
            _range([value for _, _, value in points]),
        )
        for points in groups
    )
