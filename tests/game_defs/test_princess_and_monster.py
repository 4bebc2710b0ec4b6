"""Princess and monster: rules and sizes."""

from collections.abc import Hashable

import pyspiel
import pytest

from tests.support import game_contract
from tests.support.game_contract import Sizes

# Every parameter is changed at least once. On 2 x 3, the distance of the corners is
# odd, so the princess can move onto the monster.
SETTINGS = (
    "python_princess_and_monster(horizon=1,rows=2,columns=2)",
    "python_princess_and_monster(horizon=3,rows=2,columns=3)",
    "python_princess_and_monster(horizon=2,rows=3,columns=2)",
    "python_princess_and_monster(horizon=3,rows=2,columns=4)",
    "python_princess_and_monster(horizon=4)",
)
LARGE_SETTINGS = (
    "python_princess_and_monster",
    "python_princess_and_monster(horizon=20,rows=4,columns=6)",
)
# Independent programs computed these numbers.
INFOSETS = {4: 25, 5: 73}
HISTORIES = {4: 2043, 5: 11283}
STEPS = {"Up": (-1, 0), "Right": (0, 1), "Down": (1, 0), "Left": (0, -1)}


def load(horizon: int) -> pyspiel.Game:
    return pyspiel.load_game("python_princess_and_monster", {"horizon": horizon})


def test_openspiel_api():
    sizes = Sizes(0, decision=701, terminal=1342, infosets0=25, infosets1=25)
    game_contract.check_api("python_princess_and_monster(horizon=4)", sizes)


@pytest.mark.parametrize("horizon", [4, 5])
def test_sizes(horizon):
    sizes = game_contract.measure(str(load(horizon)))
    assert sizes.chance == 0
    assert sizes.histories == HISTORIES[horizon]
    assert sizes.infosets0 == sizes.infosets1 == INFOSETS[horizon]


def slow_positions(
    game: pyspiel.Game, history: list[int]
) -> tuple[list[list[int]], int, bool]:
    """Play a history on coordinates.

    Returns:
      Both positions as [row, column], the number of moves until the princess was
      caught or the history ended, and whether she was caught.
    """
    parameters = game.get_parameters()
    bottom, right = parameters["rows"] - 1, parameters["columns"] - 1
    positions = [[0, 0], [bottom, right]]
    for number, action in enumerate(history):
        mover = positions[number % 2]
        name = game.new_initial_state().action_to_string(number % 2, action)
        for axis, step in enumerate(STEPS[name]):
            mover[axis] += step
        assert 0 <= mover[0] <= bottom and 0 <= mover[1] <= right
        if positions[0] == positions[1]:
            return positions, number + 1, True
    return positions, len(history), False


@pytest.mark.parametrize("game_string", SETTINGS)
def test_returns_and_terminal_states(game_string):
    tree = game_contract.full_tree(game_string)
    horizon = tree.game.get_parameters()["horizon"]
    captures = 0
    for node in tree.nodes:
        state = node.state
        _, num_moves, caught = slow_positions(tree.game, state.history())
        assert num_moves == len(state.history())
        assert state.is_terminal() == (caught or num_moves == 2 * horizon)
        if state.is_terminal():
            value = -(2 * horizon - num_moves) if caught else 2 * horizon
            assert state.returns() == [value, -value]
            captures += caught
    assert captures > 0


@pytest.mark.parametrize("game_string", SETTINGS)
def test_legal_actions_stay_on_the_grid(game_string):
    tree = game_contract.full_tree(game_string)
    parameters = tree.game.get_parameters()
    for node in tree.nodes:
        state = node.state
        if state.is_terminal():
            continue
        positions, _, _ = slow_positions(tree.game, state.history())
        row, column = positions[len(state.history()) % 2]
        inside = {
            name
            for name, (down, right) in STEPS.items()
            if row + down in range(parameters["rows"])
            and column + right in range(parameters["columns"])
        }
        names = [state.action_to_string(action) for action in state.legal_actions()]
        assert set(names) == inside


def test_returns_of_hand_computed_games():
    def play(game, names):
        state = game.new_initial_state()
        for name in names.split():
            state.apply_action(state.string_to_action(name))
        return state

    # They meet in the centre of 3 x 3 at the fourth move, the monster's second.
    state = play(load(5), "Right Up Right")
    assert not state.is_terminal()
    state = play(load(5), "Right Up Down Left")
    assert state.is_terminal()
    assert state.returns() == [-6, 6]  # 10 - 4 moves to go
    assert "caught" in state.observation_string(0)
    # A capture by the monster's last move has utility 0.
    assert play(load(2), "Right Up Down Left").returns() == [0, 0]
    # On 2 x 3, the princess moves onto the monster.
    game = pyspiel.load_game("python_princess_and_monster(horizon=3,rows=2,columns=3)")
    assert play(game, "Right Left Down").returns() == [-3, 3]
    assert play(load(2), "Right Up Left Down").returns() == [4, -4]


@pytest.mark.parametrize("game_string", SETTINGS)
def test_players_observe_only_their_own_moves(game_string):
    tree = game_contract.full_tree(game_string)

    def public(history: list[int], player: int) -> Hashable:
        _, _, caught = slow_positions(tree.game, history)
        return len(history), caught

    def own_moves(history: list[int], player: int) -> Hashable:
        return tuple(history[player::2]), public(history, player)

    game_contract.check_knowledge(tree, own_moves, public)
