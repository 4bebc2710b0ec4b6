"""Multi-valued states: values of continuations, and the opponent's choice among them.

Values are compared with OpenSpiel's. Best responses in a truncated game are compared
with an enumeration of the opponent's pure strategies on OpenSpiel's states.
"""

import functools
import itertools

import numpy as np
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score

from spiel_cr import GameOptions, load_policy, solve
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.games.opening import batched_rules
from spiel_cr.games.tree import tree_builder
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.leaf_values import HistoryValues
from spiel_cr.policies.queries import query
from spiel_cr.policies.rollouts import _thinned
from spiel_cr.resolving import decomposition
from spiel_cr.resolving.continual import resolve
from spiel_cr.resolving.gadget import build_forest
from spiel_cr.resolving.leaves import Continuations
from spiel_cr.resolving.leaves.leaf_strings import parse_leaf
from spiel_cr.resolving.leaves.rollout_values import BIAS, Rollouts
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.truncation import truncate_layer
from tests.support import games
from tests.support.made_games import RPS_PLUS, MadeGame, rps_plus
from tests.support.strategies import everywhere, random_behaviours

PLAYERS = (0, 1)
# Sums of hundreds of doubles of size 1.
TOLERANCE = 1e-12


@functools.cache
def blueprint(name, seed=3):
    return random_behaviours(games.compiled(name), seed)


@functools.cache
def rock_paper_scissors():
    """Return a game whose leaves lie between the moves of players 0 and 1."""
    return tree_builder.build_tree(MadeGame(rps_plus, "rps_plus"), observations=True)


class FixedValues(HistoryValues):
    """Leaf values from a table, independent of strategies."""

    def __init__(self, values):
        self.values, self.k = values, values.shape[1]

    def __call__(self, tree, histories, player):
        return self.values[histories]


@pytest.mark.parametrize("player", PLAYERS)
def test_values_equal_those_of_openspiel(player):
    """From any history on, i plays the blueprint and o plays a continuation."""
    tree = games.compiled("kuhn")
    leaf = Continuations(blueprint("kuhn"), 5)
    inner = np.flatnonzero(tree.histories.player >= 0)
    values = leaf(tree, inner, player)
    assert values.shape == (len(inner), 5)
    for j, chosen in enumerate(leaf.strategies(tree, 1 - player)):
        pair = list(blueprint("kuhn"))
        pair[1 - player] = chosen
        policy = conversions.tabular_policy(tree, pair)
        for history, value in zip(inner, values[:, j], strict=True):
            state = tree.game.new_initial_state()
            for action in tree.histories.actions_to(history):
                state.apply_action(action)
            judged = expected_game_score.policy_value(state, [policy, policy])[0]
            assert value == pytest.approx(judged, abs=TOLERANCE)


@pytest.mark.parametrize("player", PLAYERS)
def test_continuations_are_blueprint_best_response_and_fictitious_play(player):
    """The first is the blueprint, the second a best response to the blueprint."""
    tree = games.compiled("kuhn")
    found = Continuations(blueprint("kuhn"), 8).strategies(tree, player)
    np.testing.assert_array_equal(found[0], blueprint("kuhn")[player])
    other = tree.infosets[1 - player].decisions
    reach = conversions.reach_from_behaviour(other, blueprint("kuhn")[1 - player])
    mine = conversions.reach_from_behaviour(tree.infosets[player].decisions, found[1])
    pair = (mine, reach) if player == 0 else (reach, mine)
    value = best_responses.expected_value(tree.sequence_form, pair) * (1 - 2 * player)
    best = best_responses.best_response_value(tree.sequence_form, player, reach)
    assert value == pytest.approx(best, abs=TOLERANCE)
    assert len({strategy.tobytes() for strategy in found}) > 2
    # A smaller k gives the first k of the same strategies.
    for few, many in zip(
        Continuations(blueprint("kuhn"), 3).strategies(tree, player),
        found,
        strict=False,
    ):
        np.testing.assert_array_equal(few, many)


def test_opponent_chooses_continuations_per_infoset():
    """Enumerate its strategies in Kuhn poker up to player 0's second move."""
    tree = games.compiled("kuhn")
    d = decomposition.decompose(tree, 0)
    values = np.random.default_rng(1).normal(size=(len(tree.histories), 2))
    ahead = truncate_layer(d, 1, 1, FixedValues(values))
    uniform = conversions.uniform_behaviour(d.decisions)
    reach = conversions.reach_from_behaviour(d.decisions, uniform)
    forest = build_forest(d, 1, reach, np.zeros(len(d.augmented_layer)), ahead)
    leaves = ahead.choices.histories
    assert len(leaves) == 6  # pass, bet: one history for each deal
    own = conversions.reach_from_behaviour(
        forest.decisions[0], conversions.uniform_behaviour(forest.decisions[0])
    )
    got = best_responses.best_response_value(forest.form, 1, own)

    by_path = {tuple(tree.histories.actions_to(h)): values[h] for h in leaves}
    deals = list(itertools.permutations(range(3), 2))

    def best(choices_of):
        """Return the best value over player 1's actions and choices for each card."""
        total = 0.0
        for card in range(3):
            mine = [deal for deal in deals if deal[1] == card]
            total += max(
                sum(worth(deal, replies, chosen[n]) for n, deal in enumerate(mine))
                for replies in itertools.product((0, 1), repeat=2)
                for chosen in choices_of(len(mine))
            )
        return total / len(deals)

    def worth(deal, replies, choice):
        """Return player 1's utility of a deal if player 0 plays uniformly."""
        total = 0.0
        for first in (0, 1):
            path = (*deal, first, replies[first])
            if path in by_path:
                total -= by_path[path][choice] / 2
                continue
            state = tree.game.new_initial_state()
            for action in path:
                state.apply_action(action)
            total += state.returns()[1] / 2
        return total

    by_infoset = best(lambda n: [(j,) * n for j in (0, 1)])
    by_history = best(lambda n: list(itertools.product((0, 1), repeat=n)))
    assert by_history > by_infoset + 0.01
    assert got == pytest.approx(by_infoset, abs=TOLERANCE)


def test_continuations_solve_a_game_that_single_values_cannot():
    """The game is rock, paper, scissors with doubled stakes."""
    tree = rock_paper_scissors()
    equilibrium = (
        np.concatenate([[1.0], RPS_PLUS, np.ones(3)]),
        np.concatenate([[1.0], RPS_PLUS]),
    )

    def resolved(leaf):
        return resolve(tree, ResolvingConfig("cfr+", 1000, depth=1, leaf=leaf))

    # CFR+ has an error of a few thousandths here, so the equilibrium is kept; starting
    # from another incumbent strategy, re-solving comes close to an equilibrium.
    incumbent = (np.concatenate([[1.0], np.full(3, 1 / 3), np.ones(3)]), equilibrium[1])
    assert resolved(Continuations(equilibrium, 8)).nash_conv() < 1e-9
    assert resolved(Continuations(incumbent, 8)).nash_conv() < 0.01


@pytest.mark.slow
def test_match_player_equals_resolve():
    tree = games.compiled("kuhn")
    values = np.random.default_rng(7).normal(size=(len(tree.histories), 3))
    leaf = FixedValues(values)
    config = ResolvingConfig(solver="cfr+", iterations=20, depth=1, leaf=leaf)
    whole = resolve(tree, config)
    for player in PLAYERS:
        played = everywhere(Resolver(tree, player, config))
        np.testing.assert_allclose(played, whole.average[player], atol=1e-9)


def test_continuations_are_loaded_from_a_file(tmp_path):
    tree, path = games.compiled("kuhn"), str(tmp_path / "kuhn.npz")
    result = solve(tree, "cfr+", 10)
    result.save(path)
    text = f"continuations(path={path},k=3)"
    leaf = parse_leaf(text)
    inner = np.flatnonzero(tree.histories.player >= 0)
    given = Continuations(result.average, 3)
    np.testing.assert_array_equal(leaf(tree, inner, 0), given(tree, inner, 0))
    policy = Continuations(result.average_policy(), 3)
    np.testing.assert_array_equal(policy(tree, inner, 1), given(tree, inner, 1))
    with pytest.raises(ValueError, match="was given for leduc_poker"):
        leaf(games.compiled("leduc"), np.array([1]), 0)
    (tmp_path / "kuhn.npz").write_bytes(b"nothing")
    with pytest.raises((CorruptFileError, ValueError)):
        parse_leaf(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("continuations", "leaf='continuations': not a leaf value; use"),
        ("continuations(path=x,k=0)", "k=0"),
        ("continuations(path=x,kind=biased)", "unknown parameter 'kind'"),
        ("continuations(path=x,n=1)", "n"),
    ],
)
def test_rejects_invalid_strings(text, message):
    with pytest.raises(ValueError, match=message):
        parse_leaf(text)


@pytest.mark.parametrize("bad", [np.zeros((2, 3)), np.full((6, 2), np.nan)])
def test_rejects_invalid_leaf_values(bad):
    class Bad(HistoryValues):
        k = 2

        def __call__(self, tree, histories, player):
            return bad

    d = decomposition.decompose(games.compiled("kuhn"), 0)
    with pytest.raises(ValueError, match="not finite"):
        truncate_layer(d, 1, 1, Bad())


def goofspiel():
    """Return a game tree, its batched rules and its histories after one round."""
    tree = tree_builder.build_tree("python_ii_goofspiel(num_cards=3)")
    rules = batched_rules.of_game(tree.game)
    numbers = np.flatnonzero(tree.histories.parent > 0)
    numbers = numbers[tree.histories.parent[tree.histories.parent[numbers]] == 0]
    return tree, rules, numbers


def biased_values(tree, behaviours, player, most):
    """Return exact values [N, 1 + 2 most] of o's blueprint biased to each action."""
    infosets = tree.infosets[1 - player].decisions
    plain = behaviours[1 - player]
    strategies = [plain]
    for bias in (BIAS, BIAS**2):
        for action in range(most):
            chosen = plain.copy()
            for first, count in zip(
                infosets.first_sequence, infosets.num_actions, strict=True
            ):
                here = plain[first : first + count] + bias * (
                    np.arange(count) == action
                )
                chosen[first : first + count] = here / here.sum()
            strategies.append(chosen)
    values = []
    for chosen in strategies:
        pair = list(behaviours)
        pair[1 - player] = chosen
        values.append(conversions.history_values(tree, pair))
    return np.stack(values, axis=1)


@pytest.mark.parametrize("form", ["arrays", "states"])
def test_rollouts_average_to_exact_values(form):
    """Use o's biased strategies, without a game tree.

    Utilities are -1, 0 or 1, so the mean of n rollouts deviates by more than
    5 / sqrt(n) (five standard errors) with a probability below 1 in 1.7 million.
    """
    tree, rules, numbers = goofspiel()
    n = 1600 if form == "arrays" else 64
    behaviours = random_behaviours(tree, 4)
    policy = conversions.tabular_policy(tree, behaviours)
    leaf = Rollouts(policy, 5, n, 0)
    game, histories = rules, rules.new_initial_states()
    if form == "arrays":
        for _ in range(2):
            mask = rules.legal_actions_mask(histories)
            at, actions = np.nonzero(mask)
            histories = rules.child(histories[at], actions)
    else:
        game, numbers = None, numbers[:2]
        histories = np.empty(2, object)
        for place, number in enumerate(numbers):
            histories[place] = tree.game.new_initial_state()
            for action in tree.histories.actions_to(number):
                histories[place].apply_action(action)
    for player in PLAYERS:
        exact = biased_values(tree, behaviours, player, 3)[numbers, :5]
        found = leaf(game, histories, player)
        assert found.shape == exact.shape
        assert np.abs(found - exact).max() < 5 / np.sqrt(n)
        # Only the opponent o deviates from the blueprint.
        assert np.ptp(exact, axis=1).max() > 0.2
    again, same = (Rollouts(policy, 4, 3, seed=5) for _ in range(2))
    np.testing.assert_array_equal(again(game, histories, 0), same(game, histories, 0))


@pytest.mark.slow
def test_rollouts_accept_sampled_policies():
    """Rollouts equal those of a tabular policy with the same probabilities."""
    tree, rules, _ = goofspiel()
    table = solve(
        str(tree.game), "os-mccfr(batch=16)", 20, options=GameOptions("simulator")
    )
    policy = table.average_policy()
    strings = conversions.tabular_policy(tree, query(tree, policy))
    start = rules.new_initial_states()
    found, expected = (
        Rollouts(blueprint, 3, 20, seed=0)(rules, start, 0)
        for blueprint in (policy, strings)
    )
    assert policy.array_probabilities(rules, start, 0).max() > 0
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


def test_rollouts_reject_policies_without_batched_queries():
    tree, rules, _ = goofspiel()
    start = rules.new_initial_states()
    other = openspiel_policy.FirstActionPolicy(tree.game)
    with pytest.raises(ValueError, match="cannot be queried for arrays of states"):
        Rollouts(other, 2, 1, seed=0)(rules, start, 0)


def test_thinning_keeps_the_weight_of_improbable_histories():
    """Such weights would vanish in a cumulative sum over all rows."""
    rows, weight = np.repeat([0, 1], 3), np.repeat([1.0, 1e-20], 3)
    with np.errstate(all="raise"):
        thinned = _thinned(rows, weight, 1, lambda number: np.full(len(number), 0.5))
    assert (np.bincount(rows, thinned > 0) == 1).all()
    np.testing.assert_allclose(np.bincount(rows, thinned), [3.0, 3e-20], rtol=1e-12)


_LIMIT = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
    "numSuits=2,numRanks=3,numHoleCards=1,numBoardCards=0 1,raiseSize=2 4,"
    "maxRaises=2 2,bettingAbstraction=fcpa)"
)


@pytest.mark.parametrize(
    ("game", "algorithm", "iterations"),
    [
        ("phantom_ttt", "os-mccfr(batch=64)", 2),
        ("phantom_ttt", "es-mccfr(batch=1)", 1),
        ("liars_dice(numdice=1,dice_sides=4)", "es-mccfr(batch=1)", 1),
        # The last card is a forced move and has no row in the table.
        ("goofspiel(num_cards=4,imp_info=true,returns_type=win_loss)", "os-mccfr", 1),
        (_LIMIT, "os-mccfr(batch=8)", 2),
        ("dark_hex(board_size=3)", "os-mccfr(batch=64,averaging=sampled)", 2),
    ],
)
def test_sampled_policies_are_not_queried_below_missing_infosets(
    game, algorithm, iterations, monkeypatch, tmp_path
):
    """Rollouts are bitwise identical and query fewer states."""
    forgets = "dark_hex" in game  # Several action sequences lead to an infoset.
    result = solve(game, algorithm, iterations, options=GameOptions("simulator"))
    result.save(tmp_path / "policy.npz")
    policy = load_policy(tmp_path / "policy.npz")
    rules, asked = batched_rules.of_game(policy.game), []
    rows_of = policy.strategy.find

    def find(keys):
        asked.append(len(keys))
        return rows_of(keys)

    monkeypatch.setattr(policy.strategy, "find", find)
    start, counts, found = rules.new_initial_states(), [], []
    assert policy.from_roots != forgets
    for own in (True, False):
        asked.clear()
        policy.from_roots &= own
        rollouts = Rollouts(policy, 2, 1, seed=3)
        found.append(rollouts(rules, np.repeat(start, 300, axis=0), 1))
        counts.append(sum(asked))
    np.testing.assert_array_equal(*found)
    assert 0 < counts[0] and (counts[0] < counts[1]) != forgets
    assert np.ptp(found[0]) > 0


def test_bucketed_policies_are_queried_everywhere():
    """Several paths lead to a bucket, so a bucket may exist below a missing one."""
    options = GameOptions("simulator", hand_buckets="3-9")
    result = solve(_LIMIT, "pcs", 2, options=options)
    assert not result.average_policy().from_roots
