"""The command `evaluate`: compute NashConv of a bot.

bots:
{bots}

  resolving and oos have a budget: iterations per solve, or move_ms milliseconds per
  move (with init_ms before the first move), or both.

methods:
  traversal   queries the bot at every infoset, with the moves that lead there, and
              computes the exact NashConv of the policy. Bots whose answers vary
              (because of a time limit or sampling) need --repeats. oos, which learns
              from every query, is reset before each query.
  matches     for games with too many infosets to query each of them: plays matches
              against an opponent that avoids ending the game, and averages the bot's
              strategies at visited infosets. The policy is uniform at other infosets,
              so its NashConv is usually higher than the bot's.

Both need a game tree. NashConv of a file that was solved with --form public-tree is
exact without a game tree: best-response --policy PATH --method exact.

With --out DIR all results are kept in DIR as JSON lines (and a CSV at the end); to
resume an interrupted evaluation, repeat the command.

examples:
  spiel-cr evaluate --game kuhn_poker --bot 'resolving(solver=cfr+,iterations=100)'
  spiel-cr evaluate --game leduc_poker --bot 'resolving(move_ms=50,init_ms=500)' \\
    --repeats 5 --out out/leduc
  spiel-cr evaluate --game leduc_poker --bot 'oos(iterations=20)' \\
    --method matches --matches 2000
"""

import dataclasses
import pathlib
from typing import Any

from spiel_cr.common import atomic
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import number_text, one_line
from spiel_cr.common.statistics import CONFIDENCE
from spiel_cr.evaluation import evaluate
from spiel_cr.evaluation.result import Evaluation
from spiel_cr.players.player_strings import describe_players

from ..common.plurals import counted
from .command import Arguments, Parser, WorkerOptions, write_csv

RESUMES = True
LISTS = {"bots": describe_players()}
_EVALUATORS = {"openspiel": "OpenSpiel", "spiel_cr": "spiel_cr"}


@dataclasses.dataclass(kw_only=True)
class EvaluateOptions(WorkerOptions):
    """Options of the command.

    Attributes:
      bot: Bot to evaluate, as name(parameter=value,...).
    """

    game: str
    bot: str
    memory_limit: Limit = None
    out: atomic.Path | None = None


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    parser.settings(
        evaluate.EvaluatorConfig,
        "method matches repeats seed",
        method={"choices": evaluate.METHODS},
        repeats={"metavar": "R"},
    )


def run(arguments: Arguments) -> dict[str, object]:
    """Evaluate a bot."""
    repeats = evaluate.evaluate_repeatedly(
        config=arguments.settings(evaluate.EvaluatorConfig),
        executor=arguments.executor(),
        **arguments.options("game", "bot", "out", "memory_limit"),
    )
    mean = evaluate.mean_evaluation(repeats)
    report = _report(mean)
    # Policy at infosets that were not visited.
    is_complete = report["infosets_visited"] == report["infosets"]
    report["unvisited_play"] = None if is_complete else "uniform"
    if arguments.repeats > 1:
        report["half_width"] = mean.half_width
    if arguments.out:
        rows = [{"repeat": n, **_report(each)} for n, each in enumerate(repeats)]
        with arguments.writing():
            write_csv(pathlib.Path(arguments.out) / f"{arguments.method}.csv", rows)
    _print(arguments, report)
    return report


def _report(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "nash_conv": evaluation.nash_conv,
        **evaluation.statistics,
        "seconds": evaluation.seconds,
        "evaluator": evaluation.evaluator,
    }


def _print(arguments: Arguments, report: dict[str, Any]) -> None:
    print(one_line(f"{arguments.game}, {arguments.bot}, {arguments.method}"))
    spread = ""
    if "half_width" in report:
        spread = (
            f" ± {report['half_width']:.1e} ({CONFIDENCE:.0%} of "
            f"{arguments.repeats} repeats)"
        )
    evaluator = _EVALUATORS[report["evaluator"]]
    defined = 100 * report["infosets_visited"] / max(report["infosets"], 1)
    visited, policy = f"{defined:.1f}% of them visited", "exact for this strategy"
    if report["unvisited_play"]:
        visited += f", {report['unvisited_play']} strategy at the others"
        policy += f", {report['unvisited_play']} at infosets that were not visited"
    nash_conv = number_text(report["nash_conv"], ".3e")
    print(f"  NashConv    {nash_conv}{spread}  (by {evaluator}, {policy})")
    print(f"  infosets    {report['infosets']:,}, {visited}")
    print(
        f"  moves       {report['moves']:,}, {report['deadline_misses']:,} of them "
        f"late; longest {report['max_ms']:.1f} ms; {report['seconds']:.1f} s in total"
    )
    if report["compilations"]:
        functions = counted(report["compilations"], "function")
        print(f"  compiled    {functions} during moves")
