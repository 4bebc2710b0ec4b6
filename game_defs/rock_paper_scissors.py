"""Rock, paper, scissors with N signs: the smallest game with a mixed equilibrium.

Rules. Player 0 chooses a number from 1..N, then player 1 chooses one without seeing the
first choice. If the numbers differ by more than (N - 1) / 2, the higher one wins;
otherwise, the lower one wins. Equal numbers draw. The winner gets 1, the loser -1; a
draw pays 0. N is odd, so that each number beats as many others as it loses to. At the
end both players learn the result.

Parameters.
  num_actions: N, odd, from 3 to 99 (default 3).

Sizes: N^2 + N + 1 histories (nodes of the tree), one infoset for each player. The value
is 0, and the uniformly random choice is the only equilibrium: different numbers never
tie, and such tournament games have exactly one (Fisher and Ryan, "Optimal strategies
for a generalized 'scissors, paper, and stone' game", 1992).

Source: Schlindenbuch (2019), thesis on general continual resolving.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from game_defs import base, parameters

_NAME = "python_rock_paper_scissors"

_GAME_TYPE = base.game_type(
    _NAME, "Python Rock, Paper, Scissors", parameter_specification={"num_actions": 3}
)


def utility(choice0: int, choice1: int, num_actions: int) -> int:
    """Return player 0's utility for both players' choices."""
    if choice0 == choice1:
        return 0
    higher_wins = abs(choice0 - choice1) > (num_actions - 1) // 2
    return 1 if (choice0 > choice1) == higher_wins else -1


class RockPaperScissorsGame(base.Game):
    """Rock, paper, scissors; the module's docstring has its rules and parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        merged = parameters.merge(_GAME_TYPE, params, {"num_actions": range(3, 100)})
        num_actions = merged["num_actions"]
        if num_actions % 2 == 0:
            raise ValueError(
                f"{_NAME}: num_actions={num_actions} must be odd; "
                f"choose {num_actions - 1} or {num_actions + 1}"
            )
        super().__init__(
            _GAME_TYPE,
            merged,
            num_distinct_actions=num_actions,
            max_utility=1.0,
            max_game_length=2,
        )
        self.num_actions: int = num_actions

    def new_initial_state(self) -> "RockPaperScissorsState":
        """Return the state before the first choice."""
        return RockPaperScissorsState(self)

    def batched_rules(self) -> "BatchedRockPaperScissors":
        """Return the batched rules."""
        return BatchedRockPaperScissors(self.num_actions)

    def _observer(self, shows: pyspiel.IIGObservationType) -> base.Observer:
        return RockPaperScissorsObserver(shows, self.num_actions)


class RockPaperScissorsState(base.State):
    """A state of rock, paper, scissors: the choices so far.

    Attributes:
      num_actions: Number of signs, N.
      choices: Bytes, the chosen numbers minus 1; `choices[player]` is a player's
        choice.
    """

    def __init__(self, game: RockPaperScissorsGame) -> None:
        """Use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.num_actions = game.num_actions
        self.choices = b""

    def current_player(self) -> int:
        """Return the player to choose, or TERMINAL after both choices."""
        if self.is_terminal():
            return base.TERMINAL
        return len(self.choices)

    def _legal_actions(self, player: int) -> list[int]:
        return list(range(self.num_actions))

    def _apply_action(self, action: int) -> None:
        self.choices += bytes((action,))

    def _action_to_string(self, player: int, action: int) -> str:
        return f"Choose {action + 1}"

    def is_terminal(self) -> bool:
        """Return True if both players have chosen."""
        return len(self.choices) == 2

    def _utility(self) -> int:
        return utility(self.choices[0], self.choices[1], self.num_actions)

    def __str__(self) -> str:
        return " ".join([f"p{i} chose {c + 1}" for i, c in enumerate(self.choices)])


class RockPaperScissorsObserver(base.Observer):
    """Observer: a player's choice is private; the result is public.

    Parts of the tensor, with and without perfect recall: `choice` [N], private; `moves`
    [3], the number of both players' moves, and `result` [3] (draw, player 0 wins,
    player 1 wins), public.
    """

    def __init__(self, shows: pyspiel.IIGObservationType, num_actions: int) -> None:
        public = {"moves": (3,), "result": (3,)}
        super().__init__(shows, {"choice": (num_actions,)}, public)

    def _set_private(
        self, pieces: base.Pieces, state: RockPaperScissorsState, owner: int
    ) -> None:
        for choice in state.choices[owner : owner + 1]:
            pieces["choice"][choice] = 1

    def _set_public(self, pieces: base.Pieces, state: RockPaperScissorsState) -> None:
        pieces["moves"][len(state.choices)] = 1
        if state.is_terminal():
            pieces["result"][_result(state)] = 1

    def _private_text(self, state: RockPaperScissorsState, owner: int) -> str:
        action = state.choices[owner : owner + 1]
        return f"p{owner} chose {action[0] + 1 if action else '-'}"

    def _public_text(self, state: RockPaperScissorsState) -> str:
        text = f"moves {len(state.choices)}"
        if state.is_terminal():
            text += (" draw", " p0 won", " p1 won")[_result(state)]
        return text


class BatchedRockPaperScissors:
    """Batched states of the game; the methods are those of `pyspiel.State`.

    States are int64 [n, 2], both players' choices, -1 before they are made.
    """

    def __init__(self, num_actions: int) -> None:
        """Use `game.batched_rules()` instead."""
        choices = range(num_actions)
        self._utilities = np.array(
            [[utility(a, b, num_actions) for b in choices] for a in choices]
        )

    def new_initial_states(self) -> np.ndarray:
        """Return the state before the first choice."""
        return np.full((1, 2), -1)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the players to choose, or TERMINAL; int64 [n]."""
        moves = (states >= 0).sum(axis=1)
        return np.where(moves == 2, base.TERMINAL, moves)

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return that all numbers are legal, bool [n, N]."""
        return np.ones((len(states), len(self._utilities)), bool)

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after one choice each."""
        after = states.copy()
        after[np.arange(len(after)), self.current_player(states)] = actions
        return after

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utilities at the end, int64 [n]."""
        return self._utilities[states[:, 0], states[:, 1]]

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int64 [n, 2]: the player to choose, and the player's own choice."""
        return np.stack([self.current_player(states), states[:, player]], axis=1)


def _result(state: RockPaperScissorsState) -> int:
    """Return 0 for a draw, 1 if player 0 has won, 2 if player 1 has."""
    return {0.0: 0, 1.0: 1, -1.0: 2}[state.returns()[0]]


pyspiel.register_game(_GAME_TYPE, RockPaperScissorsGame)
