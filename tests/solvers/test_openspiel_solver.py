"""CFRSolver against the OpenSpiel solvers that it stands in for."""

import numpy as np
import pytest
from open_spiel.python.algorithms import cfr as openspiel_cfr
from open_spiel.python.algorithms import discounted_cfr

import spiel_cr
from tests.support import games

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
def test_every_iteration_is_openspiels(algorithm):
    game = games.compiled("kuhn").game
    mine, theirs = spiel_cr.CFRSolver(game, algorithm), PEERS[algorithm](game)
    assert_same(mine.current_policy(), theirs.current_policy())
    for done in range(1, 6):
        assert mine.evaluate_and_update_policy() is None
        theirs.evaluate_and_update_policy()
        assert mine.iterations == done
        assert_same(mine.average_policy(), theirs.average_policy())
        assert_same(mine.current_policy(), theirs.current_policy())


def test_the_plain_name_is_cfr_plus():
    assert spiel_cr.CFRPlusSolver("kuhn_poker")._solver.config.name == "cfr+"


def test_several_iterations_in_one_call_are_solves():
    solver = spiel_cr.CFRSolver("kuhn_poker", "pcfr+")
    solver.evaluate_and_update_policy(3)
    solver.evaluate_and_update_policy(iterations=4)
    result = spiel_cr.solve("kuhn_poker", "pcfr+", 7)
    assert solver.iterations == 7
    assert_same(solver.average_policy(), result.average_policy(), atol=0)
    assert_same(solver.current_policy(), result.current_policy(), atol=0)


@pytest.mark.parametrize("name", ["kuhn", "leduc7"])
def test_uniform_before_the_first_iteration(name):
    policy = spiel_cr.CFRSolver(games.compiled(name)).average_policy()
    mask = policy.legal_actions_mask
    uniform = mask / mask.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(policy.action_probability_array, uniform, rtol=1e-15)


@pytest.mark.parametrize("iterations", [0, -1, 1.5, True, 2**31])
def test_bad_iterations_refused(iterations):
    solver = spiel_cr.CFRSolver(games.compiled("kuhn"))
    with pytest.raises(ValueError, match="iterations"):
        solver.evaluate_and_update_policy(iterations)


@pytest.mark.parametrize(
    "arguments", [{"algorithm": "lp"}, {"algorithm": "x"}, {"dtype": "int32"}]
)
def test_bad_arguments_refused(arguments):
    with pytest.raises(ValueError):
        spiel_cr.CFRSolver("kuhn_poker", **arguments)
