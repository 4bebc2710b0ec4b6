"""The command `best-response`: how much can be won against a policy."""

import argparse
import sys
from typing import Any

import numpy as np
import pyspiel

import spiel_cr
from spiel_cr.common.checks import check_seed
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.players import opponent_strings
from spiel_cr.policies import conversions
from spiel_cr.responses import ismcts_config, opponents
from spiel_cr.responses.local_best_response import LEAVES

from ..players import approximate_nash_conv
from .command import Commands, add_command

_EPILOG = f"""policies:
  uniform; {", ".join(opponents.CHUMPS)} (poker);
  an algorithm's average strategy: cfr+(iterations=10), lp;
  PATH.npz of --save; a bot: resolving(iterations=100)

methods:
  exact   best response on the compiled game
  ismcts  ISMCTS-BR (Timbers et al. 2022): search from the exact belief
  lbr     local best response (Lisy & Bowling 2017): one action ahead
  learned ISMCTS-BR with a network trained on --rounds of searched episodes; needs
          pip install spiel_cr[deep], and a game with information state tensors

The game is compiled if it fits into --memory-limit; then the response is a fixed
strategy, --simulations are run from each information state that it comes to, and its
value is exact. Otherwise the response searches in each of --matches matches, and the
value is their mean. So it is for bots that do not always play alike (with a clock, or
sampling): their policy is estimated, the matches are against the bot itself.

With both seats (the default) value is the sum, a lower bound of NashConv where it is
exact; a mean of matches is one up to half_width, half of its 95 % interval. share is
the gain over the policy itself, as a share of the exact best response's.

examples:
  spiel-cr best-response --game leduc_poker --policy 'cfr+(iterations=10)' \\
    --method ismcts --simulations 10000
  spiel-cr best-response --game kuhn_poker --policy out/kuhn.npz --method exact"""


def add_commands(commands: Commands) -> None:
    """Adds the command of this file."""
    text = "find a response to a policy: a lower bound on its exploitability"
    parser = add_command(commands, "best-response", _best_response, text)
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--game", required=True, help="OpenSpiel game string")
    parser.add_argument(
        "--policy", required=True, metavar="PATH|NAME", help="the opponent, see below"
    )
    parser.add_argument(
        "--method",
        choices=approximate_nash_conv.METHODS,
        default="ismcts",
        help="how the response is found (default %(default)s)",
    )
    parser.add_argument(
        "--player",
        choices=("0", "1", "both"),
        default="both",
        help="seat of the response (default %(default)s)",
    )
    default = ismcts_config.SearchConfig()
    parser.add_argument(
        "--simulations",
        type=int,
        default=default.simulations,
        help="from each information state that is searched (default %(default)s)",
    )
    parser.add_argument(
        "--learn",
        type=int,
        default=default.learn,
        metavar="N",
        help="of ismcts on compiled games: before, N simulations from every "
        "information state, from the last to the first (default %(default)s)",
    )
    parser.add_argument(
        "--exploration",
        type=float,
        default=default.exploration,
        help="c of PUCT, in half ranges of the utilities (default %(default)s)",
    )
    parser.add_argument(
        "--posterior",
        choices=ismcts_config.POSTERIORS,
        default=default.posterior,
        help="uniform: all consistent histories alike, to show why not "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--leaf",
        choices=LEAVES,
        help="default play of lbr (default: call in poker, else uniform)",
    )
    parser.add_argument(
        "--rollouts",
        type=int,
        default=1000,
        help="of lbr, a decision, where the game is not compiled (default %(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=20,
        help="of learned: episodes, then training (default %(default)s)",
    )
    parser.add_argument(
        "--matches",
        type=int,
        default=1000,
        help="in each seat, to estimate the value (default %(default)s)",
    )
    parser.add_argument(
        "--memory-limit",
        metavar="SIZE",
        default="4GB",
        help="compile the game if it needs no more (default %(default)s)",
    )
    parser.add_argument(
        "--states", action="store_true", help="search on states though it would fit"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of all draws (default %(default)s)"
    )


def _best_response(arguments: argparse.Namespace) -> dict[str, object]:
    check_seed(arguments.seed)
    config = ismcts_config.SearchConfig(
        simulations=arguments.simulations,
        learn=arguments.learn,
        exploration=arguments.exploration,
        posterior=arguments.posterior,
    )
    if arguments.learn and arguments.method != "ismcts":
        raise ValueError(
            f"--learn {arguments.learn} is for --method ismcts, not {arguments.method}"
        )
    players = [0, 1] if arguments.player == "both" else [int(arguments.player)]
    tree = _compile(arguments)
    if tree is None or arguments.states:
        seats = _on_states(arguments, players, config, tree)
    else:
        behaviour = approximate_nash_conv.opponent_behaviour(
            tree, arguments.policy, seed=arguments.seed
        )
        seats = [
            approximate_nash_conv.on_tree(
                tree, player, behaviour, arguments.method, config,
                leaf=arguments.leaf, rounds=arguments.rounds,
                matches=arguments.matches, seed=arguments.seed,
                rival=_rival(arguments, tree, player),
            )
            for player in players
        ]  # fmt: skip
    report: dict[str, object] = {
        "game": arguments.game,
        "policy": arguments.policy,
        "method": arguments.method,
        "compiled": tree is not None and not arguments.states,
        **approximate_nash_conv.summary(seats),
    }
    _print(report, seats)
    return report


def _rival(
    arguments: argparse.Namespace, game: Game, player: int
) -> pyspiel.Bot | None:
    """The bot itself where its policy is estimated, with a seed of its own."""
    # Another one than the estimate's: what that happened to draw is not its style.
    seed = int(np.random.SeedSequence([arguments.seed, 2]).generate_state(1)[0] >> 1)
    return opponent_strings.load_rival(arguments.policy, game, 1 - player, seed=seed)


def _compile(arguments: argparse.Namespace) -> spiel_cr.CompiledGame | None:
    """The compiled game, or None where it does not fit."""
    game = spiel_cr.load_game(arguments.game)
    try:
        return as_compiled(game, observations=True, memory_limit=arguments.memory_limit)
    except ValueError as error:
        if "memory_limit" not in str(error):
            raise
        print(f"searching on states: {error}", file=sys.stderr)
        return None


def _on_states(
    arguments: argparse.Namespace,
    players: list[int],
    config: ismcts_config.SearchConfig,
    tree: spiel_cr.CompiledGame | None,
) -> list[approximate_nash_conv.Seat]:
    """Searches in matches; where the game fits, best responses are known."""
    game = spiel_cr.load_game(arguments.game)
    opponent = opponent_strings.load_opponent(
        arguments.policy,
        game if tree is None else tree,
        seed=arguments.seed,
        memory_limit=arguments.memory_limit,
    )
    rivals = {p: _rival(arguments, game if tree is None else tree, p) for p in players}
    seats = [
        approximate_nash_conv.on_states(
            game, player, opponent, arguments.method, config, leaf=arguments.leaf,
            rollouts=arguments.rollouts, rounds=arguments.rounds,
            matches=arguments.matches, rival=rivals[player], seed=arguments.seed,
        )
        for player in players
    ]  # fmt: skip
    if tree is None or any(rivals.values()):
        return seats
    behaviour = conversions.behaviour_from_policy(tree, opponent)
    found = []
    for seat in seats:
        known = approximate_nash_conv.exact(tree, seat.player, behaviour)
        found.append(
            seat._replace(
                exact_value=known["exact_value"], on_policy=known["on_policy"]
            )
        )
    return found


def _print(report: dict[str, Any], seats: list[approximate_nash_conv.Seat]) -> None:
    print(f"{report['game']}: {report['method']} against {report['policy']}")
    estimated = False
    for seat in seats:
        by_matches = seat.value == seat.matches_value
        estimated |= by_matches
        how = "mean of matches" if by_matches else "exact value"
        known = "" if seat.exact_value is None else f", best {seat.exact_value:+.6f}"
        measured = f"{seat.matches_value:+.4f} ± {seat.half_width:.4f}"
        print(f"  player {seat.player}    {seat.value:+.6f} ({how}){known}")
        print(f"              {seat.matches:,} matches {measured}")
    name = "NashConv" if len(seats) == 2 else "value"
    name += ": at least about" if estimated else " at least"
    value = f"{report['value']:.6f}"
    if estimated:
        value += f" ± {report['half_width']:.6f}"
    known = ""
    if report["exact_value"] is not None:
        known = f", exact {report['exact_value']:.6f}"
    if report["share"] is not None:
        known += f", {report['share']:.2%} of what can be gained"
    print(f"  {name}  {value}{known}")
    print(f"  {report['simulations']:,} simulations in {report['seconds']:.2f} s")
