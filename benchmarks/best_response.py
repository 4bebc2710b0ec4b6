"""Best responses that are found by search: their share of the exact ones, their speed.

Run `python -m benchmarks.best_response --help`. See docs/best-responses.md for what is
measured.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np
import pyspiel
from open_spiel.python.algorithms import ismcts, mcts
from spiel_cr.eval.players import approximate_nash_conv
from tqdm import tqdm

import spiel_cr
from benchmarks.document import grid
from benchmarks.frame import Benchmark, Parser, Row, goofspiel, group_by, sentence
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
    tables = [_PARTS[part].table(mine) for part, mine in group_by(rows, "part").items()]
    return "\n".join([f"{sentence(rows[0], [jax.default_backend()])}\n", *tables])


def _shares(cases: Sequence[_Case]) -> Callable[[int, float], Iterator[Row]]:
    """Measures the share of each case over seeds, with LBR beside it."""

    def measure(seeds: int, scale: float) -> Iterator[Row]:
        for case in tqdm(cases, desc="cases"):
            tree = spiel_cr.compile_game(case.game)
            behaviour = approximate_nash_conv.opponent_behaviour(tree, case.policy)
            count = max(1, int(case.simulations * scale))
            learn = int(case.learn * scale)
            config = SearchConfig(count, learn=learn)
            runs = [
                _both(tree, behaviour, "ismcts", config, seed) for seed in range(seeds)
            ]
            leaf = "call" if "poker" in case.game else "uniform"
            local = _both(tree, behaviour, "lbr", SearchConfig(), 0, leaf)
            yield {
                **case._asdict(),
                "simulations": count,
                "learn": learn,
                "exact": runs[0]["exact_value"],
                "shares": [run["share"] for run in runs],
                "seconds": statistics.median(run["seconds"] for run in runs),
                "total": statistics.median(run["simulations"] for run in runs),
                "lbr": local["share"],
            }

    return measure


def _both(
    tree: spiel_cr.CompiledGame,
    behaviour: approximate_nash_conv.Behaviours,
    method: str,
    config: SearchConfig,
    seed: int,
    leaf: str = "uniform",
) -> Row:
    """Both seats together."""
    settings = approximate_nash_conv.ResponseConfig(
        method, config, leaf=leaf, seed=seed
    )
    return approximate_nash_conv.summary(
        [
            approximate_nash_conv.on_tree(tree, player, behaviour, settings)
            for player in (0, 1)
        ]
    )


def _shares_table(title: str) -> Callable[[list[Row]], str]:
    def table(rows: list[Row]) -> str:
        head = ["game", "opponent", "exact NashConv", "learn", "a state", "in all"]
        body = [
            [
                f"`{row['game']}`",
                f"`{row['policy']}`",
                f"{row['exact']:.6g}",
                f"{row['learn']:,}",
                f"{row['simulations']:,}",
                f"{row['total']:,.0f}",
                f"{row['seconds']:.1f}",
                f"{min(row['shares']):.2%}",
                f"{statistics.median(row['shares']):.2%}",
                f"{row['lbr']:.2%}",
            ]
            for row in rows
        ]
        head += ["seconds", "worst seed", "median", "LBR"]
        return f"{title}\n\n{grid(head, body, labels=2)}"

    return table


def _posteriors(seeds: int, scale: float) -> Iterator[Row]:
    """The same search from the exact belief, and from all histories alike."""
    for case in _SOLVED:
        if case.learn:
            continue
        tree = spiel_cr.compile_game(case.game)
        behaviour = approximate_nash_conv.opponent_behaviour(tree, case.policy)
        count = max(1, int(case.simulations * scale))
        for posterior in ("exact", "uniform"):
            config = SearchConfig(count, posterior=posterior)
            shares = [
                _both(tree, behaviour, "ismcts", config, seed)["share"]
                for seed in range(seeds)
            ]
            yield {**case._asdict(), "posterior": posterior, "shares": shares}


def _posterior_table(rows: list[Row]) -> str:
    body = [
        [
            f"`{row['game']}`",
            row["posterior"],
            f"{min(row['shares']):.2%}",
            f"{statistics.median(row['shares']):.2%}",
        ]
        for row in rows
    ]
    head = ["game", "histories drawn from", "worst seed", "median"]
    title = "With and without the exact posterior, against `cfr+(iterations=10)`:"
    return f"{title}\n\n{grid(head, body, labels=2)}"


def _speed(seeds: int, scale: float) -> Iterator[Row]:
    """Simulations a second beside OpenSpiel's searches, back to back, in one process.

    Everybody searches the same information states of a uniform match: ours all at once,
    OpenSpiel's one after another, with random rollouts.
    """
    count = max(1, int(_SPEED_SIMULATIONS * scale))
    game = spiel_cr.load_game(_SPEED_GAME)
    tree = spiel_cr.compile_game(game)
    behaviour = approximate_nash_conv.opponent_behaviour(tree, "uniform")
    states = _decisions(game, 40)
    for name, rate in (
        ("spiel_cr, batch=4096", lambda s: _rate_ours(tree, behaviour, 4096, s)),
        ("spiel_cr, batch=64", lambda s: _rate_ours(tree, behaviour, 64, s)),
        ("C++ ISMCTSBot", lambda s: _rate_cpp(game, states, count, s)),
        ("Python ISMCTSBot", lambda s: _rate_python(game, states[:10], count // 10, s)),
    ):
        rates = [rate(seed) for seed in range(max(3, seeds))]
        yield {"name": name, "rates": rates, "rate": statistics.median(rates)}


def _rate_ours(
    tree: spiel_cr.CompiledGame,
    behaviour: approximate_nash_conv.Behaviours,
    batch: int,
    seed: int,
) -> float:
    """All first decisions of player 0, long enough to be timed."""
    arrays = responder_tree.build(tree, 0, behaviour[1])
    infosets = tree.infosets[0]
    prior = ismcts_br.uniform_prior(arrays)
    roots = np.flatnonzero(infosets.decisions.parent == 0)
    config = SearchConfig(200_000 if batch > 64 else 20_000, batch=batch)
    arrays = jax.device_put(arrays)
    for timed in (False, True):
        table = ismcts_br.empty_table(arrays)
        begun = time.perf_counter()
        table, done = ismcts_br.search(
            arrays, table, prior, roots, jax.random.key(seed), config
        )
        jax.block_until_ready(table)
        if timed:
            return done / (time.perf_counter() - begun)
    raise AssertionError


def _decisions(game: pyspiel.Game, number: int) -> list[pyspiel.State]:
    """First decisions of player 0."""
    rng = np.random.default_rng(0)
    states: list[pyspiel.State] = []
    while len(states) < number:
        state = game.new_initial_state()
        while state.is_chance_node():
            actions, odds = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(int(rng.choice(actions, p=odds)))
        states.append(state)
    return states


def _rate_cpp(
    game: pyspiel.Game, states: list[pyspiel.State], count: int, seed: int
) -> float:
    bot = pyspiel.ISMCTSBot(
        seed,
        pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=seed),
        5.0,
        count,
        -1,
        pyspiel.ISMCTSFinalPolicyType.MAX_VISIT_COUNT,
        False,
        False,
    )
    begun = time.perf_counter()
    for state in states:
        bot.restart()
        bot.step(state)
    return count * len(states) / (time.perf_counter() - begun)


def _rate_python(
    game: pyspiel.Game, states: list[pyspiel.State], count: int, seed: int
) -> float:
    random = np.random.RandomState(seed)
    bot = ismcts.ISMCTSBot(
        game=game,
        uct_c=5.0,
        max_simulations=count,
        evaluator=mcts.RandomRolloutEvaluator(n_rollouts=1, random_state=random),
        random_state=random,
    )
    begun = time.perf_counter()
    for state in states:
        bot.step(state)
    return count * len(states) / (time.perf_counter() - begun)


def _speed_table(rows: list[Row]) -> str:
    cpp = next(row["rate"] for row in rows if row["name"].startswith("C++"))
    body = [
        [row["name"], f"{row['rate']:,.0f}", f"{row['rate'] / cpp:.2f}"] for row in rows
    ]
    head = ["search", "simulations/s", "÷ C++"]
    title = f"Speed on `{_SPEED_GAME}` (first decisions of player 0, random rollouts):"
    return f"{title}\n\n{grid(head, body)}"


class _Part(NamedTuple):
    """A table: how it is measured and how it is written."""

    measure: Callable[[int, float], Iterable[Row]]
    table: Callable[[list[Row]], str]


_PARTS: dict[str, _Part] = {
    "uniform": _Part(_shares(_UNIFORM), _shares_table("Against uniform random play:")),
    "solved": _Part(
        _shares(_SOLVED), _shares_table("Against CFR+ stopped after 10 iterations:")
    ),
    "chumps": _Part(_shares(_CHUMPS), _shares_table("Against chumps:")),
    "posterior": _Part(_posteriors, _posterior_table),
    "speed": _Part(_speed, _speed_table),
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
