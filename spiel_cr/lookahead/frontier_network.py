"""A value network of a game that is never compiled: its file, and how it is asked.

The same set network as for compiled games (`network.py`). It reads what the game says
of the histories at a cut, since what lies below them is not there.
"""

import dataclasses
import os
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pyspiel

from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import DamagedFileError
from spiel_cr.common.jax_utils import typed
from spiel_cr.common.parameters import parse
from spiel_cr.lookahead import set_network
from spiel_cr.lookahead.frontier import Frontier, FrontierFunction
from spiel_cr.lookahead.network import (
    NetworkRangeValues,
    parameters_of,
    read_file,
    scale_of,
    wrong_file,
)
from spiel_cr.lookahead.set_network import Architecture, Capacity, Embedded
from spiel_cr.policies.leaf_values import ChoiceValues, HistoryValue

# What histories at the frontier of a partial tree are worth.
FrontierLeaf: TypeAlias = HistoryValue | ChoiceValues | FrontierFunction
CutUnit = Literal["moves", "moves_from_start"]

KIND = "value network of a game that was not compiled"


class Reading(NamedTuple):
    """What a network reads of histories.

    Attributes:
      strings: information state strings, not tensors.
      columns: int32 [C], which of their numbers.
    """

    strings: bool
    columns: np.ndarray


@dataclasses.dataclass(eq=False)
class FrontierNetwork:
    """A value network as a `FrontierFunction`.

    Attributes:
      architecture: its sizes.
      parameters: float32 arrays by name.
      reading: what it reads of histories.
      scale: the game's largest |utility|.
      game: OpenSpiel's string of the game.
      depth, unit: where trees end: every `depth` moves ("moves"), or once after as many
        moves from the start of the game ("moves_from_start").
    """

    architecture: Architecture
    parameters: dict[str, np.ndarray]
    reading: Reading
    _: dataclasses.KW_ONLY
    scale: float
    game: str
    depth: int
    unit: CutUnit

    def check_game(self, game: pyspiel.Game) -> None:
        """Refuses another game; see `FrontierFunction`.

        Raises:
          ValueError: the network was trained for another game.
        """
        if str(game) != self.game:
            raise ValueError(
                f"{game}: the value network is for {self.game}, another game; train "
                f"one for this game with spiel-cr train-values --compile never"
            )

    def next_cut(self, moves: int) -> int | None:
        """See `FrontierFunction`."""
        return next_cut(self.depth, self.unit, moves)

    def lay_out_frontier(
        self, frontier: Frontier, capacity: Capacity | None = None
    ) -> NetworkRangeValues:
        """Embeds the infosets of public states; see `FrontierFunction`."""
        states = frontier.public
        capacity = capacity or set_network.capacity_of([states])
        features = frontier.features(
            strings=self.reading.strings, columns=self.reading.columns
        )
        parameters = {name: typed(own) for name, own in self.parameters.items()}
        rows = []
        for p, own in enumerate(features):
            spare = [(0, capacity.sizes[p] - len(own)), (0, 0)]
            embedded = set_network.embed(parameters, typed(own), p)
            padded = (np.pad(np.asarray(part), spare) for part in embedded)
            rows.append(Embedded(*(typed(part) for part in padded)))
        return NetworkRangeValues(
            parameters,
            (rows[0], rows[1]),
            set_network.find_places(states, capacity),
            typed(np.asarray(self.scale, np.float64)),
        )

    def save(self, path: atomic.Path) -> None:
        """Writes the network to an .npz file, whole or not at all.

        Raises:
          OSError: the file cannot be written.
        """
        arrays = {f"parameter_{name}": own for name, own in self.parameters.items()}
        arrays["columns"] = self.reading.columns
        metadata = {
            "kind": KIND,
            "game": self.game,
            "depth": self.depth,
            "unit": self.unit,
            "strings": self.reading.strings,
            "scale": self.scale,
            "architecture": self.architecture._asdict(),
            "versions": storage.versions(),
        }
        storage.save(path, arrays, metadata)


def next_cut(depth: int, unit: CutUnit, moves: int) -> int | None:
    """As of `FrontierFunction`, for cuts as of `FrontierNetwork`."""
    if unit == "moves":
        return (moves // depth + 1) * depth
    return depth if moves < depth else None


def load_frontier_network(path: atomic.Path) -> FrontierNetwork:
    """Reads a value network that `FrontierNetwork.save` wrote.

    Args:
      path: the .npz file.

    Raises:
      OSError: there is no such file, or it cannot be read.
      ValueError: it is a network of a compiled game.
      DamagedFileError: it is no value network, or was changed since.
    """
    arrays, metadata = read_file(path)
    if metadata.get("kind") != KIND:
        raise wrong_file(
            *(path, metadata, "players of partial trees (max_histories=N)"),
            "spiel-cr train-values --compile never",
        )
    try:
        architecture, parameters = parameters_of(arrays, metadata)
        columns = arrays["columns"]
        if columns.shape != (architecture.features - 2,) or (columns < 0).any():
            raise ValueError("columns of what is read have another shape")
        unit = metadata["unit"]
        if unit not in get_args(CutUnit):
            raise ValueError(f"unit={unit!r}")
        return FrontierNetwork(
            architecture,
            parameters,
            Reading(bool(metadata["strings"]), columns.astype(np.int32)),
            scale=scale_of(metadata),
            game=str(metadata["game"]),
            depth=int(metadata["depth"]),
            unit=unit,
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFileError(
            f"{os.fspath(path)} holds a value network that does not fit together "
            f"({error}); train it again, or give another file"
        ) from error


def network_of(leaf: object) -> FrontierNetwork | None:
    """The network that a leaf's string names; None: it is no such string.

    Raises:
      OSError, ValueError, DamagedFileError: as `load_frontier_network`, or it names
        no file.
    """
    if not isinstance(leaf, str) or (found := parse(leaf, "leaf")).name != "network":
        return None
    given = found.convert({"path": str})
    if "path" not in given:
        raise ValueError(
            f"leaf={leaf!r} names no network; give leaf=network(path=FILE)"
        )
    return load_frontier_network(given["path"])
