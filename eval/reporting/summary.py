"""Summaries of the lines of results for reports."""

from collections.abc import Sequence
from typing import NamedTuple

from spiel_cr.common.json_log import Record
from spiel_cr.policies.curves import CurveBand, Range, bands, median_count, over_seeds

from ..adapters import registry
from ..adapters.protocol import Entry


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
            runs = [r for r in records_of_game if r["algorithm"] == entry.name]
            for record in runs:
                if record.get("missing"):
                    absent[entry, record["missing"]] = None
                elif record["error"]:
                    failed.append((entry, record["seed"], record["error"]))
            good = [record for record in runs if record["nash_conv"] is not None]
            if good:
                rows.append(_row(entry, good))
        rows.sort(key=lambda row: row.nash_conv.median)
        parts = tuple(rows), tuple(absent), tuple(failed)
        done = len(records_of_game)
        summaries.append(GameSummary(game, *parts, expected, done))
    return summaries


def _row(entry: Entry, records: Sequence[Record]) -> Row:
    values = {name: [record[name] for record in records] for name in _RANGES}
    return Row(
        entry=entry,
        seeds=len(records),
        **{name: over_seeds(numbers) for name, numbers in values.items()},
        iterations=median_count([record["iterations"] for record in records]),
        judges=tuple(sorted({record["evaluator"] for record in records})),
        note=records[0]["note"],
        curve=bands([record["curve"] for record in records]),
    )
