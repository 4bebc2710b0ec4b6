"""Declared public-tree games: equality with game trees, and invalid declarations."""

import pathlib
import re

import numpy as np
import pyspiel
import pytest

from game_defs import leduc_poker
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.batched_rules import CheckedRules, of_game
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree import public_tree_loading as loading
from spiel_cr.games.public_tree.declaration import (
    deals,
    declaration,
    public_tree,
    symmetry,
)
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour

slow = pytest.mark.slow
RHODE = "python_rhode_island_holdem"
LEDUC = "python_leduc_poker"
LIARS = "liars_dice(numdice={},dice_sides={})"


def small(num_ranks, num_suits, max_bets=1):
    return (
        f"{RHODE}(ante=1,bets=1 2 4,max_bets={max_bets},num_ranks={num_ranks},"
        f"num_suits={num_suits})"
    )


class ChangedRules:
    """Batched rules of a game with some methods replaced."""

    def __init__(self, rules, **methods):
        self._rules, self._methods = rules, methods

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._methods:
            change = self._methods[name]
            if change is None:
                raise AttributeError(name)
            return lambda *arguments: change(self._rules, *arguments)
        return getattr(self._rules, name)


def build(string, **methods):
    game = pyspiel.load_game(string)
    rules = ChangedRules(of_game(game), **methods)
    return declaration.build(game, rules, np.random.default_rng(3))


def dealt(rules, states, player):
    """Return a poker player's own and public cards, without merging suits."""
    seen = 0b111111 << 6 * player | 0xFFF << 12
    return states[:, 1] & seen


def node_of(betting, actions):
    """Return the public node after some actions."""
    node = 0
    for action in actions:
        below = (betting.parent == node) & (betting.action == action)
        (node,) = np.flatnonzero(below)
    return int(node)


def coupling(game):
    """Return payoffs by the players' last (node, private state, action)."""
    betting, total = game.betting, {}

    def last(player, node, private_state, later):
        while node:
            above = betting.parent[node]
            if betting.player[above] == player:
                for r in range(later, betting.round[above], -1):
                    private_state = game.parents[player][r][private_state]
                return int(above), int(private_state), int(betting.action[node])
            node = above
        return None

    for leaf, matrix, stake in zip(*game.terms, strict=True):
        later = betting.round[leaf]
        for one, other, value in zip(
            *game.payoff_matrices[matrix].coordinates(), strict=True
        ):
            pair = last(0, leaf, one, later), last(1, leaf, other, later)
            total[pair] = total.get(pair, 0.0) + stake * value
    return total


def merged(tree, game):
    """Return the same for the game tree, whose infosets the reader maps."""
    names = []
    for player, own in enumerate(tree.infosets):
        found = [None]
        for i, history in enumerate(own.history):
            state = tree.state_at(history)
            moves = [m.action for m in state.full_history() if m.player != CHANCE]
            place = (
                node_of(game.betting, moves),
                game.reader.private_state(state, player),
            )
            first = own.decisions.first_sequence[i] - 1
            actions = own.actions[first : first + own.decisions.num_actions[i]]
            found += [(*place, int(action)) for action in actions]
        names.append(found)
    total = {}
    for row, column, value in zip(*tree.sequence_form.payoffs, strict=True):
        pair = names[0][row], names[1][column]
        total[pair] = total.get(pair, 0.0) + value
    return names, total


def check_equal(string, game):
    """Compare payoffs and infosets with the game tree; return its infoset counts."""
    tree = build_tree(string)
    names, expected = merged(tree, game)
    mine = coupling(game)
    for pair in expected.keys() | mine.keys():
        assert mine.get(pair, 0.0) == pytest.approx(expected.get(pair, 0.0), abs=1e-12)
    for player, own in enumerate(tree.infosets):
        there = {name[:2] for name in names[player][1:]}
        hands = np.array(game.num_private_states(player))[game.betting.round]
        assert len(there) == hands[game.betting.player == player].sum()
        assert len(there) <= len(own)
    return [len(own) for own in tree.infosets]


EQUAL = [
    LEDUC,
    f"{LEDUC}(stack0=13,stack1=5,max_raises=2,num_ranks=3)",
    LIARS.format(1, 3),
    "liars_dice(numdice=1,dice_sides=3,bidding_rule=reset-quantity)",
    small(2, 2),
    pytest.param(small(4, 1), marks=slow),
    pytest.param(small(3, 2), marks=slow),
    pytest.param(small(2, 3), marks=slow),
    pytest.param(LIARS.format(2, 2), marks=slow),
    pytest.param(f"{LEDUC}(stack0=13,stack1=13,max_raises=2,num_ranks=13)", marks=slow),
]


@pytest.mark.parametrize("string", EQUAL)
def test_public_tree_game_equals_the_game_tree(string):
    check_equal(string, loading.public_tree_game(string))


@slow
@pytest.mark.parametrize("string", [small(2, 2), small(3, 2)])
def test_infosets_without_suit_symmetry_equal_those_of_the_tree(string):
    game = build(string, private_state=dealt)
    infosets = check_equal(string, game)
    for player in range(2):
        hands = np.array(game.num_private_states(player))[game.betting.round]
        assert hands[game.betting.player == player].sum() == infosets[player]


def lifted(whole, merged_game, behaviours):
    """Return the unmerged game's sequence form and the reach of lifted strategies."""
    whole_form = whole.sequence_form
    reach = []
    for player, behaviour in enumerate(behaviours):
        private_states = []
        for r in range(whole.num_rounds):
            line = whole.reader.paths[r]
            found = []
            for deal in whole.reader.examples[player][r]:
                state, outcomes, bets = whole.game.new_initial_state(), [*deal], [*line]
                while outcomes or bets:
                    chance = state.is_chance_node()
                    state.apply_action((outcomes if chance else bets).pop(0))
                found.append(merged_game.reader.private_state(state, player))
            private_states.append(np.array(found))
        betting, place, parts = whole.betting, 1, [np.ones(1)]
        children = np.bincount(betting.parent[1:], minlength=len(betting))
        for node in np.flatnonzero(betting.player == player):
            r, count = betting.round[node], children[node]
            hands = merged_game.num_private_states(player)[r]
            rows = behaviour[place : place + hands * count].reshape(hands, count)
            parts.append(rows[private_states[r]].ravel())
            place += hands * count
        own = whole_form.decisions[player]
        reach.append(reach_from_behaviour(own, np.concatenate(parts)))
    return whole_form, tuple(reach)


@slow
@pytest.mark.parametrize(
    "string",
    [
        small(2, 2),
        *(small(*deck, 2) for deck in ((3, 2), (2, 3))),
        *(small(*deck) for deck in ((4, 2), (3, 3), (2, 4))),
    ],
)
def test_merging_suits_preserves_values_and_best_responses(string):
    """Use random strategies that do not distinguish equivalent suits."""
    whole, game = build(string, private_state=dealt), loading.public_tree_game(string)
    assert sum(game.num_private_states(0)) < sum(whole.num_private_states(0))
    own_form = game.sequence_form
    rng = np.random.default_rng(5)
    behaviours, reach = [], []
    for own in own_form.decisions:
        weights = rng.exponential(size=own.num_sequences)
        weights[0] = 1.0
        total = np.bincount(own.owner[1:], weights=weights[1:])
        weights[1:] /= total[own.owner[1:]]
        behaviours.append(weights)
        reach.append(reach_from_behaviour(own, weights))
    whole_form, whole_reach = lifted(whole, game, behaviours)
    mine = best_responses.expected_value(own_form, tuple(reach))
    theirs = best_responses.expected_value(whole_form, whole_reach)
    assert mine == pytest.approx(theirs, abs=1e-12)
    mine = best_responses.nash_conv(own_form, tuple(reach))
    theirs = best_responses.nash_conv(whole_form, whole_reach)
    assert mine == pytest.approx(theirs, abs=1e-12)


def linear_program_rows(game):
    """Return the number of constraints of the sequence-form linear program."""
    own, other = (game.public_decisions[player] for player in range(2))
    return own.num_sequences + 1 + other.first_infoset[-1]


@slow
def test_rhode_island_holdem_has_its_published_size():
    """Compare with Gilpin and Sandholm (2007) and with the game's docstring."""
    game = loading.public_tree_game(RHODE)
    betting = game.betting
    assert game.num_private_states(0) == game.num_private_states(1) == [13, 325, 9997]
    # The number of deals that enter each round.
    entering = np.array([52 * 51, 52 * 51 * 50, 52 * 51 * 50 * 49])
    ends = np.bincount(betting.round[betting.player == TERMINAL])
    decisions = np.bincount(betting.round[betting.player != TERMINAL])
    goes_on = [1 + 52, 7 * entering[0], 49 * entering[1]]
    assert (ends * entering).sum() == 4_144_428_912
    assert (decisions * entering).sum() == 2_554_427_616
    assert ((ends + decisions) * entering).sum() + sum(goes_on) == 6_705_372_545
    # Uniform play.
    children = np.bincount(betting.parent[1:], minlength=len(betting))
    reach = np.ones(len(betting))
    for node in range(1, len(betting)):
        above = betting.parent[node]
        reach[node] = reach[above] / children[above]
    total = np.array(
        [matrix.coordinates().values.sum() for matrix in game.payoff_matrices]
    )
    leaf, matrix, stake = game.terms
    value = (reach[leaf] * stake * total[matrix]).sum()
    assert value == pytest.approx(1.781322, abs=5e-7)
    assert linear_program_rows(game) == 6_889_976
    # Without merging suits, every card and board is a private state.
    whole = build(RHODE, private_state=dealt)
    assert whole.num_private_states(0) == [52, 52 * 51, 52 * 51 * 50]
    assert linear_program_rows(whole) == 91_224_226


@slow
def test_size_of_liars_dice_with_two_dice_of_five_sides():
    game = loading.public_tree_game(LIARS.format(2, 5))
    assert game.num_private_states(0) == game.num_private_states(1) == [15]
    # Decisions are increasing lists of bids; all but the empty one may be challenged.
    assert (game.betting.player != TERMINAL).sum() == 2**20
    assert len(game.terms.leaf) == 2**20 - 1
    assert len(game.payoff_matrices) == 20


def test_reader_maps_states_to_named_private_states():
    game = loading.public_tree_game(small(3, 4))
    state = game.game.new_initial_state()
    with pytest.raises(ValueError, match="ends at a chance node"):
        game.reader.private_state(state, 0)
    for action in (0, 11, 1, 1, 4):  # 2c and As; both check; 3c
        state.apply_action(action)
    names = [
        game.reader.name(p, 1, game.reader.private_state(state, p)) for p in (0, 1)
    ]
    # The suit of player 1's ace differs from that of the flop.
    assert names == ["2c | 3c", "Ac | 3d"]
    other = game.game.new_initial_state()
    for action in (1, 8, 1, 1, 5):  # the same with renamed suits
        other.apply_action(action)
    private_states = [
        [game.reader.private_state(s, p) for s in (state, other)] for p in (0, 1)
    ]
    assert (
        private_states[0][0] == private_states[0][1]
        and private_states[1][0] == private_states[1][1]
    )
    state.apply_action(2)
    state.apply_action(0)
    assert state.is_terminal()
    assert game.reader.private_state(state, 0) == private_states[0][0]
    for player in range(2):
        for r, count in enumerate(game.num_private_states(player)):
            some = range(0, count, 1 + r * 5)
            named = {
                game.reader.name(player, r, private_state) for private_state in some
            }
            assert len(named) == len(some)


def test_names_default_to_information_state_strings():
    game = build(LEDUC, private_state_names=None)
    assert game.reader.name(1, 1, 0) == "p1 card 0 public 0 bets ddccd"
    dice = loading.public_tree_game(LIARS.format(2, 2))
    assert [dice.reader.name(0, 0, k) for k in range(3)] == ["1 1", "1 2", "2 2"]


def test_private_states_are_sorted_by_their_parents():
    def backwards(rules, states, player):
        seen = dealt(rules, states, player)
        return np.column_stack([seen >> 12, seen >> 6 * player & CARD])

    for string, methods in ((LEDUC, {"private_state": backwards}), (small(3, 2), {})):
        game = build(string, **methods)
        for parents in game.parents:
            for parent in parents:
                assert (np.diff(parent) >= 0).all()


CARD = (1 << 6) - 1


def by_own_card(change):
    """Change the result of a method of the rules if player 0 has card 1."""

    def method(rules, states, *rest):
        result = np.array(getattr(rules, change.__name__)(states, *rest))
        return change(result, (states[:, 1] & CARD) == 2, states)

    return method


def legal_actions_mask(result, card, states):
    acting = states[:, 0] == 2
    result[card & acting, 2] = False
    return result


def current_player(result, card, states):
    return np.where(card & (result == 1), 0, result)


def chance_probabilities(result, card, states):
    """Let probabilities of the public card depend on the bets."""
    raised = (states[:, 0] > 8) & (result > 0).all(axis=1)
    result[raised] = [0.5, 0.25, 0.25]
    return result


def returns(result, card, states):
    return np.where(card & (abs(result) == 3), 2 * result, result)


def forgets_own_card(rules, states, player):
    """Return only the public card after it is dealt."""
    public = states[:, 1] >> 12
    return np.where(public > 0, public, rules.private_state(states, player))


def merges_lowest_ranks(rules, states, player):
    """Merge the two lowest ranks, although their payoffs differ."""
    seen = dealt(rules, states, player)
    own = (seen >> 6 * player) & CARD
    return np.column_stack([np.maximum(own, 2), seen >> 12])


def merges_lowest_public_cards(rules, states, player):
    """Merge the two lowest public cards."""
    seen = dealt(rules, states, player)
    public = seen >> 12
    blurred = np.where(public > 0, np.maximum(public, 2), 0)
    return np.column_stack([seen >> 6 * player & CARD, blurred])


def refines_ranks_later(rules, states, player):
    """Merge the two lowest ranks in the first round only."""
    merged = merges_lowest_ranks(rules, states, player)
    own = dealt(rules, states, player) >> 6 * player & CARD
    merged[:, 0] = np.where(merged[:, 1] > 0, own, merged[:, 0])
    return merged


def observes_all_cards(rules, states, player):
    return states[:, 1]


FALSE = [
    (
        {"private_state": lambda r, s, p: r.information_state(s, p)},
        "depends on the bets",
    ),
    ({"private_state": lambda r, s, p: s[:, 1] * 0.5}, "it must give integers"),
    ({"private_state": forgets_own_card}, "which is imperfect recall"),
    (
        {"private_state": merges_lowest_public_cards},
        "has one private state, although its payoffs differ",
    ),
    (
        {"private_state": merges_lowest_ranks},
        "although different private states may follow",
    ),
    (
        {"private_state": refines_ranks_later},
        "although different private states may follow",
    ),
    (
        {"private_state": observes_all_cards},
        "two private states with the same information",
    ),
    ({"payoff_key": lambda r, s: s[:, 0] * 0}, "not proportional"),
    ({"payoff_key": lambda r, s: s}, "payoff_key depends on the deals"),
    ({"legal_actions_mask": by_own_card(legal_actions_mask)}, "other actions are"),
    ({"current_player": by_own_card(current_player)}, "a different player acts"),
    (
        {"chance_probabilities": lambda r, s: r.chance_probabilities(s) / 2},
        "sum to 0.5",
    ),
    (
        {"chance_probabilities": by_own_card(chance_probabilities)},
        "a different probability",
    ),
]


@pytest.mark.parametrize(("methods", "reason"), FALSE)
def test_rejects_invalid_declarations(methods, reason):
    with pytest.raises(InvalidGameError, match=reason):
        build(LEDUC, **methods)


def test_non_proportional_payoffs_get_more_payoff_matrices():
    """Such a declaration is valid if private states determine the payoffs."""

    class NonProportionalLeducGame(leduc_poker.LeducPokerGame):
        def batched_rules(self):
            return ChangedRules(super().batched_rules(), returns=by_own_card(returns))

    game = loading.public_tree_game(NonProportionalLeducGame())
    assert len(game.payoff_matrices) > len(
        loading.public_tree_game(LEDUC).payoff_matrices
    )
    check_equal(NonProportionalLeducGame(), game)


def test_raises_if_the_public_tree_exceeds_the_memory_limit():
    with pytest.raises(GameTooLargeError, match="public nodes"):
        loading.public_tree_game(LIARS.format(3, 6), memory_limit="350MB")


def test_memory_limit_is_checked_before_each_level_is_built():
    opened = open_game(LIARS.format(5, 6))
    told = []
    with pytest.raises(GameTooLargeError, match="public nodes"):
        asked = CheckedRules(opened.game, opened.rules)
        public_tree.grow(asked, "700MB", told.append)
    # A level of half a million nodes fits; the next level is eleven times as large.
    assert 500_000 < sum(told) < 700_000


def test_rejects_games_without_a_declaration():
    assert loading.declared(open_game(LEDUC))
    assert loading.declared(open_game(LIARS.format(1, 3)))
    for string in ("kuhn_poker", "phantom_ttt", "python_ii_goofspiel"):
        assert not loading.declared(open_game(string))
        with pytest.raises(ValueError, match="does not declare private states"):
            loading.public_tree_game(string)


def ranks_only(rules, states, player):
    """Return the ranks, which do not determine a flush."""
    seen = dealt(rules, states, player)
    places = [player, 2, 3]
    return np.column_stack([((seen >> 6 * p & CARD) + 1) // 2 for p in places])


def test_rejects_private_states_that_ignore_relevant_suits():
    with pytest.raises(InvalidGameError, match="has one private state, although"):
        build(small(3, 2), private_state=ranks_only)


class OnePile:
    """Nim with a pile of five: take one or two; the player who takes the last one wins.

    States are int64 [n, 2]: the size of the pile and the player to move.
    """

    def new_initial_states(self):
        return np.array([[5, 0]])

    def current_player(self, states):
        return np.where(states[:, 0] > 0, states[:, 1], TERMINAL)

    def legal_actions_mask(self, states):
        return np.array([0, 1, 2]) <= np.where([0, 1, 1], states[:, :1], -1)

    def child(self, states, actions):
        return np.column_stack([states[:, 0] - actions, 1 - states[:, 1]])

    def returns(self, states):
        return 2 * states[:, 1] - 1

    def information_state(self, states, player):
        return states

    def private_state(self, states, player):
        return np.zeros(len(states), np.int8)


def test_builds_games_without_chance():
    """Such a game has one private state per player and one payoff matrix."""
    game = declaration.build(
        pyspiel.load_game("kuhn_poker"), OnePile(), np.random.default_rng(0)
    )
    # Ordered sums of ones and twos that equal 0 to 5 are counted by Fibonacci numbers.
    assert len(game.betting) == 1 + 1 + 2 + 3 + 5 + 8
    assert game.num_private_states(0) == game.num_private_states(1) == [1]
    (matrix,) = game.payoff_matrices
    assert [part.tolist() for part in matrix.coordinates()] == [[0], [0], [1]]
    # After an odd number of moves, player 0 has made the last one.
    takes = np.zeros(len(game.betting), int)
    for node in range(1, len(takes)):
        takes[node] = 1 + takes[game.betting.parent[node]]
    assert (game.terms.stake == 2 * (takes[game.terms.leaf] % 2) - 1).all()


def test_raises_if_there_are_too_many_deals(monkeypatch):
    monkeypatch.setattr(declaration, "_MOST_PLAYED", 1e5)
    with pytest.raises(GameTooLargeError, match=r"about 1\.2e\+05 deals") as caught:
        loading.public_tree_game(small(10, 2))  # 20 * 19 * 18 * 17 = 116 280
    assert "choose fewer cards" in str(caught.value)


def test_memory_limit_is_checked_while_deals_are_enumerated(monkeypatch):
    game, held = pyspiel.load_game(LEDUC), iter([0, 0, 0, 2**40])
    monkeypatch.setattr(estimate, "_EVERY", np.inf)
    monkeypatch.setattr(declaration.memory, "held_bytes", lambda: next(held))
    with pytest.raises(GameTooLargeError, match=r"more than \d+ deals, which need"):
        declaration.build(
            *(game, of_game(game), np.random.default_rng(0)), memory_limit="2GB"
        )


def test_games_with_many_leaves_require_payoff_keys(monkeypatch):
    monkeypatch.setattr(declaration, "_MOST_PAYOFFS", 64 * 20)
    assert len(build(LIARS.format(1, 3)).terms.leaf) == 63  # 12 keys
    with pytest.raises(GameTooLargeError, match="a method payoff_key"):
        build(LIARS.format(1, 3), payoff_key=None)


def test_enumerating_deals_in_chunks_gives_the_same_game(monkeypatch):
    """Deals are enumerated in chunks, and sums are reduced in between."""
    whole = loading.public_tree_game(small(2, 3))
    monkeypatch.setattr(deals, "_CHUNK", 30)
    monkeypatch.setattr(deals, "_WAITING", 20)
    monkeypatch.setattr(symmetry, "_MOST_DEALS", 100)
    parts = loading.public_tree_game(small(2, 3), progress=True)
    assert coupling(parts) == pytest.approx(coupling(whole), abs=1e-15)
    for mine, theirs in zip(parts.parents, whole.parents, strict=True):
        assert all(map(np.array_equal, mine, theirs))


@pytest.mark.parametrize(("most", "few", "many"), [(40, 1, 5), (1, 0, 4)])
def test_large_games_check_a_sample_of_private_states(monkeypatch, most, few, many):
    """Fourteen private states are invalid: per player 1 in round one, 6 in round two.

    A build checks at least one of them with probability 95% if it samples 40 of 210
    states, and 6% if it samples 1. Either bound on five builds fails by chance with
    probability below 1e-5.
    """
    monkeypatch.setattr(symmetry, "_MOST_DEALS", most)
    game = pyspiel.load_game(f"{LEDUC}(num_ranks=6)")
    found = 0
    for seed in range(5):
        rules = ChangedRules(of_game(game), private_state=merges_lowest_ranks)
        try:
            declaration.build(game, rules, np.random.default_rng(seed))
        except InvalidGameError:
            found += 1
    assert few <= found <= many


# A game with two private cards, a bet and two public cards. After a check, there is a
# bet between the public cards; after an all-in, both follow at once. Stages: deals 0
# and 1, player 0, player 1 facing the all-in, deal, player 1, deal, end; deals after
# the all-in, end; folded.
MOVER = np.array([CHANCE, CHANCE, 0, 1, CHANCE, 1, CHANCE, TERMINAL, -1, -1, -4, -4])
AFTER = np.array(
    [[1] * 2, [2] * 2, [4, 3], [11, 8], [5] * 2, [6, 11], [7] * 2]
    + [[-1] * 2, [9] * 2, [10] * 2, [-1] * 2, [-1] * 2]
)


class AllIn:
    """Rules with states int64 [n, 5]: the stage and four cards (0 if not dealt)."""

    def new_initial_states(self):
        return np.zeros((1, 5), np.int64)

    def current_player(self, states):
        return MOVER[states[:, 0]]

    def legal_actions_mask(self, states):
        draws = self.current_player(states)[:, None] == CHANCE
        cards = np.arange(1, 6)
        left = ~(states[:, 1:, None] == cards).any(axis=1)
        return np.where(draws, left, cards < 3)

    def chance_probabilities(self, states):
        mask = self.legal_actions_mask(states)
        return mask / mask.sum(axis=1, keepdims=True)

    def child(self, states, actions):
        after = states.copy()
        draws = np.flatnonzero(self.current_player(states) == CHANCE)
        place = 1 + (states[draws, 1:] > 0).sum(axis=1)
        after[draws, place] = actions[draws] + 1
        after[:, 0] = AFTER[states[:, 0], np.minimum(actions, 1)]
        return after

    def returns(self, states):
        stage, cards = states[:, 0], states[:, 1:]
        hands = cards[:, :2] * (
            1 + (cards[:, :2] + cards[:, 2:3]) % np.maximum(cards[:, 3:4], 1)
        )
        sign = np.sign(hands[:, 0] - hands[:, 1])
        return np.where(stage == 11, 1, np.where(stage == 10, 10, 2) * sign)

    def information_state(self, states, player):
        return states[:, [0, 1 + player, 3, 4]]

    def private_state(self, states, player):
        return states[:, [1 + player, 3, 4]]


def uniform_value(rules, states):
    """Return player 0's value under uniform play, by recursion."""
    (player,) = rules.current_player(states)
    if player == TERMINAL:
        return rules.returns(states)[0]
    (legal,) = rules.legal_actions_mask(states)
    actions = np.flatnonzero(legal)
    below = [
        uniform_value(rules, rules.child(states, actions[i : i + 1]))
        for i in range(len(actions))
    ]
    return np.mean(below)


def test_betting_may_skip_a_round():
    """After an all-in, both public cards follow without a bet between them."""
    rules = AllIn()
    game = declaration.build(
        pyspiel.load_game("kuhn_poker"), rules, np.random.default_rng(0)
    )
    assert game.num_private_states(0) == [5, 5 * 4, 5 * 4 * 3]
    pairs = list(zip(game.betting.action, game.betting.round, strict=True))
    # Check, all-in; fold and call; pass and fold in the round after the check.
    assert pairs == [(-1, 0), (0, 1), (1, 0), (0, 2), (1, 1), (0, 0), (1, 2)]
    value = 0.0
    for _, matrix, stake in zip(*game.terms, strict=True):
        entries = game.payoff_matrices[matrix].coordinates().values
        value += 0.25 * stake * entries.sum()
    expected = uniform_value(rules, rules.new_initial_states())
    assert value == pytest.approx(expected, abs=1e-12)


def test_rejects_games_in_which_no_betting_visits_all_rounds():
    class SkippedRounds(AllIn):
        """Rules in which every line of betting skips a round."""

        def legal_actions_mask(self, states):
            mask = super().legal_actions_mask(states)
            mask[(states[:, 0] == 5)] = [False, True, False, False, False]
            return mask

    game = pyspiel.load_game("kuhn_poker")
    with pytest.raises(InvalidGameError, match="no line of bets visits all of its 3"):
        declaration.build(game, SkippedRounds(), np.random.default_rng(0))


def test_documentation_example_runs(capsys):
    """The example continues that of the page on batched rules."""
    docs = pathlib.Path(__file__).parents[3] / "docs" / "how-to"
    names = {"__name__": "example"}
    for page, section, end in (
        ("batched-rules.md", "## A complete example", "# Put this into"),
        ("representations.md", "## Declare a public tree", None),
    ):
        text = (docs / page).read_text("utf-8").split(section)[1]
        code = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)[0]
        code = code if end is None else code.split(end)[0]
        exec(compile(code, page, "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:] == ["[100] [100]", "2", "7"]
