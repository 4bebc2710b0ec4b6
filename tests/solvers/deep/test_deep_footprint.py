"""Estimates of the memory that training needs, and checks against the limit."""

import numpy as np
import pytest

import spiel_cr
from spiel_cr.common import memory, networks
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.opening.opened import open_game
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.deep import deep_footprint
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.outputs import PerceptronShape
from spiel_cr.solvers.deep.tensors import simulated_tensors

DICE = "liars_dice(numdice=1,dice_sides=3)"
SMALL = "hidden=4,layers=1,steps=2,traversals=80,batch=32"


@pytest.mark.slow
def test_size_of_full_memories_equals_the_estimate():
    """The reservoirs and the critic's memory of the solver are full."""
    text = f"dream({SMALL},capacity=64,critic_capacity=40,critic_batch=8,ensemble=2)"
    config, simulation = find(text).config, simulated_tensors(open_game(DICE))
    solver = DeepSolver(simulation, config)
    solver.run(3)
    found = {"reservoirs": 0, "moves": 0, "iterates": 0}
    for name, own in solver.arrays().items():
        if "memory_" in name and "num_seen" not in name:
            found["reservoirs"] += own.nbytes
        elif name.startswith("replay") and "num_seen" not in name:
            found["moves"] += own.nbytes
        elif name.startswith("ensemble") and "leaf" in name:
            found["iterates"] += own.nbytes
    need = deep_footprint.estimate(
        config, simulation.source.game, simulation.knowledge, 3
    )
    actions = simulation.knowledge.num_actions
    # A fit copies weights and targets of one reservoir, an average the iterates.
    assert need.reservoirs == found["reservoirs"] + 64 * (8 + 8 * actions)
    assert need.moves == found["moves"]
    assert need.iterates == 2 * found["iterates"]
    shape = PerceptronShape(simulation.knowledge.num_features, actions, 4, 1)
    leaves = networks.leaves(networks.make(shape.widths, 0))
    assert networks.num_weights(shape.widths) == sum(leaf.size for leaf in leaves)


@pytest.mark.parametrize(
    ("text", "iterations", "part", "remedy"),
    [
        ("sd-cfr(capacity=10_000_000,ensemble=5)", None, "reservoirs", "capacity="),
        ("dream(critic_capacity=100_000_000)", 1, "moves", "critic_capacity="),
        ("sd-cfr(capacity=1000,hidden=512,layers=3)", 10**4, "iterates", "ensemble="),
        ("vr-deep-dcfr+(traversals=10_000_000)", 1, "visits", "traversals="),
        ("mmd(episodes=1_000_000)", None, "visits", "episodes="),
    ],
)
def test_memory_error_names_a_setting_that_fits(text, iterations, part, remedy):
    text = text.replace("_000", "000")
    simulation, limit = simulated_tensors(open_game("phantom_ttt")), "1GB"
    arguments = simulation.source.game, simulation.knowledge, iterations
    need = deep_footprint.estimate(find(text).config, *arguments)
    assert max(need) == getattr(need, part)
    with pytest.raises(GameTooLargeError, match=f"choose {remedy}") as refused:
        deep_footprint.check(find(text).config, *arguments, limit)
    less = str(refused.value).partition(f"choose {remedy}")[2].split(",")[0].split()[0]
    name = remedy.removesuffix("=")
    settings = [
        one for one in text[:-1].partition("(")[2].split(",") if name not in one
    ]
    head = text.partition("(")[0]
    smaller = f"{head}({','.join([*settings, f'{remedy}{less}'])})"
    deep_footprint.check(find(smaller).config, *arguments, limit)
    deep_footprint.check(find(text).config, *arguments, "none")


def test_short_runs_need_less_memory_than_full_reservoirs():
    """Outcome sampling visits at most as many decisions as a match has moves."""
    simulation = simulated_tensors(open_game(DICE))
    few, many = (
        deep_footprint.estimate(
            find("dream").config,
            simulation.source.game,
            simulation.knowledge,
            iterations,
        )
        for iterations in (1, 10**6)
    )
    length, actions = (
        simulation.source.game.max_game_length(),
        simulation.knowledge.num_actions,
    )
    visit = simulation.knowledge.row_bytes + 5 * actions + 8
    kept = 4000 * length
    assert few.reservoirs == kept * (2 * visit + 8 + 8 * actions) < many.reservoirs
    assert np.isfinite(many.reservoirs)


def test_rejects_critic_tables_that_exceed_the_memory_limit(monkeypatch):
    """Leduc poker has 3,780 decisions, and tensors of 30 numbers."""
    tree = spiel_cr.build_tree("leduc_poker")
    config, room = find("mmd").config, memory.BASE_BYTES + 2 * 3780 * 2 * 30 * 4
    deep_footprint.check_tree(config, tree, room)
    with pytest.raises(GameTooLargeError, match="3,780 decisions.*--form simulator"):
        deep_footprint.check_tree(config, tree, room - 1)
    deep_footprint.check_tree(find("sd-cfr").config, tree, 1)
    # `solve` checks this before it makes a solver.
    monkeypatch.setattr(memory, "BASE_BYTES", 1e12)
    with pytest.raises(GameTooLargeError, match="critic has a table"):
        spiel_cr.solve(tree, "mmd", 1)


def test_memory_limit_is_checked_before_a_solver_is_made(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("made")

    monkeypatch.setattr(DeepSolver, "__init__", fail)
    with pytest.raises(GameTooLargeError, match=r"capacity=\d+, or mmd"):
        spiel_cr.solve(
            "phantom_ttt",
            "deep-cfr(capacity=100000000)",
            spiel_cr.Goal(seconds=1.0),
            options=spiel_cr.GameOptions("simulator", memory_limit="2GB"),
        )
