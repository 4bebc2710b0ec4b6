"""Primal-dual hybrid gradients: convergence, scaling, memory and compile time."""

import time

import jax
import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.first_order import primal_dual
from spiel_cr.solvers.first_order.solvers import make_solver
from tests.support import games
from tests.support.made_games import random_game


def test_compile_seconds_include_all_compiled_functions():
    """Scaling and the first step are compiled too; no other test has this game."""
    form, spent = spiel_cr.build_tree(random_game(77)).sequence_form, {}

    def record(event, seconds, fun_name="", **_):
        if event.endswith("backend_compile_duration"):
            spent[fun_name] = spent.get(fun_name, 0.0) + seconds

    jax.monitoring.register_event_duration_secs_listener(record)
    try:
        began = time.perf_counter()
        solver = make_solver(form, config=find("pdhg").config)
        elapsed = time.perf_counter() - began
    finally:
        jax.monitoring.unregister_event_duration_listener(record)
    programs = [name for name in spent if "_" in name]
    assert {"jit(_first)", "jit(_iterate)", "jit(_scale)"} <= set(programs)
    assert sum(spent[name] for name in programs) <= solver.compile_seconds <= elapsed
    assert solver.seconds == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "iterations", "bar"),
    [
        ("kuhn", 2000, 1e-13),
        ("leduc", 100_000, 1e-7),
        ("liars_dice_1x4", 100_000, 1e-9),
    ],
)
def test_pdhg_converges(name, iterations, bar):
    result = spiel_cr.solve(games.compiled(name), "pdhg", iterations)
    assert result.nash_conv() <= bar


@pytest.mark.slow
@pytest.mark.parametrize("name", ["liars_dice_1x4", "goofspiel4_descending"])
def test_pcfr_plus_with_a_large_averaging_exponent_converges(name):
    result = spiel_cr.solve(games.compiled(name), "pcfr+30", 1000)
    assert result.nash_conv() <= 1e-14


def test_spread_is_the_transpose_of_flow():
    """⟨values, flow(reach)⟩ = ⟨spread(values), reach⟩ on every tree."""
    rng = np.random.default_rng(0)
    tree = games.compiled("kuhn").sequence_form.arrays[0]
    size = games.compiled("kuhn").sequence_form.layouts[0].size
    infosets = sum(level.num_infosets for level in tree.levels)
    with jax.enable_x64(True):
        reach = jax.numpy.asarray(rng.normal(size=size))
        values = jax.numpy.asarray(rng.normal(size=infosets))
        left = float(values @ primal_dual.flow(tree, reach))
        right = float(primal_dual.spread(tree, values) @ reach)
    assert left == pytest.approx(right, abs=1e-12)


@pytest.mark.slow
def test_scaled_problem_has_rows_of_norm_one(monkeypatch):
    """The scaling estimates norms with random signs; the test lists all entries."""
    solver = make_solver(
        games.compiled("leduc").sequence_form, config=find("pdhg").config
    )
    form, trees = solver.form, solver.problem.trees
    monkeypatch.setattr(primal_dual, "_DRAWS", 400)
    with jax.enable_x64(True):
        scales, _ = jax.jit(lambda both: primal_dual.scaling(both))(trees)
    payoffs = form.payoffs
    own, other = (np.asarray(scales.reach[p], np.float64) for p in range(2))
    rows = form.layouts[0].sequences[payoffs.rows]
    columns = form.layouts[1].sequences[payoffs.columns]
    values = np.ldexp(payoffs.values, -solver.exponent)
    squares = np.bincount(rows, values**2 * other[columns], minlength=len(own))
    around = np.zeros(len(own))
    decisions, layout = form.decisions[0], form.layouts[0]
    infosets = np.asarray(scales.values[0], np.float64)[layout.infosets]
    np.add.at(around, layout.sequences[decisions.parent], infosets)
    around[layout.sequences[1:]] += infosets[decisions.owner[1:]]
    norms = np.sqrt((squares + around) * own)[layout.sequences[1:]]
    # Ten rounds of square roots give almost 1; random signs err by 1 / sqrt(2 · 400).
    assert np.median(np.abs(norms - 1)) < 0.1 and norms.max() < 1.5


@pytest.mark.slow
def test_public_tree_products_converge_like_listed_payoffs():
    """Payoffs as products of matrices give about the same NashConv as listed ones."""
    public_tree = public_tree_game("python_leduc_poker")
    products = public_tree.build_sequence_form(products=True)
    listed = public_tree.build_sequence_form(products=False)
    config = find("pdhg").config
    found = []
    for form in (products, listed):
        solver = make_solver(form, config=config)
        solver.run(40)
        found.append(solver.nash_conv())
    # The scaling draws signs by position, and positions differ.
    assert found[0] == pytest.approx(found[1], rel=0.5)
    assert found[0] < 4


@pytest.mark.slow
def test_float32_converges_as_far_as_float64():
    tree = games.compiled("kuhn")
    result = spiel_cr.solve(tree, "pdhg", 200, dtype="float32")
    exact = spiel_cr.solve(tree, "pdhg", 200)
    # Above the rounding errors of single precision, convergence is the same.
    assert result.nash_conv() < max(2 * exact.nash_conv(), 2e-4)


@pytest.mark.slow
def test_memory_limit_is_checked_before_the_run():
    tree = games.compiled("leduc")
    with pytest.raises(GameTooLargeError, match=r"leduc_poker\(\) by pdhg"):
        spiel_cr.solve(
            tree, "pdhg", 1, options=spiel_cr.GameOptions(memory_limit="150MB")
        )
