"""Exact evaluation of Flop Hold'em in public-tree form, on decks of several sizes."""

import itertools
import zlib

import numpy as np
import pytest
from open_spiel.python import policy as openspiel_policy

import spiel_cr
from spiel_cr.common.errors import MoreKnowledgeError
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.games.public_tree.public_tree_queries import queries
from spiel_cr.policies.form_policy import CanonicalPolicy
from spiel_cr.policies.queries import query
from tests.support import flop_holdem


def game_string(ranks: int, suits: int, raises: str = "3 3") -> str:
    return (
        f"universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=100 50,"
        f"firstPlayer=2 1,numSuits={suits},numRanks={ranks},numHoleCards=2,"
        f"numBoardCards=0 3,raiseSize=100 100,maxRaises={raises})"
    )


@pytest.mark.parametrize(
    "deck",
    [
        (5, 2),
        *(
            pytest.param(deck, marks=pytest.mark.slow)
            for deck in ((4, 3), (3, 4), (6, 3), (13, 4))
        ),
    ],
)
@pytest.mark.parametrize("name", ["uniform", "always_call"])
def test_nash_conv_of_policies_that_ignore_cards_equals_reference(deck, name):
    game = flop_holdem.FlopHoldem(*deck)
    opponent = getattr(flop_holdem, name)
    values = [game.best_response_value(player, opponent) for player in range(2)]
    assert game.leaves == 98
    nash_conv = spiel_cr.nash_conv(game_string(*deck), name, memory_limit="8GB")
    assert nash_conv == pytest.approx(sum(values), rel=1e-9)


class SuitedPolicy(openspiel_policy.Policy):
    """A policy whose probabilities depend on every card that its player observes."""

    def __init__(self, game):
        super().__init__(game, [0, 1])

    def action_probabilities(self, state, player_id=None):
        player = state.current_player()
        key = state.information_state_string(player).encode()
        legal = state.legal_actions()
        weights = [1 + zlib.crc32(key + bytes([action])) % 97 for action in legal]
        return {a: w / sum(weights) for a, w in zip(legal, weights, strict=True)}


def test_policies_that_distinguish_equivalent_suits_are_rejected():
    form = public_tree_game(game_string(4, 2, "1 1"))
    with pytest.raises(MoreKnowledgeError, match="canonical"):
        query(form, SuitedPolicy(form.game))


def test_repeated_queries_refer_to_the_first_ones():
    form = public_tree_game(game_string(4, 2, "1 1"))
    random = np.random.default_rng(0)
    first, second = itertools.islice(queries(form, 0, random, merged=True), 2)
    assert second.original is first
    assert form.infoset_of(first.state(5)) == form.infoset_of(second.state(5))
    assert first.state(5).history() != second.state(5).history()


@pytest.mark.slow
def test_canonical_policies_are_strategies_of_both_forms():
    tree = spiel_cr.build_tree(game_string(4, 2, "1 1"))
    form = public_tree_game(tree.game)
    policy = SuitedPolicy(tree.game)
    canonical = CanonicalPolicy(policy, form)
    first = spiel_cr.nash_conv(tree, canonical)
    second = spiel_cr.nash_conv(form, canonical)
    assert first == pytest.approx(second, rel=1e-9)
    assert abs(first - spiel_cr.nash_conv(tree, policy)) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "suits", "raises"), [(5, 2, "1 1"), (4, 3, "0 1"), (3, 4, "0 1")]
)
def test_merged_deals_agree_with_the_game_tree(ranks, suits, raises):
    """Iterates and evaluations on merged deals equal those on the game tree."""
    name = game_string(ranks, suits, raises)
    merged = spiel_cr.GameOptions(form="public-tree")
    result = spiel_cr.solve(name, "cfr+", 5, options=merged)
    tree = spiel_cr.build_tree(name, memory_limit="8GB")
    on_tree = spiel_cr.solve(tree, "cfr+", 5).nash_conv()
    assert result.nash_conv() == pytest.approx(on_tree, rel=1e-9)
    for policy in ("uniform", "always_call"):
        of_tree = spiel_cr.nash_conv(tree, policy)
        of_form = spiel_cr.nash_conv(public_tree_game(name), policy)
        assert of_form == pytest.approx(of_tree, rel=1e-9)
