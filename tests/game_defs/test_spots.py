"""Spots of hold'em: ranges, bet sizes, betting trees, and invalid parameters."""

import itertools

import numpy as np
import pyspiel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import game_defs  # noqa: F401  registers the game
from game_defs.bundled.holdem.cards import RANKS, SUITS
from game_defs.spots import bets
from game_defs.spots.betting import SpotBetting, SpotTree, lay_out
from game_defs.spots.ranges import DECK, HANDS, range_text, read_range

# A turn of few hands, and one that an all-in ends.
SETTINGS = (
    "python_poker_spot(bets=50% allin; cap 2,board=5c9dJs2h,first=oop,pot=20,"
    "ranges=AhAd AsKs:0.5;QQ AcKc,stack=30)",
    "python_poker_spot(bets=50% allin; raises 3x,board=5c9dJs2hAc,first=ip,pot=20,"
    "ranges=KK AhQh:0.25;QQ AdKd,stack=95)",
)
# Hypothesis has no deadline, because machines may have background load.
UNHURRIED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
CARDS = [rank + suit for rank in RANKS for suit in SUITS]
ALL = [frozenset(pair) for pair in itertools.combinations(CARDS, 2)]


def ranks(hand):
    """Return the ranks of the higher and of the lower card, from 0."""
    first, second = sorted((RANKS.index(card[0]) for card in hand), reverse=True)
    return first, second


RANKS_OF = {hand: ranks(hand) for hand in ALL}


def suited(hand):
    return len({card[1] for card in hand}) == 1


@st.composite
def kinds(draw):
    """Draw the text of a part of a range, with the hands that it contains."""
    high, low = draw(st.tuples(*[st.integers(0, 12)] * 2).map(sorted))[::-1]
    suit = draw(st.sampled_from(["", "s", "o"])) if high > low else ""
    shape = draw(st.sampled_from(["plain", "plus", "lower", "steps", "cards"]))
    text = RANKS[high] + RANKS[low] + suit
    if shape == "cards":
        hand = draw(st.sampled_from(ALL))
        return "".join(draw(st.permutations(sorted(hand)))), {hand}
    wanted = {(high, low)}
    if shape == "plus":
        text += "+"
        pairs, tops = range(high, 13), range(low, high)
        wanted = {(r, r) for r in pairs} if high == low else {(high, r) for r in tops}
    elif shape == "steps":
        up = draw(st.integers(0, 12 - high))
        wanted = {(high + k, low + k) for k in range(up + 1)}
        other = RANKS[high + up] + RANKS[low + up] + suit
        text = "-".join(draw(st.permutations([text, other])))
    elif shape == "lower" and high > low:
        other = draw(st.integers(0, high - 1))
        wanted = {(high, r) for r in range(min(low, other), max(low, other) + 1)}
        text += f"-{RANKS[high]}{RANKS[other]}{suit}"
    chosen = {hand for hand in ALL if RANKS_OF[hand] in wanted}
    return text, {h for h in chosen if not suit or suited(h) == (suit == "s")}


@given(st.lists(st.tuples(kinds(), st.sampled_from([None, 0.25, 0, 1])), min_size=1))
@UNHURRIED
def test_ranges_equal_their_definition(parts):
    expected, words = dict.fromkeys(ALL, 0.0), []
    for (text, hands), weight in parts:
        words.append(text if weight is None else f"{text}:{weight}")
        expected.update(dict.fromkeys(hands, 1.0 if weight is None else weight))
    read = read_range(", ".join(words))
    assert (read == read_range(" ".join(words))).all()
    for cards, weight in zip(HANDS.cards, read, strict=True):
        assert expected[frozenset(DECK.text([card]) for card in cards)] == weight


def test_ranges_have_the_known_numbers_of_hands():
    counts = {"QQ+": 18, "AK": 16, "AKs": 4, "KTo+": 36, "A5s-A2s": 16, "JTs-87s": 16}
    counts |= {"22-77": 36, "random": 1326, "AhKh": 1, "random,22+:0": 1248}
    assert {text: read_range(text).sum() for text in counts} == counts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "QQ+,AKx",
            "ranges: 'AKx' is neither a hand nor a span of hands; use notation such as",
        ),
        ("", "'' is neither a hand"),
        ("AAs", "'AAs': a pair is neither s nor o; use AA"),
        ("AhAh", "'AhAh' has the card Ah twice"),
        ("AA:2", "'AA:2': the weight after the colon is not a number from 0 to 1"),
        ("A5s-K2s", "'A5s-K2s': a span has a fixed higher card"),
        ("A5s-A2o", "'A5s-A2o' mixes suited and offsuit hands"),
        ("[50]AA", "[50] has no end; write [/50] after its last hand"),
        ("AA[/50]", "[/50] without a beginning; use notation such as [50]QQ,AKs[/50]"),
        ("[50]AA[/25]", "[/25] after [50]; use notation"),
        ("[50]AA[25]KK[/25]", "[25] inside [50]; write [/50] before it"),
        ("[150]AA[/150]", "[150] is not a percentage from 0 to 100"),
        ("[half]AA[/half]", "[half] is not a percentage"),
        ("[50]AA:0.5[/50]", "'AA:0.5' after [50] has two weights; remove one of them"),
        ("[50AA", "'[50AA' is neither a hand nor a span"),
    ],
)
def test_rejects_invalid_ranges(text, said):
    with pytest.raises(ValueError) as error:
        read_range(text)
    assert said in str(error.value)


@pytest.mark.parametrize("notation", ["pio", "gto+"])
@given(
    st.dictionaries(st.integers(0, len(HANDS) - 1), st.integers(1, 10**6)),
    st.sampled_from(["AA:0.25,AK,T9s:0.5", "random,72o:0", "A5s-A2s:0.125,AhKh:0.3"]),
)
@UNHURRIED
def test_ranges_are_written_and_read_unchanged(notation, hands, others):
    weights = read_range(others)
    weights[list(hands)] = np.array(list(hands.values())) / 10**6
    text = range_text(weights, notation)
    assert read_range(text) == pytest.approx(weights, abs=5e-7)
    assert range_text(read_range(text), notation) == text


def test_ranges_in_notations_of_other_programs():
    texts = {
        "pio": "AA,AKs:0.5,KK:0.5,QhJs:0.25",
        "gto+": "AA,[50]AKs,KK[/50],[25]QhJs[/25]",
    }
    weights = read_range(texts["pio"])
    assert weights.sum() == 6 + 2 + 3 + 0.25
    for notation, text in texts.items():
        assert (read_range(text) == weights).all()
        assert range_text(weights, notation) == text
    assert range_text(read_range("AK,AhKh:0")) == "AcKc,AdKd,AsKs,AKo"
    assert range_text(np.zeros(len(HANDS))) == ""


NUMBERS = st.integers(2, 300)
SIZES = st.one_of(
    NUMBERS.map(lambda n: (f"{n}%", bets.BetSize("%", n))),
    NUMBERS.map(lambda n: (f"{n}c", bets.BetSize("c", n))),
    NUMBERS.map(lambda n: (f"allin:{n}%", bets.BetSize("allin", n))),
    st.sampled_from(
        [("pot", bets.BetSize("%", 100)), ("All-in", bets.BetSize("allin", np.inf))]
    ),
)
RAISES = st.one_of(SIZES, NUMBERS.map(lambda n: (f"{n}x", bets.BetSize("x", n))))


@st.composite
def clauses(draw):
    """Draw the text of a clause, its sizes, and a function for whether it applies."""
    places = [
        draw(st.sampled_from([(), names[:1], names[1:], names]))
        for names in (bets.STREETS, bets.PLAYERS)
    ]
    kind = draw(st.sampled_from([None, "bets", "raises", "donks"]))
    sizes = draw(st.lists(RAISES if kind == "raises" else SIZES, max_size=3))
    where = [*places[0], *places[1], *([kind] if kind else [])]
    words = " ".join([*where, ", ".join(text for text, _ in sizes) or "none"])
    same = {"bets": ("bets", "donks"), None: bets.KINDS}

    def holds(street, player, other):
        fits = (street in (places[0] or bets.STREETS)) and (
            player in (places[1] or bets.PLAYERS)
        )
        return fits and other in same.get(kind, (kind,))

    return words, tuple(size for _, size in sizes), holds


@given(st.lists(clauses(), min_size=1, max_size=5), st.integers(0, 9))
@UNHURRIED
def test_bet_clauses_equal_their_definition(parts, cap):
    text = "; ".join([*(words for words, _, _ in parts), f"cap {cap}", "force 15%"])
    read = bets.read_bets(text)
    assert (read.cap, read.force) == (cap, 0.15)
    for place in itertools.product(bets.STREETS, bets.PLAYERS, bets.KINDS):
        last = [sizes for _, sizes, holds in parts if holds(*place)]
        assert read.sizes[place] == (last[-1] if last else ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("50%; river 2x", "'2x' is a multiple of a bet, so it applies to raises only"),
        ("big", "'big' is neither a size nor a scope; use words such as"),
        ("50%; raises", "'raises' has no size"),
        ("50%;", "'' has no size"),
        ("raises 1x", "'1x' is out of range; use a factor above 1"),
        ("0%", "'0%' is out of range"),
        ("50%; cap x", "'cap x' is invalid; use a clause such as cap 4"),
        ("50%; force 15", "'force 15' is invalid; use a clause such as force 15%"),
    ],
)
def test_rejects_invalid_bets(text, said):
    with pytest.raises(ValueError) as error:
        bets.read_bets(text)
    assert said in str(error.value)


def tree(text: str, *, pot=100, stack=1000, deal=0, first=0) -> SpotTree:
    return lay_out(SpotBetting(pot, stack, bets.read_bets(text), deal, first))


def after(spot_tree: SpotTree, *words: str) -> list[str]:
    """Return the names of the legal actions after some actions."""
    node = 0
    for word in words:
        below = spot_tree.children[node].values()
        node = next(child for child in below if spot_tree.names[child] == word)
    return [spot_tree.names[child] for child in spot_tree.children[node].values()]


def test_sizes_of_bets_and_raises():
    spot_tree = tree("50%,30c,allin:150%; raises 60%,2.5x")
    assert after(spot_tree) == ["Check", "Bet 30", "Bet 50"]
    # 60% of 200 on top of 50, and 2.5 times 50.
    assert after(spot_tree, "Bet 50") == ["Fold", "Call", "Raise 125", "Raise 170"]
    # A raise is at least as large as the previous one, which was 75.
    spot_tree = tree("50%; raises 10%,2.5x")
    assert after(spot_tree, "Bet 50", "Raise 125") == [
        "Fold",
        "Call",
        "Raise 200",
        "Raise 313",
    ]
    spot_tree = tree("50%,allin:150%", stack=150)
    assert after(spot_tree) == ["Check", "Bet 50", "Allin 150"]
    assert after(spot_tree, "Bet 50") == ["Fold", "Call", "Allin 150"]
    assert after(spot_tree, "Bet 50", "Allin 150") == ["Fold", "Call"]
    assert after(tree("50%,allin:149%", stack=150)) == ["Check", "Bet 50"]
    # The remaining 70 chips are 35% of the pot of 200.
    assert after(tree("50%; force 33%", stack=120))[1] == "Bet 50"
    assert after(tree("50%; force 35%", stack=120))[1] == "Allin 120"
    assert after(tree("200%", stack=120)) == ["Check", "Allin 120"]


def test_streets_caps_and_donk_bets():
    spot_tree = tree("40c; cap 2", deal=1)
    assert after(spot_tree, "Bet 40", "Raise 80") == ["Fold", "Call"]
    # The chips of the current street count.
    assert after(spot_tree, "Bet 40", "Call") == ["Check", "Bet 40"]
    spot_tree = tree("50%; turn oop none; river donks 20%; river ip none", deal=1)
    assert after(spot_tree) == ["Check"]
    assert after(spot_tree, "Check", "Bet 50", "Call") == ["Check", "Bet 40"]
    assert after(spot_tree, "Check", "Check") == ["Check", "Bet 50"]
    assert after(spot_tree, "Check", "Check", "Check") == ["Check"]
    spot_tree = tree("flop 50%; turn donks 20%; river 30%", deal=2)
    street = ["Check", "Bet 50", "Call"]
    assert after(spot_tree, *street) == ["Check", "Bet 40"]
    assert after(spot_tree, "Check", "Check") == ["Check"]
    assert after(spot_tree, *street, "Check", "Check") == ["Check", "Bet 60"]
    assert spot_tree.tree.dealt.max() == 2


def test_first_ip_equals_the_spot_after_a_check():
    """The tree after player 0's check equals that of first=ip."""
    last = tree("50%; oop bets none").tree
    seen = tree("50%; oop bets none", first=1).tree
    assert last.player[1:].tolist() == seen.player.tolist()
    assert last.stake[1:].tolist() == seen.stake.tolist()


def load(**given) -> pyspiel.Game:
    usual = {"board": "5c9dJs2h3c", "ranges": "AA;KK", "bets": "pot"}
    return pyspiel.load_game("python_poker_spot", {**usual, **given})


def test_deal_probabilities_are_products_of_weights():
    game = load(ranges="AhAd AsKs:0.5;AcAd:0.25 QsQd")
    deals = {}
    for first, chance in game.new_initial_state().chance_outcomes():
        state = game.new_initial_state().child(first)
        for second, given_first in state.chance_outcomes():
            after = str(state.child(second)).split()[1:3]
            deals[" ".join(after)] = chance * given_first
    total = 1 + 0.5 * 0.25 + 0.5  # AhAd against AcAd cannot be
    expected = {"AhAd QsQd": 1, "AsKs AdAc": 0.5 * 0.25, "AsKs QsQd": 0.5}
    assert deals == pytest.approx({key: w / total for key, w in expected.items()})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"board": "5c9dJs2h5c"}, "board='5c9dJs2h5c' has 5c twice"),
        ({"board": "5c9d"}, "has 2 cards; use 3 different cards (a flop)"),
        ({"board": "5c9dJx2h"}, "is not a list of cards; use ranks from"),
        ({"pot": 0}, "pot=0 is out of range"),
        ({"stack": -1}, "stack=-1 is out of range"),
        ({"first": "sb"}, "first='sb' is unknown"),
        ({"ranges": "AA"}, "1 ranges; use two"),
        ({"ranges": "AA;5c9d"}, "player 1 has no possible hand on the board 5c9d"),
        ({"ranges": "AK:0;AA"}, "player 0 has no possible hand"),
        ({"ranges": "AhKh;AhQh"}, "all pairs of hands share a card"),
        ({"ranges": "AA;AKz"}, "ranges: 'AKz' is neither a hand"),
        ({"bets": "huge"}, "bets: 'huge' is neither a size"),
        ({"bets": "1% 2% 3% 5% 7%", "stack": 5000}, "more than 50000 public nodes"),
    ],
)
def test_rejects_invalid_parameters(given, said):
    with pytest.raises(ValueError) as error:
        load(**given)
    assert said in str(error.value)
