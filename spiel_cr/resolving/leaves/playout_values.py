"""Leaf values of game trees by playouts: means of simulated continuations.

Both players continue by uniform play or by a policy until the end of the game, as in
the general continual re-solving of the thesis by Schlindenbuch. One number per history
is not sound, whatever the number of playouts is: the opponent's range at the leaf
changes with the strategy above it (see docs/explanation/depth-limits.md). For many
playouts the values approach those of `UniformValue`.
"""

from collections.abc import Sequence

import numpy as np

from spiel_cr.common.checks import check_iterations
from spiel_cr.common.draws import BELOW_ONE
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.conversions import move_probabilities, uniform_behaviour
from spiel_cr.policies.leaf_values import TreeLeafValues
from spiel_cr.resolving.leaves.continuations import Strategies, blueprint_behaviour


class PlayoutValue(TreeLeafValues):
    """Mean utility of playouts that start at each history; for game trees only.

    Playouts of one history are independent of each other. Playouts of two histories are
    independent if neither follows the other, as with all leaves of a lookahead.
    """

    def __init__(
        self, n: int = 100, seed: int = 0, path: Strategies | None = None
    ) -> None:
        """Set the number of playouts.

        Args:
          n: Number of playouts for each history, at least 1.
          seed: Seed for the playouts, at least 0.
          path: Path of a policy file by which both players continue, or a policy. If
            None, they play uniformly at random.

        Raises:
          ValueError: If a number is out of range.
        """
        self._n = check_iterations(n, name="n")
        self._seed, self._path = seed, path

    def values(self, tree: GameTree) -> Sequence[np.ndarray]:
        if self._path is None:
            behaviour = tuple(uniform_behaviour(i.decisions) for i in tree.infosets)
        else:
            behaviour = blueprint_behaviour(self._path, tree)
        step = move_probabilities(tree, behaviour)
        random = np.random.default_rng(self._seed)
        total = np.zeros(len(tree.histories))
        for _ in range(self._n):
            total += _playout(tree, step, random)
        return [total / self._n] * 2


def _playout(
    tree: GameTree, step: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return the utility of one playout from each history, float64 [N].

    At every history one move is drawn, so that each history leads to one end.

    Args:
      tree: The game tree.
      step: Probability of the move into each history except the root, float64 [N - 1].
      random: Source of random numbers; one number is drawn for each history.
    """
    histories = tree.histories
    value, points = histories.utility.copy(), random.random(len(histories)) * BELOW_ONE
    for depth in reversed(histories.by_depth[1:]):
        parent = histories.parent[depth]
        starts = np.flatnonzero(np.diff(parent, prepend=-1))
        sizes = np.diff(starts, append=len(parent))
        share = step[depth.start - 1 : depth.stop - 1]
        sums = np.cumsum(share)
        within = sums - np.repeat(sums[starts] - share[starts], sizes)
        below = within <= points[parent] * np.repeat(within[starts + sizes - 1], sizes)
        drawn = np.minimum(np.add.reduceat(below, starts, dtype=np.int64), sizes - 1)
        value[parent[starts]] = value[depth.start + starts + drawn]
    return value
