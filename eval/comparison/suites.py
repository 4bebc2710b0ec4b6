"""Suites of games for `compare`: games with known values, and the page of results."""

import pathlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import spiel_cr
from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import GameTooLargeError, MoreKnowledgeError
from spiel_cr.common.executor import Executor
from spiel_cr.common.json_log import JsonLog, Record
from spiel_cr.common.memory import Limit
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.players.player_specs import MEMORY_LIMIT
from spiel_cr.policies.form_policy import CanonicalPolicy
from spiel_cr.solvers.algorithms import CFR
from spiel_cr.solvers.tuning import LEAST, geometric_mean

from ..common.budget import Budget
from ..common.files import around_table, markdown_table


class SuiteGame(NamedTuple):
    """A game of a suite.

    Attributes:
      game: OpenSpiel game string.
      low, high: Bracket of player 0's value, or None if it is unknown.
      source: Programs, publication or argument that the bracket comes from.
      memory_limit: Memory limit of a run.
      is_canonical: Whether sampled policies are evaluated as `canonical(policy=...)`,
        because they may treat equivalent deals differently.
    """

    game: str
    low: float | None = None
    high: float | None = None
    source: str = "–"
    memory_limit: str = MEMORY_LIMIT
    is_canonical: bool = False


class Suite(NamedTuple):
    """Games, algorithms and budget of a benchmark.

    Attributes:
      name: Name of the suite.
      games: The games.
      algorithms: Names for `registry.find`, or of `solve` in the large suite.
      budget: Budget of each run.
      points: Numbers of iterations, or seconds, at which the page compares rules.
    """

    name: str
    games: Sequence[SuiteGame]
    algorithms: Sequence[str]
    budget: Budget
    points: Sequence[int]

    @property
    def is_built(self) -> bool:
        """Whether `compare` runs the suite on game trees."""
        return self.budget.iterations is not None


# Seed of algorithms that sample.
_SEED = 0
_ROWS = tomllib.loads(
    pathlib.Path(__file__).with_name("suites.toml").read_text("utf-8")
)
SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "small",
            [SuiteGame(**row) for row in _ROWS["small"]],
            ("auto", *CFR.presets),
            Budget(None, 1000),
            (10, 100, 1000),
        ),
        Suite(
            "large",
            [SuiteGame(**row) for row in _ROWS["large"]],
            ("auto", "os-mccfr", "mmd"),
            Budget(600.0, None),
            (600,),
        ),
    )
}


def run_large(
    suite: Suite,
    out: atomic.Path,
    executor: Executor,
    *,
    memory_limit: Limit = MEMORY_LIMIT,
) -> Iterator[Record]:
    """Solve games that have no game tree, and yield the records of all runs.

    Each run is one call of `solve` with the suite's seconds, in the form that `solve`
    chooses. Runs that the folder already contains are not repeated, and come first.

    Args:
      suite: The suite.
      out: Folder of `settings.json` and `results.jsonl`.
      executor: Executor of the runs.
      memory_limit: Memory limit of each run. If it is the default, games may have a
        limit of their own.
    """
    seconds = suite.budget.seconds
    settings: Record = {"suite": suite.name, "seconds": seconds, "seed": _SEED}
    settings |= {"memory_limit": memory_limit, "versions": storage.versions()}
    tasks = {
        (row.game, name): (row, name)
        for row in suite.games
        for name in suite.algorithms
    }
    keys = ("game", "algorithm")
    with JsonLog(out, "results", settings, key=keys) as log:
        setup = seconds, memory_limit
        yield from [log.records[key] for key in tasks if key in log.records]
        for _, record in log.map(executor, _LargeRun, setup, tasks):
            yield record


class _LargeRun:
    """Function that solves a game and evaluates the result."""

    def __init__(self, seconds: float, memory_limit: Limit) -> None:
        self._seconds, self._limit = seconds, memory_limit

    def __call__(self, task: tuple[SuiteGame, str]) -> Record:
        """Return the line of a run; without a NashConv if it has no exact one."""
        row, algorithm = task
        record: Record = {"game": row.game, "algorithm": algorithm, "curve": []}
        limit = row.memory_limit if self._limit == MEMORY_LIMIT else self._limit
        options = spiel_cr.GameOptions(memory_limit=limit)
        goal = spiel_cr.Goal(seconds=self._seconds)
        try:
            result: Any = spiel_cr.solve(
                row.game, algorithm, goal, options=options, seed=_SEED
            )
            policy = result
            if row.is_canonical and result.form is None:
                form = public_tree_game(open_game(row.game).game)
                policy = CanonicalPolicy(result.average_policy(), form)
            value = spiel_cr.nash_conv(row.game, policy, memory_limit=limit)
        except (GameTooLargeError, MoreKnowledgeError, ValueError) as error:
            return {**record, "nash_conv": None, "error": str(error)}
        point = [self._seconds, result.iterations, value]
        return {**record, "nash_conv": value, "error": None, "curve": [point]}


class Standing(NamedTuple):
    """NashConv of all algorithms on a game after equal budgets.

    Attributes:
      row: The game.
      reached: NashConv by algorithm, for each point of the suite.
    """

    row: SuiteGame
    reached: Sequence[Mapping[str, float]]

    def best(self, point: int) -> str | None:
        """Return the rule with the lowest NashConv; `auto` does not count."""
        rules = {k: v for k, v in self.reached[point].items() if k != "auto"}
        return min(rules, key=lambda name: rules[name], default=None)


def standings(suite: Suite, records: Sequence[Record]) -> list[Standing]:
    """Return what all algorithms reached on each game.

    Args:
      suite: The suite.
      records: Lines of results, with curves of [seconds, iterations, NashConv].
    """
    axis = 1 if suite.is_built else 0
    rows = []
    for row in suite.games:
        reached: list[dict[str, float]] = [{} for _ in suite.points]
        for record in records:
            for point in record.get("curve", ()) if record["game"] == row.game else ():
                for values, budget in zip(reached, suite.points, strict=True):
                    if point[axis] <= budget:
                        values[record["algorithm"]] = point[2]
        rows.append(Standing(row, reached))
    return rows


class RuleSummary(NamedTuple):
    """Results of a rule on all games after the largest budget.

    Values below 1e-12 count as 1e-12.

    Attributes:
      rule: Name of the rule.
      first: Number of games on which no other rule has a lower NashConv.
      rank: Mean rank, from 1.
      mean: Geometric mean of NashConv.
    """

    rule: str
    first: int
    rank: float
    mean: float


def summaries(suite: Suite, rows: Sequence[Standing]) -> list[RuleSummary]:
    """Return the results of all rules that were run on all games, best rank first."""
    last = [row.reached[-1] for row in rows]
    names = [
        name
        for name in suite.algorithms
        if name != "auto" and all(name in values for values in last)
    ]
    values = np.maximum([[row[name] for name in names] for row in last], LEAST)
    ranks = 1 + (values[:, None, :] < values[:, :, None]).sum(axis=2)
    means = geometric_mean(values.T) if names else ()
    found = [
        RuleSummary(name, int((column == 1).sum()), float(column.mean()), float(mean))
        for name, column, mean in zip(names, ranks.T, means, strict=True)
    ]
    return sorted(found, key=lambda each: each.rank)


def auto_ratio(rows: Sequence[Standing]) -> float | None:
    """Return the geometric mean of `auto`'s NashConv over that of the best rule.

    It compares the largest budget; values below 1e-12 count as 1e-12.
    """
    pairs = [
        (row.reached[-1]["auto"], row.reached[-1][best])
        for row in rows
        if "auto" in row.reached[-1] and (best := row.best(-1))
    ]
    if not pairs:
        return None
    auto, best_rule = geometric_mean(np.array(pairs).T)
    return float(auto / best_rule)


def write_page(suite: Suite, rows: Sequence[Standing], path: atomic.Path) -> None:
    """Write the tables of a suite between the marks of a Markdown page.

    Args:
      suite: The suite.
      rows: Result of `standings`.
      path: The page; in an existing one, only the text between the marks changes.

    Raises:
      ValueError: If the page exists and has no marks.
    """
    file, unit = pathlib.Path(path), "iterations" if suite.is_built else "s"
    before, after = around_table(file, f"suite {suite.name}")
    heads = ["game", "value of player 0", "source of the value"]
    heads += [f"best rule, {point:,} {unit}" for point in suite.points]
    summary, results = [], []
    for row in rows:
        game, last = f"`{row.row.game}`", row.reached[-1]
        best = (_best(row, place) for place in range(len(suite.points)))
        summary.append([game, _value(row.row), row.row.source, *best])
        results.append([game, *(_number(last.get(name)) for name in suite.algorithms)])
    names = ["game", *(f"`{name}`" for name in suite.algorithms)]
    ratio = auto_ratio(rows)
    text = f"{before}{markdown_table(heads, summary)}\n{markdown_table(names, results)}"
    if suite.is_built:
        heads = ["rule", "games with the lowest NashConv", "mean rank"]
        ranked = [
            [f"`{x.rule}`", str(x.first), f"{x.rank:.2f}", f"{x.mean:.2e}"]
            for x in summaries(suite, rows)
        ]
        heads.append("geometric mean of NashConv")
        text += "\n" + markdown_table(heads, ranked)
    if ratio is not None:
        text += (
            f"\nThe geometric mean of `auto`'s NashConv divided by that of the best "
            f"rule is {ratio:.3g}, where values below 1e-12 count as 1e-12.\n"
        )
    atomic.write_text(file, text + after)


def _best(row: Standing, place: int) -> str:
    name, reached = row.best(place), row.reached[place]
    if name is None:
        return "–"
    solved = [each for each in reached if each != "auto" and reached[each] <= LEAST]
    if len(solved) > 1:
        return f"{len(solved)} rules ≤ {LEAST:.0e}"
    return f"`{name}` {_number(reached[name])}"


def _value(row: SuiteGame) -> str:
    if row.low is None or row.high is None:
        return "–"
    if row.high - row.low < 1e-8:
        return f"{(row.low + row.high) / 2:.8g}"
    return f"{row.low:.6g} to {row.high:.6g}"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2e}" if value > LEAST else f"≤ {LEAST:.0e}"
