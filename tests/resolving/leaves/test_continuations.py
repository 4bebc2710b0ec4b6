"""Multi-valued states: what continuations are worth, and how the opponent chooses.

Values are held to OpenSpiel's; what the opponent gets in a cut game to its plans in it,
tried out one by one on OpenSpiel's states.
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
    """Player 1 answers, without knowing it, what player 0 chose before the cut."""
    return tree_builder.build_tree(MadeGame(rps_plus, "rps_plus"), observations=True)


class Given(HistoryValues):
    """Values of a table, whatever the strategies are."""

    def __init__(self, values):
        self.values, self.k = values, values.shape[1]

    def __call__(self, tree, histories, player):
        return self.values[histories]


@pytest.mark.parametrize("player", PLAYERS)
def test_values_are_those_of_openspiel(player):
    """Player i follows the blueprint, o a continuation, from any history on."""
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
def test_what_the_continuations_are(player):
    """The blueprint, a best response to the other's, and more of fictitious play."""
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
    # A smaller k has the first ones.
    for few, many in zip(
        Continuations(blueprint("kuhn"), 3).strategies(tree, player),
        found,
        strict=False,
    ):
        np.testing.assert_array_equal(few, many)


def test_the_opponent_chooses_by_what_it_knows():
    """Not by history: all of its plans in kuhn poker, cut at player 0's second move."""
    tree = games.compiled("kuhn")
    d = decomposition.decompose(tree, 0)
    values = np.random.default_rng(1).normal(size=(len(tree.histories), 2))
    ahead = truncate_layer(d, 1, 1, Given(values))
    uniform = conversions.uniform_behaviour(d.decisions)
    reach = conversions.reach_from_behaviour(d.decisions, uniform)
    forest = build_forest(d, 1, reach, np.zeros(len(d.augmented_layer)), ahead)
    leaves = ahead.choices.histories
    assert len(leaves) == 6  # pass, bet: by the cards of both
    own = conversions.reach_from_behaviour(
        forest.decisions[0], conversions.uniform_behaviour(forest.decisions[0])
    )
    got = best_responses.best_response_value(forest.form, 1, own)

    by_path = {tuple(tree.histories.actions_to(h)): values[h] for h in leaves}
    deals = list(itertools.permutations(range(3), 2))

    def best(choices_of):
        """Player 1's best plan, card by card: pass or bet twice, and a choice."""
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
        """Player 1's utility of a deal: player 0 passes or bets at random."""
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


def test_where_one_number_fails_continuations_do_not():
    """Rock, paper, scissors with doubled stakes; the blueprint is its equilibrium."""
    tree = rock_paper_scissors()
    equilibrium = (
        np.concatenate([[1.0], RPS_PLUS, np.ones(3)]),
        np.concatenate([[1.0], RPS_PLUS]),
    )

    def resolved(leaf):
        return resolve(tree, ResolvingConfig("cfr+", 1000, depth=1, leaf=leaf))

    # cfr+ is off by some thousandths after so many iterations: so the plan stays, and
    # from a plan that is no equilibrium they find one.
    incumbent = (np.concatenate([[1.0], np.full(3, 1 / 3), np.ones(3)]), equilibrium[1])
    assert resolved(Continuations(equilibrium, 8)).nash_conv() < 1e-9
    assert resolved(Continuations(incumbent, 8)).nash_conv() < 0.01


@pytest.mark.slow
def test_a_player_in_a_match_plays_what_resolve_finds():
    tree = games.compiled("kuhn")
    values = np.random.default_rng(7).normal(size=(len(tree.histories), 3))
    leaf = Given(values)
    config = ResolvingConfig(solver="cfr+", iterations=20, depth=1, leaf=leaf)
    whole = resolve(tree, config)
    for player in PLAYERS:
        played = everywhere(Resolver(tree, player, config))
        np.testing.assert_allclose(played, whole.average[player], atol=1e-9)


def test_from_a_file(tmp_path):
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
def test_bad_strings_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_leaf(text)


@pytest.mark.parametrize("bad", [np.zeros((2, 3)), np.full((6, 2), np.nan)])
def test_bad_values_are_refused(bad):
    class Bad(HistoryValues):
        k = 2

        def __call__(self, tree, histories, player):
            return bad

    d = decomposition.decompose(games.compiled("kuhn"), 0)
    with pytest.raises(ValueError, match="not finite"):
        truncate_layer(d, 1, 1, Bad())


def goofspiel():
    """Three cards, its batched rules, and its states after the first round."""
    tree = tree_builder.build_tree("python_ii_goofspiel(num_cards=3)")
    rules = batched_rules.of_game(tree.game)
    numbers = np.flatnonzero(tree.histories.parent > 0)
    numbers = numbers[tree.histories.parent[tree.histories.parent[numbers]] == 0]
    return tree, rules, numbers


def biased_values(tree, behaviours, player, most):
    """[N, 1 + 2 most], exactly: o's blueprint with one action preferred everywhere."""
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
def test_rollouts_mean_exact_values(form):
    """By o's biased strategies, in games as they are where nothing is compiled.

    Utilities are -1, 0 or 1, so a mean of n rollouts is off by more than 5 / sqrt(n)
    once in 1.7 million times at most (5 standard errors).
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
        game, numbers = tree.game, numbers[:2]
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
        # It is o who deviates, and i who does not.
        assert np.ptp(exact, axis=1).max() > 0.2
    again, same = (Rollouts(policy, 4, 3, seed=5) for _ in range(2))
    np.testing.assert_array_equal(again(game, histories, 0), same(game, histories, 0))


@pytest.mark.slow
def test_rollouts_by_a_table_of_a_game_never_compiled():
    """What the table says is what a table by strings says, so rollouts are equal."""
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


def test_rollouts_of_what_cannot_be_played_are_refused():
    tree, rules, _ = goofspiel()
    start = rules.new_initial_states()
    other = openspiel_policy.FirstActionPolicy(tree.game)
    with pytest.raises(ValueError, match="cannot be queried for arrays of states"):
        Rollouts(other, 2, 1, seed=0)(rules, start, 0)


def test_histories_that_are_hardly_reached_keep_their_weight():
    """It is lost in the sum of weights of the rows before."""
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
        # The last cards are no choice, and have no rows.
        ("goofspiel(num_cards=4,imp_info=true,returns_type=win_loss)", "os-mccfr", 1),
        (_LIMIT, "os-mccfr(batch=8)", 2),
        ("dark_hex(board_size=3)", "os-mccfr(batch=64,averaging=sampled)", 2),
    ],
)
def test_a_sampled_table_is_not_asked_below_what_it_does_not_have(
    game, algorithm, iterations, monkeypatch, tmp_path
):
    """To the same bits, and of each line of play fewer states are asked for."""
    forgets = "dark_hex" in game  # A player may come to an infoset on several ways.
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


def test_buckets_are_asked_everywhere():
    """One may be met on several ways, and a row lie below a missing one."""
    options = GameOptions("simulator", hand_buckets="3-9")
    result = solve(_LIMIT, "pcs", 2, options=options)
    assert not result.average_policy().from_roots
