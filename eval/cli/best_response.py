"""The command `best-response`: compute a response to a policy.

The value of a response is a lower bound on the policy's exploitability.

{policies}

methods (default: exact if possible, otherwise ismcts):
  exact   best response on the game tree, or in the form in which a policy was solved
          (public-tree), or in phantom form on large phantom games (phantom_ttt,
          dark_hex); their abrupt versions take minutes and can resume (--checkpoint)
  ismcts  ISMCTS-BR (Timbers et al. 2022): tree search from the responder's belief
  lbr     local best response (Lisy & Bowling 2017): looks one action ahead
  learned ISMCTS-BR with a network trained on --rounds of searched episodes; needs
          pip install 'spiel_cr[deep]', and a game with information state tensors

The game tree is built if it fits into --memory-limit; then the response is a fixed
strategy (searched from each information state that it visits, with --simulations),
and its value is exact. Otherwise, or with --states, the response searches in each of
--matches matches. Its value is then exact if the game fits and the response visits no
more information states than there are matches; otherwise it is the mean of matches. It
is also the mean of matches for bots whose play varies (because of a time limit or
sampling): their policy is estimated, and the matches are against the bot itself.
Without a game tree, a control variate removes the luck of chance and of the opponent
from the mean.

Without a game tree, the belief of the response contains all consistent histories with
exact weights, if there are at most --max-histories. Otherwise it contains --particles
of them, sampled by importance, and resampled when few of them carry most of the weight.
The effective sample size is then reported.

With both players (the default), value is the sum over both, a lower bound of NashConv
if it is exact. For a mean of matches, half_width is half the width of its 95%
confidence interval, computed from sums of one match in each seat. share is the gain
over the policy itself divided by the gain of an exact best response; it is omitted if
its interval is wider than the share itself.

examples:
  spiel-cr best-response --game leduc_poker --policy 'cfr+(iterations=10)' \\
    --method ismcts --simulations 10000
  spiel-cr best-response --game kuhn_poker --policy out/kuhn.npz
  spiel-cr best-response --game "dark_hex(board_size=4)" --policy uniform \\
    --matches 50 --simulations 100 --max-histories 5000
"""

import dataclasses
import sys
from typing import Any

from spiel_cr.common import atomic
from spiel_cr.common.messages import announce, number_text, one_line
from spiel_cr.evaluation.best_response import respond
from spiel_cr.evaluation.opponent import Opponent, open_opponent
from spiel_cr.evaluation.response_config import (
    HISTORIES,
    RESPONSE_METHODS,
    ResponseConfig,
    SearchConfig,
)
from spiel_cr.evaluation.responses.local_best_response import LEAVES
from spiel_cr.evaluation.result import BeliefRecord, ResponseValue, from_same_deals
from spiel_cr.solvers.mccfr.table.table_policy import table_queries
from spiel_cr.solvers.run import Checkpoint

from ..common.plurals import counted
from .command import Arguments, Parser
from .policy_options import POLICIES, PolicyOptions, players_of

RESUMES = True
LISTS = {"policies": POLICIES}


@dataclasses.dataclass(kw_only=True)
class BestResponseOptions(PolicyOptions):
    """Options of the command.

    Attributes:
      states: Search in matches even if the game tree fits into the memory limit.
      checkpoint: File from which the computation resumes (abrupt phantom games only).
      workers: Number of processes that play matches or query a bot; 0: none (default
        0).
    """

    states: bool = False
    checkpoint: atomic.Path | None = None


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    parser.settings(
        ResponseConfig,
        "method leaf rollouts rounds matches max_histories particles luck_rollouts",
        method={"choices": RESPONSE_METHODS, "default": None},
        leaf={"choices": LEAVES},
    )
    parser.settings(
        SearchConfig,
        "simulations learn exploration histories",
        exploration={"metavar": "C"},
        histories={"choices": HISTORIES},
    )


def run(arguments: Arguments) -> dict[str, object]:
    """Compute a response."""
    method = arguments.method or "exact"
    config = arguments.settings(
        ResponseConfig, method=method, search=arguments.settings(SearchConfig)
    )
    if method != "ismcts":
        arguments.reject(SearchConfig, ["learn"], f"is for ismcts, not {method}")
    if arguments.method == "exact":
        problem = "is not for --method exact, which needs a game tree"
        arguments.reject(BestResponseOptions, ["states"], problem)
    announce(f"opening {arguments.game}")
    executor = arguments.executor()
    opponent = open_opponent(
        arguments.policy,
        arguments.game,
        other_forms=method == "exact" and not arguments.states,
        **arguments.options("seed", "memory_limit"),
        executor=executor,
    )
    if opponent.abrupt is None:
        problem = "is for exact responses on abrupt phantom games, which take minutes"
        arguments.reject(BestResponseOptions, ["checkpoint"], problem)
    elif arguments.checkpoint is not None:
        opponent.abrupt.checkpoint = Checkpoint(arguments.checkpoint)
    form = _form(opponent, arguments.states)
    if form == "states" and opponent.too_large is not None:
        print(f"searching in matches: {one_line(opponent.too_large)}", file=sys.stderr)
    if form == "states" and arguments.method is None:
        config = dataclasses.replace(config, method="ismcts")
    values = [
        respond(opponent, player, config, states=arguments.states, executor=executor)
        for player in players_of(arguments)
    ]
    report = {
        **from_same_deals(values).report(),
        **arguments.options("game", "policy"),
        "method": config.method,
        "form": form,
        "unvisited_share": None,
    }
    _print(report, values)
    count, unvisited = table_queries(opponent.policy) or (0, 0)
    if count:
        report["unvisited_share"] = share = unvisited / count
        unit = "infosets" if form == "tree" else "queries"
        print(
            f"  the policy is uniform at infosets that it never visited: {share:.1%} "
            f"of {count:,} {unit}"
        )
    return report


def _form(opponent: Opponent, states: bool) -> str:
    """Return the form of the game on which responses are computed."""
    if states:
        return "states"
    if opponent.abrupt is not None:
        return "phantom"
    return "states" if opponent.form is None else opponent.form.kind


def _print(report: dict[str, Any], values: list[ResponseValue]) -> None:
    game, policy = one_line(report["game"]), one_line(report["policy"])
    print(f"{game}: {report['method']} against {policy}")
    if report["method"] == "exact":
        forms = {"public-tree": "in public-tree form", "phantom": "in phantom form"}
        form = forms.get(report["form"], "on the game tree")
        print(f"  exact, by a best response {form}")
    for seat in values:
        print(f"  {line_of(seat)}")
        if seat.plain_half_width is not None:
            print(f"              plain returns ± {seat.plain_half_width:.4f}")
        if seat.beliefs is not None:
            print(f"              {_beliefs(seat.beliefs)}")
    print(f"  {_total(report)}")
    number = report["simulations"]
    simulations = f"{counted(number, 'simulation')} in " if number else ""
    print(f"  {simulations}{report['seconds']:.2f} s")


def line_of(seat: ResponseValue) -> str:
    """Return the value of a player's response as a line of text."""
    responder = "a best response" if seat.method == "exact" else "the response"
    source, best = "exact", ""
    if not seat.is_exact:
        number = counted(seat.matches, "match", "matches")
        source = f"mean of {number} ± {seat.half_width:.4f}"
    if seat.exact_value is not None and seat.method != "exact":
        best = f"; a best response wins {number_text(seat.exact_value, '+.6f')}"
    value = number_text(seat.value, "+.6f")
    text = f"player {seat.player}: {responder} wins {value} per match"
    return f"{text} ({source}){best}"


def _total(report: dict[str, Any]) -> str:
    """Return the value of the response, and that of a best response."""
    estimated = not report["is_exact"]
    name = "NashConv" if len(report["players"]) == 2 else "value"
    if report["method"] == "exact" and not estimated:
        half = report["value"] / 2
        note = f" (exploitability {number_text(half, '.6f')})"
        note = note if name == "NashConv" else ""
        return f"{name}  {number_text(report['value'], '.6f')}, exact{note}"
    text = f"{name}: at least about" if estimated else f"{name} at least"
    text += f"  {number_text(report['value'], '.6f')}"
    if estimated:
        text += f" ± {report['half_width']:.6f}"
    if report["exact_value"] is not None:
        text += f", exact {number_text(report['exact_value'], '.6f')}"
    if report["share"] is not None:
        spread = f" ± {report['share_half_width']:.2%}" if estimated else ""
        text += f", {report['share']:.2%}{spread} of what can be gained"
    return text


def _beliefs(beliefs: BeliefRecord) -> str:
    """Return the size and the accuracy of the beliefs in a seat, as text."""
    number = counted(beliefs.decisions, "decision")
    if not beliefs.approximate:
        return f"exact beliefs at {number}"
    text = f"beliefs in particles at {beliefs.approximate:,} of {number}"
    if beliefs.least_effective_size is not None:
        text += (
            f", effective sample size {beliefs.mean_effective_size:.0f} in the mean, "
            f"at least {beliefs.least_effective_size:.0f}"
        )
    if beliefs.empty:
        text += f"; empty at {beliefs.empty:,}, a random move there"
    return text
