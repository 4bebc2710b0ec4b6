"""A game as solvers of any origin meet it."""

import functools
import time

import pyspiel

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.memory import Limit
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import as_tree
from spiel_cr.games.tree.tree import GameTree


class MissingError(Exception):
    """An algorithm cannot run here or on this game; the message says why."""


class GameInstance:
    """A game as adapters meet it, loaded and compiled when they first ask.

    So what a solver takes in time and memory is of what it uses itself.

    Attributes:
      name: the game string.
      memory_limit: of what is done on the game, as for `spiel_cr.solve`.
      walk_seconds: what compiling took; 0 before.
    """

    def __init__(
        self, name: str, *, observations: bool = True, memory_limit: Limit = None
    ) -> None:
        """Notes what game it is.

        Args:
          name: the game string.
          observations: as for `spiel_cr.build_tree`; players that resolve need them.
          memory_limit: as for `spiel_cr.solve`.
        """
        self.name = name
        self.walk_seconds = 0.0
        self._observations = observations
        self.memory_limit = memory_limit

    @functools.cached_property
    def game(self) -> pyspiel.Game:
        """The sequential OpenSpiel game."""
        return open_game(self.name).game

    @functools.cached_property
    def fast(self) -> pyspiel.Game:
        """The same game in C++, for OpenSpiel's algorithms.

        The cached tree makes C++ algorithms about a hundred times faster on Python
        games, and Python ones three times.
        """
        if self.game.get_type().short_name.startswith("python_"):
            return pyspiel.convert_to_cached_tree(self.game)
        return self.game

    @functools.cached_property
    def tree(self) -> GameTree:
        """The compiled game.

        Raises:
          MissingError: it is larger than the limit.
          pyspiel.SpielError, ValueError: as `spiel_cr.build_tree`.
        """
        started = time.perf_counter()
        try:
            tree = as_tree(
                self.game,
                observations=self._observations,
                memory_limit=self.memory_limit,
            )
        except GameTooLargeError as error:
            raise MissingError(f"the game is too large: {error}") from error
        self.walk_seconds = time.perf_counter() - started
        return tree
