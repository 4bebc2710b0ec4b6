"""Knowledge-limited subgames: what is in them, what they pay, and what is safe.

Subgames are solved by linear programs, so "no more exploitable" has no error of a
solver in it. Exploitability is a recursion over OpenSpiel's states (`reference.py`).
"""

import functools

import numpy as np
import pytest

from spiel_cr.compilation import compiler
from spiel_cr.eval.players import traversing
from spiel_cr.partial import knowledge_limited as limited
from spiel_cr.players.bot_strings import load_bot
from spiel_cr.policies import conversions
from spiel_cr.resolving import decomposition, gadget
from spiel_cr.resolving.subgame_games import Layer
from spiel_cr.solving.whole_game import solve
from tests.resolving.test_gadget import best_values, maximin
from tests.support import games, made_games, reference
from tests.support.forests import forest_value
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node
from tests.support.strategies import random_behaviours

# Sums of hundreds of doubles of size 10.
TOLERANCE = 1e-11
# HiGHS is asked for 1e-10; exploitability is a sum of some dozens of such errors.
EXACT = 1e-7
GADGETS = ("cfrd", "maxmargin", "unsafe")
ORDERS = (1, 2, 3, None)


def hidden_card(path):
    """Player 0 sees one of three cards and hides a coin; player 1 guesses its side."""
    if not path:
        return Node(CHANCE, (0, 1, 2), chance=(0.25, 0.25, 0.5))
    if len(path) == 3:
        return Node(TERMINAL, utility=-1.0 if path[1] == path[2] else 1.0)
    card = f"card {path[0]}" + "".join(f" coin {side}" for side in path[1:])
    return Node(len(path) - 1, (0, 1), (card, "guess" if len(path) == 2 else ""))


GAMES = {
    "hidden_card": lambda: MadeGame(hidden_card, "hidden_card"),
    "random": lambda: made_games.random_game(3, depth=7),
    "kuhn": lambda: "kuhn_poker",
    "leduc7": lambda: "python_leduc_poker",
    "ii_goofspiel3": lambda: "python_ii_goofspiel(num_cards=3)",
    "ii_goofspiel4": lambda: "python_ii_goofspiel(num_cards=4)",
    "liars_dice2": lambda: "liars_dice(numdice=1,dice_sides=2)",
    "liars_dice3": lambda: "liars_dice(numdice=1,dice_sides=3)",
    "dark_hex": lambda: games.BY_NAME["dark_hex"].string,
    "princess4": lambda: games.BY_NAME["princess4"].string,
}


@functools.cache
def cut(name, player):
    return decomposition.decompose(compiled(name), player)


@functools.cache
def compiled(name):
    return compiler.compile_game(GAMES[name](), observations=True)


@functools.cache
def whole(name):
    """The game by `reference.py`, and the node of each history."""
    tree = compiled(name)
    brute = reference.Tree(tree.game)
    return brute, reference.node_numbers(brute, tree)


def openings(d, layer):
    """i's infosets that open a layer."""
    return np.flatnonzero(d.opens & (d.own_layer == layer))


def in_game(d, numbers, own, behaviour):
    """Sequence form in a gadget game of i's behaviour in the whole game."""
    first, odds = d.decisions.first_sequence, [np.ones(1)]
    for number in numbers:
        odds.append(behaviour[first[number] :][: d.decisions.num_actions[number]])
    return conversions.reach_from_behaviour(own, np.concatenate(odds))


def promised(d, layer, behaviour):
    """What o gets at best at each augmented infoset of a layer."""
    reach = conversions.reach_from_behaviour(d.decisions, behaviour)
    values = np.zeros(len(d.augmented_layer))
    forest = gadget.build_forest(d, layer - 1, reach, values)
    own = forest.form.decisions[d.player]
    found = best_values(
        forest.form, 1 - d.player, in_game(d, forest.own, own, behaviour)
    )
    count = len(forest.next_augmented)
    values[forest.next_augmented] = found[len(found) - count :]
    return values


def solved(d, known, behaviours, values, kind):
    """i's behaviour with what an exact solution has put in, and o's next values."""
    game = limited.limited_game(d, known, behaviours, values, kind)
    own = game.form.decisions[d.player]
    plan = maximin(game.form, d.player)
    found = conversions.behaviour_from_reach(own, plan)
    first, behaviour = d.decisions.first_sequence, behaviours[d.player].copy()
    for k, number in enumerate(game.own):
        count, there = d.decisions.num_actions[number], own.first_sequence[k]
        behaviour[first[number] :][:count] = found[there:][:count]
    following = best_values(game.form, 1 - d.player, plan)
    return behaviour, game, following[len(following) - len(game.next_augmented) :]


def exploitability(name, d, behaviours, behaviour):
    """What o gets at best against a behaviour of i."""
    pair = list(behaviours)
    pair[d.player] = behaviour
    brute, _ = whole(name)
    policy = reference.from_behaviours(d.tree, pair)
    return reference.best_response_value(brute, policy, 1 - d.player)


SETS = [
    (name, player)
    for name in ("hidden_card", "kuhn", "ii_goofspiel3", "liars_dice3", "dark_hex")
    for player in (0, 1)
]


@pytest.mark.parametrize(("name", "player"), [*SETS, ("princess4", 0)])
def test_knowledge_sets_by_plain_loops(name, player):
    d = cut(name, player)
    infoset = d.tree.histories.infoset
    sizes = {order: 0 for order in (1, 2, 3, 4, None)}
    for asked in np.flatnonzero(d.opens)[::3]:
        roots = [
            (int(r), int(infoset[r]), int(a))
            for r, a in zip(d.roots, d.root_augmented, strict=True)
            if d.layer[r] == d.own_layer[asked]
        ]
        for order in sizes:
            within = {r for r, own, _ in roots if own == asked}
            for step in range(1, 99 if order is None else order):
                column = 2 if step % 2 else 1
                meets = {row[column] for row in roots if row[0] in within}
                within = {row[0] for row in roots if row[column] in meets}
            free = {
                number
                for _, number, _ in roots
                if all(r in within for r, own, _ in roots if own == number)
            }
            augmented = {a for _, own, a in roots if own in free}
            kept = {r for r, _, a in roots if a in augmented}
            fixed = {own for r, own, _ in roots if r in kept} - free
            outside = {own for r, own, _ in roots if r not in kept}
            known = limited.knowledge_set(d, int(asked), order)
            assert set(known.free.tolist()) == free >= {asked}
            assert set(known.augmented.tolist()) == augmented
            assert set(known.roots.tolist()) == kept
            assert set(known.fixed.tolist()) == fixed
            assert set(known.cut.tolist()) == fixed & outside
            sizes[order] += len(kept)
    assert sizes[1] == sizes[2] <= sizes[3] == sizes[4] <= sizes[None]


@pytest.mark.parametrize(("name", "layer"), [("princess4", 4), ("random", 2)])
def test_low_orders_leave_much_out(name, layer):
    """And order 2 leaves out what order 1 does, but frees more infosets."""
    d, shares, free = cut(name, 0), [], {1: 0, 2: 0}
    for asked in openings(d, layer):
        sets = {k: limited.knowledge_set(d, int(asked), k) for k in (1, 2, None)}
        np.testing.assert_array_equal(sets[1].roots, sets[2].roots)
        shares.append(len(sets[1].roots) / len(sets[None].roots))
        for order in free:
            free[order] += len(sets[order].free)
        assert len(sets[1].fixed) and not len(sets[None].fixed)
    assert np.mean(shares) < 0.7
    assert free[1] == len(shares) <= free[2]


@pytest.mark.parametrize("kind", GADGETS)
@pytest.mark.parametrize(
    ("name", "player"), [("leduc7", 0), ("ii_goofspiel3", 1), ("dark_hex", 1)]
)
def test_common_knowledge_gives_the_gadget_game_of_the_subgame(name, player, kind):
    d = cut(name, player)
    behaviours = random_behaviours(d.tree, 7)
    reach = [
        conversions.reach_from_behaviour(d.tree.infosets[p].decisions, behaviours[p])
        for p in range(2)
    ]
    values = np.random.default_rng(7).normal(size=len(d.augmented_layer))
    other_reach = np.zeros(len(values))
    sequences = d.tree.histories.sequence[1 - player][d.roots]
    other_reach[d.root_augmented] = reach[1 - player][sequences]
    for number in range(2, d.num_layers + 1):
        layer = Layer(d, number, kind)
        for subgame in list(layer)[:3]:
            there = layer[subgame]
            expected = layer.game(
                subgame,
                reach[player][d.decisions.parent[there.roots]],
                values[there.augmented],
                other_reach[there.augmented],
            )
            known = limited.knowledge_set(d, int(there.roots[0]), None)
            game = limited.limited_game(d, known, behaviours, values, kind)
            assert game.first == expected.first
            np.testing.assert_array_equal(game.own, there.own)
            np.testing.assert_array_equal(game.augmented, there.augmented)
            np.testing.assert_array_equal(game.next_augmented, there.next_augmented)
            for p in range(2):
                np.testing.assert_array_equal(
                    game.decisions[p].parent, expected.form.decisions[p].parent
                )
            assert dense(game.form) == pytest.approx(
                dense(expected.form), abs=TOLERANCE
            )


def dense(form):
    payoff = np.zeros([decisions.num_sequences for decisions in form.decisions])
    np.add.at(payoff, form.payoffs[:2], form.payoffs.values)
    return payoff


@pytest.mark.parametrize("order", (1, 2))
@pytest.mark.parametrize(
    ("name", "player", "layer"),
    [("kuhn", 0, 2), ("ii_goofspiel3", 1, 2), ("dark_hex", 1, 3)],
)
def test_payoffs_are_those_of_histories(name, player, layer, order):
    """If o follows: i's old reach and chance of the roots, times values there.

    Where i chooses anew it plays otherwise than before: what it does elsewhere must be
    what it did.
    """
    d, o = cut(name, player), 1 - player
    (brute, nodes), fixed = whole(name), 0
    before, now = random_behaviours(d.tree, 1), random_behaviours(d.tree, 2)
    first = d.decisions.first_sequence
    nothing = np.zeros(len(d.augmented_layer))
    for asked in openings(d, layer)[:4]:
        known = limited.knowledge_set(d, int(asked), order)
        game = limited.limited_game(d, known, before, nothing)
        own = game.form.decisions[player]
        reach = [np.empty(0), np.empty(0)]
        reach[player] = in_game(d, game.own, own, now[player])
        other = d.tree.infosets[o].decisions
        odds = [np.ones(1)] + [np.array([0.0, 1.0])] * len(known.augmented)
        odds += [
            before[o][other.first_sequence[j] :][: other.num_actions[j]]
            for j in game.other
        ]
        odds.append(np.ones(len(game.next_augmented)))
        reach[o] = conversions.reach_from_behaviour(
            game.form.decisions[o], np.concatenate(odds)
        )
        both = [before[0].copy(), before[1].copy()]
        for number in game.own:
            at = slice(first[number], first[number] + d.decisions.num_actions[number])
            both[player][at] = now[player][at]
        policy = reference.from_behaviours(d.tree, both)
        expected = sum(
            brute.nodes[nodes[r]].chance
            * brute.own_reach(nodes[r], player, policy)
            * reference.value_at(brute, policy, nodes[r])
            for r in known.roots
        )
        assert forest_value(game, reach) == pytest.approx(expected, abs=TOLERANCE)
        fixed += len(known.fixed)
    assert fixed


SAFE = [
    ("kuhn", 0, 2),
    ("liars_dice2", 1, 2),
    ("ii_goofspiel3", 1, 2),
    ("dark_hex", 1, 3),
    ("leduc7", 0, 3),
    ("random", 0, 2),
]
SLOW = [
    ("liars_dice3", 0, 2),
    ("liars_dice3", 1, 3),
    ("ii_goofspiel4", 0, 2),
    ("princess4", 0, 2),
    ("leduc7", 1, 2),
    ("random", 1, 2),
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("name", "player", "layer"),
    [*SAFE, *(pytest.param(*row, marks=pytest.mark.slow) for row in SLOW)],
)
def test_one_subgame_is_safe(name, player, layer, order):
    """Whatever the strategy before; and o's next values are those against the new one.

    What o gets at an augmented infoset of the next layer is asked of the whole game.
    """
    d = cut(name, player)
    behaviours = random_behaviours(d.tree, 3)
    values = promised(d, layer, behaviours[player])
    before = exploitability(name, d, behaviours, behaviours[player])
    for asked in openings(d, layer)[:2]:
        known = limited.knowledge_set(d, int(asked), order)
        for kind in ("cfrd", "maxmargin"):
            behaviour, game, following = solved(d, known, behaviours, values, kind)
            after = exploitability(name, d, behaviours, behaviour)
            assert after <= before + EXACT
            now = promised(d, layer, behaviour)[known.augmented]
            assert (now <= values[known.augmented] + EXACT).all()
            if len(game.next_augmented):
                expected = promised(d, layer + 1, behaviour)[game.next_augmented]
                assert following == pytest.approx(expected, abs=EXACT)


def test_without_promises_one_subgame_is_unsafe():
    d = cut("ii_goofspiel3", 1)
    behaviours = random_behaviours(d.tree, 3)
    before = exploitability("ii_goofspiel3", d, behaviours, behaviours[1])
    nothing = np.zeros(len(d.augmented_layer))
    rises = {}
    for order in (1, None):
        rises[order] = max(
            exploitability(
                "ii_goofspiel3",
                d,
                behaviours,
                solved(
                    d,
                    limited.knowledge_set(d, int(asked), order),
                    behaviours,
                    nothing,
                    "unsafe",
                )[0],
            )
            - before
            for asked in openings(d, 2)
        )
    assert min(rises.values()) > 0.1


def hide(share):
    """Both players' behaviour: heads with the same probability whatever the card."""
    return np.array([1.0, *[share, 1 - share] * 3]), np.array([1.0, 0.5, 0.5])


@pytest.mark.parametrize("kind", ["cfrd", "maxmargin"])
def test_several_subgames_of_one_start_are_not_safe(kind):
    """Three cards: each makes good alone what all of them do too much of.

    Heads with 0.6 loses 0.2 to "heads". The card of weight 1/2 plays heads with 0.4 to
    make up for it, the others with 0.2 each; together they play it with 0.3, which
    loses 0.4 to "tails". One after the other, or all together, they lose nothing.
    """
    d, behaviours = cut("hidden_card", 0), hide(0.6)
    values = promised(d, 1, behaviours[0])
    assert values == pytest.approx([0.2], abs=TOLERANCE)
    together, one_by_one = behaviours[0].copy(), behaviours[0].copy()
    for asked in range(3):
        known = limited.knowledge_set(d, asked, 1)
        at = slice(1 + 2 * asked, 3 + 2 * asked)
        found, _, _ = solved(d, known, behaviours, values, kind)
        # Any strategy that keeps the promise is optimal for "cfrd".
        if kind == "maxmargin":
            together[at] = found[at]
        after = (one_by_one, behaviours[1])
        now = promised(d, 1, one_by_one)
        one_by_one, _, _ = solved(d, known, after, now, kind)
        gained = exploitability("hidden_card", d, behaviours, one_by_one)
        assert gained <= now[0] + EXACT
    gained = exploitability("hidden_card", d, behaviours, one_by_one)
    if kind == "maxmargin":
        assert gained == pytest.approx(0.0, abs=EXACT)
        gained = exploitability("hidden_card", d, behaviours, together)
        assert gained == pytest.approx(0.4, abs=EXACT)
    every = limited.knowledge_set(d, 0, None)
    found, _, _ = solved(d, every, behaviours, values, kind)
    gained = exploitability("hidden_card", d, behaviours, found)
    assert gained <= 0.2 + EXACT if kind == "cfrd" else gained < EXACT


def resolved_everywhere(name, player, behaviours, order, kind):
    """i's strategy if it solves at each decision, from what it found on the way there.

    That is what a player does in its matches: each of its decisions is solved where a
    match comes to it, and never hears of what was found in other matches.
    """
    d = cut(name, player)
    first, final = d.decisions.first_sequence, behaviours[player].copy()

    def solve_after(behaviour, values, number, infosets):
        for asked in infosets:
            known = limited.knowledge_set(d, int(asked), order)
            pair = [behaviours[0], behaviours[1]]
            pair[player] = behaviour
            found, game, following = solved(d, known, pair, values, kind)
            mine = limited.infosets_after(d, np.array([asked]))
            for infoset in np.flatnonzero(mine):
                at = slice(
                    first[infoset], first[infoset] + d.decisions.num_actions[infoset]
                )
                final[at] = found[at]
            later = values.copy()
            later[game.next_augmented] = following
            below = mine & d.opens & (d.own_layer == number + 1)
            solve_after(found, later, number + 1, np.flatnonzero(below))

    values = promised(d, 1, behaviours[player])
    solve_after(behaviours[player], values, 1, openings(d, 1))
    return final


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "before", "rises", "falls"),
    [
        ("liars_dice3", "cfrd", 0.0104, 10.0, 0.2),
        ("liars_dice3", "maxmargin", 0.0104, 2.0, 0.01),
        ("leduc7", "cfrd", 0.0410, 1.5, 1.0),
        ("leduc7", "maxmargin", 0.0410, 1.5, 0.3),
    ],
)
def test_order_1_everywhere_spoils_what_order_2_mends(name, kind, before, rises, falls):
    """After 30 iterations of CFR+: by these factors, with the same histories kept."""
    tree = compiled(name)
    behaviours = solve(tree, "cfr+", 30).average
    both = {1: 0.0, 2: 0.0, "before": 0.0}
    for player in (0, 1):
        d = cut(name, player)
        both["before"] += exploitability(name, d, behaviours, behaviours[player])
        for order in (1, 2):
            found = resolved_everywhere(name, player, behaviours, order, kind)
            both[order] += exploitability(name, d, behaviours, found)
    assert both["before"] == pytest.approx(before, abs=1e-4)
    assert both[1] > rises * both["before"]
    assert both[2] <= falls * both["before"] + EXACT


def test_a_tree_cut_down_says_what_had_more_histories():
    """Held infosets stay fixed, and so does all that comes after them."""
    d = cut("dark_hex", 1)
    for asked in openings(d, 2):
        known = limited.knowledge_set(d, int(asked), 2)
        others = known.free[known.free != asked]
        if len(others):
            break
    held = limited.infosets_after(d, others)
    fewer = limited.knowledge_set(d, int(asked), 2, held=held)
    assert fewer.free.tolist() == [asked]
    assert set(others.tolist()) <= set(fewer.fixed.tolist())
    again = limited.knowledge_set(d, int(asked), 2, held=np.ones_like(held))
    np.testing.assert_array_equal(again.free, [asked])
    decisions = d.decisions
    for number in range(len(decisions)):
        above, follows = number, False
        while above >= 0 and not follows:
            follows = above in others
            above = decisions.owner[decisions.parent[above]]
        assert held[number] == follows


def test_infosets_that_are_never_reached_are_solved_all_the_same():
    """All roots of free infosets weigh the same then, and fixed ones nothing."""
    d = cut("princess4", 0)
    behaviours = random_behaviours(d.tree, 4)
    asked = int(openings(d, 4)[0])
    known = limited.knowledge_set(d, asked, 1)
    values = np.zeros(len(d.augmented_layer))
    reached = limited.limited_game(d, known, behaviours, values)
    never = behaviours[0].copy()
    never[d.decisions.parent[asked]] = 0.0
    game = limited.limited_game(d, known, (never, behaviours[1]), values)
    assert len(known.fixed)
    top = np.zeros(dense(game.form).shape[0], bool)
    top[1:] = True
    scale = conversions.reach_from_behaviour(d.decisions, behaviours[0])
    expected = dense(reached.form) / scale[d.decisions.parent[asked]]
    assert dense(game.form)[top] == pytest.approx(expected[top], abs=TOLERANCE)
    assert not dense(game.form)[0].any() and dense(reached.form)[0].any()


def test_refusals_name_what_is_wrong():
    d = cut("kuhn", 0)
    first, second = openings(d, 1), openings(d, 2)
    for infosets, order, words in (
        (int(first[0]), 0, "order"),
        (int(first[0]), 1.5, "order"),
        ([], 1, "infosets"),
        ([int(first[0]), int(second[0])], 1, "one layer"),
    ):
        with pytest.raises(ValueError, match=words):
            limited.knowledge_set(d, infosets, order)
    hidden = decomposition.decompose(compiled("dark_hex"), 0)
    inner = np.flatnonzero(~hidden.opens)
    for number in inner[:1]:
        with pytest.raises(ValueError, match="open a layer"):
            limited.knowledge_set(hidden, int(number), 1)
    known = limited.knowledge_set(d, int(first[0]), 1)
    with pytest.raises(ValueError, match="gadget"):
        limited.limited_game(
            d, known, random_behaviours(d.tree, 0), np.zeros(9), "none"
        )


@pytest.mark.slow
def test_a_player_of_partial_trees_takes_max_margin():
    """It is as good as with the other gadget where all of the game fits."""
    tree = compiled("kuhn")
    for kind in ("cfrd", "maxmargin"):
        text = f"resolving(max_histories=58,iterations=200,gadget={kind})"
        assert traversing.evaluate_bot(tree, text).nash_conv < 0.01
    with pytest.raises(ValueError, match="maxmargin"):
        load_bot("resolving(max_histories=58,gadget=unsafe)", tree, 0)
