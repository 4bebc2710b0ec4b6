"""What an average strategy consists of: a network, a bank of iterates, or its reach.

These are plain arrays, for files and for whoever plays them. `deep_solver.DeepSolver`
makes them.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from spiel_cr.common import networks
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.conversions import (
    behaviour_from_reach,
    reach_from_behaviour,
    uniform_behaviour,
)
from spiel_cr.solvers.deep.outputs import Shape

# The rule of networks that were fitted to strategies; of iterates it is a fallback.
SOFTMAX = "softmax"


@dataclasses.dataclass(frozen=True)
class Networks:
    """Both players' networks, T of each, and what of their outputs is played.

    One network that was fitted to average strategies: `outputs.softmax` is played. Or a
    bank of iterates: `outputs.regret_matching`. Then the average strategy is their
    mixture: whoever plays it draws one of them at the start of a match, by its weight,
    and keeps to it (Steinberger 2019). At an infoset an iterate therefore counts by its
    weight times its own reach.

    Attributes:
      shape: of all networks; None: iterates are tables of infosets.
      features: what they see, as `config.FEATURES`.
      rule: `SOFTMAX`, or what iterates play where no output is positive, as
        `config.FALLBACK`.
      leaves: for each player its arrays with an axis [T] in front, see
        `networks.leaves`; of a table one array float64 [T, I, A] by infoset and
        OpenSpiel's action. A network that is all zeros plays uniformly.
      weights: for each player float64 [T].
    """

    shape: Shape | None
    features: str
    rule: str
    leaves: tuple[list[np.ndarray], list[np.ndarray]]
    weights: tuple[np.ndarray, np.ndarray]

    @classmethod
    def single(
        cls, shape: Shape, features: str, leaves: Sequence[list[np.ndarray]]
    ) -> "Networks":
        """One network of each player, whose softmax is played, from its arrays."""
        first, second = (
            [leaf[None] for leaf in player_leaves] for player_leaves in leaves
        )
        return cls(shape, features, SOFTMAX, (first, second), (np.ones(1), np.ones(1)))

    def check(self) -> None:
        """Refuses arrays that are not of the shape, before a network is made.

        Raises:
          ValueError: they are not, or a bank's are of different numbers of iterates.
        """
        assert self.shape is not None
        for leaves, weights in zip(self.leaves, self.weights, strict=True):
            shapes = networks.array_shapes(self.shape.widths)
            leaf_shapes = [np.shape(leaf) for leaf in leaves]
            if leaf_shapes != [(len(weights), *one) for one in shapes] or not len(
                weights
            ):
                raise ValueError(
                    f"arrays of the shapes {leaf_shapes} are not of networks with "
                    f"{self.shape}"
                )


class RunningReach:
    """The weighted mean of sequence forms, of one player of a compiled game.

    Attributes:
      total: float64 [S], the weighted sum of reach so far.
    """

    def __init__(self, tree: GameTree, player: int) -> None:
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
