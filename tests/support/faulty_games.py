"""A small game of a user, one of whose methods raises or returns something invalid.

`register` registers it as `users_game(fault=NAME)`; the names are those of `FAULTS`.
The file is imported as a user's module, too, so it imports nothing of the project.
"""

import math
import threading

import numpy as np
import pyspiel

KIND = pyspiel.GameType
SETTINGS = dict(
    short_name="users_game",
    long_name="A user's game",
    dynamics=KIND.Dynamics.SEQUENTIAL,
    chance_mode=KIND.ChanceMode.EXPLICIT_STOCHASTIC,
    information=KIND.Information.IMPERFECT_INFORMATION,
    utility=KIND.Utility.ZERO_SUM,
    reward_model=KIND.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=False,
    provides_observation_tensor=False,
    parameter_specification={"fault": ""},
)
TYPE = KIND(**SETTINGS)
INFO = pyspiel.GameInfo(
    num_distinct_actions=2,
    max_chance_outcomes=2,
    num_players=2,
    min_utility=-2.0,
    max_utility=2.0,
    utility_sum=0.0,
    max_game_length=2,
)


def _raises(error):
    def method(self, *arguments):
        raise error

    return method


def _gives(value):
    return lambda self, *arguments: value


def _recursion(name):
    return lambda self, *arguments: getattr(self, name)(*arguments)


_VALUES = {
    "current_player": [None, "0", 0.5, [0], 7, -9, np.array([0, 1])],
    "_legal_actions": [
        *(None, "01", [0.0, 1.0], [None], [-1, 0], [2**40], [], [0, 0], 5, ["a"]),
        *({"a": 1}, np.zeros((2, 2))),
    ],
    "chance_outcomes": [
        *(None, "ab", [0, 1], [(0, "1")], [(0, None)], [(0, -0.5), (1, 1.5)]),
        *([(0, math.nan), (1, 0.5)], [(0, 0.5), (1, 0.4)], [], [(0.5, 1.0)]),
    ],
    "returns": [
        *(None, 1.0, "1", [None, None], ["1", "-1"], [1.0], [1.0, -1.0, 0.0]),
        *([math.nan, math.nan], [math.inf, -math.inf], [1.0, 1.0], np.eye(2)),
    ],
    "information_state_string": [None, b"x", 3, ["x"], 0.5],
    "is_terminal": [None, "no", []],
    "new_initial_state": [None, 3],
}
_METHODS = (*_VALUES, "_apply_action")
_ERRORS = {
    "ZeroDivisionError": ZeroDivisionError("division by zero"),
    "SystemExit": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt(),
}
# By name: the method and its replacement.
FAULTS = {
    f"{name} gives {number}": (name, _gives(value))
    for name, values in _VALUES.items()
    for number, value in enumerate(values)
}
FAULTS |= {
    f"{name} raises {kind}": (name, _raises(error))
    for name in _METHODS
    for kind, error in _ERRORS.items()
    if kind == "ZeroDivisionError" or name in ("returns", "_legal_actions")
}
FAULTS |= {
    f"{name} recurs": (name, _recursion(name))
    for name in ("current_player", "_legal_actions", "information_state_string")
}
# Faults that do not belong to a single method.
FAULTS |= {
    "a lock": ("", lambda state: setattr(state, "lock", threading.Lock())),
}


class State(pyspiel.State):
    """A state: player 0 observes a card and may bet; player 1 guesses the card."""

    def __init__(self, game):
        super().__init__(game)
        self.moves = ()

    def current_player(self):
        if len(self.moves) == 3:
            return int(pyspiel.PlayerId.TERMINAL)
        return (int(pyspiel.PlayerId.CHANCE), 0, 1)[len(self.moves)]

    def _legal_actions(self, player):
        return [0, 1]

    def chance_outcomes(self):
        return [(0, 0.5), (1, 0.5)]

    def _apply_action(self, action):
        self.moves += (action,)

    def _action_to_string(self, player, action):
        return f"{player}:{action}"

    def is_terminal(self):
        return len(self.moves) == 3

    def returns(self):
        if len(self.moves) < 3:
            return [0.0, 0.0]
        won = (1.0 + self.moves[1]) * (1 if self.moves[0] != self.moves[2] else -1)
        return [won, -won]

    def information_state_string(self, player=None):
        player = self.current_player() if player is None else player
        return f"{player} {self.moves[:1] if player == 0 else ''} {self.moves[1:]}"

    def __str__(self):
        return str(self.moves)


class Game(pyspiel.Game):
    """The game, with one fault or without a fault."""

    def __init__(self, params=None):
        super().__init__(TYPE, INFO, params or {"fault": ""})
        name, self.change = FAULTS.get((params or {}).get("fault"), ("", None))
        self.kind = type("FaultyState", (State,), {name: self.change} if name else {})
        if name == "new_initial_state":
            self.new_initial_state = self.change.__get__(self)
        self.is_method = bool(name)

    def new_initial_state(self):
        state = self.kind(self)
        if self.change is not None and not self.is_method:
            self.change(state)
        return state


pyspiel.register_game(TYPE, Game)
