"""Local best response, compared with values by hand and with exact best responses."""

import functools

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policy_lib

from spiel_cr.evaluation.responses.local_best_response import LEAVES, LBRBot, lbr
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.players.fixed_policies import FIXED_POLICIES, FixedPolicy
from spiel_cr.policies import conversions as arrays
from spiel_cr.policies.best_responses import best_response_value
from spiel_cr.policies.queries import query
from tests.support import games, reference
from tests.support.exact_lbr import ExactLBRBot
from tests.support.made_games import TERMINAL, MadeGame, Node
from tests.support.named_opponents import load_opponent
from tests.support.states import after

OPPONENTS = ("uniform", "skewed", *FIXED_POLICIES)


def skewed(game):
    """Return a random policy that is far from uniform and never plays some actions."""
    table = policy_lib.TabularPolicy(game)
    random = np.random.default_rng(7)
    weights = table.legal_actions_mask * random.random(table.legal_actions_mask.shape)
    weights = np.where(weights > 0.3, weights**3, 0) + 1e-9 * table.legal_actions_mask
    weights = np.where(weights > 1e-6, weights, 0)
    weights = np.where(weights.sum(axis=1, keepdims=True), weights, 1)
    weights = weights * table.legal_actions_mask
    table.action_probability_array[:] = weights / weights.sum(axis=1, keepdims=True)
    return table


@functools.cache
def opponent_of(name, kind):
    game = games.compiled(name).game
    if kind == "skewed":
        return skewed(game)
    return load_opponent(kind, game)


def behaviour_of(name, kind):
    return query(games.compiled(name), opponent_of(name, kind))


def value(name, player, own, other):
    """Return the responder's expected utility."""
    tree = games.compiled(name)
    pair = (own, other) if player == 0 else (other, own)
    values = arrays.history_values(tree, pair)
    return (1 - 2 * player) * values[0]


def by_enumeration(name, kind, player, leaf):
    """Return {information state: {action: value}}, by recursion over histories."""
    game = games.compiled(name).game
    tree = reference.Tree(game)
    policy = reference.from_openspiel(tree, opponent_of(name, kind))
    default = tree.uniform()
    if leaf != "uniform":
        plays = FixedPolicy(game, f"always_{leaf}")
        default = reference.from_openspiel(tree, plays)

    def expect(index, answered):
        node = tree.nodes[index]
        if node.player == reference.TERMINAL:
            return (1 - 2 * player) * node.utility
        if node.player == reference.CHANCE:
            odds = node.probabilities
        else:
            by_default = answered or node.player == player
            odds = (default if by_default else policy)[node.key]
            answered = True
        return sum(p * expect(node.children[a], answered) for a, p in odds.items() if p)

    found = {}
    for (owner, key), histories in tree.infosets.items():
        if owner != player:
            continue
        for played in (policy, tree.uniform()):
            weights = [
                tree.nodes[h].chance * tree.own_reach(h, 1 - player, played)
                for h in histories
            ]
            if sum(weights) > 0:
                break
        found[key] = {
            action: sum(
                w * expect(tree.nodes[h].children[action], False)
                for h, w in zip(histories, weights, strict=True)
                if w
            )
            / sum(weights)
            for action in tree.actions((player, key))
        }
    return found


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    ("name", "kind", "leaf"),
    [
        *(("kuhn", kind, leaf) for kind in OPPONENTS for leaf in LEAVES),
        ("leduc7", "skewed", "call"),
        ("leduc7", "always_call", "uniform"),
        ("goofspiel4", "skewed", "uniform"),
        ("princess4", "skewed", "uniform"),
    ],
)
def test_trees_and_states_agree_with_enumeration(name, kind, leaf, player):
    tree = games.compiled(name)
    expected = by_enumeration(name, kind, player, leaf)
    behaviour = lbr(tree, player, behaviour_of(name, kind)[1 - player], leaf=leaf)
    bot = ExactLBRBot(tree.game, player, opponent_of(name, kind), leaf=leaf)
    infosets = tree.infosets[player]
    first = infosets.decisions.first_sequence
    assert len(expected) == len(infosets)
    for i, (key, history) in enumerate(
        zip(infosets.keys, infosets.history, strict=True)
    ):
        state = after(tree.game, *tree.histories.actions_to(int(history)))
        actions, values = zip(*expected[key].items(), strict=True)
        bot.restart_at(state)
        assert bot.action_values(state) == pytest.approx(values, abs=1e-9)
        good = [a for a, v in expected[key].items() if v > max(values) - 1e-9]
        assert bot.step(state) == good[0]
        mine = behaviour[first[i] : first[i] + len(actions)]
        assert mine.tolist() == [float(a == good[0]) for a in actions]


@pytest.mark.parametrize(
    ("name", "leaf"), [("kuhn", "call"), ("leduc", "call"), ("leduc", "uniform")]
)
def test_values_do_not_exceed_the_best_response(name, leaf):
    tree = games.compiled(name)
    for kind in OPPONENTS:
        behaviour = behaviour_of(name, kind)
        for player in (0, 1):
            other = behaviour[1 - player]
            own = lbr(tree, player, other, leaf=leaf)
            reach = arrays.reach_from_behaviour(
                tree.infosets[1 - player].decisions, other
            )
            best = best_response_value(tree.sequence_form, player, reach)
            found = value(name, player, own, other)
            assert found <= best + 1e-9
            # It wins against every fixed policy and against uniform play.
            if kind in ("uniform", *FIXED_POLICIES):
                assert found > 0.3


def test_action_values_in_kuhn_poker_by_hand():
    """Player 1 acts after a bet by an opponent that bets every card.

    A call with the middle card wins 2 from the lowest and loses 2 to the highest; a
    fold loses 1. After a pass by an opponent that always folds, a bet wins 1.
    """
    game = pyspiel.load_game("kuhn_poker")
    raises, folds = (FixedPolicy(game, k) for k in ("always_raise", "always_fold"))
    bot = ExactLBRBot(game, 1, raises)
    assert bot.action_values(after(game, 2, 1, 1)).tolist() == [-1, 0]
    assert bot.action_values(after(game, 2, 0, 1)).tolist() == [-1, -2]
    assert bot.action_values(after(game, 0, 2, 1)).tolist() == [-1, 2]
    bot = ExactLBRBot(game, 1, folds)
    assert bot.action_values(after(game, 2, 0, 0)).tolist() == [-1, 1]
    # Default play follows the opponent's reply: after a pass and a bet, a call.
    bot = ExactLBRBot(game, 0, raises)
    assert bot.action_values(after(game, 0, 2)).tolist() == [-2, -2]


def test_only_one_reply_of_the_opponent_is_considered():
    """In Leduc poker, neither player raises after the opponent's reply.

    The opponent replies to a call with a raise to 3 (2 and the ante), and to a raise to
    3 with one to 5. The player calls both. The winner depends on the cards only, so the
    values have the ratio 3 to 5.
    """
    game = pyspiel.load_game("leduc_poker")
    bot = ExactLBRBot(game, 0, FixedPolicy(game, "always_raise"))
    for card in (0, 4):
        call, raises = bot.action_values(after(game, card, 2))
        assert call != 0 and raises / call == pytest.approx(5 / 3)


def test_rollouts_estimate_exact_action_values():
    game = pyspiel.load_game("leduc_poker")
    opponent = skewed(game)
    state = after(game, 0, 2, 2)
    rollouts = 3000
    exact = ExactLBRBot(game, 1, opponent).action_values(state)
    bot = LBRBot(game, 1, opponent, rollouts=rollouts)
    # Five standard errors, returns of at most 5: fold is exact, and two others are not,
    # a false alarm in 1e6.
    error = 5 * 5 / rollouts**0.5
    found = bot.action_values(state)
    assert found[0] == exact[0] == -1
    assert np.abs(found - exact).max() < error
    assert bot.simulations == 3 * rollouts
    again = LBRBot(game, 1, opponent, rollouts=rollouts)
    assert again.action_values(state).tolist() == found.tolist()
    other = LBRBot(game, 1, opponent, rollouts=rollouts, seed=1)
    assert other.action_values(state).tolist() != found.tolist()


@pytest.mark.parametrize("payoff", [1.0, 1e-9])
@pytest.mark.parametrize("declared", [100.0, 1e12, np.inf])
def test_declared_utility_bounds_do_not_hide_small_differences(declared, payoff):
    """The game declares far larger utilities than it has."""

    def rules(path):
        if len(path) < 2:
            return Node(len(path), (0, 1), ("first", f"second {path}"))
        return Node(TERMINAL, utility=payoff * (2 * path[0] - 1))

    game = MadeGame(rules, "declares", largest=declared)
    tree = build_tree(game)
    other = arrays.uniform_behaviour(tree.infosets[1].decisions)
    assert lbr(tree, 0, other, leaf="uniform").tolist() == [1, 0, 1]
    uniform = policy_lib.UniformRandomPolicy(game)
    for kind in (ExactLBRBot, LBRBot):
        bot = kind(game, 0, uniform, leaf="uniform", rollouts=2)
        assert bot.step(game.new_initial_state()) == 1


def test_rejects_invalid_arguments():
    tree = games.compiled("goofspiel4")
    other = arrays.uniform_behaviour(tree.infosets[1].decisions)
    with pytest.raises(ValueError, match="leaf='call'.*not a game of poker.*uniform"):
        lbr(tree, 0, other)
    with pytest.raises(ValueError, match="must be one of call, raise, uniform"):
        lbr(tree, 0, other, leaf="best")
    with pytest.raises(ValueError, match="player=2"):
        lbr(tree, 2, other, leaf="uniform")
    with pytest.raises(ValueError, match="probabilities"):
        lbr(tree, 0, 2 * other, leaf="uniform")
    uniform = policy_lib.UniformRandomPolicy(tree.game)
    with pytest.raises(ValueError, match="rollouts=0"):
        LBRBot(tree.game, 0, uniform, leaf="uniform", rollouts=0)
