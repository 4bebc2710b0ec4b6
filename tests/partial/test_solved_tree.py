"""What a partial tree hands on to one that was grown anew below some of its roots."""

import numpy as np
import pytest

from spiel_cr.common.errors import HiddenTurnsError
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.partial.tree import PartialTree
from spiel_cr.policies.conversions import history_values, reach_from_behaviour
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node, random_game


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


def enumerated(solved):
    """float64 [R], what each root of the tree adds to the opponent's values."""
    d, tree, i = solved.decomposition, solved.snapshot.tree, solved.player
    reach = reach_from_behaviour(tree.infosets[i].decisions, solved.behaviour[i])
    own = reach[tree.histories.sequence[i]]
    worth = history_values(tree, solved.behaviour) * (1 if i == 1 else -1)
    return (tree.histories.chance * own * worth)[d.roots]


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
    tree = solved.focus(roots, collapse=True)
    tree.grow(len(tree) + most)
    after = SolvedTree.of(tree, solved.player, solved)
    return after, solved.hand_on(after, roots)


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
