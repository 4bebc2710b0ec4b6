"""Searched and local best responses in limit hold'em, which is too large to compile.

Run `python -m benchmarks.holdem --help`. Every match is a line of JSON as soon as it is
over; a run that was stopped goes on from there.

Rewards of matches vary by some 50 chips, those of good responders differ by a few. So
the tables report not what the cards made of a match, but an estimate with the same
expectation and a tenth of the spread; see `holdem_judge.py`.
"""

import argparse
import itertools
import json
import pathlib
import platform
import resource
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel
from spiel_cr.eval.players import match as matches
from spiel_cr.eval.players import tournament
from tqdm import tqdm

from benchmarks import conditions, document
from benchmarks.holdem_judge import Judge
from spiel_cr.players import opponent_strings
from spiel_cr.players.bots import PolicyBot
from spiel_cr.responses import (
    ismcts_br_bot,
    opponents,
    state_posterior,
)
from spiel_cr.responses.ismcts_config import BACKUPS, SearchConfig
from spiel_cr.responses.local_best_response import LBRBot
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

Row = dict[str, Any]
_Key = tuple[str, str, int, int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays what is not in the file yet, and prints tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.holdem",
        description="Measure best responses in limit hold'em: mean reward with 95 % "
        "intervals against fixed opponents, on equal cards, seats swapped.",
    )
    parser.add_argument(
        "--deals",
        type=int,
        default=100,
        help="of each responder and opponent; two matches each (default 100)",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=1000,
        help="of ISMCTS-BR, a decision (default 1000)",
    )
    parser.add_argument(
        "--rollouts",
        type=int,
        default=1000,
        help="of LBR, a decision; each plays out every action, of which there are at "
        "most three (default 1000)",
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
    parser.add_argument(
        "--exploration", type=float, default=1.0, help="of PUCT (default 1)"
    )
    parser.add_argument(
        "--opponents",
        nargs="+",
        default=["uniform", *opponents.CHUMPS],
        metavar="OPPONENT",
        help="uniform and chumps (default all)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--out", type=pathlib.Path, default=pathlib.Path("out/benchmarks/holdem.jsonl")
    )
    options = parser.parse_args(arguments)
    settings = {
        "game": HOLDEM,
        "simulations": options.simulations,
        "rollouts": options.rollouts,
        "rollout": options.rollout,
        "backup": options.backup,
        "exploration": options.exploration,
        "seed": options.seed,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = _read(options.out, settings)
    plan: list[_Key] = [
        (opponent, responder, deal, seat)
        for deal, opponent, responder, seat in itertools.product(
            range(options.deals), options.opponents, RESPONDERS, (0, 1)
        )
    ]
    with options.out.open("a", encoding="utf-8") as file:
        if not rows:
            print(json.dumps({"settings": settings, **conditions.facts()}), file=file)
        _play_missing(plan, rows, settings, file)
    print(_tables([rows[key] for key in plan]))
    return 0


def _read(path: pathlib.Path, settings: Row) -> dict[_Key, Row]:
    """Matches on disk; a line whose writing was interrupted is left out."""
    if not path.exists() or not path.stat().st_size:
        return {}
    content = path.read_text("utf-8")
    whole = content[: content.rfind("\n") + 1]
    path.write_text(whole, "utf-8")
    rows: dict[_Key, Row] = {}
    for line in whole.splitlines():
        row = json.loads(line)
        if "settings" in row:
            if row["settings"] != settings:
                raise SystemExit(
                    f"--out {path} holds matches with other settings: "
                    f"{row['settings']}; choose another file"
                )
            continue
        rows[row["opponent"], row["responder"], row["deal"], row["seat"]] = row
    return rows


def _play_missing(
    plan: Sequence[_Key], rows: dict[_Key, Row], settings: Row, file: Any
) -> None:
    game = pyspiel.load_game(HOLDEM)
    left = [key for key in plan if key not in rows]
    bots: dict[tuple[str, str, int], StateResponder] = {}
    judges: dict[tuple[str, int], Judge] = {}
    for key in tqdm(left, total=len(plan), initial=len(plan) - len(left), unit="match"):
        opponent, responder, deal, seat = key
        if (opponent, responder, seat) not in bots:
            bots[opponent, responder, seat] = _make(
                game, opponent, responder, seat, settings
            )
        if (opponent, seat) not in judges:
            policy = opponent_strings.load_opponent(opponent, game)
            judges[opponent, seat] = Judge(game, policy, seat, seed=settings["seed"])
        bot, judge = bots[opponent, responder, seat], judges[opponent, seat]
        rows[key] = _play(game, bot, judge, key, settings["seed"])
        print(json.dumps(rows[key]), file=file, flush=True)


def _make(
    game: pyspiel.Game, opponent: str, responder: str, seat: int, settings: Row
) -> StateResponder:
    policy = opponent_strings.load_opponent(opponent, game)
    belief = state_posterior.StatePosterior(
        game, seat, policy, compare="always", open_moves=True
    )
    if responder == "lbr":
        return LBRBot(
            game,
            seat,
            policy,
            rollouts=settings["rollouts"],
            seed=settings["seed"],
            belief=belief,
        )
    config = SearchConfig(
        simulations=settings["simulations"],
        exploration=settings["exploration"],
        backup=settings["backup"],
    )
    rollout = settings["rollout"]
    return ismcts_br_bot.ISMCTSBRBot(
        game,
        seat,
        policy,
        config,
        seed=settings["seed"],
        rollout=None if rollout == "random" else opponents.chump(game, rollout),
        belief=belief,
    )


def _play(
    game: pyspiel.Game, bot: StateResponder, judge: Judge, key: _Key, seed: int
) -> Row:
    """A match; all responders and opponents get the same cards in a deal."""
    opponent, responder, deal, seat = key
    policy = opponent_strings.load_opponent(opponent, game)
    players = [bot, bot]
    players[1 - seat] = PolicyBot(1 - seat, policy)
    chance, draws = (np.random.default_rng([seed, deal, stream]) for stream in (0, 1))
    before = bot.simulations
    expected = judge.start()

    def add(state: pyspiel.State, player: int, action: int) -> None:
        nonlocal expected
        if player == seat:
            expected += judge.advantage(state, action)

    match = matches.play_match(game, players, draws, chance=chance, observers=[add])
    return {
        "opponent": opponent,
        "responder": responder,
        "deal": deal,
        "seat": seat,
        "return": match.returns[seat],
        "expected": round(expected, 6),
        "moves": len(match.seconds[seat]),
        "thinking": round(sum(match.seconds[seat]), 6),
        "rollouts": bot.simulations - before,
        "nodes": bot.num_nodes,
        "histories": len(bot.belief.states),
        "peak_mib": _peak_mib(),
    }


def _peak_mib() -> float:
    """Most memory that this process has had, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux gives KiB, macOS bytes.
    return round(peak / (2**20 if platform.system() == "Darwin" else 2**10), 1)


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
        body.append([f"`{name}`", *map(_interval, columns)])
    rewards = document.grid(
        ["opponent", "ISMCTS-BR", "LBR", "difference", "of returns"], body
    )
    took = document.grid(
        ["responder", "moves", "ms a move", "rollouts a second", "most nodes", "MiB"],
        [_effort(rows, responder) for responder in RESPONDERS],
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
    chosen = [
        row
        for row in rows
        if (row["opponent"], row["responder"]) == (opponent, responder)
    ]
    chosen.sort(key=lambda row: (row["deal"], row["seat"]))
    return np.array([row[kind] for row in chosen]).reshape(-1, 2).mean(axis=1)


def _interval(values: np.ndarray) -> str:
    mean, half = tournament.mean_and_half_width(values.tolist())
    return f"{mean:+.2f}" if half is None else f"{mean:+.2f} ± {half:.2f}"


def _effort(rows: Sequence[Mapping[str, Any]], responder: str) -> list[str]:
    mine = [row for row in rows if row["responder"] == responder]
    thinking = sum(row["thinking"] for row in mine)
    moves = sum(row["moves"] for row in mine)
    return [
        responder,
        str(moves),
        f"{1000 * thinking / max(moves, 1):.0f}",
        f"{sum(row['rollouts'] for row in mine) / max(thinking, 1e-9):.0f}",
        str(max(row["nodes"] for row in mine)),
        f"{max(row['peak_mib'] for row in mine):.0f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
