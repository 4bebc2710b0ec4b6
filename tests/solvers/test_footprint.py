"""Estimates of the memory that `solve` needs, compared with the actual peak."""

import json
import subprocess
import sys

import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.solvers import footprint
from spiel_cr.solvers.algorithms import find
from tests.support import games
from tests.support.kuhn_public_tree import kuhn

# Games, algorithms and dtypes whose peak memory is 0.5 to 3 GB.
ROWS = [
    ("liars_dice", "cfr+", "float64"),
    ("liars_dice", "evr-mccfr", "float32"),
    ("liars_dice", "evr-mccfr(batch=131072)", "float32"),
    ("liars_dice", "es-mccfr", "float32"),
    ("python_scotland_yard", "lp", "float64"),
    ("universal_poker", "cfr+", "float64"),
    ("python_ii_goofspiel(num_cards=6)", "cfr+", "float64"),
    ("python_ii_goofspiel(num_cards=6)", "evr-mccfr", "float32"),
    ("python_latent_tic_tac_toe(conflict=keep)", "cfr+", "float32"),
    ("python_latent_tic_tac_toe(conflict=keep)", "evr-mccfr", "float32"),
    ("python_princess_and_monster(horizon=9)", "cfr+", "float64"),
]
_COMMAND = "from spiel_cr.eval.cli.main import main; main()"


@pytest.mark.slow
@pytest.mark.parametrize("string,algorithm,dtype", ROWS)
def test_estimates_are_within_25_percent_of_the_peak(string, algorithm, dtype):
    words = ["solve", "--game", string, "--algorithm", algorithm, "--dtype", dtype]
    words += ["--iterations", "3", "--memory-limit", "none", "--json"]
    command = [sys.executable, "-c", _COMMAND, *words]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    report = json.loads(done.stdout.splitlines()[-1])
    tree = spiel_cr.build_tree(string)
    config = algorithm if algorithm == "lp" else find(algorithm).config
    estimate = footprint.peak_bytes(tree, config, np.dtype(dtype))
    if report["evaluator"] == "openspiel":
        estimate += openspiel_evaluator.openspiel_bytes(tree)
    assert estimate == pytest.approx(report["peak_memory_bytes"], rel=0.25)


def test_estimates_grow_with_batch_baseline_dtype_and_game():
    def peak(name, algorithm, dtype):
        config = find(algorithm).config
        return footprint.peak_bytes(games.compiled(name), config, np.dtype(dtype))

    ascending = [
        peak("kuhn", "cfr+", "float64"),
        peak("leduc", "cfr+", "float32"),
        peak("leduc", "cfr+", "float64"),
        peak("leduc", "os-mccfr", "float32"),
        peak("leduc", "os-mccfr(batch=65536)", "float32"),
        peak("leduc", "os-mccfr(batch=65536,baseline=expected)", "float32"),
        peak("leduc", "os-mccfr(batch=65536,baseline=expected)", "float64"),
        peak("leduc", "os-mccfr(batch=1048576)", "float32"),
    ]
    assert ascending == sorted(set(ascending))


def solve(tree, dtype, limit):
    options = spiel_cr.GameOptions(memory_limit=limit)
    return spiel_cr.solve(tree, "cfr+", options=options, dtype=dtype)


def resolve(tree, dtype, limit):
    options = spiel_cr.GameOptions(memory_limit=limit)
    return spiel_cr.resolve(tree, "cfr+", options=options, dtype=dtype)


@pytest.mark.parametrize("run", [solve, resolve])
def test_memory_error_suggests_float32_only_for_float64_runs(run):
    """The dtype may be a string, a NumPy type or a `numpy.dtype`."""
    tree = games.compiled("kuhn")
    for dtype in ("float32", np.float32, np.dtype("float32"), "float64", np.float64):
        with pytest.raises(GameTooLargeError, match="memory_limit is") as refused:
            run(tree, dtype, "1MB")
        told = "use dtype float32" in str(refused.value)
        assert told == (np.dtype(dtype) == np.float64)


def test_memory_errors_of_public_tree_games_name_the_remedy():
    config = find("cfr+").config
    with pytest.raises(GameTooLargeError, match="use dtype float32, or raise"):
        footprint.check(kuhn(), config, np.float64, "300MB")
    with pytest.raises(GameTooLargeError, match="choose smaller game parameters"):
        footprint.check(kuhn(), config, np.float32, "300MB")
    footprint.check(kuhn(), config, np.float64, "none")
