"""Players of games that are never compiled whole, as OpenSpiel bots.

Bots are handed the true state of the game. These look at their own information state
strings and their own actions only.
"""

from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cr.cfr.config import MCCFRConfig, parse_sampled
from spiel_cr.common.checks import check_iterations
from spiel_cr.lookahead.frontier import FrontierFunction
from spiel_cr.mccfr import mccfr, sample_tree
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.leaves import parse_partial_leaf
from spiel_cr.partial.match import PartialAgent, PartialStatistics
from spiel_cr.partial.resolver import PartialResolver
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.policies.leaf_values import ChoiceValues
from spiel_cr.policies.observations import Stage, observations
from spiel_cr.resolving.clock import Clock, Statistics
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.resolving.gadget import Gadget

# Of trees that are solved anew at each move, and of their gadget games
# (docs/partial.md).
DEFAULT_SOLVER = "pcfr+"
DEFAULT_GADGET: Gadget = "maxmargin"


class _PartialBot(PolicyPlayer):
    """Plays what an agent decides.

    Attributes:
      agent: see `partial/match.py`.
    """

    agent: PartialAgent

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self.agent.statistics

    @property
    def counts(self) -> PartialStatistics:
        """How it came to its answers since it was made."""
        return self.agent.counts

    def restart(self) -> None:
        """A new match."""
        self.agent.restart()

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        answer = self.agent.strategy(observations(state, self._player, waiting=False))
        if answer is None and self.agent.blueprint is not None:
            odds = self.agent.blueprint.policy.action_probabilities(state)
            return sorted(odds.items())
        if answer is None:
            legal = state.legal_actions()
            return [(action, 1 / len(legal)) for action in legal]
        return list(zip(answer[0], answer[1].tolist(), strict=True))


class PartialResolvingBot(_PartialBot):
    """Plays by continual resolving on partial trees that follow the match."""

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        config: ResolvingConfig | None = None,
        *,
        partial: PartialConfig,
        seed: int = 0,
    ) -> None:
        """Warms up: solves the start of the game, compiles all programs.

        Args:
          game: OpenSpiel game string or game.
          player: the seat, 0 or 1.
          config: how it resolves; None: PCFR+ for 1000 ms per move, max-margin.
          partial: how partial trees follow the match.
          seed: of all that it draws.

        Raises:
          pyspiel.SpielError, ValueError: as `PartialResolver`.
        """
        super().__init__(player, seed=seed)
        if config is None:
            config = ResolvingConfig(
                DEFAULT_SOLVER, move_ms=1000, gadget=DEFAULT_GADGET
            )
        self.agent = PartialResolver(game, player, config, partial, seed=seed)


class PartialOOSBot(_PartialBot):
    """Online outcome sampling on partial trees that are focused on the match.

    At each decision the tree drops what does not lead to the player's infoset (which is
    worth what the last solve said), grows below it, and is solved by sampling, aimed
    there. Where the tree does not have the infoset, the histories that the players
    consider possible begin a new tree. A tree has a program of its own, which is
    compiled in the match and released when the tree is solved.

    In `statistics`, `iterations` are batches.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        *,
        partial: PartialConfig,
        solver: str = "os-mccfr(epsilon=0.4,exploration=0.01,batch=256)",
        iterations: int = 100,
        seed: int = 0,
    ) -> None:
        """Solves the start of the game.

        Args:
          game: OpenSpiel game string or game.
          player: the seat, 0 or 1.
          partial: how partial trees follow the match; shares of time are not used.
          solver: sampled algorithm; its `delta` is the share of aimed trajectories.
          iterations: batches per move.
          seed: of all that it draws.

        Raises:
          pyspiel.SpielError, ValueError: a full-width solver, or as `PartialTree`.
        """
        super().__init__(player, seed=seed)
        leaf = parse_partial_leaf(partial.leaf)
        if isinstance(leaf, FrontierFunction):
            raise ValueError(
                f"leaf={partial.leaf!r} knows both players' ranges, and sampling on "
                f"partial trees does not; use rollouts, or resolving(max_histories=N)"
            )
        if isinstance(leaf, ChoiceValues):
            raise ValueError(
                f"leaf={partial.leaf!r}: the opponent chooses among its values, which "
                f"sampling on partial trees does not do; use rollouts"
            )
        config = parse_sampled(solver)
        clock = Clock(None, check_iterations(iterations))
        self.agent = _Sampler(game, player, partial, clock, config, self._random)


class _Sampler(PartialAgent):
    """Solves partial trees by aimed sampling."""

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        partial: PartialConfig,
        clock: Clock,
        config: MCCFRConfig,
        random: np.random.Generator,
    ) -> None:
        super().__init__(player, partial, clock, random, mccfr.programs)
        self._config = config
        tree = self._first_tree(game)
        tree.grow()
        start = SolvedTree.of(tree, player)
        self._sample(start, -1)
        self._start_from(start)

    def _solve_decision(self, stages: Sequence[Stage], number: int) -> None:
        key = stages[number].seen[-1]
        infoset = self.solved.find(key)
        if infoset >= 0:
            self._knowledge = None
            tree = self.solved.focus_on(infoset)
        else:
            self._knowledge = self._follow(stages, number)
            if self._knowledge is None:
                return
            tree = self._restarted_tree(self._knowledge, self.settings.max_histories)
        tree.grow()
        after = self._make_solved(tree)
        if after is None:
            self.counts.fallback += infoset >= 0
            return
        self._sample(after, after.find(key))
        self.solved = after
        self.counts.safe_resolves += infoset >= 0
        self.counts.unsafe_restarts += infoset < 0

    def _sample(self, solved: SolvedTree, infoset: int) -> None:
        """Samples, aimed at an infoset; -1: at none."""
        tree = solved.snapshot.tree
        target = np.full(len(tree.histories), infoset < 0)
        if infoset >= 0:
            target[solved.histories_of(infoset)] = True
        solver = mccfr.make_solver(
            tree,
            config=self._config,
            seed=int(self._random.integers(2**31)),
            layout=sample_tree.build(tree, target=target),
            alone=True,
        )
        with self._clock.solve(solver, None):
            for p in range(2):
                solved.behaviour[p][:] = solver.average_behaviour(p)
