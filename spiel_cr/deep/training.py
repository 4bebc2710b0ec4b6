"""What solvers that train networks have in common, deep CFR and self-play alike."""

import abc
from typing import Any

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.deep.compiled_source import sampled_from
from spiel_cr.deep.infosets import CompiledKnowledge, Knowledge, compiled_only
from spiel_cr.policies.best_responses import value_bounds
from spiel_cr.uncompiled.source import Source


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

    def __init__(
        self,
        game: CompiledGame | Source,
        config: Any,
        seed: int,
        knowledge: Knowledge | None,
    ) -> None:
        """Has done nothing yet.

        Args:
          game: compiled; or a source of histories of any game.
          config: a `DeepConfig` or a `SelfPlayConfig`.
          seed: of everything random.
          knowledge: of the source's positions; only where `game` is a source.

        Raises:
          ValueError: a bad seed, or as `sampled_from`.
        """
        self.seed = check_seed(seed)
        self.source, self.knowledge = sampled_from(
            *(game, knowledge, config.name, config.needs_compiled),
            features=config.features,
            stratified=config.draws == "stratified",
        )
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

    def _compiled(self) -> CompiledKnowledge:
        """What is known of a compiled game.

        Raises:
          ValueError: the game is not compiled.
        """
        return compiled_only(self.knowledge, self.source.game)

    def _nash_conv(self, behaviours: Any) -> float:
        """NashConv of two strategies by logical sequence, in the game's units."""
        low, high = value_bounds(self._compiled().tree.form, behaviours)
        return high - low
