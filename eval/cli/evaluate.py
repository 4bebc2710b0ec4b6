"""Commands that evaluate players: `evaluate` and `subgame`."""

import argparse
import csv
import json
import pathlib
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
from tqdm import tqdm

from spiel_cr.common import storage
from spiel_cr.common.checks import check_iterations
from spiel_cr.compilation.compiler import as_compiled
from spiel_cr.compilation.fingerprints import fingerprint
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.players import bot_strings
from spiel_cr.policies import conversions
from spiel_cr.resolving import subgame_games

from ..judging import python_judge
from ..players import one_step, playing, traversing
from ..reporting import plots
from .command import Commands, add_command

_EVALUATORS = ("traversing", "playing")
_MATCHES = 1000

_EVALUATE_EPILOG = """bots:
{bots}

  resolving and oos think under a budget: iterations a solve, or move_ms milliseconds
  a move (with init_ms before the first one), or both.

examples:
  spiel-cr evaluate --game kuhn_poker --bot 'resolving(solver=cfr+,iterations=100)'
  spiel-cr evaluate --game leduc_poker --bot 'resolving(move_ms=50,init_ms=500)' \\
    --repeats 5 --out out/leduc
  spiel-cr evaluate --game leduc_poker --bot 'oos(iterations=20)' \\
    --evaluator playing --matches 2000

evaluators:
  traversing  asks the bot at every infoset, reached as in a match: exact NashConv of
              what it plays. Bots whose answers vary (a clock, sampling) need --repeats.
  playing     plays matches against an opponent that avoids ending the game, and takes
              the mean of the strategies met, uniform ones where none was (NashConv is
              too high for that): for games with too many infosets to ask at each.

With --out DIR all results are kept in DIR as JSON lines (and a CSV at the end); the
same command continues an interrupted evaluation."""

_SUBGAME_EPILOG = """examples:
  spiel-cr subgame --game kuhn_poker --actions 0,1,0,1 --iterations 1000
  spiel-cr subgame --game kuhn_poker --actions 'Deal:0,Deal:1,Pass,Bet' \\
    --iterations 1000 --values best_response --noise 0.1

Actions are OpenSpiel's, chance moves included, as numbers or in words, separated by
commas (write a number for an action with a comma in its name). They must lead to a
second or later decision of a player; that player resolves the subgame there."""


def add_commands(commands: Commands) -> None:
    """Adds the commands of this file."""
    _add_evaluate(commands)
    _add_subgame(commands)


def _add_evaluate(commands: Commands) -> None:
    parser = add_command(
        commands, "evaluate", _evaluate, "measure NashConv of a player that thinks"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EVALUATE_EPILOG.format(bots=bot_strings.describe_bots())
    parser.add_argument("--game", required=True, help="OpenSpiel game string")
    parser.add_argument(
        "--bot", required=True, help="the player: name(parameter=value,...), see below"
    )
    parser.add_argument(
        "--evaluator",
        choices=_EVALUATORS,
        default="traversing",
        help="see below (default %(default)s)",
    )
    parser.add_argument(
        "--matches",
        type=int,
        metavar="N",
        help=f"playing only: how many, seats alternate (default {_MATCHES})",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=1,
        metavar="R",
        help="evaluate R newly made bots; NashConv is then the mean, with the half "
        "width of its 95%% confidence interval (default %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of the bot, and of the matches (default %(default)s)",
    )
    parser.add_argument(
        "--out", metavar="DIR", help="keep results here, and continue from them"
    )


def _add_subgame(commands: Commands) -> None:
    parser = add_command(
        commands,
        "subgame",
        _subgame,
        "resolve one subgame on top of a trunk, and follow NashConv",
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _SUBGAME_EPILOG
    parser.add_argument("--game", required=True, help="OpenSpiel game string")
    parser.add_argument(
        "--actions", required=True, help="from the root to the subgame, see below"
    )
    parser.add_argument(
        "--trunk-iterations",
        type=int,
        default=1000,
        metavar="T",
        help="of the solve of the whole game (default %(default)s)",
    )
    parser.add_argument(
        "--iterations",
        type=int,
        default=1000,
        metavar="N",
        help="of the solve of the subgame (default %(default)s)",
    )
    parser.add_argument(
        "--algorithm",
        default="cfr+",
        help="of both solves, a full-width one (default %(default)s)",
    )
    parser.add_argument(
        "--values",
        choices=get_args(one_step.GateValues),
        default="iterates",
        help="the opponent's values at the subgame's gates: its means over the trunk's "
        "iterates, or exact ones, of a best response to the trunk "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--noise",
        type=float,
        default=0.0,
        metavar="STD",
        help="multiply these values by normal variables of mean 1 and this standard "
        "deviation (default none)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the noise (default %(default)s)"
    )
    parser.add_argument(
        "--gadget",
        choices=get_args(subgame_games.Gadget),
        default="cfrd",
        help="what keeps the opponent from gaining (default %(default)s)",
    )
    parser.add_argument(
        "--plot", metavar="PATH", help="draw the curve (png, svg or pdf)"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="write the curve here: JSON lines and CSV"
    )


def _evaluate(arguments: argparse.Namespace) -> dict[str, object]:
    if arguments.matches is not None and arguments.evaluator != "playing":
        raise ValueError(
            f"matches={arguments.matches} goes with --evaluator playing only; "
            f"{arguments.evaluator} asks at every infoset, so leave --matches out"
        )
    matches = _MATCHES if arguments.matches is None else arguments.matches
    check_iterations(matches, name="matches")
    check_iterations(arguments.repeats, name="repeats")
    if arguments.seed < 0:
        raise ValueError(f"seed={arguments.seed} must be 0 or more")
    compiled = as_compiled(arguments.game, observations=True)
    journal = traversing.Journal(
        arguments.out,
        arguments.evaluator,
        {
            "game": str(compiled.game),
            "bot": arguments.bot,
            "evaluator": arguments.evaluator,
            "seed": arguments.seed,
            "fingerprint": fingerprint(compiled),
            "versions": storage.versions(),
        },
    )
    evaluations = []
    for repeat in range(arguments.repeats):
        seats = []
        for seat in range(2):
            maker = _Maker(arguments.bot, compiled, seat, arguments.seed, repeat)
            if arguments.evaluator == "traversing":
                seats.append(_traverse(compiled, maker, journal))
            else:
                seats.append(_play(compiled, maker, journal, matches))
        evaluations.append(traversing.evaluate(compiled, (seats[0], seats[1])))
    report: dict[str, object] = traversing.summarise(evaluations)._asdict()
    if arguments.repeats > 1:
        found = [one.nash_conv for one in evaluations]
        report["half_width"] = traversing.half_width(found)
    if arguments.out:
        rows = ({"repeat": r, **e._asdict()} for r, e in enumerate(evaluations))
        _write_csv(pathlib.Path(arguments.out) / f"{arguments.evaluator}.csv", rows)
    _print_evaluation(arguments, report)
    return report


def _print_evaluation(arguments: argparse.Namespace, report: dict[str, Any]) -> None:
    print(f"{arguments.game}, {arguments.bot}, {arguments.evaluator}")
    spread = ""
    if "half_width" in report:
        share = round(100 * traversing.CONFIDENCE)
        spread = (
            f" ± {report['half_width']:.1e} ({share} % of {arguments.repeats} repeats)"
        )
    print(f"  NashConv    {report['nash_conv']:.3e}{spread}  (OpenSpiel, exact)")
    defined = 100 * report["infosets_defined"] / max(report["infosets"], 1)
    print(f"  infosets    {report['infosets']:,}, {defined:.1f} % of them met")
    print(
        f"  moves       {report['moves']:,}, {report['late_moves']:,} of them late; "
        f"the longest took {report['max_ms']:.1f} ms; {report['seconds']:.1f} s in all"
    )
    if report["programs_compiled"]:
        print(f"  compiled    {report['programs_compiled']} programs during moves")


class _Maker:
    """Makes the bot of one seat in one repeat, when it is first needed."""

    def __init__(
        self,
        text: str,
        compiled: CompiledGame,
        seat: int,
        seed: int,
        repeat: int,
    ) -> None:
        self.seat = seat
        self.repeat = repeat
        self.seed = _mix(seed, repeat)
        self._text = text
        self._compiled = compiled

    def make(self) -> Any:
        return bot_strings.load_bot(
            self._text, self._compiled, self.seat, seed=_mix(self.seed, self.seat)
        )


def _mix(seed: int, number: int) -> int:
    """A seed of 31 bits, unlike others."""
    mixed = np.random.SeedSequence([seed, number]).generate_state(1)[0]
    return int(mixed) >> 1


def _traverse(
    compiled: CompiledGame, maker: _Maker, journal: traversing.Journal
) -> traversing.SeatStrategy:
    """One repeat in one seat, from the journal if it is there."""
    key = {"repeat": maker.repeat, "seat": maker.seat}
    for row in journal.find(key):
        met = np.ones(len(compiled.infosets[maker.seat]), np.int64)
        work = traversing.Work(**row["work"])
        return traversing.SeatStrategy(np.array(row["behaviour"]), met, work)
    found = traversing.traverse(compiled, maker.make(), progress=True)
    row = {"behaviour": found.behaviour.tolist(), "work": found.work._asdict()}
    journal.add({**key, **row})
    return found


def _play(
    compiled: CompiledGame,
    maker: _Maker,
    journal: traversing.Journal,
    matches: int,
) -> traversing.SeatStrategy:
    """The matches of one repeat in one seat; those in the journal are not played."""
    key = {"repeat": maker.repeat, "seat": maker.seat}
    mine = [m for m in range(matches) if playing.seat_of(m) == maker.seat]
    shown = {}
    for row in journal.find(key):
        given = {name: row[name] for name in playing.Met._fields}
        given["work"] = traversing.Work(**row["work"])
        if row["match"] < matches:
            shown[row["match"]] = playing.Met(**given)
    bot = None
    for match in tqdm(mine, desc=f"seat {maker.seat}"):
        if match in shown:
            continue
        bot = bot or maker.make()
        shown[match] = playing.play(compiled, bot, match, seed=maker.seed)
        row = {**shown[match]._asdict(), "work": shown[match].work._asdict()}
        journal.add({**key, **row})
    # In order, so that sums round alike however often the run was interrupted.
    return playing.aggregate(compiled, maker.seat, [shown[m] for m in mine])


def _write_csv(path: pathlib.Path, rows: Iterable[dict[str, object]]) -> None:
    table = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(table[0]))
        writer.writeheader()
        writer.writerows(table)


def _subgame(arguments: argparse.Namespace) -> dict[str, object]:
    if arguments.plot:
        plots.check(arguments.plot)
    if arguments.seed < 0:
        raise ValueError(f"seed={arguments.seed} must be 0 or more")
    compiled = as_compiled(arguments.game, observations=True)
    place = one_step.find(compiled, arguments.actions.split(","))
    trunk = one_step.solve_trunk(
        place, arguments.trunk_iterations, arguments.algorithm, progress=True
    )
    found = one_step.one_step(
        place,
        trunk,
        arguments.iterations,
        arguments.algorithm,
        values=arguments.values,
        noise=arguments.noise,
        seed=arguments.seed,
        gadget=arguments.gadget,
        progress=True,
    )
    table = conversions.tabular_policy(compiled, found.behaviours)
    report: dict[str, Any] = {
        "game": arguments.game,
        "actions": arguments.actions,
        "player": found.player,
        "layer": found.layer,
        "infosets": found.infosets,
        "gates": found.gates,
        "algorithm": arguments.algorithm,
        "gadget": arguments.gadget,
        "values": arguments.values,
        "noise": arguments.noise,
        "seed": arguments.seed,
        "trunk_iterations": trunk.iterations,
        "trunk_nash_conv": found.trunk_nash_conv,
        "iterations": arguments.iterations,
        "nash_conv": python_judge.judge(compiled.game, table).nash_conv,
        "curve": [point._asdict() for point in found.curve],
    }
    _write_subgame(arguments, report)
    _print_subgame(report)
    if arguments.plot:
        label = arguments.values
        if arguments.noise:
            label += f", noise {arguments.noise:g}"
        title = f"{arguments.game} after {arguments.actions}"
        plots.plot_curves({label: found.curve}, arguments.plot, title=title)
        print(f"  plot        {arguments.plot}")
    return report


def _write_subgame(arguments: argparse.Namespace, report: dict[str, Any]) -> None:
    if not arguments.out:
        return
    folder = pathlib.Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    facts = {k: v for k, v in report.items() if k not in ("curve", "nash_conv")}
    rows = [{**facts, **point} for point in report["curve"]]
    _write_csv(folder / "subgame.csv", rows)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    storage.write_text(folder / "subgame.jsonl", text)


def _print_subgame(report: dict[str, Any]) -> None:
    print(
        f"{report['game']} after {report['actions']}: player {report['player']} "
        f"resolves {report['infosets']:,} infosets behind {report['gates']:,} gates"
    )
    print(
        f"  trunk       NashConv {report['trunk_nash_conv']:.3e} after "
        f"{report['trunk_iterations']:,} iterations"
    )
    for point in report["curve"]:
        print(f"  {point['iterations']:>10,}  {point['nash_conv']:.3e}")
    print(f"  NashConv    {report['nash_conv']:.3e}  (OpenSpiel, exact)")
