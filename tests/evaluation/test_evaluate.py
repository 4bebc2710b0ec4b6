"""Evaluators of search players: traversal, matches, and one re-solving step."""

import csv
import functools
import importlib.util
import json
import shutil

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.evaluation import evaluate, one_step, openspiel_evaluator, traversal
from spiel_cr.policies import conversions
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.resolving.decomposition import decompose
from tests.support import games
from tests.support.commands import outputs, rejection, report, run
from tests.support.learner import Learner
from tests.support.scripted import Opinionated

LIARS_DICE = "liars_dice(numdice=1,dice_sides=3)"
SEATS = (0, 1)
KEYS = set(
    "nash_conv infosets infosets_visited moves deadline_misses max_ms compilations "
    "seconds evaluator unvisited_play".split()
)


@functools.cache
def tree_of(name):
    if name in games.BY_NAME:
        return games.compiled(name)
    return spiel_cr.build_tree(name, observations=True)


def bot_for(name, seat, text, seed=0):
    return spiel_cr.load_bot(tree_of(name), text, seat, seed=seed)


@functools.cache
def traversed(name, text):
    """Return both players' strategies and their evaluation."""
    tree = tree_of(name)
    seats = [traversal.traverse(tree, bot_for(name, p, text)) for p in SEATS]
    return seats, evaluate.evaluate_strategies(tree, (seats[0], seats[1]))


def resolving(gadget, iterations=300):
    return f"resolving(solver=cfr+,iterations={iterations},gadget={gadget})"


# Traversal.


@pytest.mark.parametrize(
    "name",
    [
        "kuhn",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("leduc7", LIARS_DICE)),
    ],
)
def test_traversal_of_a_resolving_bot_equals_resolve(name):
    """`resolve` solves forests and uses the best response of spiel_cr instead."""
    # After 300 iterations NashConv in liar's dice is below 1e-4 on some processors.
    iterations = 200
    _, found = traversed(name, resolving("cfrd", iterations))
    tree = tree_of(name)
    expected = spiel_cr.resolve(tree, "cfr+", iterations).nash_conv()
    # Measured with 300 iterations: 1e-16, 2e-12, 8e-9; forests sum in another order.
    assert found.nash_conv == pytest.approx(expected, abs=1e-6)
    assert 1e-4 < expected < 0.01
    numbers = found.statistics
    assert numbers["infosets"] == sum(map(len, tree.infosets))
    assert numbers["infosets_visited"] == numbers["moves"] == numbers["infosets"]
    assert numbers["deadline_misses"] == 0 and numbers["compilations"] == 0
    assert 0 < numbers["max_ms"] < 1000 * found.seconds


@pytest.mark.parametrize("seat", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_traversal_equals_policies_in_single_matches(seat):
    """Each infoset is queried in its own match, which re-solves only the path to it."""
    text = resolving("cfrd")
    seats, _ = traversed("leduc7", text)
    infosets = tree_of("leduc7").infosets[seat]
    bot = bot_for("leduc7", seat, text)
    deepest = np.argsort(infosets.decisions.levels())[-20:]
    for infoset in deepest:
        bot.restart()
        state = tree_of("leduc7").state_at(infosets.history[infoset])
        first = infosets.decisions.first_sequence[infoset]
        expected = traversal.Interview(bot).ask(state)
        found = seats[seat].behaviour[first : first + len(expected)]
        np.testing.assert_array_equal(found, expected)
    assert infosets.decisions.levels()[deepest].min() >= 1


@pytest.mark.parametrize(
    ("text", "uniform"),
    [("uniform", True), ("solved(solver=cfr+,iterations=200)", False)],
)
def test_traversal_of_tabular_bots_equals_openspiels_nash_conv(text, uniform):
    _, found = traversed("kuhn", text)
    if uniform:
        assert found.nash_conv == pytest.approx(games.BY_NAME["kuhn"].uniform, abs=1e-6)
    else:
        expected = spiel_cr.solve("kuhn_poker", "cfr+", 200).average_policy()
        game = pyspiel.load_game("kuhn_poker")
        value = exploitability.nash_conv(game, expected)
        # Probabilities are normalised, which changes them by rounding only.
        assert found.nash_conv == pytest.approx(value, abs=1e-12)
    numbers = found.statistics
    assert (numbers["moves"], numbers["deadline_misses"]) == (12, 0)
    assert numbers["max_ms"] > 0


def test_online_outcome_sampling_improves_with_iterations():
    text = "oos(solver=os-mccfr(batch=64),iterations={})"
    few = traversed("kuhn", text.format(1))[1]
    many = traversed("kuhn", text.format(100))[1]
    # Measured over ten seeds: 0.33 to 0.56 and 0.05 to 0.17.
    assert few.nash_conv > 0.25 > many.nash_conv
    assert many.statistics["moves"] == many.statistics["infosets"] == 12


OOS = "oos(solver=os-mccfr(batch=16),iterations=2)"


def test_learning_bots_are_reset_before_each_query():
    """Policies are those of a new bot in a match, whatever was queried before."""
    tree = tree_of("kuhn")
    bot, new = (bot_for("kuhn", 0, OOS) for _ in range(2))
    found = traversal.traverse(tree, bot)
    decisions = tree.infosets[0].decisions
    deepest = np.flatnonzero(decisions.levels() == 1)
    differs = 0
    for infoset in deepest:
        new.reset()
        state = tree.game.new_initial_state()
        for action in tree.histories.actions_to(tree.infosets[0].history[infoset]):
            if state.current_player() == 0:
                new.get_policy(state)
            state.apply_action(action)
        expected = traversal.Interview(new).ask(state)
        first = decisions.first_sequence[infoset]
        np.testing.assert_array_equal(found.behaviour[first : first + 2], expected)
        # Without a reset, the earlier query changes the policy.
        differs += not np.array_equal(traversal.Interview(new).ask(state), expected)
    assert differs
    again = traversal.traverse(tree, bot)
    np.testing.assert_array_equal(again.behaviour, found.behaviour)
    # Matches show the same policies, whichever matches were played before.
    matches = [traversal.play(tree, bot, match, seed=1) for match in range(0, 12, 2)]
    shown = traversal.aggregate(tree, 0, matches)
    known = np.append(shown.visits > 0, False)[decisions.owner]
    np.testing.assert_allclose(
        shown.behaviour[known], found.behaviour[known], atol=1e-15
    )
    assert (shown.visits > 1).any()


@pytest.mark.parametrize("name", ("leduc7", "ii_goofspiel4"))
@pytest.mark.parametrize("seat", SEATS)
def test_traversal_queries_one_subgame_after_another(name, seat):
    """Predecessors of an infoset come first, and infosets below a subgame together."""
    tree = tree_of(name)
    order = traversal.by_subgames(tree, seat)
    assert sorted(order) == list(range(len(tree.infosets[seat])))
    place = np.argsort(order)
    decisions = tree.infosets[seat].decisions
    above = decisions.owner[decisions.parent]
    later = np.flatnonzero(above >= 0)
    assert (place[above[later]] < place[later]).all()
    subgame = decompose(tree, seat).player_subgame
    assert len(np.unique(subgame[subgame >= 0])) > 2
    for number in np.unique(subgame[subgame >= 0]):
        below = subgame == number
        for infoset in np.argsort(decisions.levels(), kind="stable"):
            below[infoset] |= above[infoset] >= 0 and below[above[infoset]]
        assert np.ptp(place[below]) == below.sum() - 1


def test_learning_bots_remember_exactly_the_preceding_decisions():
    tree = tree_of("ii_goofspiel4")
    bot = Learner(0)
    bot.memory = ("another match",)
    traversal.traverse(tree, bot)
    keys, decisions = tree.infosets[0].keys, tree.infosets[0].decisions
    assert bot.met.keys() == set(keys) and decisions.levels().max() >= 2
    for infoset, key in enumerate(keys):
        above, before = decisions.owner[decisions.parent[infoset]], []
        while above >= 0:
            before.append(keys[above])
            above = decisions.owner[decisions.parent[above]]
        assert bot.met[key] == tuple(before[::-1])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kuhn", "resolving(iterations=30)"),
        pytest.param("leduc7", "resolving(iterations=30)", marks=pytest.mark.slow),
        ("kuhn", "oos(solver=os-mccfr(batch=64),iterations=2)"),
    ],
)
def test_bots_do_not_use_hidden_information(name, text):
    """Two equal bots are queried at states that differ only in hidden information."""
    tree = tree_of(name)
    scrambled = 0
    for seat in SEATS:
        one, other = (bot_for(name, seat, text, seed=5) for _ in range(2))
        mine = np.flatnonzero(tree.histories.player == seat)
        for infoset in range(len(tree.infosets[seat])):
            histories = mine[tree.histories.infoset[mine] == infoset]
            first, last = (tree.state_at(h) for h in (histories[0], histories[-1]))
            scrambled += str(first) != str(last)
            assert one.get_policy(first) == other.get_policy(last)
    assert scrambled > 5


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "bot: Opinionated does not provide probabilities"),
        ([(0, 0.5), (1, 0.6)], "at least 0 and sum to 1"),
        ([(0, -0.5), (1, 1.5)], "at least 0 and sum to 1"),
        ([(0, 0.5), (2, 0.5)], "at least 0 and sum to 1"),
        ([(0, float("nan")), (1, 1.0)], "at least 0 and sum to 1"),
    ],
    ids=str,
)
def test_bots_without_valid_probabilities_are_rejected(answer, message):
    with pytest.raises(ValueError, match=message):
        traversal.traverse(tree_of("kuhn"), Opinionated(answer))


def test_mean_evaluation_averages_repetitions():
    work = traversal.Work(3, 1, 5.0, 1, 0.5)
    one = evaluate._evaluation(0.1, 12, 9, work, "openspiel")
    faster = work._replace(max_ms=2.0)
    other = evaluate._evaluation(0.3, 12, 8, faster, "openspiel")
    found = evaluate.mean_evaluation([one, other])
    assert found.nash_conv == pytest.approx(0.2) and found.seconds == 1.0
    names = ("infosets", "infosets_visited", "moves", "deadline_misses", "max_ms")
    numbers = dict(zip((*names, "compilations"), (12, 8, 6, 2, 5.0, 2), strict=True))
    assert found.statistics == numbers


# Matches.


def observed(seat, key, probabilities, match=0):
    work = traversal.Work(1, 0, 1.0, 0, 0.001)
    return traversal.ObservedMatch(match, seat, [key], [probabilities], 0.0, work)


def test_aggregate_averages_visited_infosets_and_is_uniform_elsewhere():
    tree = tree_of("kuhn")
    key, other = tree.infosets[0].keys[:2]
    matches = [
        observed(0, key, [1.0, 0.0]),
        observed(0, key, [0.5, 0.5], 1),
        observed(0, key, [0.0, 1.0], 2),
        observed(0, key, [0.9, 0.1], 3),
        observed(0, other, [0.2, 0.8], 4),
        observed(1, "not of this seat", [1.0, 0.0], 5),
    ]
    found = traversal.aggregate(tree, 0, matches)
    first = tree.infosets[0].decisions.first_sequence
    assert found.behaviour[first[0] : first[0] + 2] == pytest.approx([0.6, 0.4])
    assert found.behaviour[first[1] : first[1] + 2] == pytest.approx([0.2, 0.8])
    rest = np.setdiff1d(np.arange(13), [0, *range(first[0], first[0] + 2)])
    rest = np.setdiff1d(rest, range(first[1], first[1] + 2))
    assert (found.behaviour[rest] == 0.5).all() and len(rest) == 8
    assert found.visits.tolist() == [4, 1, 0, 0, 0, 0]
    assert found.work.moves == 5


def test_few_matches_recover_part_of_the_policy():
    """Visited infosets have the bot's probabilities, and the others are uniform."""
    tree = tree_of("kuhn")
    text = "solved(solver=cfr+,iterations=200)"
    full, exact = traversed("kuhn", text)
    seats = []
    for seat in SEATS:
        bot = bot_for("kuhn", seat, text)
        matches = [traversal.play(tree, bot, m, seed=3) for m in range(seat, 6, 2)]
        keys = {key for match in matches for key in match.keys}
        found = traversal.aggregate(tree, seat, matches)
        seats.append(found)
        assert {
            tree.infosets[seat].keys[i] for i in np.flatnonzero(found.visits)
        } == keys
        assert found.visits.sum() == sum(len(match.keys) for match in matches)
        owner = tree.infosets[seat].decisions.owner
        known = np.append(found.visits > 0, False)[owner]
        uniform = conversions.uniform_behaviour(tree.infosets[seat].decisions)
        np.testing.assert_array_equal(found.behaviour[~known], uniform[~known])
        np.testing.assert_allclose(found.behaviour[known], full[seat].behaviour[known])
    found = evaluate.evaluate_strategies(tree, tuple(seats))
    visited = found.statistics["infosets_visited"]
    assert 0 < visited < found.statistics["infosets"] == 12
    assert visited == sum(int((s.visits > 0).sum()) for s in seats)
    assert found.nash_conv > exact.nash_conv


def test_many_matches_visit_every_infoset():
    tree = tree_of("kuhn")
    # Uniform play visits each infoset of kuhn_poker with probability 1/6 or more, so
    # one is missed with probability 12 * (5 / 6)^100 at most, 2e-7.
    for seat in SEATS:
        bot = bot_for("kuhn", seat, "uniform")
        matches = [traversal.play(tree, bot, m, seed=1) for m in range(100)]
        assert (traversal.aggregate(tree, seat, matches).visits > 0).all()


def test_matches_are_determined_by_seed_and_number():
    tree = tree_of("leduc7")
    bot = bot_for("leduc7", 0, "uniform")
    first = [traversal.play(tree, bot, m, seed=7) for m in range(8)]
    again = [traversal.play(tree, bot, m, seed=7) for m in reversed(range(8))]
    other = [traversal.play(tree, bot, m, seed=8) for m in range(8)]
    assert [m.keys for m in first] == [m.keys for m in reversed(again)]
    assert [m.keys for m in first] != [m.keys for m in other]


@pytest.mark.parametrize("name", ["kuhn", "leduc7", LIARS_DICE])
def test_opponent_avoids_ending_the_game(name, monkeypatch):
    tree = tree_of(name)
    endings = {"chosen": 0, "avoidable": 0, "avoided": 0}

    avoid = traversal.long_matches_action

    def watched(state, random):
        action = avoid(state, random)
        ends = {a: state.child(a).is_terminal() for a in state.legal_actions()}
        endings["chosen"] += ends[action]
        endings["avoidable"] += ends[action] and not all(ends.values())
        endings["avoided"] += any(ends.values()) and not ends[action]
        return action

    def careless(state, random):
        return int(random.choice(state.legal_actions()))

    moves = {watched: 0, careless: 0}
    for seat in SEATS:
        bot = bot_for(name, seat, "uniform")
        for opponent in moves:
            monkeypatch.setattr(traversal, "long_matches_action", opponent)
            for match in range(150):
                moves[opponent] += len(traversal.play(tree, bot, match, seed=2).keys)
    # Some endings are forced.
    assert endings["avoidable"] == 0 < endings["chosen"]
    assert endings["avoided"] > 20
    assert moves[watched] > moves[careless]


def test_opponent_chooses_other_actions_uniformly():
    state = pyspiel.load_game(LIARS_DICE).new_initial_state()
    for action in (0, 1, 1):
        state.apply_action(action)
    liar = state.legal_actions()[-1]
    assert state.child(liar).is_terminal()
    random = np.random.default_rng(0)
    drawn = [traversal.long_matches_action(state, random) for _ in range(4000)]
    counts = np.bincount(drawn, minlength=liar + 1)
    others = counts[state.legal_actions()[:-1]]
    assert counts[liar] == 0 and others.sum() == 4000
    # 4000 draws of 4: standard deviation 27 each; 5 of them: a false alarm in 10^6.
    assert np.abs(others - 4000 / len(others)).max() < 5 * 28


# One step.

KUHN_STEP = (0, 1, 0, 1)


# Decisions in leduc7 where player 0 or 1 acts for the second or third time, and which
# both players still reach with high probability.
LEDUC_STEPS = {(0, 2): (0, 1, 2, 1, 0), (0, 3): (0, 1, 1, 2, 1, 0)}
LEDUC_STEPS[1, 2] = (0, 0, 1, 2, 1, 1, 1)


@functools.cache
def solved_trunk(name, player, iterations):
    actions = KUHN_STEP if name == "kuhn" else LEDUC_STEPS[player, 2]
    place = one_step.find(tree_of(name), actions)
    return one_step.solve_trunk(place, iterations)


def trunk(name, actions, iterations):
    """Return a subgame and the trunk that the player's other subgames share."""
    place = one_step.find(tree_of(name), actions)
    return place, solved_trunk(name, place.decomposition.player, iterations)


def test_nash_conv_falls_with_iterations():
    place, above = trunk("kuhn", KUHN_STEP, 2000)
    found = one_step.one_step(place, above, one_step.OneStepConfig(2000))
    by_iterations = {p.iterations: p.nash_conv for p in found.curve}
    assert list(by_iterations) == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]
    assert by_iterations[1] > 0.1
    assert by_iterations[1] > 3 * by_iterations[10] > 9 * by_iterations[100]
    assert by_iterations[2000] < 1e-3
    assert found.trunk_nash_conv < 1e-3
    sizes = (found.infosets, found.augmented_infosets)
    assert (found.player, found.layer, *sizes) == (0, 2, 3, 3)
    seconds = [p.seconds for p in found.curve]
    assert seconds == sorted(seconds)
    table = conversions.tabular_policy(tree_of("kuhn"), found.behaviours)
    expected = exploitability.nash_conv(tree_of("kuhn").game, table)
    assert expected == pytest.approx(by_iterations[2000], abs=1e-9)


@pytest.mark.parametrize(
    ("name", "player", "layer", "values"),
    [
        ("kuhn", 0, 2, "iterates"),
        ("kuhn", 0, 2, "best_response"),
        pytest.param("leduc7", 1, 2, "iterates", marks=pytest.mark.slow),
        pytest.param("leduc7", 0, 3, "best_response", marks=pytest.mark.slow),
    ],
)
def test_resolving_is_safe_with_exact_values_and_not_with_noisy_ones(
    name, player, layer, values
):
    actions = KUHN_STEP if name == "kuhn" else LEDUC_STEPS[player, layer]
    place, above = trunk(name, actions, 300)
    assert (place.decomposition.player, place.layer) == (player, layer)
    exact = one_step.one_step(place, above, one_step.OneStepConfig(values=values))
    noisy = [
        one_step.one_step(
            place, above, one_step.OneStepConfig(values=values, noise=1.0, seed=seed)
        )
        for seed in range(3)
    ]
    worse = [run.curve[-1].nash_conv - exact.curve[-1].nash_conv for run in noisy]
    # Exact values keep the trunk's exploitability (Burch et al. 2014, Theorem 1), up to
    # the error that 1000 iterations leave: less than 1e-4 was measured, and 2e-4 with
    # the means of the iterates. The trunk's NashConv is 1e-3 to 2e-3; noise gives 0.02
    # to 0.07.
    assert exact.curve[-1].nash_conv < exact.trunk_nash_conv + 1e-3
    assert np.mean(worse) > 5e-3
    assert min(worse) > -1e-3


def test_noise_is_seeded():
    place, above = trunk("kuhn", KUHN_STEP, 300)
    ends = [
        one_step.one_step(
            place, above, one_step.OneStepConfig(100, noise=0.02, seed=seed)
        )
        for seed in (1, 1, 2)
    ]
    first, again, other = (run.curve[-1].nash_conv for run in ends)
    assert first == again != other


def test_noise_is_proportional_to_values():
    values = np.repeat([0.0, 1.0, -2.0], 4000)
    blurred = one_step._blur(values, 0.25, np.random.default_rng(0)).reshape(3, -1)
    assert (blurred[0] == 0).all()
    # Of 4000 draws: standard errors are 0.004 and 0.0028 of the value; 5 of them.
    for row, value in zip(blurred[1:], (1.0, -2.0), strict=True):
        assert row.mean() / value == pytest.approx(1, abs=5 * 0.004)
        assert row.std() / abs(value) == pytest.approx(0.25, abs=5 * 0.0028)


def test_exact_values_equal_those_of_a_best_response():
    """Values after player 1's bet in kuhn_poker equal sums over OpenSpiel's states."""
    tree = tree_of("kuhn")
    # The trunk is so poor that means of the iterates differ from exact values.
    place, above = trunk("kuhn", KUHN_STEP, 3)
    d = place.decomposition
    table = conversions.tabular_policy(tree, above.behaviours)
    totals = np.zeros(len(d.augmented_layer))
    for root, number in zip(d.roots, d.root_augmented, strict=True):
        state = tree.state_at(root)
        if d.augmented_layer[number] != 2:
            continue
        deal = state.history()
        first = pyspiel.load_game("kuhn_poker").new_initial_state()
        for action in deal[:2]:
            first.apply_action(action)
        reach = table.action_probabilities(first)[deal[2]] / 6
        for action, p in table.action_probabilities(state).items():
            totals[number] += reach * p * state.child(action).returns()[1]
    here = d.augmented_layer == 2
    found = one_step._values(d, above, "best_response")
    np.testing.assert_allclose(found[here], totals[here], atol=1e-12)
    means = one_step._values(d, above, "iterates")
    assert np.abs(means[here] - totals[here]).max() > 1e-3


@pytest.mark.parametrize("seat", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_one_step_equals_the_second_move_of_a_resolving_player(seat):
    """The player has the same gadget, but other code for its trunk and its values."""
    tree = tree_of("leduc7")
    place, above = trunk("leduc7", LEDUC_STEPS[seat, 2], 300)
    found = one_step.one_step(place, above, one_step.OneStepConfig(300))
    seats, _ = traversed("leduc7", resolving("cfrd"))
    d = place.decomposition
    mine = (d.player_layer == 2) & (d.player_subgame == place.number)
    at = np.append(mine, False)[tree.infosets[seat].decisions.owner]
    assert at.sum() >= 2
    # Rounding in two orders of summation, as between `resolve` and a player.
    np.testing.assert_allclose(
        found.behaviours[seat][at], seats[seat].behaviour[at], atol=1e-6
    )


def test_only_the_subgame_is_replaced():
    place, above = trunk("kuhn", KUHN_STEP, 300)
    found = one_step.one_step(place, above, one_step.OneStepConfig(1))
    np.testing.assert_array_equal(found.behaviours[1], above.behaviours[1])
    changed = found.behaviours[0] != above.behaviours[0]
    levels = tree_of("kuhn").infosets[0].decisions.levels()
    owner = tree_of("kuhn").infosets[0].decisions.owner
    assert changed.any() and (levels[owner[changed]] == 1).all()
    form = tree_of("kuhn").sequence_form
    reach = reach_of(form, found.behaviours)
    assert found.curve[-1].nash_conv == nash_conv(form, reach)


def test_actions_can_be_given_by_name():
    words = one_step.find(tree_of("kuhn"), ["Deal:0", "Deal:1", "Pass", " Bet"])
    numbers = one_step.find(tree_of("kuhn"), KUHN_STEP)
    assert words[1:] == numbers[1:]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 0], r"'0,0': action 2, 0, is not legal; choose one of 1 \(Deal:1\)"),
        (["Deal:0", "Fold"], "action 2, 'Fold', is not legal"),
        ([""], "action 1, '', is not legal"),
        ([0, -1], "action 2, -1, is not legal"),
        ([0], "leads to a chance move.*continue with one of 1"),
        ([0, 1, 0, 0], "leads to the end of the game.*leave some"),
        ([0, 1, 0, 0, 0], "action 5, 0, is not legal; .*none: the game is over"),
        ([0, 1], "player 0 acts there, but has not acted before"),
        ([0, 1, 0], "player 1 acts there, but has not acted before"),
    ],
    ids=str,
)
def test_rejects_invalid_actions(actions, message):
    with pytest.raises(ValueError, match=message):
        one_step.find(tree_of("kuhn"), actions)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": "average"}, "values='average' must be one of iterates, best"),
        ({"noise": -1.0}, "noise=-1.0.*>= 0"),
        ({"noise": float("nan")}, "noise=nan"),
        ({"gadget": "none"}, "gadget='none' must be one of cfrd"),
        ({"iterations": 0}, "iterations=0"),
        ({"algorithm": "sarsa"}, "sarsa"),
    ],
    ids=str,
)
def test_rejects_invalid_settings_of_one_step(change, message):
    with pytest.raises(ValueError, match=message):
        one_step.OneStepConfig(**change)


# Commands.


EVALUATE = ("evaluate", "--game", "kuhn_poker", "--bot")
RESOLVING = "resolving(solver=cfr+,iterations=100)"


def test_evaluate_command_reports_all_keys(capsys):
    found = report(capsys, *EVALUATE, RESOLVING)
    assert found.keys() == KEYS
    assert found["nash_conv"] == traversed("kuhn", RESOLVING)[1].nash_conv
    assert found["infosets"] == found["infosets_visited"] == found["moves"] == 12
    assert found["evaluator"] == "openspiel" and found["unvisited_play"] is None


def test_large_games_are_evaluated_by_spiel_cr(capsys, monkeypatch):
    """OpenSpiel's tool takes minutes for large games."""
    theirs = report(capsys, *EVALUATE, RESOLVING)
    monkeypatch.setattr(openspiel_evaluator, "MOST_HISTORIES", 20)
    ours = report(capsys, *EVALUATE, RESOLVING)
    assert ours["evaluator"] == "spiel_cr"
    assert ours["nash_conv"] == pytest.approx(theirs["nash_conv"], abs=1e-12)


def test_command_reports_the_strategy_at_unvisited_infosets(capsys):
    """Text and JSON name the strategy that is assumed at these infosets."""
    run(*EVALUATE, "solved(iterations=50)", "--method", "matches", "--matches", "2")
    out = capsys.readouterr().out
    line = "by OpenSpiel, exact for this strategy, uniform at infosets that were not"
    assert line in out
    assert "% of them visited, uniform strategy at the others" in out
    words = ("solved(iterations=50)", "--method", "matches", "--matches", "2")
    found = report(capsys, *EVALUATE, *words)
    assert found["infosets_visited"] < 12 and found["unvisited_play"] == "uniform"
    # Many matches visit every infoset.
    run(*EVALUATE, "uniform", "--method", "matches", "--matches", "200")
    out = capsys.readouterr().out
    assert "100.0% of them visited\n" in out and "uniform strategy" not in out


def test_evaluate_command_with_time_limits(capsys):
    found = report(
        capsys, *EVALUATE, "resolving(move_ms=60000,init_ms=60000,iterations=100)"
    )
    assert found.keys() == KEYS
    assert 0 <= found["nash_conv"] < 0.2
    assert found["max_ms"] > 1 and found["compilations"] == 0


def test_repeats_give_an_interval_and_a_csv_file(capsys, tmp_path):
    bot = "oos(solver=os-mccfr(batch=16),iterations=2)"
    words = (*EVALUATE, bot, "--repeats", 3, "--out", tmp_path)
    found = report(capsys, *words)
    assert found.keys() == KEYS | {"half_width"}
    assert found["moves"] == 36 and found["half_width"] > 0
    with (tmp_path / "traversal.csv").open() as file:
        rows = list(csv.DictReader(file))
    values = [float(row["nash_conv"]) for row in rows]
    assert len(set(values)) == 3
    assert found["nash_conv"] == pytest.approx(np.mean(values))
    # Student's t with two degrees of freedom, 97.5 %: 4.302653.
    half_width = 4.302653 * np.std(values, ddof=1) / 3**0.5
    assert found["half_width"] == pytest.approx(half_width)
    before = (tmp_path / "traversal.jsonl").read_text()
    assert report(capsys, *words) == found
    assert (tmp_path / "traversal.jsonl").read_text() == before
    other = report(capsys, *words, "--seed", 1, "--out", tmp_path / "other")
    assert other["nash_conv"] != found["nash_conv"]


def test_interrupted_matches_are_resumed(capsys, tmp_path):
    words = (*EVALUATE, RESOLVING, "--method", "matches", "--matches", 30)
    whole = report(capsys, *words, "--out", tmp_path / "whole")
    assert whole.keys() == KEYS
    assert 6 <= whole["infosets_visited"] <= 12
    path = tmp_path / "half" / "matches.jsonl"
    shutil.copytree(tmp_path / "whole", path.parent)
    text = path.read_text()
    assert text.count("\n") == 30
    # The file ends in the middle of a line.
    path.write_text(text[: len(text) // 2])
    resumed = report(capsys, *words, "--out", path.parent)
    for key in ("nash_conv", "infosets_visited", "moves"):
        assert resumed[key] == whole[key]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(row["match"] for row in rows) == list(range(30))
    alone = report(capsys, *words)
    assert alone["nash_conv"] == whole["nash_conv"]
    # A run with fewer matches uses part of the existing ones.
    fewer = report(capsys, *words, "--matches", 4, "--out", path.parent)
    assert fewer["moves"] < whole["moves"]


def test_results_of_another_run_are_rejected(capsys, tmp_path):
    report(capsys, *EVALUATE, "uniform", "--out", tmp_path)
    message = rejection(capsys, *EVALUATE, RESOLVING, "--out", tmp_path)
    assert "with bot='uniform', not" in message and "another folder" in message
    path = tmp_path / "traversal.jsonl"
    path.write_text("nonsense\n" + path.read_text())
    message = rejection(capsys, *EVALUATE, "uniform", "--out", tmp_path)
    assert "line 1, is not a valid result" in message


STEP = ("subgame", "--game", "kuhn_poker", "--actions", "0,1,0,1")


def test_subgame_command_prints_and_writes_its_curve(capsys, tmp_path):
    words = (*STEP, "--trunk-iterations", 2000, "--iterations", 1000)
    found, out, _ = outputs(capsys, *words, "--out", tmp_path)
    curve = found["curve"]
    head = "  iterations  NashConv of trunk and subgame together"
    first = f"  {curve[0]['iterations']:>10,}  {curve[0]['nash_conv']:.3e}"
    assert f"\n{head}\n{first}\n" in out and "strategy itself is not shown" in out
    assert [p["iterations"] for p in curve][-3:] == [200, 500, 1000]
    assert curve[-1]["nash_conv"] == pytest.approx(found["nash_conv"], abs=1e-9)
    assert found["nash_conv"] < 1e-3 < 0.1 < curve[0]["nash_conv"]
    lines = (tmp_path / "subgame.jsonl").read_text().splitlines()
    assert [json.loads(line)["nash_conv"] for line in lines] == [
        p["nash_conv"] for p in curve
    ]
    with (tmp_path / "subgame.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(curve)
    noisy = report(capsys, *words, "--values", "best_response", "--noise", 1)
    assert noisy["values"] == "best_response"
    assert noisy["nash_conv"] > 5 * found["nash_conv"]


@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="no matplotlib"
)
def test_subgame_command_plots_its_curve(capsys, tmp_path):
    path = tmp_path / "curve.png"
    run(*STEP, "--iterations", 20, "--trunk-iterations", 20, "--plot", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in capsys.readouterr().out
