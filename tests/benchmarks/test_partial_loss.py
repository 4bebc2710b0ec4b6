"""What a player gives away, by an equilibrium: nothing by itself, known mistakes."""

import json

import numpy as np
import pytest

from benchmarks import partial_loss
from spiel_cr.policies.bot_base import PolicyPlayer

GAME = "python_leduc_poker"


@pytest.fixture(scope="module")
def values():
    return partial_loss.Values(GAME, 100)


class Known(PolicyPlayer):
    """Plays by the values of an equilibrium."""

    def __init__(self, player, values, choose):
        super().__init__(player)
        self._values, self._choose = values, choose

    def get_policy(self, state):
        actions, odds, worth = self._values.at(state)
        return list(zip(actions, self._choose(odds, worth), strict=True))


def pair(values, choose):
    return [Known(player, values, choose) for player in range(2)]


def test_the_equilibrium_gives_nothing_away(values):
    found = partial_loss.losses(values, pair(values, lambda odds, _: odds), 10, 0)
    np.testing.assert_allclose(found, 0, atol=1e-12)


def test_a_best_reply_gains_no_more_than_nash_conv_allows(values):
    """The strategy is near an equilibrium, so little can be gained."""

    def best(_, worth):
        return (worth == worth.max()).astype(float)

    found = partial_loss.losses(values, pair(values, best), 40, 0)
    assert (found <= 1e-12).all() and found.mean() > -10 * values.nash_conv


def test_the_worst_action_costs_what_it_is_worth(values):
    def worst(_, worth):
        return (worth == worth.min()).astype(float)

    found = partial_loss.losses(values, pair(values, worst), 40, 0)
    assert (found >= 0).all() and found.mean() > 0.3


def test_values_are_those_of_the_whole_game(values):
    """At the first decisions, weighted by chance: the value of the game."""
    state, total = values.tree.game.new_initial_state(), 0.0
    for card, share in state.chance_outcomes():
        after = state.child(card)
        for second, rest in after.chance_outcomes():
            _, odds, worth = values.at(after.child(second))
            total += share * rest * float(odds @ worth)
    # The value of Leduc poker for the player who begins.
    assert total == pytest.approx(-0.0856, abs=2 * values.nash_conv + 1e-4)


@pytest.mark.slow
def test_command(tmp_path, capsys):
    out = tmp_path / "loss.jsonl"
    options = [
        "--game",
        "kuhn_poker",
        "--matches",
        "4",
        "--solve",
        "50",
        "--repeats",
        "2",
    ]
    names = ["resolving(max_histories=58,iterations=20)", "ismcts(20)", "uniform"]
    assert (
        partial_loss.BENCHMARK.main([*options, "--bots", *names, "--out", str(out)])
        == 0
    )
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["bot"] for row in rows] == names
    assert all(np.isfinite(row["loss"]) and row["interval"] >= 0 for row in rows)
    printed = capsys.readouterr().out
    assert all(f"| `{name}` |" in printed for name in names)
    assert (
        printed.index("NashConv") < printed.index("loss") < printed.index("| matches")
    )
    # The whole game fits, so little is left to exploit; uniform play is judged once.
    assert [len(row["nash_conv"]) for row in rows] == [2, 0, 1]
    assert max(rows[0]["nash_conv"]) < 0.2 < rows[2]["nash_conv"][0]
