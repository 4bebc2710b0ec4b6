"""Last stage: algorithms side by side on games, with equal budgets.

`compare` runs every cell (game, algorithm, seed) that its folder does not have yet, and
writes the report. Algorithms that do not sample run with one seed only.
"""

import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tqdm import tqdm

from spiel_cr.common import memory, storage
from spiel_cr.common.checks import check_iterations
from spiel_cr.compilation import loading
from spiel_cr.players import bot_strings

from ..common import conditions
from ..common.budget import Budget
from ..contestants import registry
from ..reporting import report
from . import run_folder
from . import workers as pool
from .measure import Run, RunKey


class Comparison(NamedTuple):
    """What a comparison left behind.

    Attributes:
      folder: with all files.
      settings: of the run.
      records: the lines of `results.jsonl`, the newest of each cell, in the order of
        the plan.
      asked: those of them that this call was about; a folder may hold more.
    """

    folder: pathlib.Path
    settings: dict[str, Any]
    records: list[dict[str, Any]]
    asked: list[dict[str, Any]]


def compare(
    games: Sequence[str],
    algorithms: Sequence[str],
    budget: Budget,
    out: storage.Path,
    *,
    seeds: int = 1,
    workers: int = 1,
    ray: bool = False,
    patience: float | None = None,
    memory_limit: int | str | None = bot_strings.MEMORY_LIMIT,
    retry: bool = False,
    progress: bool = False,
) -> Comparison:
    """Runs what is not in the folder yet, and writes the report.

    Args:
      games: OpenSpiel game strings; a game in other words is the same game.
      algorithms: names, see `catalogue.find`; each counts once.
      budget: of each cell; what works "once" takes what it takes.
      out: folder: `settings.json`, `results.jsonl`, `report.html`, `report.md`, and the
        Markdown's pictures.
      seeds: algorithms that sample run with seeds 0 .. seeds - 1.
      workers: processes at a time; 0: in this process.
      ray: as tasks on Ray instead.
      patience: seconds of wall-clock time after which a cell in a worker process is
        given up; None: ten minutes and thirty times the budget's seconds. Without
        workers, and on Ray, nothing is given up.
      memory_limit: bytes, or a size like "3GB", for each process; larger games are
        refused, or named as missing where only walking them shows it. None: no limit.
      retry: run cells again that failed.
      progress: show a bar on stderr.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know a game.
      ValueError: a bad argument, a game that does not fit, or another run's folder.
    """
    limit = None if memory_limit is None else memory.parse_size(memory_limit)
    _check(games, algorithms, budget, seeds, workers, limit)
    _check_patience(patience, workers, ray)
    if ray:
        pool.check_ray()
    folder = run_folder.RunFolder(
        pathlib.Path(out),
        {
            **_settings(games, algorithms, budget, seeds, workers, ray),
            "memory_limit": memory_limit,
        },
    )
    try:
        cells = plan(folder.games(games), algorithms, budget, seeds)
        left = [
            cell._replace(memory_limit=limit)
            for cell in cells
            if not _finished(folder, cell.key, retry)
        ]
        if patience is None:
            patience = 600.0 + 30.0 * (budget.seconds or 0.0)
        if ray:
            records = pool.run_on_ray(left)
        elif workers:
            records = pool.run_in_processes(left, workers, patience)
        else:
            records = pool.run_here(left)
        try:
            for record in _shown(records, left, len(cells), progress):
                # Folders grow under other conditions: each line has its own.
                _keep(folder, {**record, "workers": folder.settings["workers"]})
        finally:
            # What there is can be looked at after an interruption, too.
            report.write(folder.path, folder.settings, _ordered(folder))
    finally:
        folder.close()
    asked = [folder.records[cell.key] for cell in cells]
    return Comparison(folder.path, folder.settings, _ordered(folder), asked)


def plan(
    games: Sequence[str], algorithms: Sequence[str], budget: Budget, seeds: int
) -> list[Run]:
    """All cells, seed by seed, so that a run which was stopped has met all alike."""
    return [
        Run(game, name, seed, *budget)
        for game in run_folder.distinct_games(games).values()
        for seed in range(seeds)
        for name in dict.fromkeys(algorithms)
        if seed == 0 or registry.find(name).samples
    ]


def _check(
    games: Sequence[str],
    algorithms: Sequence[str],
    budget: Budget,
    seeds: int,
    workers: int,
    limit: int | None,
) -> None:
    """What is wrong must be said before the work, not after it."""
    if not games:
        raise ValueError("games=[]: give one game string or more")
    if not algorithms:
        raise ValueError("algorithms=[]: give one name or more")
    for name in algorithms:
        for file in registry.find(name).files:
            if not pathlib.Path(file).is_file():
                raise ValueError(
                    f"algorithm={name!r}: there is no file {file}; write one with "
                    f"spiel-cr solve --save {file}"
                )
    if (budget.seconds is None) == (budget.iterations is None):
        raise ValueError("a budget is needed: either seconds or iterations")
    if budget.seconds is not None and not 0 < budget.seconds < float("inf"):
        raise ValueError(f"seconds={budget.seconds} must be positive and finite")
    if budget.iterations is not None:
        check_iterations(budget.iterations)
    check_iterations(seeds, name="seeds")
    if not 0 <= workers <= 1024:
        raise ValueError(f"workers={workers} must lie in 0 .. 1024")
    for game in games:
        loaded = loading.load_game(game)
        if limit is not None:
            memory.check_limit(loaded, limit)


def _check_patience(patience: float | None, workers: int, ray: bool) -> None:
    if patience is None:
        return
    if ray or not workers:
        where = "on Ray" if ray else "without worker processes"
        raise ValueError(
            f"patience={patience:g}: cells {where} cannot be given up; leave it out, "
            f"or use --workers 1 or more"
        )
    if not 0 < patience < float("inf"):
        raise ValueError(f"patience={patience:g} must be positive and finite")


def _settings(
    games: Sequence[str],
    algorithms: Sequence[str],
    budget: Budget,
    seeds: int,
    workers: int,
    ray: bool,
) -> dict[str, Any]:
    return {
        "games": list(run_folder.distinct_games(games).values()),
        "algorithms": list(dict.fromkeys(algorithms)),
        "budget": budget._asdict(),
        "seeds": seeds,
        "workers": "ray" if ray else workers,
        "versions": conditions.versions(),
        "optional_versions": conditions.optional_versions(),
    }


def _finished(folder: run_folder.RunFolder, key: RunKey, retry: bool) -> bool:
    record = folder.records.get(key)
    # What was missing may have been installed since.
    if record is None or record.get("missing"):
        return False
    return not (retry and record["error"])


def _keep(folder: run_folder.RunFolder, record: dict[str, Any]) -> None:
    key = RunKey(*(record[name] for name in RunKey._fields))
    known = folder.records.get(key)
    if known and known.get("missing") and known["missing"] == record.get("missing"):
        return
    folder.add(record)


def _shown(
    records: Iterable[dict[str, Any]], left: Sequence[Run], total: int, progress: bool
) -> Iterator[dict[str, Any]]:
    """With a bar that also counts those on disk, and tells the time left."""
    with tqdm(
        total=total,
        initial=total - len(left),
        desc="compare",
        unit="cell",
        disable=not progress,
        smoothing=0.1,
    ) as bar:
        for record in records:
            yield record
            bar.set_postfix_str(record["algorithm"][:40], refresh=False)
            bar.update()


def _ordered(folder: run_folder.RunFolder) -> list[dict[str, Any]]:
    settings = folder.settings
    budget = Budget(**settings["budget"])
    keys = [
        cell.key
        for cell in plan(
            settings["games"], settings["algorithms"], budget, settings["seeds"]
        )
    ]
    return [folder.records[key] for key in keys if key in folder.records]
