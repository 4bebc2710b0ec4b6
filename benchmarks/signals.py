"""Signal games: endgames of Libratus by several algorithms."""

import spiel_cr
from benchmarks.document import PEAK_GB, WHO, Column, count
from benchmarks.frame import Benchmark, Option, Part, Row, Table, plan
from benchmarks.games import ENDGAMES, endgame
from spiel_cr.common.memory import peak_bytes

OPTIONS = {
    "games": Option(tuple(ENDGAMES), "what to solve", tuple(ENDGAMES)),
    "dtype": Option("float32", "of what is solved", ("float32", "float64")),
    "folder": Option("endgames", "of OpenSpiel's sources, with files subgame1.txt ..."),
    "algorithms": Option(
        ("dcfr", "pdcfr+", "cfr+", "sapcfr+", "dcfr+", "hs-dcfr"), "of `solve`"
    ),
    "iterations": Option(1000, "at most"),
}
# Exploitability that is looked for, as shares of the pot.
_SHARES = (0.01, 0.001)


def measure_endgame(
    game: str, algorithm: str, iterations: int, dtype: str, folder: str
) -> Row:
    """When an algorithm reaches an exploitability of 1 % and of 0.1 % of the pot.

    Args:
      game: one of `ENDGAMES`.
      algorithm: of `solve`.
      iterations: at most.
      dtype: of the solver.
      folder: see `games.endgame`.
    """
    pot = ENDGAMES[game][0]
    result = spiel_cr.solve(
        endgame(game, folder),
        algorithm,
        spiel_cr.Goal(iterations, until=2 * min(_SHARES) * pot, eval_every=5),
        options=spiel_cr.GameOptions("public-tree"),
        dtype=dtype,
    )
    # Exploitability is half of NashConv.
    curve = [(p.iterations, p.seconds, p.nash_conv / 2 / pot) for p in result.curve]
    reached = {
        f"at {share:.1%}": next((p[:2] for p in curve if p[2] <= share), None)
        for share in _SHARES
    }
    low, high = result.value_bounds()
    last = {"iterations": result.iterations, "percent": 50 * (high - low) / pot}
    return {**reached, **last, "value_bounds": (low, high), "peak_bytes": peak_bytes()}


def _at(share: float) -> Column:
    """Iterations and seconds; a dash where they were not enough."""
    return lambda row: "{} ({:.3g} s)".format(*row[f"at {share:.1%}"])


_ENDGAMES: dict[str, Column] = {
    **WHO,
    **{
        f"iterations (seconds) to {share:.1%} of the pot": _at(share)
        for share in _SHARES
    },
    "iterations": count("iterations"),
    "% of the pot then": "{percent:.3f}",
    "value, player 0": "{value_bounds[0]:+.3f} … {value_bounds[1]:+.3f}",
    **PEAK_GB,
}
BENCHMARK = Benchmark(
    "public-tree",
    "Measure signal games: endgames of Libratus.",
    OPTIONS,
    {
        "endgames": Part(
            measure_endgame,
            plan(
                game="games",
                algorithm="algorithms",
                iterations="iterations",
                dtype="dtype",
                folder="folder",
            ),
            (Table("Endgames of Libratus.", _ENDGAMES, 2),),
            budget=("folder",),
        ),
    },
)
