"""The command `resolve`: resolve a whole game continually, in both roles.

To compare it with other algorithms, run compare with the algorithm resolve(...).
"""

import dataclasses
import time

import spiel_cr
from spiel_cr.common import compilation_cache
from spiel_cr.games.opening.opened import open_game
from spiel_cr.resolving.continual import need_of
from spiel_cr.resolving.leaves.leaf_strings import DEFAULT, LEAVES
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.representation import (
    BUILT,
    GameOptions,
    choose_form,
    represent,
)

from ..common.time_estimate import announce_phases, solving_phases
from .command import Arguments, Parser
from .solve import SolverOptions, check_form, locks_of, report_result


@dataclasses.dataclass(kw_only=True)
class ResolveOptions(SolverOptions):
    """Options of the command."""

    game: str


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    parser.settings(GameOptions, "form", form={"choices": BUILT})
    parser.settings(
        ResolvingConfig,
        "iterations depth depth_unit leaf gadget",
        leaf={
            "metavar": "LEAF",
            "help": "value of a history at which the lookahead ends: "
            f"{', '.join(LEAVES)} (default {DEFAULT})",
        },
    )


def run(arguments: Arguments) -> dict[str, object]:
    """Resolve a game."""
    # Before the game tree is built; `resolve` checks, too.
    find(arguments.algorithm, families=(CFR,))
    settings = arguments.settings(
        ResolvingConfig,
        solver=arguments.algorithm,
        iterations=1000 if arguments.iterations is None else arguments.iterations,
    )
    options = arguments.settings(GameOptions, locks=locks_of(arguments))
    start = time.perf_counter()
    need = need_of(settings, locks=options.locks is not None)
    opened = open_game(arguments.game)
    kind = choose_form(opened, options, need).form
    marker = ("resolve", str(opened.game), kind, str(settings), str(arguments.dtype))
    # Both players' decisions are layers, and a solve of each has its own function.
    phases = solving_phases(
        *(opened, kind, marker),
        iterations=settings.iterations,
        layers=opened.game.max_game_length(),
        evaluator=arguments.evaluator,
    )
    announce_phases(phases)
    form, reason = represent(opened, options, need, progress=True)
    check_form(form, reason, arguments)
    building = time.perf_counter() - start
    result = spiel_cr.resolve(
        form,
        settings,
        options=options,
        dtype=arguments.dtype or "float64",
        progress=True,
    )
    result = dataclasses.replace(result, build_seconds=result.build_seconds + building)
    compilation_cache.mark(marker)
    report = report_result(arguments.game, result, arguments)
    report |= {"form": reason.form, "gadget": arguments.gadget}
    if arguments.depth is not None:
        report |= arguments.options("depth", "depth_unit")
        report["leaf"] = arguments.leaf or DEFAULT
    return report
