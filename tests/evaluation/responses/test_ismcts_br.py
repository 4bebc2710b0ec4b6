"""ISMCTS-BR on game trees: beliefs, transitions, statistics, and response quality."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from open_spiel.python.algorithms import best_response as openspiel_best_response

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.evaluation.response_matches import expected_reward
from spiel_cr.evaluation.responses import ismcts_kernel, ismcts_search
from spiel_cr.policies import best_responses
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.policies.beliefs import tree_posterior
from spiel_cr.policies.best_responses import best_response_value, reach_of
from tests.support.made_games import scaled_game
from tests.support.strategies import random_behaviours

_SMALL = (
    "kuhn_poker",
    "python_leduc_poker",
    "python_ii_goofspiel(num_cards=3)",
    # One player has many more infosets than the other.
    "python_scotland_yard(rounds=2)",
)


_build_tree = functools.cache(spiel_cr.build_tree)


def _sparse(tree):
    """Return random strategies of both players, with some zeros."""
    return random_behaviours(tree, 1, zeros=True)


def _uniform(tree):
    return tuple(policy_lib.uniform_behaviour(i.decisions) for i in tree.infosets)


def _walk(tree, player, policy, state, weight, found):
    """Collect chance times the opponent's reach, by infoset and history."""
    if state.is_terminal():
        return
    if state.is_chance_node():
        for action, p in state.chance_outcomes():
            _walk(tree, player, policy, state.child(action), weight * p, found)
        return
    mine = state.current_player() == player
    if mine:
        key = state.information_state_string(player)
        found.setdefault(key, {})[tuple(state.history())] = weight
    odds = {} if mine else policy.action_probabilities(state)
    for action in state.legal_actions():
        step = 1.0 if mine else odds[action]
        _walk(tree, player, policy, state.child(action), weight * step, found)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("game", _SMALL)
def test_beliefs_equal_those_of_enumeration(game, player):
    tree = _build_tree(game)
    behaviour = _sparse(tree)
    policy = policy_lib.tabular_policy(tree, behaviour)
    found: dict[str, dict[tuple[int, ...], float]] = {}
    _walk(tree, player, policy, tree.game.new_initial_state(), 1.0, found)
    beliefs = tree_posterior.beliefs(tree, player, behaviour[1 - player])
    keys = list(tree.infosets[player].keys)
    compared = 0
    for history in np.flatnonzero(tree.histories.player == player):
        known = found[keys[tree.histories.infoset[history]]]
        total = sum(known.values())
        if total > 0:
            exact = known[tuple(tree.histories.actions_to(int(history)))] / total
            assert beliefs[history] == pytest.approx(exact, abs=1e-12)
            compared += 1
    assert compared > 5
    sums = np.bincount(
        tree.histories.infoset[tree.histories.player == player],
        beliefs[tree.histories.player == player],
    )
    # Unreachable infosets have a belief too.
    np.testing.assert_allclose(sums, 1, atol=1e-12)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("game", _SMALL)
def test_transitions_and_rewards_reproduce_exact_values(game, player):
    # One Bellman step with the arrays of the search, applied to the exact values of a
    # best response, must reproduce these values.
    tree = _build_tree(game)
    behaviour = _sparse(tree)
    arrays = ismcts_kernel.build(tree, player, behaviour[1 - player], dtype=np.float64)
    reach = reach_of(tree.sequence_form, behaviour)[1 - player]
    weight = tree_posterior.weights(tree, player, behaviour[1 - player])
    here = tree.histories.player == player
    total = np.bincount(tree.histories.infoset[here], weight[here])
    exact = best_responses.infoset_values(tree.sequence_form, player, reach)[:-1]
    reached = total > 0
    exact = np.where(reached, exact / np.where(reached, total, 1), 0)
    for infoset in np.flatnonzero(reached):
        members = slice(*arrays.member_start[infoset : infoset + 2])
        odds = np.diff(arrays.belief[members], prepend=0.0)
        values = []
        for a in range(arrays.actions[infoset]):
            value = arrays.reward[arrays.first[infoset] + a]
            for node, p in zip(arrays.member[members], odds, strict=True):
                edge = arrays.edge[node] + a
                below = slice(*arrays.start[edge : edge + 2])
                each = np.diff(arrays.probabilities[below], prepend=0.0)
                next_values = exact[arrays.infoset[below]]
                value += p * arrays.going[edge] * (each @ next_values)
            values.append(value)
        assert max(values) == pytest.approx(exact[infoset], abs=1e-9)


def test_pick_draws_from_cumulative_probabilities():
    odds = np.array([0.25, 0.25, 1.0, 0.5, 1.0, 1.0])
    begin, end = np.array([0, 0, 0, 3, 3]), np.array([3, 3, 3, 6, 6])
    draw = np.array([0.0, 0.25, 0.999, 0.499, 0.5])
    found = ismcts_kernel.pick(odds, begin, end, draw, 3)
    # The second and the last outcome have probability zero.
    np.testing.assert_array_equal(found, [0, 2, 2, 3, 4])


def _share(tree, behaviour, config, seed):
    """Return the share of the best-response values that is found, for both players."""
    found = exact = 0.0
    for player in (0, 1):
        other = behaviour[1 - player]
        response = ismcts_search.search_response(tree, player, other, config, seed=seed)
        found += expected_reward(tree.sequence_form, player, response.behaviour, other)
        reach = reach_of(tree.sequence_form, behaviour)[1 - player]
        exact += best_response_value(tree.sequence_form, player, reach)
    return found / exact


@pytest.mark.parametrize(
    "game, simulations, seeds, least",
    [
        ("kuhn_poker", 5000, 6, 0.99),
        # Measured: 0.975 to 1; with 10 000 simulations above 0.99, see the benchmark.
        pytest.param("leduc_poker", 3000, 20, 0.96, marks=pytest.mark.slow),
    ],
)
def test_shares_are_high_and_do_not_exceed_one(game, simulations, seeds, least):
    tree = _build_tree(game)
    behaviour = _uniform(tree) if game == "leduc_poker" else _sparse(tree)
    config = SearchConfig(simulations)
    shares = [_share(tree, behaviour, config, seed) for seed in range(seeds)]
    # The response is evaluated exactly, so only rounding can exceed 1.
    assert max(shares) <= 1 + 1e-9
    assert min(shares) > least


def test_response_is_near_openspiels_best_response():
    tree = _build_tree("python_ii_goofspiel(num_cards=3)")
    behaviour = _sparse(tree)
    policy = policy_lib.tabular_policy(tree, behaviour)
    reference = openspiel_best_response.BestResponsePolicy(tree.game, 0, policy)
    exact = reference.value(tree.game.new_initial_state())
    config = SearchConfig(20_000)
    response = ismcts_search.search_response(tree, 0, behaviour[1], config, seed=1)
    found = expected_reward(tree.sequence_form, 0, response.behaviour, behaviour[1])
    assert exact - 0.02 < found <= exact + 1e-9


def test_equal_seeds_are_bitwise_identical_and_others_differ():
    tree = _build_tree("kuhn_poker")
    behaviour = _sparse(tree)
    config = SearchConfig(500)
    runs = [
        ismcts_search.search_response(tree, 0, behaviour[1], config, seed=seed)
        for seed in (3, 3, 4)
    ]
    for name in ismcts_kernel.SearchStatistics._fields:
        first, again, other = (np.asarray(getattr(r.table, name)) for r in runs)
        np.testing.assert_array_equal(first, again)
        if name == "visits":
            assert (first != other).any()


def test_statistics_are_consistent():
    tree = _build_tree("leduc_poker")
    behaviour = _sparse(tree)
    infosets = tree.infosets[1]
    arrays = ismcts_kernel.build(tree, 1, behaviour[0], dtype=np.float64)
    with jax.enable_x64(True):
        prior = ismcts_search.uniform_prior(arrays)
        table = ismcts_search.empty_table(arrays)
        roots = np.flatnonzero(infosets.decisions.parent == 0)
        config = SearchConfig(700, batch=256)
        table, done = ismcts_search.search(
            arrays, table, prior, roots, jax.random.key(5), config
        )
        table = jax.tree.map(np.asarray, table)
    decisions = infosets.decisions
    visits = table.visits[: decisions.num_sequences]
    np.testing.assert_array_equal(
        np.bincount(decisions.owner[1:], visits[1:]), table.reached
    )
    assert done >= 700 * len(roots)
    assert table.started.sum() == table.reached[roots].sum() == done
    assert table.reached[roots].max() - table.reached[roots].min() <= 256
    # Recompute the values, one infoset after another.
    total = visits * arrays.reward[: len(visits)]
    for infoset in range(len(decisions) - 1, -1, -1):
        here = decisions.first_sequence[infoset] + np.arange(
            decisions.num_actions[infoset]
        )
        if table.reached[infoset]:
            mean = total[here] / np.maximum(visits[here], 1)
            weight = visits[here] ** 4
            arrived = table.reached[infoset] - table.started[infoset]
            share = arrived / weight.sum()
            total[decisions.parent[infoset]] += share * (weight @ mean)
    value = total / np.maximum(visits, 1)
    np.testing.assert_allclose(value, table.value[: len(visits)], atol=1e-9)


@pytest.mark.parametrize("number", [40, 64, 2000])
def test_batches_of_one_simulation_follow_puct(number):
    # A bandit: kuhn's second player after a bet has two actions and no decision after.
    tree = _build_tree("kuhn_poker")
    behaviour = _uniform(tree)
    infosets = tree.infosets[1]
    arrays = ismcts_kernel.build(tree, 1, behaviour[0], dtype=np.float64)
    root = next(i for i, key in enumerate(infosets.keys) if key == "1b")
    c = 0.5
    with jax.enable_x64(True):
        prior = ismcts_search.uniform_prior(arrays)
        table = ismcts_search.empty_table(arrays)
        config = SearchConfig(number, exploration=c, batch=1)
        table, _ = ismcts_search.search(
            arrays, table, prior, np.array([root]), jax.random.key(0), config
        )
    first = infosets.decisions.first_sequence[root]
    rewards = np.asarray(arrays.reward)[first : first + 2]
    # With rewards known in expectation, PUCT has no chance in it.
    visits, value = np.zeros(2), np.zeros(2)
    for n in range(number):
        seen = visits.sum()
        mean = (visits * value).sum() / max(seen, 1)
        q = np.where(visits > 0, value, mean)
        score = q + c * arrays.shape.half_range * 0.5 * np.sqrt(n + 1) / (1 + visits)
        action = int(score.argmax())
        visits[action] += 1
        value[action] = rewards[action]
    np.testing.assert_array_equal(np.asarray(table.visits)[first : first + 2], visits)


@pytest.mark.slow
def test_search_does_not_depend_on_the_scale_of_payoffs():
    found = []
    for factor in (1.0, 2.0**-60, 2.0**60):
        tree = spiel_cr.build_tree(scaled_game("kuhn_poker", factor))
        config = SearchConfig(256, batch=32)
        behaviour = _uniform(tree)[1]
        found.append(ismcts_search.search_response(tree, 0, behaviour, config))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].behaviour, other.behaviour)


def test_search_does_not_depend_on_the_precision_of_jax():
    """Random draws have single precision, whatever JAX's default is."""
    tree = _build_tree("kuhn_poker")
    behaviour = _uniform(tree)[1]
    found = []
    for flag in (False, True):
        with jax.enable_x64(flag):
            response = ismcts_search.search_response(
                tree, 0, behaviour, SearchConfig(64)
            )
            found.append(response.behaviour)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("batch", "flag"),
    [
        *((16, True), (1000, False), (8192, True)),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in ((16, False), (1000, True), (8192, False))
        ),
    ],
)
def test_simulations_are_counted_as_started_at_their_root(batch, flag):
    """No simulation counts as arriving from above, however XLA rounds."""
    tree = _build_tree("kuhn_poker")
    arrays = ismcts_kernel.build(tree, 0, _uniform(tree)[1])
    roots = np.flatnonzero(tree.infosets[0].decisions.parent == 0)[:1]
    with jax.enable_x64(flag):
        table, done = ismcts_search.search(
            arrays,
            ismcts_search.empty_table(arrays),
            ismcts_search.uniform_prior(arrays),
            roots,
            jax.random.key(1),
            SearchConfig(64 * batch, batch=batch),
        )
    assert table.started[roots[0]] == table.reached[roots[0]] == done


def test_second_response_does_not_compile():
    tree = _build_tree("kuhn_poker")
    behaviour = _sparse(tree)
    config = SearchConfig(500)
    ismcts_search.search_response(tree, 0, behaviour[1], config)
    before = ismcts_kernel.compilations()
    ismcts_search.search_response(tree, 0, behaviour[1], config, seed=9)
    assert ismcts_kernel.compilations() == before


@pytest.mark.parametrize(
    "setting, value",
    [
        ("simulations", 0),
        ("batch", 0),
        ("exploration", -1.0),
        ("exploration", 0.0),
        ("exploration", float("nan")),
        ("max_nodes", 0),
    ],
)
def test_rejects_invalid_settings(setting, value):
    with pytest.raises(ValueError, match=f"{setting}="):
        dataclasses.replace(SearchConfig(), **{setting: value})


def test_rejects_invalid_strategies():
    tree = _build_tree("kuhn_poker")
    good = _sparse(tree)[1]
    with pytest.raises(ValueError, match="player=2"):
        ismcts_search.search_response(tree, 2, good)
    with pytest.raises(ValueError, match="shape"):
        ismcts_search.search_response(tree, 0, good[:-1])
    with pytest.raises(ValueError, match="probabilities"):
        ismcts_search.search_response(tree, 0, good * 0.5)


def test_players_without_decisions_are_rejected(tmp_path):
    (tmp_path / "coin.efg").write_text(
        'EFG 2 R "coin" { "a" "b" } ""\nc "" 1 "" { "l" 1/2 "r" 1/2 } 0\n'
        't "" 1 "" { 1.0 -1.0 }\nt "" 2 "" { -1.0 1.0 }\n'
    )
    tree = spiel_cr.build_tree(f"efg_game(filename={tmp_path}/coin.efg)")
    with pytest.raises(ValueError, match="has no decisions; choose the other"):
        ismcts_search.search_response(tree, 0, np.ones(1))


@pytest.mark.slow
def test_learning_a_table_improves_short_searches():
    tree = _build_tree("liars_dice(numdice=1,dice_sides=4)")
    behaviour = _uniform(tree)
    without = [_share(tree, behaviour, SearchConfig(500), seed) for seed in range(3)]
    learned = SearchConfig(300, learn=200)
    shares = [_share(tree, behaviour, learned, seed) for seed in range(3)]
    assert max(without) < 0.97 < 0.99 < min(shares) <= 1 + 1e-9


def test_learning_starts_simulations_at_every_infoset():
    tree = _build_tree("kuhn_poker")
    behaviour = _uniform(tree)
    config = SearchConfig(64, learn=32, batch=1)
    response = ismcts_search.search_response(tree, 0, behaviour[1], config)
    started = np.asarray(response.table.started)
    # Infosets that the response reaches are searched again.
    assert set(started) == {32, 32 + 64}
    assert started.sum() == response.simulations


@pytest.mark.parametrize("learn", [-1, 0.5])
def test_learn_must_be_a_number_of_simulations(learn):
    with pytest.raises(ValueError, match=f"learn={learn}"):
        SearchConfig(learn=learn)


def test_rejects_more_simulations_than_float32_can_count():
    tree = _build_tree("kuhn_poker")
    other = _uniform(tree)[1]
    with pytest.raises(ValueError, match="simulations=10000000 .*float32 can count to"):
        ismcts_search.search_response(tree, 0, other, SearchConfig(10_000_000))
