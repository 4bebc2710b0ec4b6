"""The command `best-response`: how much can be won against a policy.

policies:
  uniform; {chumps} (poker);
  an algorithm's average strategy: cfr+(iterations=10), lp;
  PATH.npz of --save; a bot: resolving(iterations=100)

methods (default: exact where it can be had, else ismcts):
  exact   best response on the compiled game; to a policy that was solved with --form
          signals, on the signal form: nothing is compiled
  ismcts  ISMCTS-BR (Timbers et al. 2022): search from the responder's belief
  lbr     local best response (Lisy & Bowling 2017): one action ahead
  learned ISMCTS-BR with a network trained on --rounds of searched episodes; needs
          pip install 'spiel_cr[deep]', and a game with information state tensors
  flat    rollouts side by side on a game's rules on arrays, from particles, each of
          which counts for all own actions in it; against uniform play, on states

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

import argparse
import dataclasses
import sys
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import memory
from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_seed
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.compilation import vectorised
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.players import opponent_strings
from spiel_cr.policies import conversions
from spiel_cr.responses import opponents
from spiel_cr.responses.ismcts_config import HISTORIES, POSTERIORS, SearchConfig
from spiel_cr.responses.local_best_response import LEAVES
from spiel_cr.responses.state_responder import BeliefRecord
from spiel_cr.signals import footprint
from spiel_cr.signals.policy import SignalPolicy
from spiel_cr.solving.policy_files import load_policy
from spiel_cr.uncompiled.policy import TablePolicy

from ..common.plurals import counted
from ..players.approximate_nash_conv import (
    METHODS,
    Known,
    ResponseConfig,
    on_signals,
    on_states,
    on_tree,
    opponent_behaviour,
)
from ..players.response_seats import Seat, summary
from .command import Commands, add_command, given, option

# Strategies, reach and responses: float64 vectors over sequences, at the peak, besides
# what solving in float32 takes. Fitted to Rhode Island Hold'em, 1.38 GB.
_VECTORS = 6

# In each seat.
_MATCHES = 1000


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "find a response to a policy: a lower bound on its exploitability"
    chumps = ", ".join(opponents.CHUMPS)
    parser = add_command(
        commands, "best-response", _best_response, text, __doc__, chumps=chumps
    )
    option(parser, "--game")
    option(parser, "--policy", "the opponent, see below", metavar="PATH|NAME")
    text = "how the response is found"
    option(parser, "--method", text, choices=METHODS)
    text = "seat of the response"
    option(parser, "--player", text, "both", choices=("0", "1", "both"))
    default, config = SearchConfig(), ResponseConfig()
    text = "from each information state that is searched"
    option(parser, "--simulations", text, default.simulations, metavar="N")
    option(
        parser,
        "--learn",
        "of ismcts on compiled games: before, N simulations from every information "
        "state, from the last to the first",
        default.learn,
        metavar="N",
    )
    text = "of PUCT, in half ranges of the utilities"
    option(parser, "--exploration", text, default.exploration, metavar="C")
    text = "uniform: all consistent histories alike, to show why not"
    option(parser, "--posterior", text, default.posterior, choices=POSTERIORS)
    text = (
        "of ismcts on states: follow whole beliefs where these are small, or histories "
        "drawn one by one"
    )
    option(parser, "--histories", text, default.histories, choices=HISTORIES)
    text = "default play of lbr (default: call in poker, else uniform)"
    option(parser, "--leaf", text, choices=LEAVES)
    text = "of lbr, per decision, where the game is not compiled"
    option(parser, "--rollouts", text, 1000, metavar="N")
    text = "of learned: episodes, then training"
    option(parser, "--rounds", text, 20, metavar="N")
    text = f"in each seat, to estimate the value (default: {_MATCHES} where needed)"
    option(parser, "--matches", text, metavar="N")
    text = "of exact beliefs on states"
    option(parser, "--max-histories", text, config.max_histories, metavar="N")
    text = "of larger beliefs"
    option(parser, "--particles", text, config.particles, metavar="N")
    text = (
        "after each move of chance and the opponent, for the control variate; 0: none"
    )
    option(parser, "--luck-rollouts", text, config.luck_rollouts, metavar="N")
    option(parser, "--memory-limit", "compile the game if it needs no more", "4GB")
    text = "search on states though it would fit"
    option(parser, "--states", text, action="store_true")
    option(parser, "--seed")


def _best_response(arguments: argparse.Namespace) -> dict[str, object]:
    config = _config(arguments)
    if arguments.states and arguments.method == "exact":
        raise ValueError(
            "--method exact needs the compiled game; leave --states out, or choose "
            "ismcts, lbr, learned or flat"
        )
    players = [0, 1] if arguments.player == "both" else [int(arguments.player)]
    opponent_strings.check_opponent(arguments.policy, arguments.game)
    if config.method == "flat":
        _check_flat(arguments)
    announce(f"looking at {arguments.game}")
    path = None
    if config.method == "exact" and not arguments.states:
        path = opponent_strings.signal_file(arguments.policy)
    flat = config.method == "flat"
    tree = None if path or flat else _compile(arguments)
    opponent: openspiel_policy.Policy | None = None
    if path:
        form, seats = "signals", _on_signals(arguments, path, players, config)
    elif tree is None or arguments.states:
        form = "states"
        if arguments.method is None:
            config = dataclasses.replace(config, method="ismcts")
        opponent, seats = _on_states(arguments, players, config, tree)
    else:
        form = "compiled"
        opponent, seats = _on_tree(arguments, players, config, tree)
    report = {
        **given(arguments, "game", "policy"),
        "method": config.method,
        "form": form,
        "compiled": form == "compiled",
        **summary(seats),
        "unmet_share": None,
    }
    _print(report, seats)
    if isinstance(opponent, TablePolicy) and opponent.asked:
        report["unmet_share"] = share = opponent.unmet / opponent.asked
        of = "infosets" if form == "compiled" else "times that it was asked"
        print(
            f"  the policy is uniform at infosets that it never met: {share:.1%} of "
            f"{opponent.asked:,} {of}"
        )
    return report


def _check_flat(arguments: argparse.Namespace) -> None:
    """Raises ValueError where rollouts on arrays cannot play."""
    if arguments.policy.strip() != "uniform":
        raise ValueError(
            f"--method flat plays against --policy uniform only, not "
            f"{arguments.policy}; choose ismcts"
        )
    game = load_game(arguments.game)
    if vectorised.of_game(game) is None:
        raise ValueError(
            f"--method flat needs rules on arrays, and {game} has none (see "
            f"docs/vectorised-games.md); choose ismcts"
        )


def _config(arguments: argparse.Namespace) -> ResponseConfig:
    """How the response is found; exactly where no method is chosen."""
    check_seed(arguments.seed)
    search = SearchConfig(
        **given(
            arguments, "simulations", "learn", "exploration", "posterior", "histories"
        )
    )
    method = "exact" if arguments.method is None else arguments.method
    if arguments.learn and method != "ismcts":
        raise ValueError(
            f"--learn {arguments.learn} is for --method ismcts, not {method}; leave it "
            f"out, or choose ismcts"
        )
    names = ("leaf", "rollouts", "rounds", "max_histories", "particles")
    return ResponseConfig(
        method,
        search,
        matches=_MATCHES if arguments.matches is None else arguments.matches,
        always_play=arguments.matches is not None,
        **given(arguments, *names, "luck_rollouts", "seed"),
    )


def _on_tree(
    arguments: argparse.Namespace,
    players: list[int],
    config: ResponseConfig,
    tree: CompiledGame,
) -> tuple[openspiel_policy.Policy | None, list[Seat]]:
    """Responses on the compiled game; the policy of a file, asked at each infoset."""
    opponent = None
    announce(f"taking the policy {arguments.policy}")
    if arguments.policy.strip().endswith(".npz"):
        opponent = opponent_strings.load_opponent(arguments.policy, tree)
        behaviour = conversions.behaviour_from_policy(tree, opponent)
    else:
        behaviour = opponent_behaviour(tree, arguments.policy, seed=arguments.seed)
    rivals = [_rival(arguments, tree, player) for player in players]
    return opponent, [
        on_tree(tree, player, behaviour, config, rival=rival)
        for player, rival in zip(players, rivals, strict=True)
    ]


def _rival(
    arguments: argparse.Namespace, game: Game, player: int
) -> pyspiel.Bot | None:
    """The bot itself where its policy is estimated, with a seed of its own."""
    # Another one than the estimate's: what that happened to draw is not its style.
    # Each seat has its own, so that no match draws as another match of the other seat.
    mixed = np.random.SeedSequence([arguments.seed, 2, player]).generate_state(1)
    seed = int(mixed[0] >> 1)
    return opponent_strings.load_rival(arguments.policy, game, 1 - player, seed=seed)


def _compile(arguments: argparse.Namespace) -> CompiledGame | None:
    """The compiled game, or None where it does not fit."""
    game, limit = load_game(arguments.game), arguments.memory_limit
    try:
        return as_compiled(game, observations=True, memory_limit=limit, progress=True)
    except GameTooLargeError as error:
        print(f"searching on states: {error}", file=sys.stderr)
        return None


def _on_signals(
    arguments: argparse.Namespace,
    path: str,
    players: list[int],
    config: ResponseConfig,
) -> list[Seat]:
    """Best responses to a policy of a signal game, by its file."""
    announce(f"taking the policy {path}")
    policy = load_policy(path, arguments.game)
    assert isinstance(policy, SignalPolicy)
    need = footprint.peak_bytes(policy.signals, np.float32)
    sizes = [footprint.size_of(policy.signals, player) for player in range(2)]
    need += 8 * _VECTORS * sum(size.sequences for size in sizes)
    what = f"a best response on {policy.game} in the form of signals"
    remedy = "choose ismcts, lbr or learned"
    memory.check_need(what, need, arguments.memory_limit, remedy)
    return on_signals(policy, players, config)


def _on_states(
    arguments: argparse.Namespace,
    players: list[int],
    config: ResponseConfig,
    tree: CompiledGame | None,
) -> tuple[openspiel_policy.Policy, list[Seat]]:
    """Searches in matches; where the game fits, best responses are known."""
    game = load_game(arguments.game)
    known = game if tree is None else tree
    announce(f"taking the policy {arguments.policy}")
    opponent = opponent_strings.load_opponent(
        arguments.policy, known, **given(arguments, "seed", "memory_limit")
    )
    rivals = {player: _rival(arguments, known, player) for player in players}
    judged = None
    if tree is not None and not any(rivals.values()):
        judged = Known(tree, conversions.behaviour_from_policy(tree, opponent))
    return opponent, [
        on_states(game, p, opponent, config, rival=rivals[p], known=judged)
        for p in players
    ]


def _print(report: dict[str, Any], seats: list[Seat]) -> None:
    print(f"{report['game']}: {report['method']} against {report['policy']}")
    if report["method"] == "exact":
        where = "signal form" if report["form"] == "signals" else "compiled game"
        print(f"  exact, by a best response on the {where}")
    for seat in seats:
        how = "exact value" if seat.is_exact else "mean of matches"
        known = "" if seat.exact_value is None else f", best {seat.exact_value:+.6f}"
        print(f"  player {seat.player}    {seat.value:+.6f} ({how}){known}")
        if len(seat.returns):
            number = counted(len(seat.returns), "match", "matches")
            mean, half = seat.matches_value, seat.matches_half_width
            plain = seat.plain_half_width
            noise = "" if plain is None else f" (plain returns ± {plain:.4f})"
            print(f"              {number} {mean:+.4f} ± {half:.4f}{noise}")
        if seat.beliefs is not None:
            print(f"              {_beliefs(seat.beliefs)}")
    print(f"  {_total(report)}")
    print(
        f"  {counted(report['simulations'], 'simulation')} in {report['seconds']:.2f} s"
    )


def _total(report: dict[str, Any]) -> str:
    """What the response gets, and what a best one would."""
    estimated = not report["judged_exactly"]
    name = "NashConv" if len(report["seats"]) == 2 else "value"
    if report["method"] == "exact" and not estimated:
        return f"{name}  {report['value']:.6f}, exact"
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
