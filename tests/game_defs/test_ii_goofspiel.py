"""II-Goofspiel: rules, sizes and equality with OpenSpiel's goofspiel."""

from collections.abc import Hashable

import pyspiel
import pytest

from tests.support import game_contract
from tests.support.game_contract import Sizes

# Every parameter is changed at least once.
SETTINGS = (
    "python_ii_goofspiel(num_cards=2,returns_type=point_difference)",
    "python_ii_goofspiel(num_cards=3)",
    "python_ii_goofspiel(num_cards=4,points_order=descending,"
    "returns_type=point_difference)",
)
LARGE_SETTINGS = (
    "python_ii_goofspiel",
    "python_ii_goofspiel(num_cards=13,returns_type=point_difference)",
)
# Independent programs computed these numbers.
SIZES = {
    4: Sizes(chance=0, decision=1653, terminal=576, infosets0=369, infosets1=369),
    6: Sizes(0, 1487923, 518400, infosets0=83001, infosets1=83001),
}
HISTORIES = {4: 2229, 6: 2006323}


def openspiel_game(num_cards: int, points_order: str = "ascending") -> pyspiel.Game:
    """Return OpenSpiel's game, which plays each player's last card automatically."""
    return pyspiel.load_game(
        "turn_based_simultaneous_game(game=goofspiel(imp_info=true,players=2,"
        f"num_cards={num_cards},points_order={points_order},returns_type=win_loss))"
    )


def test_openspiel_api():
    game_string = "python_ii_goofspiel(num_cards=4,points_order=descending)"
    game_contract.check_api(game_string, SIZES[4])


@pytest.mark.parametrize("num_cards", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_sizes(num_cards):
    sizes = game_contract.measure(f"python_ii_goofspiel(num_cards={num_cards})")
    assert sizes == SIZES[num_cards]
    assert sizes.histories == HISTORIES[num_cards]


def slow_rounds(history: list[int]) -> list[str]:
    """Return the winner of each complete round."""
    rounds = []
    while len(history) >= 2:
        first, second, *history = history
        rounds.append(
            "first" if first > second else "second" if second > first else "tie"
        )
    return rounds


def slow_points(history: list[int], num_cards: int, points_order: str) -> list[int]:
    """Return both players' points, with the point cards on a pile."""
    pile = sorted(range(1, num_cards + 1), reverse=points_order == "ascending")
    totals = {"first": 0, "second": 0, "tie": 0}
    for winner in slow_rounds(history):
        totals[winner] += pile.pop()
    return [totals["first"], totals["second"]]


@pytest.mark.parametrize("game_string", SETTINGS)
def test_returns_equal_the_reference(game_string):
    tree = game_contract.full_tree(game_string)
    parameters = tree.game.get_parameters()
    for node in tree.nodes:
        state = node.state
        first, second = slow_points(
            state.history(), parameters["num_cards"], parameters["points_order"]
        )
        assert state.points() == (first, second)
        if not state.is_terminal():
            continue
        if parameters["returns_type"] == "point_difference":
            assert state.returns() == [first - second, second - first]
        elif first == second:
            assert state.returns() == [0, 0]
        else:
            assert state.returns() == ([1, -1] if first > second else [-1, 1])


def test_returns_of_hand_computed_games():
    # The bids are 2-1, 3-2 and 1-3, so player 0 wins the first two point cards.
    def returns(parameters):
        state = pyspiel.load_game(
            f"python_ii_goofspiel(num_cards=3,{parameters})"
        ).new_initial_state()
        for action in (1, 0, 2, 1, 0, 2):
            state.apply_action(action)
        return state.returns()

    assert returns("points_order=ascending") == [0, 0]  # 1 + 2 against 3
    assert returns("points_order=descending") == [1, -1]  # 3 + 2 against 1
    parameters = "points_order=descending,returns_type=point_difference"
    assert returns(parameters) == [4, -4]


@pytest.mark.parametrize("game_string", SETTINGS)
def test_players_observe_their_bids_and_the_winners(game_string):
    def bids_and_winners(history: list[int], player: int) -> Hashable:
        return tuple(history[player::2]), tuple(slow_rounds(history)), len(history)

    def winners(history: list[int], player: int) -> Hashable:
        return tuple(slow_rounds(history)), len(history)

    tree = game_contract.full_tree(game_string)
    game_contract.check_knowledge(tree, bids_and_winners, winners)


def test_legal_actions_are_the_remaining_cards():
    for node in game_contract.full_tree(SETTINGS[2]).nodes:
        state = node.state
        if not state.is_terminal():
            own = state.history()[state.current_player() :: 2]
            assert state.legal_actions() == sorted(set(range(4)) - set(own))


@pytest.mark.parametrize("points_order", ["ascending", "descending"])
def test_histories_equal_those_of_openspiel(points_order):
    """Actions and infosets agree up to the last round, and returns agree."""
    ours = pyspiel.load_game(
        f"python_ii_goofspiel(num_cards=4,points_order={points_order})"
    )
    key_of: dict[str, str] = {}
    num_compared = 0
    stack = [
        (ours.new_initial_state(), openspiel_game(4, points_order).new_initial_state())
    ]
    while stack:
        state, other = stack.pop()
        num_compared += 1
        if other.is_terminal():
            while not state.is_terminal():
                (action,) = state.legal_actions()
                state.apply_action(action)
            assert state.returns() == other.returns()
            continue
        assert state.current_player() == other.current_player()
        assert state.legal_actions() == other.legal_actions()
        key = state.information_state_string()
        assert key_of.setdefault(other.information_state_string(), key) == key
        stack += [(state.child(a), other.child(a)) for a in state.legal_actions()]
    assert num_compared == 1077
    assert len(set(key_of.values())) == len(key_of) == 2 * 81
