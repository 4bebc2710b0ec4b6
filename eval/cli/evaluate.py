"""The command `evaluate`: NashConv of a player that thinks.

bots:
{bots}

  resolving and oos think under a budget: iterations per solve, or move_ms
  milliseconds per move (with init_ms before the first one), or both.

examples:
  spiel-cr evaluate --game kuhn_poker --bot 'resolving(solver=cfr+,iterations=100)'
  spiel-cr evaluate --game leduc_poker --bot 'resolving(move_ms=50,init_ms=500)' \\
    --repeats 5 --out out/leduc
  spiel-cr evaluate --game leduc_poker --bot 'oos(iterations=20)' \\
    --evaluator playing --matches 2000

evaluators:
  traversing  asks the bot at every infoset, reached as in a match: exact NashConv of
              what it plays. Bots whose answers vary (a clock, sampling) need --repeats.
              oos, which learns from every question, is asked as in its first match.
  playing     plays matches against an opponent that avoids ending the game, and takes
              the mean of the strategies met, uniform ones where none was. NashConv is
              of both together, mostly higher than the bot's own: for games with too
              many infosets to ask at each.

Both need the compiled game. NashConv of a file that was solved with --form signals is
exact without it: best-response --policy PATH --method exact.

With --out DIR all results are kept in DIR as JSON lines (and a CSV at the end); the
same command continues an interrupted evaluation.
"""

import argparse
import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common import storage
from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.compilation.compiler import as_compiled
from spiel_cr.compilation.fingerprints import fingerprint
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.players import bot_strings
from spiel_cr.players.opponent_strings import signal_file

from ..common.json_log import JsonLog, Record, has_begun
from ..common.plurals import counted
from ..common.record_checks import (
    Test,
    check_fields,
    is_duration,
    is_list,
    is_number,
    is_table,
    is_text,
    is_whole,
)
from ..common.statistics import CONFIDENCE, mean_and_half_width
from ..judging import python_judge
from ..players import playing, traversing
from .command import Commands, add_command, option, write_csv, writing

_EVALUATORS = ("traversing", "playing")
_MATCHES = 1000
_JUDGES = {"openspiel": "OpenSpiel", "spiel_cr": "spiel_cr"}


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "measure NashConv of a player that thinks"
    parser = add_command(
        commands,
        "evaluate",
        _evaluate,
        text,
        __doc__,
        resumes=True,
        bots=bot_strings.describe_bots(),
    )
    option(parser, "--game")
    text = "the player: name(parameter=value,...), see below"
    option(parser, "--bot", text, required=True)
    option(parser, "--evaluator", "see below", "traversing", choices=_EVALUATORS)
    text = f"playing only: how many, seats alternate (default {_MATCHES})"
    option(parser, "--matches", text)
    option(
        parser,
        "--repeats",
        "evaluate R newly made bots; NashConv is then the mean, with the half width of "
        "its 95 %% confidence interval",
        1,
        metavar="R",
    )
    option(parser, "--seed", "of the bot, and of the matches")
    option(parser, "--memory-limit")
    option(parser, "--out", "keep results here, and continue from them")


def _evaluate(arguments: argparse.Namespace) -> dict[str, object]:
    playing_only = arguments.evaluator == "playing"
    if arguments.matches is not None and not playing_only:
        raise ValueError(
            f"matches={arguments.matches} goes with --evaluator playing only; "
            f"{arguments.evaluator} asks at every infoset, so leave --matches out"
        )
    matches = _MATCHES if arguments.matches is None else arguments.matches
    check_iterations(matches, name="matches")
    check_iterations(arguments.repeats, name="repeats")
    check_seed(arguments.seed)
    # What is finished is shown again though the bot's file is gone.
    if not (arguments.out and has_begun(arguments.out, arguments.evaluator)):
        bot_strings.check_bot(arguments.bot)
    compiled = _compile(arguments)
    python_judge.check_memory(compiled, arguments.memory_limit)
    settings = {
        "game": str(compiled.game),
        "bot": arguments.bot,
        "seed": arguments.seed,
        "fingerprint": fingerprint(compiled),
        "versions": storage.versions(),
    }
    key = ("repeat", "seat", "match") if playing_only else ("repeat", "seat")
    evaluations = []
    with JsonLog(
        arguments.out,
        arguments.evaluator,
        settings,
        key=key,
        check=functools.partial(
            _check_line,
            compiled,
            playing.num_actions_by_key(compiled) if playing_only else None,
        ),
    ) as log:
        for repeat in range(arguments.repeats):
            seed = _mix(arguments.seed, repeat)
            seats = []
            for seat in range(2):
                make = functools.partial(
                    bot_strings.load_bot,
                    arguments.bot,
                    compiled,
                    seat,
                    seed=_mix(seed, seat),
                )
                if playing_only:
                    own = [m for m in range(matches) if playing.seat_of(m) == seat]
                    seats.append(_play(compiled, make, log, (repeat, seat), own, seed))
                else:
                    seats.append(_traverse(compiled, make, log, (repeat, seat)))
            announce("judging")
            evaluations.append(traversing.evaluate(compiled, (seats[0], seats[1])))
    report: dict[str, object] = traversing.summarise(evaluations)._asdict()
    # What counts at infosets where the bot was never met.
    all_met = report["infosets_defined"] == report["infosets"]
    report["unmet_play"] = None if all_met else "uniform"
    if arguments.repeats > 1:
        values = [one.nash_conv for one in evaluations]
        report["half_width"] = mean_and_half_width(values)[1]
    if arguments.out:
        rows = [{"repeat": r, **e._asdict()} for r, e in enumerate(evaluations)]
        with writing(arguments):
            write_csv(pathlib.Path(arguments.out) / f"{arguments.evaluator}.csv", rows)
    _print(arguments, report)
    return report


def _compile(arguments: argparse.Namespace) -> CompiledGame:
    """The compiled game; where it is too large, what judges a policy of signals."""
    game, limit = arguments.game, arguments.memory_limit
    try:
        return as_compiled(game, observations=True, memory_limit=limit, progress=True)
    except GameTooLargeError as error:
        path = signal_file(arguments.bot)
        if path is None:
            raise
        raise GameTooLargeError(
            f"--evaluator {arguments.evaluator} needs the compiled game: {error}. For "
            f"this policy exact NashConv needs no compiled game: spiel-cr "
            f"best-response --game '{game}' --policy {path} --method exact"
        ) from error


def _check_line(
    compiled: CompiledGame,
    num_actions: Sequence[Mapping[str, int]] | None,
    record: Record,
) -> None:
    """Raises ValueError where a line is no result of this game.

    Args:
      compiled: the game.
      num_actions: where matches are played, see `playing.num_actions_by_key`.
      record: the line.
    """
    tests: dict[str, Test] = {
        "repeat": is_whole,
        "seat": lambda value: is_whole(value) and value < 2,
        "work": is_table(is_duration),
    }
    if num_actions is not None:
        tests |= {
            "match": is_whole,
            "keys": is_list(is_text),
            "policies": is_list(is_list(is_duration)),
            "utility": is_number,
        }
    else:
        tests["behaviour"] = is_list(is_duration)
    check_fields(record, tests)
    if set(record["work"]) != set(traversing.Work._fields):
        raise ValueError(f"has work other than {traversing.Work._fields}")
    if num_actions is not None:
        playing.check_met(_met(record), num_actions)
    else:
        traversing.check_behaviour(compiled, record["seat"], record["behaviour"])


def _met(record: Record) -> playing.Met:
    row = {name: record[name] for name in playing.Met._fields}
    return playing.Met(**{**row, "work": traversing.Work(**row["work"])})


def _print(arguments: argparse.Namespace, report: dict[str, Any]) -> None:
    print(f"{arguments.game}, {arguments.bot}, {arguments.evaluator}")
    spread = ""
    if "half_width" in report:
        spread = (
            f" ± {report['half_width']:.1e} ({CONFIDENCE:.0%} of "
            f"{arguments.repeats} repeats)"
        )
    judge = _JUDGES[report["judge"]]
    defined = 100 * report["infosets_defined"] / max(report["infosets"], 1)
    met, of = f"{defined:.1f} % of them met", "exact for the strategy met"
    if report["unmet_play"]:
        met += f", {report['unmet_play']} play at the others"
        of += f" with {report['unmet_play']} play where none was"
    print(f"  NashConv    {report['nash_conv']:.3e}{spread}  (by {judge}, {of})")
    print(f"  infosets    {report['infosets']:,}, {met}")
    print(
        f"  moves       {report['moves']:,}, {report['late_moves']:,} of them late; "
        f"the longest took {report['max_ms']:.1f} ms; {report['seconds']:.1f} s in all"
    )
    if report["programs_compiled"]:
        programs = counted(report["programs_compiled"], "program")
        print(f"  compiled    {programs} during moves")


def _mix(seed: int, number: int) -> int:
    """A seed of 31 bits, unlike others."""
    mixed = np.random.SeedSequence([seed, number]).generate_state(1)[0]
    return int(mixed) >> 1


def _making(key: tuple[int, int]) -> str:
    repeat, seat = key
    again = f", repeat {repeat + 1}" if repeat else ""
    return f"making the bot of seat {seat}{again}"


def _traverse(
    compiled: CompiledGame,
    make: Callable[[], pyspiel.Bot],
    log: JsonLog,
    key: tuple[int, int],
) -> traversing.SeatStrategy:
    """A (repeat, seat), from the log if it is there."""
    if key not in log.records:
        announce(_making(key))
        bot = make()
        found = traversing.traverse(compiled, bot, progress=True)
        row = {"behaviour": found.behaviour.tolist(), "work": found.work._asdict()}
        log.add({"repeat": key[0], "seat": key[1], **row})
    row = log.records[key]
    met = np.ones(len(compiled.infosets[key[1]]), np.int64)
    work = traversing.Work(**row["work"])
    return traversing.SeatStrategy(np.array(row["behaviour"]), met, work)


def _play(
    compiled: CompiledGame,
    make: Callable[[], pyspiel.Bot],
    log: JsonLog,
    key: tuple[int, int],
    matches: Sequence[int],
    seed: int,
) -> traversing.SeatStrategy:
    """The matches of a (repeat, seat); those in the log are not played."""
    shown, bot = [], None
    if any((*key, match) not in log.records for match in matches):
        announce(_making(key))
        bot = make()
    for match in tqdm(matches, desc=f"seat {key[1]}"):
        if (*key, match) not in log.records:
            assert bot is not None
            met = playing.play(compiled, bot, match, seed=seed)
            row = {**met._asdict(), "work": met.work._asdict()}
            log.add({"repeat": key[0], **row})
        shown.append(_met(log.records[*key, match]))
    return playing.aggregate(compiled, key[1], shown)
