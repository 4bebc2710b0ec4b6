"""Base classes of the games: two players, sequential, zero-sum, payoffs at the end.

All games provide every string and tensor of OpenSpiel. Their observers follow the same
conventions:

* *Private* pieces belong to players. `PrivateInfoType.SINGLE_PLAYER` shows those of the
  observing player, and its number; `ALL_PLAYERS` shows those of both players to any
  observer; `NONE` shows no private piece. Public information therefore has the same
  form for every observer.
* *Public* pieces are shown if `public_info` is set.
* With `perfect_recall` the pieces contain everything that was ever observed, in order;
  without it, only what matters now.
* The string and the tensor of an observer distinguish the same histories.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyspiel

NUM_PLAYERS = 2
CHANCE = int(pyspiel.PlayerId.CHANCE)
TERMINAL = int(pyspiel.PlayerId.TERMINAL)

_GENERAL_SUM = pyspiel.GameType.Utility.GENERAL_SUM

Shape = tuple[int, ...]
Pieces = Mapping[str, np.ndarray]


class Shared:
    """Base class of constants, which clones of a state share and do not copy."""

    def __deepcopy__(self, memo: dict) -> Self:
        return self


def game_type(
    short_name: str,
    long_name: str,
    parameter_specification: Mapping[str, int | str],
    *,
    chance: bool = False,
    zero_sum: bool = True,
) -> pyspiel.GameType:
    """Return the type to register a game with.

    Args:
      short_name: Name at the beginning of the game string.
      long_name: Readable name.
      parameter_specification: Every parameter and its default.
      chance: Whether there are chance nodes.
      zero_sum: Whether a player always wins what the other one loses.
    """
    kind = pyspiel.GameType
    modes = kind.ChanceMode
    return kind(
        short_name=short_name,
        long_name=long_name,
        dynamics=kind.Dynamics.SEQUENTIAL,
        chance_mode=modes.EXPLICIT_STOCHASTIC if chance else modes.DETERMINISTIC,
        information=kind.Information.IMPERFECT_INFORMATION,
        utility=kind.Utility.ZERO_SUM if zero_sum else kind.Utility.GENERAL_SUM,
        reward_model=kind.RewardModel.TERMINAL,
        max_num_players=NUM_PLAYERS,
        min_num_players=NUM_PLAYERS,
        provides_information_state_string=True,
        provides_information_state_tensor=True,
        provides_observation_string=True,
        provides_observation_tensor=True,
        provides_factored_observation_string=True,
        parameter_specification=dict(parameter_specification),
    )


class Game(pyspiel.Game):
    """A game with its sizes; subclasses make states, batched rules and observers."""

    def __init__(
        self,
        kind: pyspiel.GameType,
        params: Mapping[str, Any],
        *,
        num_distinct_actions: int,
        max_utility: float,
        max_game_length: int,
        max_chance_outcomes: int = 0,
    ) -> None:
        """Describe the game to OpenSpiel.

        Args:
          kind: Type of the game, from `game_type`.
          params: All parameters, from `parameters.merge`.
          num_distinct_actions: Number of actions of players, without chance outcomes.
          max_utility: Largest utility of a player, which the other player loses.
          max_game_length: Largest number of moves of players.
          max_chance_outcomes: Largest number of outcomes of a chance node.
        """
        info = pyspiel.GameInfo(
            num_distinct_actions=num_distinct_actions,
            max_chance_outcomes=max_chance_outcomes,
            num_players=NUM_PLAYERS,
            min_utility=-max_utility,
            max_utility=max_utility,
            utility_sum=None if kind.utility == _GENERAL_SUM else 0.0,
            max_game_length=max_game_length,
        )
        super().__init__(kind, info, params)

    def make_py_observer(
        self,
        iig_obs_type: pyspiel.IIGObservationType | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> "Observer":
        """Return an observer.

        Args:
          iig_obs_type: Information to show; None: that of the observation tensor.
          params: Observer parameters, which these games do not support.

        Raises:
          ValueError: If there are parameters.
        """
        if params:
            raise ValueError(
                f"{self.get_type().short_name}: observers accept no parameters; "
                f"remove {sorted(params)}"
            )
        return self._observer(
            iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        )

    def _observer(self, shows: pyspiel.IIGObservationType) -> "Observer":
        raise NotImplementedError


class State(pyspiel.State):
    """A state; subclasses implement the moves and `_utility`."""

    def returns(self) -> list[float]:
        """Return both players' utilities; 0 before the end."""
        value = float(self._utility()) if self.is_terminal() else 0.0
        return [value, 0.0 - value]  # Avoid -0.0.

    def _utility(self) -> float:
        """Return player 0's utility at the end."""
        raise NotImplementedError


class Observer:
    """One flat tensor with views for named pieces, and a string of the same content.

    Attributes:
      tensor: float32 [sum of the pieces' sizes].
      dict: Views of the tensor by name. If the private pieces of one player are shown,
        `player` [2], the observer, comes first; if those of both are shown, they have a
        leading axis of players.
    """

    def __init__(
        self,
        shows: pyspiel.IIGObservationType,
        private: Mapping[str, Shape],
        public: Mapping[str, Shape],
    ) -> None:
        """Allocate the tensor.

        Args:
          shows: Information to show.
          private: Shapes of one player's private pieces, in order.
          public: Shapes of the public pieces, which follow them.
        """
        kinds = pyspiel.PrivateInfoType
        self._recall = shows.perfect_recall
        self._public = shows.public_info
        # Owners of the private pieces that player 0 and player 1 observe.
        self._owners: tuple[tuple[int, ...], ...] = ((), ())
        shapes: dict[str, Shape] = {}
        if shows.private_info == kinds.SINGLE_PLAYER:
            self._owners = ((0,), (1,))
            shapes = {"player": (NUM_PLAYERS,), **private}
        elif shows.private_info == kinds.ALL_PLAYERS:
            self._owners = ((0, 1), (0, 1))
            shapes = {name: (NUM_PLAYERS, *shape) for name, shape in private.items()}
        if self._public:
            shapes |= public
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        self.tensor = np.zeros(sum(sizes), np.float32)
        ends = np.cumsum(sizes)
        self.dict = {
            name: self.tensor[end - size : end].reshape(shape)
            for (name, shape), size, end in zip(
                shapes.items(), sizes, ends, strict=True
            )
        }
        count = len(self._owners[0])
        self._pieces = [
            {
                name: self.dict[name].reshape(count, *shape)[i]
                for name, shape in private.items()
            }
            for i in range(count)
        ]

    def set_from(self, state: Any, player: int) -> None:
        """Write what `player` observes at `state` to `tensor` and so to `dict`."""
        self.tensor.fill(0)
        if "player" in self.dict:
            self.dict["player"][player] = 1
        for owner, pieces in zip(self._owners[player], self._pieces, strict=True):
            self._set_private(pieces, state, owner)
        if self._public:
            self._set_public(self.dict, state)

    def string_from(self, state: Any, player: int) -> str:
        """Return what `player` observes at `state`."""
        texts = [self._private_text(state, owner) for owner in self._owners[player]]
        if self._public:
            texts.append(self._public_text(state))
        return " ".join(texts)

    def _set_private(self, pieces: Pieces, state: Any, owner: int) -> None:
        """Write a player's private pieces, which are zeros before."""
        raise NotImplementedError

    def _set_public(self, pieces: Pieces, state: Any) -> None:
        """Write the public pieces, which are zeros before."""
        raise NotImplementedError

    def _private_text(self, state: Any, owner: int) -> str:
        raise NotImplementedError

    def _public_text(self, state: Any) -> str:
        raise NotImplementedError


def mark(rows: np.ndarray, numbers: Sequence[int]) -> None:
    """Write a 1 into each of the first rows, in the column of its number."""
    for row, number in enumerate(numbers):
        rows[row, number] = 1
