"""Comparing: from lines of results to what a report shows."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..contestants import registry


class Range(NamedTuple):
    """A number over seeds: median, least, greatest."""

    median: float
    least: float
    greatest: float

    @property
    def single(self) -> bool:
        """Whether all seeds gave the same."""
        return self.least == self.greatest


class CurveBand(NamedTuple):
    """A point of a curve over seeds.

    Attributes:
      seconds, iterations: medians; iterations are None where there is no such thing.
      nash_conv: median and range.
    """

    seconds: float
    iterations: float | None
    nash_conv: Range


class Row(NamedTuple):
    """An algorithm on a game, all seeds together.

    Attributes:
      algorithm: its name; `title`, `ours`, `way`, `how` as in its `Entry`.
      seeds: that gave a result.
      nash_conv, game_value, seconds, setup_seconds, compile_seconds: over seeds.
      iterations: median; None where there is no such thing.
      judges: who computed NashConv.
      note: of the first seed.
      curve: points on the way.
    """

    algorithm: str
    title: str
    ours: bool
    way: str
    how: str
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


class GameSummary(NamedTuple):
    """A game of the report.

    Attributes:
      game: its string.
      rows: lowest NashConv first.
      absent: (title, reason) of what could not run.
      failed: (title, seed, error) of what did not work.
      expected: how many runs the comparison has on this game.
      done: how many of them are there.
    """

    game: str
    rows: tuple[Row, ...]
    absent: tuple[tuple[str, str], ...]
    failed: tuple[tuple[str, int, str], ...]
    expected: int
    done: int

    def best(self, *, ours: bool) -> Row | None:
        """The iterative solver with the lowest NashConv."""
        found = [r for r in self.rows if r.ours == ours and r.way == "iterates"]
        return found[0] if found else None

    @property
    def exact(self) -> Row | None:
        """A linear program's row, which has the game's value."""
        found = [row for row in self.rows if row.algorithm in ("lp", "openspiel-lp")]
        return found[0] if found else None


def summarise(
    settings: dict[str, Any], records: Sequence[dict[str, Any]]
) -> list[GameSummary]:
    """A summary for each game of a run.

    Args:
      settings: of the run.
      records: lines of `results.jsonl`, each run once.
    """
    summaries = []
    for game in settings["games"]:
        rows, absent, failed = [], [], []
        mine = [record for record in records if record["game"] == game]
        for name in settings["algorithms"]:
            own = [record for record in mine if record["algorithm"] == name]
            title = registry.find(name).title
            for record in own:
                if record.get("missing"):
                    if (title, record["missing"]) not in absent:
                        absent.append((title, record["missing"]))
                elif record["error"]:
                    failed.append((title, record["seed"], record["error"]))
            good = [record for record in own if record["nash_conv"] is not None]
            if good:
                rows.append(_row(name, good))
        rows.sort(key=lambda row: row.nash_conv.median)
        expected = sum(
            settings["seeds"] if registry.find(name).samples else 1
            for name in settings["algorithms"]
        )
        summaries.append(
            GameSummary(
                game, tuple(rows), tuple(absent), tuple(failed), expected, len(mine)
            )
        )
    return summaries


def _row(name: str, records: Sequence[dict[str, Any]]) -> Row:
    entry = registry.find(name)
    counts = [r["iterations"] for r in records if r["iterations"] is not None]
    curves = [record["curve"] for record in records]
    return Row(
        algorithm=name,
        title=entry.title,
        ours=entry.ours,
        way=entry.way,
        how=entry.how,
        seeds=len(records),
        nash_conv=_range(records, "nash_conv"),
        game_value=_range(records, "game_value"),
        seconds=_range(records, "seconds"),
        setup_seconds=_range(records, "setup_seconds"),
        compile_seconds=_range(records, "compile_seconds"),
        iterations=statistics.median(counts) if counts else None,
        judges=tuple(sorted({record["judge"] for record in records})),
        note=records[0]["note"],
        curve=_bands(
            _runs_in_common(curves) if entry.way == "restarts" else _looks(curves)
        ),
    )


def _range(records: Sequence[dict[str, Any]], name: str) -> Range:
    values = [float(record[name]) for record in records]
    return Range(statistics.median(values), min(values), max(values))


# Points of a curve, each [seconds, iterations, NashConv].
_Curve = list[list[Any]]


def _looks(curves: Sequence[_Curve]) -> list[_Curve]:
    """Points of the same look, counted from the end: slow seeds skip the first ones."""
    length = min(len(curve) for curve in curves)
    return [[curve[at] for curve in curves] for at in range(-length, 0)]


def _runs_in_common(curves: Sequence[_Curve]) -> list[_Curve]:
    """Runs of as many iterations, where all seeds have one, and the final ones.

    Quick seeds have more runs than slow ones; only what was run alike is one point.
    """
    of = [{point[1]: point for point in curve} for curve in curves]
    shared = [count for count in of[0] if all(count in other for other in of)]
    joined = [[points[count] for points in of] for count in shared]
    final = [curve[-1] for curve in curves]
    return joined if joined and joined[-1] == final else [*joined, final]


def _bands(groups: Sequence[_Curve]) -> tuple[CurveBand, ...]:
    """Medians and ranges of points that belong together."""
    bands = []
    for points in groups:
        counts = [count for _, count, _ in points if count is not None]
        values = [value for _, _, value in points]
        bands.append(
            CurveBand(
                statistics.median(seconds for seconds, _, _ in points),
                statistics.median(counts) if counts else None,
                Range(statistics.median(values), min(values), max(values)),
            )
        )
    return tuple(bands)
