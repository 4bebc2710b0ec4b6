"""Best responses that are found by search: their share of the exact ones, their speed.

Run `python -m benchmarks.best_response --help`. See docs/best-responses.md for what is
measured.
"""

import argparse
import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import jax
import numpy as np
import pyspiel
from open_spiel.python.algorithms import ismcts, mcts
from open_spiel.python.policy import UniformRandomPolicy
from tqdm import tqdm

import spiel_cr
from benchmarks.document import Column, table
from benchmarks.frame import Benchmark, Parser, Row, goofspiel, group_by, sentence
from spiel_cr.eval.players import approximate_nash_conv, response_seats
from spiel_cr.policies.conversions import tabular_policy
from spiel_cr.responses import ismcts_br, opponents, responder_tree
from spiel_cr.responses.ismcts_config import SearchConfig


class _Case(NamedTuple):
    """A game, an opponent, simulations from each information state, and from each one
    before that, to learn."""

    game: str
    policy: str
    simulations: int
    learn: int = 0


_UNIFORM = (
    _Case("leduc_poker", "uniform", 10_000),
    _Case("leduc_poker", "uniform", 10_000, 1_000),
    _Case("python_ii_goofspiel(num_cards=4)", "uniform", 10_000),
    _Case("python_ii_goofspiel(num_cards=5)", "uniform", 40_000),
    _Case("python_ii_goofspiel(num_cards=5)", "uniform", 10_000, 300),
    _Case("python_ii_goofspiel(num_cards=6)", "uniform", 40_000),
    _Case("python_ii_goofspiel(num_cards=6)", "uniform", 10_000, 100),
    _Case("liars_dice(numdice=1,dice_sides=6)", "uniform", 100_000),
    _Case("liars_dice(numdice=1,dice_sides=6)", "uniform", 10_000, 1_000),
    _Case("python_princess_and_monster(horizon=4)", "uniform", 10_000),
    _Case("python_latent_tic_tac_toe(conflict=keep)", "uniform", 2_000),
    _Case("python_scotland_yard", "uniform", 10_000),
    _Case("python_scotland_yard", "uniform", 10_000, 300),
)
_SOLVED = (
    _Case("leduc_poker", "cfr+(iterations=10)", 30_000),
    _Case(goofspiel(4), "cfr+(iterations=10)", 10_000),
    _Case(goofspiel(5), "cfr+(iterations=10)", 30_000),
    _Case("liars_dice(numdice=1,dice_sides=4)", "cfr+(iterations=10)", 30_000),
    _Case("liars_dice(numdice=1,dice_sides=4)", "cfr+(iterations=10)", 10_000, 1_000),
)
_CHUMPS = tuple(_Case("leduc_poker", kind, 10_000) for kind in opponents.CHUMPS)


class _Believed(NamedTuple):
    """A game against uniform play on states: matches in each seat, simulations per
    decision, histories of exact beliefs, particles of larger ones, and the method."""

    game: str
    matches: int
    simulations: int
    max_histories: int
    particles: int
    method: str = "ismcts"


# Where exact beliefs fit, too; the response is asked at each infoset that it comes to.
# Far harsher than the defaults, 100,000 histories and 500 particles: beliefs of these
# games are small, and with more nothing would be dropped.
_BOTH = (
    _Believed("leduc_poker", 100_000, 300, 3, 4),
    _Believed("python_ii_goofspiel(num_cards=5)", 100_000, 300, 3, 4),
    _Believed("python_ii_goofspiel(num_cards=5)", 100_000, 300, 3, 16),
)
_LARGE = (
    _Believed("python_ii_goofspiel(num_cards=13)", 50, 50, 500, 200),
    _Believed("dark_hex(board_size=4)", 50, 50, 500, 200),
    _Believed("phantom_ttt", 50, 100, 1_000, 200),
)
# From the default board of 10 × 10, five ships and 50 shots to smaller ones.
_SHIPS = (
    "battleship(board_width={0},board_height={0},ship_sizes={1},ship_values={2},{3})"
)
_ARRAYS = tuple(
    _Believed(game, 50, 300, 1, 100, "flat")
    for game in (
        "battleship",
        _SHIPS.format(5, "[2;3]", "[1;1]", "num_shots=12"),
        _SHIPS.format(6, "[2;3;3]", "[1;1;1]", "num_shots=18"),
        _SHIPS.format(8, "[2;3;3;4]", "[1;1;1;1]", "num_shots=32"),
    )
)


class Stated(NamedTuple):
    """A game and an opponent on states, and simulations per decision."""

    game: str
    policy: str
    simulations: int


# Settings were chosen on Leduc poker and liar's dice with four sides.
_STATED = (
    Stated("leduc_poker", "cfr+(iterations=10)", 1_000),
    Stated("liars_dice(numdice=1,dice_sides=4)", "cfr+(iterations=10)", 300),
    Stated(goofspiel(4), "cfr+(iterations=10)", 300),
    Stated("kuhn_poker", "cfr+(iterations=10)", 100),
    Stated("leduc_poker", "uniform", 1_000),
    Stated("python_ii_goofspiel(num_cards=5)", "uniform", 1_000),
    Stated("liars_dice(numdice=1,dice_sides=6)", "uniform", 3_000),
    Stated("python_scotland_yard", "uniform", 300),
)
# What is followed, how it is backed up.
_WAYS = (("all", "chosen"), ("drawn", "chosen"), ("drawn", "mean"))
_SPEED_GAME = "leduc_poker"
_SPEED_SIMULATIONS = 1_000


def _add_options(parser: Parser) -> None:
    parser.number("--seeds", 3, "searches of each case")
    parser.number("--scale", 1.0, "times the simulations")
    parser.several("--parts", _PARTS, "what to measure")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for part in options.parts:
        for row in _PARTS[part].measure(options.seeds, options.scale):
            yield {"part": part, **row}


def _markdown(rows: Sequence[Row]) -> str:
    text = [f"{sentence(rows[0], [jax.default_backend()])}\n"]
    for name, mine in group_by(rows, "part").items():
        part = _PARTS[name]
        text += [f"{part.title}\n", table(mine, part.columns, labels=part.labels)]
    return "\n".join(text)


class _Search(NamedTuple):
    """A game and an opponent, and responses to it."""

    tree: spiel_cr.CompiledGame
    behaviour: approximate_nash_conv.Behaviours

    def run(self, method: str, search: SearchConfig, seed: int = 0) -> Row:
        """What the responses of both seats found together."""
        settings = approximate_nash_conv.ResponseConfig(method, search, seed=seed)
        return approximate_nash_conv.both_on_tree(self.tree, self.behaviour, settings)


def _search(game: str | pyspiel.Game, policy: str) -> _Search:
    tree = spiel_cr.compile_game(game)
    return _Search(tree, approximate_nash_conv.opponent_behaviour(tree, policy))


def _shares(cases: Sequence[_Case], seeds: int, scale: float) -> Iterator[Row]:
    """The share of each case over seeds, with LBR beside it."""
    for case in tqdm(cases, desc="cases"):
        search = _search(case.game, case.policy)
        count = max(1, int(case.simulations * scale))
        config = SearchConfig(count, learn=int(case.learn * scale))
        runs = [search.run("ismcts", config, seed) for seed in range(seeds)]
        yield {
            **case._asdict(),
            "simulations": count,
            "learn": config.learn,
            "exact": runs[0]["exact_value"],
            "shares": [run["share"] for run in runs],
            "seconds": median(run["seconds"] for run in runs),
            "total": median(run["simulations"] for run in runs),
            "lbr": search.run("lbr", SearchConfig())["share"],
        }


def _posteriors(seeds: int, scale: float) -> Iterator[Row]:
    """The same search from the exact belief, and from all histories alike."""
    for case in _SOLVED:
        if case.learn:
            continue
        search = _search(case.game, case.policy)
        count = max(1, int(case.simulations * scale))
        for posterior in ("exact", "uniform"):
            config = SearchConfig(count, posterior=posterior)
            runs = [search.run("ismcts", config, seed) for seed in range(seeds)]
            shares = [run["share"] for run in runs]
            yield {**case._asdict(), "posterior": posterior, "shares": shares}


def _speed(seeds: int, scale: float) -> Iterator[Row]:
    """Simulations/s beside OpenSpiel's searches, back to back, in one process.

    Everybody searches the same information states of a uniform match: ours all at once,
    OpenSpiel's one after another, with random rollouts.
    """
    count = max(1, int(_SPEED_SIMULATIONS * scale))
    game = spiel_cr.load_game(_SPEED_GAME)
    search = _search(game, "uniform")
    states = _decisions(search.tree, 40)
    python = count // 10
    rows: list[Row] = []
    for name, rate in (
        ("spiel_cr, batch=4096", lambda seed: _own_rate(search, 4096, seed)),
        ("spiel_cr, batch=64", lambda seed: _own_rate(search, 64, seed)),
        ("C++ ISMCTSBot", lambda seed: _rate(_cpp_bot(count, seed), states, count)),
        (
            "Python ISMCTSBot",
            lambda seed: _rate(_python_bot(game, python, seed), states[:10], python),
        ),
    ):
        rates = [rate(seed) for seed in range(max(3, seeds))]
        rows.append({"name": name, "rates": rates, "rate": median(rates)})
    cpp = rows[2]["rate"]
    yield from ({**row, "to_cpp": row["rate"] / cpp} for row in rows)


def _own_rate(search: _Search, batch: int, seed: int) -> float:
    """All first decisions of player 0, long enough to be timed."""
    arrays = responder_tree.build(search.tree, 0, search.behaviour[1])
    prior = ismcts_br.uniform_prior(arrays)
    roots = np.flatnonzero(search.tree.infosets[0].decisions.parent == 0)
    config = SearchConfig(200_000 if batch > 64 else 20_000, batch=batch)
    arrays = jax.device_put(arrays)
    rate = 0.0
    # The first time compiles.
    for _ in range(2):
        empty = ismcts_br.empty_table(arrays)
        begun = time.perf_counter()
        filled, done = ismcts_br.search(
            arrays, empty, prior, roots, jax.random.key(seed), config
        )
        jax.block_until_ready(filled)
        rate = done / (time.perf_counter() - begun)
    return rate


def _decisions(tree: spiel_cr.CompiledGame, number: int) -> list[pyspiel.State]:
    """First decisions of player 0, drawn as chance deals."""
    first = np.flatnonzero(tree.infosets[0].decisions.parent == 0)
    histories = tree.histories
    members = np.flatnonzero(
        (histories.player == 0) & np.isin(histories.infoset, first)
    )
    odds = histories.chance[members] / histories.chance[members].sum()
    drawn = np.random.default_rng(0).choice(members, number, p=odds)
    return [tree.state_at(int(history)) for history in drawn]


def _cpp_bot(simulations: int, seed: int) -> pyspiel.Bot:
    evaluator = pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=seed)
    choose = pyspiel.ISMCTSFinalPolicyType.MAX_VISIT_COUNT
    return pyspiel.ISMCTSBot(
        seed, evaluator, 5.0, simulations, -1, choose, False, False
    )


def _python_bot(game: pyspiel.Game, simulations: int, seed: int) -> pyspiel.Bot:
    random = np.random.RandomState(seed)
    evaluator = mcts.RandomRolloutEvaluator(n_rollouts=1, random_state=random)
    return ismcts.ISMCTSBot(game, evaluator, 5.0, simulations, random_state=random)


def _rate(bot: pyspiel.Bot, states: Sequence[pyspiel.State], simulations: int) -> float:
    """Simulations/s of a bot of OpenSpiel."""
    begun = time.perf_counter()
    for state in states:
        bot.restart()
        bot.step(state)
    return simulations * len(states) / (time.perf_counter() - begun)


def _seats(case: _Believed, seed: int, known: bool, limits: tuple[int, int]) -> Row:
    """Responses of both seats that search on states.

    The limits are `max_histories` and `particles`.
    """
    game = spiel_cr.load_game(case.game)
    opponent = UniformRandomPolicy(game)
    judged = None
    if known:
        judged = approximate_nash_conv.Known(*_search(game, "uniform"))
    settings = approximate_nash_conv.ResponseConfig(
        case.method,
        SearchConfig(case.simulations),
        matches=case.matches,
        always_play=False,
        seed=seed,
        max_histories=limits[0],
        particles=limits[1],
    )
    return response_seats.summary(
        [
            approximate_nash_conv.on_states(game, p, opponent, settings, known=judged)
            for p in (0, 1)
        ]
    )


def on_states(case: Stated, seed: int, way: tuple[str, str] = ("all", "chosen")) -> Row:
    """Responses of both seats that search on states, judged exactly.

    Args:
      case: game, opponent, simulations.
      seed: of the searches.
      way: `histories` and `backup` of `SearchConfig`.

    Returns:
      A `response_seats.summary`, and `cpu`, seconds of both seats, the search for every
      infoset they come to.
    """
    tree, behaviour = _search(case.game, case.policy)
    opponent = tabular_policy(tree, behaviour)
    if case.policy == "uniform":
        opponent = UniformRandomPolicy(tree.game)
    search = SearchConfig(case.simulations, histories=way[0], backup=way[1])
    settings = approximate_nash_conv.ResponseConfig(
        search=search, matches=1_000_000, always_play=False, seed=seed
    )
    known = approximate_nash_conv.Known(tree, behaviour)
    begun = time.process_time()
    seats = [
        approximate_nash_conv.on_states(tree.game, p, opponent, settings, known=known)
        for p in (0, 1)
    ]
    return {**response_seats.summary(seats), "cpu": time.process_time() - begun}


def _states(seeds: int, scale: float) -> Iterator[Row]:
    """Shares of each way, and of the paper's in about the time of the first one."""
    for case in tqdm(_STATED, desc="cases"):
        case = case._replace(simulations=max(1, int(case.simulations * scale)))
        first, seconds = 0.0, 1.0
        for way in (*_WAYS, None):
            mine, label = case, way or _WAYS[2]
            if way is None:
                # So many simulations as take as long, by the row before this one.
                share = first / seconds
                mine = case._replace(simulations=max(1, int(case.simulations * share)))
            runs = [on_states(mine, seed, label) for seed in range(seeds)]
            seconds = median(run["cpu"] for run in runs)
            first = first or seconds
            yield {
                **mine._asdict(),
                "histories": label[0],
                "backup": label[1],
                "shares": [run["share"] for run in runs],
                "seconds": seconds,
            }


def _particles(seeds: int, scale: float) -> Iterator[Row]:
    """The value of the same search from particles and from exact beliefs."""
    for case in tqdm(_BOTH, desc="cases"):
        case = case._replace(simulations=max(1, int(case.simulations * scale)))
        limits = case.max_histories, case.particles
        exact = [_seats(case, seed, True, (10**6, 1)) for seed in range(seeds)]
        drawn = [_seats(case, seed, True, limits) for seed in range(seeds)]
        yield {
            **case._asdict(),
            "best": exact[0]["exact_value"],
            "exact": [row["value"] for row in exact],
            "drawn": [row["value"] for row in drawn],
            "beliefs": _beliefs(drawn),
        }


def _large(cases: Sequence[_Believed], seeds: int, scale: float) -> Iterator[Row]:
    """Matches in games whose beliefs do not fit; one seed."""
    for case in tqdm(cases, desc="cases"):
        case = case._replace(simulations=max(1, int(case.simulations * scale)))
        limits = case.max_histories, case.particles
        begun = time.process_time()
        row = _seats(case, 0, False, limits)
        names = ("value", "half_width")
        yield {
            **case._asdict(),
            **{name: row[name] for name in names},
            "seats": [seat["value"] for seat in row["seats"]],
            "beliefs": _beliefs([row]),
            "seconds": time.process_time() - begun,
        }


def _beliefs(rows: Sequence[Row]) -> Row:
    """What the beliefs of all seats and seeds were like together."""
    seats = [seat["beliefs"] for row in rows for seat in row["seats"]]
    drawn = [seat for seat in seats if seat["mean_effective_size"] is not None]
    counts = [seat["approximate"] - seat["empty"] for seat in drawn]
    means = [seat["mean_effective_size"] for seat in drawn]
    return {
        **{
            name: sum(seat[name] for seat in seats)
            for name in ("decisions", "approximate", "empty")
        },
        "mean": float(np.average(means, weights=counts)) if drawn else None,
        "least": min((seat["least_effective_size"] for seat in drawn), default=None),
    }


def _sizes(row: Mapping[str, Any]) -> str:
    """Effective sample sizes, in words."""
    beliefs = row["beliefs"]
    if beliefs["mean"] is None:
        return "-"
    return f"{beliefs['mean']:.0f} (least {beliefs['least']:.0f})"


class _Part(NamedTuple):
    """A table: how it is measured, from seeds and scale, and how it is written."""

    title: str
    measure: Callable[[int, float], Iterable[Row]]
    columns: dict[str, Column]
    labels: int = 2


_SEEDS: dict[str, Column] = {
    "worst seed": lambda row: f"{min(row['shares']):.2%}",
    "median": lambda row: f"{median(row['shares']):.2%}",
}


def _shares_part(title: str, cases: Sequence[_Case]) -> _Part:
    return _Part(
        title,
        functools.partial(_shares, cases),
        {
            "game": "`{game}`",
            "opponent": "`{policy}`",
            "exact NashConv": "{exact:.6g}",
            "learn": "{learn:,}",
            "per state": "{simulations:,}",
            "in all": "{total:,.0f}",
            "seconds": "{seconds:.1f}",
            **_SEEDS,
            "LBR": "{lbr:.2%}",
        },
    )


def _large_part(title: str, cases: Sequence[_Believed]) -> _Part:
    return _Part(
        title,
        functools.partial(_large, cases),
        {
            "game": "`{game}`",
            "matches a seat": "{matches:,}",
            "simulations": "{simulations:,}",
            "particles": "{particles:,}",
            "value": lambda row: f"{row['value']:+.3f} ± {row['half_width']:.3f}",
            "seats": lambda row: ", ".join(f"{value:+.3f}" for value in row["seats"]),
            "decisions": lambda row: f"{row['beliefs']['decisions']:,}",
            "in particles": lambda row: f"{row['beliefs']['approximate']:,}",
            "none found": lambda row: f"{row['beliefs']['empty']:,}",
            "effective sample size": _sizes,
            "CPU seconds": "{seconds:.0f}",
        },
        labels=1,
    )


_PARTS: dict[str, _Part] = {
    "uniform": _shares_part("Against uniform random play:", _UNIFORM),
    "solved": _shares_part("Against CFR+ stopped after 10 iterations:", _SOLVED),
    "chumps": _shares_part("Against chumps:", _CHUMPS),
    "posterior": _Part(
        "With and without the exact posterior, against `cfr+(iterations=10)`:",
        _posteriors,
        {"game": "`{game}`", "histories drawn from": "{posterior}", **_SEEDS},
    ),
    "states": _Part(
        "Searches on states, no compiled tree, judged exactly:",
        _states,
        {
            "game": "`{game}`",
            "opponent": "`{policy}`",
            "histories": "{histories}",
            "backup": "{backup}",
            "simulations": "{simulations:,}",
            **_SEEDS,
            "CPU seconds": "{seconds:.2f}",
        },
        labels=4,
    ),
    "particles": _Part(
        "Searches on states from particles, and from exact beliefs, against uniform "
        "play; values of the responses, judged exactly:",
        _particles,
        {
            "game": "`{game}`",
            "simulations": "{simulations:,}",
            "particles": "{particles:,}",
            "best": "{best:.4f}",
            "from exact beliefs": lambda row: f"{median(row['exact']):.4f}",
            "from particles": lambda row: f"{median(row['drawn']):.4f}",
            "difference": lambda row: (
                f"{median(row['drawn']) / median(row['exact']) - 1:+.2%}"
            ),
            "decisions": lambda row: f"{row['beliefs']['decisions']:,}",
            "in particles": lambda row: f"{row['beliefs']['approximate']:,}",
            "effective sample size": _sizes,
        },
        labels=1,
    ),
    "large": _large_part(
        "Searches on states against uniform play where exact beliefs do not fit; sums "
        "of both seats:",
        _LARGE,
    ),
    "flat": _large_part(
        "Flat Monte Carlo with all moves as first ones on rules on arrays, against "
        "uniform play; sums of both seats:",
        _ARRAYS,
    ),
    "speed": _Part(
        f"Speed on `{_SPEED_GAME}` (first decisions of player 0, random rollouts):",
        _speed,
        {"search": "{name}", "simulations/s": "{rate:,.0f}", "÷ C++": "{to_cpp:.2f}"},
        labels=1,
    ),
}


BENCHMARK = Benchmark(
    "best_response",
    "Measure searched best responses beside exact ones and LBR.",
    _add_options,
    _measure,
    _markdown,
    tables="best response",
    page="best-responses.md",
    group=lambda row: row["part"],
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
