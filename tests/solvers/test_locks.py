"""Solving with node locks, compared with games where chance plays the locked rows."""

import json

import numpy as np
import pytest

import spiel_cr
from spiel_cr import GameOptions, poker
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Decisions, sum_payoffs
from spiel_cr.policies.best_responses import best_response_value, value_bounds
from spiel_cr.solvers import lp
from spiel_cr.solvers.representation import represent
from spiel_cr.solvers.solve import task_of
from tests.support.commands import rejection, report
from tests.support.games import compiled

# A small game for the quick tests; functions of the larger one take long to compile.
LEDUC = "leduc7"
LARGER = pytest.param("leduc", marks=pytest.mark.slow)
RIVER = {
    "ranges": ("QQ+,AKs,A5s:0.5,65s", "22+,AT+"),
    "bets": "50%,allin; raises allin",
}


def random_locks(tree, player: int, share: float) -> dict[str, list[float]]:
    """Draw random probabilities at random infosets; some of them are zero."""
    rng = np.random.default_rng(7)
    infosets, locks = tree.infosets[player], {}
    for key, count in zip(infosets.keys, infosets.decisions.num_actions, strict=True):
        row = rng.random(count) * (rng.random(count) < 0.8) + 1e-3
        if rng.random() < share:
            locks[key] = (row / row.sum()).tolist()
    return locks


def with_locks_as_chance(form, rows):
    """Return the game in which chance makes player 0's moves at locked infosets."""
    own = form.decisions[0]
    gone = ~np.isnan(rows[own.first_sequence])
    image, weight = np.zeros(own.num_sequences, int), np.ones(own.num_sequences)
    kept, count = [], 1
    for infoset in np.argsort(own.levels(), kind="stable"):
        parent, first = own.parent[infoset], own.first_sequence[infoset]
        for s in range(first, first + own.num_actions[infoset]):
            weight[s] = weight[parent] * (rows[s] if gone[infoset] else 1.0)
            image[s] = image[parent] if gone[infoset] else count
            count += not gone[infoset]
        if not gone[infoset]:
            kept.append((image[parent], own.num_actions[infoset]))
    parents, counts = np.array(kept, np.int32).reshape(-1, 2).T
    s0, s1, values = form.payoffs
    payoffs = sum_payoffs(image[s0], s1, values * weight[s0])
    return layout.build((Decisions(parents, counts), form.decisions[1]), payoffs)


@pytest.mark.parametrize("name", [LEDUC, LARGER])
@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_locked_game_equals_game_where_chance_plays_locked_rows(share, name):
    tree = compiled(name)
    locks = random_locks(tree, 0, share)
    exact = spiel_cr.solve(tree, "lp", options=GameOptions(locks=locks))
    rows = exact.form.locks[0]
    smaller = with_locks_as_chance(tree.sequence_form, rows)
    value = lp.realisation_plan(smaller, 0)[1]
    bounds = exact.value_bounds_with_locks()
    assert bounds == pytest.approx((value, value), abs=1e-9)
    close = spiel_cr.solve(tree, "dcfr", 600, options=GameOptions(locks=locks))
    low, high = close.value_bounds_with_locks()
    assert low - 1e-9 <= value <= high + 1e-9 and high - low < 2e-3
    for found in (exact, close):
        for strategy in filter(None, (found.average, found.current)):
            assert np.array_equal(strategy[0][~np.isnan(rows)], rows[~np.isnan(rows)])
        assert found.locked_infosets() == (len(locks), 0)
        regrets = found.regrets()
        free = spiel_cr.nash_conv(tree, found.average_policy())
        assert sum(regrets) == pytest.approx(free, abs=1e-9)
        assert regrets[0] > 0.1 > 2e-3 > regrets[1]


@pytest.mark.parametrize(
    "algorithm",
    [
        *("auto", "cfr", "pdcfr+"),
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("cfr+", "pcfr+", "lcfr")),
    ],
)
def test_every_algorithm_keeps_the_locked_probabilities(algorithm):
    tree = compiled(LEDUC)
    locks = random_locks(tree, 1, 0.5)
    found = spiel_cr.solve(tree, algorithm, 20, options=GameOptions(locks=locks))
    table = found.average_policy()
    for key, row in locks.items():
        legal = table.legal_actions_mask[table.state_lookup[key]] > 0
        assert table.policy_for_key(key)[legal].tolist() == row


def test_best_response_keeps_locked_probabilities():
    tree = compiled(LEDUC)
    policy = spiel_cr.solve(tree, "cfr+", 50)
    locks = random_locks(tree, 0, 0.5)
    found = spiel_cr.best_response(tree, policy, 0, locks=locks)
    form = spiel_cr.solve(tree, "cfr+", 1, options=GameOptions(locks=locks)).form
    smaller = with_locks_as_chance(tree.sequence_form, form.locks[0])
    reach = np.ones(form.decisions[1].num_sequences)
    own, played = form.decisions[1], policy.average[1]
    for infoset in np.argsort(own.levels(), kind="stable"):
        ends = own.first_sequence[infoset] + np.arange(own.num_actions[infoset])
        reach[ends] = reach[own.parent[infoset]] * played[ends]
    value = best_response_value(smaller, 0, reach)
    assert found.value == pytest.approx(value, abs=1e-12)
    for key, row in locks.items():
        state = tree.state_at(
            tree.infosets[0].history[tree.infosets[0].keys.index(key)]
        )
        assert list(found.responses[0].action_probabilities(state).values()) == row
    config = spiel_cr.ResponseConfig("ismcts")
    with pytest.raises(ValueError, match="does not support node locks"):
        spiel_cr.best_response(tree, policy, 0, config, locks=locks)


@pytest.mark.parametrize(
    ("player", "share", "gadget"),
    [
        pytest.param(0, 0.4, "cfrd", marks=pytest.mark.slow),
        (1, 0.4, "maxmargin"),
        (1, 1.0, "cfrd"),
    ],
)
@pytest.mark.parametrize("name", [LEDUC, LARGER])
def test_resolving_is_optimal_given_the_locks(name, player, share, gadget):
    tree = compiled(name)
    locks = random_locks(tree, player, share)
    config = spiel_cr.ResolvingConfig("cfr+", 300, gadget=gadget)
    found = spiel_cr.resolve(tree, config, options=GameOptions(locks=locks))
    free = spiel_cr.resolve(tree, config)
    assert found.locked_infosets()[player] == len(locks)
    rows = found.form.locks[player]
    kept = ~np.isnan(rows)
    assert kept.any() and np.array_equal(found.average[player][kept], rows[kept])
    exact = spiel_cr.solve(tree, "lp", options=GameOptions(locks=locks))
    # NashConv is as low as without locks; the value is that of the linear program.
    near = max(free.nash_conv(), 0.01)
    assert found.nash_conv_with_locks() < near
    low, high = found.value_bounds_with_locks()
    assert low - 1e-9 <= exact.game_value() <= high + 1e-9
    assert found.regrets()[player] > 10 * near
    unaware = [free.average[0], free.average[1]]
    unaware[player] = found.average[player]
    other = value_bounds(found.form, tuple(unaware))
    assert other[1] - other[0] > 10 * near


def test_resolving_with_locks_rejects_public_tree_and_depth_limit(capsys):
    game, locks = "kuhn_poker", {"0pb": {"pass": 1}}
    for form, depth in (("public-tree", None), ("auto", 2)):
        config = spiel_cr.ResolvingConfig("cfr+", 10, depth=depth)
        with pytest.raises(ValueError, match="locks: re-solving with node locks"):
            spiel_cr.resolve(game, config, options=GameOptions(form, locks=locks))
    said = report(
        *(capsys, "resolve", "--game", game, "--iterations", 50),
        *("--lock", json.dumps(locks)),
    )
    assert said["locked"] == [1, 0] and said["regrets"][0] >= 0


@pytest.mark.parametrize(
    ("dtype", "share"),
    [pytest.param("float64", 1e-6, marks=pytest.mark.slow), ("float32", 1e-4)],
)
def test_locks_individual_hands_on_a_river(dtype, share):
    game = poker.spot("5c9dJs2h3c", 200, 900, **RIVER)
    locks = {
        "check bet-100": {"random": {"fold": 1}, "KK+": {"call": 0.7, "fold": 0.3}}
    }
    goal = spiel_cr.Goal(until=share * 200, iterations=40_000)
    found = spiel_cr.solve(
        game, "dcfr", goal, options=GameOptions("public-tree", locks=locks), dtype=dtype
    )
    assert found.nash_conv_with_locks() <= share * 200
    after = poker.answers(found.average_policy(), "check bet-100", form=found.form)
    assert after.actions == ("fold", "call", "allin-900")
    for name, row in zip(after.names, after.played, strict=True):
        high = name[0] in "AK" and name[0] == name[2]
        wanted = np.array([0.3, 0.7, 0] if high else [1.0, 0, 0], dtype)
        assert np.array_equal(row, wanted), name
    # The locked opponent usually folds to a bet, so checking would give up the pot.
    bets = poker.answers(found.average_policy(), "check", form=found.form)
    assert bets.mean(bets.played)[bets.actions.index("check")] < 0.35


def test_locks_a_whole_policy_in_the_phantom_form(tmp_path):
    game = "dark_hex(board_size=2,gameversion=cdh,obstype=reveal-nothing)"
    path = tmp_path / "policy.npz"
    spiel_cr.solve(game, "cfr+", 3, options=GameOptions("phantom")).save(path)
    options = GameOptions("phantom", locks=(path, None))
    found = spiel_cr.solve(game, "cfr+", 200, options=options)
    free = spiel_cr.load_policy(path)
    best = spiel_cr.best_response(game, free, 1)
    assert -found.value_bounds()[0] == pytest.approx(best.value, abs=1e-9)
    assert found.nash_conv_with_locks() < 1e-3


@pytest.mark.parametrize(
    ("game", "locks", "words"),
    [
        ("kuhn", {"x": [0.5, 0.5]}, "'x' is not an infoset of kuhn_poker"),
        (
            "kuhn",
            {"0": [0.5, 0.6]},
            r"at '0': invalid strategy \[0.5, 0.6\]; use nonnegative",
        ),
        ("kuhn", {"0": [0.5, float("nan")]}, "at '0': invalid strategy"),
        (
            "kuhn",
            {"0": {"jump": 1}},
            "invalid strategy {'jump': 1}; use nonnegative probabilities of pass, bet",
        ),
        ("kuhn", {}, "no infoset is locked"),
        ("kuhn", (None,), "expected a policy for each player"),
        ("kuhn", (None, None), "expected a policy for each player"),
        ("spot", {"jump": [1]}, "action 'jump' does not exist; choose"),
        ("spot", {"": {"JTx": [1, 0, 0]}}, "after 'the deal' with 'JTx'"),
        ("spot", {"": {"QQ:0.5": [1, 0, 0]}}, "has the weight 0.5; weights are"),
        ("spot", {"": {"54s": [1, 0, 0]}}, "cannot have this hand there; use one of"),
        ("alike", {"": {"AhAd": [1, 0, 0]}}, "AhAd without .*they are equivalent"),
        ("spot", ("policy", None), "a TabularPolicy of .* was given for"),
    ],
)
def test_rejects_invalid_locks(game, locks, words):
    games = {
        "kuhn": "kuhn_poker",
        "spot": poker.spot("5c9dJs2h3c", 200, 900, **RIVER),
        "alike": poker.spot("5c9cJc2c3c", 200, 900, bets="50%,allin"),
    }
    if locks == ("policy", None):
        locks = spiel_cr.solve("kuhn_poker", "cfr", 1).average_policy(), None
    form = "tree" if game == "kuhn" else "public-tree"
    with pytest.raises(ValueError, match=words):
        spiel_cr.solve(games[game], "cfr", 1, options=GameOptions(form, locks=locks))


def test_rejects_locks_with_unsupported_options():
    for algorithm in ("pdhg", "os-mccfr", "sd-cfr"):
        with pytest.raises(ValueError, match="choose one such as 'cfr\\+'"):
            task_of(algorithm, options=GameOptions(locks={"0": [1, 0]}))
    shared = GameOptions(locks={"0": [1, 0]}, buckets=(None, [0, 1, 1, 2]))
    with pytest.raises(ValueError, match="leave buckets"):
        task_of("cfr", options=shared)


def test_checkpoint_with_locks_rejects_a_run_without_locks(tmp_path):
    path = tmp_path / "state"
    locked = GameOptions(locks={"0": [1.0, 0.0]})
    spiel_cr.solve("kuhn_poker", "cfr", 5, options=locked, checkpoint=path)
    spiel_cr.solve("kuhn_poker", "cfr", 9, options=locked, checkpoint=path)
    with pytest.raises(ValueError, match="is a checkpoint with locks"):
        spiel_cr.solve("kuhn_poker", "cfr", 12, checkpoint=path)


def test_private_states_are_not_merged_with_locks():
    game = "python_rhode_island_holdem(num_ranks=3,num_suits=3)"
    task = task_of("cfr", options=GameOptions("public-tree", locks={"": [1, 0]}))
    names = represent(game, task.options, task.need())[0].num_private_states(0)
    free = represent(game, GameOptions("public-tree"))[0].num_private_states(0)
    assert sum(names) > sum(free)


@pytest.mark.parametrize("depth", [200, 900, 10_000])
@pytest.mark.parametrize("form", ["text", "file", "Python"])
def test_rejects_deeply_nested_locks(tmp_path, capsys, depth, form):
    """Python's parser and `repr` have their own limits, which raise other errors."""
    text = '{"0": ' + "[" * depth + "1" + "]" * depth + "}"
    if form == "Python":
        row = 1.0
        for _ in range(depth):
            row = [row]
        for locks in ({"0": row}, row):
            with pytest.raises(ValueError, match="locks"):
                spiel_cr.solve("kuhn_poker", "cfr", 1, options=GameOptions(locks=locks))
        return
    file = tmp_path / "lock.json"
    file.write_text(text)
    lock = text if form == "text" else file
    line = rejection(capsys, "solve", "--game", "kuhn_poker", "--lock", lock)
    assert "nested in more than 100 levels" in line and len(line) < 600


def test_rejects_lock_files_with_invalid_unicode(tmp_path, capsys):
    file = tmp_path / "lock.json"
    file.write_bytes(b'{"0\xff": [1, 0]}')
    words = "solve", "--game", "kuhn_poker", "--lock", file
    assert "is not a JSON object" in rejection(capsys, *words)
    file.write_text('{"0\\ud800\\n": [1, 0]}')
    assert r"locks: '0\ud800\n' is not an infoset" in rejection(capsys, *words)


def test_solve_command_accepts_locks_as_file_text_and_policy(tmp_path, capsys):
    file, policy = tmp_path / "lock.json", tmp_path / "policy.npz"
    file.write_text(json.dumps({"0": [0.75, 0.25], "1pb": {"pass": 1}, "2b": [0, 1]}))
    common = ["solve", "--game", "kuhn_poker", "--algorithm", "lp"]
    found = report(capsys, *common, "--lock", str(file), "--save", str(policy))
    assert found["locked"] == [2, 1] and found["evaluator"] == "openspiel"
    assert found["nash_conv_with_locks"] < 1e-9 < found["regrets"][0]
    assert found["nash_conv"] == pytest.approx(sum(found["regrets"]), abs=1e-9)
    inline = report(capsys, *common, "--lock", file.read_text())
    assert inline["game_value"] == found["game_value"]
    again = report(capsys, *common, "--lock", str(policy), "--lock-player", "1")
    assert again["locked"] == [0, 6] and again["regrets"][0] < 1e-9
