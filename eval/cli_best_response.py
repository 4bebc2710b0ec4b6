"""The command `best-response`: how much can be won against a policy."""

import argparse
import sys
from typing import Any

import spiel_cr
from eval import approximate
from eval.command import Commands, add_command
from spiel_cr import lbr, opponents, search_config, solving

__all__ = ["add_commands"]

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
value is their mean.

With both seats (the default) value is the sum, a lower bound of NashConv up to
half_width, half of the 95 % interval of matches_value. share is the gain over the
policy itself, as a share of the exact best response's.

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
        choices=approximate.METHODS,
        default="ismcts",
        help="how the response is found (default %(default)s)",
    )
    parser.add_argument(
        "--player",
        choices=("0", "1", "both"),
        default="both",
        help="seat of the response (default %(default)s)",
    )
    default = search_config.SearchConfig()
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
        choices=search_config.POSTERIORS,
        default=default.posterior,
        help="uniform: all consistent histories alike, to show why not "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--leaf",
        choices=lbr.LEAVES,
        default="uniform",
        help="default play of lbr; call is for poker (default %(default)s)",
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
    solving.check_seed(arguments.seed)
    config = search_config.SearchConfig(
        simulations=arguments.simulations,
        learn=arguments.learn,
        exploration=arguments.exploration,
        posterior=arguments.posterior,
    )
    players = [0, 1] if arguments.player == "both" else [int(arguments.player)]
    tree = None if arguments.states else _compile(arguments)
    if tree is None:
        seats = _on_states(arguments, players, config)
    else:
        behaviour = approximate.opponent_behaviour(
            tree, arguments.policy, seed=arguments.seed
        )
        seats = [
            approximate.on_tree(
                tree, player, behaviour, arguments.method, config,
                leaf=arguments.leaf, rounds=arguments.rounds,
                matches=arguments.matches, seed=arguments.seed,
            )
            for player in players
        ]  # fmt: skip
    report: dict[str, object] = {
        "game": arguments.game,
        "policy": arguments.policy,
        "method": arguments.method,
        "compiled": tree is not None,
        **approximate.summary(seats),
    }
    _print(report, seats)
    return report


def _compile(arguments: argparse.Namespace) -> spiel_cr.CompiledGame | None:
    """The compiled game, or None where it does not fit."""
    game = spiel_cr.load_game(arguments.game)
    try:
        return solving.as_compiled(
            game, observed=True, memory_limit=arguments.memory_limit
        )
    except ValueError as error:
        if "memory_limit" not in str(error):
            raise
        print(f"searching on states: {error}", file=sys.stderr)
        return None


def _on_states(
    arguments: argparse.Namespace,
    players: list[int],
    config: search_config.SearchConfig,
) -> list[approximate.Seat]:
    game = spiel_cr.load_game(arguments.game)
    opponent = opponents.load_opponent(arguments.policy, game, seed=arguments.seed)
    return [
        approximate.on_states(
            game, player, opponent, arguments.method, config, leaf=arguments.leaf,
            rollouts=arguments.rollouts, rounds=arguments.rounds,
            matches=arguments.matches, seed=arguments.seed,
        )
        for player in players
    ]  # fmt: skip


def _print(report: dict[str, Any], seats: list[approximate.Seat]) -> None:
    how = "exact value" if report["compiled"] else "mean of matches"
    print(f"{report['game']}: {report['method']} against {report['policy']}")
    for seat in seats:
        known = "" if seat.exact_value is None else f", best {seat.exact_value:+.6f}"
        measured = f"{seat.matches_value:+.4f} ± {seat.half_width:.4f}"
        print(f"  player {seat.player}    {seat.value:+.6f} ({how}){known}")
        print(f"              {seat.matches:,} matches {measured}")
    name = "NashConv at least" if len(seats) == 2 else "value at least"
    known = ""
    if report["exact_value"] is not None:
        known = f", exact {report['exact_value']:.6f}"
    if report["share"] is not None:
        known += f", {report['share']:.2%} of what can be gained"
    print(f"  {name}  {report['value']:.6f}{known}")
    print(f"  {report['simulations']:,} simulations in {report['seconds']:.2f} s")
