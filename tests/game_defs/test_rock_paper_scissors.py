"""Rock, paper, scissors: the contract of games, its rules and its equilibrium."""

from collections.abc import Hashable

import numpy as np
import pyspiel
import pytest

from tests.support import game_contract
from tests.support.game_contract import Sizes

SETTINGS = (
    "python_rock_paper_scissors",
    "python_rock_paper_scissors(num_actions=5)",
    "python_rock_paper_scissors(num_actions=9)",
)


def slow_winner(number0: int, number1: int, num_actions: int) -> int | None:
    """Return the winner: a number beats the next (N - 1) / 2 numbers on a circle."""
    if number0 == number1:
        return None
    return 0 if (number1 - number0) % num_actions <= num_actions // 2 else 1


@pytest.mark.parametrize("num_actions", [3, 7])
def test_openspiel_api(num_actions):
    game_string = f"python_rock_paper_scissors(num_actions={num_actions})"
    game_contract.check_api(
        game_string, Sizes(0, num_actions + 1, num_actions**2, 1, 1)
    )


@pytest.mark.parametrize("num_actions", [3, 5, 9])
def test_returns_equal_the_reference(num_actions):
    tree = game_contract.full_tree(
        f"python_rock_paper_scissors(num_actions={num_actions})"
    )
    terminals = [node.state for node in tree.nodes if node.state.is_terminal()]
    assert len(terminals) == num_actions**2
    for state in terminals:
        winner = slow_winner(*state.history(), num_actions)
        expected = {None: [0, 0], 0: [1, -1], 1: [-1, 1]}[winner]
        assert state.returns() == expected


@pytest.mark.parametrize("num_actions", [3, 5])
def test_players_observe_their_own_choice_and_the_winner(num_actions):
    tree = game_contract.full_tree(
        f"python_rock_paper_scissors(num_actions={num_actions})"
    )

    def public(history: list[int], player: int) -> Hashable:
        over = len(history) == 2
        return len(history), slow_winner(*history, num_actions) if over else None

    def own_choice(history: list[int], player: int) -> Hashable:
        return tuple(history[player : player + 1]), public(history, player)

    game_contract.check_knowledge(tree, own_choice, public)


@pytest.mark.parametrize("num_actions", [3, 5, 7, 11])
def test_uniform_is_the_only_equilibrium(num_actions):
    game = pyspiel.load_game("python_rock_paper_scissors", {"num_actions": num_actions})
    # The uniform strategy has full support, so against any equilibrium strategy all
    # numbers have value 0. Because the payoffs have rank N - 1, only multiples of the
    # uniform strategy satisfy this.
    payoffs = np.zeros((num_actions, num_actions))
    for row in range(num_actions):
        for column in range(num_actions):
            state = game.new_initial_state().child(row).child(column)
            payoffs[row, column] = state.returns()[0]
    assert np.linalg.matrix_rank(payoffs) == num_actions - 1
