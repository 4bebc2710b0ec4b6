"""NashConv of results with node locks: of the whole game, and with locks.

Expected values come from OpenSpiel, and from an enumeration of pure strategies.
"""

import itertools
import re

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import (
    best_response,
    expected_game_score,
    exploitability,
)

import spiel_cr
from spiel_cr import GameOptions
from spiel_cr.policies.behaviour_files import read_metadata
from tests.support.commands import outputs

# Leduc poker with one chip behind: six infosets of each player, two actions at each.
GAME = "python_leduc_poker(stack0=2,stack1=2,max_raises=1,num_ranks=2)"
LEDUC = pyspiel.load_game(GAME)
# In the second round player 0 folds half of the time, whatever its card. In the first
# round player 1 always folds card 0.
ROWS = {
    **{
        f"p0 card {own} public {public} bets ddccd": [0.5, 0.5]
        for own in range(2)
        for public in range(2)
    },
    "p1 card 0 public - bets ddc": [1.0, 0.0],
}
# The same locks by information state, and by public node and private state.
LOCKS = {
    "tree": ROWS,
    "public-tree": {"call call": [0.5, 0.5], "call": {"0": {"fold": 1}}},
}
FORMS = pytest.mark.parametrize("form", list(LOCKS))
DARK_HEX = "dark_hex(board_size=2,gameversion=cdh,obstype=reveal-nothing)"


def solve(form, *goal, algorithm="cfr+", **options):
    game_options = GameOptions(form, locks=LOCKS[form])
    return spiel_cr.solve(GAME, algorithm, *goal, options=game_options, **options)


def tabular(policy):
    """Return a copy of a policy as a table that may be changed."""
    table = openspiel_policy.TabularPolicy(LEDUC)
    for state, row in zip(table.states, table.action_probability_array, strict=True):
        for action, probability in policy.action_probabilities(state).items():
            row[action] = probability
    return table


def value(table, player):
    """Compute a player's expected utility if both players follow a table."""
    tables = [table, table]
    return expected_game_score.policy_value(LEDUC.new_initial_state(), tables)[player]


def enumerated_gain(policy, player, locked):
    """Compute what a player gains by the best pure strategy at unlocked infosets."""
    table = tabular(policy)
    rows = [
        table.state_lookup[key]
        for key in table.states_per_player[player]
        if key not in locked
    ]
    before, values = value(table, player), []
    for actions in itertools.product(range(2), repeat=len(rows)):
        for row, action in zip(rows, actions, strict=True):
            table.action_probability_array[row] = [1 - action, action]
        values.append(value(table, player))
    return max(values) - before


def nash_convs(result):
    """Compute NashConv with OpenSpiel, and NashConv with locks by enumeration."""
    policy = result.average_policy()
    for key, row in ROWS.items():
        assert tabular(policy).policy_for_key(key).tolist() == row
    with_locks = sum(enumerated_gain(policy, player, ROWS) for player in range(2))
    return exploitability.nash_conv(LEDUC, policy), with_locks


@FORMS
@pytest.mark.parametrize(("algorithm", "goal"), [("cfr+", [3]), ("lp", [])])
def test_nash_conv_of_locked_results_ignores_the_locks(form, algorithm, goal):
    result = solve(form, *goal, algorithm=algorithm)
    whole, with_locks = nash_convs(result)
    assert with_locks + 0.1 < whole
    assert (with_locks > 0.01) == (algorithm == "cfr+")
    assert result.nash_conv() == pytest.approx(whole, abs=1e-12)
    assert spiel_cr.nash_conv(GAME, result) == result.nash_conv()
    assert result.nash_conv_with_locks() == pytest.approx(with_locks, abs=1e-12)
    assert sum(result.regrets()) == pytest.approx(whole, abs=1e-12)
    for found, bounds in (
        (whole, result.value_bounds()),
        (with_locks, result.value_bounds_with_locks()),
    ):
        assert bounds[1] - bounds[0] == pytest.approx(found, abs=1e-12)
    best = [best_response_value(result.average_policy(), p) for p in range(2)]
    assert result.value_bounds() == pytest.approx((-best[1], best[0]), abs=1e-12)


def best_response_value(policy, player):
    """Compute a best response's expected utility with OpenSpiel."""
    root = LEDUC.new_initial_state()
    return best_response.BestResponsePolicy(LEDUC, player, policy, root).value(root)


def test_both_nash_convs_are_equal_without_locks():
    result = spiel_cr.solve(GAME, "cfr+", spiel_cr.Goal(3, eval_every=3))
    expected = exploitability.nash_conv(LEDUC, result.average_policy())
    assert not result.has_locks and expected > 0.01
    assert result.nash_conv_with_locks() == pytest.approx(expected, abs=1e-12)
    assert result.value_bounds_with_locks() == result.value_bounds()
    assert result.curve[-1].nash_conv_with_locks is None
    assert result.curve[-1].gap == pytest.approx(expected, abs=1e-12)


def test_nash_conv_if_a_whole_player_is_locked(tmp_path):
    game, path = pyspiel.load_game(DARK_HEX), tmp_path / "policy.npz"
    spiel_cr.solve(game, "cfr+", 3, options=GameOptions("phantom")).save(path)
    options = GameOptions("phantom", locks=(path, None))
    result = spiel_cr.solve(
        game, "cfr+", spiel_cr.Goal(2, eval_every=1), options=options
    )
    policy, root = result.average_policy(), game.new_initial_state()
    whole = exploitability.nash_conv(game, policy)
    best = best_response.BestResponsePolicy(game, 1, policy, root).value(root)
    # Player 0 cannot deviate at all.
    played = expected_game_score.policy_value(root, [policy, policy])[1]
    assert 0.01 < best - played < whole - 0.01
    assert spiel_cr.nash_conv(game, result) == pytest.approx(whole, abs=1e-9)
    last = result.curve[-1]
    for found in (last.nash_conv, result.nash_conv()):
        assert found == pytest.approx(whole, abs=1e-9)
    for found in (last.nash_conv_with_locks, result.nash_conv_with_locks()):
        assert found == pytest.approx(best - played, abs=1e-9)


@FORMS
def test_until_compares_with_nash_conv_with_locks(form, tmp_path):
    """The curve has both values, including after the run was resumed."""
    goal = spiel_cr.Goal(until=0.01, iterations=10_000)
    result = solve(form, goal)
    whole, with_locks = nash_convs(result)
    assert with_locks <= 0.01 < 0.1 < whole and result.iterations < 10_000
    first, last = result.curve[0], result.curve[-1]
    assert last.iterations == result.iterations
    assert last.nash_conv == pytest.approx(whole, abs=1e-9)
    assert last.nash_conv_with_locks == pytest.approx(with_locks, abs=1e-9)
    assert last.gap == last.nash_conv_with_locks < 0.01 < first.gap
    path = tmp_path / "checkpoint"
    solve(form, first.iterations, checkpoint=path)
    for _ in range(2):  # the second run finds that the goal was reached
        resumed = solve(form, goal, checkpoint=path)
        assert resumed.curve[-1]._replace(seconds=0) == last._replace(seconds=0)


def test_auto_chooses_and_improves_by_nash_conv_with_locks():
    result = solve("tree", 1000, algorithm="auto")
    assert result.reason.startswith("NashConv with locks ")
    measured = [float(text) for text in re.findall(r"\d\.\de[+-]\d+", result.reason)]
    assert len(measured) >= 3 and max(measured) < 0.05
    assert result.nash_conv_with_locks() < 1e-12 < 0.1 < nash_convs(result)[0]


def test_evaluations_ignore_the_locks(tmp_path):
    result, path = solve("tree", 3), tmp_path / "policy.npz"
    whole, with_locks = nash_convs(result)
    free, kept = (
        sum(
            spiel_cr.best_response(GAME, result, player, locks=locks).value
            for player in range(2)
        )
        for locks in (None, LOCKS["tree"])
    )
    result.save(path)
    for found in (
        free,
        spiel_cr.evaluate(GAME, result).nash_conv,
        spiel_cr.differences(GAME, result, "uniform").nash_conv[0],
        spiel_cr.nash_conv(GAME, str(path)),
        read_metadata(path)["nash_conv"],
    ):
        assert found == pytest.approx(whole, abs=1e-12)
    for found in (kept, read_metadata(path)["nash_conv_with_locks"]):
        assert found == pytest.approx(with_locks, abs=1e-12)


def test_resolving_reports_nash_conv_with_and_without_locks():
    options = GameOptions(locks=LOCKS["tree"])
    result = spiel_cr.resolve(GAME, "cfr+", 20, options=options)
    whole, with_locks = nash_convs(result)
    assert with_locks + 0.1 < whole
    assert spiel_cr.nash_conv(GAME, result) == pytest.approx(whole, abs=1e-12)
    assert result.nash_conv_with_locks() == pytest.approx(with_locks, abs=1e-12)


def test_notebook_and_plot_label_nash_conv_with_locks():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = solve("tree", spiel_cr.Goal(40, eval_every=20))
    page, points = result._repr_html_(), result.curve
    for number, name in (
        (result.nash_conv(), "NashConv"),
        (result.nash_conv_with_locks(), "NashConv with locks"),
    ):
        assert f"<td>{name}</td><td>{number:.3e}</td>" in page
    assert f"NashConv with locks {points[0].nash_conv_with_locks:.1e} after 20" in page
    axes = spiel_cr.plot(result).figure.axes
    assert axes[0].get_ylabel() == "NashConv with locks (game's units)"
    shown = list(axes[0].lines[0].get_ydata())
    assert shown == [point.nash_conv_with_locks for point in points]
    free = spiel_cr.solve(GAME, "cfr+", spiel_cr.Goal(40, eval_every=20))
    label = spiel_cr.plot({"free": free}).figure.axes[0].get_ylabel()
    assert label == "NashConv (game's units)"


@FORMS
@pytest.mark.parametrize("evaluator", ["openspiel", "spiel_cr"])
def test_solve_command_reports_nash_conv_with_and_without_locks(
    form, evaluator, capsys, tmp_path
):
    path = tmp_path / "locks.json"
    path.write_text(str(LOCKS[form]).replace("'", '"'))
    found, out, _ = outputs(
        capsys,
        *("solve", "--game", GAME, "--form", form, "--lock", path),
        *("--algorithm", "cfr+", "--iterations", 3, "--eval-every", 3),
        *("--evaluator", evaluator),
    )
    whole, with_locks = nash_convs(solve(form, 3))
    assert found["evaluator"] == evaluator and found["locked"] == [4, 1]
    last = found["curve"][-1]
    assert set(last) == {"iterations", "seconds", "nash_conv", "nash_conv_with_locks"}
    for each in (found, last):
        assert each["nash_conv"] == pytest.approx(whole, abs=1e-9)
        assert each["nash_conv_with_locks"] == pytest.approx(with_locks, abs=1e-9)
    assert sum(found["regrets"]) == pytest.approx(whole, abs=1e-9)
    low, high = found["value_bounds_with_locks"]
    assert high - low == pytest.approx(with_locks, abs=1e-9)
    if evaluator == "spiel_cr":
        low, high = found["value_bounds"]
        assert high - low == pytest.approx(whole, abs=1e-9)
    assert f"  NashConv    {whole:.3e}  (" in out
    assert f"  with locks  NashConv {with_locks:.3e}, game value in [" in out


def test_spot_page_shows_nash_conv_with_and_without_locks(capsys, tmp_path):
    path = tmp_path / "page.html"
    found, _, _ = outputs(
        capsys,
        *("spot", "--board", "5c9dJs2h3c", "--pot", 200, "--stack", 900),
        *("--ranges", "QQ+;JJ+", "--bets", "50%,allin", "--iterations", 3),
        *("--lock", '{"check bet-100": {"fold": 1}}', "--html", path),
    )
    whole, with_locks = found["nash_conv"], found["nash_conv_with_locks"]
    assert 1 < with_locks < whole
    lead = f"NashConv {whole:.3g} (with locks {with_locks:.3g})"
    assert lead in path.read_text("utf-8")
