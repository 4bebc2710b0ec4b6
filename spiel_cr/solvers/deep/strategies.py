"""Average strategy of one player during training, by each method."""

import numpy as np

from spiel_cr.common import networks
from spiel_cr.common.network_fits import FitSchedule, Targets
from spiel_cr.solvers.deep.approximators import Perceptron, make_approximator
from spiel_cr.solvers.deep.averages import SOFTMAX, Networks, RunningReach
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import Knowledge, TreeKnowledge
from spiel_cr.solvers.deep.outputs import regret_matching, softmax
from spiel_cr.solvers.deep.reservoirs import InfosetSums, make_memory, to_fit


class SampledStrategies:
    """Memory of sampled strategies, to which an average network is fitted.

    Attributes:
      memory: Strategies at visits.
    """

    def __init__(
        self, knowledge: Knowledge, player: int, config: DeepConfig, seed: int
    ) -> None:
        """Create an empty memory.

        Args:
          knowledge: Meaning of rows.
          player: Player whose strategy is averaged.
          config: Settings of the algorithm.
          seed: Seed of the fit.
        """
        self._knowledge, self._player, self._config = knowledge, player, config
        self._seed = seed
        self.memory = make_memory(knowledge, player, config)

    def add(self, visits: Targets, weight: float, random: np.random.Generator) -> None:
        """Add visits.

        Args:
          visits: Visits with strategies as targets.
          weight: Weight of the iteration.
          random: Random number generator, which is advanced.
        """
        self.memory.add(visits._replace(weight=visits.weight * weight), random)

    def fit(self) -> list[np.ndarray]:
        """Return the arrays of a new network that plays the average.

        Without visits the arrays are zeros. The same memory gives the same network.
        """
        config, samples = self._config, self.memory
        network = Perceptron(
            self._knowledge, self._player, config, scale=1.0, seed=self._seed
        )
        if isinstance(samples, InfosetSums) or len(samples):
            targets = to_fit(samples, self._knowledge, self._player, config.balance)
            if targets.weight.sum() > 0:
                schedule = FitSchedule(
                    config.average_steps, config.batch, config.learning_rate, "cross"
                )
                network.fit(targets, schedule, np.random.default_rng(self._seed))
                return network.leaves()
        return [np.zeros_like(leaf) for leaf in network.leaves()]


class IterateEnsemble:
    """Ensemble of one player's iterates.

    Attributes:
      leaves: Arrays of each stored iterate, see `networks.leaves`.
      weights: Weight of each stored iterate.
      num_seen: Number of iterates so far.
    """

    def __init__(self, limit: int) -> None:
        """Create an empty ensemble.

        Args:
          limit: Maximum number of stored iterates; 0: no limit.
        """
        self._limit = limit
        self.leaves: list[list[np.ndarray]] = []
        self.weights: list[float] = []
        self.num_seen = 0

    def add(
        self, leaves: list[np.ndarray], weight: float, random: np.random.Generator
    ) -> None:
        """Add an iterate.

        If the ensemble is full, the new iterate replaces a random one or is discarded,
        so that the ensemble remains a uniform sample.

        Args:
          leaves: Arrays of the iterate.
          weight: Weight of the iterate.
          random: Random number generator, which is advanced if the ensemble is full.
        """
        self.num_seen += 1
        if not self._limit or len(self.leaves) < self._limit:
            self.leaves.append(leaves)
            self.weights.append(weight)
            return
        place = int(random.integers(self.num_seen))
        if place < self._limit:
            self.leaves[place], self.weights[place] = leaves, weight

    def stacked(self) -> list[np.ndarray]:
        """Return the arrays of all iterates, with a leading axis [T]."""
        return [np.stack(leaf) for leaf in zip(*self.leaves, strict=True)]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that `restore` needs."""
        arrays = {f"leaf{k}": leaf for k, leaf in enumerate(self.stacked())}
        return {
            **arrays,
            "weights": np.array(self.weights),
            "num_seen": np.array(self.num_seen),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the state that `arrays` returned."""
        self.num_seen = int(arrays["num_seen"])
        self.weights = arrays["weights"].tolist()
        stacked = [arrays[f"leaf{k}"] for k in range(len(arrays) - 2)]
        self.leaves = [
            [leaf[t].copy() for leaf in stacked] for t in range(len(self.weights))
        ]


def behaviour_of(
    average: Networks, knowledge: TreeKnowledge, player: int, config: DeepConfig
) -> np.ndarray:
    """Return the strategy of networks in a game tree, float64 [S].

    Args:
      average: Networks, or tables.
      knowledge: Information in the game tree.
      player: Player whose strategy is computed.
      config: Settings of the algorithm.
    """
    legal, leaves = knowledge.legal[player], average.leaves[player]
    if average.rule == SOFTMAX:
        parameters = networks.assembled([leaf[0] for leaf in leaves])
        outputs = networks.evaluate(parameters, knowledge.table(player))
        return knowledge.behaviour(player, softmax(outputs, legal))
    running = RunningReach(knowledge.tree, player)
    iterate = make_approximator(knowledge, player, config, 0)
    for t, weight in enumerate(average.weights[player]):
        iterate.restore([leaf[t] for leaf in leaves])
        strategy = legal / legal.sum(axis=1)[:, None]
        if any(leaf[t].any() for leaf in leaves):
            outputs = iterate.outputs(np.arange(len(legal)))
            strategy = regret_matching(outputs, legal, average.rule)
        running.add(knowledge.behaviour(player, strategy), float(weight))
    return running.behaviour()
