"""Tests of the bounds of an agent's NashConv, and of the test for memory."""

import itertools

import numpy as np
import pytest

import spiel_cr
from spiel_cr.evaluation.agents.bounds import open_card_payoffs, value_bounds
from spiel_cr.evaluation.agents.evaluation import memory_test
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour
from tests.support.games import compiled as game_tree


def random_behaviour(decisions, random):
    """Sample the probabilities of each infoset uniformly from the simplex."""
    numbers = random.standard_exponential(decisions.num_sequences - 1)
    owner = decisions.owner[1:]
    return np.append(1.0, numbers / np.bincount(owner, numbers)[owner])


def sample_pure_strategies(decisions, behaviour, count, random):
    """Sample independent pure strategies, float64 [count, S]."""
    answers = np.zeros((count, decisions.num_sequences))
    answers[:, 0] = 1
    for first, size in zip(
        decisions.first_sequence, decisions.num_actions, strict=True
    ):
        some = random.choice(size, count, p=behaviour[first : first + size])
        answers[np.arange(count), first + some] = 1
    return answers


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_bounds_of_known_probabilities_equal_nash_conv(name):
    """Compare with OpenSpiel's NashConv."""
    tree, random = game_tree(name), np.random.default_rng(1)
    behaviours = tuple(random_behaviour(d, random) for d in tree.decisions)
    total = 0.0
    for player in range(2):
        everywhere = np.ones(len(tree.decisions[1 - player]), bool)
        answers = behaviours[1 - player][None]
        bounds = value_bounds(tree, player, answers, everywhere)
        assert bounds.lower == pytest.approx(bounds.upper, abs=1e-12)
        assert bounds.lower_error == bounds.upper_error == 0
        total += bounds.upper
    from open_spiel.python.algorithms import exploitability

    policy = spiel_cr.policies.conversions.tabular_policy(tree, behaviours)
    expected = exploitability.nash_conv(tree.game, policy)
    assert total == pytest.approx(expected, abs=1e-9)


def slow_bounds(tree, player, answers):
    """Compute the bounds by definition, with loops over folds and left-out answers."""
    form, agent = tree.sequence_form, tree.decisions[1 - player]

    def reach(some):
        return reach_from_behaviour(agent, np.mean(some, axis=0))

    def lower(keep):
        scores = []
        for fold in range(10):
            held = [a for n, a in enumerate(answers) if n in keep and n % 10 == fold]
            rest = [a for n, a in enumerate(answers) if n in keep and n % 10 != fold]
            if held:
                best = best_responses.best_response(form, player, reach(rest))
                pair = [reach_from_behaviour(tree.decisions[player], best), reach(held)]
                value = best_responses.expected_value(
                    form, tuple(pair[:: 1 - 2 * player])
                )
                scores.append((1 - 2 * player) * value)
        return np.mean(scores)

    def upper(keep):
        some = [a for n, a in enumerate(answers) if n in keep]
        return best_responses.best_response_value(form, player, reach(some))

    count, result = len(answers), []
    for value in (lower, upper):
        without = [value(set(range(count)) - {n}) for n in range(count)]
        error = np.sqrt((count - 1) / count * np.sum((without - np.mean(without)) ** 2))
        result.append((value(set(range(count))), error))
    return result


@pytest.mark.parametrize("count", [10, 13, 20])
@pytest.mark.parametrize("player", [0, 1])
def test_bounds_and_errors_equal_a_slow_implementation(count, player):
    tree, random = game_tree("kuhn"), np.random.default_rng(count)
    agent = tree.decisions[1 - player]
    # Unequal shares, so that no two actions are equally good.
    answers = 0.9 * sample_pure_strategies(
        agent, random_behaviour(agent, random), count, random
    )
    answers += 0.1 * np.array([random_behaviour(agent, random) for _ in range(count)])
    bounds = value_bounds(tree, player, answers, np.ones(len(agent), bool))
    (lower, lower_error), (upper, upper_error) = slow_bounds(tree, player, answers)
    assert bounds.lower == pytest.approx(lower, abs=1e-12)
    assert bounds.upper == pytest.approx(upper, abs=1e-12)
    assert bounds.lower_error == pytest.approx(lower_error, abs=1e-12)
    assert bounds.upper_error == pytest.approx(upper_error, abs=1e-12)
    low, high = bounds.interval
    assert (low, high) == pytest.approx(
        (lower - 1.96 * lower_error, upper + 1.96 * upper_error)
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_bounds_hold_for_any_policy_at_infosets_without_answers(share):
    """Fill these infosets with random strategies; each value lies within the bounds."""
    tree, random = game_tree("leduc"), np.random.default_rng(3)
    widths = []
    for player in range(2):
        agent = tree.decisions[1 - player]
        behaviour = random_behaviour(agent, random)
        queried = random.random(len(agent)) < share
        bounds = value_bounds(tree, player, behaviour[None], queried)
        known = np.append(True, queried[agent.owner[1:]])
        for kind in range(6):
            other = random_behaviour(agent, random)
            if kind:  # pure
                other = sample_pure_strategies(agent, other, 1, random)[0]
            filled = np.where(known, behaviour, other)
            value = best_responses.best_response_value(
                tree.sequence_form, player, reach_from_behaviour(agent, filled)
            )
            assert bounds.lower <= value + 1e-12
            assert value <= bounds.upper + 1e-12
        widths.append(bounds.upper - bounds.lower)
    assert min(widths) > 0.5


def test_bounds_cover_the_best_and_worst_case_of_one_infoset():
    """In Kuhn poker, player 1 with the jack after a bet calls or folds.

    Player 0 bets with each card. A call of the jack costs player 1 one chip more than
    a fold, with the probability 1/3 of the jack.
    """
    tree = game_tree("kuhn")
    agent, infosets = tree.decisions[1], tree.infosets[1]
    behaviour = np.repeat(0.5, agent.num_sequences)
    behaviour[0] = 1
    at = list(infosets.keys).index("0b")
    values = []
    for calls in (0.0, 1.0):
        first = int(agent.first_sequence[at])
        behaviour[first : first + 2] = 1 - calls, calls
        reach = reach_from_behaviour(agent, behaviour)
        values.append(best_responses.best_response_value(tree.sequence_form, 0, reach))
    queried = np.arange(len(agent)) != at
    bounds = value_bounds(tree, 0, behaviour[None], queried)
    assert bounds.lower <= min(values) + 1e-12
    assert bounds.upper == pytest.approx(max(values), abs=1e-12)


def test_lower_bound_assumes_the_agents_best_missing_answers():
    """Compare with all pure strategies at three infosets without answers."""
    tree, random = game_tree("leduc"), np.random.default_rng(4)
    form, agent = tree.sequence_form, tree.decisions[1]
    behaviour = random_behaviour(agent, random)
    missing = random.choice(np.flatnonzero(agent.num_actions > 1), 3, replace=False)
    queried = ~np.isin(np.arange(len(agent)), missing)
    bounds = value_bounds(tree, 0, behaviour[None], queried)
    response = best_responses.best_response(
        form, 0, reach_from_behaviour(agent, behaviour)
    )
    reach = reach_from_behaviour(tree.decisions[0], response)
    values = []
    for choice in itertools.product(*(range(agent.num_actions[i]) for i in missing)):
        filled = behaviour.copy()
        for infoset, action in zip(missing, choice, strict=True):
            first = agent.first_sequence[infoset]
            filled[first : first + agent.num_actions[infoset]] = 0
            filled[first + action] = 1
        pair = reach, reach_from_behaviour(agent, filled)
        values.append(best_responses.expected_value(form, pair))
    assert bounds.lower == pytest.approx(min(values), abs=1e-12)
    assert min(values) < max(values) - 1e-3


def test_open_card_payoffs_equal_the_known_value_of_kuhn_poker():
    tree = game_tree("kuhn")
    for player in range(2):
        # With open cards and an opponent that cooperates, the player wins two chips
        # with the better card, and one chip by a fold with the worse card.
        assert open_card_payoffs(tree, player)[0] == pytest.approx(1.5)


def tables(random, shift=0.0, infosets=20, count=10):
    result = []
    for _ in range(infosets):
        one = random.dirichlet(np.ones(3))
        other = (1 - shift) * one + shift * np.roll(one, 1)
        result.append(tuple(random.multinomial(count, p) for p in (one, other)))
    return result


def test_memory_test_has_few_false_alarms():
    """At a level of 1%, four or more alarms in 100 have a probability of 1.8%."""
    random = np.random.default_rng(5)
    alarms = sum(memory_test(tables(random), seed=n).has_memory for n in range(100))
    assert alarms <= 3


def test_memory_test_detects_large_differences():
    random = np.random.default_rng(6)
    found = sum(memory_test(tables(random, 0.8), seed=n).has_memory for n in range(20))
    assert found >= 18


def test_memory_test_of_deterministic_agents():
    table = np.array([10, 0]), np.array([10, 0])
    assert memory_test([table] * 3).p_value == 1.0
    assert memory_test([]).p_value is None
    assert memory_test([(np.array([10, 0]), np.array([0, 10]))] * 3).has_memory
