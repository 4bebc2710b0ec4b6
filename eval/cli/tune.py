"""The command `tune`: search for the numbers of a regret rule over a set of games.

All settings run on every game: the algorithm's default numbers, and numbers that are
drawn from --numbers. For each fold of games, the setting with the least geometric mean
of NashConv on the other games is chosen, and ranked on the games that were held out.

The numbers of full-width algorithms are alpha, beta, gamma, exploration and, if they
are predictive, prediction. Those of your rule are its keyword-only parameters
with numbers as defaults; name it module:function, see --import.

--out is a folder with tune.jsonl, which has one line for each game. If you repeat the
command, only missing games are computed, also with additional games.

examples:
  spiel-cr tune --game kuhn_poker --game leduc_poker --candidates 32 --iterations 100
  spiel-cr tune --algorithm dcfr --numbers 'alpha=0..5;beta=-5..5;gamma=0..10' \\
    --game leduc_poker --game 'liars_dice(numdice=1,dice_sides=4)' \\
    --game 'goofspiel(imp_info=True,num_cards=4)' --workers 2 --out out/tune
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from spiel_cr.common import atomic, storage
from spiel_cr.common import json_records as checks
from spiel_cr.common.checks import check_iterations
from spiel_cr.common.json_log import JsonLog, Record
from spiel_cr.common.messages import one_line, progress_bar
from spiel_cr.games.opening.opened import open_game
from spiel_cr.solvers import tuning
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.iterative_solver import settings_text

from .command import Arguments, WorkerOptions

RESUMES = True


@dataclasses.dataclass(kw_only=True)
class TuneOptions(WorkerOptions):
    """Options of the command.

    Attributes:
      game: OpenSpiel game string; may be repeated. A single game is not held out.
      algorithm: Full-width algorithm, or your rule (default dcfr).
      numbers ('A=LOW..HIGH;B=...'): Ranges of the numbers
        (default alpha=0..5;beta=-5..5;gamma=0..10).
      candidates (K): Number of settings (default 256).
      iterations: Number of iterations of each run (default 1000).
      folds: Number of folds of games, at most one for each game (default 5).
      seed: Seed of the draws of settings (default 0).
      out (DIR): Folder for the results of each game.
    """

    game: list[str]
    algorithm: str = "dcfr"
    numbers: str = "alpha=0..5;beta=-5..5;gamma=0..10"
    candidates: int = 256
    iterations: int = 1000
    folds: int = 5
    seed: int = 0
    out: atomic.Path | None = None


def run(arguments: Arguments) -> dict[str, object]:
    """Search for the numbers of a rule."""
    config = find(arguments.algorithm, families=(CFR,)).config
    ranges = tuning.read_ranges(arguments.numbers, config)
    for name in ("candidates", "iterations", "folds"):
        check_iterations(getattr(arguments, name), name=name)
    if arguments.folds == 1:
        raise ValueError("--folds=1 would hold out all games; use two folds or more")
    games = list(dict.fromkeys(str(open_game(game).game) for game in arguments.game))
    # With a single game, none can be held out.
    folds = min(arguments.folds, len(games)) if len(games) > 1 else 0
    count, seed = arguments.candidates, arguments.seed
    settings = tuning.draw_settings(config, ranges, count, seed)
    identity = {
        **arguments.options("numbers", "candidates", "iterations", "seed"),
        "algorithm": settings_text(config),
        "versions": storage.versions(),
    }
    numbers = checks.is_list(checks.is_number, len(settings))
    tests = {"game": checks.is_text, "nash_conv": numbers}

    def check(record: Record) -> None:
        checks.check_fields(record, tests)

    with JsonLog(arguments.out, "tune", identity, key=("game",), check=check) as log:
        setup = config, tuple(ranges), settings, arguments.iterations
        records = log.map(
            arguments.executor(), _evaluator, setup, {(game,): game for game in games}
        )
        for _ in progress_bar(records, desc="tune", total=len(games), unit="game"):
            pass
        nash_convs = np.array([log.records[game,]["nash_conv"] for game in games]).T
    return _report(games, ranges, settings, nash_convs, folds)


def _evaluator(*setup: Any) -> Callable[[str], Record]:
    """Return a function that evaluates all settings on a game."""
    return lambda game: {
        "game": game,
        "nash_conv": tuning.nash_convs(game, *setup).tolist(),
    }


def _report(
    games: list[str],
    ranges: tuning.Ranges,
    settings: np.ndarray,
    nash_convs: np.ndarray,
    folds: int,
) -> dict[str, object]:
    """Print and return the settings that were chosen, and their results."""

    def described(number: int) -> dict[str, float]:
        return dict(zip(ranges, settings[number].tolist(), strict=True))

    rows: list[dict[str, object]] = []
    held_out = np.zeros(len(games))
    print(f"  {'held out':<44}{'NashConv':>10}{'default':>13}{'rank':>6}")
    for fold in tuning.cross_validate(nash_convs, folds):
        print(_text(described(fold.chosen)))
        for game, rank in zip(fold.held_out, fold.ranks, strict=True):
            held_out[game] = nash_convs[fold.chosen, game]
            row = {
                "game": games[game],
                "chosen": described(fold.chosen),
                "nash_conv": held_out[game].item(),
                "default_nash_conv": nash_convs[0, game].item(),
                "rank": rank,
            }
            rows.append(row)
            print(
                f"  {one_line(games[game])[:43]:<44}{row['nash_conv']:>10.2e}"
                f"{row['default_nash_conv']:>13.2e}{rank:>6}"
            )
    best = described(int(tuning.geometric_mean(nash_convs).argmin()))
    report: dict[str, object] = {"held_out": rows, "best": best}
    report["settings"] = len(settings)
    if rows:
        both = held_out, nash_convs[0]
        means = [tuning.geometric_mean(each).item() for each in both]
        print(f"  {'geometric mean':<44}{means[0]:>10.2e}{means[1]:>13.2e}")
        report |= {"geometric_mean": means[0], "default_geometric_mean": means[1]}
    print(f"best on all games: {_text(best)}, of {len(settings)} settings")
    return report


def _text(numbers: dict[str, float]) -> str:
    return ",".join(f"{name}={value:.4g}" for name, value in numbers.items())
