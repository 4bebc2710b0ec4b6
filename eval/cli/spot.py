"""The command `spot`: solve a flop, turn or river of hold'em.

ranges, of player 0 (out of position) and of player 1, with a semicolon between them:
  QQ+  AKs  KTo  A5s-A2s  JTs-87s  22-77  AhKh  random, each with a weight: AA:0.5
  (PioSOLVER), or several with a weight in percent: [50]AA,AKs[/50] (GTO+)
bets, clauses with semicolons between them; if several apply, the last one counts:
  sizes   50% of the pot, pot, 120c (chips), allin, allin:150% (if it is at most this
          share of the pot), none; raises also 2.5x the bet
  where   flop, turn, river, oop, ip, bets, raises, donks, before the sizes
  limits  cap 4 (bets and raises on a street); force 15% (a bet that leaves at most
          this share of the pot behind becomes all-in)

Payoffs are net chips; half of the pot counts as each player's contribution. With
--rake, the game is not zero-sum: the solver minimises both players' regret, and the
output has the EV of each player and its gain from a best response.

examples:
  spiel-cr spot --board 5c9dJs2h3c --pot 1000 --stack 1500 --bets pot,allin --until 1
  spiel-cr spot --board AsKd7c2h --pot 200 --stack 900 --ranges 'QQ+,AK;22+,AT+' \\
      --bets '50%,allin; raises 2.5x' --until 1 --node 'check bet-100' --csv hands.csv
  spiel-cr spot --board AsKd7c2h --pot 200 --stack 900,1500 --until 2 --save spot.npz
  spiel-cr spot --open spot.npz --node 'check check' --report river --plot cards.png
"""

import argparse
import dataclasses
import pathlib
from typing import Any, Literal

from spiel_cr.common import atomic
from spiel_cr.common.messages import number_text, one_line
from spiel_cr.poker import HandAnswers, answers, ranges, runout_report, spot
from spiel_cr.poker.answers import json_number
from spiel_cr.poker.runouts import check_street, public_cards
from spiel_cr.poker.spot import NAME
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.solvers import policy_files

from ..common.plurals import counted
from ..inspection import hand_grid, spot_page
from ..reporting import plots
from .command import Arguments, Parser, write_csv
from .setting_options import integer_value
from .solve import SolverOptions, add_run_options, solve_game

RESUMES = True


@dataclasses.dataclass(kw_only=True)
class SpotOptions(SolverOptions):
    """Options of the command.

    Attributes:
      open (FILE): Show a spot that --save wrote, without solving it; this replaces
        --pot, --stack and the other options of the game.
      board (CARDS): Three, four or five cards, such as 5c9dJs2h; with --open: all
        public cards at --node, to show the hands on this board only.
      pot (CHIPS): Chips in the middle.
      stack (CHIPS): Chips that each player has behind; if you give two numbers, such as
        900,1500, both players play the smaller one.
      ranges: Ranges of both players.
      bets (SIZES): Bet sizes.
      first: Player that acts first; ip: oop has checked.
      rake (RAKE): Share of the pot and cap in chips, such as 5%,3, which the winner
        pays at showdowns and after folds.
      node (ACTIONS): Show the hands after these actions of the players, such as 'check
        bet-100' (default: at the first decision).
      report: Show strategy, EV and equity at --node for each card of the turn or river;
        --csv and --plot then write this report.
      csv (FILE): Write these hands: weight in the range, equity, EV, and the
        probability of each action.
      write_ranges (FILE): Write both players' ranges at --node, a line for each.
      notation: Notation of --write-ranges, of PioSOLVER or of GTO+ (default pio).
      html (FILE): Write a page: actions to click, a grid of hands, frequencies, EV,
        equity.
      plot: Draw the curve of NashConv (with locks, if there are any) as png, svg or
        pdf; for a plot of hands: --save FILE, then spiel-cr show --plot.
    """

    open: atomic.Path | None = None
    board: str | None = None
    pot: int | None = None
    stack: str | None = None
    ranges: str = "random;random"
    bets: str = "50%,pot,allin"
    first: Literal["oop", "ip"] = "oop"
    rake: str = ""
    node: str | None = None
    report: Literal["turn", "river"] | None = None
    csv: atomic.Path | None = None
    write_ranges: atomic.Path | None = None
    notation: Literal["pio", "gto+"] = "pio"
    html: atomic.Path | None = None
    algorithm: str = "dcfr"
    plot: atomic.Path | None = None


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    add_run_options(parser)
    parser.set_defaults(form="public-tree")


def run(arguments: Arguments) -> dict[str, object]:
    """Solve a spot, or open a solved one, and show a decision."""
    node = arguments.node or ""
    report, policy, form = (_open if arguments.open else _solve)(arguments, node)
    board = (arguments.board or "") if arguments.open else ""
    hands = answers(policy, node, form=form, board=board)
    print()
    print(text_of(hands))
    if arguments.report:
        _report_runouts(arguments, policy, hands, report)
    elif hands.round == 0:
        print("\npercentages by hand, suited above the diagonal\n")
        print(hand_grid.text_of(hand_grid.hand_grid(policy, node)))
    if arguments.csv and not arguments.report:
        write_answers(arguments, hands, report)
    if arguments.write_ranges:
        texts = ranges(policy, node, board=board, notation=arguments.notation)
        text = "\n".join([*texts, ""])
        if arguments.write_text(arguments.write_ranges, text, "\nranges:"):
            report["write_ranges"] = arguments.write_ranges
    if arguments.html:
        page = spot_page.spot_page(policy, form, _lead(policy, report))
        if arguments.write_text(arguments.html, page, "\npage:"):
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


def _solve(arguments: Arguments, node: str) -> tuple[dict[str, Any], Any, Any]:
    """Solve the spot of the options; return the report, the policy and the form."""
    for name in ("board", "pot", "stack"):
        if getattr(arguments, name) is None:
            raise ValueError(
                f"--{name} is missing; describe the spot with --board, --pot and "
                f"--stack, or show a saved one with --open FILE"
            )
    stacks = [_chips(part) for part in arguments.stack.split(",")]
    options = arguments.options("board", "pot", "ranges", "bets", "first", "rake")
    game = spot(stack=stacks, **options)
    _check_node(arguments, game, node)
    arguments.game = str(game)
    # With --report, it is the plot of the cards.
    plot = arguments.plot
    if arguments.report:
        arguments.plot = None
    report, result = solve_game(arguments)
    arguments.plot = plot
    if len({*stacks}) > 1:
        larger, played = max(stacks), min(stacks)
        print(f"  stacks      {played} of {larger} chips are played: the smaller stack")
        report["stacks"] = stacks
    return report, result.average_policy(), result.form


def _check_node(arguments: Arguments, game: Any, node: str) -> None:
    """Raise ValueError, before the work, if an option does not apply to --node."""
    if arguments.report:
        check_street(game, node, arguments.report)
    num_first, num_cards = public_cards(game, node)
    has_board = arguments.open and arguments.board
    if arguments.write_ranges and num_cards > num_first and not has_board:
        raise ValueError(
            f"--write-ranges: ranges after '{node}' depend on the cards dealt since "
            f"the start; save the spot (--save FILE), then use --open FILE and "
            f"--board with all {num_cards} cards"
        )


def _chips(text: str) -> int:
    """Return a number of chips of --stack."""
    try:
        return integer_value(text)
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"--stack: {error}, or two such as 900,1500") from None


# Options that are used with --open.
_OPENING = "open board node report csv write_ranges notation html plot memory_limit"


def _open(arguments: Arguments, node: str) -> tuple[dict[str, Any], Any, Any]:
    """Load the policy of --open; return the report, the policy and the form."""
    policy: Any = None
    try:
        file = policy_files.read_policy_file(arguments.open)
        policy = file.load() if file.is_of_public_tree else None
    except (OSError, ValueError) as error:
        raise ValueError(f"open={arguments.open!r}: {error}") from error
    if policy is None or policy.game.get_type().short_name != NAME:
        raise ValueError(
            f"open={arguments.open!r}: not a solved spot; use a file that spiel-cr "
            f"spot --save wrote"
        )
    limits = "iterations seconds until eval_every wall_clock checkpoint"
    names = [field.name for field in dataclasses.fields(SpotOptions)] + limits.split()
    solving = [name for name in names if name not in _OPENING.split()]
    arguments.reject(SpotOptions, solving, "has no effect on a saved spot")
    if not arguments.report:
        problem = "needs --report turn or river, because a saved spot has no curve"
        arguments.reject(SpotOptions, ["plot"], problem)
    if arguments.board and arguments.report:
        raise ValueError("--board: a report is about all boards; remove --board")
    _check_node(arguments, policy.game, node)
    facts = {k: file.metadata.get(k) for k in ("algorithm", "iterations", "nash_conv")}
    more = "nash_conv_with_locks", "values", "regrets"
    facts |= {k: file.metadata[k] for k in more if k in file.metadata}
    print(f"{one_line(policy.game)}, {facts['algorithm']}, saved in {arguments.open}")
    for name, label in ("nash_conv", "NashConv"), (more[0], "with locks"):
        if (number := facts.get(name)) is not None:
            print(f"  {label:<12}{number_text(number, '.3e')}  (stored)")
    report = {"game": str(policy.game), **facts, **arguments.options("open")}
    return report, policy, policy.form.sequence_form


def _lead(policy: FormPolicy, report: dict[str, Any]) -> str:
    """Return the sentence under the title of the page."""
    values = policy.game.get_parameters()
    rake = f"rake {values['rake']}; " if values["rake"] else ""
    lead = (
        f"pot {values['pot']}, stacks {values['stack']}; ranges {values['ranges']}; "
        f"bets {values['bets']}; {rake}"
        f"NashConv {_number_or_unknown(report['nash_conv'])}"
    )
    if "nash_conv_with_locks" in report:
        lead += f" (with locks {_number_or_unknown(report['nash_conv_with_locks'])})"
    if "regrets" in report:
        first, second = (number_text(regret, ".3g") for regret in report["regrets"])
        lead += (
            f"; not zero-sum: EVs are those of both strategies against each other, and "
            f"a best response would gain {first} (player 0) or {second} (player 1)"
        )
    return lead


def _number_or_unknown(value: float | None) -> str:
    """Return a number of a file, which may lack it, as text."""
    return "unknown" if value is None else number_text(value, ".3g")


def _report_runouts(
    arguments: Arguments, policy: FormPolicy, hands: HandAnswers, report: dict[str, Any]
) -> None:
    """Print, write and draw the report of --report."""
    rows = runout_report(policy, hands, arguments.report)
    names = list(rows[0])
    print("\n" + "".join(f"{name:>13}" for name in names))
    for row in rows:
        texts = {name: x if name == "card" else f"{x:.1%}" for name, x in row.items()}
        texts["ev"] = number_text(row["ev"], "+.4g")
        print("".join(f"{text:>13}" for text in texts.values()))
    report["runouts"] = [
        {name: x if name == "card" else json_number(x) for name, x in row.items()}
        for row in rows
    ]
    if arguments.csv:
        with arguments.writing("\nreport:", arguments.csv):
            write_csv(pathlib.Path(arguments.csv), report["runouts"])
            report["csv"] = arguments.csv
    if arguments.plot:
        after = " ".join(hands.path)
        title = (
            f"{hand_grid.title_of(policy.game)}\nplayer {hands.player} acts after "
            f"{after}, by {arguments.report} card"
        )
        with arguments.writing("\npicture:", arguments.plot):
            plots.plot_cards(rows, hands.actions, arguments.plot, title=title)
            report["plot"] = arguments.plot


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
        f"EV {number_text(float(hands.mean(hands.ev)), '+.4g')}, "
        f"equity {hands.mean(hands.equity):.1%}\n"
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
