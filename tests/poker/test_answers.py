"""Values of hands at nodes, compared with playouts of OpenSpiel's states."""

import numpy as np
import pytest

from spiel_cr import poker
from spiel_cr.games.public_tree import public_tree_game
from spiel_cr.policies.best_responses import behaviour_value
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.policies.form_policy import FormPolicy
from tests.support.kuhn_public_tree import kuhn
from tests.support.strategies import random_spot_policy

RANGES = "AhAd,AsKs:0.5", "QQ,AcKc:0.75"


def random_policy(board: str) -> FormPolicy:
    return random_spot_policy(board, "50%; raises allin; cap 2", RANGES)


def expected(policy: FormPolicy, words: list[str], player: int) -> dict:
    """Return reach, and sums of utility and of showdowns, by hand of a player.

    Every deal is played out, state by state.
    """
    sums: dict[str, np.ndarray] = {}

    def value(state) -> float:
        if state.is_terminal():
            return state.player_return(player)
        if state.is_chance_node():
            chances = state.chance_outcomes()
        else:
            chances = policy.action_probabilities(state).items()
        return sum(chance * value(state.child(a)) for a, chance in chances if chance)

    def showdown(state) -> float:
        """Return the share of showdowns that is won after checks; ties count half."""
        while not state.is_terminal() and not state.is_chance_node():
            state = state.child(1)
        if state.is_terminal():
            return (1 + np.sign(state.player_return(player))) / 2
        return sum(p * showdown(state.child(a)) for a, p in state.chance_outcomes())

    def walk(state, left, chance) -> None:
        if not chance:
            return
        if state.is_chance_node():
            for action, share in state.chance_outcomes():
                walk(state.child(action), left, chance * share)
            return
        if not left:
            hand = policy.form.reader.private_state(state, player)
            found = np.array([1, value(state), showdown(state)]) * chance
            sums[hand] = sums.get(hand, 0) + found
            return
        played = policy.action_probabilities(state)
        for action, share in played.items():
            mover = state.current_player()
            name = state.action_to_string(mover, action).lower().replace(" ", "-")
            if name == left[0]:
                walk(state.child(action), left[1:], chance * share)

    walk(policy.game.new_initial_state(), words, 1.0)
    return sums


@pytest.mark.parametrize(
    ("board", "node"),
    [
        ("5c9dJs2h3c", ""),
        ("5c9dJs2h3c", "check bet-10"),
        *(
            pytest.param("5c9dJs2h", node, marks=pytest.mark.slow)
            for node in ("bet-10", "check check check bet-10")
        ),
    ],
)
def test_ev_and_equity_equal_playouts(board, node):
    policy = random_policy(board)
    found = poker.answers(policy, node)
    sums = expected(policy, node.split(), found.player)
    likelihood = np.zeros(len(found.names))
    for private_state, (chance, value, won) in sums.items():
        likelihood[private_state] = chance
        assert found.ev[private_state] == pytest.approx(value / chance, abs=1e-9)
        assert found.equity[private_state] == pytest.approx(won / chance, abs=1e-12)
    assert found.likelihood == pytest.approx(likelihood, abs=1e-12)
    assert found.path == tuple(node.split())


def test_rows_have_weights_combos_and_probabilities():
    policy = random_policy("5c9dJs2h3c")
    root = poker.answers(policy)
    rows = {row["hand"]: row for row in root.rows()}
    assert {hand: row["weight"] for hand, row in rows.items()} == {
        "AhAd": 1.0,
        "AsKs": 0.5,
    }
    assert sum(row["combos"] for row in rows.values()) == 2
    after = poker.answers(policy, "check bet-10")
    checked = root.played[:, root.actions.index("check")]
    assert after.weight == pytest.approx(root.weight * checked)
    assert after.rows()[0]["probabilities"] == after.played[0].tolist()
    form = policy.form.sequence_form
    whole = behaviour_value(form, (policy.behaviour[0], policy.behaviour[1]))
    assert root.mean(root.ev) == pytest.approx(whole, abs=1e-9)


def test_unreached_node_has_no_ev_or_equity():
    policy = random_policy("5c9dJs2h3c")
    bet = poker.answers(policy).actions.index("bet-10")
    behaviour = policy.behaviour[0].copy()
    block = policy.form.public_decisions[0].block(behaviour, 0)
    block[:, 1 - bet], block[:, bet] = 1.0, 0.0
    never = FormPolicy(policy.form, [behaviour, policy.behaviour[1]])
    found = poker.answers(never, "bet-10")
    assert not found.likelihood.any() and np.isnan(found.mean(found.ev))
    row = found.rows()[0]
    assert row["ev"] is None and row["equity"] is None and row["weight"] > 0


def test_combos_count_equivalent_suits():
    game = poker.spot("5c9cJc2c3c", 20, 30, ranges=("AA", "random"), bets="pot")
    public_tree = public_tree_game(game)
    uniform = [uniform_behaviour(own) for own in public_tree.sequence_form.decisions]
    found = poker.answers(FormPolicy(public_tree, uniform))
    assert sorted(found.combos) == [3, 3] and len(found.names) == 2


def test_means_over_cards_use_hands_of_the_first_street():
    policy = random_policy("5c9cJc2c")
    first, later = poker.answers(policy), poker.answers(policy, "check check")
    assert (first.player, later.player) == (0, 0) and len(later.names) > 2
    reader = policy.form.reader
    hand, orbits = policy.form.ancestors(0, 1, 0), reader.orbits(0, 1)
    means = later.by_hand(hand, orbits, first.names, first.combos)
    assert means.names == first.names and (means.combos == first.combos).all()
    assert means.ev.shape == first.ev.shape and means.mean(means.ev) == pytest.approx(
        later.mean(later.ev)
    )


def test_rejects_games_without_hands_of_cards():
    policy = FormPolicy(kuhn(), [np.array([1] + [0.5] * 12)] * 2)
    with pytest.raises(ValueError, match="its private states are not hands of cards"):
        poker.answers(policy)
