"""Fourth stage: players of games that are never whole, as OpenSpiel bots.

Bots are handed the true state of the game. These look at their own information state
strings and their own actions only.
"""

import pyspiel

from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.common.checks import check_iterations
from spiel_cr.mccfr import mccfr
from spiel_cr.partial import opponent_knowledge, particle_belief
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.match import PartialMatch
from spiel_cr.partial.resolver import PartialResolver, PartialStatistics
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.partial.tree import PartialTree
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.policies.observations import Stage, observations
from spiel_cr.resolving import clock
from spiel_cr.resolving.config import ResolvingConfig


class PartialResolvingBot(PolicyPlayer):
    """Plays by continual resolving in a part of the game that grows with the match.

    Attributes:
      resolver: its mind, see `growing_resolver.py`.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        config: ResolvingConfig | None = None,
        *,
        growing: PartialConfig,
        seed: int = 0,
    ) -> None:
        """Warms up: solves the beginning of the game, compiles all programs.

        Args:
          game: OpenSpiel game string or game.
          player: the seat, 0 or 1.
          config: how it thinks; None: CFR+ for 1000 ms a move.
          growing: how the part grows.
          seed: of all that it draws.

        Raises:
          pyspiel.SpielError, ValueError: as `PartialResolver`.
        """
        super().__init__(player, seed=seed)
        config = config or ResolvingConfig(move_ms=1000)
        self.resolver = PartialResolver(game, player, config, growing, seed=seed)
        self._match = self.resolver.match()

    @property
    def statistics(self) -> clock.Statistics:
        """What it did since it was made."""
        return self.resolver.statistics

    @property
    def counts(self) -> PartialStatistics:
        """How it came to its answers since it was made."""
        return self.resolver.counts

    def restart(self) -> None:
        """A new match."""
        self._match = self.resolver.match()

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        seen = observations(state, self._player, between=False)
        answer = self.resolver.strategy(self._match, seen)
        if answer is None:
            legal = state.legal_actions()
            return [(action, 1 / len(legal)) for action in legal]
        return list(zip(answer[0], answer[1].tolist(), strict=True))


class PartialOOSBot(PolicyPlayer):
    """Online outcome sampling in a part of the game that is focused on the match.

    At each decision the part gives up what does not lead to the player's infoset (what
    it drops is worth what the last solve said), grows below it, and is solved by
    sampling, aimed there. Where the part does not have the infoset, the histories that
    the player thinks possible begin a new part. A part has a program of its own, which
    is compiled in the match and given up when the part is solved.

    Attributes:
      statistics: what it did since it was made; `iterations` are batches.
      counts: how it came to its answers since it was made.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        *,
        growing: PartialConfig,
        solver: str = "os-mccfr(epsilon=0.4,exploration=0.01,batch=256)",
        iterations: int = 100,
        seed: int = 0,
    ) -> None:
        """Solves the beginning of the game.

        Args:
          game: OpenSpiel game string or game.
          player: the seat, 0 or 1.
          growing: how the part grows; times are not used.
          solver: sampled algorithm; its `delta` is the share of aimed trajectories.
          iterations: batches a move.
          seed: of all that it draws.

        Raises:
          pyspiel.SpielError, ValueError: a full-width solver, or as `PartialTree`.
        """
        super().__init__(player, seed=seed)
        config = algorithm_lib.parse_any(solver)
        if not isinstance(config, algorithm_lib.MCCFRConfig):
            raise ValueError(
                f"solver={solver!r} does not sample; choose one of "
                f"{', '.join(algorithm_lib.SAMPLED_PRESETS)}"
            )
        self._config, self._growing = config, growing
        self._iterations = check_iterations(iterations)
        self.statistics = clock.Statistics()
        self.counts = PartialStatistics()
        tree = PartialTree(game, growing.max_histories, edge=growing.edge)
        tree.grow()
        self._start = SolvedTree.of(tree, player)
        self._marks = [len(labels) for labels in tree.source.labels]
        self._solve(self._start, None)
        self.restart()
        self.statistics = clock.Statistics()
        self.counts = PartialStatistics(most_histories=len(tree))

    def restart(self) -> None:
        """A new match."""
        labels = self._start.growing.source.labels
        for mine, mark in zip(labels, self._marks, strict=True):
            mine.forget(mark)
        self._match = PartialMatch(self._start, [])

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        seen = observations(state, self._player, between=False)
        programs = mccfr.programs()
        if not self._match.leads_to(seen):
            self.restart()
        match = self._match
        for number in range(len(match.stages), len(seen)):
            self._take_in(match, seen, number)
        match.stages = seen
        self.statistics.moves += 1
        self.statistics.programs_compiled += mccfr.programs() - programs
        infoset = match.situation.find(seen[-1].seen[-1])
        if infoset < 0:
            self.counts.lost += 1
            legal = state.legal_actions()
            return [(action, 1 / len(legal)) for action in legal]
        actions, odds = match.situation.strategy(infoset)
        return list(zip(actions, odds.tolist(), strict=True))

    def _take_in(self, match: PartialMatch, seen: list[Stage], number: int) -> None:
        """One decision of the match: moves the part there and solves it."""
        here, key = match.situation, seen[number].seen[-1]
        infoset = here.find(key)
        if infoset >= 0:
            match.possible = None
            tree = here.focus_on(infoset)
        else:
            match.follow(seen, number, self._growing, self._random)
            if match.possible is None:
                return
            most = particle_belief.most_roots(
                self._growing.beliefs, self._growing.max_histories
            )
            roots = opponent_knowledge.share_room(
                match.possible, most, self._growing.neighbours, self._random
            )
            tree = here.growing.rooted(*roots)
        tree.grow()
        self.counts.most_histories = max(self.counts.most_histories, len(tree))
        try:
            after = SolvedTree.of(tree, self._player, here)
        except (ValueError, pyspiel.SpielError):
            self.counts.stale += infoset >= 0
            return
        self._solve(after, key)
        match.situation = after
        self.counts.inside += infoset >= 0
        self.counts.beyond += infoset < 0

    def _solve(self, here: SolvedTree, key: str | None) -> None:
        """Samples, aimed at an infoset."""
        tree = here.part.tree
        target = None
        infoset = -1 if key is None else here.find(key)
        if infoset >= 0:
            histories = tree.histories
            target = (histories.player == self._player) & (histories.infoset == infoset)
        solver, _ = mccfr.make_targeted_solver(
            tree,
            config=self._config,
            seed=int(self._random.integers(2**31)),
            target=target,
            alone=True,
        )
        solver.run(self._iterations)
        for p in range(2):
            here.behaviour[p][:] = solver.average_behaviour(p)
        self.statistics.solves += 1
        self.statistics.iterations += self._iterations
