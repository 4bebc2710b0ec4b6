"""Black-box baseline: results of fixed runs, compared bitwise between two versions.

    python -m tests.support.baseline write FILE.npz
    python -m tests.support.baseline compare BEFORE.npz AFTER.npz

The baseline uses only the public interface and the command line, so it is independent
of internal changes. Names of options may differ between two versions, but numbers may
not. Times are stored too, and printed side by side.
"""

import argparse
import hashlib
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from benchmarks.frame import SPIEL_CR, run_command
from benchmarks.games import string_of

# Games whose policies are compared at states of random rollouts.
_ROLLOUTS = 50


def _solve(game: str, algorithm: str, goal: Any, form: str = "", **options: Any) -> Any:
    """Solve a game in a form, by default in the one that `auto` chooses."""
    if form:
        options["options"] = spiel_cr.GameOptions(form=form)
    return spiel_cr.solve(game, algorithm, goal, **options)


def _probabilities(game: str, policy: Any) -> np.ndarray:
    """Return the probabilities of a policy at the decisions of random rollouts."""
    random = np.random.default_rng(1)
    loaded, answers = spiel_cr.load_game(game), []
    for _ in range(_ROLLOUTS):
        state = loaded.new_initial_state()
        while not state.is_terminal():
            legal = state.legal_actions()
            if not state.is_chance_node():
                probabilities = policy.action_probabilities(state)
                answers += [float(probabilities[action]) for action in legal]
            state.apply_action(int(random.choice(legal)))
    return np.array(answers)


def _of_result(game: str, result: Any) -> dict[str, Any]:
    """Return all numbers of a result that do not depend on wall-clock time."""
    results = {
        "iterations": result.iterations,
        "policy": _probabilities(game, result.average_policy()),
    }
    try:
        results["nash_conv"] = result.nash_conv()
        results["value"] = result.game_value()
    except ValueError:  # the game was simulated
        pass
    return results


def _solved(game: str, algorithm: str, iterations: int, **options: Any) -> Any:
    return lambda: _of_result(game, _solve(game, algorithm, iterations, **options))


def _checkpoint(game: str, algorithm: str, iterations: int, form: str = "") -> Any:
    """Return a run with a checkpoint; its arrays are compared regardless of names."""

    def run() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "c.npz"
            result = _solve(game, algorithm, iterations, form, checkpoint=path)
            with np.load(path, allow_pickle=False) as arrays:
                digests = sorted(
                    hashlib.sha256(
                        f"{arrays[name].dtype}{arrays[name].shape}".encode()
                        + arrays[name].tobytes()
                    ).hexdigest()
                    for name in arrays.files
                    if arrays[name].dtype.kind in "fiu"
                    and arrays[name].dtype != "u1"
                    and name != "seconds"
                )
        return {**_of_result(game, result), "checkpoint": np.array(digests)}

    return run


def _resolve() -> dict[str, Any]:
    result = spiel_cr.resolve("leduc_poker", spiel_cr.ResolvingConfig(iterations=20))
    return _of_result("leduc_poker", result)


def _matches() -> dict[str, Any]:
    players = ["resolving(iterations=30)", "oos(iterations=30)"]
    played = spiel_cr.play_matches("kuhn_poker", players, 20, seed=3)
    return {"returns": played.returns}


def _evaluated() -> dict[str, Any]:
    results = spiel_cr.evaluate("kuhn_poker", "resolving(iterations=50)")
    return {"nash_conv": results.nash_conv}


def _response() -> dict[str, Any]:
    config = spiel_cr.ResponseConfig("lbr", matches=20)
    results = spiel_cr.best_response("leduc_poker", "cfr+(iterations=5)", 0, config)
    exact = spiel_cr.best_response("leduc_poker", "cfr+(iterations=5)", 1)
    return {"lbr": results.value, "exact": exact.value}


def _differences() -> dict[str, Any]:
    results = spiel_cr.differences("leduc_poker", "cfr+(iterations=5)", "uniform")
    return {"gains": np.array(results.gains), "nash_conv": np.array(results.nash_conv)}


def _command(*words: str) -> Callable[[], dict[str, Any]]:
    """Return a run of a command, with the numbers of its report.

    Numbers are compared if they have the same name in both versions.
    """

    def run() -> dict[str, Any]:
        results, _ = run_command([*SPIEL_CR, *words, "--json"])
        names = ("nash_conv", "game_value", "iterations", "value")
        return {name: results[name] for name in names if name in results}

    return run


RUNS: dict[str, Callable[[], dict[str, Any]]] = {
    "cfr+ kuhn": _checkpoint("kuhn_poker", "cfr+", 100),
    "cfr leduc": _solved("leduc_poker", "cfr", 50),
    "dcfr leduc": _checkpoint("leduc_poker", "dcfr", 50),
    "pcfr+ goofspiel": _solved(string_of("goofspiel4"), "pcfr+", 50),
    "pdcfr+ liar's dice": _solved("liars_dice(numdice=1,dice_sides=4)", "pdcfr+", 50),
    "lp leduc": _solved("leduc_poker", "lp", 1),
    "os-mccfr leduc": _checkpoint("leduc_poker", "os-mccfr", 20),
    "es-mccfr leduc": _solved("leduc_poker", "es-mccfr", 200),
    "evr-mccfr leduc": _solved("leduc_poker", "evr-mccfr", 20),
    "os-mccfr simulated": _checkpoint("leduc_poker", "os-mccfr", 3, form="simulator"),
    "cfr+ public tree": _checkpoint(
        "python_leduc_poker", "cfr+", 50, form="public-tree"
    ),
    "cfr+ phantom": _checkpoint("dark_hex(board_size=2)", "cfr+", 50, form="phantom"),
    "pdhg kuhn": _solved("kuhn_poker", "pdhg", 200),
    "public-vr+": _solved("python_leduc_poker", "public-vr+", 50),
    "sd-cfr": _solved(
        "kuhn_poker", "sd-cfr(hidden=8,layers=1,traversals=20,steps=5)", 5
    ),
    "mmd": _solved("kuhn_poker", "mmd(hidden=8,layers=1)", 5),
    "resolve leduc": _resolve,
    "matches": _matches,
    "evaluate": _evaluated,
    "best_response": _response,
    "differences": _differences,
    "solve command": _command(
        "solve", "--game=leduc_poker", "--algorithm=cfr+", "--iterations=50"
    ),
    "resolve command": _command("resolve", "--game=kuhn_poker", "--iterations=50"),
}


def write(path: str) -> None:
    """Execute all runs, and write numbers and times to a file."""
    arrays: dict[str, np.ndarray] = {}
    for name, run in RUNS.items():
        start = time.perf_counter()
        results = run()
        seconds = time.perf_counter() - start
        print(f"{name}: {seconds:.1f} s", flush=True)
        arrays[f"{name}/seconds"] = np.array(seconds)
        for key, value in results.items():
            arrays[f"{name}/{key}"] = np.asarray(value)
    named: dict[str, Any] = arrays
    np.savez(path, **named)


def compare(before: str, after: str) -> int:
    """Print the differences; return 1 if a number differs, and 0 otherwise."""
    with np.load(before) as old, np.load(after) as new:
        differ = 0
        for key in old.files:
            if key.endswith("/seconds"):
                print(f"{key}: {float(old[key]):.1f} → {float(new[key]):.1f}")
            elif key not in new.files or not np.array_equal(old[key], new[key]):
                differ += 1
                print(f"DIFFERS: {key}")
    print(f"{differ} numbers differ")
    return int(differ > 0)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("files", nargs="+", metavar="FILE")
    parsed = parser.parse_args()
    if parsed.action == "write":
        write(parsed.files[0])
        return 0
    return compare(parsed.files[0], parsed.files[1])


if __name__ == "__main__":
    sys.exit(main())
