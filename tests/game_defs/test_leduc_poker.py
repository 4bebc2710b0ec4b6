"""Leduc poker with stacks, compared with independent references."""

import itertools

import pyspiel
import pytest

from tests.support import game_contract
from tests.support.states import play

FOLD, CALL, RAISE = 0, 1, 2
# Values of stack0, stack1, max_raises and num_ranks, small enough for full trees.
SETTINGS = [
    (7, 7, 1, 3),
    (4, 9, 2, 3),
    (13, 5, 2, 2),
    (6, 13, 3, 2),
    (13, 13, 2, 2),
    (3, 13, 1, 4),
    (8, 2, 1, 3),
    (1, 13, 1, 2),
    (9, 9, 0, 5),
    (25, 10, 3, 2),
]
LARGE = [(19, 12, 3, 5), (100, 1000, 10, 13)]
HOLDEM = (
    "python_rhode_island_holdem(ante=1,bets=1 2 4,max_bets=1,num_ranks=2,num_suits=2)"
)
ODD = "python_leduc_poker(stack0=4,stack1=9,max_raises=2,num_ranks=4)"


def game_string(stack0=7, stack1=7, max_raises=1, num_ranks=3):
    return (
        f"python_leduc_poker(max_raises={max_raises},num_ranks={num_ranks},"
        f"stack0={stack0},stack1={stack1})"
    )


def reference(settings, history):
    """Return mover, legal actions of a player, and returns, independently.

    The function tracks each player's remaining chips and the pot.
    """
    *stacks, max_raises, _ = settings
    left = [stacks[0] - 1, stacks[1] - 1]
    pot = [1, 1]
    actions = list(history)
    if len(actions) < 2:
        return pyspiel.PlayerId.CHANCE, None, [0, 0]
    private, public = actions[:2], None
    actions = actions[2:]
    for raise_by in (2, 4):
        if raise_by == 4:
            if not actions:
                return pyspiel.PlayerId.CHANCE, None, [0, 0]
            public = actions.pop(0)
        raises, spoken, player = 0, 0, 0
        while True:
            other = 1 - player
            to_call = pot[other] - pot[player]
            can_raise = raises < max_raises and left[player] >= to_call + raise_by
            if not actions:
                legal = [FOLD, CALL, RAISE] if can_raise else [FOLD, CALL]
                return player, legal, [0, 0]
            action = actions.pop(0)
            spoken += 1
            if action == FOLD:
                lost = pot[player]
                return None, None, [lost, -lost] if player else [-lost, lost]
            paid = to_call + raise_by if action == RAISE else min(to_call, left[player])
            left[player] -= paid
            pot[player] += paid
            raises += action == RAISE
            if action == CALL and spoken > 1:
                back = max(0, pot[other] - pot[player])
                pot[other] -= back
                left[other] += back
                break
            player = other
    assert pot[0] == pot[1]
    best = [(rank == public, rank) for rank in private]
    if best[0] == best[1]:
        return None, None, [0, 0]
    return None, None, [pot[1], -pot[0]] if best[0] > best[1] else [-pot[1], pot[0]]


def observed_by(history, player):
    """Return the player's card, the number of private cards, and later actions."""
    cards, rest = list(history[:2]), list(history[2:])
    own = cards[player] if len(cards) > player else None
    return own, len(cards), tuple(rest)


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
def test_openspiel_api(settings):
    game = game_string(*settings)
    game_contract.check_api(game, game_contract.measure(game))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_rules_and_returns_equal_the_reference(settings):
    tree = game_contract.full_tree(game_string(*settings))
    for node in tree.nodes:
        state = node.state
        mover, legal, returns = reference(settings, state.history())
        assert state.returns() == returns, state
        assert state.is_terminal() == (mover is None), state
        if mover is not None:
            assert state.current_player() == mover, state
        if legal is not None:
            assert state.legal_actions() == legal, state


@pytest.mark.parametrize("string", [*(game_string(*s) for s in SETTINGS), HOLDEM])
def test_players_observe_their_card_and_public_actions(string):
    """Rhode Island Hold'em deals and reveals cards in the same way."""
    tree = game_contract.full_tree(string)
    game_contract.check_knowledge(
        tree, observed_by, lambda history, _: (len(history[:2]), tuple(history[2:]))
    )


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_chance_probabilities_equal_those_of_a_physical_deck(num_ranks):
    """Count the ordered deals of three cards from a deck of distinct cards."""
    deck = [(rank, suit) for rank in range(num_ranks) for suit in "sh"]
    triples = list(itertools.permutations(deck, 3))
    tree = game_contract.full_tree(game_string(num_ranks=num_ranks))
    odds = [1.0]
    seen = set()
    for node in tree.nodes[1:]:
        parent = tree.nodes[node.parent].state
        step = (
            dict(parent.chance_outcomes())[node.action]
            if parent.is_chance_node()
            else 1.0
        )
        odds.append(odds[node.parent] * step)
        moves = node.state.full_history()
        ranks = [m.action for m in moves if m.player == pyspiel.PlayerId.CHANCE]
        like_it = sum(
            [rank for rank, _ in triple[: len(ranks)]] == ranks for triple in triples
        )
        assert odds[-1] == pytest.approx(like_it / len(triples), rel=1e-12)
        if len(ranks) == 3:
            seen.add(tuple(ranks))
    assert seen == {tuple(rank for rank, _ in triple) for triple in triples}


@pytest.mark.parametrize(
    ("settings", "history", "value"),
    [
        # A fold without a raise costs the ante.
        ((7, 7, 1, 3), [2, 0, FOLD], -1),
        ((7, 7, 1, 3), [2, 0, CALL, FOLD], 1),
        # A pair with the public card wins, otherwise the higher card; equal cards draw.
        ((7, 7, 1, 3), [0, 2, CALL, CALL, 0, RAISE, CALL], 5),
        ((7, 7, 1, 3), [0, 2, RAISE, CALL, 1, RAISE, CALL], -7),
        ((7, 7, 1, 3), [1, 1, RAISE, CALL, 2, RAISE, CALL], 0),
        ((7, 7, 1, 3), [2, 1, RAISE, CALL, 1, RAISE, FOLD], 3),
        # Player 1 has 1 chip left to call 2, so 1 chip is returned: both pay 2.
        ((13, 2, 1, 3), [2, 0, RAISE, CALL, 1, CALL, CALL], 2),
        # Player 0 can raise, but player 1 has no chips to call with.
        ((13, 2, 1, 3), [2, 0, RAISE, CALL, 1, RAISE, CALL], 2),
        ((13, 2, 1, 3), [2, 0, RAISE, CALL, 1, FOLD], -2),
        # Player 0 calls a raise to 7 with the 1 left of its 4, or folds its 3.
        ((4, 13, 1, 3), [0, 2, RAISE, CALL, 1, CALL, RAISE, CALL], -4),
        ((4, 13, 1, 3), [0, 2, RAISE, CALL, 1, CALL, RAISE, FOLD], -3),
        # Two raises to 5 against a stack of 4: 1 chip returns to player 1.
        ((4, 13, 2, 3), [2, 0, RAISE, RAISE, CALL, 1, CALL, CALL], 4),
        # A player without chips after the first round may still fold or call.
        ((7, 3, 1, 3), [2, 0, RAISE, CALL, 1, RAISE, FOLD], 3),
        ((7, 3, 1, 3), [0, 2, RAISE, CALL, 1, RAISE, CALL], -3),
        # Equal stacks, fully bet: 1 + 2 + 2 + 4 + 4.
        ((13, 13, 2, 3), [0, 1, RAISE, RAISE, CALL, 2, RAISE, RAISE, CALL], -13),
    ],
)
def test_returns_of_hand_computed_games(settings, history, value):
    state = play(game_string(*settings), history)
    assert state.is_terminal()
    assert state.returns() == [value, -value]


@pytest.mark.parametrize(
    ("settings", "history", "can_raise"),
    [
        ((3, 9, 1, 3), [0, 0], True),
        ((2, 9, 1, 3), [0, 0], False),
        # Calling 2 and raising by 2 requires 5 chips in total.
        ((9, 5, 2, 3), [0, 0, RAISE], True),
        ((9, 4, 2, 3), [0, 0, RAISE], False),
        ((9, 9, 1, 3), [0, 0, RAISE], False),
        # In the second round a raise is by 4.
        ((5, 9, 1, 3), [0, 0, CALL, CALL, 1], True),
        ((4, 9, 1, 3), [0, 0, CALL, CALL, 1], False),
        # Returned chips can be bet again: 9 less 2 in the pot.
        ((9, 2, 1, 3), [0, 0, RAISE, CALL, 1], True),
        ((5, 2, 1, 3), [0, 0, RAISE, CALL, 1], False),
    ],
)
def test_raise_needs_the_full_amount(settings, history, can_raise):
    state = play(game_string(*settings), history)
    assert (RAISE in state.legal_actions()) == can_raise


def test_sizes():
    sizes = game_contract.measure("python_leduc_poker")
    assert sizes == game_contract.Sizes(31, 324, 540, 60, 60)
    assert sizes.histories == 895


def test_chips_that_cannot_be_bet_do_not_change_sizes():
    assert game_contract.measure(game_string(13, 13, 2)) == game_contract.measure(
        game_string(1000, 14, 2)
    )


def test_strings_of_states():
    state = play("python_leduc_poker", [2, 1, CALL, RAISE, CALL, 0, RAISE])
    assert str(state) == "cards 2 1 public 0 bets ddcrcdr chips 7 3"
    assert state.information_state_string(0) == "p0 card 2 public 0 bets ddcrcdr"
    assert state.information_state_string(1) == "p1 card 1 public 0 bets ddcrcdr"
    assert state.observation_string(1) == (
        "p1 card 1 public 0 deals 3 turn 1 chips 7 3 raises 1"
    )
    assert state.action_to_string(FOLD) == "Fold"


def test_states_share_one_betting_tree_and_deck():
    game = pyspiel.load_game(game_string(100, 100, 10))
    state = game.new_initial_state()
    for action in (0, 0, RAISE):
        state.apply_action(action)
    clone = state.clone()
    assert clone.tree is game.tree and clone.deck is game.deck
    serialized = state.serialize()
    read = game.deserialize_state(serialized)
    assert read.tree is game.tree and read.deck is game.deck
    assert len(serialized) < 1000
