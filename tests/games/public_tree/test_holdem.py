"""`universal_poker` in public-tree form equals the game that OpenSpiel plays."""

import functools
import itertools

import numpy as np
import pyspiel
import pytest

import spiel_cr
from game_defs.bundled import public_tree_of_universal_poker
from game_defs.bundled.holdem import betting as public_tree
from game_defs.bundled.holdem.cards import HoldemDeck
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree import public_tree_loading
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import BoardHands, HandMatrix
from spiel_cr.policies.best_responses import expected_value, nash_conv, reach_of
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr.cfr import make_solver
from tests.support import public_tree_walks as walks

slow = pytest.mark.slow
RNG = np.random.default_rng
FULL = "numSuits=4,numRanks=13,numHoleCards=2,numRounds=4,numBoardCards=0 3 1 1,"
LIMIT = (
    "betting=limit,blind=40 40,firstPlayer=2 1 1 1,raiseSize=10 10 20 20,"
    "maxRaises=3 4 4 4,potSize=80,"
)
NO_LIMIT = (
    "betting=nolimit,blind=100 50,firstPlayer=2 1 1 1,stack=1000 1000,potSize=200,"
)
RIVER, TURN = "boardCards=5c9dJs2h3c", "boardCards=5c9dJs2h"


def small(
    *,
    suits: int = 2,
    ranks: int = 3,
    hole: int = 1,
    deals: str = "0 1",
    board: str = "",
    pot: int = 0,
    more: str = "stack=6 6,",
) -> str:
    """Return the parameters of a game of two rounds with few cards."""
    return (
        f"numRounds=2,blind={pot // 2 or 1} {pot // 2 or 1},firstPlayer=1 1,"
        f"raiseSize=2 4,maxRaises=2 2,"
        f"numSuits={suits},numRanks={ranks},numHoleCards={hole},"
        f"numBoardCards={deals},{more}potSize={pot},boardCards={board}"
    )


def load(parameters: str) -> pyspiel.Game:
    return pyspiel.load_game(f"universal_poker(numPlayers=2,{parameters})")


@functools.cache
def public_tree_game(parameters: str, *, suits: bool = True) -> PublicTreeGame:
    game = load(parameters)
    declared = public_tree_of_universal_poker(game, suits=suits)
    made = public_tree_loading.from_declaration(game, declared)
    made.check()
    return made


LIMIT_BETS = "betting=limit,"
FEW_BETS = LIMIT_BETS + "maxRaises=1 1,"
SMALL = (
    small(),
    small(more="stack=6 4,"),
    small(more=LIMIT_BETS),
    small(more="stack=6 6,bettingAbstraction=fc,"),
    small(more="stack=3 3,bettingAbstraction=fullgame,"),
    # The first has no public cards, the second has one before any bet.
    small(deals="0 0"),
    small(deals="1 0", ranks=2),
    # A river with a small deck.
    small(ranks=4, hole=2, deals="3 1", board="2c3c4c2d", pot=4),
)
LARGER = (
    small(suits=4),
    small(ranks=6),
    small(more="stack=9 9,bettingAbstraction=fchpa,"),
    small(suits=3, ranks=2, hole=2, more=LIMIT_BETS),
    small(suits=4, ranks=3, deals="0 2", more=FEW_BETS),
    small(suits=2, ranks=5, hole=2, deals="3 1", board="2c3c4c", pot=4),
)


def slow_param(parameters):
    return pytest.param(parameters, marks=slow)


def check_value(parameters: str) -> None:
    """Check that a random policy has its value by OpenSpiel in this form, too."""
    game = public_tree_game(parameters)
    policy = walks.random_policy(game, RNG(0))
    value = walks.value_of_states(game, policy, game.game.new_initial_state())
    assert abs(walks.value_of_form(game, policy) - value) < 1e-12


@pytest.mark.parametrize("parameters", [*SMALL, *map(slow_param, LARGER)])
def test_values_of_random_policies_equal_those_of_openspiel(parameters):
    check_value(parameters)


@pytest.mark.parametrize(
    "parameters", [SMALL[-1], *map(slow_param, SMALL[:-1] + LARGER)]
)
def test_best_response_gains_equal_those_of_openspiel(parameters):
    """Compare NashConv of uniform play with OpenSpiel's."""
    game = public_tree_game(parameters)
    form = game.build_sequence_form(products=True)
    uniform = [uniform_behaviour(own) for own in form.decisions]
    gains = nash_conv(form, reach_of(form, (uniform[0], uniform[1])))
    play = pyspiel.UniformRandomPolicy(game.game)
    assert abs(gains - pyspiel.nash_conv(game.game, play)) < 1e-12


def reach_text(reach: np.ndarray) -> str:
    return "handReaches=" + " ".join(map(repr, reach.ravel().tolist()))


def few_hands(count: int, rng: np.random.Generator) -> str:
    """Return ranges of a few random hands each, with random weights."""
    reach = np.zeros((2, 1326))
    for row in reach:
        row[rng.choice(1326, count, replace=False)] = rng.random(count)
    return reach_text(reach)


@slow  # OpenSpiel lists 1 624 350 deals.
@pytest.mark.parametrize("board", [RIVER, TURN])
def test_values_with_ranges_equal_those_of_openspiel(board):
    check_value(NO_LIMIT + FULL + board + "," + few_hands(4, RNG(3)))


@slow
def test_nash_conv_with_ranges_equals_that_of_the_game_tree():
    """Both forms are built from the game string that contains the ranges."""
    string = str(load(NO_LIMIT + FULL + RIVER + "," + few_hands(60, RNG(7))))
    found = [
        spiel_cr.solve(
            string, "cfr+", 50, options=spiel_cr.GameOptions(form)
        ).nash_conv()
        for form in ("public-tree", "tree")
    ]
    # Regrets differ by rounding, and regret matching propagates the differences.
    assert abs(found[0] - found[1]) < 1e-9


def test_products_of_weights_are_deal_probabilities():
    """Compare products of two hands' weights with OpenSpiel's chance probabilities."""
    ranges = few_hands(100, RNG(4))
    game = public_tree_game(
        "bettingAbstraction=fc," + NO_LIMIT + FULL + TURN + "," + ranges
    )
    # Players can only check, so the only payoff matrix is the river showdown.
    (matrix,) = game.payoff_matrices
    weights: list[dict] = [{}, {}]
    for weight, hands in zip(weights, matrix.hands, strict=True):
        for cards, one in zip(hands.cards.tolist(), hands.weight, strict=True):
            weight[tuple(cards)] = one
    met = 0
    for action, chance in game.game.new_initial_state().chance_outcomes():
        if chance == 0:
            continue
        first, second = np.sort(np.array(np.unravel_index(action, (52,) * 4))[[0, 1]])
        third, fourth = np.sort(np.array(np.unravel_index(action, (52,) * 4))[[2, 3]])
        product = weights[0][first, second] * weights[1][third, fourth]
        # 44 rivers, all equally likely.
        assert abs(product * 44 / chance - 1) < 1e-12
        met += 1
    assert met > 1_000


@pytest.mark.parametrize("factors", [(1e170, 1e170), (1e-170, 1e-170), (1e40, 1e-40)])
def test_scaling_a_range_does_not_change_payoffs(factors):
    """The factors would overflow or underflow in float32."""
    game = NO_LIMIT + FULL + RIVER + ",bettingAbstraction=fc,"
    reach = np.zeros((2, 1326))
    rng = RNG(8)
    for row in reach:
        row[rng.choice(1326, 40, replace=False)] = rng.random(40)
    (plain,) = public_tree_game(game + reach_text(reach)).payoff_matrices
    (scaled,) = public_tree_game(
        game + reach_text(reach * np.c_[factors].T)
    ).payoff_matrices
    for hands, expected in zip(scaled.hands, plain.hands, strict=True):
        # The ratio is one power of two, which the other player's weights compensate.
        ratio = hands.weight / expected.weight
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
        assert 0.1 < ratio[0] < 10 and 1e-6 < hands.weight.max() < 1
    found, entries = scaled.coordinates(), plain.coordinates()
    np.testing.assert_allclose(found.values, entries.values, rtol=1e-12)


def place_of(text: str) -> int:
    """Return a hand's index in OpenSpiel's list of ranges."""
    order = [rank * 4 + suit for rank in range(13) for suit in (3, 2, 1, 0)]
    cards = tuple(sorted(HoldemDeck(13, 4).cards(text), key=order.index))
    return list(itertools.combinations(order, 2)).index(cards)


def test_undealt_hands_do_not_affect_the_scale_of_weights():
    """A huge weight of a hand that is never dealt does not hide the other weights."""
    reach = np.zeros((2, 1326))
    reach[0, place_of("AhAs")] = 1e300
    reach[0, place_of("KhKs")] = reach[1, place_of("AcAs")] = 1e-300
    parameters = "bettingAbstraction=fc," + NO_LIMIT + FULL + RIVER
    game = public_tree_game(parameters + "," + reach_text(reach))
    (matrix,) = game.payoff_matrices
    assert game.num_private_states(0) == game.num_private_states(1) == [1]
    # Aces win.
    assert matrix.coordinates().values == pytest.approx([-1])


def test_hands_that_block_all_opposing_hands_are_removed():
    """Such hands are never dealt, and neither are hands that contain the river card."""
    deck, reach = HoldemDeck(13, 4), np.zeros((2, 1326))
    for player, text in ((0, "AhAs"), (0, "KhKs"), (1, "QhKh"), (1, "AcAs")):
        reach[player, place_of(text)] = 1
    river, turn = (
        public_tree_game(NO_LIMIT + FULL + board + "," + reach_text(reach))
        for board in (RIVER, TURN)
    )
    # AhAs can only meet QhKh, and KhKs can only meet AcAs.
    assert river.num_private_states(0) == river.num_private_states(1) == [2]
    # 44 rivers for each.
    assert turn.num_private_states(0) == turn.num_private_states(1) == [2, 88]
    reach[1, place_of("AcAs")] = 0
    river = public_tree_game(NO_LIMIT + FULL + RIVER + "," + reach_text(reach))
    assert river.num_private_states(0) == river.num_private_states(1) == [1]
    with pytest.raises(ValueError, match="player 0 is never dealt KhKs"):
        river.reader.find(0, deck.cards("KhKs"), [])


def payoff_entry(matrix: HandMatrix, first: int, second: int) -> float:
    """Return the payoff of two private states."""
    chosen = [
        BoardHands(*(column[hands.private_state == private_state] for column in hands))
        for hands, private_state in zip(matrix.hands, (first, second), strict=True)
    ]
    one = HandMatrix(
        matrix.round,
        matrix.shape,
        (chosen[0], chosen[1]),
        matrix.showdown,
    )
    return float(one.coordinates().values.sum())


@pytest.mark.parametrize(
    ("parameters", "ways"),
    [
        (NO_LIMIT + FULL + RIVER, 1081 * 990),
        # Two private deals, then one of 44 rivers.
        (LIMIT + FULL + TURN, 1128 * 1035 * 44),
    ],
    ids=["no-limit river", "limit turn"],
)
def test_payoffs_equal_returns_of_random_play(parameters, ways):
    """Stake times matrix entry equals returns times the probability of the deal."""
    game, rng = public_tree_game(parameters), RNG(5)
    kinds = set()
    for _ in range(150):
        state, node = game.game.new_initial_state(), 0
        while not state.is_terminal():
            action = int(rng.choice(state.legal_actions()))
            if not state.is_chance_node():
                below = walks.children(game, node)
                node = below[game.betting.action[below] == action][0]
            state.apply_action(action)
        (term,) = np.flatnonzero(game.terms.leaf == node)
        matrix = game.payoff_matrices[game.terms.matrix[term]]
        private_states = [
            game.reader.private_state(state, player) for player in range(2)
        ]
        paid = game.terms.stake[term] * payoff_entry(matrix, *private_states)
        last = matrix.round == game.num_rounds - 1
        chance = 1 / ways if last else 44 / ways
        assert abs(paid - state.returns()[0] * chance) < 1e-9 * chance
        kinds.add((matrix.round, matrix.showdown))
    assert len(kinds) == len(game.payoff_matrices)


def private_state_map(
    short: PublicTreeGame, long: PublicTreeGame, player: int, size: int
) -> list:
    """Map the private states of a game to those of the game with merged suits.

    Args:
      short: The game in which equivalent suits are merged.
      long: The game in which they are not.
      player: The player whose private states are mapped.
      size: Number of public cards that are dealt before the last round.

    Returns:
      For each round, int [H of long], private states of `short`.
    """
    given = short.game.get_parameters()
    deck = HoldemDeck(given["numRanks"], given["numSuits"])
    board = deck.cards(given["boardCards"])
    left = [card for card in range(len(deck)) if card not in board]
    found = []
    for round, total in enumerate(long.num_private_states(player)):
        stands_for = np.full(total, -1)
        for public in itertools.combinations(left, size * round):
            for hand in itertools.combinations(left, given["numHoleCards"]):
                if set(hand).isdisjoint(public):
                    private_state = long.reader.find(player, hand, public)
                    assert stands_for[private_state] == -1
                    stands_for[private_state] = short.reader.find(player, hand, public)
        assert (np.bincount(stands_for) > 0).all()
        found.append(stands_for)
    return found


def count_distinct_hands(game: pyspiel.Game, size: int) -> int:
    """Count hands with `size` more public cards up to renaming of suits."""
    given = game.get_parameters()
    deck = HoldemDeck(given["numRanks"], given["numSuits"])
    first = {divmod(card, deck.num_suits) for card in deck.cards(given["boardCards"])}
    cards = set(itertools.product(range(deck.num_ranks), range(deck.num_suits))) - first
    renamings = [
        dict(enumerate(suits))
        for suits in itertools.permutations(range(deck.num_suits))
        if {(rank, suits[suit]) for rank, suit in first} == first
    ]
    least = set()
    for public in itertools.combinations(sorted(cards), size):
        for hand in itertools.combinations(
            sorted(cards.difference(public)), given["numHoleCards"]
        ):
            both = public, hand
            least.add(
                min(
                    tuple(
                        tuple(sorted((rank, new[suit]) for rank, suit in some))
                        for some in both
                    )
                    for new in renamings
                )
            )
    return len(least)


def check_suits(parameters: str, size: int) -> None:
    """Check that merging equivalent suits does not change values.

    Against a random policy of the other player, the values of the private states that
    are merged sum to the value of the merged private state.

    Args:
      parameters: Parameters of the game.
      size: Number of public cards that are dealt before the last round.
    """
    short, long = (
        public_tree_game(parameters),
        public_tree_game(parameters, suits=False),
    )
    counts = [
        count_distinct_hands(short.game, size * round)
        for round in range(short.num_rounds)
    ]
    assert short.num_private_states(0) == short.num_private_states(1) == counts
    policy = walks.random_policy(short, RNG(6))
    lifts = [private_state_map(short, long, player, size) for player in range(2)]
    matrices = [
        [
            walks.dense_payoff_matrix(game, matrix)
            for matrix in range(len(game.payoff_matrices))
        ]
        for game in (short, long)
    ]
    for player in range(2):
        reach = walks.reaches(short, policy, 1 - player)
        for leaf, matrix, stake in zip(*short.terms, strict=True):
            few, many = (each[matrix] for each in matrices)
            if player == 1:
                few, many = few.T, many.T
            round = short.betting.round[leaf]
            own, other = lifts[player][round], lifts[1 - player][round]
            values = many @ reach[leaf][other]
            summed = np.bincount(own, values, minlength=len(few))
            assert np.abs(stake * (summed - few @ reach[leaf])).max() < 1e-12


@pytest.mark.parametrize(
    "board",
    [
        "2c3c4c5c",  # one suit: the other three are equivalent
        "2c3c4d5d",  # two suits: the other two are equivalent
        "2c3c2d3d",  # and these two as well, in pairs
        "2c2d3h4h",  # three suits, two of which are equivalent
        "2c3d4h5h",  # three suits, none equivalent
        "2c2d2h3c",
        "2c2d2h2s",
        "2c3d4h5s",
    ],
)
def test_merging_suits_on_turns_preserves_payoffs(board):
    parameters = small(
        suits=4, ranks=4, hole=2, deals="4 1", board=board, pot=4, more=FEW_BETS
    )
    check_suits(parameters, 1)


@slow
@pytest.mark.parametrize(
    ("deals", "board", "size"), [("0 1", "", 1), ("0 3", "", 3), ("3 2", "2c3d4h", 2)]
)
def test_merging_suits_of_other_boards_preserves_payoffs(deals, board, size):
    parameters = small(suits=4, ranks=3, deals=deals, board=board, pot=4, more=FEW_BETS)
    check_suits(parameters, size)


@slow
@pytest.mark.parametrize("board", ["2c3c4c5c", "2c3c2d3d", "2c2d3h4h"])
def test_merging_suits_does_not_change_iterates(board):
    """CFR+ plays equivalent suits equally, so merging them does not change iterates."""
    parameters = small(
        suits=4, ranks=4, hole=2, deals="4 1", board=board, pot=4, more=FEW_BETS
    )
    found = []
    for suits in (True, False):
        form = public_tree_game(parameters, suits=suits).build_sequence_form(
            products=True
        )
        solver = make_solver(form, config=find("cfr+").config)
        solver.run(20)
        reach = solver.average(0), solver.average(1)
        found.append((nash_conv(form, reach), expected_value(form, reach)))
    # Regrets differ by rounding, and regret matching propagates the differences.
    assert np.abs(np.subtract(*found)).max() < 1e-9


def test_suits_that_ranges_distinguish_are_not_merged():
    """On a monotone river, three suits are equivalent unless ranges differ."""
    river = "bettingAbstraction=fc," + NO_LIMIT + FULL + "boardCards=5c9cJc2c3c,"
    reach = np.ones((2, 1326))
    alike = public_tree_game(river + reach_text(reach))
    # The three of hearts with the two of diamonds, in OpenSpiel's order of hands.
    reach[1, 103] = 0.5
    apart = public_tree_game(river + reach_text(reach))
    # Two clubs; one club and a rank; two ranks of one suit; two ranks of two suits.
    assert (
        alike.num_private_states(0)
        == alike.num_private_states(1)
        == [28 + 8 * 13 + 78 + 91]
    )
    assert apart.num_private_states(0) == apart.num_private_states(1) == [1081]
    (matrix,) = apart.payoff_matrices
    private_state = apart.reader.find(1, HoldemDeck(13, 4).cards("2d3h"), [])
    weights = matrix.hands[1].weight
    light = matrix.hands[1].private_state == private_state
    assert light.sum() == 1
    assert abs(weights[light] / weights[~light] - 0.5).max() < 1e-12


@slow
def test_numbers_of_hands_equal_published_ones():
    """There are 169 hands before the flop and 1,286,792 after it."""
    preflop = (
        "numRounds=2,numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3,"
        "betting=limit,blind=40 40,firstPlayer=2 1,raiseSize=10 10,maxRaises=3 4"
    )
    game = public_tree_game(preflop)
    assert game.num_private_states(0) == game.num_private_states(1) == [169, 1_286_792]


def test_private_states_are_named_by_cards():
    game = public_tree_game(NO_LIMIT + FULL + RIVER)
    deck = HoldemDeck(13, 4)
    private_state = game.reader.find(1, deck.cards("QdKh"), [])
    assert game.reader.name(1, 0, private_state) == "KhQd | 5c9dJs2h3c"
    turn = public_tree_game(NO_LIMIT + FULL + TURN)
    private_state = turn.reader.find(0, deck.cards("KhQd"), deck.cards("3c"))
    assert turn.reader.name(0, 1, private_state) == "KhQd | 5c9dJs2h3c"
    above = turn.ancestors(0, 1, 0)[private_state]
    assert turn.reader.name(0, 0, above) == "KhQd | 5c9dJs2h"
    one = public_tree_game(small())
    assert {one.reader.name(0, 0, private_state) for private_state in range(3)} == {
        "2c",
        "3c",
        "4c",
    }


def test_reader_rejects_states_and_hands_without_private_state():
    ranges = few_hands(4, RNG(3))
    game = public_tree_game(NO_LIMIT + FULL + RIVER + "," + ranges)
    with pytest.raises(ValueError, match="cards are dealt next"):
        game.reader.private_state(game.game.new_initial_state(), 0)
    with pytest.raises(ValueError, match="player 0 is never dealt 2d2s"):
        game.reader.find(0, HoldemDeck(13, 4).cards("2d2s"), [])


def test_all_in_showdowns_use_the_hands_before_the_next_card():
    """After an all-in before the river, the private states are those of the turn."""
    game = public_tree_game(NO_LIMIT + FULL + TURN)
    state = game.game.new_initial_state()
    for action in (0, 1, 4, 5, 3, 1, 6):  # cards; all-in, call; a river card
        assert not state.is_terminal()
        state.apply_action(action)
    assert state.is_terminal()
    names = [
        game.reader.name(player, 0, game.reader.private_state(state, player))
        for player in range(2)
    ]
    assert names == ["2d2c | 5c9dJs2h", "3d3c | 5c9dJs2h"]


NOT_THIS_SHAPE = (
    ("numHoleCards=3", "one or two private cards"),
    ("betting=limit,bettingAbstraction=fullgame", "use bettingAbstraction=fcpa for"),
    ("numRounds=3,numBoardCards=0 1 1,firstPlayer=1 1 1", "in several rounds"),
    ("numRanks=13,numBoardCards=0 4,numHoleCards=2", "private states per player"),
    ("boardCards=2c3c", "more cards than"),
    ("handReaches=1 1", "two private cards of 52"),
)


@pytest.mark.parametrize(("parameters", "reason"), NOT_THIS_SHAPE)
def test_rejects_unsupported_parameters(parameters, reason):
    game = pyspiel.load_game(f"universal_poker({parameters})")
    with pytest.raises(ValueError, match="in public-tree form: .*" + reason):
        public_tree_loading.public_tree_game(game)


def test_rejects_three_players():
    game = pyspiel.load_game("universal_poker(numPlayers=3,stack=9 9 9,blind=1 1 1)")
    with pytest.raises(ValueError, match="two players"):
        public_tree_of_universal_poker(game)


def test_rejects_public_trees_with_too_many_nodes(monkeypatch):
    monkeypatch.setattr(public_tree, "MAX_NODES", 100)
    game = load(NO_LIMIT + FULL + RIVER + ",bettingAbstraction=fullgame")
    with pytest.raises(ValueError, match="more than 100 public nodes"):
        public_tree_loading.public_tree_game(game)


@pytest.mark.parametrize(
    ("reach", "reason"),
    [
        (np.zeros((2, 1326)), "no two hands"),
        (-np.ones((2, 1326)), "negative or not finite"),
        (np.ones((2, 1325)), "2650 numbers were given; give 2652"),
    ],
)
def test_rejects_invalid_ranges(reach, reason):
    game = load(NO_LIMIT + FULL + RIVER + "," + reach_text(reach))
    with pytest.raises(ValueError, match=reason):
        public_tree_loading.public_tree_game(game)


def test_declaration_is_found_by_the_game_name():
    assert public_tree_loading.declared(open_game("universal_poker"))
    assert not public_tree_loading.declared(open_game("kuhn_poker"))
    game = public_tree_loading.public_tree_game(load(NO_LIMIT + FULL + RIVER))
    assert game.num_private_states(0) == [1081]
    decisions = (game.betting.player != TERMINAL).sum()
    assert decisions > 0 and len(game.betting) > decisions
