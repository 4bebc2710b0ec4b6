"""Networks on games that are never compiled: nodes per second, and responses to them.

Every algorithm stops at the same number of nodes (decisions and ends). What it plays
then is judged exactly in the form of signals where the game has one round of signals
(part `exact`), else by best responses that are searched
(`spiel_cr.root_responses`) in both seats: the sum of what they win is a lower
bound of NashConv, up to its interval. Uniform play is judged in the same way, so that
one sees what the search finds where NashConv is known.

Each run is a process of its own with one thread; seconds are the processor's.

Run `python -m benchmarks.deep.uncompiled --help`. docs/deep.md has the tables.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import frame
from benchmarks.deep import signal_judging
from benchmarks.document import Column, table
from benchmarks.frame import Parser, Row, say
from benchmarks.holdem import HOLDEM
from spiel_cr.common.memory import peak_bytes
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.compilation.loading import load_game
from spiel_cr.deep.averages import ExactAverage
from spiel_cr.deep.config import PRESETS
from spiel_cr.deep.infosets import Seen
from spiel_cr.deep.policy import DeepPolicy
from spiel_cr.deep.self_play.config import SELF_PLAY_PRESETS
from spiel_cr.deep.self_play.learning import SelfPlay
from spiel_cr.deep.solver import DeepSolver
from spiel_cr.deep.tensors import Stepped, stepped
from spiel_cr.deep.traversal import Sampling, Strategy, Task, traverse
from spiel_cr.eval.players.exploiting import measured
from spiel_cr.root_responses.players import SeenPlayer
from spiel_cr.root_responses.setting import Setting
from spiel_cr.root_responses.table import TableResponder

GAMES = {
    "phantom ttt": "phantom_ttt",
    "dark hex 3x3": "dark_hex(board_size=3)",
    "liar's dice 2x5": "liars_dice(numdice=2,dice_sides=5)",
    "limit hold'em": HOLDEM,
}
UNIFORM = "uniform"
ALGORITHMS = tuple(dict.fromkeys((UNIFORM, *PRESETS, *SELF_PLAY_PRESETS)))
PARTS = ("speed", "responses", "exact")
# Of the part exact: one round of signals, and rules on arrays that give tensors.
SIGNALS = ("liar's dice 2x5",)
# Of the part speed, beside the games that are asked for.
COMPILED = "leduc, compiled"
SCHEMES = ("external", "outcome")
# A batch visits so many nodes at least, so that overheads count for little.
_NODES = 20_000


def _add_options(parser: Parser) -> None:
    parser.several("--parts", PARTS, "what is measured")
    parser.several("--games", GAMES, "games", ["phantom ttt", "dark hex 3x3"])
    chosen = [UNIFORM, "vr-deep-dcfr+", "mmd", "ppo"]
    parser.several("--algorithms", ALGORITHMS, "of the part responses", chosen)
    words = "of deep CFR, such as hidden=128"
    parser.strings("--settings", [], words)
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=[0], help="of each run (default 0)"
    )
    words = "decisions and ends of each algorithm's matches (default 1,000,000)"
    parser.add_argument("--nodes", type=int, default=1_000_000, help=words)
    words = "of the processor, for each seat's response (default 60)"
    parser.add_argument("--seconds", type=float, default=60.0, help=words)
    words = "that measure a response (default 20,000)"
    parser.add_argument("--matches", type=int, default=20_000, help=words)


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    """A process for each run."""
    for part in options.parts:
        speed = part == "speed"
        names = SCHEMES if speed else options.algorithms
        games = [x for x in options.games if part != "exact" or x in SIGNALS]
        for game in [*games, *([COMPILED] if speed else [])]:
            for seed in (0,) if speed else options.seeds:
                for name in names:
                    row = _one(part, game, name, seed, options)
                    say(f"{part}, {game}, {name}: {row}")
                    yield row


def _one(
    part: str, game: str, name: str, seed: int, options: argparse.Namespace
) -> Row:
    if part == "speed":
        found = frame.in_a_process(measure_speed, game, name)
    elif part == "exact":
        found = frame.in_a_process(
            measure_exact, game, name, options.settings, seed, options.nodes
        )
    else:
        found = frame.in_a_process(
            *(measure_responses, game, name, options.settings, seed),
            *(options.nodes, options.seconds, options.matches),
        )
    return {"part": part, "name": game, "preset": name, "seed": seed, **found}


def measure_speed(name: str, scheme: str) -> Row:
    """Nodes per second of traversals alone, with networks of two layers of 128 units.

    Args:
      name: of the game, one of `GAMES`, or `COMPILED`, for comparison.
      scheme: "external" or "outcome" sampling.
    """
    frame.one_thread()
    text = f"sd-cfr(sampling={scheme},traversals=4,hidden=128,layers=2,steps=5)"
    if name == COMPILED:
        solver = DeepSolver(compile_game("leduc_poker"), text, seed=0)
    else:
        source, knowledge = stepped(GAMES[name])
        solver = DeepSolver(source, text, seed=0, knowledge=knowledge)
    solver.run(1)
    sampling, count = Sampling(external=scheme == "external"), 4

    def sample(seed: int) -> int:
        task = Task(
            solver.source, solver.knowledge, solver.strategy, sampling, seed % 2
        )
        return traverse(task, count, np.random.default_rng(seed)).positions

    while sample(0) < _NODES:
        count *= 2
    # Programs are compiled for the sizes that are met.
    sample(1)
    begun = time.process_time()
    nodes = sum(sample(seed) for seed in range(2, 6))
    spent = time.process_time() - begun
    return {
        "game": str(solver.source.game),
        "traversals": count,
        "nodes": nodes,
        "cpu_seconds": spent,
        "peak_bytes": peak_bytes(),
    }


def measure_responses(
    name: str,
    algorithm: str,
    settings: Sequence[str],
    seed: int,
    nodes: int,
    seconds: float,
    matches: int,
) -> Row:
    """One run and the responses to it.

    Args:
      name: of the game, one of `GAMES`.
      algorithm: one of `ALGORITHMS`.
      settings: of deep CFR, such as "hidden=128".
      seed: of everything random.
      nodes: decisions and ends of the matches that it learns from.
      seconds: of the processor, for each seat's response.
      matches: to measure a response by.
    """
    frame.one_thread()
    way = stepped(GAMES[name])
    begun = time.process_time()
    strategy, did = train(way, algorithm, settings, seed, nodes)
    learned = time.process_time() - begun
    opponent = SeenPlayer(way.knowledge, strategy)
    setting = Setting(way.source, way.knowledge, opponent)
    responders = [TableResponder(setting, p, seed=seed + 1) for p in range(2)]
    for responder in responders:
        responder.learn(seconds, clock=time.process_time)
    game = load_game(GAMES[name])
    found = [measured(game, responder, matches, seed + 1) for responder in responders]
    widths = [one.half_width or 0.0 for one in found]
    return {
        "game": GAMES[name],
        "settings": list(settings),
        "nodes": did,
        "cpu_seconds": learned,
        "response_seconds": seconds,
        "matches": matches,
        "values": [one.mean for one in found],
        "simulations": sum(one.simulations for one in found),
        "infosets": sum(responder.infosets for responder in responders),
        "bound": sum(one.mean for one in found),
        "half_width": math.hypot(*widths),
        "peak_bytes": peak_bytes(),
    }


def measure_exact(
    name: str, algorithm: str, settings: Sequence[str], seed: int, nodes: int
) -> Row:
    """One run, and NashConv of what it plays, in the form of signals.

    Args:
      name: of the game, one of `SIGNALS`.
      algorithm, settings, seed, nodes: as of `measure_responses`.
    """
    frame.one_thread()
    begun = time.process_time()
    strategy, did = train(stepped(GAMES[name]), algorithm, settings, seed, nodes)
    learned = time.process_time() - begun
    return {
        "game": GAMES[name],
        "settings": list(settings),
        "nodes": did,
        "cpu_seconds": learned,
        "nash_conv": signal_judging.nash_conv(GAMES[name], strategy),
        "peak_bytes": peak_bytes(),
    }


def train(
    way: Stepped, algorithm: str, settings: Sequence[str], seed: int, nodes: int
) -> tuple[Strategy, int]:
    """What an algorithm plays after so many nodes, and how many it took."""
    source, knowledge = way
    if algorithm == UNIFORM:
        return _uniform, 0
    if algorithm in SELF_PLAY_PRESETS:
        # Its schedules are by decisions, so ends of matches cut them a little short.
        text = f"{algorithm}(schedule={nodes})"
        player = SelfPlay(source, text, seed=seed, knowledge=knowledge)
        while player.nodes < nodes:
            player.run(1)
        return player.strategy, player.nodes
    text = f"{algorithm}({','.join(settings)})" if settings else algorithm
    solver = DeepSolver(source, text, seed=seed, knowledge=knowledge)
    while solver.nodes < nodes:
        solver.run(1)
    average = solver.average()
    assert not isinstance(average, ExactAverage)
    policy = DeepPolicy(source.game, average)
    if policy.iterates != (1, 1):
        raise ValueError(
            f"algorithm={algorithm!r}: a bank's mixture depends on what was played "
            f"before; add --settings averaging=network"
        )

    def strategy(player: int, seen: Seen) -> np.ndarray:
        found: np.ndarray = policy.strategies(seen.rows, seen.legal, player)[0]
        return found

    return strategy, solver.nodes


def _uniform(player: int, seen: Seen) -> np.ndarray:
    found: np.ndarray = seen.legal / seen.legal.sum(axis=1)[:, None]
    return found


def markdown(rows: Sequence[Row]) -> str:
    """Tables: of speed, of responses, and of exact judgements."""
    text = ""
    for part, own in frame.group_by(rows, "part").items():
        columns = _COLUMNS[part]
        if part == "responses":
            # Runs of one algorithm by their nodes: a curve.
            names = list(dict.fromkeys((row["name"], row["preset"]) for row in own))
            own = sorted(
                own,
                key=lambda row: (
                    names.index((row["name"], row["preset"])),
                    row["nodes"],
                    row["seed"],
                ),
            )
        text += f"**{part}**\n\n{table(own, columns, labels=2)}\n"
    return text


_SPEEDS: dict[str, Column] = {
    "game": "{name}",
    "sampling": "{preset}",
    "traversals": "{traversals:,}",
    "nodes": "{nodes:,}",
    "nodes/s": lambda row: f"{row['nodes'] / row['cpu_seconds']:,.0f}",
    "peak memory, MB": lambda row: f"{row['peak_bytes'] / 1e6:,.0f}",
}
_RESPONSES: dict[str, Column] = {
    "game": "{name}",
    "algorithm": "{preset}",
    "seed": "{seed}",
    "nodes": "{nodes:,}",
    "s": "{cpu_seconds:.0f}",
    "simulations": "{simulations:,}",
    "responses win, seat 0": lambda row: f"{row['values'][0]:+.3f}",
    "seat 1": lambda row: f"{row['values'][1]:+.3f}",
    "NashConv at least": lambda row: f"{row['bound']:.3f} ± {row['half_width']:.3f}",
}
_EXACT: dict[str, Column] = {
    "game": "{name}",
    "algorithm": "{preset}",
    "seed": "{seed}",
    "nodes": "{nodes:,}",
    "s": "{cpu_seconds:.0f}",
    "NashConv": "{nash_conv:.4f}",
}
_COLUMNS = {"speed": _SPEEDS, "responses": _RESPONSES, "exact": _EXACT}


def _group(row: Row) -> tuple[Any, ...]:
    names = ("part", "name", "preset", "seed", "nodes", "response_seconds")
    return tuple(str(row.get(name)) for name in names)


BENCHMARK = frame.Benchmark(
    name="deep.uncompiled",
    description="Trains networks on games that are never compiled, and judges them.",
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables="deep uncompiled",
    page="deep.md",
    group=_group,
)


if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
