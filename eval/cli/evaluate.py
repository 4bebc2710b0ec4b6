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
    --method matches --matches 2000

methods:
  traversal   queries the bot at every infoset, reached as in a match: exact NashConv of
              what it plays. Bots whose answers vary (a clock, sampling) need --repeats.
              oos, which learns from every question, is asked as in its first match.
  matches     plays matches against an opponent that avoids ending the game, and takes
              the mean of the strategies met, uniform ones where none was. NashConv is
              of both together, mostly higher than the bot's own: for games with too
              many infosets to ask at each.

Both need the compiled game. NashConv of a file that was solved with --form public-tree
is exact without it: best-response --policy PATH --method exact.

With --out DIR all results are kept in DIR as JSON lines (and a CSV at the end); the
same command continues an interrupted evaluation.
"""

import pathlib
from typing import Any

from spiel_cr.common.messages import one_line
from spiel_cr.common.statistics import CONFIDENCE
from spiel_cr.evaluation import evaluate
from spiel_cr.evaluation.result import Evaluation
from spiel_cr.players import bot_strings

from ..common.plurals import counted
from .command import Arguments, Commands, add_command, write_csv

_EVALUATORS = {"openspiel": "OpenSpiel", "spiel_cr": "spiel_cr"}


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
    parser.option("--game")
    text = "the player: name(parameter=value,...), see below"
    parser.option("--bot", text, required=True)
    parser.option("--method", "see below", "traversal", choices=evaluate.METHODS)
    text = f"number of matches, for the method matches (default {evaluate.MATCHES})"
    parser.option("--matches", text)
    parser.option(
        "--repeats",
        "evaluate R newly made bots; NashConv is then the mean, with the half width of "
        "its 95 %% confidence interval",
        1,
        metavar="R",
    )
    parser.option("--seed", "of the bot, and of the matches")
    parser.option("--memory-limit")
    parser.option("--out", "keep results here, and continue from them")
    parser.worker_options()


def _evaluate(arguments: Arguments) -> dict[str, object]:
    repeats = evaluate.evaluate_repeatedly(
        arguments.game,
        arguments.bot,
        evaluate.EvaluatorConfig(
            **arguments.given("method", "matches", "repeats", "seed")
        ),
        arguments.out,
        memory_limit=arguments.memory_limit,
        executor=arguments.executor(),
    )
    mean = evaluate.mean_evaluation(repeats)
    report = _report(mean)
    # The strategy at infosets that were not visited.
    all_visited = report["infosets_visited"] == report["infosets"]
    report["unvisited_play"] = None if all_visited else "uniform"
    if arguments.repeats > 1:
        report["half_width"] = mean.half_width
    if arguments.out:
        rows = [{"repeat": r, **_report(each)} for r, each in enumerate(repeats)]
        with arguments.writing():
            write_csv(pathlib.Path(arguments.out) / f"{arguments.method}.csv", rows)
    _print(arguments, report)
    return report


def _report(evaluation: Evaluation) -> dict[str, object]:
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
    visited = 100 * report["infosets_visited"] / max(report["infosets"], 1)
    text, of = f"{visited:.1f} % of them visited", "exact for the strategy there"
    if report["unvisited_play"]:
        text += f", {report['unvisited_play']} play at the others"
        of += f" with {report['unvisited_play']} play elsewhere"
    print(f"  NashConv    {report['nash_conv']:.3e}{spread}  (by {evaluator}, {of})")
    print(f"  infosets    {report['infosets']:,}, {text}")
    print(
        f"  moves       {report['moves']:,}, {report['late_moves']:,} of them late; "
        f"the longest took {report['max_ms']:.1f} ms; {report['seconds']:.1f} s in all"
    )
    if report["programs_compiled"]:
        programs = counted(report["programs_compiled"], "program")
        print(f"  compiled    {programs} during moves")
