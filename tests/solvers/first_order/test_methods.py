"""First-order methods reach what is published of them, and what they promise."""

import time

import jax
import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.signals.form import form_of
from spiel_cr.games.signals.signal_loading import signal_game
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.first_order import primal_dual, regularisers
from spiel_cr.solvers.first_order.first_order_config import PRESETS
from spiel_cr.solvers.first_order.solvers import large_programs, make_solver
from tests.support import games
from tests.support.made_games import random_game

NAMES = tuple(PRESETS)
# Rounding of sums of payoffs over 2^exponent, which are at most 1 each.
ROUNDING = 1e-13


def solver_of(name, algorithm, dtype=np.float64):
    form = games.compiled(name).form
    return make_solver(form, config=find(algorithm).config, dtype=dtype)


def diameter(form, player):
    """The largest entropy of a player, infosets weighed as `egt` does."""
    decisions, layout = form.decisions[player], form.layouts[player]
    weights = regularisers.make_weights(form, player)
    by_position = np.concatenate(
        [
            np.broadcast_to(factor, n)
            for level, factors in zip(form.arrays[player].levels, weights, strict=True)
            for (_, n), factor in zip(level.shapes, factors, strict=True)
        ]
    )
    total = by_position[layout.infosets] * np.log(decisions.num_actions)
    levels, owner = decisions.levels(), decisions.owner
    below = np.zeros(decisions.num_sequences)
    for depth in range(int(levels.max()), -1, -1):
        infosets = np.flatnonzero(levels == depth)
        mine = 1 + np.flatnonzero(levels[owner[1:]] == depth)
        most = np.zeros(len(decisions))
        np.maximum.at(most, owner[mine], below[mine])
        total[infosets] += most[infosets]
        np.add.at(below, decisions.parent[infosets], total[infosets])
    return float(below[0])


def smoothing_bound(solver):
    """Σ μ_p max d_p, in the game's units: what NashConv may be at most."""
    widest = [diameter(solver.form, player) for player in range(2)]
    smoothing = np.asarray(solver.state.smoothing)
    return np.ldexp(float(smoothing @ widest), solver.exponent)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("rps5", 40),
        pytest.param("kuhn", 150, marks=pytest.mark.slow),
        pytest.param("leduc", 300, marks=pytest.mark.slow),
        pytest.param("goofspiel4", 150, marks=pytest.mark.slow),
    ],
)
def test_the_excessive_gap_holds_at_every_step(name, steps):
    """And so NashConv is below what is still smoothed."""
    solver = solver_of(name, "egt")
    before = np.inf
    for _ in range(steps):
        solver.run(1)
        assert float(solver.state.excess) <= ROUNDING
        bound = smoothing_bound(solver)
        assert bound < before
        before = bound
    assert solver.nash_conv() <= bound + ROUNDING


@pytest.mark.parametrize("algorithm", ["egt", "pdhg"])
def test_seconds_of_compiling_are_those_of_all_programs(algorithm):
    """What scales and begins is compiled, too; a game that no other test has."""
    form, spent = spiel_cr.compile_game(random_game(77)).form, {}

    def tell(event, seconds, fun_name="", **_):
        if event.endswith("backend_compile_duration"):
            spent[fun_name] = spent.get(fun_name, 0.0) + seconds

    jax.monitoring.register_event_duration_secs_listener(tell)
    try:
        began = time.perf_counter()
        solver = make_solver(form, config=find(algorithm).config)
        elapsed = time.perf_counter() - began
    finally:
        jax.monitoring.unregister_event_duration_listener(tell)
    programs = [name for name in spent if "_" in name]
    assert {"jit(_first)", "jit(_iterate)"} <= set(programs)
    assert ("jit(_scale)" in programs) == algorithm.startswith("pdhg")
    assert sum(spent[name] for name in programs) <= solver.compile_seconds <= elapsed
    assert solver.seconds == 0


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "bar"), [(1000, 1.6e-2), (3000, 6e-3)])
def test_egt_on_leduc(pairs, bar):
    """A gradient is a pair of products, as an iteration of CFR takes; see SCALE."""
    solver = solver_of("leduc", "egt")
    while int(solver.state.products) < 2 * pairs - 3:
        solver.run(1)
    assert int(solver.state.products) <= 2 * pairs
    assert solver.nash_conv() <= bar


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "iterations", "bar"),
    [
        ("kuhn", 2000, 1e-13),
        ("leduc", 100_000, 1e-7),
        ("liars_dice_1x4", 100_000, 1e-9),
    ],
)
def test_pdhg(name, iterations, bar):
    result = spiel_cr.solve(games.compiled(name), "pdhg", iterations)
    assert result.nash_conv() <= bar


@pytest.mark.slow
@pytest.mark.parametrize("name", ["liars_dice_1x4", "goofspiel4_descending"])
def test_large_exponents_of_averaging(name):
    result = spiel_cr.solve(games.compiled(name), "pcfr+30", 1000)
    assert result.nash_conv() <= 1e-14


def test_flows_are_transposes():
    """⟨values, flow(reach)⟩ = ⟨spread(values), reach⟩ on every tree."""
    rng = np.random.default_rng(0)
    tree = games.compiled("kuhn").form.arrays[0]
    size = games.compiled("kuhn").form.layouts[0].size
    infosets = sum(level.num_infosets for level in tree.levels)
    with jax.enable_x64(True):
        reach = jax.numpy.asarray(rng.normal(size=size))
        values = jax.numpy.asarray(rng.normal(size=infosets))
        left = float(values @ primal_dual.flow(tree, reach))
        right = float(primal_dual.spread(tree, values) @ reach)
    assert left == pytest.approx(right, abs=1e-12)


@pytest.mark.slow
def test_the_scaled_program_has_rows_of_one(monkeypatch):
    """Norms by random signs, beside those of the listed program."""
    solver = solver_of("leduc", "pdhg")
    form, trees = solver.form, solver.problem.trees
    monkeypatch.setattr(primal_dual, "_DRAWS", 400)
    with jax.enable_x64(True):
        scales, _ = jax.jit(lambda both: primal_dual.scale_program(both))(trees)
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
    # Ten rounds of roots come near to one; signs are wrong by 1 / sqrt(2 · 400).
    assert np.median(np.abs(norms - 1)) < 0.1 and norms.max() < 1.5


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", NAMES)
def test_in_the_form_of_signals(algorithm):
    """With kernels as coupling they are the same iterates, up to rounding."""
    signals = signal_game("python_leduc_poker")
    products = form_of(signals, products=True)
    listed = form_of(signals, products=False)
    config = find(algorithm).config
    found = []
    for form in (products, listed):
        solver = make_solver(form, config=config)
        solver.run(40)
        found.append(solver.nash_conv())
    # The scaling of pdhg draws signs by position, which differ.
    tolerance = 0.5 if algorithm == "pdhg" else 1e-6
    assert found[0] == pytest.approx(found[1], rel=tolerance)
    assert found[0] < 4


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", NAMES)
def test_float32(algorithm):
    tree = games.compiled("kuhn")
    result = spiel_cr.solve(tree, algorithm, 200, dtype="float32")
    exact = spiel_cr.solve(tree, algorithm, 200)
    # Above what single precision leaves, the methods come as far.
    assert result.nash_conv() < max(2 * exact.nash_conv(), 2e-4)


@pytest.mark.slow
def test_what_a_step_of_egt_holds():
    """By the compiler's own count, in vectors over one player's positions.

    The state is three. A step that kept gradients, or rows of strategies that loops
    do not change, took 15 in all; on Rhode Island Hold'em it is as many. On a smaller
    game the compiler's rounding up counts.
    """
    form = form_of(signal_game("python_leduc_poker(num_ranks=13)"), products=True)
    config = find("egt").config
    solver = make_solver(form, config=config)
    with jax.enable_x64(True):
        program = large_programs().run.lower(
            solver.problem, solver.state, np.zeros((), np.int32), config=config
        )
        found = program.compile().memory_analysis()
    vector = 8 * max(layout.size for layout in form.layouts)
    # In place, but for the pointers to its arrays.
    assert found.alias_size_in_bytes > found.output_size_in_bytes - 200
    assert found.output_size_in_bytes < 3.1 * vector
    assert found.output_size_in_bytes + found.temp_size_in_bytes < 9 * vector


@pytest.mark.slow
def test_too_little_memory_is_said_before():
    tree = games.compiled("leduc")
    with pytest.raises(GameTooLargeError, match="egt on leduc_poker"):
        spiel_cr.solve(tree, "egt", 1, layout=spiel_cr.Layout(memory_limit="150MB"))
