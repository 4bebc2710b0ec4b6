"""The trace of CFR, compared with OpenSpiel's solver, recursion and `solve`."""

import numpy as np
import pytest
from open_spiel.python.algorithms import cfr as openspiel_cfr
from open_spiel.python.policy import TabularPolicy

import spiel_cr
from spiel_cr.eval.cli import trace
from spiel_cr.solvers.algorithms import find
from tests.eval.test_show import recursive_value
from tests.support import games
from tests.support.commands import outputs, rejection

TRACED = ("trace", "--game", "kuhn_poker")


def policy_of(tree, updates, field):
    policy = {}
    for update in updates:
        for view in update.views:
            first = tree.infosets[view.player].decisions.first_sequence[view.number]
            actions = [action.action for action in view.actions]
            numbers = getattr(update, field)[first : first + len(actions)]
            policy[view.key] = dict(zip(actions, numbers.tolist(), strict=True))
    return policy


@pytest.mark.parametrize("algorithm", ["cfr", "cfr(alternating=false)", "dcfr"])
def test_traced_iterates_equal_those_of_solve(algorithm):
    tree = games.compiled("kuhn")
    config = find(algorithm).config
    for number, updates in enumerate(trace.trace(tree, config, 3), 1):
        result = spiel_cr.solve(tree, algorithm, number)
        for field, policy in (
            ("next_probability", result.current_policy()),
            ("average_probability", result.average_policy()),
        ):
            for key, shares in policy_of(tree, updates, field).items():
                expected = policy.policy_for_key(key)
                assert list(shares.values()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["kuhn", "leduc7"])
def test_traced_numbers_equal_openspiel_and_recursion(name):
    """Regrets equal those of OpenSpiel's solver; reach and values equal recursion."""
    tree = games.compiled(name)
    solver = openspiel_cfr.CFRSolver(tree.game)
    current = None
    for updates in trace.trace(tree, find("cfr").config, 3):
        solver.evaluate_and_update_policy()
        nodes = solver._info_state_nodes
        sizes = np.array([0.0, 0.0])
        for player, update in enumerate(updates):
            for view in update.views:
                first = tree.infosets[player].decisions.first_sequence[view.number]
                regrets = nodes[view.key].cumulative_regret
                for place, action in enumerate(view.actions, first):
                    assert update.cumulative_regret[place] == pytest.approx(
                        regrets[action.action], abs=1e-12
                    )
            # Before the first update both players play uniformly.
            table = TabularPolicy(tree.game)
            if current is not None:
                for key, shares in current.items():
                    row = table.policy_for_key(key)
                    row[list(shares)] = list(shares.values())
            found = {}
            root = tree.game.new_initial_state()
            recursive_value(root, table, [1.0, 1.0], [1.0, 1.0], found)
            for view in update.views:
                slow = found[player, view.key]
                assert view.player_reach == pytest.approx(slow["own"], abs=1e-12)
                assert view.others_reach == pytest.approx(slow["others"], abs=1e-12)
                assert view.value == pytest.approx(slow["value"], abs=1e-12)
                sizes[player] += abs(view.value)
                for action in view.actions:
                    expected = slow["actions"][action.action]
                    assert action.value == pytest.approx(expected, abs=1e-12)
            current = (current or {}) | policy_of(tree, [update], "next_probability")
        assert (sizes > 0).all()


def test_trace_command_prints_the_worked_example(capsys):
    """The worked example of the concepts page: the jack's regrets are ±1/8."""
    words = ("--algorithm", "cfr(alternating=false)", "--iterations", 2)
    found, out, _ = outputs(capsys, *TRACED, *words)
    assert [each["iteration"] for each in found["iterations"]] == [1, 2]
    first, second = ({i["key"]: i for i in e["infosets"]} for e in found["iterations"])
    assert len(first) == len(second) == 12
    jack = first["0"]
    assert jack["name"] == "J, after the deal"
    assert jack["value"] == pytest.approx(-7 / 24)
    values = [action["value"] for action in jack["actions"]]
    assert values == pytest.approx([-5 / 12, -1 / 6])
    assert [a["regret"] for a in jack["actions"]] == pytest.approx([-1 / 8, 1 / 8])
    assert [a["next_probability"] for a in jack["actions"]] == [0, 1]
    assert [a["probability"] for a in second["0"]["actions"]] == [0, 1]
    # Columns: strategy, value, regret, cumulative regret, next, average strategy.
    row = next(line for line in out.splitlines() if line.startswith("  Bet")).split()
    assert row == ["Bet", "0.5", "-0.1667", "0.125", "0.125", "1", "0.5"]
    assert out.count("is updated") == 4


def test_trace_gives_the_solutions_of_the_exercises(capsys):
    """Exercises 6 to 8 of the concepts page."""
    words = ("--algorithm", "cfr(alternating=false)")
    found = outputs(capsys, *TRACED, *words)[0]["iterations"]
    at = [{i["key"]: i for i in each["infosets"]} for each in found]
    jack = at[1]["0"]["actions"]
    assert [a["cumulative_regret"] for a in jack] == pytest.approx([5 / 24, 1 / 8])
    assert [a["next_probability"] for a in jack] == pytest.approx([5 / 8, 3 / 8])
    caught = [each["0pb"] for each in at]
    assert [i["player_reach"] for i in caught] == pytest.approx([1 / 2, 0, 5 / 8])
    folds = [infoset["actions"][0] for infoset in caught]
    assert [a["probability"] for a in folds] == pytest.approx([1 / 2, 1, 1])
    averages = [a["average_probability"] for a in folds]
    assert averages == pytest.approx([1 / 2, 1 / 2, 7 / 9])
    assert all(action["regret"] for action in at[1]["0pb"]["actions"][1:])
    alternating = outputs(capsys, *TRACED, "--iterations", 1)[0]["iterations"]
    later = {i["key"]: i for i in alternating[0]["infosets"]}
    for card in "012":
        after_check = later[f"{card}p"]["actions"]
        assert [a["value"] for a in after_check] == [0, 0]
        values, halves = (
            [a["value"] for a in infosets[f"{card}b"]["actions"]]
            for infosets in (later, at[0])
        )
        assert values == pytest.approx([2 * half for half in halves])


def test_trace_filters_by_name_player_and_limit(capsys):
    words = ("--find", "J, after Bet", "--iterations", 1, "--player", 1)
    found, out, _ = outputs(capsys, *TRACED, *words)
    (iteration,) = found["iterations"]
    assert [infoset["key"] for infoset in iteration["infosets"]] == ["0b"]
    assert "player 0 is updated" not in out
    out = outputs(capsys, *TRACED, "--limit", 2)[1]
    assert out.count("4 more information states; raise --limit") == 6


def test_algorithms_without_regrets_are_rejected(capsys):
    for algorithm in ("lp", "os-mccfr", "egt"):
        assert algorithm in rejection(capsys, *TRACED, "--algorithm", algorithm)
