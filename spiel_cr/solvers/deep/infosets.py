"""Inputs of networks: rows that represent infosets and joint information.

For a game tree, a row is the number of an infoset, or the number of a decision in the
joint information of both players. Networks are evaluated at all numbers once per fit,
and samplers look up the results. For other games, rows are features, and a network is
evaluated at the positions that a batch visits, see `Knowledge`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import networks
from spiel_cr.common.jax_utils import precision
from spiel_cr.common.networks import Parameters
from spiel_cr.games.histories import states_at
from spiel_cr.games.opening.game_checks import feature_count
from spiel_cr.games.simulation.simulator import Positions
from spiel_cr.games.tree.tree import GameTree

# Number of networks of each player whose outputs are cached.
_KEPT = 2


class ActingInfosets(NamedTuple):
    """Information of the acting players at m decisions of one player.

    Attributes:
      rows: Infosets, int64 [m], in a game tree; otherwise features, float32 [m, F].
      legal: Legal actions, bool [m, A], by OpenSpiel's actions.
    """

    rows: np.ndarray
    legal: np.ndarray


class Knowledge(Protocol):
    """Information of the players at a simulator's positions, as input of networks.

    `rows` are opaque: arrays that can be indexed along their first axis. The input of a
    critic is *joint* information: the information of both players together.
    """

    @property
    def num_actions(self) -> int:
        """Number A of actions of the game: OpenSpiel's `num_distinct_actions`."""

    @property
    def num_features(self) -> int:
        """Number F of features of an infoset. Joint information has 2 F features."""

    @property
    def legal(self) -> Sequence[np.ndarray | None]:
        """Legal actions (OpenSpiel's) at each player's infosets, bool [I, A].

        None: infosets are not numbered.
        """

    @property
    def deciders(self) -> np.ndarray | None:
        """Player who decides at each row of joint information, int8 [J].

        None: joint information is not numbered.
        """

    @property
    def scale(self) -> float:
        """Unit of the outputs of networks: half of the range of utilities, or 1."""

    def seen(
        self, positions: Positions, places: np.ndarray, player: int
    ) -> ActingInfosets:
        """Return the information of a player at its decisions.

        Args:
          positions: Positions of the simulator.
          places: Indices of decisions of the player, int64 [m].
          player: Player who observes.
        """

    def joint(self, positions: Positions, places: np.ndarray) -> np.ndarray:
        """Return rows of joint information, [m, ...].

        Args:
          positions: Positions of the simulator.
          places: Indices of decisions, int64 [m].
        """

    def player_rows(self, joint: np.ndarray, player: int) -> np.ndarray:
        """Return rows of the information of the acting player, [m, ...].

        Args:
          joint: Rows from `joint`.
          player: Player who acts in all of them.
        """

    def outputs(
        self, parameters: Parameters, rows: np.ndarray, player: int | None
    ) -> np.ndarray:
        """Return the outputs of a network, float32 [m, A].

        Args:
          parameters: Parameters of the network; results may be cached for this object.
          rows: Rows of a player's infosets, or of joint information.
          player: Player whose infosets are the input; None: joint information.
        """

    def table(self, player: int | None) -> jax.Array | None:
        """Return the features of all rows, float32 [I, F], or [J, 2 F] for None.

        The result is None if rows are features themselves.
        """


class TreeKnowledge:
    """`Knowledge` of a game tree.

    Attributes:
      tree: Game tree.
      num_actions, num_features, legal, deciders, scale: Facts as in `Knowledge`.
      sequence: Logical sequence of each action, int64 [I, A] for each player; 0 at
        illegal actions.
    """

    def __init__(self, tree: GameTree, features: str = "information_state") -> None:
        """Number joint information; features are computed when they are first needed.

        Args:
          tree: Game tree.
          features: Name of the tensors, "information_state" or "observation".
        """
        self.tree, self._features = tree, features
        game = tree.game
        self.num_actions: int = game.num_distinct_actions()
        self.scale = scale_of(game)
        histories = tree.histories
        self._decisions = np.flatnonzero(histories.player >= 0)
        self._number = np.full(len(histories), -1, np.int64)
        self._number[self._decisions] = np.arange(len(self._decisions))
        self.deciders = histories.player[self._decisions]
        self._infoset = histories.infoset[self._decisions].astype(np.int64)
        self.legal: list[np.ndarray] = []
        self.sequence: list[np.ndarray] = []
        for infosets in tree.infosets:
            place = np.zeros((len(infosets), self.num_actions), np.int64)
            owner = infosets.decisions.owner[1:]
            place[owner, infosets.actions] = 1 + np.arange(len(owner))
            self.sequence.append(place)
            self.legal.append(place > 0)
        self._tables: dict[int | None, jax.Array] = {}
        # Outputs of the last evaluated networks of each player, the newest at the end.
        # There are two networks: one of advantages and one of predictions.
        self._kept: dict[int | None, list[tuple[Any, np.ndarray]]] = {}

    @property
    def num_features(self) -> int:
        """Number F of features of an infoset; see `Knowledge`.

        Raises:
          ValueError: If the game does not provide these tensors.
        """
        return feature_count(self.tree.game, self._features)

    def seen(
        self, positions: Positions, places: np.ndarray, player: int
    ) -> ActingInfosets:
        """Return the information of a player; see `Knowledge`."""
        rows = self.tree.histories.infoset[positions.states[places]].astype(np.int64)
        return ActingInfosets(rows, self.legal[player][rows])

    def everywhere(self, player: int) -> ActingInfosets:
        """Return the information of a player at all of its infosets, in order."""
        legal = self.legal[player]
        return ActingInfosets(np.arange(len(legal)), legal)

    def joint(self, positions: Positions, places: np.ndarray) -> np.ndarray:
        """Return rows of joint information; see `Knowledge`."""
        return self._number[positions.states[places]]

    def player_rows(self, joint: np.ndarray, player: int) -> np.ndarray:
        """Return rows of the acting player's infosets; see `Knowledge`."""
        return self._infoset[joint]

    def outputs(
        self, parameters: Parameters, rows: np.ndarray, player: int | None
    ) -> np.ndarray:
        """Return the outputs of a network; see `Knowledge`.

        All rows are evaluated at once, and the results are cached.
        """
        kept = self._kept.setdefault(player, [])
        places = [k for k, one in enumerate(kept) if one[0] is parameters]
        if places:
            answers = kept.pop(places[0])[1]
        else:
            answers = networks.evaluate(parameters, self.table(player))
        kept.append((parameters, answers))
        del kept[:-_KEPT]
        return answers[rows]

    def table(self, player: int | None) -> jax.Array:
        """Return the features of all rows; see `Knowledge`."""
        if player not in self._tables:
            if player is None:
                tensors = self._tensors(self._decisions, (0, 1))
            else:
                tensors = self._tensors(self.tree.infosets[player].history, (player,))
            with precision(np.dtype(np.float32)):
                self._tables[player] = jnp.asarray(tensors)
        return self._tables[player]

    def behaviour(self, player: int, strategy: np.ndarray) -> np.ndarray:
        """Return a strategy, float64 [I, A], by logical sequence, float64 [S].

        Args:
          player: Player whose strategy it is.
          strategy: Probabilities at all infosets, float64 [I, A].
        """
        count = self.tree.infosets[player].decisions.num_sequences
        behaviour = np.ones(count)
        legal = self.legal[player]
        behaviour[self.sequence[player][legal]] = strategy[legal]
        return behaviour

    def _tensors(self, histories: np.ndarray, players: tuple[int, ...]) -> np.ndarray:
        """Return features of histories, float32 [n, F · players]."""
        shape = len(histories), len(players), self.num_features
        tensors = np.zeros(shape, np.float32)
        for i, state in states_at(self.tree.game, self.tree.histories, histories):
            read = getattr(state, f"{self._features}_tensor")
            tensors[i] = [read(player) for player in players]
        return tensors.reshape(shape[0], shape[1] * shape[2])


def scale_of(game: Any) -> float:
    """Return half of the range of utilities; 1 if that is zero or not finite."""
    scale = (game.max_utility() - game.min_utility()) / 2
    return float(scale) if 0 < scale < np.inf else 1.0
