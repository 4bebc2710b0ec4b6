"""Partial trees are parts of the whole game, and grow into it."""

import dataclasses
import functools
import time
import tracemalloc

import numpy as np
import pytest

import game_defs  # noqa: F401  registers the games
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.tree import compiler as tree_lib
from spiel_cr.policies import conversions
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.partial.partial_tree import PartialTree, compile_partial
from spiel_cr.solvers.solve import solve
from tests.games.tree.test_vectorised import same

GAMES = (
    "kuhn_poker",
    "liars_dice(numdice=1,dice_sides=2)",
    "python_leduc_poker",
    "python_ii_goofspiel(num_cards=3)",
    "python_princess_and_monster(horizon=3)",
    "python_rock_paper_scissors(num_actions=3)",
)
LEDUC = "python_leduc_poker"
BOTH_WAYS = pytest.mark.parametrize("vectorised", [True, False])


@functools.cache
def whole(name, vectorised=True):
    return tree_lib.compile_game(name, observations=True, vectorised=vectorised)


def paths(tree):
    """{path of actions: (player, utility, at the frontier, key)}."""
    found = {}
    for h in range(len(tree.histories)):
        player = int(tree.histories.player[h])
        key = None
        if player >= 0:
            key = tree.infosets[player].keys[tree.histories.infoset[h]]
        cut = tree.frontier is not None and bool(tree.frontier[h])
        path = tuple(tree.histories.actions_to(h))
        found[path] = player, float(tree.histories.utility[h]), cut, key
    return found


@BOTH_WAYS
@pytest.mark.parametrize("name", GAMES)
def test_enough_capacity_gives_the_whole_game(name, vectorised):
    tree = whole(name, vectorised)
    for capacity in (len(tree.histories), 2 * len(tree.histories)):
        partial = compile_partial(
            name, capacity, "rollouts", observations=True, vectorised=vectorised
        )
        same(partial, tree)


@BOTH_WAYS
@pytest.mark.parametrize("name", GAMES[:4])
def test_expanding_to_the_end_gives_the_whole_game(name, vectorised):
    """In steps; N is never exceeded on the way."""
    tree = whole(name, vectorised)
    size = len(tree.histories)
    grown = PartialTree.start(name, size, vectorised=vectorised)
    for most in range(2, size, max(1, size // 9)):
        grown.grow(most)
        assert len(grown) <= most or len(grown) == 1
        assert not grown.is_whole
        assert len(grown.compile().tree.histories) == len(grown)
    grown.grow()
    assert grown.is_whole and not grown.can_grow
    same(grown.compile().tree, tree)


@BOTH_WAYS
@pytest.mark.parametrize("capacity", [50, 100, 400, 894])
def test_a_partial_tree_agrees_with_the_whole_one(capacity, vectorised):
    """What is there is the same in the whole game, which goes on at the frontier."""
    partial = compile_partial(
        LEDUC,
        observations=True,
        max_histories=capacity,
        leaf="rollouts",
        vectorised=vectorised,
    )
    assert len(partial.histories) <= capacity
    complete = paths(whole(LEDUC))
    for path, (player, utility, cut, key) in paths(partial).items():
        if cut:
            assert player == TERMINAL
            assert complete[path][0] != TERMINAL
            assert abs(utility) <= 7
        else:
            assert complete[path] == (player, utility, False, key)
    assert partial.frontier.sum() > 0


def test_levels_are_whole_and_then_infosets():
    """No room is left for an infoset of the last level that was left out."""
    capacity = 300
    partial = compile_partial(LEDUC, max_histories=capacity, leaf="rollouts")
    tree, depth = whole(LEDUC), {}
    children = np.bincount(tree.histories.parent[1:], minlength=len(tree.histories))
    histories = {
        tuple(tree.histories.actions_to(h)): h for h in range(len(tree.histories))
    }
    expanded, left_out = {}, {}
    for path, (_, _, cut, _) in paths(partial).items():
        h = histories[path]
        if children[h]:
            player = int(tree.histories.player[h])
            # Nothing but an infoset is to be whole; chance nodes stand alone.
            owner = int(tree.histories.infoset[h]) if player >= 0 else -h
            group = left_out if cut else expanded
            group.setdefault((len(path), player, owner), []).append(h)
            depth.setdefault(cut, []).append(len(path))
    assert not expanded.keys() & left_out.keys()
    assert max(depth[False]) <= min(depth[True])
    last = min(depth[True])
    for (level, _, _), members in left_out.items():
        if level == last:
            assert len(partial.histories) + children[members].sum() > capacity


def exact(tree, behaviour=None):
    """A leaf value: player 0's utility if both follow strategies; by states."""
    values = conversions.history_values(tree, behaviour)
    known = {
        tuple(tree.histories.actions_to(h)): v for h, v in enumerate(values.tolist())
    }
    return lambda game, states: np.array([known[tuple(s.history())] for s in states])


@pytest.mark.parametrize("name", [LEDUC, "liars_dice(numdice=1,dice_sides=2)"])
def test_exact_values_at_the_frontier_give_the_value_of_the_whole_game(name):
    """For any strategies: here optimal ones."""
    tree = whole(name)
    solved = solve(tree, "lp")
    leaf = exact(tree, solved.average)
    expected = conversions.history_values(tree, solved.average)[0]
    for capacity in (len(tree.histories) // 4, len(tree.histories) // 2):
        partial = compile_partial(
            name, max_histories=capacity, leaf=leaf, vectorised=False
        )
        mine = [
            _carried(tree, partial, p, behaviour)
            for p, behaviour in enumerate(solved.average)
        ]
        assert partial.frontier.sum() > 5
        found = conversions.history_values(partial, mine)[0]
        assert found == pytest.approx(expected, abs=1e-12)


def _carried(tree, partial, player, behaviour):
    numbers = {key: i for i, key in enumerate(tree.infosets[player].keys)}
    first = tree.infosets[player].decisions.first_sequence
    result = [1.0]
    counts = partial.infosets[player].decisions.num_actions
    for key, count in zip(partial.infosets[player].keys, counts, strict=True):
        begin = first[numbers[key]]
        result += behaviour[begin : begin + count].tolist()
    return np.array(result)


def rollouts(tree):
    """Exactly, for uniform play: means of player 0's utility, and variances, [N]."""
    histories = tree.histories
    uniform = [conversions.uniform_behaviour(i.decisions) for i in tree.infosets]
    odds = conversions.move_probabilities(tree, uniform)
    moments = np.stack([histories.utility, histories.utility**2])
    for h in range(len(histories) - 1, 0, -1):
        moments[:, histories.parent[h]] += odds[h - 1] * moments[:, h]
    np.testing.assert_allclose(moments[0], conversions.history_values(tree), atol=1e-12)
    return moments[0], np.maximum(moments[1] - moments[0] ** 2, 0)


def assert_means_of_rollouts(found, mean, variance, number, *, apart):
    """History by history, five standard errors and a bit.

    Means of hundreds of rollouts are nearly normal: a false alarm has a chance of less
    than 1e-6 for each history. That no values, or the opponent's, would be noticed, is
    asserted first; and that the errors are as large as they should be together, or
    less where the rollouts of a history are not drawn apart.
    """
    error = np.sqrt(variance / number)
    sure = error < 1e-9
    np.testing.assert_allclose(found[sure], mean[sure], atol=1e-9)
    found, mean, error = found[~sure], mean[~sure], error[~sure]
    assert np.count_nonzero(np.abs(mean) > 10 * error) > 5
    distance = np.abs(found - mean) / error
    assert distance.max() < 5.5
    assert 0.5 * apart <= np.sqrt(np.mean(distance**2)) < (1.5 if apart else 0.5)


@pytest.mark.parametrize(
    ("name", "vectorised"),
    [
        (LEDUC, True),
        ("python_ii_goofspiel(num_cards=4)", True),
        # These rollouts are OpenSpiel's own, but for those from chance nodes.
        ("liars_dice(numdice=1,dice_sides=3)", False),
    ],
)
def test_rollouts_are_unbiased(name, vectorised):
    """At the frontier, history by history, against the whole game."""
    tree, number = whole(name, vectorised), 400
    partial = compile_partial(
        *(name,),
        max_histories=len(tree.histories) // 4,
        leaf=f"rollouts(n={number},seed=3)",
        vectorised=vectorised,
    )
    rows = {path: h for h, path in enumerate(paths(tree))}
    at = np.array([rows[path] for path in paths(partial)])[partial.frontier]
    mean, variance = (moment[at] for moment in rollouts(tree))
    assert partial.frontier.sum() > 10
    assert_means_of_rollouts(
        *(partial.histories.utility[partial.frontier], mean, variance, number),
        apart=not vectorised,
    )


@BOTH_WAYS
def test_the_same_seed_gives_the_same_values(vectorised):
    def utilities(seed):
        partial = compile_partial(
            *(LEDUC,),
            max_histories=200,
            leaf=f"rollouts(n=2,seed={seed})",
            vectorised=vectorised,
        )
        return partial.histories.utility.tolist()

    assert utilities(1) == utilities(1) != utilities(2)


def test_what_solvers_do_with_a_partial_tree():
    """Solved as any game: the linear program's value, and NashConv in the tree."""
    partial = compile_partial(LEDUC, max_histories=300, leaf="rollouts(n=4)")
    exactly = solve(partial, "lp")
    found = solve(partial, "cfr+", 2000)
    assert found.nash_conv() < 1e-2
    first, second = (
        conversions.history_values(partial, result.average)[0]
        for result in (exactly, found)
    )
    assert first == pytest.approx(second, abs=1e-2)


def split_infosets(partial):
    """How many infosets are at the frontier with some histories of a level only."""
    complete, seen = paths(whole(LEDUC)), {}
    for path, (_, _, cut, _) in paths(partial).items():
        player, _, _, key = complete[path]
        if player >= 0:
            seen.setdefault((len(path), player, key), set()).add(cut)
    return sum(len(both) == 2 for both in seen.values())


@BOTH_WAYS
@pytest.mark.parametrize("capacity", [60, 200, 500])
def test_infosets_stay_whole(capacity, vectorised):
    """In one go or in steps; and most of the room is used."""
    for steps in (
        [capacity],
        range(20, capacity + 1, 40),
        [20, capacity // 2, capacity],
    ):
        grown = PartialTree.start(LEDUC, capacity, vectorised=vectorised)
        for most in steps:
            grown.grow(most)
            assert split_infosets(grown.compile().tree) == 0
            assert len(grown) <= most
        assert 0.7 * capacity < len(grown) <= capacity


def test_taking_back_leaves_infosets_whole():
    grown = PartialTree.start(LEDUC, 895)
    grown.grow(800)
    for most in (600, 333, 203, 175, 155, 60):
        grown.truncate(most)
        assert 0 < len(grown) <= most
        assert split_infosets(grown.compile().tree) == 0
    grown.truncate(0)
    assert len(grown) == 1
    grown.grow()
    same(grown.compile().tree, whole(LEDUC))


# Focusing, and public states.


def test_ids_last_while_the_tree_grows():
    grown = PartialTree.start(LEDUC, 895)
    grown.grow(100)
    early = grown.compile()
    names = dict(zip(early.ids.tolist(), paths(early.tree), strict=True))
    labels = [
        dict(zip(early.labels[p].tolist(), early.tree.infosets[p].keys, strict=True))
        for p in range(2)
    ]
    grown.grow()
    late = grown.compile()
    later = dict(zip(late.ids.tolist(), paths(late.tree), strict=True))
    assert len(set(later)) == 895
    assert all(later[number] == path for number, path in names.items())
    for p in range(2):
        keys = late.tree.infosets[p].keys
        lasting = dict(zip(late.labels[p].tolist(), keys, strict=True))
        assert labels[p].items() <= lasting.items()


def test_focus_keeps_what_leads_there_and_what_comes_after():
    grown = PartialTree.start(LEDUC, 895)
    grown.grow()
    snapshot = grown.compile()
    histories = snapshot.tree.histories
    infoset = int(np.flatnonzero(histories.player == 1)[40])
    members = np.flatnonzero(
        (histories.player == 1) & (histories.infoset == histories.infoset[infoset])
    )
    targets = [tuple(histories.actions_to(h)) for h in members]
    assert len(targets) > 1
    focused = grown.focus(snapshot.ids[members])
    assert len(focused) < len(grown) / 2
    small = focused.compile()
    complete = paths(snapshot.tree)
    deepest = 0
    for path, (player, utility, cut, key) in paths(small.tree).items():
        related = [t for t in targets if t[: len(path)] == path or path[: len(t)] == t]
        if cut:
            # A stub: next to the way, worth nothing.
            assert not related and utility == 0
            assert any(t[: len(path) - 1] == path[:-1] for t in targets)
        else:
            assert complete[path] == (player, utility, False, key)
        deepest = max(deepest, *(len(path) - len(t) for t in related), 0)
    assert deepest > 0
    # Growing again brings back what came after, with the same infosets.
    focused.grow()
    again = paths(focused.compile().tree)
    for path, row in complete.items():
        if any(path[: len(t)] == t for t in targets):
            assert again[path] == row


def test_the_last_expansions_are_taken_back():
    grown = PartialTree.start(LEDUC, 895)
    grown.grow(200)
    before = grown.compile()
    grown.grow(800)
    grown.truncate(len(before.ids))
    after = grown.compile()
    np.testing.assert_array_equal(after.ids, before.ids)
    np.testing.assert_array_equal(
        after.tree.histories.player, before.tree.histories.player
    )
    grown.grow()
    same(grown.compile().tree, whole(LEDUC))


def test_ids_are_one_history_in_all_trees():
    """Of trees made of the same one, too, whichever is grown first."""
    grown = PartialTree.start(LEDUC, 895)
    grown.grow(100)
    snapshot = grown.compile()
    frontier = snapshot.ids[snapshot.tree.frontier]
    trees = [grown.focus(frontier[:9]), grown.focus(frontier[9:18]), grown]
    histories, shared = {}, 0
    for tree in trees:
        tree.grow(300)
        compiled = tree.compile()
        for id_, path in zip(compiled.ids.tolist(), paths(compiled.tree), strict=True):
            shared += id_ in histories
            assert histories.setdefault(id_, path) == path
    assert shared > 30
    assert set(trees[0].compile().ids) != set(trees[1].compile().ids)


def test_focus_on_a_history_and_what_comes_after():
    grown = PartialTree.start("kuhn_poker", 58)
    grown.grow()
    snapshot = grown.compile()
    deep = int(np.flatnonzero(snapshot.tree.histories.player >= 0)[-1])
    family = snapshot.ids[[int(snapshot.tree.histories.parent[deep]), deep]]
    grown.rows(grown.focus(family).compile().ids)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    "name", ["kuhn_poker", LEDUC, "liars_dice(numdice=1,dice_sides=2)", GAMES[3]]
)
def test_public_states_are_the_roots_of_the_whole_game_s_subgames(name, player):
    """Decision by decision on the way to each of the player's infosets."""
    tree = whole(name)
    d, own = decompose(tree, player), tree.infosets[player]
    acts = tree.histories.player == player
    path = {h: tuple(tree.histories.actions_to(h)) for h in d.roots.tolist()}
    subgame, checked = d.augmented_subgame[d.root_augmented], 0
    start = PartialTree.start(name, len(tree.histories), player=player)
    for infoset in range(len(own)):
        way, at = [], infoset
        while at >= 0:
            way.append(at)
            at = int(d.decisions.owner[d.decisions.parent[at]])
        place, ids = start, start.table.id[:1]
        for number, at in enumerate(reversed(way)):
            found = place.next_public_state(
                *(ids, own.keys[at]), most=len(tree.histories), begins=number == 0
            )
            place, ids = found
            root = np.flatnonzero(acts & (tree.histories.infoset == at))[0]
            here = subgame == subgame[np.searchsorted(d.roots, root)]
            wanted = {path[h] for h in d.roots[here].tolist()}
            rows = {tuple(_path(place.table, row)) for row in place.rows(ids)}
            assert rows == wanted
            checked += len(rows) > 1
    assert checked


def test_no_public_state_without_capacity_time_or_a_way():
    start = PartialTree.start("kuhn_poker", 58, player=1)
    ids, key = start.table.id[:1], whole("kuhn_poker").infosets[1].keys[0]

    def found(key, **limits):
        limits = {"most": 58, "begins": True, **limits}
        return start.next_public_state(ids, key, **limits) is not None

    assert found(key) and not found("no such key") and not found(key, most=12)
    assert not found(key, deadline=time.perf_counter() - 1)
    assert len(start) == 1


def _path(table, row):
    actions = []
    while table.parent[row] >= 0:
        actions.append(int(table.action[row]))
        row = table.parent[row]
    return actions[::-1]


@pytest.mark.parametrize("most", [0, -5, 2.5, True])
def test_bad_numbers_of_histories_are_refused(most):
    grown = PartialTree.start("kuhn_poker", 58)
    with pytest.raises(ValueError, match="most="):
        grown.grow(most)
    assert len(grown) == 1


def test_capacity_that_is_not_used_takes_no_memory():
    tracemalloc.start()
    try:
        grown = PartialTree.start("kuhn_poker", 10**8)
        grown.grow()
        smaller = grown.focus(grown.compile().ids[-1:])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert grown.is_whole and len(grown) == 58 and len(smaller) < 58
    assert peak < 20e6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["phantom_ttt", "python_ii_goofspiel(num_cards=7)"])
def test_games_that_are_never_whole(name):
    capacity = 5000
    partial = compile_partial(name, max_histories=capacity, leaf="rollouts(n=1)")
    assert 0.9 * capacity < len(partial.histories) <= capacity
    assert partial.frontier.sum() > capacity / 2
    solved = solve(partial, "cfr+", 50)
    behaviours = [conversions.uniform_behaviour(i.decisions) for i in partial.infosets]
    alike = dataclasses.replace(solved, average=tuple(behaviours))
    assert solved.nash_conv() < 0.5 * alike.nash_conv()


# Refusals.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"leaf": "rollouts", "max_histories": 2}, "no room"),
        ({"leaf": "rollouts", "max_histories": 8}, "max_histories=8 has no room"),
        ({"leaf": "rollouts", "max_histories": 60}, "decision of player 1"),
        ({"leaf": "rollouts", "max_histories": 0}, "max_histories=0"),
        ({"leaf": "best", "max_histories": 50}, "leaf='best'"),
        ({"leaf": "uniform", "max_histories": 50}, "leaf='uniform'"),
        ({"leaf": "rollouts(n=0)", "max_histories": 50}, "n=0"),
        ({"leaf": lambda game, s: np.ones(3), "max_histories": 50}, "shape"),
        (
            {"leaf": lambda game, s: np.full(len(s), np.nan), "max_histories": 50},
            "finite",
        ),
    ],
)
def test_bad_partial_trees_are_refused(options, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        compile_partial("leduc_poker", **options)


def test_dropped_histories_are_asked_for():
    grown = PartialTree.start("kuhn_poker", 58)
    grown.grow()
    ids = grown.compile().ids
    focused = grown.focus(ids[-1:])
    with pytest.raises(KeyError, match="dropped"):
        focused.rows(ids)
