"""Control variates: removing luck from matches adds no bias and reduces noise."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policy_lib

from spiel_cr.evaluation.control_variates import Luck, without_luck
from spiel_cr.games.opening.game_checks import chance_outcomes
from spiel_cr.policies.rollouts import Answers


def played(game, seed, *, known=True):
    """Play a uniform match, and return player 0's return and luck."""
    policy = policy_lib.UniformRandomPolicy(game)
    answers = {p: Answers(policy, p) for p in (0, 1)}
    luck = Luck(
        *(0, answers, np.random.default_rng([1, seed])),
        rollouts=6,
        opponent_is_known=known,
    )
    random, state = np.random.default_rng([0, seed]), game.new_initial_state()
    while not state.is_terminal():
        player = state.current_player()
        moves = state.legal_actions()
        odds = [p for _, p in chance_outcomes(state)] if player < 0 else None
        action = int(random.choice(moves, p=odds))
        luck(state, player, action)
        state.apply_action(action)
    return state.player_return(0), luck.total


def test_luck_has_mean_zero_and_explains_returns():
    """The value of uniform play in leduc_poker is -0.078; there are 400 matches."""
    game = pyspiel.load_game("leduc_poker")
    returns, luck = np.array([played(game, seed) for seed in range(400)]).T
    # Five standard errors: a false alarm in 1e6.
    assert abs(luck.mean()) < 5 * luck.std() / np.sqrt(len(luck))
    taken = without_luck(returns, luck)
    assert taken.std() < 0.9 * returns.std()
    assert abs(taken.mean() - -0.078) < 5 * taken.std() / np.sqrt(len(taken))


def test_only_luck_of_chance_is_removed_for_unknown_opponents():
    game = pyspiel.load_game("phantom_ttt")
    assert played(game, 0, known=False)[1] == 0
    assert any(played(game, seed)[1] for seed in range(3))


def test_each_half_is_fitted_on_the_other():
    luck = np.tile([1.0, 1.0, -1.0, -1.0], 5)
    returns = 3.0 + 2 * luck
    np.testing.assert_allclose(without_luck(returns, luck), 3.0)
    own = returns.copy()
    own[0] += 100
    # The return of a match does not change how much of its own luck is removed.
    assert without_luck(own, luck)[0] == pytest.approx(103.0)
    np.testing.assert_array_equal(without_luck(returns[:8], luck[:8]), returns[:8])
    np.testing.assert_array_equal(without_luck(returns, 0 * luck), returns)
