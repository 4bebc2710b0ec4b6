"""The command `resolve`: resolve a whole game continually, in both roles.

Without --game, 4-card II-goofspiel is resolved and compared with OpenSpiel's
algorithms.
"""

import dataclasses
import time
from typing import Any

import spiel_cr
from spiel_cr.common import compilation_cache
from spiel_cr.games.opening.opened import open_game
from spiel_cr.resolving.continual import need_of
from spiel_cr.resolving.leaves.leaf_strings import DEFAULT, LEAVES
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.representation import BUILT, GameOptions, choose_form, represent

from ..adapters import registry
from ..common.time_estimate import announce_phases, solving_phases
from ..comparison.measure import LastGame, Run, measure_run
from .command import Arguments, Parser
from .solve import SolverOptions, check_form, locks_of, report_result

_FIGURES = ("iterations", "seconds", "compile_seconds", "nash_conv")
# A time budget must be positive.
_LEAST_SECONDS = 0.01
_DEMO_GAME = "python_ii_goofspiel(num_cards=4)"


@dataclasses.dataclass(kw_only=True)
class ResolveOptions(SolverOptions):
    """Options of the command.

    Attributes:
      game: OpenSpiel game string (default python_ii_goofspiel(num_cards=4)).
      baselines: Also run OpenSpiel's CFR+ with the same number of iterations, solve
        with the time that these take, OpenSpiel's outcome-sampling MCCFR with the time
        of resolving, and the uniform policy (default: only without --game).
    """

    game: str | None = None
    baselines: bool | None = None


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
    game = _DEMO_GAME if arguments.game is None else arguments.game
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
    opened = open_game(game)
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
    dtype = arguments.dtype or "float64"
    result = spiel_cr.resolve(
        form, settings, options=options, dtype=dtype, progress=True
    )
    result = dataclasses.replace(result, build_seconds=result.build_seconds + building)
    compilation_cache.mark(marker)
    report = report_result(game, result, arguments)
    report |= {"form": reason.form, "gadget": arguments.gadget}
    if arguments.depth is not None:
        report |= arguments.options("depth", "depth_unit")
        report["leaf"] = arguments.leaf or DEFAULT
    if arguments.baselines or (arguments.baselines is None and arguments.game is None):
        report["baselines"] = _compare(game, result, report, arguments.seed)
    return report


def _compare(
    game: str, result: spiel_cr.Result, report: dict[str, object], seed: int
) -> list[dict[str, object]]:
    """Run OpenSpiel's algorithms and `solve` on the same game, and print a table.

    OpenSpiel's CFR+ runs for the iterations of one solve, and `solve` for the time that
    these took. Sampling runs for the total time of resolving, including compilation.
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
    resolved = {
        "name": f"spiel_cr resolve ({result.algorithm})",
        "iterations": result.iterations,
        "seconds": result.seconds + result.build_seconds,
        "compile_seconds": result.compile_seconds,
        "nash_conv": report["nash_conv"],
    }
    heads = f"{'NashConv':>10}{'iterations':>12}{'seconds':>9}{'compiling':>11}"
    print(f"\n{'':<40}{heads}")
    for row in (rows[1], rows[0], resolved, *rows[2:]):
        print(
            f"{row['name']:<40}{row['nash_conv']:>10.2e}{row['iterations']:>12,}"
            f"{row['seconds']:>9.2f}{row['compile_seconds']:>11.2f}"
        )
    return rows


def _measured(cache: LastGame, run: Run) -> dict[str, Any]:
    """Return a run's row of the table.

    Raises:
      ValueError: If the run did not produce a strategy.
    """
    record = measure_run(cache, run)
    title = registry.find(run.algorithm).title
    if record["nash_conv"] is None:
        raise ValueError(f"{title}: {record['error'] or record['missing']}")
    return {"name": title, **{name: record[name] or 0 for name in _FIGURES}}
