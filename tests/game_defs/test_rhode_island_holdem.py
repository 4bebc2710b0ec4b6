"""Rhode Island Hold'em, compared with independent references."""

import collections
import functools
import itertools
import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from game_defs import rhode_island_holdem
from spiel_cr.games.tree import batched_check
from spiel_cr.policies import conversions
from spiel_cr.solvers import lp
from tests.game_defs.test_three_card_hands import hand_value
from tests.support import game_contract, lp_reference
from tests.support.states import play

slow = pytest.mark.slow
CHANCE, TERMINAL = int(pyspiel.PlayerId.CHANCE), int(pyspiel.PlayerId.TERMINAL)
FOLD, CALL, RAISE = 0, 1, 2
NAME = "python_rhode_island_holdem"


def game_string(num_ranks=13, num_suits=4, ante=5, bets="10 20 20", max_bets=3):
    return (
        f"{NAME}(ante={ante},bets={bets},max_bets={max_bets},num_ranks={num_ranks},"
        f"num_suits={num_suits})"
    )


# Small enough for full trees: 2,705 histories each.
SMALL = game_string(2, 2, ante=1, bets="1 2 4", max_bets=1)
ONE_SUIT = game_string(4, 1, ante=1, bets="1 2 4", max_bets=1)
SETTINGS = [SMALL, ONE_SUIT]
LARGE_SETTINGS = [NAME, game_string(3, 2, ante=2, bets="7 5 1000", max_bets=2)]
MORE = [
    game_string(2, 2, max_bets=2),
    game_string(5, 1, bets="1 1 1", max_bets=1),
    game_string(3, 2, max_bets=1),
]


def reference(settings, history):
    """Return mover, legal actions of a player, and returns, independently."""
    num_ranks, num_suits, ante, sizes, max_bets = settings
    deck = [(rank, suit) for rank in range(num_ranks) for suit in range(num_suits)]
    actions = list(history)
    pot = [ante, ante]
    if len(actions) < 2:
        return CHANCE, None, [0, 0]
    private, board = [deck[actions.pop(0)] for _ in "01"], []
    for number, size in enumerate(sizes):
        if number:
            if not actions:
                return CHANCE, None, [0, 0]
            board.append(deck[actions.pop(0)])
        bets, checks, player = 0, 0, 0
        while checks < 2:
            other = 1 - player
            if not actions:
                legal = [CALL] if pot[0] == pot[1] else [FOLD, CALL]
                return player, legal + [RAISE] * (bets < max_bets), [0, 0]
            action = actions.pop(0)
            if action == FOLD:
                lost = pot[player]
                return TERMINAL, None, [lost, -lost] if player else [-lost, lost]
            called = pot[player] < pot[other]
            pot[player] = pot[other] + size * (action == RAISE)
            bets += action == RAISE
            # A call of a bet ends the round, as the second check does.
            checks = 0 if action == RAISE else 2 if called else checks + 1
            player = other
    assert pot[0] == pot[1]
    best = [hand_value([card, *board], num_ranks) for card in private]
    sign = (best[0] > best[1]) - (best[0] < best[1])
    return TERMINAL, None, [sign * pot[0], -sign * pot[0]]


def settings_of(game):
    given = game.get_parameters()
    sizes = [int(size) for size in given["bets"].split()]
    numbers = (given[name] for name in ("num_ranks", "num_suits", "ante"))
    return *numbers, sizes, given["max_bets"]


def betting_strings(max_bets):
    """Yield the bets and deals before each decision, and the acting player."""
    begun = [
        opening + "r" * bets for opening in ("", "c") for bets in range(max_bets + 1)
    ]
    ended = ["cc", *(text + "c" for text in begun if "r" in text)]
    for past in range(3):
        for rounds in itertools.product(ended, repeat=past):
            for now in begun:
                yield "dd" + "".join(done + "d" for done in rounds) + now, len(now) % 2


def information_states(num_ranks, num_suits, max_bets):
    """Return the information state strings of each player."""
    ranks = "23456789TJQK"[: num_ranks - 1] + "A"
    deck = [rank + suit for rank in ranks for suit in "cdhs"[:num_suits]]
    strings = ([], [])
    for bets, player in betting_strings(max_bets):
        for own, *board in itertools.permutations(deck, bets.count("d") - 1):
            flop, turn = [*board, "-", "-"][:2]
            strings[player].append(
                f"p{player} card {own} flop {flop} turn {turn} bets {bets}"
            )
    return strings


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=slow)])
def test_openspiel_api(whole):
    game_contract.check_api(SMALL, game_contract.measure(SMALL) if whole else None)


@pytest.mark.parametrize(
    ("game", "num_games"),
    [
        *((game, 0) for game in SETTINGS),
        *((game, 60) for game in LARGE_SETTINGS),
        *(pytest.param(game, 0, marks=slow) for game in MORE),
    ],
)
def test_rules_and_returns_equal_the_reference(game, num_games):
    """Compare all states, or those of random games."""
    if num_games:
        tree = game_contract.sampled_tree(game, num_games=num_games)
    else:
        tree = game_contract.full_tree(game)
    settings = settings_of(tree.game)
    for node in tree.nodes:
        state = node.state
        mover, legal, returns = reference(settings, state.history())
        assert state.returns() == returns, state
        assert state.current_player() == mover, state
        if legal is not None:
            assert state.legal_actions() == legal, state


@pytest.mark.parametrize(
    ("cards", "bets", "value"),
    [
        # A fold costs the chips that the player has bet.
        ("As Kd", "rf", 5),
        ("As Kd", "crf", -5),
        ("As Kd 2c", "rrc rrf", -45),
        ("As Kd 2c 3c", "cc cc crrrf", -45),
        # Each round has three bets, which is the maximum.
        ("2s Kd 2c 3c", "rrrc crrrc rrrc", 155),
        # Each category of hands beats the next one; equal hands tie.
        ("5c 4h 4c 3c", "cc cc cc", 5),
        ("4h Ah 4c 4d", "cc cc rc", 25),
        ("5h 8c 4c 3c", "cc cc rc", 25),
        ("5c Kh Jc Kc", "cc cc rc", 25),
        ("Kh As Kc 9d", "cc cc rc", 25),
        ("Ah Kh 9c 2d", "cc cc rc", 25),
        ("Ah Ad 9c 2d", "rrrc rrrc rrrc", 0),
        # The ace is high or low in straights, but not in the middle.
        ("Ah 4s 3c 2d", "rc cc cc", -15),
        ("Ah Js Kc Qd", "rc cc cc", 15),
        ("2h Js Ac Kd", "rc cc cc", -15),
    ],
)
def test_returns_of_hand_computed_games(cards, bets, value):
    names = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
    dealt = [names.index(card) for card in cards.split()]
    history, dealt = dealt[:2], dealt[2:]
    for number, text in enumerate(bets.split()):
        history += dealt[number - 1 : number] if number else []
        history += ["fcr".index(letter) for letter in text]
    state = play(NAME, history)
    assert state.is_terminal()
    assert state.returns() == [value, -value]


def test_sizes():
    sizes = game_contract.measure(SMALL)
    assert sizes == game_contract.Sizes(257, 1200, 1248, 512, 512)
    assert sizes.histories == 2705


@pytest.mark.parametrize(
    ("deck", "max_bets"), [((2, 2), 1), pytest.param((3, 2), 3, marks=slow)]
)
def test_infosets_equal_an_independent_enumeration(deck, max_bets):
    tree = spiel_cr.build_tree(game_string(*deck, max_bets=max_bets))
    for player, strings in enumerate(information_states(*deck, max_bets)):
        keys = list(tree.infosets[player].keys)
        assert len(keys) == len(strings)
        assert set(keys) == set(strings)


def test_sizes_of_the_complete_game():
    """Compare published numbers of nodes, terminal nodes and linear program rows."""
    tree = pyspiel.load_game(NAME).tree
    deals = [math.perm(52, bets.num_deals) for bets in tree.bets]
    assert sum(deals) == 6_705_372_545
    ended = [n for n, mover in zip(deals, tree.mover, strict=True) if mover == TERMINAL]
    assert sum(ended) == 4_144_428_912
    infosets, sequences = collections.Counter(), collections.Counter()
    for bets, legal in zip(tree.bets, tree.legal, strict=True):
        # A player observes all cards except the opponent's.
        seen = math.perm(52, max(bets.num_deals - 1, 0))
        infosets[bets.mover] += seen
        sequences[bets.mover] += seen * len(legal)
    assert infosets[0] == infosets[1] == 26_064_064
    assert infosets[0] + 1 + sequences[1] + 1 == 91_224_226


@functools.cache
def equities():
    """Return the equity float [own, flop, turn], and whether the cards can be dealt."""
    deck = pyspiel.load_game(NAME).deck
    strength = deck.strength.astype(int)
    dealt = strength >= 0
    wins = sum(
        dealt[other] * np.sign(strength - strength[other]) for other in range(52)
    )
    return np.where(dealt, wins / 49, 0.0), dealt


def value_against_uniform(responder):
    """Return the best-response value of `responder`, or the uniform value for None.

    Uniform play reveals nothing about the opponent's card, so values depend only on the
    responder's card and the public cards.
    """
    tree = pyspiel.load_game(NAME).tree
    equity, dealt = equities()
    levels, place = np.unique(equity, return_inverse=True)
    place = place.reshape(equity.shape)
    side = responder or 0

    def value(row):
        bets = tree.bets[row]
        below = [value(child) for child in tree.children[row] if child >= 0]
        if bets.mover == CHANCE:
            if bets.num_deals == 3:
                return (below[0][place] * dealt).sum(axis=2) / 50
            if bets.num_deals == 2:
                return (below[0] * dealt.any(axis=2)).sum(axis=1) / 51
            return below[0].mean()
        if bets.mover == TERMINAL:
            if bets.folded >= 0:
                return min(bets.chips) * (1 if bets.folded != side else -1)
            return min(bets.chips) * levels
        if bets.mover == responder:
            return functools.reduce(np.maximum, below)
        return sum(below) / len(below)

    return float(value(0))


@pytest.mark.parametrize(
    ("responder", "wanted"), [(None, 1.781322), (0, 27.462078), (1, 29.533377)]
)
def test_values_against_uniform_play(responder, wanted):
    # Two other programs agree on these six decimals.
    assert value_against_uniform(responder) == pytest.approx(wanted, abs=5e-7)


@pytest.mark.parametrize("game", [ONE_SUIT, pytest.param(MORE[-1], marks=slow)])
def test_two_solvers_agree(game):
    tree = spiel_cr.build_tree(game)
    plans = [lp.realisation_plan(tree.sequence_form, player) for player in range(2)]
    (reach0, value, _), (reach1, minus, _) = plans
    # The accuracy of the solvers is relative to the utilities.
    accuracy = 1e-7 * tree.game.max_utility()
    assert value == pytest.approx(-minus, abs=accuracy)
    assert value == pytest.approx(lp_reference.game_value(tree.game), abs=accuracy)
    behaviour = [
        conversions.behaviour_from_reach(infosets.decisions, reach)
        for infosets, reach in zip(tree.infosets, (reach0, reach1), strict=True)
    ]
    policy = conversions.tabular_policy(tree, behaviour)
    nash_conv = exploitability.nash_conv(tree.game, policy)
    assert nash_conv == pytest.approx(0, abs=accuracy)


def test_value_of_a_game_with_one_suit():
    value = lp_reference.game_value(pyspiel.load_game(ONE_SUIT))
    assert value == pytest.approx(-1 / 24, abs=1e-8)


@pytest.mark.parametrize(
    ("game", "seed", "rollouts", "most"),
    [
        *((game, 0, 30, 3_000) for game in (SMALL, *LARGE_SETTINGS)),
        *(
            pytest.param(game, 1, 1_000, 60_000, marks=slow)
            for game in (NAME, *MORE, game_string(max_bets=10))
        ),
    ],
)
def test_batched_rules_equal_openspiel(game, seed, rollouts, most):
    random = np.random.default_rng(seed)
    batched_check.check(game, random, rollouts=rollouts, max_histories=most)


@pytest.mark.parametrize(
    "bets", ["", "10", "10 20", "10 20 20 20", "10,20,20", "1.5 2 2", "-1 2 2", "a b c"]
)
def test_rejects_malformed_bets(bets):
    with pytest.raises(ValueError, match=f"{NAME}: bets='{bets}'.*bets=10 20 20"):
        rhode_island_holdem.RhodeIslandHoldemGame({"bets": bets})


@pytest.mark.parametrize("bets", ["0 20 20", "10 20 1001"])
def test_rejects_bets_out_of_range(bets):
    with pytest.raises(ValueError, match=f"{NAME}: bets=.*from 1 to 1000"):
        pyspiel.load_game(NAME, {"bets": bets})


@pytest.mark.parametrize("deck", [(2, 1), (3, 1)])
def test_rejects_decks_that_are_too_small(deck):
    with pytest.raises(ValueError, match="num_ranks=.*num_suits=1.*4 are dealt"):
        pyspiel.load_game(game_string(*deck))


def test_strings_of_states():
    state = play(NAME, [51, 0, CALL, RAISE, CALL, 33, RAISE])
    assert str(state) == ("cards As 2c flop Td turn - bets ddcrcdr chips 35 15")
    assert state.information_state_string(0) == (
        "p0 card As flop Td turn - bets ddcrcdr"
    )
    assert state.observation_string(1) == (
        "p1 card 2c flop Td turn - deals 3 turn 1 chips 35 15 raises 1"
    )
    names = [state.action_to_string(action) for action in state.legal_actions()]
    assert names == ["Fold", "Call", "Raise"]
    assert play(NAME, [0]).action_to_string(51) == "Deal As"


def test_small_decks_contain_aces():
    state = play(game_string(3, 2), [5, 0])
    assert state.information_state_string(0) == "p0 card Ad flop - turn - bets dd"


def test_states_share_tables_and_serialize_small():
    game = pyspiel.load_game(NAME)
    state = game.new_initial_state()
    for action in (51, 0, RAISE):
        state.apply_action(action)
    read = game.deserialize_state(state.serialize())
    for copy in (state.clone(), read):
        assert copy.tree is game.tree
        assert copy.deck is game.deck
    assert len(state.serialize()) < 1000


@pytest.mark.parametrize("num_suits", [1, 2, 3, 4])
def test_private_states_merge_exactly_equivalent_suits(num_suits):
    """Compare all hands with all permutations of suits."""
    num_ranks = 4 if num_suits == 1 else 2
    game = pyspiel.load_game(game_string(num_ranks, num_suits))
    rules = game.batched_rules()
    cards = range(num_ranks * num_suits)
    for player, number in itertools.product(range(2), (1, 2, 3)):
        hands = list(itertools.permutations(cards, number))
        packed = np.zeros(len(hands), np.int64)
        for deal, column in zip((player, 2, 3), zip(*hands, strict=True), strict=False):
            packed |= (np.array(column) + 1) << 6 * deal
        # The other player's card does not matter.
        packed |= np.int64(1 + cards[-1]) << 6 * (1 - player)
        states = np.column_stack([np.zeros_like(packed), packed])
        private_states = rules.private_state(states, player)
        first = {}
        for hand, private_state in zip(hands, private_states.tolist(), strict=True):
            ranks = tuple(card // num_suits for card in hand)
            least = min(
                tuple(order[card % num_suits] for card in hand)
                for order in itertools.permutations(range(num_suits))
            )
            assert first.setdefault((ranks, least), private_state) == private_state
        assert len(set(first.values())) == len(first)


def test_names_of_private_states():
    rules = pyspiel.load_game(NAME).batched_rules()
    states = np.array([[0, 52 | 1 << 6], [0, 52 | 1 << 6 | 34 << 12 | 6 << 18]])
    assert rules.private_state_names(states, 0) == ["As", "As | Td 3d"]
    assert rules.private_state_names(states, 1) == ["2c", "2c | Td 3d"]
