"""Third stage: a continually resolving player's mind in a game that is never whole.

At its decision the player is in one of three places:

  - *inside*: a subgame of the part it knows begins here, and its roots are few. What
    does not lead there is given up, the room goes to what comes after, and the gadget
    game is solved with the values that the opponent had at its gates: continual
    resolving, with the part's edge for a depth limit.
  - *beyond*: the part ends before, or the subgame has too many roots. Then a new part,
    solved as a game of its own, begins at the opponent's turn with what both players
    think possible by chance and by how both were last found to play (see
    `growing_possible.py`). That is not safe: who played otherwise may gain by it.
  - *between*: its own next decision in a subgame that was solved; it plays as found,
    if that looked as far from here as a new part would, else it is beyond.
"""

import dataclasses
import time
from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cr.cfr import cfr
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.cfr import solver as driver
from spiel_cr.partial import opponent_knowledge, particle_belief
from spiel_cr.partial.capacity import Capacities
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.match import PartialMatch
from spiel_cr.partial.opponent_knowledge import Possible
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.partial.tree import PartialTree
from spiel_cr.policies.observations import Stage, observations
from spiel_cr.resolving import clock, gadget
from spiel_cr.resolving.clock import Cost
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.sequence_form import layout

# A subgame that fits no room loses this share of its histories, so many times.
_SHRINK = 0.7
_MOST_SHRINKS = 12
# However little time is left, a part has so many histories, if N allows.
_LEAST = 1000
# Programs are chosen as for moves under a clock: these run shortly.
_SHORT_RUN = 1


@dataclasses.dataclass
class PartialStatistics:
    """What such a player did besides `clock.Statistics`, since it was made.

    Attributes:
      inside: subgames resolved with a gadget.
      beyond: decisions where it began anew from what it thought possible.
      between: decisions that an earlier solve of the match, or before it, answered.
      stale: decisions that should have been solved and could not be: answered by what
        an older part said, if only that all actions are alike.
      lost: decisions where it had no idea and played all actions alike.
      shrunk: times that a part had to be made smaller to fit a room.
      most_histories: of any part.
    """

    inside: int = 0
    beyond: int = 0
    between: int = 0
    stale: int = 0
    lost: int = 0
    shrunk: int = 0
    most_histories: int = 0


class PartialResolver:
    """Resolves for one player of a game that cannot be compiled whole.

    One match at a time: a new one forgets the labels of infosets that were met in the
    one before, which must not be asked any more.

    Attributes:
      game: the sequential game.
      player: i.
      config, growing: how it thinks.
      counts: what it did.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        config: ResolvingConfig,
        growing: PartialConfig,
        *,
        seed: int = 0,
    ) -> None:
        """Solves the beginning of the game, learns rooms, compiles every program.

        Args:
          game: OpenSpiel game string or game.
          player: 0 or 1.
          config: how it thinks; `init_ms` is for solving the beginning.
          growing: how the part grows.
          seed: of all that it draws.

        Raises:
          ValueError: settings that do not go together; see `subgame.decompose`.
        """
        growing.check(config)
        solver = algorithm_lib.parse_any(config.solver)
        assert isinstance(solver, algorithm_lib.CFRConfig)
        self.player, self.config, self.growing = player, config, growing
        self._solver = solver
        self._random = np.random.default_rng(seed)
        self._rooms = Capacities()
        self._learning = True
        self.counts = PartialStatistics()
        # To expand histories, and then to lay them out for solving.
        self._expanding, self._laying = Cost(), Cost()
        self._clock = clock.Clock(config.move_ms, config.iterations)
        tree = PartialTree(game, growing.max_histories, edge=growing.edge)
        self.game = tree.game
        self._grow(tree, None)
        begun = time.perf_counter()
        self._start = SolvedTree.of(tree, player)
        self._laying.add(len(tree), time.perf_counter() - begun)
        self._marks = [len(labels) for labels in tree.source.labels]
        if not len(self._start.part.tree.infosets[player]):
            raise ValueError(
                f"max_histories={growing.max_histories} has no room for a decision of "
                f"player {player} in {self.game}; raise it"
            )
        forest = self._start.forest()
        first = self._solver_for(self._start, forest)
        assert first is not None
        self._iterate(
            self._start, forest, first, self._clock.init_deadline(config.init_ms)
        )
        for number in range(growing.warmup):
            self._rehearse(np.random.default_rng([seed, number]))
        # Without a clock there is time to compile.
        self._learning = config.move_ms is None
        if not self._learning:
            planned = config.iterations or _SHORT_RUN
            self._start.make_solver(forest, self._rooms.close(), solver, planned)
        self._clock.restart_statistics()
        self.counts = PartialStatistics(most_histories=self.counts.most_histories)

    @property
    def statistics(self) -> clock.Statistics:
        """What it did since it was made."""
        return self._clock.statistics

    def match(self) -> PartialMatch:
        """The beginning of a match; the one before is over."""
        source = self._start.growing.source
        for labels, mark in zip(source.labels, self._marks, strict=True):
            labels.forget(mark)
        start = self._start
        behaviour = start.behaviour[0].copy(), start.behaviour[1].copy()
        gates = start.gate_values.copy()
        here = dataclasses.replace(start, behaviour=behaviour, gate_values=gates)
        return PartialMatch(here, [])

    def strategy(
        self, match: PartialMatch, stages: Sequence[Stage]
    ) -> tuple[list[int], np.ndarray] | None:
        """The player's action probabilities at its decision.

        Args:
          match: what was met so far; is brought up to date. A view that does not go on
            from there begins a new match.
          stages: what the player saw and did, see `state_posterior.observations`; the
            last one is to be answered.

        Returns:
          Actions and float64 [A]; None: it has no idea.
        """
        programs = cfr.programs()
        with self._clock.move():
            if not match.leads_to(stages):
                vars(match).update(vars(self.match()))
            for number in range(len(match.stages), len(stages)):
                share = len(stages) - number
                self._take_in(match, stages, number, self._clock.deadline(share))
            match.stages = list(stages)
            infoset = match.situation.find(stages[-1].seen[-1])
            answer = None
            if infoset >= 0:
                answer = match.situation.strategy(infoset)
            else:
                self.counts.lost += 1
        self.statistics.programs_compiled += cfr.programs() - programs
        return answer

    def _take_in(
        self,
        match: PartialMatch,
        stages: Sequence[Stage],
        number: int,
        deadline: float | None,
    ) -> None:
        """One decision of the match: solves what it needs."""
        here, key = match.situation, stages[number].seen[-1]
        infoset = here.find(key)
        if infoset < 0:
            match.follow(stages, number, self.growing, self._random)
            if match.possible is not None:
                self._begin_anew(match, match.possible, deadline)
            return
        match.possible = None
        if here.layer(infoset) > here.solved:
            if self._resolve_inside(match, infoset, key, deadline):
                return
        elif self._looked_far(here, infoset, deadline):
            self.counts.between += 1
            return
        match.look(infoset, self.growing)
        assert match.possible is not None
        if not self._begin_anew(match, match.possible, deadline):
            self.counts.stale += 1

    def _looked_far(
        self, here: SolvedTree, infoset: int, deadline: float | None
    ) -> bool:
        """Whether a solve saw as much of what comes after as a new part would."""
        below = here.focus_on(infoset)
        enough = self.growing.again * self._affordable(deadline)
        return not below.can_grow or len(below) >= enough

    def _resolve_inside(
        self, match: PartialMatch, infoset: int, key: str, deadline: float | None
    ) -> bool:
        """Resolves down to an infoset of the part; False: that cannot be done."""
        while infoset >= 0 and (way := match.situation.way_to(infoset)):
            here = match.situation
            roots, most = here.subgame_roots(way[0]), self._affordable(deadline)
            tree = here.focus(roots)
            if len(tree) > most:
                tree = here.focus(roots, bare=True)
            if tree.can_grow and len(roots) > self.growing.roots * most:
                return False
            after = self._settle(tree, here, deadline, roots)
            if after is None:
                return False
            self.counts.inside += 1
            match.situation = after
            infoset = after.find(key)
        return infoset >= 0

    def _begin_anew(
        self, match: PartialMatch, possible: Possible, deadline: float | None
    ) -> bool:
        """A new part from what players think possible, solved; False: it cannot."""
        before = match.situation
        most = particle_belief.most_roots(
            self.growing.beliefs, self._affordable(deadline)
        )
        roots = opponent_knowledge.share_room(
            possible, most, self.growing.neighbours, self._random
        )
        tree = before.growing.rooted(*roots)
        after = self._settle(tree, before, deadline, None)
        if after is None:
            return False
        self.counts.beyond += 1
        match.situation = after
        return True

    def _settle(
        self,
        tree: PartialTree,
        before: SolvedTree,
        deadline: float | None,
        roots: np.ndarray | None,
    ) -> SolvedTree | None:
        """Grows a tree and solves its next layer; None: that cannot be done.

        Args:
          tree: from `focus` or `rooted`.
          before: where it comes from.
          deadline: for all of it.
          roots: those of the subgame of `before` that it is for; None: a new game.
        """
        self._grow(tree, deadline)
        for _ in range(_MOST_SHRINKS):
            begun, programs = time.perf_counter(), cfr.programs()
            try:
                after = SolvedTree.of(tree, self.player, before)
            except (ValueError, pyspiel.SpielError):
                return None
            if roots is not None and not before.enter(after, roots):
                return None
            forest = after.forest()
            solver = self._solver_for(after, forest)
            if solver is not None:
                if cfr.programs() == programs:
                    self._laying.add(len(tree), time.perf_counter() - begun)
                self._iterate(after, forest, solver, deadline)
                return after
            self.counts.shrunk += 1
            tree.truncate(int(_SHRINK * len(tree)))
        return None

    def _affordable(self, deadline: float | None) -> int:
        """How many histories there is time for, and room."""
        if deadline is None:
            return self.growing.max_histories
        left = self.growing.growing * (deadline - time.perf_counter())
        lines = self._expanding.line, self._laying.line
        fixed, each = (a + b for a, b in zip(*lines, strict=True))
        fits = (left - fixed) / each if each else self.growing.max_histories
        return min(max(_LEAST, int(fits)), self.growing.max_histories)

    def _grow(self, tree: PartialTree, deadline: float | None) -> None:
        """Expands as much as there is time for."""
        begun, before = time.perf_counter(), len(tree)
        until = None
        if deadline is not None:
            until = begun + self.growing.growing * (deadline - begun)
        tree.grow(max(self._affordable(deadline), before), deadline=until)
        seconds, grown = time.perf_counter() - begun, len(tree) - before
        self.counts.most_histories = max(self.counts.most_histories, len(tree))
        if grown:
            self._expanding.add(grown, seconds)

    def _solver_for(
        self, here: SolvedTree, forest: gadget.Forest
    ) -> driver.Solver | None:
        """A solver in one of the rooms; None: the game fits none."""
        need = layout.shapes_of(forest.decisions, forest.payoffs)
        room = self._rooms.learn(need) if self._learning else self._rooms.find(need)
        if room is None:
            return None
        planned = self.config.iterations or _SHORT_RUN
        return here.make_solver(forest, room, self._solver, planned)

    def _iterate(
        self,
        here: SolvedTree,
        forest: gadget.Forest,
        solver: driver.Solver,
        deadline: float | None,
    ) -> None:
        with self._clock.solve(solver, deadline):
            here.remember(forest, solver)
            here.solved += 1

    def _rehearse(self, random: np.random.Generator) -> None:
        """Plays a match against uniform play, itself half at random."""
        state, match = self.game.new_initial_state(), self.match()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, odds = zip(*state.chance_outcomes(), strict=True)
                action = random.choice(actions, p=np.array(odds) / sum(odds))
            else:
                action = random.choice(state.legal_actions())
                if state.current_player() == self.player:
                    seen = observations(state, self.player, between=False)
                    answer = self.strategy(match, seen)
                    if answer is not None and random.random() < 0.5:
                        action = random.choice(answer[0], p=answer[1])
            state.apply_action(int(action))
