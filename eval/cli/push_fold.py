"""The command `push-fold`: solve push-or-fold hold'em for two or three players.

The game is a tournament. Stacks are given by position: button/small blind/big blind,
or small blind/big blind.
All possible divisions of the chips are solved, and the charts for the specified stacks
are printed. J means always, a dot means never, and a digit is the probability in
tenths. A gain is the additional value that a player could achieve by deviating for the
rest of the tournament, computed by solving the player's decision process.

The first run samples a table of all-in hands and keeps it in --cache.
"""

import contextlib
import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from game_defs.bundled.holdem import strengths
from spiel_cr.common import atomic
from spiel_cr.common.messages import announce, progress_bar
from spiel_cr.push_fold import charts, equities, one_sided, solve
from spiel_cr.push_fold.engine import Engine
from spiel_cr.push_fold.outer import ALGORITHMS, OuterRound

from ..reporting import push_charts
from .command import Arguments, Parser, WorkerOptions

RESUMES = True


@dataclasses.dataclass(kw_only=True)
class PushFoldOptions(WorkerOptions):
    """Options of the command.

    Attributes:
      stacks (A/B[/C]): Chips by position, such as 4500/4500/4500.
      prizes (A/B[/C]): Prizes by place, such as 50/30/20.
      blinds (A/B): Small and big blind, such as 300/600.
      unrestricted_opponent: Also bound the probability of winning against an opponent
        that may bet any amount (heads-up only). This is a second run, by default of 4
        --rounds with 1000 --steps.
      boards: Number of boards sampled for the table of all-in hands.
      seed (SEED): Seed of the table of all-in hands.
      workers: Number of processes for the table and of threads that solve; 0: none and
        1 (default 0).
      cache (DIR): Folder of the table (default: spiel_cr in the user's cache folder).
      out (DIR): Folder for summary.json, solution.npz, and the state from which to
        resume.
      html (FILE): Write the charts as a page.
    """

    stacks: str
    prizes: str
    blinds: str
    unrestricted_opponent: bool = False
    boards: int = 204_800
    seed: int = 0
    cache: atomic.Path | None = None
    out: atomic.Path | None = None
    html: atomic.Path | None = None


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    choices = {"choices": ALGORITHMS}
    parser.settings(solve.SolveSettings, "algorithm rounds steps", algorithm=choices)


def run(arguments: Arguments) -> dict[str, object]:
    """Solve a tournament."""
    stacks = [int(x) for x in _numbers("--stacks", arguments.stacks, r"\d{1,9}")]
    blinds = [int(x) for x in _numbers("--blinds", arguments.blinds, r"\d{1,9}")]
    decimal = r"\d{1,12}(\.\d{1,12})?"
    prizes = [float(x) for x in _numbers("--prizes", arguments.prizes, decimal)]
    unit, setting = solve.units_of(stacks, prizes, blinds)
    settings = arguments.settings(solve.SolveSettings)
    executor = arguments.executor()
    if arguments.unrestricted_opponent:
        one_sided.check_size(setting)
    announce("looking for the table of all-in hands")
    folder = arguments.cache or atomic.cache_folder()
    draws = equities.Draws(setting.players, arguments.boards, arguments.seed)
    table = equities.through(
        folder, strengths.of_sets, draws, progress=True, executor=executor
    )
    out = pathlib.Path(arguments.out) if arguments.out else None
    announce("solving the tournament")
    engine = Engine(equities.hand_tables(table), max(executor.workers, 1))
    with _progress_bar(settings) as show_round:
        solution = solve.solve_tournament(
            stacks,
            prizes,
            blinds,
            engine,
            settings=settings,
            checkpoint=out / "state.npz" if out else None,
            on_round=show_round,
        )
        report: dict[str, Any] = {
            **solve.summary(solution),
            "algorithm": settings.algorithm,
            "boards": table.boards,
            "standard_errors": list(table.error),
        }
        if arguments.unrestricted_opponent:
            announce("bounding the value against an unrestricted opponent")
            guarantee = one_sided.guarantee(
                setting,
                engine.tables,
                on_round=show_round,
                **arguments.options("rounds", "steps"),
            )
            # Probabilities of winning by the player's chips, as small and as big blind.
            report["unrestricted_opponent"] = {
                "stacks": (guarantee.stacks * unit).tolist(),
                "lower": guarantee.lower.tolist(),
                "upper": guarantee.upper.tolist(),
                "gap_points": (100 * guarantee.gap).tolist(),
                "largest_gap_points": float(100 * guarantee.gap.max()),
            }
    _print(report)
    title = f"Push or fold: {arguments.stacks} chips, blinds {arguments.blinds}"
    if out:
        with arguments.writing("\nall states  ", out / "solution.npz"):
            solve.save(out / "solution.npz", solution)
            atomic.write_text(out / "summary.json", json.dumps(report, indent=1))
    if arguments.html:
        page = push_charts.push_page(title, report)
        arguments.write_text(arguments.html, page, "charts      ")
    return report


def _numbers(flag: str, text: str, pattern: str) -> list[str]:
    """Return the numbers of an option, as texts."""
    parts = [part.strip() for part in text.split("/")]
    if not all(re.fullmatch(pattern, part, re.ASCII) for part in parts):
        raise ValueError(
            f"{flag}={text!r} must be numbers with slashes between them, such as "
            f"'50/30/20'"
        )
    return parts


@contextlib.contextmanager
def _progress_bar(
    settings: solve.SolveSettings,
) -> Iterator[Callable[[int, OuterRound], None]]:
    """Show the rounds on stderr."""
    with progress_bar(unit=" rounds", desc=settings.algorithm, leave=False) as bar:

        def show_round(players: int, last: OuterRound) -> None:
            change = f"{last.change:.1e}"
            bar.set_postfix(players=players, change=change, refresh=False)
            bar.update()

        yield show_round


def _print(report: dict[str, Any]) -> None:
    """Print the report for people."""
    names, stacks = ("button", "small blind", "big blind"), report["stacks"]
    states, algorithm, rounds = (report[k] for k in ("states", "algorithm", "rounds"))
    print(f"{states} states, {algorithm}, {rounds} rounds")
    print("               stack   chip model   value     gain (% of the first prize)")
    keys = ("stacks", "chip_model", "values", "regrets_percent")
    columns = names[3 - len(stacks) :], *(report[key] for key in keys)
    for name, stack, model, value, gain in zip(*columns, strict=True):
        print(f"  {name:<11}{stack:9d}{model:13.4f}{value:10.4f}{gain:10.4f}")
    worst = max(report["worst_regrets_percent"])
    print(f"  largest gain at any stacks: {worst:.4f}%")
    if "unrestricted_opponent" in report:
        _print_unrestricted(report["unrestricted_opponent"], report["stacks"])
    for name, jams in report["jams"].items():
        values = np.array(jams)
        print(f"\n{name}: {charts.share(values):.1%}")
        print(charts.text_chart(values))


def _print_unrestricted(bounds: dict[str, Any], stacks: list[int]) -> None:
    """Print the bounds against an opponent that is not restricted to push or fold."""
    print("\nagainst an unrestricted opponent: probability of winning the tournament")
    print("               stack   at least   jam or fold at most   points to any play")
    keys = ("lower", "upper", "gap_points")
    for seat, name in enumerate(("small blind", "big blind")):
        at = bounds["stacks"].index(stacks[seat])
        lower, upper, gap = (bounds[key][at][seat] for key in keys)
        print(f"  {name:<11}{stacks[seat]:9d}{lower:11.4f}{upper:22.4f}{gap:21.3f}")
    print(f"  most points at any stacks: {bounds['largest_gap_points']:.3f}")
