"""Games in public-tree form on the command line: solve, info, show and play."""

import re

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.eval.inspection import hand_grid
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree import public_tree_game
from spiel_cr.players.player_specs import prepare
from spiel_cr.players.player_strings import read_string
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.public_node_names import node_probabilities
from spiel_cr.policies.queries import query
from spiel_cr.solvers import representation
from spiel_cr.solvers.representation import FormRequirements, GameOptions, choose_form
from tests.support.commands import outputs, rejection, run
from tests.support.kuhn_public_tree import kuhn
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node
from tests.support.named_opponents import load_opponent
from tests.support.solving import solve_with

LEDUC = "python_leduc_poker"
KUHN = "kuhn_poker"
SMALL = "python_leduc_poker(max_raises=1)"


@pytest.fixture(scope="module")
def policy_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("policies") / "leduc.npz"
    spiel_cr.solve(LEDUC, "cfr+", 50, options=spiel_cr.GameOptions("public-tree")).save(
        path
    )
    return path


def test_solve_reports_form_and_evaluator(capsys, tmp_path):
    path = tmp_path / "leduc.npz"
    game = ("--game", SMALL, "--algorithm", "cfr+", "--iterations", 100)
    words = ("--form", "public-tree", "--save", path)
    found, out, _ = outputs(capsys, "solve", *game, *words)
    assert found["form"] == "public-tree"
    assert found["evaluator"] == "spiel_cr" and "in public-tree form" in out
    loaded = spiel_cr.load_policy(path, SMALL)
    assert isinstance(loaded, FormPolicy)
    asked = ("--evaluator", "openspiel")
    other, _, _ = outputs(capsys, "solve", *game, *words, *asked)
    assert other["evaluator"] == "openspiel"
    assert other["nash_conv"] == pytest.approx(found["nash_conv"], abs=1e-9)
    compiled, _, _ = outputs(capsys, "solve", *game)
    assert compiled["form"] == "tree"
    assert compiled["nash_conv"] == pytest.approx(found["nash_conv"], abs=1e-9)


def test_info_counts_public_nodes_and_private_states(capsys):
    found, out, _ = outputs(capsys, "info", "--game", LEDUC, "--form", "public-tree")
    tree = spiel_cr.build_tree(LEDUC)
    assert found["infosets"] == [len(own) for own in tree.infosets]
    assert found["sequences"] == [i.decisions.num_sequences for i in tree.infosets]
    assert found["private_states"] == [[3, 9], [3, 9]]
    assert found["public_nodes"] == found["leaves"] + sum(found["decisions"])
    assert [row["shape"] for row in found["payoff_matrices"]][0] == [3, 3]
    assert 0.3e9 < found["peak_bytes"]["float32"] <= found["peak_bytes"]["float64"]
    assert "round 1" in out and re.search(
        r"\d payoff matri(x|ces): round 0, 3 x 3, ", out
    )


def test_show_prints_a_grid_of_hands(capsys, policy_file):
    words = ("--policy", policy_file, "--game", LEDUC, "--node", "check check")
    found, out, _ = outputs(capsys, "show", *words)
    assert (found["node"], found["player"], found["round"]) == (["call", "call"], 0, 1)
    policy = spiel_cr.load_policy(policy_file, LEDUC)
    node = policy.form.betting.node_after([1, 1])
    expected = node_probabilities(policy, node)
    rows = [row["probabilities"] for row in found["hands"]]
    assert np.allclose(rows, expected, atol=1e-12)
    assert found["actions"] == ["fold", "call", "raise"]
    # Each action has a grid, whose columns are board cards.
    assert "\nraise\n    0   1   2\n" in out
    assert f"{round(100 * expected[8, 2]):>3}" in out
    board, _, _ = outputs(capsys, "show", *words, "--board", "2")
    assert [row["hand"] for row in board["hands"]] == ["0", "1", "2"]
    assert board["hands"][2] == found["hands"][8]


def test_hands_of_two_cards_are_placed_by_rank():
    """Suited hands are above the diagonal, and a cell is the mean of its hands."""
    hands = ["AhKh", "AsKd", "KdAs", "2c2d"]
    rows, columns, place = hand_grid._places(hands, ["9c"] * 4)
    assert rows == columns and rows[:2] == ("A", "K")
    assert place.tolist() == [[0, 1], [1, 0], [1, 0], [12, 12]]
    played = np.array([[1, 0], [0.5, 0.5], [0, 1], [0.25, 0.75]])
    cells = hand_grid._means(played, place, (13, 13))
    assert cells[1, 0].tolist() == [0.25, 0.75] and np.isnan(cells[5, 5]).all()


def test_rows_and_columns_without_hands_are_not_printed():
    rows = columns = ("A", "K", "Q")
    cells = np.full((3, 3, 2), np.nan)
    cells[0, 1], cells[0, 2] = (0.25, 0.75), (1, 0)
    grid = hand_grid.HandGrid(
        (), 0, 0, ("check", "bet"), (), (), np.zeros((0, 2)), rows, columns, cells
    )
    assert hand_grid.text_of(grid).split("\n") == [
        *("check", "    K   Q", "A  25 100", ""),
        *("bet", "    K   Q", "A  75   0"),
    ]


def test_grid_of_kuhn_poker_names_its_cards():
    policy = FormPolicy(kuhn(), [np.array([1] + [0.5] * 12)] * 2)
    grid = hand_grid.hand_grid(policy, "pass bet")
    assert grid.rows == ("J", "Q", "K") and grid.actions == ("pass", "bet")
    text = hand_grid.text_of(grid).splitlines()
    assert text == ["  pass bet", "J   50  50", "Q   50  50", "K   50  50"]


@pytest.fixture(scope="module")
def ranges():
    """Load a river with six hands each; OpenSpiel also lists impossible deals."""
    reach = np.zeros((2, 1326), int)
    reach[:, 5::230] = 1
    return pyspiel.load_game(
        "universal_poker(betting=nolimit,numPlayers=2,numRounds=4,blind=100 50,"
        "firstPlayer=2 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,"
        "numBoardCards=0 3 1 1,stack=1000 1000,potSize=200,boardCards=5c9dJs2h3c,"
        f"bettingAbstraction=fcpa,handReaches={' '.join(map(str, reach.ravel()))})"
    )


def test_games_with_ranges_prefer_the_public_tree_form(ranges):
    found = choose_form(open_game(ranges), GameOptions(), FormRequirements({}))
    assert found.form == "public-tree" and "deals of probability zero" in found.text
    with pytest.raises(
        InvalidGameError, match=r"lists 1,\d{3},\d{3} deals .* fail there"
    ):
        openspiel_evaluator.check_public_tree(ranges)


def test_grids_leave_out_impossible_deals(ranges):
    signals = public_tree_game(ranges)
    uniform = [
        conversions.uniform_behaviour(own) for own in signals.sequence_form.decisions
    ]
    grid = hand_grid.hand_grid(FormPolicy(signals, uniform), "")
    assert len(grid.hands) == signals.num_private_states(grid.player)[0] <= 6
    assert grid.played == pytest.approx(1 / len(grid.actions))


def node_with_impossible_deal(path):
    """Return a node; chance outcome 1 has probability zero and raises if applied."""
    if path[:1] == (1,):
        raise pyspiel.SpielError("impossible deal")
    if not path:
        return Node(CHANCE, (0, 1), ("", ""), chance=(1.0, 0.0))
    if len(path) < 3:
        return Node(len(path) - 1, (0, 1), (str(len(path)),) * 2)
    return Node(TERMINAL, utility=1.0 if path[1] == path[2] else -1.0)


def test_games_with_impossible_deals_use_our_evaluator():
    tree = spiel_cr.build_tree(MadeGame(node_with_impossible_deal, "refusing"))
    result = spiel_cr.solve(tree, "lp")
    judged = openspiel_evaluator.evaluate_result(result)
    assert judged.evaluator == "spiel_cr" and judged.nash_conv == pytest.approx(
        0, abs=1e-9
    )
    named = "error when they are applied.* omit --evaluator"
    with pytest.raises(InvalidGameError, match=named):
        openspiel_evaluator.evaluate_result(result, "openspiel")
    with pytest.raises(InvalidGameError, match=named):  # `evaluate` calls this first.
        openspiel_evaluator.check_memory(tree, None)


def test_policies_are_saved_before_the_evaluation(capsys, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise pyspiel.SpielError("it fails")

    monkeypatch.setattr(openspiel_evaluator, "evaluate_result", fail)
    path = tmp_path / "kuhn.npz"
    with pytest.raises(SystemExit, match="2"):
        run("solve", "--game", KUHN, "--iterations", 2, "--save", path)
    assert f"the policy is saved in {path}" in capsys.readouterr().err
    spiel_cr.load_policy(path, KUHN)


def test_policy_bot_plays_a_public_tree_policy(policy_file):
    """The bot does not need a game tree."""
    bot = f"policy(path={policy_file})"
    assert not read_string(bot).needs_tree
    game = prepare(LEDUC, [bot])
    player = spiel_cr.load_bot(game, bot, 0, seed=1)
    state = game.new_initial_state()
    for card in (0, 2):
        state.apply_action(card)
    assert player.step(state) in state.legal_actions()
    opponent = load_opponent(str(policy_file), LEDUC)
    assert isinstance(opponent, FormPolicy)


def test_best_response_to_a_public_tree_policy_is_exact(capsys, policy_file):
    exact = spiel_cr.load_policy(policy_file)
    signals = spiel_cr.solve(exact.form, "cfr+", 50)
    words = ("best-response", "--game", LEDUC, "--policy", policy_file)
    found, _, _ = outputs(capsys, *words, "--method", "exact")
    assert found["value"] == pytest.approx(signals.nash_conv(), abs=1e-6)


@pytest.mark.slow
def test_public_tree_best_response_equals_that_of_the_game_tree(
    capsys, tmp_path, monkeypatch
):
    """Equivalent private states are merged, so there are fewer than declared."""
    game = "python_rhode_island_holdem(num_ranks=2,num_suits=2,max_bets=1)"
    path = tmp_path / "rhode.npz"
    result = solve_with(game, "cfr+", 20, form="public-tree", dtype="float32")
    result.save(path)
    declared = public_tree_game(game).num_private_states(0)
    assert sum(result.game_form.num_private_states(0)) < sum(declared)
    tree = spiel_cr.build_tree(game, observations=True)
    behaviour = query(tree, spiel_cr.load_policy(path, game))
    expected = [
        best_responses.best_response_value(
            tree.sequence_form,
            p,
            best_responses.reach_of(tree.sequence_form, behaviour)[1 - p],
        )
        for p in range(2)
    ]

    def refuse(*_, **__):
        raise AssertionError("tree")

    monkeypatch.setattr(representation, "build_tree", refuse)
    words = ("best-response", "--game", game, "--policy", f"policy(path={path})")
    found, out, _ = outputs(capsys, *words, "--method", "exact")
    assert found["form"] == "public-tree"
    assert found["is_exact"] and found["share"] == pytest.approx(1)
    assert "exact, by a best response in public-tree form" in out
    for seat, value in zip(found["players"], expected, strict=True):
        assert seat["value"] == pytest.approx(value, abs=1e-9)


def test_evaluate_memory_error_recommends_best_response(capsys, policy_file):
    bot = f"policy(path={policy_file})"
    limits = ("--bot", bot, "--memory-limit", "1MB")
    said = rejection(capsys, "evaluate", "--game", LEDUC, *limits)
    assert f"best-response --game '{LEDUC}' --policy {policy_file}" in said
