"""Public sampling: unbiased estimates, baselines, averages and convergence."""

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
    """Rules of a small poker game with public cards before and between the bets.

    A public card is dealt, and then a private card to each player. If the first bet is
    called, betting ends and two public cards follow at once. Otherwise there is a
    public card, a bet, another public card and a last bet.
    """
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
def layout_of(name):
    game = detected(name).game
    return places.build(game, boards.find(game))


def table_of(name, behaviours):
    """Return strategies of the game tree as a table of walks, float64 [Y + 1, A, h]."""
    layout = layout_of(name)
    table = solver.uniform(layout.places)
    flat = table[:-1].reshape(-1)
    for player, behaviour in enumerate(behaviours):
        entries = layout.entries[player][detected(name).sequences[player]]
        flat[entries[1:]] = behaviour[1:]
    return table


def exact_tables(given, table, player):
    """Walk through the whole game.

    Returns:
      The visits; values of actions, float64 [Y + 1, A, h]; values of places, float64
      [X, h]; and the stakes at places, float64 [X, h].
    """
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
    """Return entries of a table [Y + 1, A, h] by sequence of the tree, float64 [S]."""
    entries = layout_of(name).entries[player][detected(name).sequences[player]]
    return np.append(np.asarray(table)[:-1].reshape(-1), (0, 0))[entries]


def test_finds_the_boards_of_leduc():
    found = boards.find(detected("leduc").game)
    assert [part.size for part in found.rounds] == [1, 6]
    assert found.mass.shape == (7, 6, 6)
    # Probabilities of pairs of cards for folds, then one board for each card.
    np.testing.assert_allclose(found.mass[0], (1 - np.eye(6)) / 30)
    np.testing.assert_allclose(found.rounds[1].probability, 20 / 120)
    for player in PLAYERS:
        assert (found.rounds[1].private_states[player] >= 0).sum(axis=1).tolist() == [
            5
        ] * 6


def test_finds_boards_dealt_first_or_two_at_once():
    found = boards.find(detected("made").game)
    assert [part.size for part in found.rounds][0] == 2
    assert len(found.rounds) == 3
    kinds = np.asarray(layout_of("made").places.kind)
    assert kinds[0] == places.DEAL and (kinds == places.DEAL).sum() > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kuhn", "leduc7", "made"])
def test_walks_through_the_whole_game_are_exact(name):
    """The reference values come from the histories of the game tree."""
    tree = compiled(name)
    behaviours = random_behaviours(tree, 5)
    expected, value = action_values(tree, behaviours)
    table, layout = table_of(name, behaviours), layout_of(name)
    with precision(DOUBLE):
        for player in PLAYERS:
            visits, exact, *_ = exact_tables(layout.places, table, player)
            found = by_sequence(name, player, exact)
            np.testing.assert_allclose(found[1:], expected[player][1:], atol=1e-12)
            own = (1 - 2 * player) * value
            assert float(visits.value[0].sum()) == pytest.approx(own, abs=1e-12)


def every_trajectory(given, table, baseline, player, follow, capacity, even=0.5):
    """Return all trajectories that can be drawn, each once.

    A trajectory of Kuhn poker with probability 0.005 is missing from 4,000 draws with a
    chance of 2e-9.
    """
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
def test_estimates_are_unbiased_and_exact_with_exact_baselines(follow, kind, player):
    """The mean over all trajectories is exact for any baseline.

    With exact baselines, every single trajectory is exact.
    """
    tree, given = games.compiled("kuhn"), layout_of("kuhn").places
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
    """Return both players' strategies before each iteration."""
    found = []
    for _ in range(count):
        found.append([made.current_behaviour(player) for player in PLAYERS])
        made.run(1)
    return found


@pytest.mark.slow
def test_average_contains_all_iterates_with_linear_weights():
    """The strategy before update t has weight t."""
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


# Bounds are about three times the results of these seeds when the test was written.
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
def test_nash_conv_is_below_its_bound_and_reproducible(
    name, algorithm, iterations, bound
):
    """The seed is fixed, so results are the same on every run on one machine."""
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
    """Variances are computed over an enumeration of all trajectories."""
    game = detected("kuhn").game
    made = solver.make_solver(game, game.sequence_form, "public-vr", seed=2)
    made.run(3000)
    # The solver scales payoffs and baselines.
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
    """Compute mean squared errors of sampled values over all trajectories.

    Returns:
      The error of the player's action values where a trajectory visits them, and the
      variance of the sampled value of the game.
    """
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
