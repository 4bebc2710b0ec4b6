"""The command `resolve`: a whole game resolved continually, beside baselines."""

import argparse
import dataclasses
import time
from typing import get_args

import spiel_cr
from spiel_cr.cfr.config import parse_algorithm
from spiel_cr.common.checks import check_iterations
from spiel_cr.lookahead.leaf_strings import DEFAULT, LEAVES, check_lookahead
from spiel_cr.resolving.gadget import Gadget
from spiel_cr.solving import forms

from ..comparison.measure import Run, measure_run
from ..contestants import registry
from .command import Commands, add_command, add_depth_options, given, option
from .solve import add_solver_options, choose_form, game_to_judge, report_result

_FIGURES = ("iterations", "seconds", "nash_conv")
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
    option(parser, "--game", text, required=False)
    add_solver_options(parser)
    add_depth_options(
        parser,
        "look N moves or rounds ahead in every solve, not to the end of the game",
    )
    option(
        parser,
        "--leaf",
        f"what the game is worth where --depth ends it: {', '.join(LEAVES)} (default "
        f"{DEFAULT})",
        metavar="LEAF",
    )
    text = "what keeps the opponent from gaining; unsafe: nothing"
    option(parser, "--gadget", text, "cfrd", choices=get_args(Gadget))
    option(
        parser,
        "--baselines",
        "also run bundled CFR+ for as many iterations, outcome-sampling MCCFR for the "
        "same seconds, and uniform (default: only without --game)",
        action=argparse.BooleanOptionalAction,
    )


def _resolve(arguments: argparse.Namespace) -> dict[str, object]:
    game = arguments.game or _DEMO_GAME
    iterations = 1000 if arguments.iterations is None else arguments.iterations
    # Before the game is walked for the judge; `resolve` checks, too.
    config = parse_algorithm(arguments.algorithm)
    check_iterations(iterations)
    ahead = given(arguments, "depth", "depth_unit", "leaf")
    check_lookahead(arguments.depth, arguments.depth_unit, arguments.leaf)
    needs_tree = arguments.depth is not None or arguments.gadget != "cfrd"
    if arguments.gadget != "cfrd" and arguments.form == "signals":
        raise ValueError(
            f"--gadget {arguments.gadget}: in the form of signals there is cfrd only; "
            f"leave --gadget out, or give --form compiled"
        )
    if arguments.depth is not None and arguments.form == "signals":
        raise ValueError(
            f"--depth {arguments.depth}: in the form of signals games are resolved to "
            f"their end; leave --depth out, or give --form compiled"
        )
    started = time.perf_counter()
    chosen = choose_form(
        game,
        "compiled" if needs_tree else arguments.form,
        config,
        judge=arguments.judge,
        memory_limit=arguments.memory_limit,
    )
    loaded: forms.AnyGame = chosen.game
    if chosen.form == "compiled":
        loaded = game_to_judge(game, arguments, observations=True)
    walking = time.perf_counter() - started
    result = spiel_cr.resolve(
        loaded,
        arguments.algorithm,
        iterations,
        form=chosen.form,
        dtype=arguments.dtype or "float64",
        progress=True,
        **ahead,
        **given(arguments, "gadget", "memory_limit", "cache"),
    )
    result = dataclasses.replace(result, build_seconds=result.build_seconds + walking)
    report = report_result(game, result, arguments)
    report |= {"form": chosen.form, "gadget": arguments.gadget}
    if arguments.depth is not None:
        report |= {**ahead, "leaf": arguments.leaf or DEFAULT}
    if arguments.baselines or (arguments.baselines is None and not arguments.game):
        report["baselines"] = _compare(game, result, report, arguments.seed)
    return report


def _compare(
    game: str, result: spiel_cr.Result, report: dict[str, object], seed: int
) -> list[dict[str, object]]:
    """Runs what OpenSpiel bundles on the same game; prints a table.

    Sampling gets all the time that resolving took, compiling included.
    """
    total = result.seconds + result.compile_seconds + result.build_seconds
    rows: list[dict[str, object]] = []
    for run in (
        Run(game, "openspiel-cfr+", 0, None, result.iterations),
        Run(game, "openspiel-os-mccfr", seed, total, None),
        Run(game, "uniform", 0, None, 1),
    ):
        record = measure_run(run)
        title = registry.find(run.algorithm).title
        if record["nash_conv"] is None:
            raise ValueError(f"{title}: {record['error'] or record['missing']}")
        figures = {name: record[name] or 0 for name in _FIGURES}
        rows.append({"name": title, **figures})
    figures = dict(
        zip(_FIGURES, (result.iterations, total, report["nash_conv"]), strict=True)
    )
    ours = {"name": f"spiel_cr resolve ({result.algorithm})", **figures}
    print(f"\n{'':<40}{'NashConv':>10}{'iterations':>12}{'seconds':>9}")
    for row in (ours, *rows):
        print(
            f"{row['name']:<40}{row['nash_conv']:>10.2e}"
            f"{row['iterations']:>12,}{row['seconds']:>9.2f}"
        )
    return rows
