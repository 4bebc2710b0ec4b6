"""What an average strategy consists of: a network, a bank of iterates, or numbers.

These are plain arrays, for files and for whoever plays them. `solver.DeepSolver` makes
them; on compiled games `behaviour` says what they play.
"""

import dataclasses

import numpy as np

from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies.conversions import (
    behaviour_from_reach,
    reach_from_behaviour,
    uniform_behaviour,
)
from spiel_cr.solvers.deep.outputs import Shape


@dataclasses.dataclass(frozen=True)
class NetworkAverage:
    """Both players' average networks: `outputs.softmax` of their outputs is played.

    Attributes:
      shape: of both networks.
      features: what they see, as `config.FEATURES`.
      leaves: for each player its arrays, see `networks.leaves`; None: plays uniformly.
    """

    shape: Shape
    features: str
    leaves: tuple[list[np.ndarray] | None, list[np.ndarray] | None]


@dataclasses.dataclass(frozen=True)
class BankAverage:
    """Both players' iterates: `outputs.regret_matching` of their outputs is played.

    The average strategy is the mixture of the iterates: whoever plays it draws one of
    them at the start of a match, by its weight, and keeps to it (Steinberger 2019).
    At an infoset an iterate therefore counts by its weight times its own reach.

    Attributes:
      shape: of all networks; None: iterates are tables of infosets.
      features: what they see, as `config.FEATURES`.
      fallback: what is played where no output is positive, as `config.FALLBACK`.
      leaves: for each player its arrays with an axis [T] in front, see
        `networks.leaves`; of a table one array float64 [T, I, A] by infoset and
        OpenSpiel's action.
      weights: for each player float64 [T]. An iterate that is all zeros plays
        uniformly (the one before the first fit).
    """

    shape: Shape | None
    features: str
    fallback: str
    leaves: tuple[list[np.ndarray], list[np.ndarray]]
    weights: tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class ExactAverage:
    """Both players' average strategies in numbers, of a compiled game.

    Attributes:
      behaviour: for each player float64 [S], action probabilities by logical sequence.
    """

    behaviour: tuple[np.ndarray, np.ndarray]


Average = NetworkAverage | BankAverage | ExactAverage


class RunningReach:
    """The weighted mean of sequence forms, of one player of a compiled game.

    Attributes:
      total: float64 [S], the weighted sum of reach so far.
    """

    def __init__(self, tree: CompiledGame, player: int) -> None:
        self._decisions = tree.infosets[player].decisions
        self.total = np.zeros(self._decisions.num_sequences)

    def add(self, behaviour: np.ndarray, weight: float) -> None:
        """Takes in an iterate.

        Args:
          behaviour: float64 [S], its action probabilities by logical sequence.
          weight: of it, 0 or more.
        """
        self.total += weight * reach_from_behaviour(self._decisions, behaviour)

    def behaviour(self) -> np.ndarray:
        """float64 [S], the average strategy; uniform where nothing was taken in."""
        if not self.total[0] > 0:
            return uniform_behaviour(self._decisions)
        return behaviour_from_reach(self._decisions, self.total)
