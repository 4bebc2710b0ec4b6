"""What is learned: a number for each action from what is known, by network or table."""

import numpy as np

from spiel_cr.common import network_fits, networks
from spiel_cr.common.network_fits import FitSchedule, Targets
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import Knowledge
from spiel_cr.solvers.deep.outputs import Shape
from spiel_cr.solvers.deep.reservoirs import sums_by_row

# Advantages, but for those of bad actions, are small beside the range of utilities, and
# steps of Adam move outputs by about the learning rate. With this share of half of the
# range as the unit of outputs, fits on Leduc poker miss strategies by a fifth as much.
_UNIT = 1 / 16


class Perceptron:
    """A network: numbers for each action from rows (see `infosets.Knowledge`).

    Attributes:
      shape: of the network.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        player: int | None,
        config: DeepConfig,
        *,
        scale: float,
        seed: int,
    ) -> None:
        """Makes a network.

        Args:
          knowledge: what its rows stand for.
          player: whose infosets it sees; None: joint information.
          config: says how many hidden units and layers.
          scale: what its outputs are multiplied with.
          seed: of its first weights.
        """
        self._knowledge, self._player, self._scale = knowledge, player, scale
        wide = knowledge.num_features * (2 if player is None else 1)
        self.shape = Shape(wide, knowledge.num_actions, config.hidden, config.layers)
        self._parameters = networks.make(self.shape.widths, seed)

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """float64 [m, A], in the targets' units."""
        outputs = self._knowledge.outputs(self._parameters, rows, self._player)
        return outputs.astype(np.float64) * self._scale

    def fit(
        self,
        targets: Targets,
        plan: FitSchedule,
        random: np.random.Generator,
        *,
        ordered: bool = False,
    ) -> float:
        """Fits it to targets; returns the loss.

        Args:
          targets: what it shall say.
          plan: steps and loss.
          random: advanced.
          ordered: see `network_fits.fit`.
        """
        self._parameters, loss = network_fits.fit(
            self._parameters,
            self._knowledge.table(self._player),
            targets,
            plan,
            random,
            scale=self._scale,
            ordered=ordered,
        )
        return loss

    def leaves(self) -> list[np.ndarray]:
        """All that it has learned, float32 arrays."""
        return networks.leaves(self._parameters)

    def restore(self, leaves: list[np.ndarray]) -> None:
        """Puts back what `leaves` gave.

        Raises:
          ValueError: it is not of such a network.
        """
        networks.check_arrays(self.shape.widths, leaves)
        self._parameters = networks.assembled(leaves)


class Table:
    """Numbers of a compiled game's infosets or joint information, as a `Perceptron`'s.

    Its fit is what minimises the squared loss: the weighted mean target. What no target
    speaks of stays as it is.

    Attributes:
      values: float64 [rows, A].
    """

    def __init__(self, rows: int, actions: int) -> None:
        """Is zero everywhere.

        Args:
          rows: infosets, or joint information.
          actions: A.
        """
        self.values = np.zeros((rows, actions))

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """See `Perceptron`."""
        return self.values[rows]

    def fit(
        self,
        targets: Targets,
        plan: FitSchedule,
        random: np.random.Generator,
        *,
        ordered: bool = False,
    ) -> float:
        """See `Perceptron.fit`; there is no loss to tell."""
        weight = np.where(targets.legal, targets.weight[:, None], 0)
        target = np.where(weight > 0, targets.target, 0)
        count = len(self.values)
        total = sums_by_row(targets.rows, weight * target, count)
        over = sums_by_row(targets.rows, weight, count)
        np.divide(total, over, out=self.values, where=over > 0)
        return 0.0

    def leaves(self) -> list[np.ndarray]:
        """One float64 array."""
        return [self.values.copy()]

    def restore(self, leaves: list[np.ndarray]) -> None:
        """See `Perceptron`."""
        if len(leaves) != 1 or leaves[0].shape != self.values.shape:
            raise ValueError("the table is of another game")
        self.values = leaves[0].astype(np.float64)


Approximator = Perceptron | Table


def make_approximator(
    knowledge: Knowledge, player: int | None, config: DeepConfig, seed: int
) -> Approximator:
    """The network or table of a configuration.

    Args:
      knowledge: what rows stand for.
      player: whose infosets it sees; None: joint information.
      config: the algorithm.
      seed: of first weights.
    """
    if config.network == "table":
        rows = knowledge.deciders if player is None else knowledge.legal[player]
        assert rows is not None  # see `DeepConfig.needs_tree`
        return Table(len(rows), knowledge.num_actions)
    scale = knowledge.scale * (1 if player is None else _UNIT)
    return Perceptron(knowledge, player, config, scale=scale, seed=seed)
