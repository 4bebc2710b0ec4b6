"""Degenerate games: without decisions, with one deciding player, or without stakes.

All are registered with OpenSpiel, so commands find them with
`--import tests/support/degenerate_games.py`. They have information states as strings
and tensors.
"""

import numpy as np
import pyspiel

from tests.support.made_games import CHANCE, TERMINAL, Node, Path, Rules


def terminal(path: Path) -> Node:
    """Return a terminal root; player 0 wins 0.5."""
    return Node(TERMINAL, utility=0.5)


def chance(path: Path) -> Node:
    """Chance moves twice; player 0 wins 1 with probability 1/8, otherwise loses 1."""
    if len(path) == 2:
        return Node(TERMINAL, utility=1.0 if path == (0, 1) else -1.0)
    return Node(
        CHANCE, (0, 1), ("", ""), chance=(0.25, 0.75) if not path else (0.5,) * 2
    )


def _alone(player: int) -> Rules:
    def rules(path: Path) -> Node:
        if not path:
            return Node(CHANCE, (0, 1), ("", ""), chance=(0.25, 0.75))
        if len(path) == 1:
            infos = ["waits", "waits"]
            infos[player] = f"sees {path[0]}"
            return Node(player, (0, 1, 2), (infos[0], infos[1]))
        won = 2.0 if path[0] == path[1] else -1.0 * path[1]
        return Node(TERMINAL, utility=won * (1 - 2 * player))

    return rules


def forced(path: Path) -> Node:
    """Both players have one action each, and chance decides between 3 and -1."""
    if not path:
        return Node(CHANCE, (0, 1), ("", ""), chance=(0.5, 0.5))
    if len(path) == 3:
        return Node(TERMINAL, utility=3.0 if path[0] else -1.0)
    seen = f"{path[0]} at {len(path)}"
    return Node(len(path) - 1, (0,), (seen, seen))


def equal(path: Path) -> Node:
    """Both players decide independently, and all utilities are 0.25."""
    if len(path) == 2:
        return Node(TERMINAL, utility=0.25)
    return Node(len(path), (0, 1), (f"at {len(path[:1])}", "in the dark"))


def nothing(path: Path) -> Node:
    """Rules of `equal`, with all utilities 0."""
    return equal(path)._replace(utility=0.0)


# By short name: the rules, and the value of the game for player 0.
GAMES: dict[str, tuple[Rules, float]] = {
    "degenerate_terminal": (terminal, 0.5),
    "degenerate_chance": (chance, -0.75),
    "degenerate_first": (_alone(0), 2.0),
    "degenerate_second": (_alone(1), -2.0),
    "degenerate_forced": (forced, 1.0),
    "degenerate_equal": (equal, 0.25),
    "degenerate_nothing": (nothing, 0.0),
}
# The maximum length of a history, and the largest action.
_LENGTH, _ACTIONS = 3, 3


class State(pyspiel.State):
    """A state with its path of actions and the rules."""

    def __init__(self, game: pyspiel.Game, rules: Rules) -> None:
        super().__init__(game)
        self._rules, self._path = rules, ()

    @property
    def node(self) -> Node:
        """Return the node of this history."""
        return self._rules(self._path)

    def current_player(self) -> int:
        return self.node.player

    def _legal_actions(self, player: int) -> list[int]:
        return list(self.node.actions)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return list(zip(self.node.actions, self.node.chance, strict=True))

    def _apply_action(self, action: int) -> None:
        self._path = (*self._path, action)

    def _action_to_string(self, player: int, action: int) -> str:
        return f"action {action}"

    def is_terminal(self) -> bool:
        return self.node.player == TERMINAL

    def returns(self) -> list[float]:
        return [self.node.utility, -self.node.utility]

    def __str__(self) -> str:
        return " ".join(map(str, self._path))


class Observer:
    """An observer of the information string, with its digits and length as a tensor."""

    def __init__(self) -> None:
        self.tensor = np.zeros(_ACTIONS + _LENGTH + 1, np.float32)
        self.dict = {"observation": self.tensor}

    def set_from(self, state: State, player: int) -> None:
        """Write the tensor of a player at a state."""
        self.tensor.fill(0)
        for letter in self.string_from(state, player).split():
            if letter.isdigit():
                self.tensor[int(letter)] = 1
        self.tensor[_ACTIONS + len(state._path)] = 1

    def string_from(self, state: State, player: int) -> str:
        """Return a player's information string at a state."""
        return state.node.infos[player]


def _kind(name: str) -> pyspiel.GameType:
    return pyspiel.GameType(
        short_name=name,
        long_name=name,
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
        information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
        utility=pyspiel.GameType.Utility.ZERO_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=2,
        min_num_players=2,
        provides_information_state_string=True,
        provides_information_state_tensor=True,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification={},
    )


def _register(name: str, rules: Rules) -> None:
    kind = _kind(name)

    class Game(pyspiel.Game):
        """A game of `GAMES`."""

        def __init__(self, params: dict | None = None) -> None:
            info = pyspiel.GameInfo(
                num_distinct_actions=_ACTIONS,
                max_chance_outcomes=2,
                num_players=2,
                min_utility=-4.0,
                max_utility=4.0,
                utility_sum=0.0,
                max_game_length=_LENGTH,
            )
            super().__init__(kind, info, params or {})

        def new_initial_state(self) -> State:
            return State(self, rules)

        def make_py_observer(
            self, iig_obs_type: object = None, params: object = None
        ) -> Observer:
            return Observer()

    pyspiel.register_game(kind, Game)


for _name, (_rules, _) in GAMES.items():
    if _name not in pyspiel.registered_names():
        _register(_name, _rules)
