"""Game trees for tests: histories, their numbers, and players' observations."""

import functools
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python.observation import make_observation

import game_defs  # noqa: F401  (registers the games)


class Node(NamedTuple):
    """A history of a game.

    Attributes:
      state: The state of the history.
      parent: Index of the parent in the tree's nodes; -1 at the root.
      action: The action from the parent to this node; -1 at the root.
    """

    state: pyspiel.State
    parent: int
    action: int


class Tree(NamedTuple):
    """Histories of a game, in an order in which children follow their parents.

    Attributes:
      game: The game.
      nodes: The histories, without duplicates.
      complete: Whether these are all histories of the game.
    """

    game: pyspiel.Game
    nodes: list[Node]
    complete: bool


class Sizes(NamedTuple):
    """Numbers of histories of each kind, and of infosets of each player.

    Infosets are counted by information state string at the player's own decisions.
    """

    chance: int
    decision: int
    terminal: int
    infosets0: int
    infosets1: int

    @property
    def histories(self) -> int:
        """Return the number of all nodes of the game tree."""
        return self.chance + self.decision + self.terminal


@functools.lru_cache(maxsize=16)
def full_tree(game_string: str) -> Tree:
    """Return all histories of a game, depth first."""
    game = pyspiel.load_game(game_string)
    nodes: list[Node] = []
    stack = [Node(game.new_initial_state(), -1, -1)]
    while stack:
        node = stack.pop()
        index = len(nodes)
        nodes.append(node)
        if not node.state.is_terminal():
            for action in node.state.legal_actions():
                stack.append(Node(node.state.child(action), index, action))
    return Tree(game, nodes, complete=True)


@functools.lru_cache(maxsize=16)
def sampled_tree(game_string: str, num_games: int = 40, seed: int = 0) -> Tree:
    """Return the histories that uniformly random playouts visit."""
    game = pyspiel.load_game(game_string)
    rng = np.random.default_rng(seed)
    nodes = [Node(game.new_initial_state(), -1, -1)]
    child_of: dict[tuple[int, int], int] = {}
    for _ in range(num_games):
        index = 0
        while not nodes[index].state.is_terminal():
            state = nodes[index].state
            action = int(rng.choice(state.legal_actions()))
            move = (index, action)
            if move not in child_of:
                child_of[move] = len(nodes)
                nodes.append(Node(state.child(action), index, action))
            index = child_of[move]
    return Tree(game, nodes, complete=False)


def measure(game_string: str) -> Sizes:
    """Return the sizes of a game by visiting all histories without storing them."""
    chance = decision = terminal = 0
    infosets: tuple[set[str], set[str]] = (set(), set())
    stack = [pyspiel.load_game(game_string).new_initial_state()]
    while stack:
        state = stack.pop()
        player = state.current_player()
        if player == pyspiel.PlayerId.TERMINAL:
            terminal += 1
            continue
        if player == pyspiel.PlayerId.CHANCE:
            chance += 1
        else:
            decision += 1
            infosets[player].add(state.information_state_string(player))
        stack += [state.child(action) for action in state.legal_actions()]
    return Sizes(chance, decision, terminal, len(infosets[0]), len(infosets[1]))


def observe(
    tree: Tree,
    player: int,
    public_info: bool = True,
    perfect_recall: bool = True,
    private_info: pyspiel.PrivateInfoType = pyspiel.PrivateInfoType.SINGLE_PLAYER,
) -> tuple[list[str], list[bytes]]:
    """Return a player's observations at every node, as strings and as tensors."""
    observer = make_observation(
        tree.game,
        pyspiel.IIGObservationType(
            public_info=public_info,
            perfect_recall=perfect_recall,
            private_info=private_info,
        ),
    )
    strings, tensors = [], []
    for node in tree.nodes:
        strings.append(observer.string_from(node.state, player))
        observer.set_from(node.state, player)
        tensors.append(observer.tensor.tobytes())
    assert all(isinstance(string, str) for string in strings)
    return strings, tensors


def recalls(tree: Tree, keys: Sequence[Hashable], player: int | None) -> bool:
    """Return whether each key determines the earlier keys and own actions."""
    numbers: dict[Hashable, int] = {}

    def number(value: Hashable) -> int:
        return numbers.setdefault(value, len(numbers))

    memories: list[int] = []
    for node, key in zip(tree.nodes, keys, strict=True):
        if node.parent < 0:
            memory = number(key)
        else:
            memory = memories[node.parent]
            acted = tree.nodes[node.parent].state.current_player() == player
            if acted:
                memory = number((memory, "did", node.action))
            if acted or key != keys[node.parent]:
                memory = number((memory, "saw", key))
        memories.append(memory)
    return determines(keys, memories)


def determines(keys: Iterable[Hashable], values: Iterable[Hashable]) -> bool:
    """Return whether equal keys always have equal values."""
    value_of: dict[Hashable, Hashable] = {}
    return all(
        value_of.setdefault(key, value) == value
        for key, value in zip(keys, values, strict=True)
    )


def same_partition(keys: Sequence[Hashable], others: Sequence[Hashable]) -> bool:
    """Return whether both lists define the same partition of indices."""
    return determines(keys, others) and determines(others, keys)
