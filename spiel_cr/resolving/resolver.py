"""The resolver of one player: its memory in a match, and its solves.

Between two decisions the player keeps what DeepStack keeps (Moravčík et al. 2017): its
own average strategy so far, and the opponent's counterfactual values at the augmented
infosets of possible next decisions. Everything else follows from its own information
and these; it never uses the hidden part of a state.

The form of a game determines how its subgames are cut out, see `Subgames`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cr.common.checks import check_seed
from spiel_cr.common.messages import announce
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs
from spiel_cr.resolving import subgame_sampling
from spiel_cr.resolving.clock import Clock, Statistics
from spiel_cr.resolving.public_subgames import PublicSubgames
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.subgames import Decision, Memory, Solve, SubgameId, Subgames
from spiel_cr.resolving.tree_subgames import TreeSubgames
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.representation import PUBLIC_TREE, TREE

# Subgames by the form of the game.
_SUBGAMES = {TREE: TreeSubgames, PUBLIC_TREE: PublicSubgames}


@dataclasses.dataclass
class MatchMemory:
    """The memory of a re-solving player in a match.

    Attributes:
      memory: Strategy of the player and values of the opponent so far.
      solved: Solves of this match, and that of the start, by subgame.
      last: The last of these solves, which a later turn in the same subgame continues.
    """

    memory: Memory
    solved: dict[SubgameId, Solve] = dataclasses.field(default_factory=dict)
    last: tuple[SubgameId, Solve] | None = None


class Resolver:
    """Re-solves for one player of a game, with or without a time limit.

    Attributes:
      player: The re-solving player, i.
      config: Settings of re-solving.
      subgames: Subgames of the game.
    """

    def __init__(
        self,
        game: GameTree | PublicTreeGame,
        player: int,
        config: ResolvingConfig,
        *,
        seed: int = 0,
    ) -> None:
        """Cut the game into subgames, compile all functions, and solve the start once.

        Args:
          game: A game in tree form, built with `observations=True`, or in public-tree
            form.
          player: 0 or 1.
          config: Settings of re-solving.
          seed: Seed of sampled solvers.

        Raises:
          ValueError: If the seed is invalid, a leaf belongs to another game, the form
            of the game does not support a setting, or as in `decompose`.
        """
        seed = check_seed(seed)
        self.player, self.config = player, config
        subgames_of: Any = _SUBGAMES[game.kind]
        self.subgames: Subgames = subgames_of(game, player, config, seed=seed)
        self._clock = Clock(config.move_ms, config.iterations)
        self._start = MatchMemory(self.subgames.blank())
        (group, ids), *others = self.subgames.warm_ups()
        self._warm_up(group, ids)
        if ids:
            announce(f"player {player}: solving the start")
            deadline = self._clock.init_deadline(config.init_ms)
            self._solve(self._start, ids[0], deadline)
        for group, ids in others:
            self._warm_up(group, ids)
        self._clock.restart_statistics()

    @property
    def decomposition(self) -> Any:
        """Layers and subgames of player i."""
        return self.subgames.decomposition

    @property
    def statistics(self) -> Statistics:
        """Statistics since construction."""
        return self._clock.statistics

    def match(self) -> MatchMemory:
        """Return the memory at the start of a match."""
        return MatchMemory(self._start.memory.copy(), dict(self._start.solved))

    def strategy(self, match: MatchMemory, decision: Decision) -> np.ndarray:
        """Compute the player's action probabilities at one of its decisions.

        Solves the subgames on the way there that this match has not solved yet: in a
        match, at most the subgame of this decision. With a time limit, a later turn in
        the same subgame continues its solve.

        Args:
          match: Memory of the match, which is updated.
          decision: Decision of i, as returned by `Subgames.decision`.

        Returns:
          Probabilities, float64 [A], in the order of the decision's actions.
        """
        compilations = _compilations()
        with self._clock.move():
            ids = self.subgames.subgames_to(decision)
            needed = [
                subgame_id for subgame_id in ids if subgame_id not in match.solved
            ]
            for k, subgame_id in enumerate(needed):
                self._solve(match, subgame_id, self._clock.deadline(len(needed) - k))
            later = not needed and not self.subgames.opens(decision)
            if later and self.config.move_ms is not None and match.last is not None:
                subgame_id, solve = match.last
                if subgame_id == ids[-1]:
                    with self._clock.solve(solve.solver, self._clock.deadline()):
                        solve.remember()
        self.statistics.compilations += _compilations() - compilations
        return self.subgames.strategy(match.memory, decision)

    def beliefs(self, match: MatchMemory, decision: Decision) -> BotBeliefs:
        """Return the player's beliefs at one of its decisions.

        Args:
          match: Memory of the match; it is updated if the decision was not solved yet.
          decision: Decision of i, as returned by `Subgames.decision`.
        """
        ids = self.subgames.subgames_to(decision)
        if not match.solved.keys() >= set(ids):
            self.strategy(match, decision)
        solves = [match.solved[subgame_id] for subgame_id in ids]
        return self.subgames.beliefs(match.memory, decision, solves)

    def _warm_up(self, group: str, ids: Sequence[SubgameId]) -> None:
        """Compile the functions of some subgames, and measure their costs.

        Each subgame is solved twice: the first solve compiles functions, and the second
        one measures the cost of a solve without its iterations. Costs of earlier groups
        do not predict those of later groups.
        """
        for first in (True, False):
            self._clock = Clock(self.config.move_ms, self.config.iterations)
            for number, subgame_id in enumerate(ids, 1):
                if first:
                    of = f"{number} of {len(ids)}"
                    announce(f"player {self.player}: warming up {group} {of}")
                self._solve(MatchMemory(self.subgames.blank()), subgame_id, None, 1)

    def _solve(
        self,
        match: MatchMemory,
        subgame_id: SubgameId,
        deadline: float | None,
        most: int | None = None,
    ) -> None:
        """Solve a subgame, and store the solution."""
        solve = self.subgames.begin(match.memory, subgame_id)
        with self._clock.solve(solve.solver, deadline, most):
            match.last = subgame_id, solve
            match.solved[subgame_id] = solve
            solve.remember()


def _compilations() -> int:
    return cfr.compilations() + subgame_sampling.compilations()
