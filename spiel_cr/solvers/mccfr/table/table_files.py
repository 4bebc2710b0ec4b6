"""Policies of games that were never compiled, in files."""

from collections.abc import Mapping
from typing import Any

import pyspiel

from spiel_cr.common import atomic, storage
from spiel_cr.games.opening.identity import other_game
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation import key_making
from spiel_cr.policies import result
from spiel_cr.solvers.mccfr.table.table_policy import (
    TablePolicy,
    arrays_of,
    read_strategy,
)

# What such files say that they hold.
TABLE = "table policy"


def save_table_policy(
    path: atomic.Path, policy: TablePolicy, keys: str, metadata: Mapping[str, Any]
) -> None:
    """Writes a policy to an `.npz` file, atomically.

    Args:
      path: the file.
      policy: of both players.
      keys: what its infosets are told apart by.
      metadata: what the file says beside kind, game, fingerprint and versions.

    Raises:
      OSError: it cannot be written; the old file is as it was.
    """
    described = {
        "kind": TABLE,
        "game": str(policy.game),
        "keys": keys,
        "fingerprint": key_making.fingerprint(policy.source),
        "from_roots": policy.from_roots,
        **metadata,
        "versions": storage.versions(),
    }
    arrays = arrays_of(policy.strategy) | key_making.bucket_arrays(policy.source)
    storage.save(path, arrays, described)


def check_table_file(path: atomic.Path) -> None:
    """Refuses what `load_table_policy` refuses whatever the game.

    Raises:
      OSError, CorruptFileError: as `load_table_policy`.
    """
    read_strategy(storage.load(path)[0], path)


def load_table_policy(
    path: atomic.Path, game: pyspiel.Game | None = None
) -> TablePolicy:
    """Reads a policy of a game that was not compiled.

    Args:
      path: of a sampled solve's `save`, or --save.
      game: the sequential game it must be for; None: the one named in the file.

    Returns:
      A table by hashes that is uniform at infosets that were never met, and counts
      these.

    Raises:
      OSError: there is no such file, or it cannot be read.
      CorruptFileError: the file is no file of ours, was changed since, or its numbers
        are no probabilities.
      ValueError: the file holds one for another game; or OpenSpiel cannot load its game
        by name.
    """
    metadata = result.read_metadata(path)
    named = result.text_of(metadata, "game", path)
    kind = result.text_of(metadata, "keys", path)
    buckets = kind.startswith(f"{key_making.BUCKETS} ")
    if not buckets and kind not in (key_making.RULES, key_making.STRINGS):
        raise result.damaged(path, f"its keys are of the kind {kind!r}")
    print_of_file = result.text_of(metadata, "fingerprint", path)
    loaded = result.named_game(named, path) if game is None else game
    opened = Opened(loaded)
    if kind == key_making.RULES and key_making.kind_for(opened) != kind:
        raise ValueError(
            f"{path} was made by the batched rules of {named}, and {loaded} has none "
            f"here; install what has them, or solve with --no-batched-rules"
        )
    arrays = storage.load(path)[0]
    try:
        source = key_making.make_source(opened, kind, arrays=arrays)
    except ValueError as error:
        if game is None:
            raise result.damaged(path, str(error)) from error
        raise ValueError(f"{path}, for {named}, on {loaded}: {error}") from error
    if key_making.fingerprint(source) != print_of_file:
        raise other_game(f"{path}: a policy", named, loaded)
    strategy = read_strategy(arrays, path)
    from_roots = metadata.get("from_roots") is True
    return TablePolicy(loaded, source, strategy, from_roots=from_roots)
