"""Policies of signal games in files, and the hash that tells signal games apart."""

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cr.common import atomic
from spiel_cr.common.errors import DamagedFileError
from spiel_cr.games.signals.game import SignalGame
from spiel_cr.policies.result import read_behaviours, write_behaviours
from spiel_cr.policies.signal_policy import DTYPES, SignalPolicy

# What files say that they hold.
KIND = "signal policy"


def fingerprint(signals: SignalGame) -> str:
    """A hash that tells signal games apart: betting, signals, kernels and payoffs.

    The reader is not in it: two games of equal hash have the same strategies.
    """
    digest = hashlib.sha256()
    for part in (signals.betting, signals.parents, signals.kernels, signals.terms):
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    """Feeds arrays, numbers, tuples and dataclasses of them to a hash."""
    if isinstance(part, np.ndarray):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).data)
    elif dataclasses.is_dataclass(part):
        digest.update(type(part).__name__.encode())
        for field in dataclasses.fields(part):
            _feed(digest, getattr(part, field.name))
    elif isinstance(part, tuple):
        digest.update(f"{type(part).__name__}{len(part)}".encode())
        for item in part:
            _feed(digest, item)
    else:
        digest.update(f"{part!r};".encode())


def save_policy(
    path: atomic.Path, policy: SignalPolicy, metadata: Mapping[str, Any]
) -> None:
    """Writes a policy to an `.npz` file, atomically, in the dtype that it has.

    Args:
      path: the file.
      policy: of both players.
      metadata: what else the file is to say; JSON values.

    Raises:
      OSError: the file cannot be written; the old one is as it was.
    """
    signals = policy.signals
    about = {"kind": KIND, "game": str(signals.game)}
    write_behaviours(
        path,
        policy.behaviour,
        {**about, "fingerprint": fingerprint(signals), **metadata},
    )


def check_file(path: atomic.Path) -> None:
    """Refuses what `read_policy` refuses whatever the game.

    Raises:
      OSError, DamagedFileError: as `read_policy`.
    """
    read_behaviours(path, DTYPES)


def is_for(signals: SignalGame, metadata: Mapping[str, Any]) -> bool:
    """Whether a file whose metadata these are is for a signal game."""
    return metadata.get("fingerprint") == fingerprint(signals)


def read_policy(path: atomic.Path, signals: SignalGame) -> SignalPolicy:
    """Reads what `save_policy` wrote.

    Args:
      path: the file.
      signals: the game that it must be for.

    Raises:
      OSError: there is no such file, or it cannot be read.
      DamagedFileError: the file was changed since, or its numbers are no probabilities.
      ValueError: it is for another game.
    """
    behaviour, named, print_of_file = read_behaviours(path, DTYPES)
    if fingerprint(signals) != print_of_file:
        if named == str(signals.game):
            what = (
                f"another signal form of {named} (other signals, or the rules or "
                f"payoffs have changed since)"
            )
        else:
            what = f"{named}, not for {signals.game}"
        raise ValueError(
            f"{path} holds a policy for {what}; give the signal game that it was "
            f"solved on, or solve this one anew"
        )
    try:
        return SignalPolicy(signals, behaviour)
    except ValueError as error:
        raise DamagedFileError(f"{path} is a damaged policy file: {error}") from error
