"""OpenSpiel's outcome sampling in C++, and matches against it, in one process.

Its average policy lives in the solver, so whoever is to play it is loaded here.
"""

import time
from collections.abc import Mapping

import pyspiel

import spiel_cr
from benchmarks.frame import Row
from benchmarks.uncompiled import matches
from spiel_cr.common import memory

# Iterations between two looks at clock and memory.
_CHUNK = 200


def measure(
    game: str,
    seconds: float,
    memory_limit: float,
    policies: Mapping[str, str],
    count: int,
    seed: int,
) -> Row:
    """Solves for a while, and plays.

    Args:
      game: OpenSpiel string.
      seconds: of iterating.
      memory_limit: it stops where the process has taken this, in bytes.
      policies: algorithms of ours, and the files of their policies.
      count: of matches of each kind.
      seed: of all that is drawn.
    """
    loaded = spiel_cr.load_game(game)
    solver = pyspiel.OutcomeSamplingMCCFRSolver(loaded, epsilon=0.6, seed=seed)
    done, begun, cpu = 0, time.perf_counter(), time.process_time()
    stopped = "time"
    while (spent := time.perf_counter() - begun) < seconds:
        for _ in range(_CHUNK):
            solver.run_iteration()
        done += _CHUNK
        if memory.held_bytes() > memory_limit:
            stopped = "memory"
            break
    cpu = time.process_time() - cpu
    # An iteration samples a trajectory for each player.
    row: Row = {
        "trajectories": 2 * done,
        "solve_seconds": spent,
        "cpu_seconds": cpu,
        "stopped": stopped,
        "peak_bytes": memory.peak_bytes(),
    }
    theirs = solver.average_policy()
    row |= matches.facts_of("peer", loaded, theirs, count, seed)
    row["matches"] = {}
    for algorithm, path in policies.items():
        mine = spiel_cr.load_policy(path, loaded)
        other = matches.Watched(loaded, theirs)
        played = matches.between(loaded, mine, other, count, seed)
        row["matches"][algorithm] = played._asdict()
    return row
