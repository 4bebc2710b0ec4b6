"""Partitions of private states: validation, coarsened games and lifted strategies."""

import pathlib

import numpy as np
import pyspiel
import pytest

from spiel_cr.abstraction import gameshrink
from spiel_cr.abstraction.gameshrink import Partition
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies import best_responses, conversions
from tests.abstraction.gameshrink.reference import best_value, random_behaviour, value

SMALL = "python_rhode_island_holdem(num_ranks=3,num_suits=2,max_bets=1)"


@pytest.fixture(scope="module")
def game():
    return public_tree_game(SMALL)


def random_partition(game, rng, most=4):
    """Return a random partition that splits each class into up to `most` classes."""
    labels = []
    for parents in game.parents:
        above, own = np.zeros(1, int), []
        for parent in parents:
            keys = above[parent] * most + rng.integers(most, size=len(parent))
            above = np.unique(keys, return_inverse=True)[1]
            own.append(above)
        labels.append(tuple(own))
    return Partition(tuple(labels))


def trivial_partition(game):
    """Return the partition whose classes are single private states."""
    return Partition(
        tuple(tuple(np.arange(len(p)) for p in own) for own in game.parents)
    )


@pytest.mark.parametrize("seed", range(3))
def test_lifted_strategies_have_equal_values(game, seed):
    """For a random partition, lifted strategies have the value of the coarse ones."""
    rng = np.random.default_rng(seed)
    partition = random_partition(game, rng)
    smaller = gameshrink.coarsen(game, partition)
    smaller.check()
    assert smaller.num_private_states(0) == partition.num_classes(0)
    assert smaller.num_private_states(0)[2] < game.num_private_states(0)[2]
    behaviours = [random_behaviour(smaller, player, rng) for player in range(2)]
    lifted = gameshrink.lift(game, partition, behaviours)
    found, expected = value(smaller, behaviours), value(game, lifted)
    assert found == pytest.approx(expected, abs=1e-12)
    # A best response distinguishes more than classes.
    for player in range(2):
        most = best_value(game, player, lifted[1 - player])
        assert most > best_value(smaller, player, behaviours[1 - player])


def test_lifted_reach_equals_the_reach_of_lifted_behaviours(game):
    rng = np.random.default_rng(5)
    partition = random_partition(game, rng)
    smaller = gameshrink.coarsen(game, partition)
    behaviours = [random_behaviour(smaller, player, rng) for player in range(2)]
    reach = reach_of(smaller, behaviours)
    lifted = gameshrink.lift(game, partition, behaviours)
    expected = reach_of(game, lifted)
    for mine, other in zip(
        gameshrink.lift(game, partition, reach), expected, strict=True
    ):
        np.testing.assert_allclose(mine, other, atol=1e-15)


def reach_of(game, behaviours):
    decisions = game.sequence_form.decisions
    return [
        conversions.reach_from_behaviour(own, behaviour)
        for own, behaviour in zip(decisions, behaviours, strict=True)
    ]


def test_trivial_partition_does_not_change_the_game(game):
    same = gameshrink.coarsen(game, trivial_partition(game))
    for one, other in zip(game.payoff_matrices, same.payoff_matrices, strict=True):
        assert one.shape == other.shape
        for mine, given in zip(one.coordinates(), other.coordinates(), strict=True):
            np.testing.assert_allclose(given, mine, rtol=1e-15)
    for mine, given in zip(game.parents[0], same.parents[0], strict=True):
        assert (mine == given).all()
    assert gameshrink.difference(game, trivial_partition(game)) is None


def test_coarse_reader_returns_classes_of_states(game):
    rng = np.random.default_rng(2)
    partition = random_partition(game, rng)
    smaller = gameshrink.coarsen(game, partition)
    rounds = set()
    for _ in range(20):
        state = game.game.new_initial_state()
        while not state.is_terminal():
            player = state.current_player()
            if player >= 0:
                signal = game.reader.private_state(state, player)
                r = deals(state) - 2
                expected = partition.labels[player][r][signal]
                assert smaller.reader.private_state(state, player) == expected
                rounds.add(r)
            state.apply_action(int(rng.choice(state.legal_actions())))
    assert rounds == {0, 1, 2}
    first = partition.labels[0][2].tolist().index(3)
    assert smaller.reader.name(0, 2, 3) == game.reader.name(0, 2, first)


def deals(state):
    """Return how many cards have been dealt."""
    return sum(m.player == pyspiel.PlayerId.CHANCE for m in state.full_history())


def with_labels(partition, player, round, labels):
    own = [list(some) for some in partition.labels]
    own[player][round] = labels
    return Partition((tuple(own[0]), tuple(own[1])))


def test_rejects_invalid_partitions(game):
    fine = trivial_partition(game)
    fine.check(game)
    with pytest.raises(ValueError, match="give one label for each"):
        gameshrink.coarsen(game, with_labels(fine, 1, 1, np.arange(3)))
    gaps = 2 * np.arange(game.num_private_states(0)[2])
    with pytest.raises(ValueError, match="labels.0..2.: .*; number the classes"):
        gameshrink.difference(game, with_labels(fine, 0, 2, gaps))
    with pytest.raises(ValueError, match="labels.1..2.: a class contains private"):
        gameshrink.lift(game, with_labels(fine, 1, 2, 0 * gaps), [np.ones(1)] * 2)
    with pytest.raises(ValueError, match="behaviour of player 0 has the shape"):
        gameshrink.lift(game, fine, [np.ones(1)] * 2)


@pytest.mark.slow  # compiles a function for less than a second of work
def test_reference_equals_exact_best_responses(game):
    rng = np.random.default_rng(0)
    form = game.sequence_form
    behaviours = [random_behaviour(game, player, rng) for player in range(2)]
    reach = reach_of(game, behaviours)
    for player in range(2):
        found = best_responses.best_response_value(form, player, reach[1 - player])
        expected = best_value(game, player, behaviours[1 - player])
        assert found == pytest.approx(expected, abs=1e-10)


def test_documentation_example_runs(capsys):
    page = pathlib.Path(__file__).parents[3] / "docs" / "how-to" / "abstraction.md"
    code = page.read_text("utf-8").split("```python\n")[1].split("```")[0]
    exec(compile(code, "abstraction.md", "exec"), {"__name__": "docs"})
    counts, nothing, rows = capsys.readouterr().out.splitlines()
    assert f"# {counts}: classes" in code and nothing == "None" and int(rows) > 0
