"""What a value network is trained for: public states of a game, and their ranges."""

from typing import Any, Protocol

import numpy as np

from spiel_cr.compilation.fingerprints import fingerprint
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.lookahead.leaf_strings import DepthUnit
from spiel_cr.lookahead.network import NetworkValues, known_states
from spiel_cr.lookahead.public_states import PublicStates
from spiel_cr.lookahead.set_network import Architecture
from spiel_cr.value_training.cuts import find_cuts
from spiel_cr.value_training.met_ranges import MeetSettings, Met, meet
from spiel_cr.value_training.random_ranges import random_ranges


class ValueNetwork(Protocol):
    """A network that can be written."""

    def save(self, path: Any) -> None:
        """Writes it to an .npz file.

        Raises:
          OSError: the file cannot be written.
        """


class Problem(Protocol):
    """The public states of a game for which a network is trained, in parts.

    Attributes:
      game: OpenSpiel's string of the game.
      cut: where the lookaheads end, for files.
      seal: of what was found, for checkpoints.
      scale: the game's largest |utility|.
      parts: the public states; none of a part lies below another one.
      games: for each part the game that holds what lies below.
    """

    game: str
    cut: str
    seal: str
    scale: float
    parts: tuple[PublicStates, ...]
    games: tuple[CompiledGame, ...]

    def features(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """float32 [J0, F] and [J1, F], what a network reads at a part's infosets."""

    def random(
        self, number: int, count: int, random: np.random.Generator, pure: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random ranges of a part, see `random_ranges`."""

    def meet(self, network: Any, settings: MeetSettings) -> Met:
        """Resolves the game with a network, and notes ranges, see `met_ranges`."""

    def network(
        self, architecture: Architecture, parameters: dict[str, np.ndarray]
    ) -> Any:
        """A network of these parameters, as a leaf value."""


class CompiledProblem:
    """A `Problem` of a game that is compiled whole."""

    def __init__(self, tree: CompiledGame, depth: int, unit: DepthUnit) -> None:
        """Finds the public states.

        Args:
          tree: compiled with `observations=True`.
          depth, unit: of lookaheads.

        Raises:
          ValueError: no lookahead ends before the game does.
        """
        self._tree, self._depth, self._unit = tree, depth, unit
        self._cuts = find_cuts(tree, depth, unit)
        self.game, self.cut = str(tree.game), f"{depth} {unit}"
        self.seal = fingerprint(tree)
        self.scale = float(np.abs(tree.histories.utility).max()) or 1.0
        self.parts = self._cuts.parts
        self.games = (tree,) * len(self.parts)
        self._known = known_states([(tree, states) for states in self.parts])

    def features(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Problem`."""
        states = self.parts[number]
        return self._known.features(states, self._known.find(self._tree, states))

    def random(
        self, number: int, count: int, random: np.random.Generator, pure: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Problem`."""
        return random_ranges(self._tree, self.parts[number], count, random, pure=pure)

    def meet(self, network: NetworkValues, settings: MeetSettings) -> Met:
        """See `Problem`."""
        return meet(self._cuts, self._depth, self._unit, network, settings)

    def network(
        self, architecture: Architecture, parameters: dict[str, np.ndarray]
    ) -> NetworkValues:
        """See `Problem`."""
        return NetworkValues(
            *(architecture, parameters, self._known),
            scale=self.scale,
            game=self.game,
            seal=self.seal,
            cut=self.cut,
        )
