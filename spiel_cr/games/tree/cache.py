"""Cache of game trees in a folder of files.

The name of a file contains a hash of everything that determines its content: the game
with all parameters, versions, and the sources of Python games and of this package.
Readers and other writers only see complete files. A file that cannot be read is
replaced by a newly built tree. No file is pickled.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyspiel
from absl import logging

from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.games.histories import Histories
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.origins import UnknownOriginError, sources
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.infostate_strings import Strings, lazy_strings
from spiel_cr.games.tree.tree import GameTree, Infosets, assemble

# Packages whose code determines the content of a tree, and their location.
_COMPILER = ("common", "games", "games/opening", "games/sequence_form", "games/tree")
_SOURCES = pathlib.Path(__file__).parents[2]
_PACKAGES = ("spiel_cr", "open_spiel", "numpy")
_SUFFIX = ".npz"


def through(
    game: pyspiel.Game,
    rules: BatchedRules | None,
    folder: atomic.Path,
    make: Callable[[], GameTree],
    observations: bool,
) -> GameTree:
    """Read a game tree from a folder, or build it and write it there.

    Args:
      game: Sequential game that was checked.
      rules: Batched rules by which the tree is built, if any.
      folder: Folder of the files; created if it does not exist.
      make: Function that builds the tree.
      observations: Whether the tree has observations; see `build_tree`.

    Raises:
      ValueError: If `folder` is a file. Errors of `make` are passed on.
    """
    place = pathlib.Path(folder)
    if os.path.exists(place) and not place.is_dir():
        raise ValueError(f"cache={os.fspath(folder)!r}: is a file; give a folder")
    try:
        identity = identify(game, rules, observations=observations)
    except UnknownOriginError as error:
        logging.warning("not cached: %s", error)
        return make()
    path = place / _name(identity)
    tree = load(path, identity, game, rules)
    if tree is None:
        tree = make()
        try:
            save(path, identity, tree, strings=rules is None)
        except OSError as error:
            logging.warning("the tree of %s is built but not cached: %s", game, error)
    return tree


def identify(
    game: pyspiel.Game, rules: BatchedRules | None, *, observations: bool = False
) -> dict[str, Any]:
    """Return everything that determines the tree of a game, in a form for JSON.

    Args:
      game: Sequential game.
      rules: Batched rules by which the tree is built, if any.
      observations: Whether the tree has observations; see `build_tree`.

    Raises:
      UnknownOriginError: If this cannot be determined, because the game differs from
        its game string, or its Python source cannot be located.
    """
    files = sources(game, rules)
    versions = storage.versions()
    return {
        "kind": "game tree",
        "game": str(game),
        "parameters": game.get_parameters(),
        "observations": observations,
        "batched_rules": rules is not None,
        "versions": {package: versions[package] for package in _PACKAGES},
        "sources": _hash_files(files),
        "builder": _hash_files(
            str(file) for name in _COMPILER for file in (_SOURCES / name).glob("*.py")
        ),
    }


def _hash_files(paths: Iterable[str]) -> str | None:
    """Return a hash of the names and contents of files; None if there are no files."""
    ordered, digest = sorted(paths), hashlib.sha256()
    for path in ordered:
        content = pathlib.Path(path).read_bytes()
        digest.update(f"{os.path.basename(path)} {len(content)}\0".encode() + content)
    return digest.hexdigest() if ordered else None


def _name(identity: Mapping[str, Any]) -> str:
    """Return the name of the file, which is readable and unique to an identity."""
    text = json.dumps(identity, sort_keys=True)
    short = str(identity["game"]).partition("(")[0]
    return f"{short}-{hashlib.sha256(text.encode()).hexdigest()[:24]}{_SUFFIX}"


def load(
    path: pathlib.Path,
    identity: Mapping[str, Any],
    game: pyspiel.Game,
    rules: BatchedRules | None,
) -> GameTree | None:
    """Read a file that `save` wrote; return None if it does not exist or is corrupt.

    Args:
      path: Path of the file.
      identity: Expected identity of the tree.
      game: The game.
      rules: Batched rules by which the tree is built, if any.
    """
    if not os.path.isfile(path):
        return None
    try:
        arrays, metadata = storage.load(path)
        if metadata != json.loads(json.dumps(identity)):
            raise CorruptFileError("it belongs to a different game")
        return _from_arrays(arrays, game, rules)
    except Exception as error:  # invalid arrays may cause any error
        logging.warning("%s is not used and will be replaced: %s", path, error)
        return None


def save(
    path: pathlib.Path, identity: Mapping[str, Any], tree: GameTree, *, strings: bool
) -> None:
    """Write a game tree atomically, so that readers see the old file or the new one.

    Args:
      path: Path of the file; its folder is created if it does not exist.
      identity: Result of `identify`.
      tree: The game tree.
      strings: Whether to store information-state strings, which is not necessary if
        batched rules compute them.
    """
    arrays = _to_arrays(tree, strings)
    storage.save(path, arrays, identity, durable=False)


def _to_arrays(tree: GameTree, strings: bool) -> dict[str, np.ndarray]:
    """Return the arrays that are faster to read than to compute again."""
    arrays = dict(vars(tree.histories))
    if arrays["observations"] is None:
        arrays["observations"] = np.zeros(0, np.int32)
    if arrays["chance"].strides == (0,):  # a view of a single number
        arrays["chance"] = arrays["chance"][:1]
    for player, infosets in enumerate(tree.infosets):
        arrays |= {
            f"parent{player}": infosets.decisions.parent,
            f"num_actions{player}": infosets.decisions.num_actions,
            f"actions{player}": infosets.actions,
            f"history{player}": infosets.history,
        }
        if strings:
            text, ends = Strings.packed(infosets.keys).utf8()
            arrays |= {f"text{player}": text, f"ends{player}": ends}
    return arrays


def _from_arrays(
    arrays: Mapping[str, np.ndarray], game: pyspiel.Game, rules: BatchedRules | None
) -> GameTree:
    """Make the game tree from arrays, which checksums have verified.

    Raises:
      CorruptFileError: If arrays are missing, or an infoset precedes its parent.
    """
    fields = ["parent", "num_actions", "actions", "history"]
    fields += ["text", "ends"] if rules is None else []
    names = [field.name for field in dataclasses.fields(Histories)]
    if missing := {*names, *(f"{name}{p}" for name in fields for p in "01")} - set(
        arrays
    ):
        raise CorruptFileError(f"arrays are missing: {', '.join(sorted(missing))}")
    histories = Histories(*(arrays[name] for name in names))
    if not len(arrays["observations"]):
        histories = dataclasses.replace(histories, observations=None)
    if len(arrays["chance"]) == 1:
        chance = np.broadcast_to(arrays["chance"][0], len(histories))
        histories = dataclasses.replace(histories, chance=chance)
    infosets, keys = [], []
    for p in range(2):
        first = arrays[f"history{p}"]
        decisions = Decisions(arrays[f"parent{p}"], arrays[f"num_actions{p}"])
        after = decisions.first_sequence
        if not ((decisions.parent >= 0) & (decisions.parent < after)).all():
            raise CorruptFileError("an infoset precedes its parent")
        infosets.append(Infosets((), decisions, arrays[f"actions{p}"], first))
        if rules is None:
            keys.append(Strings.of_utf8(arrays[f"text{p}"], arrays[f"ends{p}"]))
        else:
            keys.append(lazy_strings(game, rules, histories, first, p))
    return assemble(game, histories, infosets, keys)
