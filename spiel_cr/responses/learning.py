"""Fourth stage: what both training loops share, steps and files of progress."""

import os
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import storage
from spiel_cr.responses import network
from spiel_cr.responses.learning_config import LearningConfig


class Learner(NamedTuple):
    """What learns.

    Attributes:
      parameters: the network's.
      optimiser: Adam's state.
    """

    parameters: Any
    optimiser: Any


class Progress(NamedTuple):
    """All that a run is, between two rounds.

    Attributes:
      round: rounds so far.
      simulations: of all episodes.
      learner: parameters and optimiser.
      samples: the replay buffer, numpy arrays by name.
      curve: points so far.
    """

    round: int
    simulations: int
    learner: Learner
    samples: dict[str, np.ndarray]
    curve: list[Any]


def steps(
    graph: Any,
    learner: Learner,
    seen: network.Inputs,
    samples: network.Samples,
    size: int,
    config: LearningConfig,
    random: np.random.Generator,
) -> tuple[Learner, network.Losses]:
    """The optimiser's steps of one round.

    Args:
      graph: the network's structure.
      learner: what learns.
      seen: of all infosets that samples name.
      samples: the replay buffer, padded to `config.replay` rows, so that there is one
        program.
      size: rows that are not padding.
      config: of learning.
      random: chooses the minibatches; consumed.

    Returns:
      What has learned, and the mean losses.
    """
    rows = random.integers(size, size=(config.steps, config.minibatch))
    parameters, optimiser, losses = network.fit(
        graph,
        learner.parameters,
        learner.optimiser,
        seen,
        jax.device_put(samples),
        jnp.asarray(rows.astype(np.int32)),
        jnp.asarray(config.l2, jnp.float32),
        learning_rate=config.learning_rate,
    )
    return Learner(parameters, optimiser), losses


class ProgressFile:
    """A run's progress in a file, and the way back."""

    def __init__(
        self,
        path: storage.Path,
        identity: dict[str, Any],
        blank: Progress,
        point: type,
    ) -> None:
        """Looks only whether it could write.

        Args:
          path: of the file.
          identity: what a file must agree with, as JSON has it.
          blank: a run that has not begun, for the shapes.
          point: of the curve, a NamedTuple of numbers and strings.

        Raises:
          ValueError: the path cannot be written to.
        """
        storage.check_writable(path)
        self._path, self._identity, self._point = pathlib.Path(path), identity, point
        leaves, self._structure = jax.tree.flatten(blank.learner)
        self._shapes = [(leaf.shape, leaf.dtype) for leaf in leaves]
        self._samples = tuple(blank.samples)

    def write(self, now: Progress) -> None:
        """Atomically; the old file stays if this is interrupted."""
        leaves = jax.tree.leaves(now.learner)
        arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        storage.save(
            self._path,
            {**arrays, **now.samples},
            {
                **self._identity,
                "round": now.round,
                "simulations": now.simulations,
                "curve": [list(point) for point in now.curve],
                "versions": storage.versions(),
            },
        )

    def read(self, most: int) -> Progress | None:
        """What the file holds; None where there is no file.

        Args:
          most: rounds that a run may have.

        Raises:
          ValueError: it belongs to another run, has more rounds, or is damaged.
        """
        if not self._path.exists():
            return None
        name = f"checkpoint_path={os.fspath(self._path)!r}"
        arrays, metadata = storage.load(self._path)
        for key, mine in self._identity.items():
            if metadata.get(key) != mine:
                raise ValueError(
                    f"{name} has a run with {key} {metadata.get(key)!r}, and this one "
                    f"has {mine!r}; give another path or the same arguments"
                )
        try:
            leaves = [arrays[f"leaf{i}"] for i in range(len(self._shapes))]
            if [(leaf.shape, leaf.dtype) for leaf in leaves] != self._shapes:
                raise ValueError("its parameters have other shapes")
            found = Progress(
                int(metadata["round"]),
                int(metadata["simulations"]),
                jax.tree.unflatten(self._structure, map(jnp.asarray, leaves)),
                {key: arrays[key] for key in self._samples},
                [self._point(*point) for point in metadata["curve"]],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{name} is damaged ({error!r}); delete it to start anew"
            ) from error
        if found.round > most:
            raise ValueError(
                f"{name} holds {found.round} rounds and the opponents have {most}; ask "
                f"for more or give another path"
            )
        return found
