"""Deep game trees: public functions, and both variants of the sequence form."""

import random
import sys

import jax
import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.games.histories import states_along, states_at, states_in_order
from spiel_cr.games.sequence_form import forced, layout, locking
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs
from spiel_cr.policies import best_responses
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr, cfr_config
from spiel_cr.solvers.first_order import primal_dual
from spiel_cr.solvers.mccfr import sobol_draws
from tests.support.games import compiled

LEDUC = "leduc_poker"
# Games of the fixture `forms`.
FORMS = ("kuhn_poker", LEDUC, "ladder")
# The larger game takes long to compile, and has no shape that the ladder lacks.
SMALL_FORMS = pytest.mark.parametrize(
    "forms",
    ["kuhn_poker", "ladder", pytest.param(LEDUC, marks=pytest.mark.slow)],
    indirect=True,
)
# Moves of a long game, which several tests share so that it is compiled once.
LONG = 1100


def payoff(move: int) -> float:
    """Return player 0's utility if a centipede ends with the given move."""
    return (move + 1) * (1 if move % 3 else -1)


def centipede(moves: int) -> pyspiel.Game:
    """Build a centipede: players take or pass in turn, with perfect information."""
    lines = ['EFG 2 R "centipede" { "0" "1" }']
    for k in range(moves):
        lines.append(f'p "" {k % 2 + 1} {k // 2 + 1} "i{k}" {{ "take" "pass" }} 0')
        lines.append(f't "" {k + 1} "o{k}" {{ {payoff(k)} {-payoff(k)} }}')
    lines.append(f't "" {moves + 1} "end" {{ 0 0 }}')
    return pyspiel.load_efg_game("\n".join(lines) + "\n")


def centipede_value(moves: int) -> float:
    """Compute the value of a centipede for player 0 by backward induction."""
    value = 0.0
    for k in reversed(range(moves)):
        value = (min if k % 2 else max)(payoff(k), value)
    return value


def ladder(seed: int, moves: int) -> pyspiel.Game:
    """Build a random deep game in which chance deals a bit that only player 0 sees.

    Infosets have one to three actions. The first action of a move continues, another
    one may lead to a short branch, and chance moves in between.
    """
    lines = ['EFG 2 R "ladder" { "0" "1" }', 'c "" 1 "deal" { "a" 1/3 "b" 2/3 } 0']
    shape = random.Random(seed)
    # The node at each path, the same for both bits: the player (2: chance), the number
    # of its actions and whether the second action leads to a branch.
    nodes: dict[str, tuple[int, int, bool]] = {}
    numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
    outcomes = 0

    def end(bit: str, path: str) -> None:
        nonlocal outcomes
        outcomes += 1
        x = random.Random(f"{seed} {bit} {path}").randint(-9, 9)
        lines.append(f't "" {outcomes} "{outcomes}" {{ {x} {-x} }}')

    def node(bit: str, path: str, left: int) -> None:
        if not left:
            return end(bit, path)
        drawn = shape.choice([0, 1, 0, 1, 2]), shape.randint(1, 3), shape.random() < 0.3
        player, count, branches = nodes.setdefault(path, drawn)
        if player == 2:
            lines.append(f'c "" {len(lines) + 1} "c" {{ "x" 1/4 "y" 3/4 }} 0')
            count = 2
        else:
            info = f"{bit} {path}" if player == 0 else path
            number = numbers[player].setdefault(info, len(numbers[player]) + 1)
            acts = " ".join(f'"a{a}"' for a in range(count))
            name = f"{player} {number}"
            lines.append(f'p "" {player + 1} {number} "{name}" {{ {acts} }} 0')
        for action in range(count):
            if action == 0:
                node(bit, f"{path}0", left - 1)
            elif action == 1 and branches and left > 3:
                node(bit, f"{path}1", min(left - 1, 4))
            else:
                end(bit, f"{path}{action}")

    node("a", "", moves)
    node("b", "", moves)
    return pyspiel.load_efg_game("\n".join(lines) + "\n")


def both_forms(tree) -> list[layout.SequenceForm]:
    """Build the sequence form of a game level by level, and as for deep trees."""
    forms = []
    for deep in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layout, "is_deep", lambda _, deep=deep: deep)
            forms.append(
                layout.build(tree.sequence_form.decisions, tree.sequence_form.payoffs)
            )
    assert [len(form.arrays[0].ancestors) > 0 for form in forms] == [False, True]
    return forms


@pytest.fixture(scope="module", params=FORMS)
def forms(request):
    if request.param == "ladder":
        return both_forms(spiel_cr.build_tree(ladder(5, 12)))
    return both_forms(spiel_cr.build_tree(request.param))


def strategies(form, seed=0):
    """Draw random behaviours of both players; some actions are never played."""
    draws, found = np.random.default_rng(seed), []
    for own in form.decisions:
        weights = draws.exponential(size=own.num_sequences)
        weights *= draws.random(own.num_sequences) < 0.7
        weights[own.first_sequence] += 1e-3
        total = np.bincount(own.owner[1:], weights[1:])
        weights[1:] /= total[own.owner[1:]]
        weights[0] = 1
        found.append(weights)
    return found[0], found[1]


@pytest.mark.parametrize("moves", [12, 400])
def test_centipede_iterates_and_nash_conv_equal_openspiel(moves):
    game = centipede(moves)
    theirs = pyspiel.CFRPlusSolver(game)
    for _ in range(30):
        theirs.evaluate_and_update_policy()
    found = spiel_cr.solve(game, "cfr+", 30)
    assert bool(found.form.arrays[0].ancestors) == (moves == 400)
    expected = theirs.average_policy()
    policy = found.average_policy()
    state = game.new_initial_state()
    while not state.is_terminal():
        given = policy.action_probabilities(state)
        for action, p in expected.action_probabilities(state).items():
            assert given[action] == pytest.approx(p, abs=1e-12)
        state.apply_action(1)
    rows = policy.action_probability_array.tolist()
    keys = zip(policy.state_lookup, rows, strict=True)
    table = pyspiel.TabularPolicy({key: list(enumerate(row)) for key, row in keys})
    assert found.nash_conv() == pytest.approx(pyspiel.nash_conv(game, table), abs=1e-9)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_nash_conv_of_random_deep_games_equals_openspiel(seed):
    game = ladder(seed, 150)
    theirs = pyspiel.CFRPlusSolver(game)
    for _ in range(20):
        theirs.evaluate_and_update_policy()
    expected = pyspiel.nash_conv(game, theirs.average_policy())
    found = spiel_cr.solve(game, "cfr+", 20)
    assert all(tree.ancestors for tree in found.form.arrays)
    assert found.nash_conv() == pytest.approx(expected, abs=1e-9)
    exact = spiel_cr.solve(found.tree, "lp")
    low, high = found.value_bounds()
    assert low - 1e-9 <= exact.game_value() <= high + 1e-9


def test_value_of_a_deep_game_equals_backward_induction():
    game = spiel_cr.build_tree(centipede(LONG))
    value = centipede_value(LONG)
    assert spiel_cr.solve(game, "lp").game_value() == pytest.approx(value, abs=1e-9)
    found = spiel_cr.solve(game, "cfr+", 200)
    low, high = found.value_bounds()
    assert low - 1e-9 <= value <= high + 1e-9 and high - low < 1e-3
    assert found.nash_conv() == pytest.approx(high - low, abs=1e-12)


def test_policy_of_a_deep_game_can_be_saved_and_evaluated(tmp_path):
    game = centipede(LONG)
    found = spiel_cr.solve(game, "cfr+", 20)
    found.save(tmp_path / "policy.npz")
    loaded = spiel_cr.load_policy(tmp_path / "policy.npz", game)
    expected = found.nash_conv()
    assert spiel_cr.nash_conv(game, loaded) == pytest.approx(expected, abs=1e-9)
    evaluation = spiel_cr.evaluate(game, loaded)
    assert evaluation.evaluator == "spiel_cr"
    assert evaluation.nash_conv == pytest.approx(expected, abs=1e-9)
    gains = [spiel_cr.best_response(game, loaded, p).value for p in range(2)]
    assert sum(gains) == pytest.approx(expected, abs=1e-9)
    matches = spiel_cr.play_matches(game, [found, loaded], 4)
    assert matches.returns.shape == (2, 2)


def test_openspiel_evaluator_rejects_deep_games():
    shallow, deep = (spiel_cr.build_tree(centipede(n)) for n in (60, 400))
    assert not openspiel_evaluator.is_too_large(shallow, None)
    assert openspiel_evaluator.is_too_large(deep, None)
    result = spiel_cr.solve(deep, "cfr+", 5)
    assert openspiel_evaluator.evaluate_result(result).evaluator == "spiel_cr"
    with pytest.raises(
        ValueError, match=r"histories of 400 moves.*leave --evaluator out"
    ):
        openspiel_evaluator.evaluate_result(result, "openspiel")
    # OpenSpiel's own evaluator does exceed the recursion limit.
    uniform = spiel_cr.solve(deep, "cfr+", 1).average_policy()
    assert sys.getrecursionlimit() < 6 * 400
    with pytest.raises(RecursionError):
        openspiel_evaluator.evaluate(deep.game, uniform)


def rules_in_both_forms() -> list:
    """Return the games, rules and precisions of the following test.

    Each of them compiles two functions. The quick ones are one rule of each kind, in
    double precision on the game with the most varied shape and in single precision on
    the smallest game, and one rule on Leduc poker. All others are slow.
    """
    kinds = ("cfr", "dcfr", "pcfr+", "vad-cfr")
    quick = {("ladder", name, np.float64) for name in kinds}
    quick |= {("kuhn_poker", name, np.float32) for name in kinds}
    quick |= {(LEDUC, "cfr", np.float64)}
    params = []
    for game in FORMS:
        for name in sorted(cfr_config.PRESETS):
            for dtype in (np.float64, np.float32):
                marks = () if (game, name, dtype) in quick else (pytest.mark.slow,)
                params.append(pytest.param(game, name, dtype, marks=marks))
    return params


@pytest.mark.parametrize(
    ("forms", "name", "dtype"), rules_in_both_forms(), indirect=["forms"]
)
def test_all_rules_agree_in_both_sequence_forms(forms, name, dtype):
    found = []
    for form in forms:
        config = find(name).config
        solver = cfr.make_solver(form, config=config, dtype=dtype, compile="once")
        # In single precision rounding errors of ties soon grow.
        solver.run(10 if dtype == np.float64 else 3)
        reach = np.concatenate([solver.average(p) for p in range(2)])
        found.append((reach, solver.nash_conv()))
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    (one, gains), (other, other_gains) = found
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)
    assert gains == pytest.approx(other_gains, abs=30 * tolerance)


@SMALL_FORMS
def test_infoset_values_agree_in_both_sequence_forms(forms):
    found = []
    for form in forms:
        config = find("cfr+").config
        solver = cfr.make_solver(form, config=config, values=True, compile="once")
        solver.run(5)
        found.append([solver.infoset_values(p) for p in range(2)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_best_responses_agree_in_both_sequence_forms(forms):
    first, second = forms
    behaviour = strategies(first)
    reach = best_responses.reach_of(first, behaviour)
    for p in range(2):
        for own in (None, behaviour[p]):
            one, other = (
                (
                    best_responses.infoset_values(form, p, reach[1 - p], own),
                    *best_responses.action_values(form, p, reach[1 - p], own),
                )
                for form in forms
            )
            for x, y in zip(one, other, strict=True):
                np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)
        one, other = (best_responses.best_response(f, p, reach[1 - p]) for f in forms)
        np.testing.assert_array_equal(one, other)
    values = [best_responses.behaviour_value(form, behaviour) for form in forms]
    assert values[0] == pytest.approx(values[1], abs=1e-12)
    bounds = [best_responses.value_bounds(form, behaviour) for form in forms]
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-12)


@SMALL_FORMS
def test_locked_runs_agree_in_both_sequence_forms(forms):
    behaviour, found = strategies(forms[0], 1), []
    rows = []
    for own, played in zip(forms[0].decisions, behaviour, strict=True):
        is_locked = np.random.default_rng(2).random(len(own)) < 0.4
        row = np.where(np.append(False, is_locked[own.owner[1:]]), played, np.nan)
        rows.append(row)
    for form in forms:
        locked = locking.locked(form, (rows[0], rows[1]))
        solver = cfr.make_solver(locked, config=find("pcfr+").config, compile="once")
        solver.run(10)
        averages = [solver.average_behaviour(p) for p in range(2)]
        for row, average in zip(rows, averages, strict=True):
            kept = ~np.isnan(row)
            assert kept.any() and np.array_equal(average[kept], row[kept])
        found.append((solver.average(0), solver.average(1), solver.nash_conv()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@SMALL_FORMS
def test_primal_dual_operators_agree_in_both_sequence_forms(forms):
    """The operators are the flow of a strategy and its transpose."""
    draws, found = np.random.default_rng(4), []
    own = forms[0].decisions[0]
    reach, values = draws.random(own.num_sequences), draws.random(len(own))
    for form in forms:
        tree, places = form.arrays[0], form.layouts[0]
        by_position = np.zeros(sum(n.num_infosets for n in tree.levels))
        by_position[places.infosets] = values
        with jax.enable_x64(True):
            flow = primal_dual.flow(tree, places.by_position(reach))
            spread = primal_dual.spread(tree, by_position)
        found.append(
            (np.asarray(flow)[places.infosets], np.asarray(spread)[places.sequences])
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert found[0][0] @ values == pytest.approx(found[0][1] @ reach, abs=1e-12)


def test_pdhg_converges_on_a_deep_tree():
    result = spiel_cr.solve(centipede(100), "pdhg", 2000)
    assert result.form.arrays[0].ancestors and result.nash_conv() < 0.5


def test_forced_moves_can_be_removed_from_deep_trees():
    tree = spiel_cr.build_tree(ladder(0, 150))
    assert any((own.num_actions == 1).any() for own in tree.sequence_form.decisions)
    free = forced.without(tree.sequence_form)
    assert (
        free.arrays[0].ancestors
        and free.layouts[0].size < tree.sequence_form.layouts[0].size
    )
    found = []
    for form in (tree.sequence_form, free):
        solver = cfr.make_solver(form, config=find("cfr+").config, compile="once")
        solver.run(10)
        found.append((solver.average(0), solver.average(1), solver.nash_conv()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_padding_to_a_deep_game_does_not_change_iterates():
    """Games of one capacity share a compiled function, whatever their depth."""
    deep, shallow = (spiel_cr.build_tree(centipede(n)).sequence_form for n in (120, 12))
    capacity = layout.shapes_of(deep.decisions, deep.payoffs)
    padded = layout.build(shallow.decisions, shallow.payoffs, capacity=capacity)
    arrays = deep.arrays[0].ancestors, padded.arrays[0].ancestors
    assert [[len(x) for x in one] for one in arrays] == [[61] * 6] * 2
    found = []
    for form in (shallow, padded):
        solver = cfr.make_solver(form, config=find("cfr+").config, compile="once")
        solver.run(10)
        found.append((solver.average(0), solver.average(1), solver.nash_conv()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_levels_of_random_trees_equal_slow_code():
    draws = np.random.default_rng(0)
    for _ in range(50):
        num_actions, parent = draws.integers(1, 4, 12), np.zeros(12, np.int32)
        starts = 1 + np.cumsum(num_actions) - num_actions
        for i in range(1, 12):
            parent[i] = draws.integers(starts[i]) if draws.random() < 0.8 else 0
        decisions = Decisions(parent, num_actions)
        levels = decisions.levels()
        for i in range(12):
            level, above = 0, decisions.owner[parent[i]]
            while above >= 0:
                level, above = level + 1, decisions.owner[parent[above]]
            assert levels[i] == level
        for level, (infosets, sequences) in enumerate(decisions.downwards()):
            np.testing.assert_array_equal(infosets, np.flatnonzero(levels == level))
            there = 1 + np.flatnonzero(levels[decisions.owner[1:]] == level)
            np.testing.assert_array_equal(sequences, there)
    no_decisions = Decisions(np.zeros(0, np.int32), np.zeros(0, np.int32))
    assert no_decisions.downwards() == [] and len(no_decisions.levels()) == 0


def test_tree_of_a_player_without_decisions_is_not_deep():
    own = Decisions(np.zeros(0, np.int32), np.zeros(0, np.int32))
    other = Decisions(np.zeros(1, np.int32), np.full(1, 2, np.int32))
    payoffs = Payoffs(np.zeros(1, np.int32), np.ones(1, np.int32), np.ones(1))
    form = layout.build((own, other), payoffs)
    assert not any(tree.ancestors for tree in form.arrays)


@pytest.mark.parametrize("name", ["kuhn", "leduc7"])
def test_states_of_histories_have_the_right_actions(name):
    tree = compiled(name)
    draws = np.random.default_rng(1)
    numbers = draws.choice(len(tree.histories), 40)  # some of them twice
    expected = [tree.histories.actions_to(h) for h in numbers]
    found = list(states_at(tree.game, tree.histories, numbers))
    assert sorted(i for i, _ in found) == list(range(40))
    assert all(state.history() == expected[i] for i, state in found)
    along = states_along(tree.game, tree.histories.paths_to(numbers))
    histories = [state.history() for _, state in along]
    assert [state.history() for _, state in found] == histories
    order = states_in_order(tree.game, tree.histories, numbers)
    assert [state.history() for state in order] == expected
    assert list(states_at(tree.game, tree.histories, numbers[:0])) == []


def test_chunk_width_of_sobol_draws_shrinks_with_depth():
    assert sobol_draws.chunk_width(12, 100) == 16
    assert sobol_draws.chunk_width(12, 3) == 3
    assert sobol_draws.chunk_width(2000, 100) == 8
    assert sobol_draws.chunk_width(50_000, 100) == 1


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["auto", "dcfr", "pdhg", "es-mccfr", "lp"])
def test_solves_a_game_of_ten_thousand_moves(algorithm):
    game, value = centipede(10_000), centipede_value(10_000)
    iterations = None if algorithm in ("auto", "lp") else 20
    found = spiel_cr.solve(game, algorithm, iterations)
    low, high = found.value_bounds()
    assert low - 1e-9 <= value <= high + 1e-9
    assert found.nash_conv() == pytest.approx(high - low, abs=1e-9)
