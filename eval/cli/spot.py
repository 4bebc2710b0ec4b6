"""The command `spot`: solve a flop, turn or river of hold'em.

ranges, of player 0 (out of position) and of player 1, with a semicolon between them:
  QQ+  AKs  KTo  A5s-A2s  JTs-87s  22-77  AhKh  random, each with a weight: AA:0.5
bets, clauses with semicolons between them; if several apply, the last one counts:
  sizes   50% of the pot, pot, 120c (chips), allin, allin:150% (if it is at most this
          share of the pot), none; raises also 2.5x the bet
  where   flop, turn, river, oop, ip, bets, raises, donks, before the sizes
  limits  cap 4 (bets and raises on a street); force 15% (a bet that leaves at most
          this share of the pot behind becomes all-in)

Payoffs are net chips; half of the pot counts as each player's contribution. Rake is not
supported.

examples:
  spiel-cr spot --board 5c9dJs2h3c --pot 1000 --stack 1500 --bets pot,allin --until 1
  spiel-cr spot --board AsKd7c2h --pot 200 --stack 900 --ranges 'QQ+,AK;22+,AT+' \\
      --bets '50%,allin; raises 2.5x' --until 1 --node 'check bet-100' --csv hands.csv
"""

import dataclasses
import pathlib
from typing import Any, Literal

from spiel_cr.common import atomic
from spiel_cr.poker import HandAnswers, answers, spot
from spiel_cr.poker.answers import json_number
from spiel_cr.policies.public_node_names import find_actions

from ..common.plurals import counted
from ..inspection import hand_grid, spot_page
from .command import Arguments, Parser, write_csv
from .solve import SolverOptions, add_run_options, solve_game

RESUMES = True


@dataclasses.dataclass(kw_only=True)
class SpotOptions(SolverOptions):
    """Options of the command.

    Attributes:
      board (CARDS): Three, four or five cards, such as 5c9dJs2h.
      pot (CHIPS): Chips in the middle.
      stack (CHIPS): Chips that each player has behind.
      ranges: Ranges of both players.
      bets (SIZES): Bet sizes.
      first: Player that acts first; ip: oop has checked.
      node (ACTIONS): Show the hands after these actions of the players, such as 'check
        bet-100' (default: at the first decision).
      csv (FILE): Write these hands: weight in the range, equity, EV, and the
        probability of each action.
      html (FILE): Write a page: actions to click, a grid of hands, frequencies, EV,
        equity.
      plot: Draw the curve of NashConv (with locks, if there are any) as png, svg or
        pdf; for a plot of hands: --save FILE, then spiel-cr show --plot.
    """

    board: str
    pot: int
    stack: int
    ranges: str = "random;random"
    bets: str = "50%,pot,allin"
    first: Literal["oop", "ip"] = "oop"
    node: str | None = None
    csv: atomic.Path | None = None
    html: atomic.Path | None = None
    algorithm: str = "dcfr"
    plot: atomic.Path | None = None


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    add_run_options(parser)
    parser.set_defaults(form="public-tree")


def run(arguments: Arguments) -> dict[str, object]:
    """Solve a spot."""
    game = spot(
        arguments.board,
        arguments.pot,
        arguments.stack,
        **arguments.options("ranges", "bets", "first"),
    )
    node = arguments.node or ""
    find_actions(game, node)  # Raises an error before the work.
    arguments.game = str(game)
    report, result = solve_game(arguments)
    policy: Any = result.average_policy()
    hands = answers(policy, node, form=result.form)
    print()
    print(text_of(hands))
    if hands.round == 0:
        print("\npercentages by hand, suited above the diagonal\n")
        print(hand_grid.text_of(hand_grid.hand_grid(policy, node)))
    if arguments.csv:
        write_answers(arguments, hands, report)
    if arguments.html:
        lead = (
            f"pot {arguments.pot}, stacks {arguments.stack}; "
            f"ranges {arguments.ranges}; bets {arguments.bets}; "
            f"NashConv {report['nash_conv']:.3g}"
        )
        if result.has_locks:
            lead += f" (with locks {report['nash_conv_with_locks']:.3g})"
        assert result.form is not None
        page = spot_page.spot_page(policy, result.form, lead)
        with arguments.writing("\npage:", arguments.html):
            atomic.write_text(arguments.html, page)
            report["html"] = arguments.html
    return {
        **report,
        "node": hands.path,
        "player": hands.player,
        "round": hands.round,
        "actions": hands.actions,
        "ev": json_number(hands.mean(hands.ev)),
        "equity": json_number(hands.mean(hands.equity)),
        "frequencies": [json_number(share) for share in hands.mean(hands.played)],
        "hands": hands.rows(),
    }


def text_of(hands: HandAnswers) -> str:
    """Return the mean strategy, EV and equity of the acting player's range."""
    after = " ".join(hands.path) or "the deal"
    if not hands.likelihood.any():
        return f"after {after}: player {hands.player}, whose strategy never leads there"
    played = ", ".join(
        f"{name} {share:.1%}"
        for name, share in zip(hands.actions, hands.mean(hands.played), strict=True)
    )
    return (
        f"after {after}: player {hands.player}, {counted(len(hands.names), 'hand')}, "
        f"EV {hands.mean(hands.ev):+.4g}, equity {hands.mean(hands.equity):.1%}\n"
        f"{played}"
    )


def write_answers(
    arguments: Arguments, hands: HandAnswers, report: dict[str, Any]
) -> None:
    """Write a table of hands to --csv, with a column for each action."""
    rows = []
    for row in hands.rows():
        probabilities, values = row.pop("probabilities"), row.pop("action_evs")
        row |= zip(hands.actions, probabilities, strict=True)
        columns = [f"ev {name}" for name in hands.actions]
        rows.append(row | dict(zip(columns, values, strict=True)))
    with arguments.writing("\nhands:", arguments.csv):
        write_csv(pathlib.Path(arguments.csv), rows)
        report["csv"] = arguments.csv
