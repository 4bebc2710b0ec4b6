"""Best responses that are found by search: their share of the exact ones, their speed.

See docs/best-responses.md.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pyspiel
from open_spiel.python.algorithms import ismcts, mcts
from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from benchmarks.document import Column, over_seeds
from benchmarks.frame import Benchmark, Option, Part, Row, Table
from benchmarks.games import string_of
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging import response_seats
from spiel_cr.judging.responding import respond
from spiel_cr.judging.response_config import ResponseConfig
from spiel_cr.judging.responses import ismcts_br, responder_tree
from spiel_cr.judging.responses.ismcts_config import SearchConfig
from spiel_cr.judging.targets import Target, load_target
from spiel_cr.players import opponents
from spiel_cr.policies.conversions import uniform_behaviour

_CFR = "cfr+(iterations=10)"


class Case(NamedTuple):
    """A game, an opponent, simulations from each information state, and from each one
    before that, to learn."""

    game: str
    policy: str
    simulations: int
    learn: int = 0


# On compiled trees.
SHARES = (
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
# On states; settings were chosen on Leduc poker and liar's dice with four sides.
STATES = (
    Case("leduc", _CFR, 1_000),
    Case("liars_dice4", _CFR, 300),
    Case("goofspiel4", _CFR, 300),
    Case("kuhn", _CFR, 100),
    Case("leduc", "uniform", 1_000),
    Case("ii_goofspiel5", "uniform", 1_000),
    Case("liars_dice6", "uniform", 3_000),
    Case("python_scotland_yard", "uniform", 300),
)
# Histories that are followed, and how they are backed up; the last one is the paper's.
WAYS = (("all", "chosen"), ("drawn", "chosen"), ("drawn", "mean"))
# On states against uniform play, where exact beliefs do not fit: histories of exact
# beliefs, simulations.
LARGE = {
    "python_ii_goofspiel(num_cards=13)": (500, 50),
    "dark_hex(board_size=4)": (500, 50),
    "phantom_ttt": (1_000, 100),
}
_PARTICLES = 200
_SPEED_GAME = "leduc"
_SPEED_SIMULATIONS = 1_000
OPTIONS = {
    "seeds": Option(3, "searches of each case"),
    "scale": Option(1.0, "times the simulations"),
    "matches": Option(50, "in each seat, of part large", least=2),
    "games": Option((), "only cases of these (default: all)", kind=str),
}


def both_seats(target: Target, config: ResponseConfig, states: bool = False) -> Row:
    """Responses in both seats, see `response_seats.summary`."""
    seats = [respond(target, player, config, states=states) for player in (0, 1)]
    return response_seats.summary(seats)


def measure(game: str, policy: str, simulations: int, learn: int, seed: int) -> Row:
    """Searches for both seats on the compiled tree, with LBR beside."""
    target = load_target(policy, string_of(game))

    def run(method: str, search: SearchConfig) -> Row:
        return both_seats(target, ResponseConfig(method, search, seed=seed))

    row = run("ismcts", SearchConfig(simulations, learn=learn))
    return {
        "exact": row["exact_value"],
        "share": row["share"],
        "seconds": row["seconds"],
        "total": row["simulations"],
        "lbr": run("lbr", SearchConfig())["share"],
    }


def measure_states(
    game: str, policy: str, simulations: int, seed: int, histories: str, backup: str
) -> Row:
    """Responses of both seats that search on states, judged exactly.

    Args:
      game: OpenSpiel string or short name.
      policy: of the opponent.
      simulations: per decision.
      seed: of the searches.
      histories: of `SearchConfig`.
      backup: likewise.

    Returns:
      Their share of the exact gain, and CPU seconds of both seats, the search for every
      infoset they come to.
    """
    target = load_target(policy, string_of(game))
    settings = ResponseConfig(
        search=SearchConfig(simulations, histories=histories, backup=backup),
        matches=1_000_000,
        always_play=False,
        seed=seed,
    )
    begun = time.process_time()
    share = both_seats(target, settings, states=True)["share"]
    return {"share": share, "cpu_seconds": time.process_time() - begun}


def measure_large(game: str, max_histories: int, simulations: int, matches: int) -> Row:
    """Matches against uniform play in both seats, with beliefs of particles."""
    loaded = spiel_cr.load_game(string_of(game))
    settings = ResponseConfig(
        search=SearchConfig(simulations),
        matches=matches,
        max_histories=max_histories,
        particles=_PARTICLES,
    )
    target = Target("uniform", loaded, UniformRandomPolicy(loaded))
    begun = time.process_time()
    row = both_seats(target, settings)
    beliefs = [seat["beliefs"] for seat in row["seats"]]
    names = ("decisions", "approximate", "empty")
    return {
        "value": row["value"],
        "half_width": row["half_width"],
        "seats": [seat["value"] for seat in row["seats"]],
        **{name: sum(one[name] for one in beliefs) for name in names},
        "effective_sizes": [one["mean_effective_size"] for one in beliefs],
        "cpu_seconds": time.process_time() - begun,
    }


def measure_speed(scale: float) -> Row:
    """Simulations/s beside OpenSpiel's searches, back to back, in one process.

    Everybody searches the same information states of a uniform match: ours all at once,
    OpenSpiel's one after another, with random rollouts.
    """
    count = max(1, int(_SPEED_SIMULATIONS * scale))
    tree = spiel_cr.compile_game(_SPEED_GAME)
    states, python = decisions(tree, 40), max(1, count // 10)
    ways: dict[str, Callable[[int], float]] = {
        "spiel_cr, batch=4096": lambda seed: _our_rate(tree, 4096, seed),
        "spiel_cr, batch=64": lambda seed: _our_rate(tree, 64, seed),
        "C++ ISMCTSBot": lambda seed: rate(cpp_bot(count, seed), states, count),
        "Python ISMCTSBot": lambda seed: rate(
            python_bot(tree.game, python, seed), states[:10], python
        ),
    }
    return {"rates": {name: [way(s) for s in range(3)] for name, way in ways.items()}}


def _our_rate(tree: CompiledGame, batch: int, seed: int) -> float:
    """All first decisions of player 0, long enough to be timed."""
    uniform = uniform_behaviour(tree.infosets[1].decisions)
    arrays = responder_tree.build(tree, 0, uniform)
    prior = ismcts_br.uniform_prior(arrays)
    roots = np.flatnonzero(tree.infosets[0].decisions.parent == 0)
    config = SearchConfig(200_000 if batch > 64 else 20_000, batch=batch)
    arrays, speed = jax.device_put(arrays), 0.0
    # The first time compiles.
    for _ in range(2):
        empty = ismcts_br.empty_table(arrays)
        begun = time.perf_counter()
        filled, done = ismcts_br.search(
            arrays, empty, prior, roots, jax.random.key(seed), config
        )
        jax.block_until_ready(filled)
        speed = done / (time.perf_counter() - begun)
    return speed


def decisions(tree: CompiledGame, number: int) -> list[pyspiel.State]:
    """First decisions of player 0, drawn as chance deals."""
    first = np.flatnonzero(tree.infosets[0].decisions.parent == 0)
    histories = tree.histories
    members = np.flatnonzero(
        (histories.player == 0) & np.isin(histories.infoset, first)
    )
    odds = histories.chance[members] / histories.chance[members].sum()
    drawn = np.random.default_rng(0).choice(members, number, p=odds)
    return [tree.state_at(int(history)) for history in drawn]


def cpp_bot(simulations: int, seed: int) -> pyspiel.Bot:
    """OpenSpiel's search in C++, with random rollouts."""
    evaluator = pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=seed)
    choose = pyspiel.ISMCTSFinalPolicyType.MAX_VISIT_COUNT
    return pyspiel.ISMCTSBot(
        seed, evaluator, 5.0, simulations, -1, choose, False, False
    )


def python_bot(game: pyspiel.Game, simulations: int, seed: int) -> pyspiel.Bot:
    """OpenSpiel's search in Python, with random rollouts."""
    random = np.random.RandomState(seed)
    evaluator = mcts.RandomRolloutEvaluator(n_rollouts=1, random_state=random)
    return ismcts.ISMCTSBot(game, evaluator, 5.0, simulations, random_state=random)


def rate(bot: pyspiel.Bot, states: Sequence[pyspiel.State], simulations: int) -> float:
    """Simulations/s of a bot of OpenSpiel."""
    begun = time.perf_counter()
    for state in states:
        bot.restart()
        bot.step(state)
    return simulations * len(states) / (time.perf_counter() - begun)


def _cases(cases: Sequence[Case], options: argparse.Namespace) -> Iterator[Row]:
    for case in cases:
        if options.games and case.game not in options.games:
            continue
        for seed in range(options.seeds):
            simulations = max(1, int(case.simulations * options.scale))
            yield {**case._asdict(), "simulations": simulations, "seed": seed}


def _plan_shares(options: argparse.Namespace) -> Iterator[Row]:
    for row in _cases(SHARES, options):
        yield {**row, "learn": int(row["learn"] * options.scale)}


def _plan_states(options: argparse.Namespace) -> Iterator[Row]:
    for row in _cases(STATES, options):
        del row["learn"]
        for histories, backup in WAYS:
            yield {**row, "histories": histories, "backup": backup}


def _plan_large(options: argparse.Namespace) -> Iterator[Row]:
    for game, (histories, simulations) in LARGE.items():
        if not options.games or game in options.games:
            yield {
                "game": game,
                "max_histories": histories,
                "simulations": max(1, int(simulations * options.scale)),
                "matches": options.matches,
            }


def _medians(rows: Sequence[Row]) -> list[Any]:
    names = ("game", "policy", "simulations", "learn", "histories", "backup")
    return over_seeds(rows, names)


def _speeds(rows: Sequence[Row]) -> list[Row]:
    rates = {k: statistics.median(v) for k, v in rows[-1]["rates"].items()}
    cpp = rates["C++ ISMCTSBot"]
    return [{"name": k, "rate": v, "to_cpp": v / cpp} for k, v in rates.items()]


def _sizes(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{size:.0f}" for size in row["effective_sizes"] if size) or "–"


_CASE: dict[str, Column] = {"game": "{game}", "opponent": "`{policy}`"}
_SEEDS: dict[str, Column] = {
    "worst seed": lambda row: f"{min(run['share'] for run in row['each']):.2%}",
    "median": "{share:.2%}",
}
_SHARES: dict[str, Column] = {
    **_CASE,
    "exact NashConv": "{exact:.6g}",
    "learn": "{learn:,}",
    "per state": "{simulations:,}",
    "in all": "{total:,.0f}",
    "seconds": "{seconds:.1f}",
    **_SEEDS,
    "LBR": "{lbr:.2%}",
}
_STATES: dict[str, Column] = {
    **_CASE,
    "histories": "{histories}",
    "backup": "{backup}",
    "simulations": "{simulations:,}",
    **_SEEDS,
    "CPU seconds": "{cpu_seconds:.2f}",
}
_LARGE: dict[str, Column] = {
    "game": "`{game}`",
    "matches a seat": "{matches:,}",
    "simulations": "{simulations:,}",
    "value": "{value:+.3f} ± {half_width:.3f}",
    "seats": "{seats[0]:+.3f}, {seats[1]:+.3f}",
    "decisions": "{decisions:,}",
    "in particles": "{approximate:,}",
    "none found": "{empty:,}",
    "effective sample sizes": _sizes,
    "CPU seconds": "{cpu_seconds:.0f}",
}
_SPEED: dict[str, Column] = {
    "search": "{name}",
    "simulations/s": "{rate:,.0f}",
    "÷ C++": "{to_cpp:.2f}",
}
BENCHMARK = Benchmark(
    "best_response",
    "Measure searched best responses beside exact ones and LBR.",
    "best-responses.md",
    OPTIONS,
    {
        "shares": Part(
            measure,
            _plan_shares,
            (Table("Share of the exact gain.", _SHARES, 2, _medians),),
        ),
        "states": Part(
            measure_states,
            _plan_states,
            (
                Table(
                    "Searches on states, no compiled tree, judged exactly:",
                    _STATES,
                    4,
                    _medians,
                ),
            ),
        ),
        "large": Part(
            measure_large,
            _plan_large,
            (
                Table(
                    f"Searches on states against uniform play where exact beliefs do "
                    f"not fit, with {_PARTICLES} particles; sums of both seats:",
                    _LARGE,
                ),
            ),
            budget=("matches",),
        ),
        "speed": Part(
            measure_speed,
            lambda options: [{"scale": options.scale}],
            (
                Table(
                    "Speed on Leduc poker (first decisions of player 0, random "
                    "rollouts):",
                    _SPEED,
                    lines=_speeds,
                ),
            ),
        ),
    },
)
