"""A game as solvers of any origin meet it."""

import time
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.compilation.compiler import as_compiled
from spiel_cr.compilation.tree import CompiledGame


class MissingError(Exception):
    """An algorithm cannot run here or on this game; the message says why."""


class GameInstance(NamedTuple):
    """A game as adapters meet it.

    Attributes:
      name: the game string.
      tree: compiled with `observations=True`; its `game` is sequential.
      fast: the same game in C++, for OpenSpiel's algorithms.
      walk_seconds: what compiling took.
    """

    name: str
    tree: CompiledGame
    fast: pyspiel.Game
    walk_seconds: float

    @property
    def game(self) -> pyspiel.Game:
        """The sequential OpenSpiel game."""
        return self.tree.game


def enter(game: str, *, memory_limit: int | str | None = None) -> GameInstance:
    """Loads and compiles a game.

    Raises:
      MissingError: the game is larger than the limit.
      pyspiel.SpielError, ValueError: as `spiel_cr.compile_game`.
    """
    started = time.perf_counter()
    try:
        tree = as_compiled(game, observations=True, memory_limit=memory_limit)
    except GameTooLargeError as error:
        raise MissingError(f"the game is too large: {error}") from error
    walked = time.perf_counter() - started
    return GameInstance(game, tree, fast_game(tree.game), walked)


def fast_game(game: pyspiel.Game) -> pyspiel.Game:
    """The same game in C++ if it is a Python one.

    The cached tree makes C++ algorithms about a hundred times faster on those, and
    Python ones three times.
    """
    if game.get_type().short_name.startswith("python_"):
        return pyspiel.convert_to_cached_tree(game)
    return game


# For each player float64 [S], action probabilities by logical sequence.
Strategy = tuple[np.ndarray, np.ndarray]
