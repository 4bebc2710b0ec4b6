"""The command `spot`: solve a spot of hold'em as poker players describe it.

ranges, of player 0 (out of position) and of player 1, with a semicolon between them:
  QQ+  AKs  KTo  A5s-A2s  JTs-87s  22-77  AhKh  random, each with a weight: AA:0.5
bets, clauses with semicolons between them; later ones count:
  sizes   50% of the pot, pot, 120c (chips), allin, allin:150% (if it is at most so
          much of the pot), none; raises also 2.5x the bet
  where   flop, turn, river, oop, ip, bets, raises, donks, before the sizes
  limits  cap 4 (bets and raises on a street); force 15% (bets that leave at most so
          much of the pot behind are all-in)

Payoffs are net chips; half of the pot counts as each player's own. There is no rake.

examples:
  spiel-cr spot --board 5c9dJs2h3c --pot 1000 --stack 1500 --bets pot,allin --until 1
  spiel-cr spot --board AsKd7c2h --pot 200 --stack 900 --ranges 'QQ+,AK;22+,AT+' \\
      --bets '50%,allin; raises 2.5x' --until 1 --node 'check bet-100' --csv hands.csv
"""

import pathlib

from spiel_cr.common import atomic
from spiel_cr.common.messages import one_line
from spiel_cr.poker import HandAnswers, answers, spot
from spiel_cr.poker.answers import json_number
from spiel_cr.policies.public_node_names import find_actions
from spiel_cr.policies.public_tree_policy import PublicTreePolicy

from ..common.plurals import counted
from ..inspection import hand_grid, spot_page
from .command import Arguments, Commands, add_command, write_csv
from .solve import add_run_options, add_solver_options, solve_game


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "solve a flop, turn or river of hold'em: board, pot, ranges, bet sizes"
    parser = add_command(commands, "spot", _spot, text, __doc__, resumes=True)
    text = "three, four or five cards, such as 5c9dJs2h"
    parser.option("--board", text, required=True, metavar="CARDS")
    text = "chips in the middle"
    parser.option("--pot", text, required=True, type=int, metavar="CHIPS")
    text = "chips that each player has behind"
    parser.option("--stack", text, required=True, type=int, metavar="CHIPS")
    parser.option("--ranges", "of both players, see below", "random;random")
    parser.option("--bets", "sizes, see below", "50%,pot,allin", metavar="SIZES")
    text = "who acts first; ip: oop has checked"
    parser.option("--first", text, "oop", choices=("oop", "ip"))
    text = (
        "show the hands after these actions of the players, such as 'check bet-100' "
        "(default: where the first player acts)"
    )
    parser.option("--node", text, metavar="ACTIONS")
    text = "write these hands: weight in the range, equity, EV, how often each action"
    parser.option("--csv", text)
    text = "write a page: actions to click, a grid of hands, frequencies, EV, equity"
    parser.option("--html", text)
    add_solver_options(parser, "dcfr")
    text = (
        "draw the curve of NashConv (with locks, if there are any) as png, svg or pdf; "
        "the picture of hands: --save "
        "FILE, then spiel-cr show --plot"
    )
    add_run_options(parser, text)
    # What `solve` asks of games that may have other forms.
    parser.set_defaults(
        form="public-tree",
        compile="auto",
        workers=1,
        no_batched_rules=False,
        imperfect_recall=False,
        hand_buckets=None,
    )


def _spot(arguments: Arguments) -> dict[str, object]:
    game = spot(
        arguments.board,
        arguments.pot,
        arguments.stack,
        ranges=arguments.ranges,
        bets=arguments.bets,
        first=arguments.first,
    )
    node = arguments.node or ""
    find_actions(game, node)  # refuses mistakes before the work
    arguments.game = str(game)
    report, result = solve_game(arguments)
    policy = result.average_policy()
    assert isinstance(policy, PublicTreePolicy)
    found = answers(policy, node, form=result.form)
    print()
    print(text_of(found))
    if found.round == 0:
        print("\npercentages by hand, suited above the diagonal\n")
        print(hand_grid.text_of(hand_grid.hand_grid(policy, node)))
    if arguments.csv:
        with arguments.writing():
            write_answers(pathlib.Path(arguments.csv), found)
            print(f"\nhands: {one_line(arguments.csv)}")
            report["csv"] = arguments.csv
    if arguments.html:
        lead = (
            f"pot {arguments.pot}, stacks {arguments.stack}; "
            f"ranges {arguments.ranges}; bets {arguments.bets}; "
            f"NashConv {report['nash_conv']:.3g}"
        )
        if result.has_locks:
            lead += f" (with locks {report['nash_conv_with_locks']:.3g})"
        assert result.form is not None
        made = spot_page.spot_page(policy, result.form, lead)
        with arguments.writing():
            atomic.write_text(arguments.html, made)
            print(f"\npage: {one_line(arguments.html)}")
            report["html"] = arguments.html
    return {
        **report,
        "node": found.path,
        "player": found.player,
        "round": found.round,
        "actions": found.actions,
        "ev": json_number(found.mean(found.ev)),
        "equity": json_number(found.mean(found.equity)),
        "frequencies": [json_number(share) for share in found.mean(found.played)],
        "hands": found.rows(),
    }


def text_of(found: HandAnswers) -> str:
    """What the whole range of the player who acts does, and what it is worth."""
    after = " ".join(found.path) or "the deal"
    if not found.likelihood.any():
        return f"after {after}: player {found.player}, who never gets there"
    played = ", ".join(
        f"{name} {share:.1%}"
        for name, share in zip(found.actions, found.mean(found.played), strict=True)
    )
    return (
        f"after {after}: player {found.player}, {counted(len(found.names), 'hand')}, "
        f"EV {found.mean(found.ev):+.4g}, equity {found.mean(found.equity):.1%}\n"
        f"{played}"
    )


def write_answers(path: pathlib.Path, found: HandAnswers) -> None:
    """Writes a table of hands, with a column for each action."""
    rows = []
    for row in found.rows():
        played, values = row.pop("probabilities"), row.pop("action_evs")
        worth = [f"ev {name}" for name in found.actions]
        row |= zip(found.actions, played, strict=True)
        rows.append(row | dict(zip(worth, values, strict=True)))
    write_csv(path, rows)
