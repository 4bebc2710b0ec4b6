"""What a partial tree hands on to one that was grown anew below some of its roots."""

import itertools

import numpy as np
import pytest

from spiel_cr.common.errors import HiddenTurnsError
from spiel_cr.policies.conversions import history_values, reach_from_behaviour
from spiel_cr.policies.leaf_values import HistoryValues
from spiel_cr.resolving.partial.growth import public_states
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.resolving.partial.solved_tree import SolvedTree
from tests.support.forests import forest_reach, forest_value
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node, random_game
from tests.support.strategies import random_behaviours


def forgetful(path):
    """Chance, player 0 twice, player 1, who saw chance's move and then forgets it."""
    if len(path) == 4:
        chance, first, second, answer = path
        utility = (3 if chance else -1) * (1 if second == answer else 2) + first
        return Node(TERMINAL, utility=float(utility))
    if not path:
        return Node(CHANCE, (0, 1), chance=(0.25, 0.75))
    own = "own " + " ".join(map(str, path[1:3]))
    told = f"told {path[0]}" if len(path) < 3 else ""
    return Node(0 if len(path) < 3 else 1, (0, 1), (own, f"{len(path)} {told}"))


def enumerated_values(solved):
    """float64 [N], player 0's utility, weighted by chance and the player's reach."""
    tree, i = solved.snapshot.tree, solved.player
    reach = reach_from_behaviour(tree.infosets[i].decisions, solved.behaviour[i])
    own = reach[tree.histories.sequence[i]]
    return tree.histories.chance * own * history_values(tree, solved.behaviour)


def enumerated(solved):
    """float64 [R], what each root of the tree adds to the opponent's values."""
    sign = 1 if solved.player == 1 else -1
    return sign * enumerated_values(solved)[solved.decomposition.roots]


def by_augmented_infoset(solved, values):
    d = solved.decomposition
    return np.bincount(d.root_augmented, values, len(d.augmented_layer))


def grown(game, player, most):
    partial = PartialTree.start(game, 1000, leaf="rollouts(n=1)")
    partial.grow(most)
    solved = SolvedTree.of(partial, player)
    values = enumerated(solved)
    solved.opponent_values = by_augmented_infoset(solved, values)
    return solved, dict(
        zip(solved.snapshot.ids[solved.decomposition.roots], values, strict=True)
    )


def regrown(solved, roots, most):
    """A tree with less below the roots, and whether they were handed on to it."""
    ids = solved.snapshot.ids[roots]
    tree = solved.partial.focus(ids, collapse=True)
    tree.grow(len(tree) + most)
    after = SolvedTree.of(tree, solved.player, solved)
    return after, solved.hand_on(after, ids)


def test_a_shorter_tree_does_not_show_that_the_opponent_forgets():
    solved, _ = grown(MadeGame(forgetful, "forgetful"), 0, 31)
    (first, *_) = np.flatnonzero(solved.decomposition.own_layer == 2)
    roots = solved.subgame_roots(first)
    (number,) = np.unique(solved.decomposition.root_augmented[-len(roots) :])
    after, handed_on = regrown(solved, roots, 8)
    assert handed_on and after.snapshot.tree.frontier.sum() == 8
    # The opponent's decisions are beyond the frontier.
    assert not len(after.snapshot.tree.infosets[1])
    in_layer = after.decomposition.augmented_layer == 2
    assert after.opponent_values[in_layer] == pytest.approx(
        [solved.opponent_values[number]], abs=1e-12
    )


@pytest.mark.parametrize("seed", [1, 5])
def test_what_is_handed_on_is_the_sum_over_roots(seed):
    """Against an enumeration of the roots, however little is grown below them."""
    handed, game = 0, random_game(seed, transient=0.6, remembered=0.3)
    for player, most in ((0, 60), (1, 1000)):
        solved, worth = grown(game, player, most)
        d = solved.decomposition
        for infoset in np.flatnonzero(d.opens & (d.own_layer > 1))[:4]:
            roots = solved.subgame_roots(infoset)
            for more in (0, 4, 1000):
                try:
                    after, handed_on = regrown(solved, roots, more)
                except HiddenTurnsError:
                    continue
                if not handed_on:
                    continue
                ids = after.snapshot.ids[after.decomposition.roots]
                of_subgame = np.isin(ids, solved.snapshot.ids[roots])
                values = [
                    worth[number] if inside else 0.0
                    for number, inside in zip(ids, of_subgame, strict=True)
                ]
                np.testing.assert_allclose(
                    after.opponent_values,
                    by_augmented_infoset(after, values),
                    rtol=0,
                    atol=1e-12,
                )
                handed += 1
    assert handed


class Made(HistoryValues):
    """Values of a history by its moves, and of as many continuations as wanted."""

    def __init__(self, k):
        self.k = k

    def __call__(self, game, states, player=0):
        moves = [[[j, *state.history()] for j in range(self.k)] for state in states]
        return np.array(
            [[np.random.default_rng(each).normal() for each in row] for row in moves]
        ).reshape(-1, self.k)


def promised(solved, ids, values):
    """What the opponent gets at each history of the frontier: its parts of a sum.

    Returns:
      What it knows there, and float64 [n, k], in its own utility.
    """
    i, tree, table = solved.player, solved.snapshot.tree, solved.partial.table
    rows = solved.partial.rows(ids)
    own = reach_from_behaviour(tree.infosets[i].decisions, solved.behaviour[i])
    places = np.array([np.flatnonzero(solved.snapshot.ids == n)[0] for n in ids])
    reach = own[tree.histories.sequence[i][places]] * table.chance[rows]
    worth = values(None, table.states[rows], i)
    known = np.where(
        table.player[rows] == i, table.observation[rows], table.label[rows]
    )
    return known, (1 if i == 1 else -1) * reach[:, None] * worth


@pytest.mark.parametrize(("seed", "k"), [(1, 1), (2, 3), (5, 3)])
def test_what_is_promised_where_a_tree_ends(seed, k):
    """At each augmented infoset the best continuation, over all that it holds."""
    game, checked, both = random_game(seed, depth=8, remembered=0.3), 0, set()
    for player, most in itertools.product(range(2), (15, 30, 60)):
        start = PartialTree.start(game, 1000, leaf=Made(k), player=player)
        start.grow(most, guided=True)
        solved = SolvedTree.of(start, player)
        solved.behaviour = random_behaviours(solved.snapshot.tree, seed)
        frontier = start.table.frontier()
        for state in np.split(
            *split_by(frontier, public_states(start.table, frontier))
        ):
            ids = start.table.id[state]
            tree = start.focus(ids)
            if not tree.expand_whole(1000):
                continue
            after = SolvedTree.of(tree, player, solved, ids)
            assert solved.hand_on(after, ids)
            d = after.decomposition
            known, worth = promised(solved, ids, Made(k))
            at = d.root_augmented[[list(d.roots).index(row_of(after, n)) for n in ids]]
            expected = np.zeros(len(after.opponent_values))
            for group in set(zip(at, known, strict=True)):
                here = (at == group[0]) & (known == group[1])
                expected[group[0]] += worth[here].sum(axis=0).max()
            np.testing.assert_allclose(after.opponent_values, expected, atol=1e-12)
            assert after.solved == d.layer[row_of(after, ids[0])] - 1
            # i chooses anew at all that comes after, and the gadget has all groups.
            after.behaviour = random_behaviours(after.snapshot.tree, seed + 1)
            gadget = after.forest()
            below = d.own_layer > after.solved
            assert set(gadget.own) == set(np.flatnonzero(below)) and below.any()
            assert set(gadget.augmented) == set(at)
            # Where o follows, it is worth what its histories are, also those after
            # which only o acts.
            follows = np.ones(len(gadget.augmented))
            reach = forest_reach(gadget, d, after.behaviour, follows)
            roots = [row_of(after, n) for n in ids]
            value = enumerated_values(after)[roots].sum()
            assert forest_value(gadget, reach) == pytest.approx(value, abs=1e-12)
            checked += 1
            both.add(int(start.table.player[state[0]] == player))
    assert checked > 3 and both == {0, 1}


def split_by(rows, group):
    """Rows in groups, for `np.split`."""
    order = np.argsort(group, kind="stable")
    return rows[order], np.flatnonzero(np.diff(group[order])) + 1


def row_of(solved, number):
    return int(np.flatnonzero(solved.snapshot.ids == number)[0])
