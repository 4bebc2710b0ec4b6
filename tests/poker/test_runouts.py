"""Runout reports and ranges at nodes, compared with playouts of states."""

import collections

import numpy as np
import pytest

from spiel_cr import poker
from spiel_cr.policies.form_policy import FormPolicy
from tests.support.strategies import random_spot_policy

BETS = "none; river pot; cap 1"


def by_card(policy: FormPolicy, node: list[str], place: int) -> dict[str, np.ndarray]:
    """Return, by card, the reach times (1, utility, equity, actions) at a node."""
    sums: dict[str, np.ndarray] = collections.defaultdict(lambda: np.zeros(5))

    def outcome(state, checks: bool) -> float:
        """Return player 0's utility, or its share of a showdown after checks."""
        if state.is_terminal():
            utility = state.player_return(0)
            return (1 + np.sign(utility)) / 2 if checks else utility
        if state.is_chance_node():
            chances = state.chance_outcomes()
        elif checks:
            chances = [(1, 1.0)]
        else:
            chances = policy.action_probabilities(state).items()
        return sum(p * outcome(state.child(a), checks) for a, p in chances)

    def walk(state, left: list[str], chance: float) -> None:
        if state.is_chance_node():
            for action, p in state.chance_outcomes():
                walk(state.child(action), left, chance * p)
            return
        played = policy.action_probabilities(state)
        if not left:
            card = state.spot.board_text(state.dealt)[2 * place : 2 * place + 2]
            values = [1, outcome(state, False), outcome(state, True), *played.values()]
            sums[card] += chance * np.array(values)
            return
        for action, p in played.items():
            name = state.action_to_string(state.current_player(), action)
            if name.lower().replace(" ", "-") == left[0]:
                walk(state.child(action), left[1:], chance * p)

    walk(policy.game.new_initial_state(), node, 1.0)
    return sums


@pytest.mark.parametrize(
    ("board", "ranges", "node", "street", "cards"),
    [
        # Hearts and diamonds are equivalent.
        ("5c9cJc2c", "AhAd:0.5,QhQd;KhKd:0.25,7h7d", "check check", "river", 48),
        pytest.param(
            *("5h9hJs", "AdAc:0.5;KdKc", "check check check check", "river", 45),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("5h9hJs", "AdAc:0.5;KdKc", "check check check check", "turn", 45),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_runout_report_equals_playouts(board, ranges, node, street, cards):
    policy = random_spot_policy(board, BETS, ranges)
    hands = poker.answers(policy, node)
    report = poker.runout_report(policy, hands, street)
    expected = by_card(policy, node.split(), poker.runouts.STREETS[street])
    assert {row["card"] for row in report} == {*expected} and len(report) == cards
    total = sum(sums[0] for sums in expected.values())
    for row in report:
        chance, utility, won, *played = expected[row["card"]]
        assert row["probability"] == pytest.approx(chance / total, abs=1e-12)
        assert row["ev"] == pytest.approx(utility / chance, abs=1e-9)
        assert row["equity"] == pytest.approx(won / chance, abs=1e-9)
        actions = [row[name] for name in hands.actions]
        assert actions == pytest.approx(np.array(played) / chance, abs=1e-9)


def test_answers_and_ranges_on_a_given_board():
    policy = random_spot_policy("5c9cJc2c", BETS, "AA:0.5,KhQh;AK:0.25")
    board, node = "5c9cJc2cAd", "check check"
    hands = poker.answers(policy, node, board=board)
    assert {name.partition(" | ")[2] for name in hands.names} == {board}
    assert hands.combos.sum() == 3 + 1
    first, second = poker.ranges(policy, node, board=board)
    # The players have only checked, and always do so here.
    assert first == "AhAc:0.5,AsAc:0.5,AsAh:0.5,KhQh" and "Ad" not in second
    assert poker.ranges(policy)[0] == "AA:0.5,KhQh"
    gto = poker.ranges(policy, notation="gto+")
    assert gto == ("KhQh,[50]AA[/50]", "[25]AK[/25]")
    game = poker.spot("5c9cJc2c", 20, 30, ranges=gto)
    assert (game.spot.deals.reaches == policy.game.spot.deals.reaches).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: poker.ranges(p, "check check"), "board='': not the public cards"),
        (lambda p: poker.answers(p, board="5c9c"), "write 5c9cJc2c and the 0 cards"),
        (lambda p: poker.answers(p, board="5c9cJc2x"), "board='5c9cJc2x': not the"),
        (
            lambda p: poker.answers(p, "check check", board="5c9cJc2cJc"),
            "board='5c9cJc2cJc': not the public cards of this decision",
        ),
        (
            lambda p: poker.runout_report(p, poker.answers(p), "river"),
            "report='river': no river is dealt before the decision after the deal",
        ),
        (
            lambda p: poker.runout_report(p, poker.answers(p, "check check"), "turn"),
            "report='turn': no turn is dealt before the decision after check check",
        ),
        (lambda p: poker.ranges(p, notation="flopzilla"), "notation='flopzilla'"),
    ],
)
def test_rejects_invalid_boards_reports_and_notations(call, said):
    policy = random_spot_policy("5c9cJc2c", BETS, "AA;KK")
    with pytest.raises(ValueError) as refusal:
        call(policy)
    assert said in str(refusal.value)
