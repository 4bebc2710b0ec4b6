"""A game in the representations that solvers of any origin need."""

import functools
import time

import pyspiel

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.memory import Limit
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import as_tree
from spiel_cr.solvers.representation import GameOptions


class MissingError(Exception):
    """An algorithm cannot run in this environment or on this game."""


class GameInstance:
    """A game whose representations are built when an adapter first uses them.

    A solver's time and memory then include only the representation that it uses.

    Attributes:
      name: Game string.
      memory_limit: Memory limit, as for `spiel_cr.solve`.
      walk_seconds: Seconds spent on building the game tree; 0 before.
    """

    def __init__(
        self, name: str, *, observations: bool = True, memory_limit: Limit = None
    ) -> None:
        """Store the arguments; nothing is built.

        Args:
          name: Game string.
          observations: Whether the game tree has observations, as for
            `spiel_cr.build_tree`; re-solving players need them.
          memory_limit: Memory limit, as for `spiel_cr.solve`.
        """
        self.name = name
        self.walk_seconds = 0.0
        self._observations = observations
        self.memory_limit = memory_limit

    @property
    def options(self) -> GameOptions:
        """Options of spiel_cr with the same memory limit."""
        return GameOptions(memory_limit=self.memory_limit)

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
        """The game tree.

        Raises:
          MissingError: If the tree is larger than the memory limit.
          pyspiel.SpielError, ValueError: As `spiel_cr.build_tree`.
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
