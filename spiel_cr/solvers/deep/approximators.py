"""Approximators of a number for each action: a network, or a table."""

import numpy as np

from spiel_cr.common import network_fits, networks
from spiel_cr.common.network_fits import FitSchedule, Targets
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import Knowledge
from spiel_cr.solvers.deep.outputs import PerceptronShape
from spiel_cr.solvers.deep.reservoirs import sums_by_row

# Except for bad actions, advantages are small compared with the range of utilities, and
# a step of Adam changes outputs by about the learning rate. With this share of half of
# the range as the unit of outputs, the errors of fitted strategies on Leduc poker are
# five times smaller than with half of the range.
_UNIT = 1 / 16


class Perceptron:
    """Network from rows (see `infosets.Knowledge`) to numbers for each action.

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
        """Create a network.

        Args:
          knowledge: Meaning of its rows.
          player: Player whose infosets are the input; None: joint information.
          config: Settings, which contain the numbers of hidden units and layers.
          scale: Factor of its outputs.
          seed: Seed of its first weights.
        """
        self._knowledge, self._player, self._scale = knowledge, player, scale
        self.shape = PerceptronShape.of(knowledge, config, is_joint=player is None)
        self._parameters = networks.make(self.shape.widths, seed)

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Return the outputs in the targets' units, float64 [m, A]."""
        outputs = self._knowledge.outputs(self._parameters, rows, self._player)
        return outputs.astype(np.float64) * self._scale

    def fit(
        self,
        targets: Targets,
        schedule: FitSchedule,
        random: np.random.Generator,
        *,
        ordered: bool = False,
    ) -> float:
        """Fit the network to targets; return the loss.

        Args:
          targets: Targets of its outputs.
          schedule: Schedule of steps, and kind of loss.
          random: Random number generator, which is advanced.
          ordered: Order of the rows as in `network_fits.fit`.
        """
        self._parameters, loss = network_fits.fit(
            self._parameters,
            self._knowledge.table(self._player),
            targets,
            schedule,
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


class LookupTable:
    """Table of numbers by infoset or joint information, used like a `Perceptron`.

    Its fit minimises the squared loss exactly: the result is the weighted mean target.
    Rows without targets do not change.

    Attributes:
      values: Numbers, float64 [rows, A].
    """

    def __init__(self, rows: int, actions: int) -> None:
        """Create a table of zeros.

        Args:
          rows: Number of infosets, or of rows of joint information.
          actions: Number A of actions.
        """
        self.values = np.zeros((rows, actions))

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Return the outputs; see `Perceptron`."""
        return self.values[rows]

    def fit(
        self,
        targets: Targets,
        schedule: FitSchedule,
        random: np.random.Generator,
        *,
        ordered: bool = False,
    ) -> float:
        """Fit the table to targets; see `Perceptron.fit`. The loss is not computed."""
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
        """Restore the values that `leaves` returned; see `Perceptron`."""
        if len(leaves) != 1 or leaves[0].shape != self.values.shape:
            raise ValueError("the table belongs to another game")
        self.values = leaves[0].astype(np.float64)


Approximator = Perceptron | LookupTable


def make_approximator(
    knowledge: Knowledge, player: int | None, config: DeepConfig, seed: int
) -> Approximator:
    """Return the network or table of a configuration.

    Args:
      knowledge: Meaning of rows.
      player: Player whose infosets are the input; None: joint information.
      config: Settings of the algorithm.
      seed: Seed of the first weights.
    """
    if config.network == "table":
        rows = knowledge.deciders if player is None else knowledge.legal[player]
        assert rows is not None  # `DeepConfig.needs_tree` ensures it.
        return LookupTable(len(rows), knowledge.num_actions)
    scale = knowledge.scale * (1 if player is None else _UNIT)
    return Perceptron(knowledge, player, config, scale=scale, seed=seed)
