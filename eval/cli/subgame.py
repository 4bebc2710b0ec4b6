"""The command `subgame`: resolve one subgame of a solved game, and record NashConv.

Actions are OpenSpiel's, including those of chance, as numbers or names, separated by
commas (write a number for an action with a comma in its name). They must lead to a
second or later decision of a player; this player resolves the subgame.

examples:
  spiel-cr subgame --game kuhn_poker --actions 0,1,0,1 --iterations 1000
  spiel-cr subgame --game kuhn_poker --actions 'Deal:0,Deal:1,Pass,Bet' \\
    --iterations 1000 --values best_response --noise 0.1
"""

import dataclasses
import json
import pathlib
from typing import Any

import spiel_cr
from spiel_cr.common import atomic
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce, number_text, one_line
from spiel_cr.evaluation import one_step, openspiel_evaluator
from spiel_cr.games.tree.tree_builder import as_tree
from spiel_cr.policies import conversions

from ..common.plurals import counted
from .command import Arguments, Parser, write_csv


@dataclasses.dataclass(kw_only=True)
class SubgameOptions:
    """Options of the command.

    Attributes:
      actions: Actions from the root of the game to the subgame.
      out (DIR): Write the curve to this folder, as JSON lines and CSV.
    """

    game: str
    actions: str
    memory_limit: Limit = None
    plot: atomic.Path | None = None
    out: atomic.Path | None = None


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    parser.settings(
        one_step.OneStepConfig,
        "trunk_iterations iterations algorithm values noise seed gadget",
        trunk_iterations={"metavar": "T"},
        noise={"metavar": "STD"},
    )


def run(arguments: Arguments) -> dict[str, object]:
    """Resolve a subgame."""
    config = arguments.settings(one_step.OneStepConfig)
    options = arguments.options("game", "memory_limit")
    tree = as_tree(observations=True, progress=True, **options)
    openspiel_evaluator.check_memory(tree, arguments.memory_limit)
    announce("cutting the game into subgames")
    actions = arguments.actions.split(",")
    result = one_step.resolve_after(tree, actions, config)
    announce("evaluating")
    policy = conversions.tabular_policy(tree, result.behaviours)
    names = ("player", "layer", "infosets", "augmented_infosets", "trunk_nash_conv")
    facts: dict[str, Any] = {
        **arguments.options("game", "actions"),
        **{name: getattr(result, name) for name in names},
        **dataclasses.asdict(config),
    }
    del facts["iterations"]
    report = {
        **facts,
        "iterations": arguments.iterations,
        "nash_conv": openspiel_evaluator.evaluate(tree.game, policy).nash_conv,
        "curve": [point._asdict() for point in result.curve],
    }
    _print(report)
    if arguments.out:
        folder = pathlib.Path(arguments.out)
        rows = [{**facts, **point} for point in report["curve"]]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        arguments.write_text(folder / "subgame.jsonl", text)
        with arguments.writing():
            write_csv(folder / "subgame.csv", rows)
    if arguments.plot:
        label = arguments.values
        if arguments.noise:
            label += f", noise {arguments.noise:g}"
        title = f"{arguments.game} after {arguments.actions}"
        with arguments.writing("  plot       ", arguments.plot):
            spiel_cr.plot({label: result.curve}, arguments.plot, title=title)
    return report


def _print(report: dict[str, Any]) -> None:
    print(
        f"{one_line(report['game'])} after {one_line(report['actions'])}: "
        f"player {report['player']} resolves "
        f"{counted(report['infosets'], 'infoset')} below "
        f"{counted(report['augmented_infosets'], 'augmented infoset')} of the opponent"
    )
    print(
        f"  trunk       NashConv {number_text(report['trunk_nash_conv'], '.3e')} after "
        f"{counted(report['trunk_iterations'], 'iteration')}"
    )
    print("  iterations  NashConv of trunk and subgame together")
    for point in report["curve"]:
        print(f"  {point['iterations']:>10,}  {number_text(point['nash_conv'], '.3e')}")
    print(
        f"  NashConv    {number_text(report['nash_conv'], '.3e')}  (OpenSpiel, exact)"
    )
    print("  the strategy itself is not shown")
