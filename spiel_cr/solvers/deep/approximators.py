"""Approximators of a number for each action: a network, or a table."""

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
    """A network from rows (see `infosets.Knowledge`) to numbers for each action.

    Attributes:
      shape: Shape of the network.
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
        """Make a network.

        Args:
          knowledge: Meaning of its rows.
          player: The player whose infosets are its input; None: joint information.
          config: Settings, which contain the numbers of hidden units and layers.
          scale: Factor of its outputs.
          seed: Seed of its first weights.
        """
        self._knowledge, self._player, self._scale = knowledge, player, scale
        wide = knowledge.num_features * (2 if player is None else 1)
        self.shape = Shape(wide, knowledge.num_actions, config.hidden, config.layers)
        self._parameters = networks.make(self.shape.widths, seed)

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Return the outputs in the targets' units, float64 [m, A]."""
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
        """Fit the network to targets; return the loss.

        Args:
          targets: Targets of its outputs.
          plan: Steps and loss.
          random: Random generator, which is advanced.
          ordered: See `network_fits.fit`.
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
        """Return all parameters as float32 arrays."""
        return networks.leaves(self._parameters)

    def restore(self, leaves: list[np.ndarray]) -> None:
        """Restore the parameters that `leaves` returned.

        Raises:
          ValueError: If they belong to another network.
        """
        networks.check_arrays(self.shape.widths, leaves)
        self._parameters = networks.assembled(leaves)


class Table:
    """A table of numbers by infoset or joint information, used like a `Perceptron`.

    Its fit minimises the squared loss exactly: it is the weighted mean target. Rows
    without targets do not change.

    Attributes:
      values: Numbers, float64 [rows, A].
    """

    def __init__(self, rows: int, actions: int) -> None:
        """Make a table of zeros.

        Args:
          rows: Number of infosets, or of rows of joint information.
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
        """See `Perceptron.fit`; the loss is not computed."""
        weight = np.where(targets.legal, targets.weight[:, None], 0)
        target = np.where(weight > 0, targets.target, 0)
        count = len(self.values)
        total = sums_by_row(targets.rows, weight * target, count)
        over = sums_by_row(targets.rows, weight, count)
        np.divide(total, over, out=self.values, where=over > 0)
        return 0.0

    def leaves(self) -> list[np.ndarray]:
        """Return one float64 array."""
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
    """Make the network or table of a configuration.

    Args:
      knowledge: Meaning of rows.
      player: The player whose infosets are the input; None: joint information.
      config: The algorithm.
      seed: Seed of the first weights.
    """
    if config.network == "table":
        rows = knowledge.deciders if player is None else knowledge.legal[player]
        assert rows is not None  # see `DeepConfig.needs_tree`
        return Table(len(rows), knowledge.num_actions)
    scale = knowledge.scale * (1 if player is None else _UNIT)
    return Perceptron(knowledge, player, config, scale=scale, seed=seed)
