"""Lookahead trees are parts of the complete game tree, up to the complete tree."""

import dataclasses
import functools
import time
import tracemalloc

import numpy as np
import pytest

import game_defs  # noqa: F401  registers the games
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.tree import tree_builder as tree_lib
from spiel_cr.policies import conversions
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.solvers.solve import solve
from tests.games.tree.test_batched_rules import same
from tests.support import lookahead_trees
from tests.support.lookahead_trees import by_levels, is_whole

GAMES = (
    "kuhn_poker",
    "liars_dice(numdice=1,dice_sides=2)",
    "python_leduc_poker",
    "python_ii_goofspiel(num_cards=3)",
    "python_princess_and_monster(horizon=3)",
    "python_rock_paper_scissors(num_actions=3)",
)
LEDUC = "python_leduc_poker"
BOTH_WAYS = pytest.mark.parametrize("batched_rules", [True, False])


@functools.cache
def complete_tree(name, batched_rules=True):
    return tree_lib.build_tree(name, observations=True, batched_rules=batched_rules)


def paths(tree):
    """Return {path of actions: (player, utility, whether at the frontier, key)}."""
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
def test_enough_capacity_gives_the_complete_tree(name, batched_rules):
    tree = complete_tree(name, batched_rules)
    for capacity in (len(tree.histories), 2 * len(tree.histories)):
        lookahead = lookahead_trees.compiled(
            name, capacity, batched_rules=batched_rules
        )
        same(lookahead, tree)


@BOTH_WAYS
@pytest.mark.parametrize("name", GAMES[:4])
def test_growing_to_the_end_gives_the_complete_tree(name, batched_rules):
    """A tree that grows in steps never exceeds its limit."""
    tree = complete_tree(name, batched_rules)
    size = len(tree.histories)
    grown = lookahead_trees.start(name, size, batched_rules=batched_rules)
    for most in range(2, size, max(1, size // 9)):
        by_levels(grown, most)
        assert len(grown) <= most or len(grown) == 1
        assert not is_whole(grown)
        assert len(grown.snapshot().tree.histories) == len(grown)
    by_levels(grown)
    assert is_whole(grown)
    same(grown.snapshot().tree, tree)


@BOTH_WAYS
@pytest.mark.parametrize("capacity", [50, 100, 400, 894])
def test_lookahead_tree_agrees_with_the_complete_tree(capacity, batched_rules):
    """Histories above the frontier are equal; frontier histories are not terminal."""
    lookahead = lookahead_trees.compiled(LEDUC, capacity, batched_rules=batched_rules)
    assert len(lookahead.histories) <= capacity
    complete = paths(complete_tree(LEDUC))
    for path, (player, utility, cut, key) in paths(lookahead).items():
        if cut:
            assert player == TERMINAL
            assert complete[path][0] != TERMINAL
            assert utility == 0
        else:
            assert complete[path] == (player, utility, False, key)
    assert lookahead.frontier.sum() > 0


def test_capacity_is_filled_by_levels_then_by_infosets():
    """The remaining capacity fits no unexpanded infoset of the last level."""
    capacity = 300
    lookahead = lookahead_trees.compiled(LEDUC, capacity)
    tree, depth = complete_tree(LEDUC), {}
    children = np.bincount(tree.histories.parent[1:], minlength=len(tree.histories))
    histories = {
        tuple(tree.histories.actions_to(h)): h for h in range(len(tree.histories))
    }
    expanded, left_out = {}, {}
    for path, (_, _, cut, _) in paths(lookahead).items():
        h = histories[path]
        if children[h]:
            player = int(tree.histories.player[h])
            # Infosets are expanded as a whole; chance nodes are expanded separately.
            owner = int(tree.histories.infoset[h]) if player >= 0 else -h
            group = left_out if cut else expanded
            group.setdefault((len(path), player, owner), []).append(h)
            depth.setdefault(cut, []).append(len(path))
    assert not expanded.keys() & left_out.keys()
    assert max(depth[False]) <= min(depth[True])
    last = min(depth[True])
    for (level, _, _), members in left_out.items():
        if level == last:
            assert len(lookahead.histories) + children[members].sum() > capacity


def exact_leaf(tree, behaviour=None):
    """Return a leaf function of states: player 0's value if both follow `behaviour`."""
    values = conversions.history_values(tree, behaviour)
    known = {
        tuple(tree.histories.actions_to(h)): v for h, v in enumerate(values.tolist())
    }
    return lambda game, states: np.array([known[tuple(s.history())] for s in states])


@pytest.mark.parametrize("name", [LEDUC, "liars_dice(numdice=1,dice_sides=2)"])
def test_exact_leaf_values_give_the_value_of_the_game(name):
    tree = complete_tree(name)
    solved = solve(tree, "lp")
    leaf = exact_leaf(tree, solved.average)
    expected = conversions.history_values(tree, solved.average)[0]
    for capacity in (len(tree.histories) // 4, len(tree.histories) // 2):
        lookahead = lookahead_trees.compiled(name, capacity, leaf, batched_rules=False)
        mine = [
            _carried(tree, lookahead, p, behaviour)
            for p, behaviour in enumerate(solved.average)
        ]
        assert lookahead.frontier.sum() > 5
        found = conversions.history_values(lookahead, mine)[0]
        assert found == pytest.approx(expected, abs=1e-12)


def _carried(tree, lookahead, player, behaviour):
    numbers = {key: i for i, key in enumerate(tree.infosets[player].keys)}
    first = tree.infosets[player].decisions.first_sequence
    result = [1.0]
    counts = lookahead.infosets[player].decisions.num_actions
    for key, count in zip(lookahead.infosets[player].keys, counts, strict=True):
        begin = first[numbers[key]]
        result += behaviour[begin : begin + count].tolist()
    return np.array(result)


def test_lookahead_trees_are_solved_like_games():
    """CFR+ reaches low NashConv and the value that the linear program gives."""
    lookahead = lookahead_trees.compiled(
        LEDUC, 300, exact_leaf(complete_tree(LEDUC)), batched_rules=False
    )
    exactly = solve(lookahead, "lp")
    found = solve(lookahead, "cfr+", 2000)
    assert found.nash_conv() < 1e-2
    first, second = (
        conversions.history_values(lookahead, result.average)[0]
        for result in (exactly, found)
    )
    assert first == pytest.approx(second, abs=1e-2)


def split_infosets(lookahead):
    """Return how many infosets have both expanded and frontier histories."""
    complete, seen = paths(complete_tree(LEDUC)), {}
    for path, (_, _, cut, _) in paths(lookahead).items():
        player, _, _, key = complete[path]
        if player >= 0:
            seen.setdefault((len(path), player, key), set()).add(cut)
    return sum(len(both) == 2 for both in seen.values())


@BOTH_WAYS
@pytest.mark.parametrize("capacity", [60, 200, 500])
def test_growing_does_not_split_infosets(capacity, batched_rules):
    """The tree grows at once or in steps, and uses most of the capacity."""
    for steps in (
        [capacity],
        range(20, capacity + 1, 40),
        [20, capacity // 2, capacity],
    ):
        grown = lookahead_trees.start(LEDUC, capacity, batched_rules=batched_rules)
        for most in steps:
            by_levels(grown, most)
            assert split_infosets(grown.snapshot().tree) == 0
            assert len(grown) <= most
        assert 0.7 * capacity < len(grown) <= capacity


def test_truncating_does_not_split_infosets():
    grown = lookahead_trees.start(LEDUC, 895)
    by_levels(grown, 800)
    for most in (600, 333, 203, 175, 155, 60):
        grown.truncate(most)
        assert 0 < len(grown) <= most
        assert split_infosets(grown.snapshot().tree) == 0
    grown.truncate(0)
    assert len(grown) == 1
    by_levels(grown)
    same(grown.snapshot().tree, complete_tree(LEDUC))


def test_ids_do_not_change_while_the_tree_grows():
    grown = lookahead_trees.start(LEDUC, 895)
    by_levels(grown, 100)
    early = grown.snapshot()
    names = dict(zip(early.ids.tolist(), paths(early.tree), strict=True))
    labels = [
        dict(zip(early.labels[p].tolist(), early.tree.infosets[p].keys, strict=True))
        for p in range(2)
    ]
    by_levels(grown)
    late = grown.snapshot()
    later = dict(zip(late.ids.tolist(), paths(late.tree), strict=True))
    assert len(set(later)) == 895
    assert all(later[number] == path for number, path in names.items())
    for p in range(2):
        keys = late.tree.infosets[p].keys
        lasting = dict(zip(late.labels[p].tolist(), keys, strict=True))
        assert labels[p].items() <= lasting.items()


def test_focus_keeps_ancestors_and_descendants():
    grown = lookahead_trees.start(LEDUC, 895)
    by_levels(grown)
    snapshot = grown.snapshot()
    histories = snapshot.tree.histories
    infoset = int(np.flatnonzero(histories.player == 1)[40])
    members = np.flatnonzero(
        (histories.player == 1) & (histories.infoset == histories.infoset[infoset])
    )
    targets = [tuple(histories.actions_to(h)) for h in members]
    assert len(targets) > 1
    focused = grown.focus(snapshot.ids[members])
    assert len(focused) < len(grown) / 2
    small = focused.snapshot()
    complete = paths(snapshot.tree)
    deepest = 0
    for path, (player, utility, cut, key) in paths(small.tree).items():
        related = [t for t in targets if t[: len(path)] == path or path[: len(t)] == t]
        if cut:
            # A sibling of the path, with value zero.
            assert not related and utility == 0
            assert any(t[: len(path) - 1] == path[:-1] for t in targets)
        else:
            assert complete[path] == (player, utility, False, key)
        deepest = max(deepest, *(len(path) - len(t) for t in related), 0)
    assert deepest > 0
    # Growing again restores all descendants, with the same infosets.
    by_levels(focused)
    again = paths(focused.snapshot().tree)
    for path, row in complete.items():
        if any(path[: len(t)] == t for t in targets):
            assert again[path] == row


def test_truncate_removes_the_latest_expansions():
    grown = lookahead_trees.start(LEDUC, 895)
    by_levels(grown, 200)
    before = grown.snapshot()
    by_levels(grown, 800)
    grown.truncate(len(before.ids))
    after = grown.snapshot()
    np.testing.assert_array_equal(after.ids, before.ids)
    np.testing.assert_array_equal(
        after.tree.histories.player, before.tree.histories.player
    )
    by_levels(grown)
    same(grown.snapshot().tree, complete_tree(LEDUC))


def test_ids_identify_histories_across_trees():
    """This includes trees derived from the same tree, in any order of growth."""
    grown = lookahead_trees.start(LEDUC, 895)
    by_levels(grown, 100)
    snapshot = grown.snapshot()
    frontier = snapshot.ids[snapshot.tree.frontier]
    trees = [grown.focus(frontier[:9]), grown.focus(frontier[9:18]), grown]
    histories, shared = {}, 0
    for tree in trees:
        by_levels(tree, 300)
        compiled = tree.snapshot()
        for id_, path in zip(compiled.ids.tolist(), paths(compiled.tree), strict=True):
            shared += id_ in histories
            assert histories.setdefault(id_, path) == path
    assert shared > 30
    assert set(trees[0].snapshot().ids) != set(trees[1].snapshot().ids)


def test_focus_accepts_a_history_with_its_child():
    grown = lookahead_trees.start("kuhn_poker", 58)
    by_levels(grown)
    snapshot = grown.snapshot()
    deep = int(np.flatnonzero(snapshot.tree.histories.player >= 0)[-1])
    family = snapshot.ids[[int(snapshot.tree.histories.parent[deep]), deep]]
    focused = grown.focus(family).snapshot().ids
    assert set(family.tolist()) <= set(focused.tolist())
    assert len(grown.rows(focused)) == len(focused)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    "name", ["kuhn_poker", LEDUC, "liars_dice(numdice=1,dice_sides=2)", GAMES[3]]
)
def test_public_states_equal_the_roots_of_subgames(name, player):
    """Follow the player's decisions on the path to each of its infosets."""
    tree = complete_tree(name)
    d, own = decompose(tree, player), tree.infosets[player]
    acts = tree.histories.player == player
    path = {h: tuple(tree.histories.actions_to(h)) for h in d.roots.tolist()}
    subgame, checked = d.augmented_subgame[d.root_augmented], 0
    start = lookahead_trees.start(name, len(tree.histories), player=player)
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
            place, ids, keys = found
            assert set(keys) == {own.keys[n] for n in _infosets(tree, place, ids)}
            root = np.flatnonzero(acts & (tree.histories.infoset == at))[0]
            here = subgame == subgame[np.searchsorted(d.roots, root)]
            wanted = {path[h] for h in d.roots[here].tolist()}
            rows = {tuple(_path(place.table, row)) for row in place.rows(ids)}
            assert rows == wanted
            checked += len(rows) > 1
    assert checked


def _infosets(tree, place, ids):
    """Return the complete tree's infosets at histories of a lookahead tree."""
    paths = [tuple(_path(place.table, row)) for row in place.rows(ids)]
    at = {tuple(tree.histories.actions_to(h)): h for h in range(len(tree.histories))}
    return {int(tree.histories.infoset[at[path]]) for path in paths}


def test_next_public_state_needs_capacity_time_and_a_known_infoset():
    start = lookahead_trees.start("kuhn_poker", 58, player=1)
    ids, key = start.table.id[:1], complete_tree("kuhn_poker").infosets[1].keys[0]

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


def test_unused_capacity_needs_no_memory():
    tracemalloc.start()
    try:
        grown = lookahead_trees.start("kuhn_poker", 10**8)
        by_levels(grown)
        smaller = grown.focus(grown.snapshot().ids[-1:])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert is_whole(grown) and len(grown) == 58 and len(smaller) < 58
    assert peak < 20e6


def random_winner(game, histories):
    """Return a random winner for each history, as a leaf value."""
    return np.random.default_rng(0).choice([-1.0, 1.0], len(histories))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["phantom_ttt", "python_ii_goofspiel(num_cards=7)"])
def test_large_games_fill_the_capacity_and_are_solved(name):
    capacity = 5000
    lookahead = lookahead_trees.compiled(name, capacity, random_winner)
    assert 0.9 * capacity < len(lookahead.histories) <= capacity
    assert lookahead.frontier.sum() > capacity / 2
    solved = solve(lookahead, "cfr+", 50)
    behaviours = [
        conversions.uniform_behaviour(i.decisions) for i in lookahead.infosets
    ]
    alike = dataclasses.replace(solved, average=tuple(behaviours))
    assert solved.nash_conv() < 0.5 * alike.nash_conv()


def test_rows_of_dropped_histories_raise():
    grown = lookahead_trees.start("kuhn_poker", 58)
    by_levels(grown)
    ids = grown.snapshot().ids
    focused = grown.focus(ids[-1:])
    with pytest.raises(KeyError, match="dropped"):
        focused.rows(ids)
