"""Tensors of the information at positions of tree-free games.

A game's batched rules may compute the tensors of many states at once (see
`games.opening.batched_rules.BatchedRules`). Otherwise OpenSpiel's states are queried
one by one. In both cases a network is evaluated at all positions of a depth together.
`networks.evaluate` pads to a few sizes, so that XLA compiles few functions.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import pyspiel

from spiel_cr.common import networks
from spiel_cr.common.networks import Parameters
from spiel_cr.games.opening.game_checks import feature_count
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation.rules_source import RulesSource, States
from spiel_cr.games.simulation.simulator import Positions, Simulator
from spiel_cr.games.simulation.state_source import Decision, StateSource
from spiel_cr.solvers.deep.infosets import ActingInfosets, scale_of


class RulesReader:
    """Reader of tensors of states by batched rules.

    Attributes:
      item_bytes: Bytes of an entry of a tensor; 1 if the rules return entries 0 and 1.
    """

    def __init__(
        self, source: RulesSource, read: Callable[..., np.ndarray], actions: int
    ) -> None:
        """Compute one tensor to determine the data type.

        Args:
          source: Simulator by batched rules.
          read: Method of the rules that returns a player's tensors at states.
          actions: Number A of distinct actions in OpenSpiel.
        """
        self._read, self._actions = read, actions
        first = source.start(1, np.random.default_rng(0))
        self._none = self._read(first.states.rows, int(first.player[0]))[:0]
        self.item_bytes = int(self._none.dtype.itemsize)

    def tensors(self, states: States, player: int) -> np.ndarray:
        """Return a player's tensors at m decisions, float32 or bool [m, F].

        Args:
          states: States of decisions of either player.
          player: Player who observes.
        """
        if not len(states.rows):
            return self._none
        return self._read(states.rows, player)

    def legal(self, states: States) -> np.ndarray:
        """Return the legal actions of the acting player, bool [m, A]."""
        # Rules may also have columns for chance outcomes.
        some = states.legal[:, : self._actions]
        missing = self._actions - some.shape[1]
        return np.pad(some, ((0, 0), (0, missing))) if missing else some


class StateReader:
    """Reader of tensors of OpenSpiel's states.

    Attributes:
      item_bytes: Bytes of an entry of a tensor, in single precision.
    """

    item_bytes = 4

    def __init__(self, features: str, size: int, actions: int) -> None:
        """Store the sizes.

        Args:
          features: Name of the tensors, one of `config.FEATURES`.
          size: Number F of features.
          actions: Number A of distinct actions.
        """
        self._name = f"{features}_tensor"
        self._size, self._actions = size, actions

    def tensors(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return a player's tensors at m decisions; see `RulesReader`."""
        tensors = np.zeros((len(states), self._size), np.float32)
        decision: Decision
        for row, decision in zip(tensors, states, strict=True):
            row[:] = getattr(decision.state, self._name)(player)
        return tensors

    def legal(self, states: np.ndarray) -> np.ndarray:
        """Return the legal actions of the acting player; see `RulesReader`."""
        mask = np.zeros((len(states), self._actions), bool)
        decision: Decision
        for row, decision in zip(mask, states, strict=True):
            row[decision.legal] = True
        return mask


Reader = RulesReader | StateReader


class TensorKnowledge:
    """`infosets.Knowledge` of positions whose infosets are not numbered.

    Rows are tensors: [m, F] of infosets and [m, 2 F] of joint information. Their dtype
    is bool if the rules return them as 0 and 1, so that a memory holds four times as
    many.

    Attributes:
      num_actions, num_features, legal, deciders, scale: Facts as in
        `infosets.Knowledge`.
      row_bytes: Bytes of the features of an infoset.
    """

    legal, deciders = (None, None), None

    def __init__(self, game: pyspiel.Game, reader: Reader, num_features: int) -> None:
        """Store a reader.

        Args:
          game: Sequential game.
          reader: Reader of the tensors of its states.
          num_features: Number F of features, see `game_checks.feature_count`.
        """
        self._reader = reader
        self.num_actions: int = game.num_distinct_actions()
        self.num_features = num_features
        self.row_bytes = self.num_features * reader.item_bytes
        self.scale = scale_of(game)

    def seen(
        self, positions: Positions, places: np.ndarray, player: int
    ) -> ActingInfosets:
        """Return the information of a player; see `infosets.Knowledge`."""
        states = positions.states[places]
        return ActingInfosets(
            self._reader.tensors(states, player), self._reader.legal(states)
        )

    def joint(self, positions: Positions, places: np.ndarray) -> np.ndarray:
        """Return joint information; see `infosets.Knowledge`."""
        states = positions.states[places]
        both = [self._reader.tensors(states, player) for player in range(2)]
        return np.concatenate(both, axis=1)

    def player_rows(self, joint: np.ndarray, player: int) -> np.ndarray:
        """Return the acting player's rows; see `infosets.Knowledge`."""
        first = player * self.num_features
        return joint[:, first : first + self.num_features]

    def outputs(
        self, parameters: Parameters, rows: np.ndarray, player: int | None
    ) -> np.ndarray:
        """Return the outputs of a network; see `infosets.Knowledge`."""
        return networks.evaluate(parameters, rows)

    def table(self, player: int | None) -> jax.Array | None:
        """Return None, because rows are not numbered; see `infosets.Knowledge`."""
        return None


class SimulatedTensors(NamedTuple):
    """Simulated game that can be sampled.

    Attributes:
      source: Simulator of the game; its owner closes it.
      knowledge: Information at the simulator's positions.
    """

    source: Simulator
    knowledge: TensorKnowledge


def simulated_tensors(
    opened: Opened, features: str = "information_state", *, use_rules: bool = True
) -> SimulatedTensors:
    """Return a simulator of a game, and the information at its positions.

    Args:
      opened: Opened game.
      features: Name of the tensors, one of `config.FEATURES`.
      use_rules: True to use the game's batched rules if they compute these tensors.

    Raises:
      ValueError: If the game does not provide these tensors.
    """
    game, rules = opened.game, opened.rules if use_rules else None
    size, actions = feature_count(game, features), game.num_distinct_actions()
    source: Simulator
    reader: Reader
    if (read := getattr(rules, f"{features}_tensor", None)) is not None:
        source = by_rules = RulesSource(game, rules)
        reader = RulesReader(by_rules, read, actions)
    else:
        source = StateSource(game)
        reader = StateReader(features, size, actions)
    return SimulatedTensors(source, TensorKnowledge(game, reader, size))
