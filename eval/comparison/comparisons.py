"""Comparisons of algorithms on games, with equal budgets.

`compare` does every run (game, algorithm, seed) that its folder does not have yet, and
writes the report. Algorithms that do not sample run with one seed only. In the folder,
`settings.json` describes the comparison, and `results.jsonl` has one line for each
finished run, so that an interrupted comparison can be resumed.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pyspiel

from spiel_cr.common import atomic, interrupts, memory
from spiel_cr.common import json_records as checks
from spiel_cr.common.checks import check_iterations
from spiel_cr.common.executor import Executor
from spiel_cr.common.json_log import JsonLog, OtherRunError, Record, same_settings
from spiel_cr.common.messages import progress_bar
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.opened import open_game
from spiel_cr.players.player_specs import MEMORY_LIMIT

from ..adapters import registry
from ..common import conditions
from ..common.budget import Budget
from ..reporting import report
from .measure import KEY, Run, failed, measurer


class Comparison(NamedTuple):
    """Files and results of a comparison.

    Attributes:
      folder: Folder of all files.
      settings: Settings of the comparison.
      records: Lines of `results.jsonl`, the newest of each run, in the order of the
        plan.
      requested: Records of the runs of this call; a folder may contain more.
    """

    folder: pathlib.Path
    settings: Record
    records: list[Record]
    requested: list[Record]


@dataclasses.dataclass(frozen=True)
class CompareConfig:
    """Settings of the runs of a comparison.

    Attributes:
      seeds: Number of seeds of algorithms that sample: 0, 1, ...
      executor: Executor of the runs. Without `patience`, workers are given ten minutes
        and thirty times the budget's seconds for a run.
      memory_limit: Memory limit of each process, such as 3GB. Runs on larger games are
        rejected, or reported as missing if the size is not known before.
      retry: Whether to repeat runs that failed.
    """

    seeds: int = 1
    executor: Executor = Executor(1)
    memory_limit: memory.Limit = MEMORY_LIMIT
    retry: bool = False

    def __post_init__(self) -> None:
        memory.parse_limit(self.memory_limit)
        check_iterations(self.seeds, name="seeds")


def compare(
    games: Sequence[str],
    algorithms: Sequence[str],
    budget: Budget,
    out: atomic.Path,
    config: CompareConfig = CompareConfig(),
    *,
    progress: bool | None = None,
    unwritten: Callable[[OSError], object] | None = None,
) -> Comparison:
    """Execute the runs that are not in the folder, and write the report.

    Args:
      games: OpenSpiel game strings; equivalent strings are the same game.
      algorithms: Names, see `registry.find`; each counts once.
      budget: Budget of each run; entries that work "once" do not depend on it.
      out: Folder for `settings.json`, `results.jsonl`, `report.html`, `report.md`, and
        the pictures of the Markdown.
      config: Settings of the runs.
      progress: Whether to show a bar on stderr.
      unwritten: Function called for each file of the report that cannot be written. If
        None, the first such error is raised.

    Raises:
      OSError: If results cannot be written. Earlier ones are kept.
      pyspiel.SpielError: If OpenSpiel does not know a game.
      ValueError: If an argument is invalid, a game is too large, or the folder belongs
        to another run.
    """
    limit = memory.parse_limit(config.memory_limit)
    _check_algorithms(algorithms)
    budget.check()
    _check_games(games, limit)
    executor = config.executor
    settings = {
        "games": list(distinct_games(games).values()),
        "algorithms": list(dict.fromkeys(algorithms)),
        "budget": budget._asdict(),
        "seeds": config.seeds,
        "workers": executor.workers if executor.ray is None else "ray",
        "versions": conditions.versions(),
        "memory_limit": config.memory_limit,
    }
    folder = pathlib.Path(out)
    with JsonLog(
        folder, "results", settings, key=KEY, check=_check_line, merge=_merged
    ) as log:
        log.begin()
        # Runs are identified by the game string of the folder.
        names_of_games = distinct_games(log.settings["games"])
        names = [names_of_games[key] for key in distinct_games(games)]
        runs = plan(names, algorithms, budget, config.seeds)
        left = {
            run.key: run._replace(memory_limit=limit)
            for run in runs
            if not _finished(log.records.get(run.key), config.retry)
        }
        if executor.patience is None and not executor.is_in_process:
            patience = 600.0 + 30.0 * (budget.seconds or 0.0)
            executor = dataclasses.replace(executor, patience=patience)
        records = log.map(
            executor,
            measurer,
            (executor.is_in_process,),
            left,
            finished=lambda record: False,
            # Folders grow under other conditions, so each line has its own.
            add=lambda record: _keep(
                log, {**record, "workers": log.settings["workers"]}
            ),
            order=lambda: (run.key for run in _planned(log)),
            lost=lambda key, reason: failed(left[key], reason),
            named=lambda key: "{1} on {0}, seed {2}".format(*key),
        )
        try:
            for _ in progress_bar(
                records,
                total=len(runs),
                initial=len(runs) - len(left),
                desc="compare",
                unit="run",
                progress=progress,
                smoothing=0.1,
            ):
                pass
        finally:
            # The report is also written after an interruption, in this thread.
            with interrupts.saving(lambda: False):
                report.write(folder, log.settings, _ordered(log), unwritten=unwritten)
    requested = [log.records[run.key] for run in runs]
    return Comparison(folder, log.settings, _ordered(log), requested)


def plan(
    games: Sequence[str], algorithms: Sequence[str], budget: Budget, seeds: int
) -> list[Run]:
    """Return all runs, seed by seed, so that early runs cover all algorithms."""
    return [
        Run(game, name, seed, *budget)
        for game in distinct_games(games).values()
        for seed in range(seeds)
        for name in dict.fromkeys(algorithms)
        if seed == 0 or registry.find(name).samples
    ]


def _check_algorithms(algorithms: Sequence[str]) -> None:
    if not algorithms:
        raise ValueError("algorithms=[]: give one name or more")
    for name in algorithms:
        for file in registry.find(name).files:
            if not pathlib.Path(file).is_file():
                raise ValueError(
                    f"algorithm={name!r}: file {file} does not exist; create it with "
                    f"spiel-cr solve --save {file}"
                )


def _check_games(games: Sequence[str], limit: float) -> None:
    if not games:
        raise ValueError("games=[]: give one game string or more")
    for game in games:
        estimate.check_limit(open_game(game).game, limit)


def _finished(record: Record | None, retry: bool) -> bool:
    # Missing packages may have been installed since.
    if record is None or record.get("missing"):
        return False
    return not (retry and record["error"])


def _keep(log: JsonLog, record: Record) -> None:
    previous = log.records.get(tuple(record[name] for name in KEY), {})
    missing = record.get("missing")
    if not missing or previous.get("missing") != missing:
        log.add(record, sync=True)


def _ordered(log: JsonLog) -> list[Record]:
    return [log.records[run.key] for run in _planned(log) if run.key in log.records]


def _planned(log: JsonLog) -> list[Run]:
    """Return all runs of a folder that may have been done."""
    settings = log.settings
    # The settings may name many more seeds than the folder has runs for.
    last_seed = max((record["seed"] for record in log.records.values()), default=-1)
    budget, seeds = Budget(**settings["budget"]), min(settings["seeds"], last_seed + 1)
    return plan(settings["games"], settings["algorithms"], budget, seeds)


def _is_point(value: Any) -> bool:
    """Return whether a value is [seconds, iterations, NashConv]."""
    tests = checks.is_duration, checks.optional(checks.is_count), checks.is_number
    return checks.is_list(lambda _: True, 3)(value) and all(
        test(one) for test, one in zip(tests, value, strict=True)
    )


# Fields of every line, and further fields of lines with numbers.
_LINE: dict[str, checks.Test] = {
    "game": checks.is_text,
    "algorithm": checks.is_text,
    "seed": checks.is_count,
    "error": checks.optional(checks.is_text),
    "nash_conv": checks.optional(checks.is_number),
    "machine": checks.is_text,
    "source": checks.is_text,
    "finished": checks.is_text,
    "optional_versions": checks.is_table(checks.is_text),
    "workers": lambda value: checks.is_count(value) or value == "ray",
}
_NUMBERS: dict[str, checks.Test] = {
    **dict.fromkeys(("seconds", "setup_seconds", "compile_seconds"), checks.is_number),
    "cpu_seconds": checks.is_number,
    "iterations": checks.optional(checks.is_count),
    "game_value": checks.is_number,
    "evaluator": checks.is_text,
    "evaluator_reason": checks.optional(checks.is_text),
    "curve_evaluator": checks.is_text,
    "note": checks.is_text,
    "curve": lambda value: bool(value) and checks.is_list(_is_point)(value),
}


def _check_line(record: Record) -> None:
    """Raise ValueError if a line does not describe a run."""
    checks.check_fields(record, _LINE)
    if record["nash_conv"] is not None:
        checks.check_fields(record, _NUMBERS)
    elif not checks.is_text(record.get("missing", record["error"])):
        raise ValueError("has no nash_conv, and no reason")


def distinct_games(games: Iterable[str]) -> dict[str, str]:
    """Return the first string of each game, by its complete string."""
    names: dict[str, str] = {}
    for game in games:
        try:
            key = str(open_game(game).game)
        except (pyspiel.SpielError, ValueError):
            # A game of the folder; those of this call are checked elsewhere.
            key = game
        names.setdefault(key, game)
    return names


def _merged(settings: Record, new: Record) -> Record:
    same_settings(settings, {name: new[name] for name in ("budget", "versions")})
    texts = checks.is_list(checks.is_text)
    tests = {"games": texts, "algorithms": texts, "seeds": checks.is_count}
    try:
        checks.check_fields(settings, tests)
    except ValueError as error:
        raise OtherRunError(
            f"has a settings.json that is not of a comparison: it {error}"
        ) from None
    for name in settings["algorithms"]:
        try:
            registry.find(name)
        except ValueError as error:  # The report would fail.
            raise OtherRunError(
                f"names in settings.json an unknown algorithm ({error})"
            ) from error
    names = dict.fromkeys([*settings["algorithms"], *new["algorithms"]])
    return {
        **new,
        "games": list(distinct_games([*settings["games"], *new["games"]]).values()),
        "algorithms": list(names),
        "seeds": max(settings["seeds"], new["seeds"]),
    }
