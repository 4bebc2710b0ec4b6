"""Policies that are queried at the private states of public-tree games."""

import pytest
from open_spiel.python import policy as openspiel_policy

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError, MoreKnowledgeError
from spiel_cr.evaluation import opponent
from spiel_cr.games.public_tree import public_tree_game
from spiel_cr.policies.queries import query

_RHODE = "python_rhode_island_holdem(num_ranks=4,num_suits={},max_bets=1)"


@pytest.mark.parametrize(
    "game", ["liars_dice(numdice=1,dice_sides=3)", _RHODE.format(1)]
)
def test_nash_conv_equals_that_on_the_game_tree(game, monkeypatch):
    """The public-tree form is used if the game tree does not fit in memory."""
    options = spiel_cr.GameOptions("simulator")
    policy = spiel_cr.solve(game, "os-mccfr", 2, options=options).average_policy()
    expected = spiel_cr.nash_conv(game, policy)

    def refuses(*given, **named):
        raise GameTooLargeError("too large")

    monkeypatch.setattr(opponent, "build_for_evaluation", refuses)
    assert spiel_cr.nash_conv(game, policy) == pytest.approx(expected, abs=1e-12)
    assert expected > 0.05


class _Twice(openspiel_policy.Policy):
    """A policy whose probabilities sum to 2."""

    def array_probabilities(self, rules, states, player):
        legal = rules.legal_actions_mask(states)
        return 2 * legal / legal.sum(axis=1, keepdims=True)


def test_rejects_invalid_probabilities():
    game = spiel_cr.load_game("liars_dice(numdice=1,dice_sides=2)")
    with pytest.raises(ValueError, match="_Twice: .* and sum to 1"):
        query(public_tree_game(game), _Twice(game, [0, 1]))


def test_ensembles_are_not_queried_in_public_tree_form(monkeypatch):
    """Their mixture depends on the complete history, so no form is used."""
    algorithm = "sd-cfr(hidden=8,steps=2,traversals=4)"
    game = "liars_dice(numdice=1,dice_sides=2)"
    options = spiel_cr.GameOptions("simulator")
    policy = spiel_cr.solve(game, algorithm, 2, options=options).average_policy()

    def refuses(*given, **named):
        raise GameTooLargeError("too large")

    monkeypatch.setattr(opponent, "build_for_evaluation", refuses)
    target = opponent.open_opponent(policy, game)
    assert target.form is None and str(target.too_large) == "too large"


def test_policies_that_distinguish_equivalent_suits_are_rejected():
    game = _RHODE.format(2)
    options = spiel_cr.GameOptions("simulator")
    policy = spiel_cr.solve(game, "os-mccfr", 10, options=options).average_policy()
    with pytest.raises(MoreKnowledgeError, match="know more than their private"):
        query(public_tree_game(game), policy)
