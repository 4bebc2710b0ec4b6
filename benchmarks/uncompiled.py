"""Games that are never compiled: memory, speed, matches, responses."""

import argparse
import hashlib
import pathlib
import time
from collections.abc import Iterator
from typing import Any

from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from benchmarks.document import WHO, Column, count, interval
from benchmarks.frame import Benchmark, Option, Part, Row, Table
from benchmarks.games import game_of, string_of
from benchmarks.race import run_for
from spiel_cr.common import memory
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.eval.contestants import registry
from spiel_cr.eval.contestants.protocol import SteppingAdapter
from spiel_cr.judging.many_matches import play_matches

# Of player 0, published with a benchmark of policy gradients (2025) whose judge
# computes it exactly; goofspiel is symmetric.
VALUES = {"phantom_ttt": 0.6667, "dark_hex3": 1.0, "goofspiel13": 0.0}
ALGORITHMS = ("os-mccfr", "vr-mccfr")
# Players of dark hex see how many moves there were and forget it, which exact averages
# do not allow.
_FORGETFUL = {"dark_hex3": ("os-mccfr(averaging=sampled)",)}
PEER = "openspiel-os-mccfr"
OPTIONS = {
    "games": Option(tuple(VALUES), "short names, or OpenSpiel strings"),
    "algorithms": Option((), "of ours (default: two, os-mccfr on dark hex)", kind=str),
    "seconds": Option(600.0, "of iterating, of each solver"),
    "memory_limit": Option("4GB", "of each solver's process"),
    "matches": Option(10_000, "of each kind", least=4),
    "seed": Option(0, "of all that is drawn", least=0),
    "policies": Option("out/benchmarks/uncompiled/policies", "keep policies here"),
}


def policy_path(folder: str, game: str, algorithm: str) -> pathlib.Path:
    """Where a policy is kept."""
    name = hashlib.sha256(f"{game} {algorithm}".encode()).hexdigest()[:12]
    return pathlib.Path(folder, f"{algorithm.partition('(')[0]}-{name}.npz")


def measure(
    game: str,
    algorithm: str,
    seconds: float,
    memory_limit: str,
    matches: int,
    seed: int,
    policies: str,
) -> Row:
    """Samples for a while, keeps the policy, and plays it.

    Args:
      game: OpenSpiel string or short name.
      algorithm: one of ours, or OpenSpiel's outcome sampling, which has no limit of its
        own and is stopped where its process has taken as much; it plays ours, too.
      seconds: of iterating.
      memory_limit: of the process.
      matches: of each kind.
      seed: of all that is drawn.
      policies: folder of policies.
    """
    loaded = game_of(game)
    if algorithm == PEER:
        row, policy = _openspiel(game, seconds, memory.parse_size(memory_limit), seed)
        row["against"] = {}
        for path in sorted(pathlib.Path(policies).glob(f"{game.partition('(')[0]}/*")):
            ours = spiel_cr.load_policy(path, loaded)
            played = play_matches(loaded, [ours, policy], matches, seed=seed)
            row["against"][path.stem] = [played.mean, played.half_width]
    else:
        row, policy = _ours(game, algorithm, seconds, memory_limit, seed)
        path = policy_path(policies, game, algorithm)
        path = path.parent / game.partition("(")[0] / path.name
        path.parent.mkdir(parents=True, exist_ok=True)
        policy.save(path)
        policy = spiel_cr.load_policy(path, loaded)
    uniform = UniformRandomPolicy(loaded)
    for name, other in (("itself", policy), ("uniform", uniform)):
        before = [getattr(policy, counted, 0) for counted in ("asked", "unmet")]
        played = play_matches(loaded, [policy, other], matches, seed=seed)
        asked, unmet = (
            getattr(policy, counted, 0) - first
            for counted, first in zip(("asked", "unmet"), before, strict=True)
        )
        # Against itself what player 0 gets, else the mean of both seats.
        returns = played.returns[:, 0] if name == "itself" else played.returns.mean(1)
        row[name] = mean_and_half_width(returns)
        row[f"{name}_met"] = 1 - unmet / asked if asked else None
    return {**row, "value": VALUES.get(game)}


def _ours(
    game: str, algorithm: str, seconds: float, memory_limit: str, seed: int
) -> tuple[Row, Any]:
    cpu = time.process_time()
    result = spiel_cr.solve(
        string_of(game),
        algorithm,
        spiel_cr.Goal(seconds=seconds),
        layout=spiel_cr.Layout("stepped", memory_limit=memory_limit),
        seed=seed,
    )
    assert result.table is not None
    row = {
        "trajectories": result.trajectories,
        "spent": result.seconds,
        "cpu_seconds": time.process_time() - cpu,
        "infosets": result.table.infosets,
        "full": result.table.full,
        "peak_bytes": memory.peak_bytes(),
    }
    return row, result


def _openspiel(game: str, seconds: float, limit: float, seed: int) -> tuple[Row, Any]:
    adapter = registry.find(PEER).make(GameInstance(string_of(game)), seed)
    assert isinstance(adapter, SteppingAdapter)
    cpu = time.process_time()
    done, spent = run_for(
        adapter.run, seconds, lambda: bool(memory.held_bytes() > limit)
    )
    row = {
        # An iteration samples a trajectory for each player.
        "trajectories": 2 * done,
        "spent": spent,
        "cpu_seconds": time.process_time() - cpu,
        "full": memory.held_bytes() > limit,
        "peak_bytes": memory.peak_bytes(),
    }
    return row, adapter.on_states()


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    names = ("seconds", "memory_limit", "matches", "seed", "policies")
    shared = {name: getattr(options, name) for name in names}
    for game in options.games:
        ours = options.algorithms or _FORGETFUL.get(game, ALGORITHMS)
        for algorithm in (*ours, PEER):
            yield {"game": game, "algorithm": algorithm, **shared}


def _of(name: str) -> Column:
    return lambda row: interval(*row[name])


_SAMPLED: dict[str, Column] = {
    **WHO,
    "trajectories": count("trajectories"),
    "per second": lambda row: f"{row['trajectories'] / row['spent']:,.0f}",
    "seconds": "{spent:.0f}",
    "CPU seconds": "{cpu_seconds:.0f}",
    "infosets": count("infosets"),
    "full": lambda row: "yes" if row["full"] else "no",
    "peak memory, GB": lambda row: f"{row['peak_bytes'] / 1e9:.2f}",
}
_PLAYED: dict[str, Column] = {
    **WHO,
    "value": "{value:.4f}",
    "against itself": _of("itself"),
    "met": "{itself_met:.1%}",
    "against uniform": _of("uniform"),
    "met then": "{uniform_met:.1%}",
    "ours against it": lambda row: ", ".join(
        f"{k}: {interval(*v)}" for k, v in row["against"].items()
    ),
}
BENCHMARK = Benchmark(
    "uncompiled",
    "Measure sampling of games that are never compiled, beside OpenSpiel's sampler.",
    OPTIONS,
    {
        "sampling": Part(
            measure,
            _plan,
            (
                Table("Sampling; the peak is of the whole process.", _SAMPLED, 2),
                Table(
                    "Matches of the average policy against itself and against uniform "
                    "play; met: the share of its decisions at infosets of the table.",
                    _PLAYED,
                    2,
                ),
            ),
            budget=("seconds", "memory_limit", "matches", "policies"),
        ),
    },
)
