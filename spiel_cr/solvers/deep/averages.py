"""Data of average strategies: a network, an ensemble of iterates, or the mean reach.

These are plain arrays, for files and for policies. `deep_solver.DeepSolver` computes
them.
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
from spiel_cr.solvers.deep.outputs import PerceptronShape

# Rule of networks that were fitted to strategies. Iterates have a fallback instead.
SOFTMAX = "softmax"


@dataclasses.dataclass(frozen=True)
class Networks:
    """Networks of both players, T of each, and the rule that computes strategies.

    There are two kinds. One network that was fitted to average strategies is played
    with `outputs.softmax`. An ensemble of iterates is played with
    `outputs.regret_matching`. Its average strategy is the mixture in which one iterate
    is drawn at the start of a match, with probability proportional to its weight, and
    played until the end (Steinberger 2019). At an infoset, the weight of an iterate is
    therefore its weight times its own reach.

    Attributes:
      shape: Shape of all networks; None: iterates are tables of infosets.
      features: Inputs of the networks, as `config.FEATURES`.
      rule: `SOFTMAX`, or the strategy of iterates if no output is positive, as
        `config.FALLBACK`.
      leaves: Arrays of each player with a leading axis [T], see `networks.leaves`; a
        table has one array float64 [T, I, A] by infoset and OpenSpiel's action. A
        network of zeros plays uniformly.
      weights: Weights of the networks, float64 [T] for each player.
    """

    shape: PerceptronShape | None
    features: str
    rule: str
    leaves: tuple[list[np.ndarray], list[np.ndarray]]
    weights: tuple[np.ndarray, np.ndarray]

    @classmethod
    def single(
        cls, shape: PerceptronShape, features: str, leaves: Sequence[list[np.ndarray]]
    ) -> "Networks":
        """Return one network of each player, played with softmax, from its arrays."""
        first, second = (
            [leaf[None] for leaf in player_leaves] for player_leaves in leaves
        )
        return cls(shape, features, SOFTMAX, (first, second), (np.ones(1), np.ones(1)))

    def check(self) -> None:
        """Raise ValueError if arrays do not have the shape of the networks.

        Raises:
          ValueError: If shapes differ, or the arrays of an ensemble have different
            numbers of iterates.
        """
        assert self.shape is not None
        for leaves, weights in zip(self.leaves, self.weights, strict=True):
            shapes = networks.array_shapes(self.shape.widths)
            leaf_shapes = [np.shape(leaf) for leaf in leaves]
            if leaf_shapes != [(len(weights), *one) for one in shapes] or not len(
                weights
            ):
                raise ValueError(
                    f"arrays of the shapes {leaf_shapes} do not belong to networks "
                    f"with {self.shape}"
                )


class RunningReach:
    """Weighted mean of one player's strategies in sequence form, for a game tree.

    Attributes:
      total: Weighted sum of reach so far, float64 [S].
    """

    def __init__(self, tree: GameTree, player: int) -> None:
        self._decisions = tree.infosets[player].decisions
        self.total = np.zeros(self._decisions.num_sequences)

    def add(self, behaviour: np.ndarray, weight: float) -> None:
        """Add an iterate.

        Args:
          behaviour: Probability of each sequence's last action, float64 [S].
          weight: Weight of the iterate, at least 0.
        """
        self.total += weight * reach_from_behaviour(self._decisions, behaviour)

    def behaviour(self) -> np.ndarray:
        """Return the average strategy, float64 [S]; uniform without iterates."""
        if not self.total[0] > 0:
            return uniform_behaviour(self._decisions)
        return behaviour_from_reach(self._decisions, self.total)
