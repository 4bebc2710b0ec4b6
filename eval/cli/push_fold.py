"""The command `push-fold`: a tournament of two or three players, jam or fold.

Stacks are by position: button/small blind/big blind, or small blind/big blind. All
stacks that the chips allow are solved, and the charts of the given ones printed: J is
always, a dot never, a digit tenths of the time. A gain is what a player could win by
deviating for the rest of the tournament, judged by solving its decision process.

The first run samples a table of all-in hands and keeps it in --cache.
"""

import contextlib
import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tqdm

from game_defs.bundled.holdem import strengths
from spiel_cr.common import atomic
from spiel_cr.common.messages import announce, one_line
from spiel_cr.push_fold import charts, equities, one_sided, solve
from spiel_cr.push_fold.engine import Engine
from spiel_cr.push_fold.outer import ALGORITHMS, OuterRound

from ..reporting import push_charts
from .command import Arguments, Commands, add_command

_BOARDS = 204_800


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "solve a two- or three-player tournament of jam-or-fold hold'em"
    parser = add_command(commands, "push-fold", _solve, text, __doc__, resumes=True)
    text = "chips by position, such as 4500/4500/4500"
    parser.option("--stacks", text, required=True, metavar="A/B[/C]")
    text = "of the places from the first, such as 50/30/20"
    parser.option("--prizes", text, required=True, metavar="A/B[/C]")
    text = "small and big, such as 300/600"
    parser.option("--blinds", text, required=True, metavar="A/B")
    text = "outer loop and inner: value or policy iteration, fictitious play"
    parser.option("--algorithm", text, "pi-fp", choices=ALGORITHMS)
    text = "of the loop outside (default 7, or 20 with two players)"
    parser.option("--rounds", text, type=int)
    text = "of fictitious play per round (default 40, or 300 with two players)"
    parser.option("--steps", text, type=int)
    text = (
        "heads-up: what jam or fold wins at least if the opponent may bet as it likes; "
        f"a second run, whose defaults are {one_sided.ROUNDS} --rounds of "
        f"{one_sided.STEPS} --steps"
    )
    parser.option("--unrestricted-opponent", text, action="store_true")
    parser.option("--boards", "sampled for the table of all-in hands", _BOARDS)
    parser.option("--seed", "of the table of all-in hands")
    text = "processes that make the table, and threads that solve; 0: this one, and one"
    parser.worker_options(text)
    text = "keep the table in this folder (default: spiel_cr in the user's caches)"
    parser.option("--cache", text)
    text = "folder for summary.json, solution.npz, and the state to go on from"
    parser.option("--out", text)
    parser.option("--html", "write the charts as a page")


def _solve(arguments: Arguments) -> dict[str, object]:
    stacks = [int(x) for x in _numbers("--stacks", arguments.stacks, r"\d{1,9}")]
    blinds = [int(x) for x in _numbers("--blinds", arguments.blinds, r"\d{1,9}")]
    decimal = r"\d{1,12}(\.\d{1,12})?"
    prizes = [float(x) for x in _numbers("--prizes", arguments.prizes, decimal)]
    unit, setting = solve.units_of(stacks, prizes, blinds)
    settings = solve.SolveSettings(**arguments.given("algorithm", "rounds", "steps"))
    executor = arguments.executor()
    if arguments.unrestricted_opponent:
        one_sided.check_room(setting)
    announce("looking for the table of all-in hands")
    folder = arguments.cache or equities.default_folder()
    draws = equities.Draws(setting.players, arguments.boards, arguments.seed)
    table = equities.through(folder, _strength, draws, progress=True, executor=executor)
    out = pathlib.Path(arguments.out) if arguments.out else None
    announce("solving the tournament")
    engine = Engine(equities.hand_tables(table), max(executor.workers, 1))
    with _bar(settings) as tell:
        found = solve.solve_tournament(
            stacks,
            prizes,
            blinds,
            engine,
            settings=settings,
            checkpoint=out / "state.npz" if out else None,
            on_round=tell,
        )
        report: dict[str, Any] = {
            **solve.summary(found),
            "algorithm": settings.algorithm,
            "boards": table.boards,
            "standard_errors": list(table.error),
        }
        if arguments.unrestricted_opponent:
            announce("what jam or fold wins against any opponent")
            loops = arguments.given("rounds", "steps")
            least = one_sided.guarantee(setting, engine.tables, on_round=tell, **loops)
            report["unrestricted_opponent"] = _least(least, unit)
    _print(report)
    title = f"Jam or fold: {arguments.stacks} chips, blinds {arguments.blinds}"
    if out:
        with arguments.writing():
            solve.save(out / "solution.npz", found)
            atomic.write_text(out / "summary.json", json.dumps(report, indent=1))
            print(f"\nall states   {one_line(out / 'solution.npz')}")
    if arguments.html:
        with arguments.writing():
            atomic.write_text(arguments.html, push_charts.push_page(title, report))
            print(f"charts       {one_line(arguments.html)}")
    return report


def _least(found: one_sided.Guarantee, unit: int) -> dict[str, Any]:
    """For JSON: chances to win by our chips, on the small blind and on the big one."""
    return {
        "stacks": (found.stacks * unit).tolist(),
        "lower": found.lower.tolist(),
        "upper": found.upper.tolist(),
        "gap_points": (100 * found.gap).tolist(),
        "largest_gap_points": float(100 * found.gap.max()),
    }


def _numbers(flag: str, text: str, pattern: str) -> list[str]:
    """The numbers of an option, as texts."""
    parts = [part.strip() for part in text.split("/")]
    if not all(re.fullmatch(pattern, part, re.ASCII) for part in parts):
        raise ValueError(
            f"{flag}={text!r} must be numbers with slashes between them; write "
            f"them as in '50/30/20'"
        )
    return parts


def _strength(sets: np.ndarray) -> np.ndarray:
    return strengths.strengths(strengths.split(sets))


@contextlib.contextmanager
def _bar(settings: solve.SolveSettings) -> Iterator[Callable[[int, OuterRound], None]]:
    """Progress on stderr, round by round."""
    with tqdm.tqdm(unit=" rounds", desc=settings.algorithm, leave=False) as bar:

        def tell(players: int, last: OuterRound) -> None:
            change = f"{last.change:.1e}"
            bar.set_postfix(players=players, change=change, refresh=False)
            bar.update()

        yield tell


def _print(report: dict[str, Any]) -> None:
    """The report for people."""
    names = ("button", "small blind", "big blind")
    stacks = report["stacks"]
    print(
        f"{report['states']} states, {report['algorithm']}, {report['rounds']} rounds"
    )
    print("               stack   chip model   value     gain (% of the first prize)")
    columns = zip(
        *(report[k] for k in ("stacks", "chip_model", "values", "gains_percent")),
        strict=True,
    )
    for name, (stack, model, value, gain) in zip(
        names[3 - len(stacks) :], columns, strict=True
    ):
        print(f"  {name:<11}{stack:9d}{model:13.4f}{value:10.4f}{gain:10.4f}")
    worst = max(report["worst_gains_percent"])
    print(f"  largest gain at any stacks: {worst:.4f} %")
    if "unrestricted_opponent" in report:
        _print_least(report["unrestricted_opponent"], report["stacks"])
    for name, jams in report["jams"].items():
        values = np.array(jams)
        print(f"\n{name}: {charts.share(values):.1%}")
        print(charts.text_chart(values))


def _print_least(least: dict[str, Any], stacks: list[int]) -> None:
    """What jam or fold wins at least, at the given stacks, and what it may lose."""
    print("\nagainst an opponent who may bet as it likes: chance to win the tournament")
    print("               stack   at least   jam or fold at most   points to any play")
    for seat, (name, stack) in enumerate(
        zip(("small blind", "big blind"), stacks, strict=True)
    ):
        at = least["stacks"].index(stack)
        lower, upper, gap = (
            least[key][at][seat] for key in ("lower", "upper", "gap_points")
        )
        print(f"  {name:<11}{stack:9d}{lower:11.4f}{upper:22.4f}{gap:21.3f}")
    print(f"  most points at any stacks: {least['largest_gap_points']:.3f}")
