"""What solvers that train networks have in common, deep CFR and self-play alike."""

import abc
from typing import Any

import numpy as np

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.games.simulation.simulator import Simulator
from spiel_cr.games.simulation.tree_source import TreeSource
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import value_bounds
from spiel_cr.solvers.deep.infosets import Knowledge, Seen, TreeKnowledge
from spiel_cr.solvers.deep.tensors import Stepped


def check_stepped(config: Any) -> None:
    """Raises ValueError for a setting that only compiled games have.

    Args:
      config: a `DeepConfig` or a `SelfPlayConfig`.
    """
    if config.needs_tree:
        raise ValueError(
            f"algorithm={config.name!r}: {config.needs_tree} needs the compiled "
            f"game; choose another setting, or compile the game"
        )


class Training(abc.ABC):
    """A solver that samples matches of one game and learns from them.

    Attributes:
      source: of histories.
      knowledge: of what is known at its positions.
      seed: of everything random.
      iterations: done so far.
      episodes: matches so far.
      seconds_of: time spent iterating, by what was done.
    """

    def __init__(self, game: GameTree | Stepped, config: Any, seed: int) -> None:
        """Has done nothing yet.

        Args:
          game: compiled; or one that is stepped, whose source the caller closes.
          config: a `DeepConfig` or a `SelfPlayConfig`.
          seed: of everything random.

        Raises:
          ValueError: a bad seed; or settings that need a compiled game.
        """
        self.seed = check_seed(seed)
        self.source: Simulator
        self.knowledge: Knowledge
        if isinstance(game, GameTree):
            self.source = TreeSource(game, stratified=config.draws == "stratified")
            self.knowledge = TreeKnowledge(game, config.features)
        else:
            check_stepped(config)
            self.source, self.knowledge = game
        self.iterations = self.episodes = 0
        self.seconds_of: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        """Time spent iterating so far."""
        return sum(self.seconds_of.values())

    def run(self, iterations: int) -> None:
        """Does some more iterations.

        Args:
          iterations: how many, at least 1.

        Raises:
          ValueError: it is not a whole number.
        """
        for _ in range(check_iterations(iterations)):
            self._iterate()

    @abc.abstractmethod
    def _iterate(self) -> None:
        """One iteration."""

    @abc.abstractmethod
    def strategy(self, player: int, seen: Seen) -> np.ndarray:
        """float64 [m, A], what a player plays now.

        Args:
          player: 0 or 1.
          seen: what it sees at m decisions.
        """

    def current_behaviour(self, player: int) -> np.ndarray:
        """float64 [S], what a player plays now, by logical sequence.

        Args:
          player: 0 or 1.

        Raises:
          ValueError: the game is not compiled.
        """
        known = self._compiled()
        return known.behaviour(player, self.strategy(player, known.everywhere(player)))

    def _compiled(self) -> TreeKnowledge:
        """What is known of a compiled game.

        Raises:
          ValueError: the game is not compiled.
        """
        if isinstance(self.knowledge, TreeKnowledge):
            return self.knowledge
        raise ValueError(
            f"{self.source.game} is not compiled, and has no numbered infosets; "
            f"compile it, or take the networks that average() gives"
        )

    def _nash_conv(self, behaviours: Any) -> float:
        """NashConv of two strategies by logical sequence, in the game's units."""
        low, high = value_bounds(self._compiled().tree.sequence_form, behaviours)
        return high - low
