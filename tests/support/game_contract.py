"""The contract of every game in `game_defs`, which the tests of each game call.

There are two kinds of checks. Those of OpenSpiel accept a game string:
`check_simulations`, `check_api`, `check_playthrough`. Those of this project accept a
`Tree` of all states (`full_tree`, for small parameters) or of the states of random
playouts (`sampled_tree`). `TREE_CHECKS` lists them, and
tests/game_defs/test_contract.py runs them on all games.

To update a committed playthrough after an intended change of a game, run
  python -m tests.support.game_contract GAME_STRING
"""

import itertools
import pickle
import sys
import unittest
from collections.abc import Callable, Hashable
from pathlib import Path
from unittest import mock

import numpy as np
import pyspiel
import pytest
from open_spiel.integration_tests import api_test
from open_spiel.python.algorithms import generate_playthrough
from open_spiel.python.observation import make_observation
from open_spiel.python.tests import games_sim_test

from tests.support.game_trees import (
    Node,
    Sizes,
    Tree,
    determines,
    full_tree,
    measure,
    observe,
    recalls,
    same_partition,
    sampled_tree,
)

__all__ = [
    "TREE_CHECKS",
    "Node",
    "Sizes",
    "Tree",
    "check_api",
    "check_knowledge",
    "check_playthrough",
    "check_simulations",
    "full_tree",
    "measure",
    "sampled_tree",
    "write_playthrough",
]

PLAYTHROUGHS = Path(__file__).parent / "playthroughs"
PLAYERS = (0, 1)


# Checks of OpenSpiel.


def check_simulations(game_string: str, num_sims: int = 10) -> None:
    """Run OpenSpiel's random simulations, from C++ and from Python."""
    game = pyspiel.load_game(game_string)
    pyspiel.random_sim_test(game, num_sims=num_sims, serialize=True, verbose=False)
    for _ in range(num_sims):
        games_sim_test.GamesSimTest(methodName="sim_game").sim_game(game)


def check_api(game_string: str, sizes: Sizes | None = None) -> None:
    """Run OpenSpiel's API tests on some states and, given sizes, on the full tree."""
    _run_test_case(api_test.EnforceAPIOnPartialTreeBase, game_string)
    if sizes is None:
        return
    # OpenSpiel's test reads the expected sizes from these tables of its module.
    counts = {game_string: (sizes.chance, sizes.decision, sizes.terminal)}
    infosets = {game_string: sizes.infosets0 + sizes.infosets1}
    with (
        mock.patch.dict(api_test.TOTAL_NUM_STATES, counts),
        mock.patch.dict(api_test.PERFECT_RECALL_NUM_STATES, infosets),
    ):
        _run_test_case(api_test.EnforceAPIOnFullTreeBase, game_string)


def _run_test_case(base: type[unittest.TestCase], game_string: str) -> None:
    """Run a test case class of OpenSpiel on a game."""
    case = type(
        base.__name__.removesuffix("Base"),
        (base,),
        {"game_name": game_string, "game": pyspiel.load_game(game_string)},
    )
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun > 0
    assert not result.skipped
    problems = [f"{test}\n{trace}" for test, trace in result.errors + result.failures]
    assert not problems, "\n".join(problems)


def check_playthrough(game_string: str) -> None:
    """Check that a replay of the game equals its committed playthrough."""
    path = _playthrough_path(game_string)
    committed, replayed = generate_playthrough.replay(str(path))
    assert committed.startswith(f"game: {game_string}\n")
    assert replayed == committed


def write_playthrough(game_string: str, seed: int = 1) -> Path:
    """Write the playthrough that `check_playthrough` replays."""
    path = _playthrough_path(game_string)
    text = generate_playthrough.playthrough(game_string, None, seed=seed)
    path.write_text(text, encoding="utf-8")
    return path


def _playthrough_path(game_string: str) -> Path:
    """Return a file name: python_game(a=1,b=x) is python_game_a1_bx.txt."""
    name = game_string.replace("=", "").replace("(", "_").replace(",", "_")
    return PLAYTHROUGHS / f"{name.removesuffix(')')}.txt"


# Checks of this project, each on a tree.


Knows = Callable[[list[int], int], Hashable]


def check_knowledge(tree: Tree, known: Knows, public: Knows) -> None:
    """Check that information states differ exactly where the knowledge differs.

    Args:
      tree: The histories.
      known: Function of the actions of a history (chance outcomes included) and a
        player that returns the player's knowledge, written from the rules alone.
      public: The same for public knowledge.
    """
    nobody = {"private_info": pyspiel.PrivateInfoType.NONE}
    for player in PLAYERS:
        for knows, observer in ((known, {}), (public, nobody)):
            strings, _ = observe(tree, player, **observer)
            wanted = [knows(node.state.history(), player) for node in tree.nodes]
            assert same_partition(strings, wanted), f"player {player}"


def check_perfect_recall(tree: Tree) -> None:
    """Check that a player remembers all its information and actions.

    Histories with equal information must have equal sequences of the player's earlier
    information states and actions. This must hold at every node, for strings and
    tensors, and for public observations.
    """
    for player in PLAYERS:
        strings, tensors = observe(tree, player)
        assert recalls(tree, strings, player), f"string of player {player}"
        assert recalls(tree, tensors, player), f"tensor of player {player}"
    strings, tensors = observe(tree, 0, private_info=pyspiel.PrivateInfoType.NONE)
    assert recalls(tree, strings, None), "public string"
    assert recalls(tree, tensors, None), "public tensor"


def check_keys_disjoint(tree: Tree) -> None:
    """Check that the information states of the two players are disjoint."""
    (strings0, tensors0), (strings1, tensors1) = (observe(tree, p) for p in PLAYERS)
    assert set(strings0).isdisjoint(strings1)
    assert set(tensors0).isdisjoint(tensors1)


def check_observers(tree: Tree) -> None:
    """Check that observers of every type show the information that their type names.

    Strings and tensors of each type distinguish the same histories. Public information
    and information of all players do not depend on the observing player. Information
    with perfect recall includes that without it. The public and the private part
    together determine the whole, and the private part is not empty.
    """
    kinds = pyspiel.PrivateInfoType
    none, single, everybody = kinds.NONE, kinds.SINGLE_PLAYER, kinds.ALL_PLAYERS
    # Strings by (public_info, perfect_recall, private_info) and player.
    shown: dict[tuple, tuple[list[str], list[str]]] = {}
    for kind in itertools.product(
        (False, True), (False, True), (none, single, everybody)
    ):
        (strings0, tensors0), (strings1, tensors1) = (
            observe(tree, player, *kind) for player in PLAYERS
        )
        name = f"public_info, perfect_recall, private_info = {kind}"
        assert same_partition(strings0, tensors0), name
        assert same_partition(strings1, tensors1), name
        if kind[2] != single:
            assert strings0 == strings1, name
            assert tensors0 == tensors1, name
        shown[kind] = strings0, strings1
    for public, private in itertools.product((False, True), (none, single, everybody)):
        for player in PLAYERS:
            recalled = shown[public, True, private][player]
            assert determines(recalled, shown[public, False, private][player])
    for recall, player in itertools.product((False, True), PLAYERS):
        assert set(shown[False, recall, none][player]) == {""}
        private_part = shown[False, recall, single][player]
        assert len(set(private_part)) > 1
        parts = list(zip(shown[True, recall, none][player], private_part, strict=True))
        assert same_partition(shown[True, recall, single][player], parts)
    for public, recall in itertools.product((False, True), (False, True)):
        both = list(zip(*shown[public, recall, single], strict=True))
        assert same_partition(shown[public, recall, everybody][0], both)


def check_observer_interface(tree: Tree) -> None:
    """Check that observers equal the methods of a state and accept no parameters."""
    game = tree.game
    recall = make_observation(game, pyspiel.IIGObservationType(perfect_recall=True))
    default = make_observation(game)
    for observer in (recall, default):
        assert observer.tensor.dtype == np.float32
        assert observer.tensor.size == sum(p.size for p in observer.dict.values())
        assert all(np.shares_memory(p, observer.tensor) for p in observer.dict.values())
    assert recall.tensor.size == game.information_state_tensor_size()
    assert default.tensor.size == game.observation_tensor_size()
    for node, player in itertools.product(tree.nodes[:200], PLAYERS):
        state = node.state
        if state.is_chance_node():
            continue
        for observer, string, tensor in (
            (recall, state.information_state_string, state.information_state_tensor),
            (default, state.observation_string, state.observation_tensor),
        ):
            assert observer.string_from(state, player) == string(player)
            observer.set_from(state, player)
            np.testing.assert_array_equal(observer.tensor, tensor(player))
    with pytest.raises(ValueError, match="nonsense"):
        game.make_py_observer(None, {"nonsense": 1})


def check_states(tree: Tree) -> None:
    """Check that copies of states are equal, and that actions have names."""
    game = tree.game
    stride = max(1, len(tree.nodes) // 100)
    for node in tree.nodes[::stride]:
        state = node.state
        hash(
            tuple(vars(state).values())
        )  # only immutable values, so clones share no data
        before = _snapshot(state)
        replayed = game.new_initial_state()
        for action in state.history():
            replayed.apply_action(action)
        assert _snapshot(replayed) == before
        assert _snapshot(game.deserialize_state(state.serialize())) == before
        assert _snapshot(pickle.loads(pickle.dumps(state))) == before
        actions = state.legal_actions()
        assert actions == sorted(set(actions))
        names = [state.action_to_string(action) for action in actions]
        assert len(set(names)) == len(names)
        clones = [state.clone() for _ in actions]
        assert _snapshot(state.clone()) == before
        for action, name, clone in zip(actions, names, clones, strict=True):
            clone.apply_action(action)
            assert _snapshot(clone) == _snapshot(state.child(action))
            if not state.is_chance_node():
                assert state.string_to_action(name) == action
        # The clones have not changed the state.
        assert _snapshot(state) == before


def check_game_info(tree: Tree) -> None:
    """Check the sizes that the game reports, exactly if the tree is complete."""
    game = tree.game
    states = [node.state for node in tree.nodes]
    decisions = [state for state in states if state.is_player_node()]
    terminals = [state for state in states if state.is_terminal()]
    chances = [state.chance_outcomes() for state in states if state.is_chance_node()]
    lengths = [_count_moves(state) for state in terminals]
    utilities = [value for state in terminals for value in state.returns()]

    _check_bounds(
        tree.complete,
        {
            "num_distinct_actions": (
                1 + max(max(state.legal_actions()) for state in decisions),
                game.num_distinct_actions(),
            ),
            "max_game_length": (
                max(decision for decision, _ in lengths),
                game.max_game_length(),
            ),
            "max_chance_nodes_in_history": (
                max(chance for _, chance in lengths),
                game.max_chance_nodes_in_history(),
            ),
            "max_chance_outcomes": (
                max((len(outcomes) for outcomes in chances), default=0),
                game.max_chance_outcomes(),
            ),
            "max_utility": (max(utilities), game.max_utility()),
            "min_utility": (-min(utilities), -game.min_utility()),
        },
    )
    for outcomes in chances:
        assert all(probability > 0 for _, probability in outcomes)
        assert sum(probability for _, probability in outcomes) == pytest.approx(1.0)
    deterministic = pyspiel.GameType.ChanceMode.DETERMINISTIC
    assert (game.get_type().chance_mode == deterministic) == (not chances)
    assert game.utility_sum() == 0.0
    assert all(sum(state.returns()) == 0.0 for state in terminals)
    assert all(state.returns() == [0.0, 0.0] for state in decisions)
    assert str(pyspiel.load_game(str(game))) == str(game)
    defaults = game.get_type().parameter_specification
    assert game.get_parameters().keys() == defaults.keys()


TREE_CHECKS: tuple[Callable[[Tree], None], ...] = (
    check_perfect_recall,
    check_keys_disjoint,
    check_observers,
    check_observer_interface,
    check_states,
    check_game_info,
)


def _check_bounds(exact: bool, bounds: dict[str, tuple[float, float]]) -> None:
    """Check that seen values do not exceed stated ones, and equal them if `exact`."""
    for name, (seen, stated) in bounds.items():
        assert seen <= stated, name
        if exact:
            assert seen == stated, name


def _count_moves(state: pyspiel.State) -> tuple[int, int]:
    """Count the players' and the chance moves that led to a state."""
    players = [move.player for move in state.full_history()]
    chance = sum(player == pyspiel.PlayerId.CHANCE for player in players)
    return len(players) - chance, chance


def _snapshot(state: pyspiel.State) -> tuple[Hashable, ...]:
    """Return all observable properties of a state."""
    infos: list[Hashable] = []
    for player in PLAYERS:
        if not state.is_chance_node():
            infos.append(state.information_state_string(player))
            infos.append(tuple(state.information_state_tensor(player)))
            infos.append(state.observation_string(player))
            infos.append(tuple(state.observation_tensor(player)))
    return (
        str(state),
        tuple(state.history()),
        int(state.current_player()),
        state.is_terminal(),
        tuple(state.legal_actions()),
        tuple(state.returns()),
        *infos,
    )


if __name__ == "__main__":
    print(write_playthrough(sys.argv[1]))
