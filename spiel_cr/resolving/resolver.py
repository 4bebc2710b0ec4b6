"""The resolver of one player: what it remembers in a match, and how it solves on.

Between two of its decisions the player keeps what DeepStack keeps (Moravčík et al.
2017): its own average strategy so far, and the opponent's counterfactual values at the
augmented infosets of where it may be next. Everything it does follows from its own
information and these; it never sees the hidden part of a state.

How subgames are cut out of a game is said by its form, see `Subgames`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_seed
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.resolving import subgame_sampling
from spiel_cr.resolving.clock import Clock, Statistics
from spiel_cr.resolving.public_subgames import PublicSubgames
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.subgames import Decision, Memory, Solve, SubgameId, Subgames
from spiel_cr.resolving.tree_subgames import TreeSubgames
from spiel_cr.solvers.cfr import cfr


@dataclasses.dataclass
class Match:
    """What a resolving player remembers in a match.

    Attributes:
      memory: its strategy and the opponent's values so far.
      solved: what was solved.
      last: the last of these, which a later turn in the same subgame goes on with.
    """

    memory: Memory
    solved: set[SubgameId] = dataclasses.field(default_factory=set)
    last: tuple[SubgameId, Solve] | None = None


class Resolver:
    """Resolves for one player of a game, with or without a clock.

    Attributes:
      player: i.
      config: how it resolves.
      subgames: what there is to solve, and how it is read.
    """

    def __init__(
        self,
        game: GameTree | PublicTreeGame,
        player: int,
        config: ResolvingConfig,
        *,
        seed: int = 0,
    ) -> None:
        """Cuts the game, compiles every program, and solves the whole game once.

        Args:
          game: compiled with `observations=True`, or a signal game.
          player: 0 or 1.
          config: how it resolves.
          seed: of sampled solvers.

        Raises:
          ValueError: a bad seed, a leaf of another game, settings that the form of the
            game does not have, or see `decompose`.
        """
        seed = check_seed(seed)
        self.player, self.config = player, config
        self.subgames: Subgames = (
            PublicSubgames(game, player, config)
            if isinstance(game, PublicTreeGame)
            else TreeSubgames(game, player, config, seed=seed)
        )
        self._clock = Clock(config.move_ms, config.iterations)
        self._start = Match(self.subgames.blank())
        (group, places), *others = self.subgames.warm_ups()
        self._warm_up(group, places)
        if places:
            announce(f"player {player}: solving the start")
            deadline = self._clock.init_deadline(config.init_ms)
            self._solve(self._start, places[0], deadline)
        for group, places in others:
            self._warm_up(group, places)
        self._clock.restart_statistics()

    @property
    def decomposition(self) -> Any:
        """Layers and subgames for i."""
        return self.subgames.decomposition

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self._clock.statistics

    def match(self) -> Match:
        """The beginning of a match: the whole game is solved, nothing else."""
        return Match(self._start.memory.copy(), set(self._start.solved))

    def strategy(self, match: Match, decision: Decision) -> np.ndarray:
        """The player's action probabilities at one of its decisions.

        Solves what the match has not solved yet on the way there: in a match, the
        subgame of this decision at most. With a clock, a later turn in the same
        subgame goes on with its solve.

        Args:
          match: what was solved so far; is brought up to date.
          decision: of i, as `Subgames.decision` gives it.

        Returns:
          float64 [A], in the order of the decision's actions.
        """
        programs = _programs()
        with self._clock.move():
            places = self.subgames.subgames_to(decision)
            needed = [place for place in places if place not in match.solved]
            for k, place in enumerate(needed):
                self._solve(match, place, self._clock.deadline(len(needed) - k))
            later = not needed and not self.subgames.opens(decision)
            if later and self.config.move_ms is not None and match.last is not None:
                place, solve = match.last
                if place == places[-1]:
                    with self._clock.solve(solve.solver, self._clock.deadline()):
                        solve.remember()
        self.statistics.programs_compiled += _programs() - programs
        return self.subgames.strategy(match.memory, decision)

    def _warm_up(self, group: str, places: Sequence[SubgameId]) -> None:
        """Compiles the programs of some places; learns what they cost.

        Twice: programs are compiled the first time, and the second time tells what a
        solve costs besides iterating. What earlier places cost says nothing of these.
        """
        for first in (True, False):
            self._clock = Clock(self.config.move_ms, self.config.iterations)
            for number, place in enumerate(places, 1):
                if first:
                    of = f"{number} of {len(places)}"
                    announce(f"player {self.player}: warming up {group} {of}")
                self._solve(Match(self.subgames.blank()), place, None, 1)

    def _solve(
        self,
        match: Match,
        place: SubgameId,
        deadline: float | None,
        most: int | None = None,
    ) -> None:
        """Solves a subgame, and remembers what is needed of it."""
        solve = self.subgames.begin(match.memory, place)
        with self._clock.solve(solve.solver, deadline, most):
            match.last = place, solve
            match.solved.add(place)
            solve.remember()


def _programs() -> int:
    return cfr.programs() + subgame_sampling.programs()
