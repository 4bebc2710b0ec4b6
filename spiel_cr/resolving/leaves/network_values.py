"""Values where a lookahead ends, by a network: its file, and how solvers ask it.

DeepStack's counterfactual value network (Moravčík et al. 2017), for compiled games: the
network is a set network (`set_network.py`) and knows of the game what its information
states say. Public states below which the same game lies are one to it.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import atomic, storage
from spiel_cr.common.checks import check_whole
from spiel_cr.common.errors import DamagedFileError
from spiel_cr.common.jax_utils import typed
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.resolving.leaves import set_network
from spiel_cr.resolving.leaves.alike import places_in
from spiel_cr.resolving.leaves.features import alike, infoset_features, tell_apart
from spiel_cr.resolving.leaves.public_states import PublicStates
from spiel_cr.resolving.leaves.set_network import Architecture, Embedded, Places
from spiel_cr.resolving.leaves.values import Ranges, ValueFunction

_KIND = "value network"
# A network's error may be larger than what it estimates.
_MARGIN = 2.0
# Of XLA, for the network in a program, and numbers for each infoset at a cut and
# unit of a layer; fitted to peaks of processes.
_PROGRAM, _COPIES = 250e6, 48


@dataclasses.dataclass(frozen=True)
class KnownStates:
    """Public states whose features a network keeps, one for each game below.

    Attributes:
      hashes: uint8 [K, 16], see `features.alike`.
      rows: float32 [U, F], the different features of infosets.
      bounds: by player int64 [K + 1], where each state's infosets begin.
      row: by player int32 [sum], the row of each infoset.
    """

    hashes: np.ndarray
    rows: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray]
    row: tuple[np.ndarray, np.ndarray]

    def find(self, tree: CompiledGame, states: PublicStates) -> np.ndarray:
        """int64 [P], which of these each public state is; -1: none."""
        number = {bytes(key): k for k, key in enumerate(self.hashes)}
        return np.array([number.get(bytes(key), -1) for key in alike(tree, states)])

    def features(
        self, states: PublicStates, known: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """float32 [J0, F] and [J1, F] of public states; `known` is what `find` says."""
        found = [
            np.zeros((len(own), self.rows.shape[1]), np.float32)
            for own in states.infosets
        ]
        for p in range(2):
            bounds = states.bounds(p)
            for state in range(len(states)):
                mine = slice(*self.bounds[p][known[state] : known[state] + 2])
                found[p][bounds[state] : bounds[state + 1]] = self.rows[
                    self.row[p][mine]
                ]
        return found[0], found[1]


def known_states(parts: list[tuple[CompiledGame, PublicStates]]) -> KnownStates:
    """Features of public states, each state once.

    They are the game's tensors, where these have one size and tell the infosets of
    every state apart, and strings elsewhere.

    Args:
      parts: public states by player and layer, no two of them alike.
    """
    hashes = [alike(tree, states) for tree, states in parts]
    strings = False
    try:
        features = [infoset_features(*part, strings=False) for part in parts]
        strings = len({own.shape[1] for both in features for own in both}) > 1
        for own, (_, states) in zip(features, parts, strict=True):
            strings = strings or not tell_apart(own, states)
    except ValueError:
        strings = True
    if strings:
        features = [infoset_features(*part, strings=True) for part in parts]
    counts = [
        np.concatenate([np.diff(states.bounds(p)) for _, states in parts])
        for p in range(2)
    ]
    joined = np.concatenate(
        [own for both in zip(*features, strict=True) for own in both]
    )
    rows, row = np.unique(joined, axis=0, return_inverse=True)
    first = int(counts[0].sum())
    row = row.reshape(-1).astype(np.int32)
    bounds = [np.concatenate([[0], np.cumsum(own)]) for own in counts]
    return KnownStates(
        np.concatenate(hashes),
        rows,
        (bounds[0], bounds[1]),
        (row[:first], row[first:]),
    )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class NetworkRangeValues:
    """A network's values of some public states; see `RangeValues`.

    Attributes:
      parameters: of the network.
      embedded: the players' infosets.
      places: of the public states.
      scale: float scalar, the game's largest |utility| over 2^exponent.
    """

    parameters: set_network.Parameters
    embedded: tuple[Embedded, Embedded]
    places: Places
    scale: jax.Array

    def values(self, player: int, ranges: Ranges) -> jax.Array:
        """float [J of player]; see `RangeValues`."""
        single = jax.tree.map(
            lambda own: own.astype(jnp.float32), (self.parameters, self.embedded)
        )
        both = set_network.both_values(single[0], single[1], self.places, ranges)
        q, u = both[player]
        return q * u.astype(q.dtype) * self.scale.astype(q.dtype)

    def largest(self) -> float:
        """Chance of an infoset times the largest utility, with a margin for errors."""
        reach = [
            max(np.asarray(group.weights).sum(axis=axis).max() for axis in (1, 2))
            for group in self.places.groups
        ]
        return _MARGIN * float(max(reach, default=0.0)) * float(self.scale)

    def rescaled(self, exponent: int) -> "NetworkRangeValues":
        """The same with values over 2^exponent."""
        scale = typed(np.ldexp(np.asarray(self.scale), -exponent))
        return dataclasses.replace(self, scale=scale)


@dataclasses.dataclass(eq=False)
class NetworkValues(ValueFunction):
    """A value network of a game, as a `ValueFunction`.

    Attributes:
      architecture: its sizes.
      parameters: float32 arrays by name.
      known: the features of the public states that it was trained at.
      scale: the game's largest |utility|.
      game: OpenSpiel's string of the game.
      seal: `fingerprint` of the compiled game.
      cut: where the lookaheads end that it was trained for, "2 moves" or "1 rounds".
    """

    architecture: Architecture
    parameters: dict[str, np.ndarray]
    known: KnownStates
    _: dataclasses.KW_ONLY
    scale: float
    game: str
    seal: str
    cut: str
    # The game that was checked last.
    _fits: CompiledGame | None = dataclasses.field(default=None, init=False, repr=False)

    def check(self, tree: CompiledGame) -> None:
        """Refuses another game; see `ValueFunction`.

        Raises:
          ValueError: the network was trained for another game.
        """
        if self._fits is not tree:
            if self.seal != fingerprint(tree):
                raise ValueError(
                    f"{tree.game}: the value network is for {self.game}, another game; "
                    f"train one for this game with spiel-cr train-values"
                )
            self._fits = tree

    def lay_out(self, tree: CompiledGame, states: PublicStates) -> NetworkRangeValues:
        """Embeds the infosets of public states; see `ValueFunction`.

        Raises:
          ValueError: the network was trained for another game, or has not met a state.
        """
        return self.lay_out_alike(tree, states, [states])[0]

    def lay_out_alike(
        self,
        tree: CompiledGame,
        states: PublicStates,
        selections: Sequence[PublicStates],
    ) -> list[NetworkRangeValues]:
        """The same for several sets of public states; see `ValueFunction`.

        Raises:
          ValueError: the network was trained for another game, or has not met a state.
        """
        self.check(tree)
        known = self.known.find(tree, states)
        unknown = int((known < 0).sum())
        if unknown:
            raise ValueError(
                f"{tree.game}: the value network was trained for lookaheads of "
                f"{self.cut}, and has not met {unknown} of the {len(states)} public "
                f"states where this one ends; take that depth, or train one for this "
                f"depth with spiel-cr train-values"
            )
        features = self.known.features(states, known)
        with jax.enable_x64(False):
            embedded = [
                jax.tree.map(np.asarray, _embed(self.parameters, features[p], player=p))
                for p in range(2)
            ]
        capacity = set_network.capacity_of(selections)
        laid_out = []
        for selection in selections:
            rows = []
            for p, mine in enumerate(places_in(states, selection)):
                spare = [(0, capacity.sizes[p] - len(mine)), (0, 0)]
                padded = (np.pad(own[mine], spare) for own in embedded[p])
                rows.append(Embedded(*(typed(own) for own in padded)))
            laid_out.append(
                NetworkRangeValues(
                    {name: typed(own) for name, own in self.parameters.items()},
                    (rows[0], rows[1]),
                    set_network.find_places(selection, capacity),
                    typed(np.asarray(self.scale, np.float64)),
                )
            )
        return laid_out

    def peak_bytes(self, tree: CompiledGame, states: PublicStates) -> float:
        """Its program and its layers at all infosets; see `ValueFunction`."""
        units = self.architecture.hidden * sum(len(own) for own in states.infosets)
        return _PROGRAM + _COPIES * np.dtype(np.float32).itemsize * units

    def save(self, path: atomic.Path) -> None:
        """Writes the network to an .npz file, whole or not at all.

        Raises:
          OSError: the file cannot be written.
        """
        known = self.known
        arrays = {f"parameter_{name}": own for name, own in self.parameters.items()}
        arrays |= {"known_hashes": known.hashes, "known_rows": known.rows}
        for p in range(2):
            arrays[f"known_bounds{p}"] = known.bounds[p]
            arrays[f"known_row{p}"] = known.row[p]
        metadata = {
            "kind": _KIND,
            "game": self.game,
            "fingerprint": self.seal,
            "cut": self.cut,
            "scale": self.scale,
            "architecture": self.architecture._asdict(),
            "versions": storage.versions(),
        }
        storage.save(path, arrays, metadata)


def _embed_jitted(
    parameters: set_network.Parameters, features: jax.Array, *, player: int
) -> Embedded:
    return set_network.embed(parameters, features, player)


_embed = jax.jit(_embed_jitted, static_argnames="player")


def load_network(path: atomic.Path) -> NetworkValues:
    """Reads a value network that `NetworkValues.save` wrote.

    Args:
      path: the .npz file.

    Raises:
      OSError: there is no such file, or it cannot be read.
      DamagedFileError: it is no value network, or was changed since.
    """
    name = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"path={name!r}: there is no such file; give one that spiel-cr "
            f"train-values wrote"
        )
    arrays, metadata = storage.load(path)
    if metadata.get("kind") != _KIND:
        raise DamagedFileError(
            f"{name} holds no value network but {metadata.get('kind')!r}; give a file "
            f"that spiel-cr train-values wrote"
        )
    try:
        return _from_file(arrays, metadata)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFileError(
            f"{name} holds a value network that does not fit together ({error}); train "
            f"it again, or give another file"
        ) from error


def _from_file(
    arrays: dict[str, np.ndarray], metadata: dict[str, Any]
) -> NetworkValues:
    """The network in a file's arrays.

    Raises:
      KeyError, TypeError, ValueError, IndexError: they do not fit together.
    """
    architecture, parameters = _parameters_of(arrays, metadata)
    scale = float(metadata["scale"])
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"scale={scale}")
    rows, hashes = arrays["known_rows"], arrays["known_hashes"]
    if rows.shape[1:] != (architecture.features,) or not np.isfinite(rows).all():
        raise ValueError("features of infosets have another shape, or are not finite")
    if hashes.shape[1:] != (16,) or hashes.dtype != np.uint8:
        raise ValueError("hashes of public states have another shape or type")
    bounds, row = [], []
    for p in range(2):
        ends, mine = arrays[f"known_bounds{p}"], arrays[f"known_row{p}"]
        ascending = len(ends) == len(hashes) + 1 and (np.diff(ends) > 0).all()
        if not ascending or ends[0] != 0 or ends[-1] != len(mine):
            raise ValueError("bounds of public states do not ascend")
        if (mine < 0).any() or (mine >= len(rows)).any():
            raise ValueError("rows of features are missing")
        bounds.append(ends)
        row.append(mine)
    return NetworkValues(
        architecture,
        parameters,
        KnownStates(
            hashes,
            rows,
            (bounds[0], bounds[1]),
            (row[0], row[1]),
        ),
        scale=scale,
        game=str(metadata["game"]),
        seal=str(metadata["fingerprint"]),
        cut=str(metadata["cut"]),
    )


def _parameters_of(
    arrays: dict[str, np.ndarray], metadata: dict[str, Any]
) -> tuple[Architecture, dict[str, np.ndarray]]:
    """The architecture and the parameters in a file's arrays.

    Raises:
      KeyError, TypeError, ValueError: they do not fit together.
    """
    sizes = {
        key: check_whole(value, key, 0 if key in ("blocks", "pairs") else 1)
        for key, value in metadata["architecture"].items()
    }
    architecture = Architecture(**sizes)
    parameters = {}
    for key, shape in architecture.shapes().items():
        own = arrays[f"parameter_{key}"]
        if own.shape != shape or own.dtype != np.float32:
            raise ValueError(f"{key} is {own.dtype} {own.shape}, not float32 {shape}")
        if not np.isfinite(own).all():
            raise ValueError(f"{key} has numbers that are not finite")
        parameters[key] = own
    return architecture, parameters
