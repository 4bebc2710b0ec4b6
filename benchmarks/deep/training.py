"""Deep CFR and its successors on games whose NashConv is exact, beside OpenSpiel's.

Each run is a process of its own with one thread. Its seconds are those of the
processor, as the operating system counts them, so that other work on the machine does
not count; compiling does, except where a run ends by its seconds: there programs are
compiled before, and the average network is fitted once, within the seconds. What else
judging takes is left out. Nodes are decisions and ends
that trajectories visit, episodes are trajectories of both players.

Run `python -m benchmarks.deep --help`. docs/deep.md has the tables.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks import frame
from benchmarks.document import Column, grid, table
from benchmarks.frame import Parser, Row, say
from spiel_cr.common import parameters
from spiel_cr.common.memory import peak_bytes
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.deep.config import PRESETS, DeepConfig, parse_deep
from spiel_cr.deep.solver import DeepSolver
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.eval.contestants import registry
from spiel_cr.eval.contestants.protocol import SteppingAdapter
from spiel_cr.policies.best_responses import value_bounds

GAMES = {
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
    "liar's dice 1x4": "liars_dice(numdice=1,dice_sides=4)",
    "goofspiel 4": frame.goofspiel(4),
}
PARTS = ("leduc", "kuhn", "others", "seconds", "profile")
ALGORITHMS = tuple(name for name, own in PRESETS.items() if isinstance(own, DeepConfig))


class Budget(NamedTuple):
    """When a run ends: before the iteration that would go beyond it.

    Attributes:
      what: of the solver's counts: "nodes", "episodes" or "cpu_seconds".
      most: of it.
    """

    what: str
    most: float


# Published figures are by nodes or by episodes.
BUDGETS = {
    name: Budget("episodes" if name.startswith("vr-") else "nodes", most)
    for name in ALGORITHMS
    for most in (1e6 if name.startswith("vr-") else 1e7,)
}
KUHN = Budget("episodes", 1e6)
# Parts whose runs have a curve by nodes or episodes.
_BY_NODES = ("kuhn", "leduc", "games")
# Points of a run's curve.
_POINTS = 4


def _add_options(parser: Parser) -> None:
    parser.several("--parts", PARTS, "what is measured")
    parser.several("--algorithms", ALGORITHMS, "presets")
    parser.strings("--settings", [], "of all presets, such as hidden=128")
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=[0], help="of each run (default 0)"
    )
    words = "of the processor, for the part seconds (default 60)"
    parser.add_argument("--seconds", nargs="+", type=float, default=[60.0], help=words)
    words = "in the part seconds (default: both)"
    parser.strings("--who", ["sd-cfr", "OpenSpiel"], words)
    parser.several(
        "--games", GAMES, "of the part seconds", ["leduc", "liar's dice 1x4"]
    )


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    """A process for each run."""
    for seed in options.seeds:
        for part in options.parts:
            for game, name, budget in _runs(part, options):
                for row in _one(part, game, name, budget, seed, options):
                    say(f"{part}, {game}, {name}: {row}")
                    yield row


def _one(
    part: str,
    game: str,
    name: str,
    budget: Budget,
    seed: int,
    options: argparse.Namespace,
) -> Iterator[Row]:
    if name == "OpenSpiel":
        found = frame.in_a_process(measure_openspiel, game, seed, budget.most)
    else:
        found = frame.in_a_process(
            measure, game, _text(name, options.settings), seed, budget
        )
    yield {"part": part, "name": game, "preset": name, "seed": seed, **found}


def _text(name: str, settings: Sequence[str]) -> str:
    """An algorithm that keeps the exact average besides its own."""
    config = parse_deep(f"{name}({','.join(settings)})")
    kinds = "+".join(dict.fromkeys((*config.averages, "exact")))
    return f"{name}({','.join([*settings, f'averaging={kinds}'])})"


def _runs(part: str, options: argparse.Namespace) -> list[tuple[str, str, Budget]]:
    """Game, algorithm and budget of each run of a part."""
    if part == "kuhn":
        return [("kuhn", name, KUHN) for name in options.algorithms]
    if part == "seconds":
        return [
            (game, name, Budget("cpu_seconds", most))
            for game in options.games
            for most in options.seconds
            for name in options.who
        ]
    if part == "profile":
        return [
            ("leduc", name, Budget("cpu_seconds", 20.0)) for name in options.algorithms
        ]
    games = ["leduc"] if part == "leduc" else ["liar's dice 1x4", "goofspiel 4"]
    return [
        (game, name, BUDGETS[name]) for game in games for name in options.algorithms
    ]


def measure(name: str, algorithm: str, seed: int, budget: Budget) -> Row:
    """One run of ours.

    Args:
      name: of the game, one of `GAMES`.
      algorithm: for `parse_deep`.
      seed: of everything random.
      budget: when it ends.
    """
    frame.one_thread()
    tree = compile_game(GAMES[name])
    by_seconds = budget.what == "cpu_seconds"
    if by_seconds:
        # Its programs are kept.
        warm = DeepSolver(tree, algorithm, seed=seed + 1)
        warm.run(2)
        warm.average()
    begun = time.process_time()
    solver = DeepSolver(tree, algorithm, seed=seed)
    judging, judged, curve = 0.0, -1, []

    def spent() -> float:
        if by_seconds:
            return time.process_time() - begun - judging
        return float(getattr(solver, budget.what))

    def judge() -> None:
        nonlocal judging, judged
        start = time.process_time()
        judged = solver.iterations
        if by_seconds:
            solver.average()
        made = time.process_time() - start
        curve.append(
            {
                "iterations": solver.iterations,
                "nodes": solver.nodes,
                "episodes": solver.episodes,
                "cpu_seconds": start + made - begun - judging,
                "nash_conv": {k: solver.nash_conv(k) for k in solver.config.averages},
            }
        )
        judging += time.process_time() - start

    last = clock = cpu = 0.0
    while solver.iterations < 2 or spent() + last <= budget.most:
        before = spent()
        start = time.perf_counter(), time.process_time()
        solver.run(1)
        clock += time.perf_counter() - start[0]
        cpu += time.process_time() - start[1]
        # The first one may compile, which the later ones do not.
        last = spent() - before if solver.iterations > 1 else 0.0
        if spent() > budget.most * (len(curve) + 1) / _POINTS:
            judge()
    if judged < solver.iterations:
        judge()
    return {
        "game": GAMES[name],
        "algorithm": algorithm,
        "budget": list(budget),
        "curve": curve,
        **curve[-1],
        "seconds_of": solver.seconds_of,
        "cpu_share": cpu / clock,
        "judging_cpu_seconds": judging,
        "gflop": gflop(solver),
        "peak_bytes": peak_bytes(),
    }


def gflop(solver: DeepSolver) -> dict[str, float]:
    """What the fits so far took, in 1e9 operations: by name as `seconds_of`.

    A step takes 6 for each weight and row: a product and a sum, forwards, and twice as
    many backwards.
    """
    config, knowledge = solver.config, solver.knowledge
    if config.network == "table" or knowledge.num_infosets is None:
        return {}

    def weights(features: int) -> int:
        wide = [features, *[config.hidden] * config.layers, knowledge.num_actions]
        return sum(a * b for a, b in zip(wide[:-1], wide[1:], strict=True))

    rows = sum(min(count, config.batch) for count in knowledge.num_infosets)
    nets = 1 + (config.predictive and config.memory == "reservoir")
    fits = rows * weights(knowledge.num_features) * config.steps * nets
    found = {"fit": 6e-9 * fits * solver.iterations}
    if config.values != "sampled":
        moves = config.critic_batch * config.critic_steps
        moves *= weights(2 * knowledge.num_features)
        found["critic"] = 6e-9 * moves * solver.iterations
    return found


def measure_openspiel(name: str, seed: int, seconds: float) -> Row:
    """OpenSpiel's own Deep CFR, in JAX, for so many seconds of the processor.

    Programs are compiled before. The policy network is fitted in the last iteration
    alone, with as many steps as ours, and that counts.

    Args:
      name: of the game, one of `GAMES`.
      seed: of everything random.
      seconds: of the processor; the last iteration may go beyond.
    """
    frame.one_thread()
    instance = GameInstance(GAMES[name])
    adapter = registry.find("openspiel-deep-cfr").make(instance, seed)
    assert isinstance(adapter, SteppingAdapter)
    solver: Any = adapter.policy()
    fit, own = solver._learn_strategy_network, solver._advantage_network_train_steps
    fits = -(-PRESETS["deep-cfr"].average_steps // own)
    begun = time.process_time()
    iterations = 1
    solver._learn_strategy_network = lambda: 0.0
    while time.process_time() - begun < seconds:
        adapter.run(1)
        iterations += 1
    solver._learn_strategy_network = lambda: [fit() for _ in range(fits)][-1]
    adapter.run(1)
    spent = time.process_time() - begun
    low, high = value_bounds(instance.tree.form, adapter.strategy())
    return {
        "game": GAMES[name],
        "algorithm": "OpenSpiel's deep_cfr (JAX)",
        "budget": ["cpu_seconds", seconds],
        "iterations": iterations,
        "cpu_seconds": spent,
        "nash_conv": {"network": high - low},
        "peak_bytes": peak_bytes(),
    }


def markdown(rows: Sequence[Row]) -> str:
    """Tables: a line per part, game and algorithm; medians of the seeds."""
    text = ""
    for part, own in frame.group_by(rows, "part").items():
        lines = []
        for game, of_game in frame.group_by(own, "name").items():
            for _, runs in _alike(of_game).items():
                lines.append(_line(game, runs))
        columns = _PROFILE if part == "profile" else _COLUMNS
        text += f"**{part}**\n\n{table(lines, columns, labels=2)}\n"
        if part in _BY_NODES:
            for game, of_game in frame.group_by(own, "name").items():
                text += _curves(game, of_game)
            text += "Shares of the time by the clock, that of judging by the processor:"
            text += f"\n\n{table(lines, _SHARES, labels=2)}\n"
    return text


def _alike(rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    """Runs that differ in the seed alone."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = row["preset"], row["algorithm"], str(row["budget"])
        groups.setdefault(key, []).append(row)
    return groups


def _line(game: str, runs: Sequence[Row]) -> Row:
    """Medians of runs that differ in the seed alone."""
    line: Row = {"game": game, "preset": runs[0]["preset"], "seeds": len(runs)}
    if line["preset"] in ALGORITHMS:
        said = parameters.parse(runs[0]["algorithm"], "algorithm")
        line["preset"] = said.without("averaging")
    for key in ("iterations", "nodes", "episodes", "cpu_seconds", "peak_bytes"):
        line[key] = _middle([row.get(key) for row in runs])
    for kind in ("network", "bank", "exact"):
        line[kind] = _middle([row["nash_conv"].get(kind) for row in runs])
    best = "network" if line["exact"] is None else "exact"
    line["of_seeds"] = {row["seed"]: row["nash_conv"][best] for row in runs}
    timed = [_rates(row) for row in runs if row.get("seconds_of")]
    for key in timed[0] if timed else ():
        line[key] = _middle([rates.get(key) for rates in timed])
    return line


def _rates(row: Row) -> dict[str, float]:
    """Rates, and shares of the time in percent, of one run.

    Rates are per second of the processor, if each part had the same share of it.
    """
    spent = row["seconds_of"]
    share = row.get("cpu_share", 1.0)
    found = {"visits_rate": row["nodes"] / (share * spent["traversal"])}
    for what, done in row["gflop"].items():
        found[f"{what}_rate"] = done / (share * spent[what])
    for what, seconds in spent.items():
        found[f"{what}_share"] = 100 * seconds / sum(spent.values())
    if judging := row.get("judging_cpu_seconds"):
        found["judging_share"] = 100 * judging / (row["cpu_seconds"] + judging)
    return found


def _middle(found: Sequence[float | None]) -> float | None:
    """The median of what there is."""
    known = [one for one in found if one is not None]
    return statistics.median(known) if known else None


def _average(kind: str) -> Column:
    """NashConv of an average, and half of it in thousandths."""
    return lambda row: f"{row[kind]:.4f} ({500 * row[kind]:.1f})"


def _each_seed(row: Mapping[str, Any]) -> str:
    """Half of NashConv in thousandths, of each seed."""
    found = sorted(row["of_seeds"].items())
    return ", ".join(f"{seed}: {500 * value:.1f}" for seed, value in found)


_COLUMNS: dict[str, Column] = {
    "game": "{game}",
    "algorithm": "{preset}",
    "seeds": "{seeds}",
    "iterations": "{iterations:,.0f}",
    "nodes": "{nodes:,.0f}",
    "episodes": "{episodes:,.0f}",
    "s": "{cpu_seconds:.0f}",
    "network": _average("network"),
    "bank": _average("bank"),
    "exact": _average("exact"),
    "of the seeds": _each_seed,
}
_PARTS: dict[str, Column] = {
    "traversal, %": "{traversal_share:.0f}",
    "fit, %": "{fit_share:.0f}",
    "critic, %": "{critic_share:.0f}",
    "average, %": "{average_share:.0f}",
}
_PROFILE: dict[str, Column] = {
    "game": "{game}",
    "algorithm": "{preset}",
    "nodes/s": "{visits_rate:,.0f}",
    **_PARTS,
    "GFLOP/s, fit": "{fit_rate:.1f}",
    "GFLOP/s, critic": "{critic_rate:.1f}",
    "peak memory, MB": lambda row: f"{row['peak_bytes'] / 1e6:,.0f}",
}
_SHARES: dict[str, Column] = {
    "game": "{game}",
    "algorithm": "{preset}",
    **_PARTS,
    "judging, %": "{judging_share:.0f}",
}


def _curves(game: str, rows: Sequence[Row]) -> str:
    """NashConv of the exact average on the way, a line per algorithm."""
    body = []
    for runs in _alike(rows).values():
        name = _line(game, runs)["preset"]
        points = list(zip(*(row["curve"] for row in runs), strict=False))
        found = [
            statistics.median(point["nash_conv"]["exact"] for point in some)
            for some in points
        ]
        body.append([name, *(f"{value:.4f}" for value in found)])
    most = max(map(len, body))
    head = ["algorithm", *(f"{k} / {most - 1}" for k in range(1, most))]
    filled = [[*line, *["–"] * (most - len(line))] for line in body]
    said = f"{game}: NashConv of the exact average on the way, by shares of the run"
    return f"{said}:\n\n{grid(head, filled)}\n"


BENCHMARK = frame.Benchmark(
    name="deep",
    description="Trains deep CFR and its successors on small games.",
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    group=lambda row: tuple(
        str(row[key]) for key in ("part", "name", "algorithm", "seed", "budget")
    ),
)
