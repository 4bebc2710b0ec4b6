"""Buckets of infosets that share regrets, compared with slow CFR and plain CFR."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spiel_cr
from game_defs import latent_board, leduc_poker
from spiel_cr.common.jax_utils import precision, quick_options
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.games.opening import batched_rules
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.tree import tree_builder
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import bucket_labels, cfr
from spiel_cr.solvers.mccfr import mccfr, trajectories
from tests.support import games, made_games, reference
from tests.support.commands import report
from tests.support.solving import solve_with

KEEP = "python_latent_tic_tac_toe(conflict=keep)"
FORGETFUL = (
    "python_leduc_poker",
    "python_leduc_poker(stack0=13,stack1=9,max_raises=2,num_ranks=4)",
    "python_princess_and_monster(horizon=4)",
    "python_princess_and_monster(rows=2,columns=4,horizon=4)",
)
LEDUC_RAISES = "python_leduc_poker(stack0=13,stack1=13,max_raises=2,num_ranks=3)"
# For float64, tens of iterations and payoffs of at most 10.
TOLERANCE = 1e-9


def quick_jit(function):
    return jax.jit(function, compiler_options=quick_options())


@functools.cache
def compiled(string):
    return tree_builder.build_tree(string)


@functools.cache
def reference_tree(string):
    return reference.Tree(compiled(string).game)


def same_partition(ones, others):
    """Return whether two lists of keys group the same positions."""
    pairs = len(set(zip(ones, others, strict=True)))
    return pairs == len(set(ones)) == len(set(others))


def every_state(game):
    """Generate all decision nodes with the player that acts."""
    stack = [game.new_initial_state()]
    while stack:
        state = stack.pop()
        if state.is_terminal():
            continue
        if not state.is_chance_node():
            yield state, state.current_player()
        stack += [state.child(action) for action in state.legal_actions()]


def random_maps(tree, seed):
    """Assign infosets of all levels at random to two buckets per set of actions."""
    random = np.random.default_rng(seed)
    return tuple(
        {
            key: (tuple(tree.actions((p, key))), int(random.integers(2)))
            for q, key in tree.infosets
            if q == p
        }
        for p in range(2)
    )


def compare(game, tree, maps, name, iterations):
    """Assert that iterates and averages of `solve` equal those of the reference."""
    bucket_of = {(p, key): (p, maps[p][key]) for p, key in tree.infosets}
    how = {"beta": None, "gamma": 1.0} if name == "cfr+" else {}
    slow = reference.CFR(tree, buckets=bucket_of, **how)
    for _ in range(iterations):
        slow.step()
    fast = spiel_cr.solve(
        game, name, iterations, options=spiel_cr.GameOptions(buckets=maps)
    )
    for ours, theirs in ((fast.current, slow.policy), (fast.average, slow.average())):
        for p in range(2):
            mine = game.infosets[p]
            first = mine.decisions.first_sequence
            for i, key in enumerate(mine.keys):
                played = ours[p][first[i] :][: mine.decisions.num_actions[i]]
                wanted = theirs[p, key]
                acts = mine.actions[first[i] - 1 :][: len(wanted)].tolist()
                assert played == pytest.approx(
                    [wanted[a] for a in acts], abs=TOLERANCE
                ), (name, p, key)


@pytest.mark.parametrize(
    ("string", "name"), [(FORGETFUL[0], "cfr+"), (FORGETFUL[2], "cfr")]
)
def test_iterates_equal_those_of_the_reference(string, name):
    game, tree = compiled(string), reference_tree(string)
    labels = bucket_labels.labels_of(game, imperfect_recall=True)
    maps = tuple(
        dict(zip(game.infosets[p].keys, labels[p].tolist(), strict=True))
        for p in range(2)
    )
    compare(game, tree, maps, name, 12)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_iterates_equal_the_reference_on_random_games(seed):
    """Numbers of actions differ, and a bucket has infosets of several levels."""
    made = made_games.random_game(seed, turns="by history", max_actions=3, depth=5)
    game, tree = tree_builder.build_tree(made), reference.Tree(made)
    maps = random_maps(tree, seed)
    labels = bucket_labels.labels_of(game, maps)
    levels = game.sequence_form.decisions[0].levels()
    shared = [set(levels[labels[0] == b]) for b in range(labels[0].max() + 1)]
    assert max(len(found) for found in shared) > 1
    compare(game, tree, maps, ("cfr", "cfr+")[seed % 2], 7)


@pytest.mark.parametrize(
    ("row", "name", "dtype", "tolerance"),
    [
        # XLA fuses multiplications and additions of the two functions differently.
        pytest.param("leduc7", "cfr+", "float64", 1e-12, marks=pytest.mark.slow),
        ("kuhn", "cfr+", "float32", 1e-4),
        pytest.param("kuhn", "dcfr", "float64", 1e-12, marks=pytest.mark.slow),
        ("kuhn", "pcfr+(exploration=0.1,alternating=false)", "float64", 1e-12),
        # The random draws are the same, so only rounding differs.
        ("kuhn", "os-mccfr(batch=32)", "float64", 1e-9),
        pytest.param(
            *("kuhn", "evr-mccfr(batch=32)", "float64", 1e-9), marks=pytest.mark.slow
        ),
    ],
)
def test_singleton_buckets_do_not_change_iterates(row, name, dtype, tolerance):
    game = games.compiled(row)
    # The labels differ from the numbers of the infosets, and have gaps.
    alone = tuple(7 + 3 * np.arange(len(own))[::-1] for own in game.infosets)
    plain, shared = (
        solve_with(game, name, 30, dtype=dtype, seed=3, buckets=buckets)
        for buckets in (None, alone)
    )
    for one, other in zip(
        (*plain.average, *plain.current),
        (*shared.average, *shared.current),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


def test_singleton_buckets_do_not_change_infoset_values():
    """Re-solving uses these values, which are means over the iterates."""
    game = games.compiled("kuhn")
    config = find("cfr+").config
    alone = tuple(np.arange(len(own), dtype=np.int32) for own in game.infosets)
    found = []
    for labels in ((None, None), alone):
        solver = cfr.make_solver(
            game.sequence_form, config=config, values=True, buckets=labels
        )
        solver.run(20)
        found.append([solver.infoset_values(p) for p in range(2)])
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=0, atol=1e-12)


def assert_same_within_buckets(game, strategies, tolerance):
    """Assert that folding, always the first action, has one probability per bucket."""
    labels = bucket_labels.labels_of(game, imperfect_recall=True)
    for p, strategy in enumerate(strategies):
        first = game.sequence_form.decisions[p].first_sequence
        for bucket in range(labels[p].max() + 1):
            members = np.flatnonzero(labels[p] == bucket)
            assert np.ptp(strategy[first[members]]) < tolerance


def test_infosets_of_a_bucket_have_the_same_strategy():
    game = compiled(FORGETFUL[0])
    result = solve_with(game, "cfr+", 100, imperfect_recall=True)
    assert_same_within_buckets(game, result.average, 1e-12)
    assert_same_within_buckets(game, result.current, 1e-12)


def test_buckets_may_be_given_for_one_player_only():
    game = compiled(FORGETFUL[0])
    both = bucket_labels.labels_of(game, imperfect_recall=True)
    result = solve_with(game, "cfr+", 300, buckets=(None, both[1]))
    solved = spiel_cr.solve(game, "cfr+", 300)
    assert solved.nash_conv() < 0.01 < result.nash_conv() < 0.2
    # Player 0, who has no buckets, still distinguishes infosets of the same label.
    first = game.sequence_form.decisions[0].first_sequence
    apart = [
        np.ptp(result.average[0][first[both[0] == bucket]])
        for bucket in range(both[0].max() + 1)
    ]
    assert max(apart) > 0.1


@quick_jit
def action_values(tree, strategy, other):
    """Compute exact counterfactual values by position, float [size]."""
    leaves = treeplex.leaf_values(tree, other)
    child = values = None
    parts = []
    for level, blocks in reversed(list(zip(tree.levels, strategy, strict=True))):
        actions = treeplex.values_below(level, leaves, child, values)
        parts = [*(a.reshape(-1) for a in actions), *parts]
        means = [(s * a).sum(0) for s, a in zip(blocks, actions, strict=True)]
        child, values = level, jnp.concatenate(means)
    return jnp.concatenate([jnp.zeros(1), *parts])


@pytest.mark.slow
def test_sampled_update_with_exact_values_equals_full_width_update():
    """Regrets and strategies are equal if exact values replace the estimates."""
    game = compiled(FORGETFUL[0])
    labels = bucket_labels.labels_of(game, imperfect_recall=True)
    config = find("os-mccfr(batch=1)").config
    random = np.random.default_rng(0)
    solver = mccfr.make_solver(game, config=config, dtype="float64", buckets=labels)
    samples = solver.problem.samples
    problem, start = solver.problem, solver.state
    with precision(np.dtype(np.float64)):
        for p in range(2):
            tree, shared = problem.trees[p], problem.shared[p]
            state = start.players[p]
            other = jnp.asarray(random.random(game.sequence_form.layouts[1 - p].size))
            table = np.zeros(len(samples.balanced))
            table[samples.entries[p]] = action_values(tree, state.strategy, other)
            sample = trajectories.Sample(jnp.asarray(table), None, None)

            one = jnp.asarray(1.0)
            full_width = functools.partial(cfr.update_player, config.rule)
            expected = quick_jit(full_width)(
                tree, shared, state, other, iteration=one, share=one
            )

            @quick_jit
            def update(problem, state, sample, player=p, one=one):
                return mccfr.update_player(
                    *(problem, player, state, sample, config.rule),
                    iteration=one,
                    share=one,
                )

            found = update(problem, state, sample)
            assert any(np.abs(block).max() > 0 for block in expected.regrets[0])
            for ours, theirs in zip(
                jax.tree.leaves((found.regrets, found.strategy)),
                jax.tree.leaves((expected.regrets, expected.strategy)),
                strict=True,
            ):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_sampled_buckets_share_strategies_and_converge():
    """Uniform play has NashConv 2.725; three seeds reached 0.07 to 0.15."""
    game, name = compiled(FORGETFUL[0]), "os-mccfr(batch=1024)"
    result = solve_with(game, name, 1000, imperfect_recall=True, seed=1)
    assert_same_within_buckets(game, result.average, 1e-6)
    assert result.nash_conv() < 0.3


def test_imperfect_recall_of_bets_in_leduc_has_a_small_loss():
    """NashConv is always that of the game with perfect recall.

    Uniform play has 2.725. There is no published result: the bounds state that
    imperfect recall has a cost, and that the policy is far better than uniform play.
    """
    result = solve_with("python_leduc_poker", "cfr+", 5000, imperfect_recall=True)
    exact = openspiel_evaluator.evaluate(
        result.tree.game, result.average_policy()
    ).nash_conv
    assert exact == pytest.approx(result.nash_conv(), abs=TOLERANCE)
    assert 0.05 < exact < 0.2


def test_solve_command_supports_imperfect_recall(capsys):
    words = ("--game", "python_leduc_poker", "--iterations", 50)
    found = report(capsys, "solve", *words, "--imperfect-recall")
    result = solve_with("python_leduc_poker", "cfr+", 50, imperfect_recall=True)
    assert found["nash_conv"] == pytest.approx(result.nash_conv(), abs=TOLERANCE)


def test_run_with_buckets_resumes_bitwise_identically(tmp_path):
    path = tmp_path / "run.npz"
    options = {"imperfect_recall": True, "checkpoint_path": path}
    solve_with("python_leduc_poker", "cfr+", 20, **options)
    resumed = solve_with("python_leduc_poker", "cfr+", 50, **options)
    whole = solve_with("python_leduc_poker", "cfr+", 50, imperfect_recall=True)
    for ours, theirs in zip(resumed.average, whole.average, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for other in ({}, {"buckets": (None, np.arange(60))}):
        with pytest.raises(ValueError, match="with buckets"):
            solve_with("python_leduc_poker", "cfr+", 60, checkpoint_path=path, **other)


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("python_leduc_poker", 84),
        ("python_princess_and_monster", 32),
        pytest.param(KEEP, 7756, marks=pytest.mark.slow),
    ],
)
def test_numbers_of_buckets_equal_published_ones(string, expected):
    """The numbers are totals over both players, from Schlindenbuch (2019)."""
    game = tree_builder.build_tree(string)
    labels = bucket_labels.labels_of(game, imperfect_recall=True)
    assert sum(int(mine.max()) + 1 for mine in labels) == expected
    for mine in labels:
        np.testing.assert_array_equal(np.unique(mine), np.arange(mine.max() + 1))


@pytest.mark.parametrize("string", FORGETFUL)
def test_bucket_keys_are_functions_of_the_infoset(string):
    """All histories of an infoset have one key; states and batched rules agree."""
    game = compiled(string)
    labels = bucket_labels.labels_of(game, imperfect_recall=True)
    seen = ({}, {})
    for state, player in every_state(game.game):
        info = state.information_state_string(player)
        key = state.bucket_key(player)
        assert seen[player].setdefault(info, key) == key
    for p in range(2):
        keys = [seen[p][info] for info in game.infosets[p].keys]
        assert same_partition(keys, labels[p].tolist())
        assert len(set(keys)) < len(keys)


@pytest.mark.parametrize("string", [KEEP, "python_latent_tic_tac_toe", LEDUC_RAISES])
def test_bucket_keys_of_states_and_batched_rules_agree(string):
    """The games are too large to enumerate, so keys of random matches are compared."""
    game = spiel_cr.load_game(string)
    rules, random = batched_rules.of_game(game), np.random.default_rng(3)
    keys, rows = [], []
    for _ in range(300):
        state, path = game.new_initial_state(), []
        while not state.is_terminal():
            if not state.is_chance_node():
                player = state.current_player()
                keys.append((player, state.bucket_key(player)))
                states = rules.new_initial_states()
                for action in path:
                    states = rules.child(states, np.array([action]))
                row = np.atleast_1d(rules.bucket_key(states, player)[0])
                rows.append((player, *row.tolist()))
            path.append(int(random.choice(state.legal_actions())))
            state.apply_action(path[-1])
    assert same_partition(keys, rows)


def test_visible_map_of_latent_tic_tac_toe():
    """A cell that both players marked is the player's; the last mark is hidden."""
    board = 0
    for cell in (4, 4, 0, 8):
        board = latent_board.play(board, 1 << cell)
    own, other = 1 << 4 | 1 << 0, 0
    assert latent_board.visible_map(board, 0, True) == own | other << 9
    board = latent_board.play(board, 1 << 8)
    # Player 1 has marked 4 and 8, and has seen its own 4 and the opponent's 0.
    own, other = 1 << 4 | 1 << 8, 1 << 0
    assert latent_board.visible_map(board, 1, True) == own | other << 9


def test_bucket_labels_without_batched_rules_use_states(monkeypatch):
    game = compiled(FORGETFUL[1])
    fast = bucket_labels.labels_of(game, imperfect_recall=True)
    monkeypatch.setattr(leduc_poker.LeducPokerGame, "batched_rules", lambda self: None)
    slow = bucket_labels.labels_of(game, imperfect_recall=True)
    for p in range(2):
        assert same_partition(fast[p].tolist(), slow[p].tolist())


def test_buckets_as_mappings_and_as_numbers_agree():
    game = games.compiled("kuhn")
    keys = list(game.infosets[0].keys)
    by_name = bucket_labels.labels_of(game, ({keys[0]: "low", keys[2]: "low"}, None))
    assert by_name[1] is None
    assert by_name[0][0] == by_name[0][2]
    assert by_name[0].max() + 1 == 5
    numbers = bucket_labels.labels_of(game, ([9, -4, 9, 3, 2, 1], None))
    assert same_partition(numbers[0].tolist(), by_name[0].tolist())


def test_rejects_buckets_with_different_numbers_of_actions():
    game = compiled("python_leduc_poker(stack0=13,stack1=13,max_raises=1)")
    decisions = game.infosets[0].decisions
    few, many = (
        game.infosets[0].keys[int(np.flatnonzero(decisions.num_actions == n)[0])]
        for n in (2, 3)
    )
    with pytest.raises(ValueError, match="different legal actions") as refusal:
        bucket_labels.labels_of(game, ({few: 1, many: 1}, None))
    assert few in str(refusal.value) and many in str(refusal.value)


def test_rejects_buckets_with_different_actions_of_equal_number():
    def rules(path):
        if len(path) == 2:
            return made_games.Node(made_games.TERMINAL, utility=path[0] - path[1])
        actions = (0, 1) if len(path) == 0 or path[0] == 0 else (0, 2)
        return made_games.Node(len(path), actions, ("a", f"b{path}"))

    game = tree_builder.build_tree(made_games.MadeGame(rules, "unlike"))
    with pytest.raises(ValueError, match=r"\[0, 2\].*\[0, 1\]"):
        bucket_labels.labels_of(game, (None, [0, 0]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"buckets": (None, None), "imperfect_recall": True}, "leave out buckets"),
        ({"imperfect_recall": True}, "no method bucket_key"),
        ({"buckets": (None,)}, "use one for each player"),
        ({"buckets": (np.zeros(5, int), None)}, "integers \\[6\\]"),
        ({"buckets": (np.zeros(6), None)}, "float64"),
        ({"buckets": (None, {"nonsense": 1})}, "'nonsense'"),
        ({"imperfect_recall": True, "algorithm": "lp"}, "no regrets.*leave out"),
        ({"buckets": (None, [0] * 6), "algorithm": "lp"}, "no regrets.*leave out"),
    ],
)
def test_rejects_invalid_bucket_options(options, words):
    with pytest.raises(ValueError, match=words):
        solve_with(games.compiled("kuhn"), iterations=2, **options)


def test_accepts_buckets_if_a_player_never_acts():
    def rules(path):
        if path:
            return made_games.Node(made_games.TERMINAL, utility=path[0])
        return made_games.Node(1, (0, 1), ("a", "b"))

    game = tree_builder.build_tree(made_games.MadeGame(rules, "alone"))
    result = solve_with(game, "cfr+", 50, buckets=([], [0]))
    assert result.nash_conv() == pytest.approx(0, abs=1e-3)
