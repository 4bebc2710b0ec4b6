"""The command `resolve`: a whole game resolved continually, beside baselines."""

import argparse
import dataclasses
import time
from typing import Any, get_args

import spiel_cr
from spiel_cr.resolving.continual import need_of
from spiel_cr.resolving.gadget_fronts import Gadget
from spiel_cr.resolving.leaves.leaf_strings import DEFAULT, LEAVES, DepthUnit
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.representation import GameOptions, represent

from ..adapters import registry
from ..comparison.measure import LastGame, Run, measure_run
from .command import Arguments, Commands, add_command
from .solve import (
    add_form_option,
    add_solver_options,
    given_locks,
    report_result,
    say_form,
)

_FIGURES = ("iterations", "seconds", "compile_seconds", "nash_conv")
# A run by time needs some.
_LEAST_SECONDS = 0.01
_DEMO_GAME = "python_ii_goofspiel(num_cards=4)"


def add(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "resolve",
        _resolve,
        "resolve a whole game continually, in both roles; without --game, resolve "
        "4-card II-goofspiel and compare with what OpenSpiel bundles",
    )
    text = f"OpenSpiel game string (default {_DEMO_GAME})"
    parser.option("--game", text, required=False)
    add_solver_options(parser)
    add_form_option(parser)
    text = "look N moves or rounds ahead in every solve, not to the end of the game"
    parser.option("--depth", text, type=int)
    parser.option(
        "--depth-unit",
        "what --depth counts; a round ends where chance moves after a decision, and "
        "moves from the start make one cut for the whole game",
        "moves",
        choices=get_args(DepthUnit),
    )
    parser.option(
        "--leaf",
        f"what the game is worth where --depth ends it: {', '.join(LEAVES)} (default "
        f"{DEFAULT})",
        metavar="LEAF",
    )
    text = "what keeps the opponent from gaining"
    parser.option("--gadget", text, "cfrd", choices=get_args(Gadget))
    parser.option(
        "--baselines",
        "also run bundled CFR+ for as many iterations, solve by CFR+ for the seconds "
        "that takes, outcome-sampling MCCFR for the seconds of resolving, and uniform "
        "(default: only without --game)",
        action=argparse.BooleanOptionalAction,
    )


def _resolve(arguments: Arguments) -> dict[str, object]:
    game = _DEMO_GAME if arguments.game is None else arguments.game
    iterations = 1000 if arguments.iterations is None else arguments.iterations
    # Before the game is walked for the judge; `resolve` checks, too.
    find(arguments.algorithm, families=(CFR,))
    ahead = arguments.given("depth", "depth_unit", "leaf")
    settings = ResolvingConfig(
        arguments.algorithm, iterations, gadget=arguments.gadget, **ahead
    )
    limits = arguments.given("memory_limit", "cache")
    options = GameOptions(arguments.form, locks=given_locks(arguments), **limits)
    started = time.perf_counter()
    need = need_of(settings, locks=options.locks is not None)
    form, reason = represent(game, options, need, progress=True)
    say_form(form, reason, arguments)
    walking = time.perf_counter() - started
    result = spiel_cr.resolve(
        form,
        settings,
        options=options,
        dtype=arguments.dtype or "float64",
        progress=True,
    )
    result = dataclasses.replace(result, build_seconds=result.build_seconds + walking)
    report = report_result(game, result, arguments)
    report |= {"form": reason.form, "gadget": arguments.gadget}
    if arguments.depth is not None:
        report |= {**ahead, "leaf": arguments.leaf or DEFAULT}
    if arguments.baselines or (arguments.baselines is None and arguments.game is None):
        report["baselines"] = _compare(game, result, report, arguments.seed)
    return report


def _compare(
    game: str, result: spiel_cr.Result, report: dict[str, object], seed: int
) -> list[dict[str, object]]:
    """Runs what OpenSpiel bundles, and `solve`, on the same game; prints a table.

    OpenSpiel's CFR+ has the iterations of one solve, and `solve` the seconds that these
    took. Sampling gets all the time that resolving took, compiling included.
    """
    total = result.seconds + result.compile_seconds + result.build_seconds
    cache = LastGame()
    bundled = _measured(cache, Run(game, "openspiel-cfr+", 0, None, result.iterations))
    seconds = max(float(bundled["seconds"]), _LEAST_SECONDS)
    rows = [
        bundled,
        _measured(cache, Run(game, "cfr+", seed, seconds, None)),
        _measured(cache, Run(game, "openspiel-os-mccfr", seed, total, None)),
        _measured(cache, Run(game, "uniform", 0, None, 1)),
    ]
    ours = {
        "name": f"spiel_cr resolve ({result.algorithm})",
        "iterations": result.iterations,
        "seconds": result.seconds + result.build_seconds,
        "compile_seconds": result.compile_seconds,
        "nash_conv": report["nash_conv"],
    }
    heads = f"{'NashConv':>10}{'iterations':>12}{'seconds':>9}{'compiling':>11}"
    print(f"\n{'':<40}{heads}")
    for row in (rows[1], rows[0], ours, *rows[2:]):
        print(
            f"{row['name']:<40}{row['nash_conv']:>10.2e}{row['iterations']:>12,}"
            f"{row['seconds']:>9.2f}{row['compile_seconds']:>11.2f}"
        )
    return rows


def _measured(cache: LastGame, run: Run) -> dict[str, Any]:
    """A run's row of the table.

    Raises:
      ValueError: it gave no strategy.
    """
    record = measure_run(cache, run)
    title = registry.find(run.algorithm).title
    if record["nash_conv"] is None:
        raise ValueError(f"{title}: {record['error'] or record['missing']}")
    return {"name": title, **{name: record[name] or 0 for name in _FIGURES}}
