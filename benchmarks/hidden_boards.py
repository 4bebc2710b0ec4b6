"""Every kind of solver on hidden boards, judged exactly; one of them beside plain C.

Each run is a process of its own. Its seconds are those of the processor, so that other
work on the machine does not count; building the game and judging do not, either. Beside
C, which has one thread, seconds are those of the clock too, taken in turns. Nodes
are decisions and ends that trajectories visit. See docs/measurements/hidden_boards.md.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median

import numpy as np

import spiel_cr
from benchmarks.c_reference import compiler
from benchmarks.document import Column, Panels, over_seeds
from benchmarks.frame import (
    Benchmark,
    Option,
    Part,
    Picture,
    Row,
    Table,
    one_thread,
    plan,
    product,
    say,
)
from benchmarks.games import string_of
from benchmarks.plain_worlds import PlainWorlds
from spiel_cr.common.errors import ImperfectRecallError
from spiel_cr.common.memory import peak_bytes
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.worlds import world_game
from spiel_cr.games.worlds.game import WorldGame, shared_worlds
from spiel_cr.judging.responding import respond
from spiel_cr.judging.response_config import ResponseConfig
from spiel_cr.judging.responses.ismcts_config import SearchConfig
from spiel_cr.judging.targets import load_target
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import Behaviours, uniform_behaviour
from spiel_cr.policies.world_policy import (
    MoreKnowledgeError,
    WorldPolicy,
    behaviour_from_policy,
    normalised,
)
from spiel_cr.solvers import solve
from spiel_cr.solvers.algorithms import MCCFR, find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import PRESETS

# Of each process; and the arithmetic of full-width solvers.
_LIMIT, _DTYPE = "12GB", "float32"
# Of searches in matches.
_ISMCTS = ResponseConfig("ismcts", SearchConfig(simulations=50), matches=40)
OPTIONS = {
    "games": Option(("phantom_ttt",), "short names, or OpenSpiel strings"),
    "algorithms": Option(
        ("pcfr+", "cfr+", "dcfr", "os-mccfr", "vr-mccfr", "evr-mccfr"),
        "with settings if you like; schedule=budget is the budget of nodes",
    ),
    "seeds": Option((0,), "of each run that draws", least=0),
    "seconds": Option(600.0, "of the processor; of solvers that train no networks"),
    "nodes": Option(1e6, "of solvers that train networks"),
    "points": Option(1, "of a run's curve, the last one the budget"),
    "growth": Option(4.0, "from one point's budget to the next one's"),
    "rounds": Option(15, "of two iterations each, in turns with C"),
    "search_seconds": Option(10.0, "for a policy and one instrument"),
}


def measure(
    game: str,
    algorithm: str,
    seed: int,
    most: float,
    what: str,
    points: int,
    growth: float,
    dtype: str | None,
) -> Row:
    """Runs a solver to a budget; exact NashConv of its result on the way.

    Args:
      game: OpenSpiel string or short name.
      algorithm: any.
      seed: of what draws.
      most: the budget.
      what: it is of, "seconds" or "nodes".
      points: of the curve.
      growth: from one point's budget to the next one's.
      dtype: of the arithmetic; None: the algorithm's own.
    """
    one_thread()
    name = string_of(game)
    layout = spiel_cr.Layout("worlds" if dtype else "stepped", memory_limit=_LIMIT)
    goal = spiel_cr.Goal(seconds=1e9)
    task = solve.task_of(algorithm, goal, layout=layout, dtype=dtype, seed=seed)
    run = task.run_of(solve.lay_out(name, task))
    spent = 0.0
    curve: list[Row] = []
    while len(curve) < points:
        begun = time.process_time()
        run.solver.run(1)
        spent += time.process_time() - begun
        nodes = getattr(run.solver, "nodes", 0)
        done = spent if what == "seconds" else nodes
        if done < most / growth ** (points - 1 - len(curve)):
            continue
        if dtype:
            nash_conv = run.nash_conv()
        else:
            policy = run.outcome()["held"].policy(None)
            nash_conv = spiel_cr.nash_conv(name, policy, memory_limit=_LIMIT)
        point = {"seconds": spent, "nodes": nodes, "iterations": run.iterations}
        curve.append({**point, "nash_conv": nash_conv})
        say(f"{curve[-1]}")
    return {**curve[-1], "curve": curve, "peak_bytes": peak_bytes()}


def measure_beside_c(game: str, rounds: int) -> Row:
    """An iteration of PCFR+, both players, in float32: ours and in plain C.

    Ours has all threads that it takes by itself, C has one.

    Args:
      game: OpenSpiel string or short name.
      rounds: of two iterations each, in turns; medians count.

    Raises:
      RuntimeError: there is no C compiler; told before the game is laid out.
    """
    if compiler() is None:
        raise RuntimeError("no C compiler (cc) on the path; give --parts solve")
    laid = world_game(string_of(game), memory_limit=_LIMIT)
    plain = PlainWorlds(laid, _DTYPE)
    ours = cfr.make_solver(laid.form, config=PRESETS["pcfr+"], dtype=_DTYPE)
    spent: dict[str, list[float]] = {}
    for _ in range(rounds + 1):
        for who, runner in (("ours", ours), ("c", plain)):
            clock, processor = time.perf_counter(), time.process_time()
            runner.run(2)
            for what, since in (
                ("clock", time.perf_counter() - clock),
                ("processor", time.process_time() - processor),
            ):
                spent.setdefault(f"{who}_{what}", []).append(since / 2)
    # The first round meets cold caches.
    found = {what: median(seconds[1:]) for what, seconds in spent.items()}
    kinds = ("clock", "processor")
    ratios = {f"{k}_ratio": found[f"c_{k}"] / found[f"ours_{k}"] for k in kinds}
    return {**found, **ratios, "all_seconds": spent}


def measure_searches(game: str, search_seconds: float, seed: int) -> Row:
    """What searches win from ten policies and more, beside the exact best responses.

    Args:
      game: OpenSpiel string or short name.
      search_seconds: for both seats of a policy and one instrument.
      seed: of what is drawn.
    """
    name = string_of(game)
    laid = shared_worlds(open_game(name), _LIMIT)
    each: list[Row] = []
    for words, behaviour in _policies(laid, name, search_seconds, seed):
        low, high = best_responses.value_bounds(laid.form, behaviour)
        policy = WorldPolicy(laid, behaviour)
        for instrument in ("search", "table", "ismcts"):
            seats = _won(name, policy, instrument, search_seconds, seed)
            for seat, exact in zip(seats, (high, -low), strict=True):
                above = seat["at_least"] > exact + 1e-9
                each.append({"policy": words, "exact": exact, **seat, "above": above})
                say(f"{each[-1]}")
    return {"each": each}


def _won(
    name: str, policy: WorldPolicy, instrument: str, seconds: float, seed: int
) -> list[Row]:
    """What responses of one instrument win, for both seats."""
    if instrument != "ismcts":
        found = spiel_cr.exploit(
            name, policy, seconds=seconds, seed=seed, instruments=(instrument,)
        )
        return [{**seat._asdict(), "instrument": instrument} for seat in found.seats]
    target, config = load_target(policy, name), _ISMCTS
    seats = [respond(target, player, config, states=True) for player in range(2)]
    return [
        {
            "instrument": f"{instrument}, {config.search.simulations} simulations",
            "player": seat.player,
            "value": seat.value,
            "at_least": seat.value - seat.half_width,
            "matches": len(seat.returns),
        }
        for seat in seats
    ]


def _policies(
    laid: WorldGame, name: str, seconds: float, seed: int
) -> Iterator[tuple[str, Behaviours]]:
    """Policies of many kinds, as action probabilities float [S] of both players."""
    own = laid.sides[0].decisions, laid.sides[1].decisions
    yield "uniform", (uniform_behaviour(own[0]), uniform_behaviour(own[1]))
    for words, place in (("first action", 0), ("last action", -1)):
        behaviour = np.zeros(own[0].num_sequences), np.zeros(own[1].num_sequences)
        for part, side in zip(behaviour, own, strict=True):
            part[0] = 1.0
            part[side.first_sequence + place % side.num_actions] = 1.0
        yield words, behaviour
    draws = np.random.default_rng(seed)
    for words, power in (("drawn", 1.0), ("drawn, nearly pure", 8.0)):
        first, second = (
            normalised(part, draws.exponential(size=part.num_sequences) ** power)
            for part in own
        )
        yield words, (first, second)
    solver = cfr.make_solver(laid.form, config=PRESETS["pcfr+"], dtype=_DTYPE)
    for more, iterations in ((1, 1), (3, 4), (12, 16), (24, 40)):
        solver.run(more)
        yield f"pcfr+, {iterations}", _both(solver.average_behaviour)
    yield "the last iterate of it", _both(solver.current_behaviour)
    goal, layout = spiel_cr.Goal(seconds=seconds), spiel_cr.Layout("stepped")
    try:
        table = spiel_cr.solve(name, "os-mccfr", goal, layout=layout, seed=seed)
        played = behaviour_from_policy(laid, table.average_policy())
    except (ImperfectRecallError, MoreKnowledgeError):
        return  # the strings of dark_hex tell of turns, or forget
    yield "os-mccfr", played


def _both(read: Callable[[int], np.ndarray]) -> Behaviours:
    return read(0), read(1)


def _found(rows: Sequence[Row]) -> list[Row]:
    return [{"game": row["game"], **found} for row in rows for found in row["each"]]


def _failures(rows: Sequence[Row]) -> Iterator[str]:
    """Bounds that are above what the exact judge says."""
    for row in rows:
        for found in row.get("each", ()):
            if found["above"]:
                yield f"{row['game']}: {found}"


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    shared = {"points": options.points, "growth": options.growth}
    for row in product(
        game=options.games, algorithm=options.algorithms, seed=options.seeds
    ):
        family = find(row["algorithm"].partition("(")[0]).family
        networks = family.networks
        name = row["algorithm"].replace("budget", f"{options.nodes:.0f}")
        yield {
            **row,
            "algorithm": name,
            "most": options.nodes if networks else options.seconds,
            "what": "nodes" if networks else "seconds",
            "dtype": None if networks or family is MCCFR else _DTYPE,
            **shared,
        }


def _curves(rows: Sequence[Row]) -> Panels:
    """Medians over seeds, point by point."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for line in over_seeds(rows, ("game", "algorithm")):
        points = zip(*(row["curve"] for row in line["each"]), strict=True)
        panels.setdefault(line["game"], {})[line["algorithm"]] = [
            (median(p["seconds"] for p in some), median(p["nash_conv"] for p in some))
            for some in points
        ]
    return panels


_COLUMNS: dict[str, Column] = {
    "game": "{game}",
    "algorithm": "`{algorithm}`",
    "seed": "{seed}",
    "nodes": "{nodes:,}",
    "iterations": "{iterations:,}",
    "s": "{seconds:.0f}",
    "NashConv": "{nash_conv:.4f}",
}
_BESIDE_C: dict[str, Column] = {
    "game": "{game}",
    "ours, s": "{ours_clock:.3f}",
    "C, s": "{c_clock:.3f}",
    "times C's speed": "{clock_ratio:.2f}",
    "ours, processor s": "{ours_processor:.3f}",
    "C, processor s": "{c_processor:.3f}",
    "times C's speed by processor": "{processor_ratio:.2f}",
}
_SEARCHED: dict[str, Column] = {
    "game": "{game}",
    "policy": "{policy}",
    "instrument": "{instrument}",
    "seat": "{player}",
    "exact": "{exact:.6f}",
    "won": "{value:.4f}",
    "at least": "{at_least:.4f}",
    "matches": "{matches:,}",
}
BENCHMARK = Benchmark(
    "hidden_boards",
    "Measure exact NashConv of every kind of solver on hidden boards.",
    OPTIONS,
    {
        "solve": Part(
            measure,
            _plan,
            (Table("Exact NashConv.", _COLUMNS, 3),),
            (Picture("hidden-boards.png", "processor seconds", _curves),),
            budget=("points", "growth"),
        ),
        "plain-c": Part(
            measure_beside_c,
            plan(game="games", rounds="rounds"),
            (Table("An iteration of PCFR+ beside one thread of C.", _BESIDE_C),),
            budget=("rounds",),
        ),
        "searches": Part(
            measure_searches,
            plan(game="games", search_seconds="search_seconds", seed=(0,)),
            (Table("Best responses, exact and searched.", _SEARCHED, 3, _found),),
            budget=("search_seconds",),
        ),
    },
    failures=_failures,
)
