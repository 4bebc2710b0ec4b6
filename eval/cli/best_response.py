"""The command `best-response`: how much can be won against a policy.

policies:
  uniform; {chumps} (poker);
  an algorithm's average strategy: cfr+(iterations=10), lp;
  PATH.npz of --save; a bot: resolving(iterations=100)

methods (default: exact where it can be had, else ismcts):
  exact   best response on the compiled game; to a policy that was solved with --form
          public-tree, on that form, and on large phantom games (phantom_ttt,
          dark_hex) on the phantom form: no tree is built; on their abrupt forms
          minutes of streaming, see --checkpoint
  ismcts  ISMCTS-BR (Timbers et al. 2022): search from the responder's belief
  lbr     local best response (Lisy & Bowling 2017): one action ahead
  learned ISMCTS-BR with a network trained on --rounds of searched episodes; needs
          pip install 'spiel_cr[deep]', and a game with information state tensors

The game is compiled if it fits into --memory-limit; then the response is a fixed
strategy (searched from each information state that it comes to, with --simulations),
and its value is exact. Otherwise, or with --states, the response searches in each of
--matches matches. Its value is then exact where the game fits and the response comes to
no more information states than there are matches; else it is the mean of matches. It is
the mean of matches also against bots that do not always play alike (with a clock, or
sampling): their policy is estimated, the matches are against the bot itself. On states
the luck of chance and of the opponent is taken out of the mean by a control variate.

On states the response believes in all consistent histories, weighted exactly, while
they are at most --max-histories; else in --particles of them, drawn by importance and
redrawn where they become alike. Then the effective sample size is reported.

With both seats (the default) value is the sum, a lower bound of NashConv where it is
exact; a mean of matches is one up to half_width, half of its 95 % interval, by sums of
a match in each seat. share is the gain over the policy itself, as a share of the exact
best response's; it is left out where its interval is wider than itself.

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

from spiel_cr.common.checks import check_seed
from spiel_cr.common.messages import announce, one_line
from spiel_cr.evaluation.best_response import respond
from spiel_cr.evaluation.opponent import Opponent, open_opponent
from spiel_cr.evaluation.response_config import (
    HISTORIES,
    RESPONSE_METHODS,
    ResponseConfig,
    SearchConfig,
)
from spiel_cr.evaluation.responses.local_best_response import LEAVES
from spiel_cr.evaluation.responses.state_responder import BeliefRecord
from spiel_cr.evaluation.result import ResponseValue, from_same_deals
from spiel_cr.players import opponents
from spiel_cr.policies.phantom_policy import PhantomPolicy
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy
from spiel_cr.solvers.run import Checkpoint

from ..common.plurals import counted
from .command import Arguments, Commands, add_command


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "find a response to a policy: a lower bound on its exploitability"
    chumps = ", ".join(opponents.CHUMPS)
    parser = add_command(
        commands,
        "best-response",
        _best_response,
        text,
        __doc__,
        resumes=True,
        chumps=chumps,
    )
    parser.option("--game")
    parser.option("--policy", "the opponent, see below", metavar="PATH|NAME")
    parser.option("--method", "how the response is found", choices=RESPONSE_METHODS)
    text = "seat of the response"
    parser.option("--player", text, "both", choices=("0", "1", "both"))
    default, config = SearchConfig(), ResponseConfig()
    text = "from each information state that is searched"
    parser.option("--simulations", text, default.simulations)
    parser.option(
        "--learn",
        "of ismcts on compiled games: before, N simulations from every information "
        "state, from the last to the first",
        default.learn,
    )
    text = "of PUCT, in half ranges of the utilities"
    parser.option("--exploration", text, default.exploration, metavar="C")
    text = (
        "of ismcts on states: follow whole beliefs where these are small, or histories "
        "drawn one by one"
    )
    parser.option("--histories", text, default.histories, choices=HISTORIES)
    text = "default play of lbr (default: call in poker, else uniform)"
    parser.option("--leaf", text, choices=LEAVES)
    text = "of lbr, per decision, where the game is not compiled"
    parser.option("--rollouts", text, 1000)
    parser.option("--rounds", "of learned: episodes, then training", 20)
    text = "in each seat, to estimate the value where it is not exact"
    parser.option("--matches", text, config.matches)
    parser.option("--max-histories", "of exact beliefs on states", config.max_histories)
    parser.option("--particles", "of larger beliefs", config.particles)
    text = (
        "after each move of chance and the opponent, for the control variate; 0: none"
    )
    parser.option("--luck-rollouts", text, config.luck_rollouts)
    parser.option("--memory-limit", "compile the game if it needs no more", "4GB")
    text = "search on states though it would fit"
    parser.option("--states", text, action="store_true")
    text = "of abrupt hidden boards: go on from this file, and write to it on the way"
    parser.option("--checkpoint", text)
    parser.option("--seed")
    text = "processes that play matches on states, or ask a bot; 0: this one"
    parser.worker_options(text)


def _best_response(arguments: Arguments) -> dict[str, object]:
    config = _config(arguments)
    if arguments.states and arguments.method == "exact":
        raise ValueError(
            "--method exact needs the compiled game; leave --states out, or choose "
            "ismcts, lbr or learned"
        )
    players = [0, 1] if arguments.player == "both" else [int(arguments.player)]
    announce(f"looking at {arguments.game}")
    opponent = open_opponent(
        arguments.policy,
        arguments.game,
        signals=config.method == "exact" and not arguments.states,
        **arguments.given("seed", "memory_limit"),
        progress=True,
        executor=arguments.executor(),
    )
    if arguments.checkpoint is not None:
        if opponent.abrupt is None:
            raise ValueError(
                f"--checkpoint {arguments.checkpoint} is for exact responses on abrupt "
                f"hidden boards, which take minutes; leave it out"
            )
        opponent.abrupt.checkpoint = Checkpoint(arguments.checkpoint)
    form = _form(opponent, arguments.states)
    if form == "states" and opponent.too_large is not None:
        print(f"searching on states: {one_line(opponent.too_large)}", file=sys.stderr)
    if form == "states" and arguments.method is None:
        config = dataclasses.replace(config, method="ismcts")
    values = [
        respond(
            opponent,
            player,
            config,
            states=arguments.states,
            executor=arguments.executor(),
        )
        for player in players
    ]
    report = {
        **from_same_deals(values).report(),
        **arguments.given("game", "policy"),
        "method": config.method,
        "form": form,
        "unvisited_share": None,
    }
    _print(report, values)
    policy = opponent.policy
    if isinstance(policy, TablePolicy) and policy.asked:
        report["unvisited_share"] = share = policy.unmet / policy.asked
        of = "infosets" if form == "tree" else "times that it was asked"
        print(
            f"  the policy is uniform at infosets without visits: {share:.1%} of "
            f"{policy.asked:,} {of}"
        )
    return report


def _form(opponent: Opponent, states: bool) -> str:
    """On which form of the game responses are found."""
    if states:
        return "states"
    if opponent.tree is not None:
        return "tree"
    if opponent.abrupt is not None:
        return "phantom"
    if opponent.form is None:
        return "states"
    return "phantom" if isinstance(opponent.policy, PhantomPolicy) else "public-tree"


def _config(arguments: Arguments) -> ResponseConfig:
    """How the response is found; exactly where no method is chosen."""
    check_seed(arguments.seed)
    search = SearchConfig(
        **arguments.given("simulations", "learn", "exploration", "histories")
    )
    method = "exact" if arguments.method is None else arguments.method
    if arguments.learn and method != "ismcts":
        raise ValueError(
            f"--learn {arguments.learn} is for --method ismcts, not {method}; leave it "
            f"out, or choose ismcts"
        )
    names = ("leaf", "rollouts", "rounds", "max_histories", "particles")
    return ResponseConfig(
        method, search, **arguments.given(*names, "matches", "luck_rollouts", "seed")
    )


def _print(report: dict[str, Any], values: list[ResponseValue]) -> None:
    game, policy = one_line(report["game"]), one_line(report["policy"])
    print(f"{game}: {report['method']} against {policy}")
    if report["method"] == "exact":
        forms = {"public-tree": "public-tree form", "phantom": "phantom form"}
        where = forms.get(report["form"], "game tree")
        print(f"  exact, by a best response on the {where}")
    for seat in values:
        how = "exact" if seat.is_exact else "mean of matches"
        subject, known = "the response", ""
        if report["method"] == "exact":
            subject = "a best opponent"
        elif seat.exact_value is not None:
            known = f"; a best one {seat.exact_value:+.6f}"
        where = f"in seat {seat.player} {subject} wins"
        print(f"  {where} {seat.value:+.6f} a match ({how}){known}")
        if seat.matches:
            number = counted(seat.matches, "match", "matches")
            plain = seat.plain_half_width
            noise = "" if plain is None else f" (plain returns ± {plain:.4f})"
            print(f"              {number} ± {seat.half_width:.4f}{noise}")
        if seat.beliefs is not None:
            print(f"              {_beliefs(seat.beliefs)}")
    print(f"  {_total(report)}")
    number = report["simulations"]
    done = f"{counted(number, 'simulation')} in " if number else ""
    print(f"  {done}{report['seconds']:.2f} s")


def _total(report: dict[str, Any]) -> str:
    """What the response gets, and what a best one would."""
    estimated = not report["is_exact"]
    name = "NashConv" if len(report["players"]) == 2 else "value"
    if report["method"] == "exact" and not estimated:
        half = report["value"] / 2
        known = f" (exploitability {half:.6f})" if name == "NashConv" else ""
        return f"{name}  {report['value']:.6f}, exact{known}"
    name += ": at least about" if estimated else " at least"
    value = f"{report['value']:.6f}"
    if estimated:
        value += f" ± {report['half_width']:.6f}"
    known = ""
    if report["exact_value"] is not None:
        known = f", exact {report['exact_value']:.6f}"
    if report["share"] is not None:
        spread = f" ± {report['share_half_width']:.2%}" if estimated else ""
        known += f", {report['share']:.2%}{spread} of what can be gained"
    return f"{name}  {value}{known}"


def _beliefs(beliefs: BeliefRecord) -> str:
    """What the beliefs of a seat were like."""
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
        text += f"; none found at {beliefs.empty:,}, a random move there"
    return text
