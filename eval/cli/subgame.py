"""The command `subgame`: one subgame resolved on top of a trunk.

examples:
  spiel-cr subgame --game kuhn_poker --actions 0,1,0,1 --iterations 1000
  spiel-cr subgame --game kuhn_poker --actions 'Deal:0,Deal:1,Pass,Bet' \\
    --iterations 1000 --values best_response --noise 0.1

Actions are OpenSpiel's, chance moves included, as numbers or in words, separated by
commas (write a number for an action with a comma in its name). They must lead to a
second or later decision of a player; that player resolves the subgame there.
"""

import json
import pathlib
from typing import Any, get_args

import spiel_cr
from spiel_cr.common import atomic, figures
from spiel_cr.common.messages import announce, one_line
from spiel_cr.evaluation import one_step, openspiel_evaluator
from spiel_cr.games.tree.compiler import as_tree
from spiel_cr.policies import conversions
from spiel_cr.resolving.gadget_fronts import Gadget

from ..common.plurals import counted
from .command import Arguments, Commands, add_command, write_csv


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "resolve one subgame on top of a trunk, and follow NashConv"
    parser = add_command(commands, "subgame", _subgame, text, __doc__)
    parser.option("--game")
    parser.option("--actions", "from the root to the subgame, see below", required=True)
    text = "of the solve of the whole game"
    parser.option("--trunk-iterations", text, 1000, metavar="T")
    parser.option("--iterations", "of the solve of the subgame", 1000)
    parser.option("--algorithm", "of both solves, a full-width one", "cfr+")
    parser.option(
        "--values",
        "the opponent's values at the subgame's root: its means over the trunk's "
        "iterates, or exact ones, of a best response to the trunk",
        "iterates",
        choices=get_args(one_step.OpponentValues),
    )
    parser.option(
        "--noise",
        "multiply these values by normal variables of mean 1 and this standard "
        "deviation",
        0.0,
        metavar="STD",
    )
    parser.option("--seed", "of the noise")
    text = "what keeps the opponent from gaining"
    parser.option("--gadget", text, "cfrd", choices=get_args(Gadget))
    parser.option("--memory-limit")
    parser.option("--plot")
    parser.option("--out", "write the curve here: JSON lines and CSV")


def _subgame(arguments: Arguments) -> dict[str, object]:
    if arguments.plot:
        figures.check(arguments.plot)
    config = one_step.OneStepConfig(
        **arguments.given("iterations", "trunk_iterations", "algorithm"),
        **arguments.given("values", "noise", "seed", "gadget"),
    )
    compiled = as_tree(
        arguments.game,
        observations=True,
        memory_limit=arguments.memory_limit,
        progress=True,
    )
    openspiel_evaluator.check_memory(compiled, arguments.memory_limit)
    announce("cutting the game into subgames")
    actions = arguments.actions.split(",")
    found = one_step.resolve_after(compiled, actions, config, progress=True)
    announce("evaluating")
    table = conversions.tabular_policy(compiled, found.behaviours)
    facts: dict[str, Any] = {
        **arguments.given("game", "actions"),
        "player": found.player,
        "layer": found.layer,
        "infosets": found.infosets,
        "augmented_infosets": found.augmented_infosets,
        **arguments.given("algorithm", "gadget", "values", "noise", "seed"),
        **arguments.given("trunk_iterations"),
        "trunk_nash_conv": found.trunk_nash_conv,
    }
    report = {
        **facts,
        "iterations": arguments.iterations,
        "nash_conv": openspiel_evaluator.evaluate(compiled.game, table).nash_conv,
        "curve": [point._asdict() for point in found.curve],
    }
    _print(report)
    _write(arguments, facts, found)
    return report


def _write(
    arguments: Arguments, facts: dict[str, Any], found: one_step.OneStep
) -> None:
    """The curve in a folder, and drawn."""
    if arguments.out:
        folder = pathlib.Path(arguments.out)
        rows = [{**facts, **point._asdict()} for point in found.curve]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        with arguments.writing():
            atomic.write_text(folder / "subgame.jsonl", text)
        with arguments.writing():
            write_csv(folder / "subgame.csv", rows)
    if arguments.plot:
        label = arguments.values
        if arguments.noise:
            label += f", noise {arguments.noise:g}"
        title = f"{arguments.game} after {arguments.actions}"
        with arguments.writing():
            spiel_cr.plot({label: found.curve}, arguments.plot, title=title)
            print(f"  plot        {one_line(arguments.plot)}")


def _print(report: dict[str, Any]) -> None:
    print(
        f"{one_line(report['game'])} after {one_line(report['actions'])}: "
        f"player {report['player']} resolves "
        f"{counted(report['infosets'], 'infoset')} below "
        f"{counted(report['augmented_infosets'], 'augmented infoset')} of the opponent"
    )
    print(
        f"  trunk       NashConv {report['trunk_nash_conv']:.3e} after "
        f"{counted(report['trunk_iterations'], 'iteration')}"
    )
    print("  iterations  NashConv of trunk and subgame together")
    for point in report["curve"]:
        print(f"  {point['iterations']:>10,}  {point['nash_conv']:.3e}")
    print(f"  NashConv    {report['nash_conv']:.3e}  (OpenSpiel, exact)")
    print("  the strategy itself is not shown")
