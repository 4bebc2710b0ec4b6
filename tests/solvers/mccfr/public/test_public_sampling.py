"""Public sampling: unbiased, exact with exact baselines, averages of all iterates."""

import functools
import itertools

import jax
import numpy as np
import pytest

from spiel_cr.common.jax_utils import precision
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import action_values, reach_from_behaviour
from spiel_cr.solvers.mccfr.public import (
    boards,
)
from spiel_cr.solvers.mccfr.public import (
    public_places as places,
)
from spiel_cr.solvers.mccfr.public import (
    public_solver as solver,
)
from spiel_cr.solvers.mccfr.public import (
    public_walk as walk,
)
from tests.support import detection, games
from tests.support.made_games import MadeGame, Node
from tests.support.strategies import random_behaviours

PLAYERS = (0, 1)
DOUBLE = np.dtype(np.float64)


def made_rules(path):
    """Both see a card, each gets one of its own. A bet that is called ends the bets,
    and two more public cards follow at once; else one, a bet, one, and a last bet."""
    size = len(path)
    if size < 3:
        odds = ((0.3, 0.7), (0.2, 0.3, 0.5), (0.4, 0.6))[size]
        return Node(CHANCE, range(len(odds)), chance=odds)
    public, one, other, *moves = path
    infos = (f"0 {public}{one}{moves}", f"1 {public}{other}{moves}")
    size, called = len(moves), moves[:2] == [1, 1]
    if size < 2:
        return Node(size, (0, 1), infos)
    if size == 2 or (size == 3 and called) or (size == 4 and not called):
        return Node(CHANCE, (0, 1), chance=(0.25, 0.75))
    if size < 6 and not called:
        return Node(0, (0, 1), infos) if size == 3 else Node(1, (0, 1, 2), infos)
    cards = moves[2] + moves[3 if called else 4]
    wins = 1 if (one + cards) % 3 > other else -1
    worth = 3 + public if called else (1 + moves[0] + moves[3]) * (1 if moves[5] else 2)
    return Node(TERMINAL, utility=worth * wins)


@functools.cache
def compiled(name):
    if name == "made":
        return build_tree(MadeGame(made_rules, "made"))
    return games.compiled(name)


@functools.cache
def detected(name):
    return detection.locate(compiled(name))


@functools.cache
def laid_out(name):
    game = detected(name).game
    return places.build(game, boards.find(game))


def table_of(name, behaviours):
    """float64 [Y + 1, A, h], strategies of the compiled game as walks take them."""
    layout = laid_out(name)
    table = solver.uniform(layout.places)
    flat = table[:-1].reshape(-1)
    for player, behaviour in enumerate(behaviours):
        entries = layout.entries[player][detected(name).sequences[player]]
        flat[entries[1:]] = behaviour[1:]
    return table


def exact_tables(given, table, player):
    """The visits of a walk that goes everywhere; float64 [Y + 1, A, h], its values of
    actions; [X, h], of places, and what is at stake there."""
    capacity = places.most_visits(given, player, "all")
    visits = jax.jit(
        functools.partial(
            walk.walk,
            player=player,
            rates=walk.SamplingRates(0.0, 0.0, "all"),
            capacity=capacity,
        )
    )(given, table, np.zeros((len(given.kind), table.shape[2])), np.zeros(capacity))
    visits = jax.tree.map(np.asarray, visits)
    actions = np.zeros_like(table)
    actions[given.row[visits.place]] = visits.values
    at_place, stake = (np.zeros((len(given.kind), table.shape[2])) for _ in range(2))
    at_place[visits.place], stake[visits.place] = visits.value, visits.stake
    return visits, actions, at_place, stake


def by_sequence(name, player, table):
    """float64 [S], what a table [Y + 1, A, h] says of the compiled game's sequences."""
    entries = laid_out(name).entries[player][detected(name).sequences[player]]
    return np.append(np.asarray(table)[:-1].reshape(-1), (0, 0))[entries]


def test_boards_of_leduc():
    found = boards.find(detected("leduc").game)
    assert [part.size for part in found.rounds] == [1, 6]
    assert found.mass.shape == (7, 6, 6)
    # Folds: how likely two cards are, one board for each card.
    np.testing.assert_allclose(found.mass[0], (1 - np.eye(6)) / 30)
    np.testing.assert_allclose(found.rounds[1].probability, 20 / 120)
    for player in PLAYERS:
        assert (found.rounds[1].private_states[player] >= 0).sum(axis=1).tolist() == [
            5
        ] * 6


def test_boards_that_come_first_or_two_at_once():
    found = boards.find(detected("made").game)
    assert [part.size for part in found.rounds][0] == 2
    assert len(found.rounds) == 3
    kinds = np.asarray(laid_out("made").places.kind)
    assert kinds[0] == places.DEAL and (kinds == places.DEAL).sum() > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kuhn", "leduc7", "made"])
def test_going_everywhere_is_exact(name):
    """Against values of the compiled game's histories, which share no code with it."""
    tree = compiled(name)
    behaviours = random_behaviours(tree, 5)
    expected, value = action_values(tree, behaviours)
    table, layout = table_of(name, behaviours), laid_out(name)
    with precision(DOUBLE):
        for player in PLAYERS:
            visits, exact, *_ = exact_tables(layout.places, table, player)
            found = by_sequence(name, player, exact)
            np.testing.assert_allclose(found[1:], expected[player][1:], atol=1e-12)
            own = (1 - 2 * player) * value
            assert float(visits.value[0].sum()) == pytest.approx(own, abs=1e-12)


def every_trajectory(given, table, baseline, player, follow, capacity, even=0.5):
    """All trajectories that can be drawn, each once; with 4 000 of them that a Kuhn
    trajectory of probability 0.005 is missing has a chance of 2e-9."""
    draws = jax.random.uniform(jax.random.key(1), (4000, capacity))

    def one(own):
        return walk.walk(
            *(given, table, baseline, own),
            player=player,
            rates=walk.SamplingRates(even, even, follow),
            capacity=capacity,
        )

    visits = jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(draws))
    used = np.arange(capacity) < visits.length[:, None]
    paths = np.where(used, visits.place, -1)
    _, first = np.unique(paths, axis=0, return_index=True)
    return jax.tree.map(lambda array: array[first], visits), used[first]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("follow", "kind", "player"),
    list(
        itertools.product(("outcome", "external"), (None, "random", "oracle"), PLAYERS)
    ),
)
def test_unbiased(follow, kind, player):
    """The mean over all trajectories, by enumeration, is exact whatever the baseline;
    with exact baselines every one of them is."""
    tree, given = games.compiled("kuhn"), laid_out("kuhn").places
    behaviours = random_behaviours(tree, 7)
    expected, value = action_values(tree, behaviours)
    table = table_of("kuhn", behaviours)
    with precision(DOUBLE):
        baseline = None
        if kind == "random":
            size = (len(given.kind), table.shape[2])
            guesses = np.random.default_rng(3).normal(size=size)
            baseline = guesses
        elif kind == "oracle":
            *_, at_place, stake = exact_tables(given, table, player)
            baseline = at_place / np.where(stake > 0, stake, 1)
        capacity = places.most_visits(given, player, follow)
        visits, used = every_trajectory(
            given, table, baseline, player, follow, capacity
        )
    odds = np.where(used, visits.rate, 1).prod(axis=1)
    assert odds.sum() == pytest.approx(1, abs=1e-12) and len(odds) > 1
    mean = np.zeros_like(table)
    own = used & (given.kind[visits.place] == player)
    weight = odds[:, None] / visits.product
    for s, v in zip(*np.nonzero(own), strict=True):
        mean[given.row[visits.place[s, v]]] += weight[s, v] * visits.values[s, v]
    found = by_sequence("kuhn", player, mean)
    np.testing.assert_allclose(found[1:], expected[player][1:], atol=1e-12)
    roots = visits.value[:, 0].sum(axis=1) * (1 - 2 * player)
    assert (odds * roots).sum() == pytest.approx(value, abs=1e-12)
    spread = (odds * (roots - value) ** 2).sum()
    assert (spread < 1e-24) == (kind == "oracle")


def iterates(made, count):
    """The strategies before each iteration, both players'."""
    found = []
    for _ in range(count):
        found.append([made.current_behaviour(player) for player in PLAYERS])
        made.run(1)
    return found


@pytest.mark.slow
def test_averages_are_of_all_iterates():
    """Player 0's average takes its strategy before each update in, with weight t."""
    game = detected("leduc7").game
    made = solver.make_solver(
        game, game.sequence_form, "public-vr+", dtype=np.float64, seed=3
    )
    before = iterates(made, 40)
    for player in PLAYERS:
        decisions = made.form.decisions[player]
        reach = [reach_from_behaviour(decisions, one[player]) for one in before]
        weights = np.arange(1, 41)
        expected = np.average(reach, axis=0, weights=weights)
        np.testing.assert_allclose(made.average(player), expected, atol=1e-12)
        assert (before[0][player] != before[-1][player]).any()


def nash_conv(name, made):
    reach = tuple(made.average(p)[detected(name).sequences[p]] for p in PLAYERS)
    return best_responses.nash_conv(games.compiled(name).sequence_form, reach)


# About three times what these seeds gave when the test was written.
BOUNDS = [
    ("kuhn", "public-vr+", 3_000, 0.02),
    *(
        pytest.param(*row, marks=pytest.mark.slow)
        for row in (
            ("kuhn", "public-es", 10_000, 0.02),
            ("kuhn", "public-vr", 10_000, 0.03),
            ("leduc", "public-vr+", 100_000, 0.25),
            ("leduc", "public-es", 100_000, 0.2),
        )
    ),
]


@pytest.mark.parametrize(("name", "algorithm", "iterations", "bound"), BOUNDS)
def test_nash_conv(name, algorithm, iterations, bound):
    """Seeded, so the same every time on one machine."""
    runs = []
    for _ in range(2):
        game = detected(name).game
        made = solver.make_solver(game, game.sequence_form, algorithm, seed=1)
        made.run(iterations)
        runs.append(made.average(0))
    assert nash_conv(name, made) < bound < games.BY_NAME[name].uniform / 10
    np.testing.assert_array_equal(*runs)


@pytest.mark.slow
def test_baselines_lower_the_variance():
    """Over all trajectories, by enumeration."""
    game = detected("kuhn").game
    made = solver.make_solver(game, game.sequence_form, "public-vr", seed=2)
    made.run(3000)
    # Payoffs are scaled there, and so are baselines.
    given = made.problem
    given = jax.tree.map(
        lambda part: part.astype(DOUBLE) if part.dtype == np.float32 else part,
        jax.tree.map(np.asarray, given),
    )
    table = np.asarray(made.state.strategy, np.float64)
    with precision(DOUBLE):
        for player in PLAYERS:
            learnt = np.asarray(made.state.baseline[player], np.float64)
            exact = exact_tables(given, table, player)[1]
            plain, ours = (
                squared_errors(given, table, exact, player, baseline)
                for baseline in (None, learnt)
            )
            assert 0 < 10 * ours[0] < plain[0]
            assert 0 < ours[1] < plain[1]


def squared_errors(given, table, exact, player, baseline):
    """Of the values of the player's actions where a trajectory comes, less what remains
    with exact values there; and of the sampled value of the game."""
    capacity = places.most_visits(given, player, "outcome")
    visits, used = every_trajectory(
        given, table, baseline, player, "outcome", capacity, even=1.0
    )
    odds = np.where(used, visits.rate, 1).prod(axis=1)
    acts = used & (given.kind[visits.place] == player)
    off = visits.values - exact[given.row[visits.place]]
    off = np.square(off).sum(axis=(2, 3)) / np.square(visits.product)
    roots = visits.value[:, 0].sum(axis=1)
    return odds @ (acts * off).sum(axis=1), odds @ np.square(roots - odds @ roots)
