"""Synthetic games for tests: trees defined by functions of paths, and random ones.

A rule returns the node of a path (the actions from the root, chance outcomes included).
Tests can thus define unusual information: players who forget, who cannot count the
opponent's decisions, or who observe more between their turns than they remember later.
"""

import dataclasses
import functools
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.games.tree.tree import GameTree, assemble

Path = tuple[int, ...]

CHANCE = int(pyspiel.PlayerId.CHANCE)
TERMINAL = int(pyspiel.PlayerId.TERMINAL)


class Node(NamedTuple):
    """The node of a path.

    Attributes:
      player: The player who acts: 0, 1, CHANCE or TERMINAL.
      actions: Legal actions, ascending; empty at terminal nodes.
      infos: Information of player 0 and player 1; not used at terminal nodes.
      utility: Player 0's utility at terminal nodes.
      chance: Probability of each action at chance nodes.
    """

    player: int
    actions: Sequence[int] = ()
    infos: tuple[str, str] = ("", "")
    utility: float = 0.0
    chance: Sequence[float] = ()


Rules = Callable[[Path], Node]


class MadeState(pyspiel.State):
    """A state with its path of actions and the rules."""

    def __init__(self, game: pyspiel.Game, rules: Rules) -> None:
        super().__init__(game)
        self._rules = rules
        self._path: Path = ()

    def current_player(self) -> int:
        return self._rules(self._path).player

    def _legal_actions(self, player: int) -> list[int]:
        return list(self._rules(self._path).actions)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        node = self._rules(self._path)
        return list(zip(node.actions, node.chance, strict=True))

    def _apply_action(self, action: int) -> None:
        self._path = (*self._path, action)

    def _action_to_string(self, player: int, action: int) -> str:
        return f"{player}:{action}"

    def information_state_string(self, player: int | None = None) -> str:
        node = self._rules(self._path)
        return node.infos[node.player if player is None else player]

    def is_terminal(self) -> bool:
        return self._rules(self._path).player == TERMINAL

    def returns(self) -> list[float]:
        utility = self._rules(self._path).utility
        return [utility, -utility]

    def __str__(self) -> str:
        return " ".join(map(str, self._path))


class MadeGame(pyspiel.Game):
    """A two-player game that a function of paths defines."""

    def __init__(
        self,
        rules: Rules,
        name: str,
        *,
        chance_mode: pyspiel.GameType.ChanceMode = (
            pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC
        ),
        strings: bool = True,
        tensor: bool = False,
        largest: float = 100.0,
        utility_sum: float = 0.0,
        length: int = 64,
    ) -> None:
        game_type = pyspiel.GameType(
            short_name=name,
            long_name=name,
            dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
            chance_mode=chance_mode,
            information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
            utility=pyspiel.GameType.Utility.ZERO_SUM,
            reward_model=pyspiel.GameType.RewardModel.TERMINAL,
            max_num_players=2,
            min_num_players=2,
            provides_information_state_string=strings,
            provides_information_state_tensor=tensor,
            provides_observation_string=False,
            provides_observation_tensor=False,
            parameter_specification={},
        )
        info = pyspiel.GameInfo(
            num_distinct_actions=16,
            max_chance_outcomes=16,
            num_players=2,
            min_utility=-largest,
            max_utility=largest,
            utility_sum=utility_sum,
            max_game_length=length,
        )
        super().__init__(game_type, info, {})
        self._rules = rules

    def new_initial_state(self) -> MadeState:
        return MadeState(self, self._rules)


def random_game(
    seed: int,
    *,
    depth: int = 6,
    max_actions: int = 2,
    turns: str = "by depth",
    remembered: float = 0.4,
    transient: float = 0.0,
) -> MadeGame:
    """Create a random game with perfect recall.

    After each move, each player observes one of two words about the move with some
    probability. Its information state is the sequence of its observations and actions.

    Args:
      seed: Seed for all random choices.
      depth: Maximum length of a history.
      max_actions: Maximum number of actions at an infoset; the minimum is 1.
      turns: "by depth", the acting player is a function of the depth, which both know;
        "by history", of the history, and only a player who acts learns it, so that
        players may be unable to count each other's moves.
      remembered: Probability that a player observes something about a move.
      transient: Probability that a player who does not act observes something that it
        does not remember at its next decision.
    """

    def draw(*what: object) -> random.Random:
        return random.Random(repr((seed, *what)))

    counts_depth = turns == "by depth"

    def actor(path: Path, what: tuple[object, ...]) -> int:
        roll = draw("actor", len(path) if counts_depth else what)
        return roll.choice([0, 1, 0, 1, CHANCE])

    @functools.cache
    def node(path: Path) -> Node:
        memories: list[list[str]] = [[], []]
        for at, action in enumerate(path):
            before = node(path[:at])
            for p in range(2):
                if before.player == p:
                    memories[p].append(f"did{action}")
                told = draw("told", p, path[: at + 1])
                if told.random() < remembered:
                    memories[p].append(f"saw{told.randrange(2)}")
            if counts_depth:
                for memory in memories:
                    memory.append("|")
        over = draw("end", path).random() < 0.15 * (len(path) > 2)
        if len(path) == depth or over:
            return Node(TERMINAL, utility=float(draw("utility", path).randint(-3, 3)))
        player = actor(path, (path,))
        infos = ["".join(f"{p}:" + " ".join(m)) for p, m in enumerate(memories)]
        if player == CHANCE:
            p = draw("chance", path).choice([0.5, 0.25])
            return Node(CHANCE, (0, 1), (infos[0], infos[1]), chance=(p, 1 - p))
        other = 1 - player
        extra = draw("transient", path)
        if extra.random() < transient:
            infos[other] += f" (told {extra.randrange(2)})"
        # Otherwise a player could forget that it has acted.
        count = draw("actions", infos[player]).randint(1, max_actions)
        return Node(player, tuple(range(count)), (infos[0], infos[1]))

    return MadeGame(node, f"random_{seed}")


Table = dict[Path, Node]


@functools.cache
def table_of(game: str) -> Table:
    """Return the rules of a synthetic game that equals a given game."""
    table: Table = {}
    stack: list[tuple[Path, pyspiel.State]] = [
        ((), pyspiel.load_game(game).new_initial_state())
    ]
    while stack:
        path, state = stack.pop()
        player = state.current_player()
        if player == TERMINAL:
            table[path] = Node(TERMINAL, utility=state.returns()[0])
            continue
        odds: tuple[float, ...] = ()
        infos = ["", ""]
        if player == CHANCE:
            actions, odds = zip(*state.chance_outcomes(), strict=True)
        else:
            actions = tuple(state.legal_actions())
            infos[player] = state.information_state_string(player)
        table[path] = Node(player, actions, (infos[0], infos[1]), chance=odds)
        stack += [((*path, action), state.child(action)) for action in actions]
    return table


def scaled_game(game: str, factor: float) -> MadeGame:
    """Return a small game with payoffs times a factor, as a Python game."""
    table, most = table_of(game), pyspiel.load_game(game).max_utility()

    def rules(path: Path) -> Node:
        return table[path]._replace(utility=factor * table[path].utility)

    return MadeGame(rules, "scaled", largest=factor * most)


def scaled(tree: GameTree, factor: float) -> GameTree:
    """Return a game tree with payoffs times a factor; its `game` is not scaled."""
    histories = dataclasses.replace(
        tree.histories, utility=factor * tree.histories.utility
    )
    keys = [infosets.keys for infosets in tree.infosets]
    return assemble(tree.game, histories, tree.infosets, keys)


# Rock, paper, scissors in which a win with or against scissors pays 2 instead of 1
# (Brown, Sandholm & Amos 2018, figure 1); player 0's move is hidden.
_WINS = np.array([[0, -1, 2], [1, 0, -2], [-2, 2, 0]], float)
# The equilibrium strategy of both players.
RPS_PLUS = np.array([0.4, 0.4, 0.2])


def rps_plus(path: Path) -> Node:
    """Return the node of a path of `MadeGame(rps_plus, "rps_plus")`."""
    infos = (f"chose {path[:1]} at {len(path)}", f"waits {max(len(path), 1)}")
    if len(path) == 3:
        return Node(TERMINAL, utility=float(_WINS[path[0], path[2]]))
    if len(path) == 2:
        return Node(1, (0, 1, 2), infos)
    return Node(0, (0, 1, 2) if not path else (0,), infos)


def twice_in_a_row(path: Path) -> Node:
    """Player 0 moves twice, then player 1 moves twice.

    Player 0 remembers its own moves; player 1 observes the first one only.
    """
    infos = (f"0 did {path[:2]}", f"1 saw {path[:1]} and did {path[2:]} at {len(path)}")
    if len(path) == 4:
        first, second, third, fourth = path
        pays = 3 * (first == third) - 2 * (second != fourth) + (second & third) - 0.5
        return Node(TERMINAL, utility=float(pays))
    return Node(0 if len(path) < 2 else 1, (0, 1), infos)
