"""Games of the early rounds only, compared with the complete game."""

import dataclasses
import functools

import numpy as np
import pytest
from open_spiel.python.algorithms import expected_game_score

import game_defs  # noqa: F401
import spiel_cr
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.games.sequence_form import locking
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.resolving import first_phase

LEDUC = "python_leduc_poker(stack0=5,stack1=5,num_ranks=3)"
RHODE_ISLAND = "python_rhode_island_holdem(num_ranks=3,num_suits=2,max_bets=1)"
# Two private cards, two public rounds; hands of a shared deck as matrices.
PAIRS = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=5 10,"
    "firstPlayer=2 1,numSuits=2,numRanks=4,numHoleCards=2,numBoardCards=0 2,"
    "raiseSize=10 20,maxRaises=1 1)"
)
# No limit: the showdown follows at once if both players are all-in.
ALL_IN = (
    "universal_poker(betting=nolimit,bettingAbstraction=fcpa,numPlayers=2,numRounds=2,"
    "blind=5 10,firstPlayer=2 1,numSuits=2,numRanks=4,numHoleCards=1,numBoardCards=0 1,"
    "stack=60 60)"
)
GAMES = ((RHODE_ISLAND, 1), (RHODE_ISLAND, 2), (PAIRS, 1), (ALL_IN, 1), (LEDUC, 1))


@functools.cache
def built(name):
    return public_tree_game(name)


def mixed(game, seed):
    """Random action probabilities for both players."""
    rng = np.random.default_rng(seed)
    return [
        conversions.behaviour_from_reach(own, rng.uniform(0.05, 1, own.num_sequences))
        for own in game.decisions
    ]


def value(game, behaviour):
    reach = best_responses.reach_of(game.sequence_form, behaviour)
    return best_responses.expected_value(game.sequence_form, reach)


@pytest.mark.parametrize("later", ["check-down", "uniform", "random"])
@pytest.mark.parametrize(("name", "rounds"), GAMES)
def test_values_equal_those_of_the_complete_game(name, rounds, later):
    """Compare values of random strategies with those in the complete game."""
    game = built(name)
    play = mixed(game, 9) if later == "random" else later
    early = first_phase.early_rounds(game, rounds, play)
    early.check()
    assert early.num_rounds == rounds
    assert early.num_private_states(0) == game.num_private_states(0)[:rounds]
    for seed in range(3):
        behaviour = mixed(early, seed)
        whole = first_phase.with_later_rounds(game, behaviour, play)
        assert value(early, behaviour) == pytest.approx(value(game, whole), abs=1e-12)


@pytest.mark.parametrize("later", ["check-down", "uniform", "random"])
def test_values_equal_those_of_openspiel(later):
    """Compare with recursion over all states of the game, without public trees."""
    game = built(LEDUC)
    play = mixed(game, 3) if later == "random" else later
    early = first_phase.early_rounds(game, 1, play)
    behaviour = mixed(early, 4)
    policy = FormPolicy(game, first_phase.with_later_rounds(game, behaviour, play))
    root = game.game.new_initial_state()
    expected = expected_game_score.policy_value(root, [policy, policy])
    assert value(early, behaviour) == pytest.approx(expected[0], abs=1e-12)
    assert abs(expected[0]) > 1e-3


def nash_conv(form, behaviour):
    return best_responses.nash_conv(form, best_responses.reach_of(form, behaviour))


def test_nash_conv_equals_the_complete_game_with_later_rounds_locked():
    """In the complete game, all infosets of later rounds have node locks."""
    game, play = built(LEDUC), mixed(built(LEDUC), 5)
    early = first_phase.early_rounds(game, 1, play)
    free = [np.full(own.num_sequences, np.nan) for own in early.decisions]
    rows = first_phase.with_later_rounds(game, free, play)
    form = locking.locked(game.sequence_form, (rows[0], rows[1]))
    average = spiel_cr.solve(early, "cfr+", 300).average
    for behaviour in (average, mixed(early, 6)):
        whole = first_phase.with_later_rounds(game, behaviour, play)
        gains = nash_conv(early.sequence_form, behaviour)
        assert gains == pytest.approx(nash_conv(form, whole), abs=1e-12)
        # A best response that also plays later rounds gains much more.
        assert nash_conv(game.sequence_form, whole) > gains + 0.5
    assert nash_conv(early.sequence_form, average) < 0.005


def test_check_down_checks_or_calls():
    """OpenSpiel calls this action 1 in every round; fold is 0 and a bet is 2."""
    game = built(RHODE_ISLAND)
    for player, behaviour in enumerate(first_phase.check_down(game)):
        decisions = game.public_decisions[player]
        for node in decisions.node.tolist():
            block = decisions.block(behaviour, node)
            action = game.betting.action[game.betting.children(node)]
            np.testing.assert_array_equal(block, np.tile(action == 1, (len(block), 1)))


def test_early_strategies_are_copied_to_the_complete_game():
    game = built(RHODE_ISLAND)
    early = first_phase.early_rounds(game, 2, "uniform")
    behaviour = mixed(early, 1)
    whole = first_phase.with_later_rounds(game, behaviour, "uniform")
    for player, decisions in enumerate(game.public_decisions):
        nodes = decisions.node[game.betting.round[decisions.node] < 2]
        own = early.public_decisions[player]
        for a, b in zip(nodes, own.node, strict=True):
            np.testing.assert_array_equal(
                decisions.block(whole[player], a), own.block(behaviour[player], b)
            )
        for node in decisions.node[game.betting.round[decisions.node] == 2]:
            assert np.ptp(decisions.block(whole[player], node)) == 0


def test_later_play_independent_of_hands_shares_payoff_matrices():
    """The payoff matrices keep the compact form of hands."""
    for later in ("check-down", "uniform"):
        early = first_phase.early_rounds(built(PAIRS), 1, later)
        kinds = {type(matrix) for matrix in early.payoff_matrices}
        assert kinds == {HandMatrix} and len(early.payoff_matrices) <= 3


def test_later_play_is_loaded_from_a_file(tmp_path):
    """A path, a policy and its probabilities give the same later play."""
    path = str(tmp_path / "blueprint.npz")
    options = spiel_cr.GameOptions("public-tree")
    result = spiel_cr.solve(LEDUC, "cfr+", 30, options=options)
    result.save(path)
    game = built(LEDUC)
    policy = spiel_cr.load_policy(path, game)
    for later in (path, policy, policy.behaviour):
        for found, play in zip(
            first_phase.later_play(game, later), result.average, strict=True
        ):
            np.testing.assert_allclose(found, play, atol=1e-12)


def test_rejects_invalid_arguments():
    game = built(RHODE_ISLAND)
    for rounds in (0, 3):
        with pytest.raises(ValueError, match=f"rounds={rounds}"):
            first_phase.early_rounds(game, rounds)
    with pytest.raises(
        OSError, match="later='nothing.npz': .* use 'check-down', 'uniform'"
    ):
        first_phase.early_rounds(game, 1, "nothing.npz")
    with pytest.raises(ValueError, match=r"has the shape \(5,\)"):
        first_phase.with_later_rounds(game, [np.ones(5), np.ones(5)])
    folds = game.terms._replace(matrix=np.zeros_like(game.terms.matrix))
    with pytest.raises(InvalidGameError, match="hands are never compared after"):
        first_phase.check_down(dataclasses.replace(game, terms=folds))
