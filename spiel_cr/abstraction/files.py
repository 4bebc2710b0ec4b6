"""Abstractions in files: labels of signals, and the game that they are for."""

import dataclasses
from typing import Any

from spiel_cr.abstraction.buckets import Abstraction
from spiel_cr.abstraction.gameshrink.partition import Partition
from spiel_cr.abstraction.methods import Method
from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import DamagedFileError
from spiel_cr.games.signals.game import SignalGame

# What files say that they hold.
_KIND = "abstraction"


def save_abstraction(path: atomic.Path, game: SignalGame, found: Abstraction) -> None:
    """Writes an abstraction to an `.npz` file, atomically and without pickle.

    Args:
      path: the file.
      game: whose signals it has.
      found: what `abstract` returned.

    Raises:
      OSError: the file cannot be written; the old one is as it was.
      ValueError: it is of another game.
    """
    found.partition.check(game)
    arrays = {
        f"player{player}_round{r}": own
        for player, labels in enumerate(found.partition.labels)
        for r, own in enumerate(labels)
    }
    described: dict[str, Any] = {
        "kind": _KIND,
        "game": str(game.game),
        "fingerprint": game.fingerprint,
        "budget": found.budget,
        "method": dataclasses.asdict(found.method),
        "seed": found.seed,
        "costs": found.costs,
        "versions": storage.versions(),
    }
    storage.save(path, arrays, described)


def load_abstraction(path: atomic.Path, game: SignalGame) -> Abstraction:
    """Reads what `save_abstraction` wrote.

    Args:
      path: the file.
      game: the signal game that it must be for.

    Raises:
      OSError: there is no such file, or it cannot be read.
      DamagedFileError: the file was changed since, or is of another kind.
      ValueError: it is for another game.
    """
    arrays, said = storage.load(path)
    if said.get("kind") != _KIND:
        raise DamagedFileError(
            f"{path} holds no abstraction but {said.get('kind')!r}; give a file that "
            "spiel-cr abstract --save wrote"
        )
    if said.get("fingerprint") != game.fingerprint:
        raise ValueError(
            f"{path} holds an abstraction of {said.get('game')}, whose signals or "
            f"payoffs are not those of {game.game}; give the game that it was made for"
        )
    try:
        first, second = (
            tuple(arrays[f"player{player}_round{r}"] for r in range(game.num_rounds))
            for player in range(2)
        )
        partition = Partition((first, second))
        partition.check(game)
        costs = said["costs"]
        return Abstraction(
            partition,
            (tuple(map(float, costs[0])), tuple(map(float, costs[1]))),
            tuple(map(int, said["budget"])),
            Method(**said["method"]),
            int(said["seed"]),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DamagedFileError(
            f"{path} is a damaged abstraction file: {error}; make it anew"
        ) from error
