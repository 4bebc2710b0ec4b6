"""Deep solvers: equality with tabular algorithms, convergence and resumed runs."""

import functools

import numpy as np
import pytest

from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.policies.conversions import tabular_policy
from spiel_cr.solvers.deep import DeepSolver
from spiel_cr.solvers.solve import solve
from tests.solvers.deep import whole_visits
from tests.support import games, reference
from tests.support.made_games import MadeGame, twice_in_a_row

FULL = "sampling=external,memory=exact,network=table,fallback=uniform"
BOTH = f"{FULL},averaging=exact+ensemble"
# Presets with a table and without sampling, and the settings of the tabular algorithm.
PAPERS = {
    f"sd-cfr({BOTH},linear=0,gamma=0)": {},
    f"sd-cfr({BOTH})": {
        "alpha": 1.0,
        "beta": 1.0,
        "gamma": 1.0,
    },
    f"vr-deep-dcfr+({BOTH},values=sampled,alpha=inf,gamma=1)": {
        "beta": None,
        "gamma": 1.0,
    },
    f"vr-deep-pdcfr+({BOTH},values=sampled,alpha=2.3,gamma=2)": {
        "alpha": 2.3,
        "beta": None,
        "gamma": 2.0,
        "predictive": True,
    },
}
# The order of sums differs, and thirty iterations magnify rounding errors.
TOLERANCE = 1e-9
TABLE = "network=table,memory=exact,averaging=exact+ensemble,traversals=40"


@functools.cache
def game_of(name: str) -> GameTree:
    if name == "twice":
        return build_tree(MadeGame(twice_in_a_row, "twice"))
    return games.compiled(name)


@pytest.mark.parametrize("name", ["kuhn", "twice"])
@pytest.mark.parametrize("algorithm", PAPERS)
def test_table_without_sampling_equals_the_tabular_algorithm(
    algorithm, name, monkeypatch
):
    """All iterates are equal, and averages: exact ones and mixtures of iterates."""
    whole_visits.visit_whole_tree(monkeypatch)
    game = game_of(name)
    solver = DeepSolver(game, algorithm)
    paper = reference.CFR(reference.Tree(game.game), **PAPERS[algorithm])
    differs = 0
    for _ in range(30):
        solver.run(1)
        paper.step()
        played = [solver.current_behaviour(player) for player in range(2)]
        found = reference.from_behaviours(game, played)
        differs += found != reference.Tree(game.game).uniform()
        assert_close(found, paper.policy)
    assert differs == 30
    exact = solver.average_behaviours("exact")
    assert_close(reference.from_behaviours(game, exact), paper.average())
    for one, other in zip(exact, solver.average_behaviours("ensemble"), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def assert_close(found: reference.Policy, wanted: reference.Policy) -> None:
    for key, shares in wanted.items():
        assert found[key] == pytest.approx(shares, abs=TOLERANCE)


@pytest.mark.slow
def test_leduc_without_sampling_equals_linear_cfr(monkeypatch):
    """The reference is this project's full-width solver."""
    whole_visits.visit_whole_tree(monkeypatch)
    game = games.compiled("leduc")
    solver = DeepSolver(game, f"sd-cfr({FULL},averaging=exact)")
    solver.run(40)
    found = solve(game, "lcfr", 40)
    for player in range(2):
        np.testing.assert_allclose(
            solver.current_behaviour(player), found.current[player], atol=1e-6
        )
        np.testing.assert_allclose(
            solver.average_behaviours()[player], found.average[player], atol=1e-6
        )


def resumed(algorithm, seed, first, second):
    """Run a solver of Kuhn poker, and one that resumes from its state, to the end."""
    solver, again = (DeepSolver(game_of("kuhn"), algorithm, seed=seed) for _ in "12")
    solver.run(first)
    again.restore({name: own.copy() for name, own in solver.arrays().items()})
    for one in (solver, again):
        one.run(second)
    for name, own in solver.arrays().items():
        assert np.array_equal(own, again.arrays()[name]), name
    return solver, again


CRITIC = "critic_steps=20,critic_batch=64"


@pytest.mark.parametrize(
    "algorithm",
    [
        f"sd-cfr({TABLE})",
        f"vr-deep-pdcfr+({TABLE},{CRITIC})",
        *(
            pytest.param(f"{name}({TABLE},{CRITIC})", marks=pytest.mark.slow)
            for name in ("dream", "escher", "vr-deep-dcfr+")
        ),
    ],
)
def test_tables_learn_kuhn_poker(algorithm):
    """NashConv falls below a quarter of uniform play's; resumed runs are identical."""
    game = game_of("kuhn")
    solver, again = resumed(algorithm, 3, 60, 60)
    assert solver.episodes == 120 * 2 * 40
    uniform = games.BY_NAME["kuhn"].uniform
    # Six seeds reached at most 0.15.
    assert solver.nash_conv() < uniform / 4
    other = DeepSolver(game, algorithm, seed=4)
    other.run(60)
    first, second = other.average_behaviours()[0], again.average_behaviours()[0]
    assert not np.array_equal(first, second)


def test_nash_conv_equals_that_of_the_average_policy():
    game = game_of("kuhn")
    solver = DeepSolver(game, f"sd-cfr({TABLE})")
    with pytest.raises(ValueError, match="no average yet"):
        solver.average()
    solver.run(5)
    policy = reference.from_openspiel(
        reference.Tree(game.game), tabular_policy(game, solver.average_behaviours())
    )
    tree = reference.Tree(game.game)
    assert solver.nash_conv() == pytest.approx(reference.nash_conv(tree, policy))
    with pytest.raises(ValueError, match="kind"):
        solver.average("network")


NETWORK = "hidden=16,layers=2,steps=20,traversals=50,average_steps=400"
EVERY = [
    f"deep-cfr({NETWORK},averaging=network+ensemble+exact)",
    f"sd-cfr({NETWORK},memory=exact,ensemble=4)",
    f"dream({NETWORK},{CRITIC})",
    # Two are noisier: one uses the critic alone, one counts the newest regrets twice.
    f"escher({NETWORK},{CRITIC})".replace("traversals=50", "traversals=200").replace(
        "critic_steps=20", "critic_steps=200"
    ),
    f"vr-deep-dcfr+({NETWORK},{CRITIC})",
    f"vr-deep-pdcfr+({NETWORK},{CRITIC})".replace("traversals=50", "traversals=400"),
]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", EVERY)
def test_networks_learn_kuhn_poker(algorithm):
    """NashConv falls below a third of uniform play's; resumed runs are identical."""
    solver, again = resumed(algorithm, 1, 30, 60)
    assert solver.nash_conv() < games.BY_NAME["kuhn"].uniform / 3
    for one, other in zip(
        solver.average_behaviours(), again.average_behaviours(), strict=True
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        ("counts", "counts"),
        ("reach0", "its averages belong to another game"),
        ("advantages1.memory_total", "the sums belong to another game"),
    ],
)
def test_restore_rejects_invalid_states(damage, error):
    solver = DeepSolver(game_of("kuhn"), f"sd-cfr({TABLE})")
    solver.run(2)
    arrays = solver.arrays()
    arrays[damage] = arrays[damage][:-1]
    with pytest.raises(ValueError, match=error):
        DeepSolver(game_of("kuhn"), f"sd-cfr({TABLE})").restore(arrays)
    del arrays[damage]
    with pytest.raises(ValueError, match=damage.rpartition("_")[2]):
        DeepSolver(game_of("kuhn"), f"sd-cfr({TABLE})").restore(arrays)


def test_restore_rejects_iterates_of_other_networks():
    """The error is raised when the state is restored, not when a policy is queried."""
    solver = DeepSolver(game_of("kuhn"), f"sd-cfr({TABLE})")
    solver.run(2)
    arrays = solver.arrays()
    arrays["ensemble1.leaf0"] = arrays["ensemble1.leaf0"][:, :-1]
    with pytest.raises(ValueError, match="its iterates belong to another network"):
        DeepSolver(game_of("kuhn"), f"sd-cfr({TABLE})").restore(arrays)


def test_games_without_tensors_require_a_table():
    with pytest.raises(ValueError, match="features=information_state"):
        DeepSolver(game_of("twice"), "sd-cfr")
    with pytest.raises(ValueError, match="features=observation"):
        DeepSolver(game_of("twice"), "sd-cfr(features=observation)")
