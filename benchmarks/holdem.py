"""Searched and local best responses in limit hold'em, which is too large to compile.

Run `python -m benchmarks.holdem --help`. Every match is a line of JSON as soon as it is
over; a run that was stopped goes on from there.

Rewards of matches vary by some 50 chips, those of good responders differ by a few. So
the tables report not what the cards made of a match, but an estimate with the same
expectation and a tenth of the spread; see `holdem_judge.py`.
"""

import argparse
import functools
import itertools
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from spiel_cr.eval.common.json_log import JsonLog
from spiel_cr.eval.common.statistics import mean_and_half_width
from spiel_cr.eval.players import match as matches
from tqdm import tqdm

from benchmarks.document import grid, interval, table
from benchmarks.frame import Parser, Row, facts
from benchmarks.holdem_judge import Judge
from spiel_cr.common.memory import peak_bytes
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.opponent_strings import load_opponent
from spiel_cr.responses import opponents
from spiel_cr.responses.ismcts_br_bot import ISMCTSBRBot
from spiel_cr.responses.ismcts_config import BACKUPS, SearchConfig
from spiel_cr.responses.local_best_response import LBRBot
from spiel_cr.responses.state_posterior import StatePosterior
from spiel_cr.responses.state_responder import StateResponder

# As in Timbers et al. 2022, but for bettingAbstraction: their "full" is not accepted,
# and "fullgame" gives wrong legal actions where betting=limit. With "fcpa" the actions
# of a limit game are fold, call and the one bet of the round: the full game.
HOLDEM = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=10 5,firstPlayer=2 1,"
    "numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,raiseSize=10 10 20 20,"
    "maxRaises=3 4 4 4,bettingAbstraction=fcpa)"
)
RESPONDERS = ("ismcts", "lbr")

_BIG_BLIND = 10


class _Key(NamedTuple):
    """What tells matches apart."""

    opponent: str
    responder: str
    deal: int
    seat: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays what is not in the folder yet, and prints tables."""
    options = _parser().parse_args(arguments)
    names = "simulations", "rollouts", "rollout", "backup", "exploration", "seed"
    settings = {"game": HOLDEM, **{name: vars(options)[name] for name in names}}
    plan = [
        _Key(opponent, responder, deal, seat)
        for deal, opponent, responder, seat in itertools.product(
            range(options.deals), options.opponents, RESPONDERS, (0, 1)
        )
    ]
    try:
        log = JsonLog(
            options.out,
            "matches",
            settings,
            key=_Key._fields,
            facts=facts(),
            what="match",
        )
    except ValueError as error:
        raise SystemExit(f"--out: {error}") from None
    with log:
        left = [key for key in plan if key not in log.records]
        done, table = len(plan) - len(left), _Table(options)
        for key in tqdm(left, total=len(plan), initial=done, unit="match"):
            log.add(table.play(key))
        print(_tables([log.records[key] for key in plan]))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="python -m benchmarks.holdem",
        description="Measure best responses in limit hold'em: mean reward with 95 % "
        "intervals against fixed opponents, on equal cards, seats swapped.",
    )
    parser.number("--deals", 100, "of each responder and opponent; two matches each")
    parser.number("--simulations", 1000, "of ISMCTS-BR, per decision")
    parser.number(
        "--rollouts",
        1000,
        "of LBR, per decision; each plays out every action, of which there are at most "
        "three",
    )
    parser.add_argument(
        "--rollout",
        choices=["random", *opponents.CHUMPS],
        default="always_raise",
        help="how ISMCTS-BR itself plays in rollouts (default always_raise)",
    )
    parser.add_argument(
        "--backup",
        choices=BACKUPS,
        default="chosen",
        help="what ISMCTS-BR takes an action to be worth (default chosen)",
    )
    parser.number("--exploration", 1.0, "of PUCT")
    parser.add_argument(
        "--opponents",
        nargs="+",
        default=["uniform", *opponents.CHUMPS],
        metavar="OPPONENT",
        help="uniform and chumps (default all)",
    )
    parser.number("--seed", 0, "of everything", least=0)
    parser.add_argument(
        "--out",
        default="out/benchmarks/holdem",
        help="folder of the run, which goes on where it stopped (default %(default)s)",
    )
    return parser


class _Table:
    """Plays matches; each bot and judge is made once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._game = pyspiel.load_game(HOLDEM)
        self._bot = functools.cache(self._make_bot)
        self._judge = functools.cache(self._make_judge)

    def play(self, key: _Key) -> Row:
        """A match; all responders and opponents get the same cards in a deal."""
        seat, seed = key.seat, self._options.seed
        bot = self._bot(key.opponent, key.responder, seat)
        judge = self._judge(key.opponent, seat)
        players: list[pyspiel.Bot] = [bot, bot]
        policy = load_opponent(key.opponent, self._game)
        players[1 - seat] = PolicyBot(1 - seat, policy)
        chance, draws = (
            np.random.default_rng([seed, key.deal, stream]) for stream in (0, 1)
        )
        before = bot.simulations
        expected = judge.start()

        def add(state: pyspiel.State, player: int, action: int) -> None:
            nonlocal expected
            if player == seat:
                expected += judge.advantage(state, action)

        match = matches.play_match(
            self._game, players, draws, chance=chance, observers=[add]
        )
        return {
            **key._asdict(),
            "return": match.returns[seat],
            "expected": round(expected, 6),
            "moves": len(match.seconds[seat]),
            "thinking": round(sum(match.seconds[seat]), 6),
            "rollouts": bot.simulations - before,
            "nodes": bot.num_nodes,
            "histories": len(bot.belief.states),
            "peak_mib": round(peak_bytes() / 2**20, 1),
        }

    def _make_judge(self, opponent: str, seat: int) -> Judge:
        policy = load_opponent(opponent, self._game)
        return Judge(self._game, policy, seat, seed=self._options.seed)

    def _make_bot(self, opponent: str, responder: str, seat: int) -> StateResponder:
        game, options = self._game, self._options
        policy = load_opponent(opponent, game)
        belief = StatePosterior(game, seat, policy, compare="always", open_moves=True)
        if responder == "lbr":
            return LBRBot(
                game,
                seat,
                policy,
                rollouts=options.rollouts,
                seed=options.seed,
                belief=belief,
            )
        rollout = options.rollout
        return ISMCTSBRBot(
            game,
            seat,
            policy,
            SearchConfig(
                options.simulations,
                exploration=options.exploration,
                backup=options.backup,
            ),
            seed=options.seed,
            rollout=None if rollout == "random" else opponents.chump(game, rollout),
            belief=belief,
        )


def _tables(rows: Sequence[Row]) -> str:
    """Mean rewards, and what they took."""
    deals = 1 + max(row["deal"] for row in rows)
    body = []
    for name in dict.fromkeys(row["opponent"] for row in rows):
        means = {
            (responder, kind): _by_deal(rows, name, responder, kind)
            for responder in RESPONDERS
            for kind in ("expected", "return")
        }
        first, second = (means[responder, "expected"] for responder in RESPONDERS)
        got = [means[responder, "return"] for responder in RESPONDERS]
        columns = (first, second, first - second, got[0] - got[1])
        body.append(
            [f"`{name}`", *(interval(*mean_and_half_width(c)) for c in columns)]
        )
    rewards = grid(["opponent", "ISMCTS-BR", "LBR", "difference", "of returns"], body)
    took = table(
        [_effort(rows, responder) for responder in RESPONDERS],
        {
            "responder": "{responder}",
            "moves": "{moves}",
            "ms per move": "{ms:.0f}",
            "rollouts/s": "{rate:.0f}",
            "most nodes": "{nodes}",
            "MiB": "{peak_mib:.0f}",
        },
    )
    return (
        f"Expected reward of a match in chips (the big blind is {_BIG_BLIND}), ± half "
        f"of a 95 % interval over {deals} deals; seats swapped, {2 * deals} matches "
        f"each; differences are taken deal by deal, the last one between plain returns."
        f"\n\n{rewards}\n{took}"
    )


def _by_deal(
    rows: Sequence[Row], opponent: str, responder: str, kind: str
) -> np.ndarray:
    """float64 [deals], the mean of both seats."""
    values = {
        (row["deal"], row["seat"]): row[kind]
        for row in rows
        if (row["opponent"], row["responder"]) == (opponent, responder)
    }
    ordered = [value for _, value in sorted(values.items())]
    return np.array(ordered).reshape(-1, 2).mean(axis=1)


def _effort(rows: Sequence[Row], responder: str) -> Row:
    """What all matches of a responder took."""
    mine = [row for row in rows if row["responder"] == responder]
    total = {k: sum(row[k] for row in mine) for k in ("thinking", "moves", "rollouts")}
    return {
        "responder": responder,
        "moves": total["moves"],
        "ms": 1000 * total["thinking"] / max(total["moves"], 1),
        "rate": total["rollouts"] / max(total["thinking"], 1e-9),
        **{most: max(row[most] for row in mine) for most in ("nodes", "peak_mib")},
    }


if __name__ == "__main__":
    sys.exit(main())
