"""Best responses in limit hold'em, searched, local and learned; it is not compiled.

Run `python -m benchmarks.holdem --help`. Every match is a line of JSON as soon as it is
over; a run that was stopped goes on from there.

Rewards of matches vary by some 50 chips, those of good responders differ by a few. So
the tables report not what the cards made of a match, but an estimate with the same
expectation and a tenth of the spread; see `holdem_judge.py`.
"""

import argparse
import functools
import itertools
import pathlib
import sys
import time
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pyspiel
from tqdm import tqdm

from benchmarks.document import interval, table
from benchmarks.frame import Parser, Row, facts, group_by
from benchmarks.holdem_judge import Judge
from spiel_cr.common.memory import peak_bytes
from spiel_cr.deep.policy import load_deep_policy, save_deep_policy
from spiel_cr.eval.common.json_log import JsonLog
from spiel_cr.eval.common.statistics import mean_and_half_width
from spiel_cr.eval.players import match as matches
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.opponent_strings import load_opponent
from spiel_cr.responses import opponents
from spiel_cr.responses.ismcts_br_bot import ISMCTSBRBot
from spiel_cr.responses.ismcts_config import BACKUPS, SearchConfig
from spiel_cr.responses.local_best_response import LEAVES, LBRBot
from spiel_cr.responses.state_posterior import StatePosterior
from spiel_cr.responses.state_responder import StateResponder
from spiel_cr.root_responses import setting as settings_of
from spiel_cr.root_responses.backward import BackwardResponder
from spiel_cr.root_responses.gradient import GradientResponder, LikeliestPolicy

# As in Timbers et al. 2022, but for bettingAbstraction: their "full" is not accepted,
# and "fullgame" gives wrong legal actions where betting=limit. With "fcpa" the actions
# of a limit game are fold, call and the one bet of the round: the full game.
HOLDEM = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=10 5,firstPlayer=2 1,"
    "numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,raiseSize=10 10 20 20,"
    "maxRaises=3 4 4 4,bettingAbstraction=fcpa)"
)
RESPONDERS = {
    "ismcts": "ISMCTS-BR",
    "lbr": "LBR",
    "gradient": "policy gradients",
    "backward": "backward",
}

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
    names = (
        "simulations rollouts rollout leaf backup exploration learn_seconds seed"
    ).split()
    settings = {"game": HOLDEM, **{name: vars(options)[name] for name in names}}
    plan = [
        _Key(opponent, responder, deal, seat)
        for deal, opponent, responder, seat in itertools.product(
            range(options.deals), options.opponents, options.responders, (0, 1)
        )
    ]
    key = _Key._fields
    try:
        log = JsonLog(options.out, "matches", settings, key=key, facts=facts())
    except ValueError as error:
        raise SystemExit(f"--out: {error}") from None
    with log:
        left = [key for key in plan if key not in log.records]
        done, host = len(plan) - len(left), _Host(options)
        for match in tqdm(left, total=len(plan), initial=done, unit="match"):
            log.add(host.play(match))
        print(_tables([log.records[key] for key in plan]))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="python -m benchmarks.holdem",
        description="Measure best responses in limit hold'em: mean reward with 95 % "
        "intervals against fixed opponents, on equal cards, seats swapped.",
    )
    parser.several("--responders", RESPONDERS, "who responds")
    parser.number("--deals", 100, "of each responder and opponent; two matches each")
    parser.number("--simulations", 1000, "of ISMCTS-BR, per decision")
    words = "of LBR, per decision; each plays out every action, at most three"
    parser.number("--rollouts", 1000, words)
    kinds = ["random", *opponents.CHUMPS]
    words = "how ISMCTS-BR itself plays in rollouts"
    parser.choice("--rollout", kinds, "always_raise", words)
    words = "how LBR itself plays in rollouts after its action"
    parser.choice("--leaf", LEAVES, "call", words)
    words = "what ISMCTS-BR takes an action to be worth"
    parser.choice("--backup", BACKUPS, "chosen", words)
    parser.number("--exploration", 1.0, "of PUCT")
    words = "of the processor, in which policy gradients learn for each seat"
    parser.number("--learn-seconds", 120.0, words)
    kinds = ["uniform", *opponents.CHUMPS]
    parser.strings("--opponents", kinds, "uniform and chumps", metavar="OPPONENT")
    parser.number("--seed", 0, "of everything", least=0)
    parser.add_argument(
        "--out",
        default="out/benchmarks/holdem",
        help="folder of the run, which goes on where it stopped (default %(default)s)",
    )
    return parser


class _Host:
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
        searches = isinstance(bot, StateResponder)
        before = bot.simulations if searches else 0
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
            "rollouts": bot.simulations - before if searches else 0,
            "nodes": bot.num_nodes if searches else 0,
            "histories": len(bot.belief.states) if searches else 0,
            "peak_mib": round(peak_bytes() / 2**20, 1),
        }

    def _make_judge(self, opponent: str, seat: int) -> Judge:
        policy = load_opponent(opponent, self._game)
        return Judge(self._game, policy, seat, seed=self._options.seed)

    def _make_bot(
        self, opponent: str, responder: str, seat: int
    ) -> StateResponder | PolicyBot:
        game, options = self._game, self._options
        policy = load_opponent(opponent, game)
        if responder == "gradient":
            return PolicyBot(seat, self._learned(opponent, seat))
        if responder == "backward":
            setting = settings_of.on_states(game, policy)
            backward = BackwardResponder(setting, seat, seed=options.seed)
            backward.learn()
            return PolicyBot(seat, backward.policy())
        belief = StatePosterior(game, seat, policy, compare="always", open_moves=True)
        if responder == "lbr":
            return LBRBot(
                game,
                seat,
                policy,
                leaf=options.leaf,
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
                # Beliefs of some 2,450 hands before boards of five cards.
                histories="drawn",
            ),
            seed=options.seed,
            rollout=None if rollout == "random" else opponents.chump(game, rollout),
            belief=belief,
        )

    def _learned(self, opponent: str, seat: int) -> LikeliestPolicy:
        """Networks of the run's folder; learned now if they are not there."""
        options = self._options
        path = pathlib.Path(options.out) / f"{opponent}-{seat}.npz"
        if not path.exists():
            tqdm.write(f"{opponent}, seat {seat}: a network learns", file=sys.stderr)
            policy = load_opponent(opponent, self._game)
            setting = settings_of.on_states(self._game, policy)
            responder = GradientResponder(setting, seat, seed=options.seed)
            responder.learn(options.learn_seconds, clock=time.process_time)
            about = {"opponent": opponent, "matches": responder.simulations}
            average = responder.networks().average
            save_deep_policy(path, self._game, average, about)
        return LikeliestPolicy(load_deep_policy(path, self._game))


def _tables(rows: Sequence[Row]) -> str:
    """Mean rewards, and what they took."""
    deals = 1 + max(row["deal"] for row in rows)
    played = [name for name in RESPONDERS if any(r["responder"] == name for r in rows)]
    columns = {"opponent": "`{opponent}`"}
    columns |= {RESPONDERS[name]: f"{{{name}}}" for name in played}
    for name in played if "lbr" in played else ():
        if name != "lbr":
            columns[f"{RESPONDERS[name]} − LBR"] = f"{{{name}_more}}"
            plain = f"{RESPONDERS[name]} − LBR, of returns"
            columns[plain] = f"{{{name}_of_returns}}"
    rewards = table(
        [_rewards(mine) for mine in group_by(rows, "opponent").values()], columns
    )
    took = table(
        [_effort(mine) for mine in group_by(rows, "responder").values()],
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
        f"each; differences are taken deal by deal, those of returns as they were paid."
        f"\n\n{rewards}\n{took}"
    )


def _rewards(rows: Sequence[Row]) -> Row:
    """Responders against one opponent, and what they win more than LBR does."""
    by_responder = group_by(rows, "responder")
    values = {}
    for name, own in by_responder.items():
        values[name] = _by_deal(own, "expected")
        if "lbr" in by_responder:
            local = by_responder["lbr"]
            values[f"{name}_more"] = values[name] - _by_deal(local, "expected")
            plain = _by_deal(own, "return") - _by_deal(local, "return")
            values[f"{name}_of_returns"] = plain
    entries = {name: interval(*mean_and_half_width(v)) for name, v in values.items()}
    return {"opponent": rows[0]["opponent"], **entries}


def _by_deal(rows: Sequence[Row], kind: str) -> np.ndarray:
    """float64 [deals], the mean of both seats."""
    deals = group_by(sorted(rows, key=lambda row: row["deal"]), "deal").values()
    return np.array([fmean(row[kind] for row in seats) for seats in deals])


def _effort(rows: Sequence[Row]) -> Row:
    """What all matches of a responder took."""
    total = {k: sum(row[k] for row in rows) for k in ("thinking", "moves", "rollouts")}
    return {
        "responder": rows[0]["responder"],
        "moves": total["moves"],
        "ms": 1000 * total["thinking"] / max(total["moves"], 1),
        "rate": total["rollouts"] / max(total["thinking"], 1e-9),
        **{most: max(row[most] for row in rows) for most in ("nodes", "peak_mib")},
    }


if __name__ == "__main__":
    sys.exit(main())
