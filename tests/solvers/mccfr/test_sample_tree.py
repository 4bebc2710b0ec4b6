"""Arrays of histories for sampling, compared with the game tree and OpenSpiel."""

import functools

import jax
import numpy as np
import pytest

from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.solvers.mccfr import sample_tree
from tests.support import games, reference, sampling_reference
from tests.support.made_games import random_game

PLAYERS = (0, 1)
CHANCE, NO_PLAYER = 2, 3
GOOFSPIEL = games.goofspiel(3, "descending")
# Chance first, no chance, chance in the middle, and unequal numbers of actions.
GAMES = ("kuhn", "goofspiel4", "leduc7", "random")


@functools.cache
def compiled(name: str) -> GameTree:
    if name == "random":
        game = random_game(3, turns="by history", max_actions=4, depth=5)
        return build_tree(game)
    if name == "goofspiel3":
        return build_tree(GOOFSPIEL)
    return games.compiled(name)


def states(tree: GameTree, numbers):
    """Generate histories with OpenSpiel's state at each."""
    for number in numbers:
        state = tree.game.new_initial_state()
        for action in tree.histories.actions_to(int(number)):
            state.apply_action(action)
        yield number, state


@pytest.mark.parametrize("name", GAMES)
def test_levels_equal_the_histories_of_the_game(name):
    tree = compiled(name)
    histories, starts = tree.histories, tree.histories.level_start
    samples, plan = sample_tree.build(tree)
    assert len(samples.levels) == len(plan) == len(starts) - 1
    rng = np.random.default_rng(1)
    for depth, level in enumerate(samples.levels):
        begin, end = starts[depth], starts[depth + 1]
        assert [len(part) for part in level[:5]] == [end - begin + 1] * 5
        # The last row is for trajectories that are over.
        last = [part[-1] for part in level[:5]]
        after = 0 if depth + 2 == len(starts) else starts[depth + 2] - end
        assert last == [after, 0, 0, NO_PLAYER, 0.0]
        some = rng.choice(np.arange(begin, end), min(60, end - begin), replace=False)
        for number, state in states(tree, some):
            i = number - begin
            if state.is_terminal():
                assert level.player[i] == NO_PLAYER and level.num_actions[i] == 0
                assert level.utility[i] == state.returns()[0]
                continue
            actions = state.legal_actions()
            assert level.utility[i] == 0 and level.num_actions[i] == len(actions)
            if state.is_chance_node():
                assert level.player[i] == CHANCE
            else:
                assert level.player[i] == state.current_player()
            first = end + level.first_child[i]
            children = np.arange(first, first + len(actions))
            assert (histories.parent[children] == number).all()
            assert list(histories.action[children]) == actions


@pytest.mark.parametrize("name", GAMES)
def test_rows_are_shared_exactly_within_infosets(name):
    """Rows of chance nodes contain their probabilities, and rows do not overlap."""
    tree = compiled(name)
    samples, _ = sample_tree.build(tree)
    sizes = [infosets.decisions.num_sequences for infosets in tree.infosets]
    outcomes = 0
    owners: dict[int, object] = {}
    counts: dict[int, int] = {}
    for depth, level in enumerate(samples.levels):
        begin = tree.histories.level_start[depth]
        for i in range(len(level.row) - 1):
            number, count = begin + i, level.num_actions[i]
            row, player = level.row[i], level.player[i]
            if player == NO_PLAYER:
                continue
            owner: object = (player, number)
            if player != CHANCE:
                infoset = tree.histories.infoset[number]
                decisions = tree.infosets[player].decisions
                assert row == player * sizes[0] + decisions.first_sequence[infoset]
                owner = (player, infoset)
            else:
                outcomes += count
                begin_chance = row - sum(sizes)
                chances = samples.chance[begin_chance : begin_chance + count]
                assert chances.sum() == pytest.approx(1, abs=1e-15)
                state = next(states(tree, [number]))[1]
                expected = [p for _, p in state.chance_outcomes()]
                np.testing.assert_allclose(chances, expected, rtol=0, atol=1e-12)
            assert owners.setdefault(row, owner) == owner
            assert counts.setdefault(row, count) == count
    assert outcomes == len(samples.chance)
    # Rows do not overlap: every entry but the empty sequences belongs to an owner.
    begins = np.array(sorted(counts))
    ends = begins + [counts[row] for row in begins]
    assert set(begins[1:]) - set(ends) <= {sizes[0] + 1}
    assert sum(counts.values()) == sum(sizes) + outcomes - 2


@pytest.mark.parametrize("name", GAMES)
def test_positions_and_entries_are_inverse_maps(name):
    tree = compiled(name)
    samples, _ = sample_tree.build(tree)
    sizes = [infosets.decisions.num_sequences for infosets in tree.infosets]
    for p in PLAYERS:
        positions, entries = samples.positions[p], samples.entries[p]
        assert len(set(positions)) == len(positions) == sizes[p]
        back = entries[positions]
        np.testing.assert_array_equal(back, np.arange(sizes[p]) + p * sizes[0])
        padding = np.delete(entries, positions)
        assert (padding == sum(sizes) + len(samples.chance)).all()


@pytest.mark.parametrize("name", ["kuhn", "goofspiel3", "leduc7"])
def test_balanced_exploration_is_proportional_to_subtree_sizes(name):
    """The size of a subtree is the number of the player's sequences below an action."""
    tree = compiled(name)
    samples, _ = sample_tree.build(tree)
    other = reference.Tree(tree.game)
    for p, infosets in enumerate(tree.infosets):
        first = infosets.decisions.first_sequence + p * len(samples.positions[0])
        for i, key in enumerate(infosets.keys):
            actions = other.actions((p, key))
            sizes = [
                sampling_reference.subtree_size(other, p, (p, key), a) for a in actions
            ]
            found = samples.balanced[first[i] : first[i] + len(actions)]
            assert found.sum() == pytest.approx(1, abs=1e-12)
            np.testing.assert_allclose(found, np.array(sizes) / sum(sizes), rtol=1e-12)
    # In Kuhn poker only passing leads to another infoset, which has two actions.
    if name == "kuhn":
        passing = {round(float(x), 12) for x in samples.balanced[1:13]}
        assert passing == {0.75, 0.25, 0.5}


@pytest.mark.parametrize("name", GAMES)
def test_plan_describes_each_depth(name):
    tree = compiled(name)
    samples, plan = sample_tree.build(tree)
    alive = True
    for shape, level in zip(plan, samples.levels, strict=True):
        counts = level.num_actions[:-1]
        assert shape.width == counts.max()
        assert shape.players == set(level.player[:-1])
        everywhere = bool((counts == counts.max()).all() and counts.max() > 0)
        assert shape.full == (alive and everywhere)
        alive = alive and bool((counts > 0).all())
    assert hash(plan) == hash(sample_tree.build(tree)[1])


def test_leads_to_equals_the_reference():
    tree = compiled("kuhn")
    other = reference.Tree(tree.game)
    paths = {tuple(tree.histories.actions_to(h)): h for h in range(58)}
    for nodes in ([0], [20], [9, 30, 57]):
        target = np.zeros(58, bool)
        target[[paths[other.nodes[i].path] for i in nodes]] = True
        before = target.copy()
        found = sample_tree.leads_to(tree, target)
        led = sampling_reference.leads(other, frozenset(nodes))
        expected = np.zeros(58, bool)
        expected[[paths[other.nodes[i].path] for i in led]] = True
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(target, before)
    assert sample_tree.leads_to(tree, np.arange(58) == 0).all()


@pytest.mark.parametrize(
    ("target", "why"),
    [
        *((np.ones(s, bool), r"shape .* is not \(58,\)") for s in ((57,), (58, 1), ())),
        (np.zeros(58, bool), "no history is selected"),
    ],
)
def test_rejects_invalid_targets(target, why):
    with pytest.raises(ValueError, match=f"target: {why}"):
        sample_tree.leads_to(compiled("kuhn"), target)


def test_sample_tree_arrays_are_numpy_arrays():
    """Arrays are moved to a device only when the solver's precision is known."""
    samples, _ = sample_tree.build(compiled("kuhn"))
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(samples))
