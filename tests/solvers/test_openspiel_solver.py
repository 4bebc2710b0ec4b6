"""CFRSolver, compared with the OpenSpiel solvers that it replaces."""

import copy
import pickle

import numpy as np
import pytest
from open_spiel.python.algorithms import cfr as openspiel_cfr
from open_spiel.python.algorithms import discounted_cfr

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from tests.support import games
from tests.support.made_games import MadeGame, rps_plus

PEERS = {
    "cfr+": openspiel_cfr.CFRPlusSolver,
    "cfr": openspiel_cfr.CFRSolver,
    "lcfr": discounted_cfr.LCFRSolver,
    "dcfr": discounted_cfr.DCFRSolver,
}


def assert_same(mine, theirs, atol=1e-9):
    assert set(mine.state_lookup) == set(theirs.state_lookup)
    for key in theirs.state_lookup:
        np.testing.assert_allclose(
            mine.policy_for_key(key), theirs.policy_for_key(key), rtol=0, atol=atol
        )


@pytest.mark.parametrize("algorithm", PEERS)
def test_policies_equal_openspiel_after_every_iteration(algorithm):
    game = games.compiled("kuhn").game
    mine, theirs = spiel_cr.CFRSolver(game, algorithm), PEERS[algorithm](game)
    assert_same(mine.current_policy(), theirs.current_policy())
    for done in range(1, 6):
        assert mine.evaluate_and_update_policy() is None
        theirs.evaluate_and_update_policy()
        assert mine.iterations == done
        assert_same(mine.average_policy(), theirs.average_policy())
        assert_same(mine.current_policy(), theirs.current_policy())


def test_cfr_plus_solver_runs_cfr_plus():
    assert spiel_cr.CFRPlusSolver("kuhn_poker")._solver.config.name == "cfr+"


def test_several_iterations_in_one_call_equal_solve():
    solver = spiel_cr.CFRSolver("kuhn_poker", "pcfr+")
    solver.evaluate_and_update_policy(3)
    solver.evaluate_and_update_policy(iterations=4)
    result = spiel_cr.solve("kuhn_poker", "pcfr+", 7)
    assert solver.iterations == 7
    assert_same(solver.average_policy(), result.average_policy(), atol=0)
    assert_same(solver.current_policy(), result.current_policy(), atol=0)


@pytest.mark.parametrize("name", ["kuhn", "leduc7"])
def test_policy_is_uniform_before_the_first_iteration(name):
    policy = spiel_cr.CFRSolver(games.compiled(name)).average_policy()
    mask = policy.legal_actions_mask
    uniform = mask / mask.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(policy.action_probability_array, uniform, rtol=1e-15)


@pytest.mark.parametrize("iterations", [0, -1, 1.5, True, 2**31])
def test_rejects_invalid_iterations(iterations):
    solver = spiel_cr.CFRSolver(games.compiled("kuhn"))
    with pytest.raises(ValueError, match="iterations"):
        solver.evaluate_and_update_policy(iterations)


@pytest.mark.parametrize(
    "arguments", [{"algorithm": "lp"}, {"algorithm": "x"}, {"dtype": "int32"}]
)
def test_rejects_invalid_arguments(arguments):
    (value,) = arguments.values()
    with pytest.raises(ValueError, match=f"'?{value}'?"):
        spiel_cr.CFRSolver("kuhn_poker", **arguments)


def copied(solver, how):
    if how == "pickle":
        return pickle.loads(pickle.dumps(solver))
    return getattr(copy, how)(solver)


@pytest.mark.parametrize("how", ["pickle", "deepcopy", "copy"])
@pytest.mark.parametrize(
    ("game", "algorithm", "dtype"),
    [
        ("kuhn_poker", "cfr+", "float64"),
        ("kuhn_poker", "pdcfr+(alpha=2,gamma=3)", "float32"),
        # A string that OpenSpiel cannot parse, simultaneous moves, a Python game.
        ("nim(pile_sizes=3)", "cfr", "float64"),
        ("goofspiel(num_cards=2,players=2,imp_info=true)", "dcfr", "float64"),
        ("python_rock_paper_scissors", "lcfr", "float64"),
    ],
)
def test_copies_continue_bitwise_identically(game, algorithm, dtype, how):
    for done in (0, 3):
        first = spiel_cr.CFRSolver(game, algorithm, dtype=dtype)
        if done:
            first.evaluate_and_update_policy(done)
        second = copied(first, how)
        assert second.iterations == done and str(second.game) == str(first.game)
        for _ in range(2):
            assert_same(second.average_policy(), first.average_policy(), atol=0)
            assert_same(second.current_policy(), first.current_policy(), atol=0)
            # Only the first solver runs, so the copy must share nothing with it.
            first.evaluate_and_update_policy(4)
            assert second.iterations == first.iterations - 4
            second.evaluate_and_update_policy(4)


def test_a_pickle_keeps_the_memory_limit():
    solver = spiel_cr.CFRPlusSolver("kuhn_poker", memory_limit="2GB")
    state = copied(copied(solver, "pickle"), "deepcopy").__getstate__()
    fresh = spiel_cr.CFRSolver.__new__(spiel_cr.CFRSolver)
    with pytest.raises(GameTooLargeError, match="memory_limit"):
        fresh.__setstate__(state | {"memory_limit": "1MB"})
    assert state["memory_limit"] == "2GB"


def test_unregistered_games_can_be_copied_but_not_pickled():
    solver = spiel_cr.CFRSolver(MadeGame(rps_plus, "rps_plus"))
    solver.evaluate_and_update_policy(2)
    assert_same(copy.deepcopy(solver).average_policy(), solver.average_policy(), atol=0)
    with pytest.raises(ValueError, match=r"rps_plus\(\) cannot be pickled.*register"):
        pickle.dumps(solver)


def test_rejects_pickles_of_changed_or_unknown_games():
    state = spiel_cr.CFRSolver("kuhn_poker").__getstate__()
    for changed, words in (
        ({"game": "leduc_poker()"}, "another version of"),
        ({"game": "my_unknown_game()"}, "import the module"),
    ):
        fresh = spiel_cr.CFRSolver.__new__(spiel_cr.CFRSolver)
        with pytest.raises(ValueError, match=words):
            fresh.__setstate__(state | changed)
