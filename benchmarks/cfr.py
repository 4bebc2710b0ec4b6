"""Full-width solvers compared with OpenSpiel's, LiteEFG and plain C.

Each row is one solver on one game. It runs in a separate process, and time is measured
as in `spiel-cr compare`. The solvers of a game run in turn, once per seed, so that
background load affects all of them alike.
"""

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks import c_reference, peers
from benchmarks.document import Column, over_seeds, ratio, spaced
from benchmarks.frame import Axis, Benchmark, FactsTable, Row
from benchmarks.games import string_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.eval.adapters import registry
from spiel_cr.eval.common.budget import Budget
from spiel_cr.eval.common.exact_evaluator import ExactEvaluator
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.eval.comparison.measure import work

GAMES = ("kuhn", "leduc", "goofspiel4", "goofspiel5", "liars_dice4", "liars_dice6")
# The C reference runs directly after the solver that is compared with it.
SOLVERS = tuple(
    "cfr+ c cfr+/float32 cfr lcfr dcfr pcfr+ pdcfr+ lp openspiel-cpp openspiel-python "
    "openspiel-jax liteefg".split()
)
AXES = {
    "game": Axis(GAMES, "short names, or OpenSpiel strings"),
    "seed": Axis((0, 1, 2), "one run each; solvers that sample use them", least=0),
    "solver": Axis(SOLVERS, "or any algorithm of `compare`; add /float32 to it"),
    "seconds": Axis(10.0, "time budget of a run", identifies=False),
}


def measure(game: str, seed: int, solver: str, seconds: float) -> Row:
    """Run a solver for a time budget; without results, `missing` states the reason.

    Args:
      game: OpenSpiel string or short name.
      seed: Seed of a solver that samples.
      solver: Name for `peers.find`.
      seconds: Time budget.
    """
    row: Row = {"title": solver, "family": "spiel_cr", "dtype": "", "iterative": True}
    try:
        row = peers.find(solver).facts()
        return row | _solve(peers.find(solver), game, seed, seconds)
    except Exception as error:  # A peer's failure must not stop the others.
        return row | {"missing": f"{type(error).__name__}: {error}"}


def _solve(solver: peers.PeerSolver, game: str, seed: int, seconds: float) -> Row:
    registry.check_installed(solver.entry)
    instance = GameInstance(string_of(game), observations=False)
    for module in solver.imports:
        importlib.import_module(module)
    start_bytes, start = peak_bytes(), time.perf_counter()
    adapter = solver.entry.make(instance, seed)
    build_seconds = time.perf_counter() - start - adapter.compile_seconds
    *_, (spent, iterations, _) = work(solver.entry, adapter, Budget(seconds, None))
    row = {
        "build_seconds": build_seconds,
        "build_tree_seconds": instance.walk_seconds or None,
        "compile_seconds": adapter.compile_seconds,
        "iterations": iterations,
        "seconds": spent.seconds,
        "start_bytes": start_bytes,
        "peak_bytes": peak_bytes(),
        "nash_conv": ExactEvaluator(instance).final(adapter.strategy()).nash_conv,
    }
    if solver.entry.mode == "iterates" and iterations is not None:
        row["rate"] = iterations / spent.seconds
    if solver.family == "c":
        row |= c_reference.disagreement(instance.tree.sequence_form)
    return row


def _with_references(rows: Sequence[Row]) -> list[Row]:
    """Return a line per game and solver, with the reference and the fastest bundled."""
    lines = over_seeds(rows, ("game", "solver"))
    for line in lines:
        peers_of_line = [other for other in lines if other["game"] == line["game"]]
        for family, name in (("c", "c"), ("openspiel", "bundled")):
            line[name] = max(
                (row for row in peers_of_line if row["family"] == family),
                key=lambda row: row.get("rate", 0.0),
                default={},
            )
    return lines


def _summary(rows: Sequence[Row]) -> list[Row]:
    """Return a line per game: `cfr+`, and the best NashConv of spiel_cr and others."""
    lines = _with_references(rows)
    summary = []
    for game in dict.fromkeys(line["game"] for line in lines):
        iterative = [x for x in lines if x["game"] == game and "rate" in x]
        best = {
            name: min(
                (x for x in iterative if (x["family"] == "spiel_cr") == is_spiel_cr),
                key=lambda x: x["nash_conv"],
                default={},
            )
            for name, is_spiel_cr in (("spiel_cr", True), ("others", False))
        }
        plus = next((x for x in iterative if x["solver"] == "cfr+"), {})
        summary.append({**plus, **best, "game": game})
    return summary


def _relative_to(base: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: ratio(row["rate"], row[base].get("rate"))


def _rates(row: Mapping[str, Any]) -> str:
    rates = [run["rate"] for run in row["each"]]
    return f"{spaced(row['rate'])} ({spaced(min(rates))} to {spaced(max(rates))})"


def _notes(row: Mapping[str, Any]) -> str:
    """Return the reason for missing results, or whether the C reference is valid."""
    if "agrees" not in row:
        return row.get("missing", "")
    verdict = "agrees with cfr+" if row["agrees"] else "DOES NOT agree with cfr+"
    noise = ", with noise on the payoffs, which breaks ties" if row["generic"] else ""
    return f"{verdict}: after 50 iterations {row['disagreement']:.0e} apart{noise}"


def failures(rows: Sequence[Row]) -> Iterator[str]:
    """Yield rows of spiel_cr that failed, and disagreements with the C reference."""
    for row in rows:
        failed = row["family"] == "spiel_cr" and "missing" in row
        if failed or not row.get("agrees", True):
            reason = row.get("missing", "the C reference and spiel_cr disagree")
            yield f"{row['game']}, {row['solver']}: {reason}"


_SUMMARY: dict[str, Column] = {
    "game": "{game}",
    "spiel_cr cfr+, iterations/s": lambda row: spaced(row["rate"]),
    "÷ C": _relative_to("c"),
    "÷ best bundled": lambda row: (
        f"{_relative_to('bundled')(row)} ({row['bundled']['solver']})"
    ),
    "best spiel_cr NashConv": "{spiel_cr[nash_conv]:.2e} ({spiel_cr[solver]})",
    "best other NashConv": "{others[nash_conv]:.2e} ({others[solver]})",
    "build_tree, s": "{build_tree_seconds:.2f}",
}
_ALL: dict[str, Column] = {
    "solver": "{title}",
    "arithmetic": "{dtype}",
    "build, s": "{build_seconds:.2f}",
    "compile, s": "{compile_seconds:.2f}",
    "iterations/s (range over seeds)": _rates,
    "÷ C": _relative_to("c"),
    "÷ best bundled": _relative_to("bundled"),
    "iterations solved": lambda row: (
        spaced(row["iterations"]) if row["iterative"] else "–"
    ),
    "in, s": "{seconds:.2f}",
    "NashConv": "{nash_conv:.2e}",
    "peak memory (at start), MB": lambda row: (
        f"{row['peak_bytes'] / 1e6:.0f} ({row['start_bytes'] / 1e6:.0f})"
    ),
    "notes": _notes,
}
BENCHMARK = Benchmark(
    "cfr",
    "Compare spiel_cr's full-width solvers with other implementations.",
    measure,
    AXES,
    (
        FactsTable("NashConv at equal time.", _SUMMARY, lines=_summary),
        FactsTable("All solvers.", _ALL, 2, _with_references, "game"),
    ),
    failures,
    note="cfr-iterations",
)
