"""Compiled games kept in a folder of files, for the next time.

A file is found by a hash of all that decides what is in it: the game with all its
parameters, versions, and the sources of Python games and of the compiler. Readers and
other writers see whole files only; what cannot be read is compiled anew and replaced.
Nothing is pickled.
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

# Packages whose code decides what is compiled, and where they are.
_COMPILER = (
    "common",
    "games",
    "games/opening",
    "games/sequence_form",
    "games/tree",
)
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
    """Reads a compiled game from a folder, or compiles it and writes it there.

    Args:
      game: a checked, sequential game.
      rules: the batched rules that it is compiled by, if any.
      folder: where the files are; made where it is missing.
      make: compiles the game.
      observations: as in `build_tree`.

    Raises:
      ValueError: `folder` is a file; or whatever `make` raises.
    """
    place = pathlib.Path(folder)
    if os.path.exists(place) and not place.is_dir():
        raise ValueError(f"cache={os.fspath(folder)!r} is a file; give a folder")
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
            logging.warning("%s is compiled but not cached: %s", game, error)
    return tree


def identify(
    game: pyspiel.Game, rules: BatchedRules | None, *, observations: bool = False
) -> dict[str, Any]:
    """All that decides what a game compiles to, for JSON.

    Args:
      game: a sequential game.
      rules: the batched rules that it is compiled by, if any.
      observations: as in `build_tree`.

    Raises:
      UnknownOriginError: that is unknown: the game is not what its string says, or its
        Python source is not to be found.
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
        "compiler": _hash_files(
            str(file) for name in _COMPILER for file in (_SOURCES / name).glob("*.py")
        ),
    }


def _hash_files(paths: Iterable[str]) -> str | None:
    """A hash of the names and contents of files; None without any."""
    ordered, digest = sorted(paths), hashlib.sha256()
    for path in ordered:
        content = pathlib.Path(path).read_bytes()
        digest.update(f"{os.path.basename(path)} {len(content)}\0".encode() + content)
    return digest.hexdigest() if ordered else None


def _name(identity: Mapping[str, Any]) -> str:
    """The file's name: readable, and different for different identities."""
    text = json.dumps(identity, sort_keys=True)
    short = str(identity["game"]).partition("(")[0]
    return f"{short}-{hashlib.sha256(text.encode()).hexdigest()[:24]}{_SUFFIX}"


def load(
    path: pathlib.Path,
    identity: Mapping[str, Any],
    game: pyspiel.Game,
    rules: BatchedRules | None,
) -> GameTree | None:
    """Reads a file that `save` wrote; None where there is none, or it is damaged.

    Args:
      path: the file.
      identity: what it must be for.
      game: the game.
      rules: its batched rules, if it is compiled by that.
    """
    if not os.path.isfile(path):
        return None
    try:
        arrays, metadata = storage.load(path)
        if metadata != json.loads(json.dumps(identity)):
            raise CorruptFileError("it is for another game")
        return _from_arrays(arrays, game, rules)
    except Exception as error:  # forged arrays fail anywhere
        logging.warning("%s is not used and will be replaced: %s", path, error)
        return None


def save(
    path: pathlib.Path,
    identity: Mapping[str, Any],
    tree: GameTree,
    *,
    strings: bool,
) -> None:
    """Writes a compiled game; whoever reads meanwhile sees the old file or the new one.

    Args:
      path: the file; its folder is made where it is missing.
      identity: from `identify`.
      tree: the compiled game.
      strings: also keep information-state strings; not needed where batched rules
        makes them.
    """
    arrays = _to_arrays(tree, strings)
    storage.save(path, arrays, identity, durable=False)


def _to_arrays(tree: GameTree, strings: bool) -> dict[str, np.ndarray]:
    """All that cannot be made again faster than it is read."""
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
    """The compiled game; checksums say that the arrays are those that were written.

    Raises:
      CorruptFileError: some are missing, or infosets follow themselves.
    """
    fields = ["parent", "num_actions", "actions", "history"]
    fields += ["text", "ends"] if rules is None else []
    names = [field.name for field in dataclasses.fields(Histories)]
    if missing := {*names, *(f"{name}{p}" for name in fields for p in "01")} - set(
        arrays
    ):
        raise CorruptFileError(f"it has no {', '.join(sorted(missing))}")
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
            raise CorruptFileError("an infoset comes before what it follows")
        infosets.append(Infosets((), decisions, arrays[f"actions{p}"], first))
        if rules is None:
            keys.append(Strings.of_utf8(arrays[f"text{p}"], arrays[f"ends{p}"]))
        else:
            keys.append(lazy_strings(game, rules, histories, first, p))
    return assemble(game, histories, infosets, keys)
