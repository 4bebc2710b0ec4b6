"""Best responses that are found by search on compiled trees, beside exact ones."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.document import Column, over_seeds
from benchmarks.frame import Benchmark, Option, Part, Row, Table
from benchmarks.games import string_of
from spiel_cr.judging.responding import respond
from spiel_cr.judging.response_config import ResponseConfig
from spiel_cr.judging.response_seats import summary
from spiel_cr.judging.responses.ismcts_config import SearchConfig
from spiel_cr.judging.targets import load_target
from spiel_cr.players import opponents

_CFR = "cfr+(iterations=10)"


class Case(NamedTuple):
    """A game, an opponent, simulations from each information state, and from each one
    before that, to learn."""

    game: str
    policy: str
    simulations: int
    learn: int = 0


CASES = (
    Case("leduc", "uniform", 10_000),
    Case("leduc", "uniform", 10_000, 1_000),
    Case("ii_goofspiel4", "uniform", 10_000),
    Case("ii_goofspiel5", "uniform", 40_000),
    Case("ii_goofspiel5", "uniform", 10_000, 300),
    Case("ii_goofspiel6", "uniform", 40_000),
    Case("ii_goofspiel6", "uniform", 10_000, 100),
    Case("liars_dice6", "uniform", 100_000),
    Case("liars_dice6", "uniform", 10_000, 1_000),
    Case("princess4", "uniform", 10_000),
    Case("latent_ttt", "uniform", 2_000),
    Case("python_scotland_yard", "uniform", 10_000),
    Case("python_scotland_yard", "uniform", 10_000, 300),
    Case("leduc", _CFR, 30_000),
    Case("goofspiel4", _CFR, 10_000),
    Case("goofspiel5", _CFR, 30_000),
    Case("liars_dice4", _CFR, 30_000),
    Case("liars_dice4", _CFR, 10_000, 1_000),
    *(Case("leduc", kind, 10_000) for kind in opponents.CHUMPS),
)
OPTIONS = {
    "seeds": Option(3, "searches of each case"),
    "scale": Option(1.0, "times the simulations"),
    "games": Option((), "only cases of these (default: all)", kind=str),
}


def measure(game: str, policy: str, simulations: int, learn: int, seed: int) -> Row:
    """Searches for both seats on the compiled tree, with LBR beside."""
    target = load_target(policy, string_of(game))

    def run(method: str, search: SearchConfig) -> Row:
        config = ResponseConfig(method, search, seed=seed)
        return summary([respond(target, player, config) for player in (0, 1)])

    row = run("ismcts", SearchConfig(simulations, learn=learn))
    return {
        "exact": row["exact_value"],
        "share": row["share"],
        "seconds": row["seconds"],
        "total": row["simulations"],
        "lbr": run("lbr", SearchConfig())["share"],
    }


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    for case in CASES:
        if options.games and case.game not in options.games:
            continue
        simulations = max(1, int(case.simulations * options.scale))
        learn = int(case.learn * options.scale)
        for seed in range(options.seeds):
            row = case._replace(simulations=simulations, learn=learn)._asdict()
            yield {**row, "seed": seed}


def _medians(rows: Sequence[Row]) -> list[Any]:
    return over_seeds(rows, ("game", "policy", "simulations", "learn"))


_SHARES: dict[str, Column] = {
    "game": "{game}",
    "opponent": "`{policy}`",
    "exact NashConv": "{exact:.6g}",
    "learn": "{learn:,}",
    "per state": "{simulations:,}",
    "in all": "{total:,.0f}",
    "seconds": "{seconds:.1f}",
    "worst seed": lambda row: f"{min(run['share'] for run in row['each']):.2%}",
    "median": "{share:.2%}",
    "LBR": "{lbr:.2%}",
}
BENCHMARK = Benchmark(
    "best_response",
    "Measure searched best responses beside exact ones and LBR.",
    OPTIONS,
    {
        "shares": Part(
            measure,
            _plan,
            (Table("Share of the exact gain.", _SHARES, 2, _medians),),
        ),
    },
)
