"""A match on partial trees: what every player of them remembers and does.

`PartialAgent` brings what a player knows up to date, decision by decision. What a
decision needs to be solved, and how, is up to its subclasses.
"""

import abc
import dataclasses
import functools
import hashlib
import time
from collections.abc import Callable, Sequence

import numpy as np
import pyspiel

from spiel_cr.common.errors import HiddenTurnsError, ImperfectRecallError
from spiel_cr.games.stepping.labelled import Nodes
from spiel_cr.games.stepping.observations import Stage, continues
from spiel_cr.resolving.clock import Clock, Cost, Statistics
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.partial import opponent_knowledge
from spiel_cr.resolving.partial.blueprint import Blueprint, load_blueprint
from spiel_cr.resolving.partial.growth import is_late
from spiel_cr.resolving.partial.opponent_knowledge import Knowledge
from spiel_cr.resolving.partial.partial_config import PartialConfig
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.resolving.partial.particle_belief import (
    ParticleFilter,
    Strategy,
    uniform_strategy,
)
from spiel_cr.resolving.partial.solved_tree import SolvedTree

# The most histories to consider possible at a time; of more, some are drawn.
MOST_PARTICLES = 1000
# Share of uniform play in how both players are believed to have played.
UNIFORM_SHARE = 0.05
# A tree for an unsafe restart has at most one root per 64 histories that it has room
# for, but always room for a few.
_HISTORIES_PER_ROOT, _LEAST_ROOTS = 64, 4
# Fewer roots than that, if there are more, say too little of what may have happened.
_LEAST_ROOTS_TO_THE_END = 16
# A tree to the end from more roots shall fill this share of its room: some have more
# histories after them than others.
_FILLED = 0.8
# What leads from its roots to the decision may take this share of its room.
_LEADING_SHARE = 0.5
# Under a clock: the share of the time left for following histories, and how many are
# followed at least, however little time is left.
_FOLLOWING_SHARE, _LEAST_PARTICLES = 0.35, 8


@dataclasses.dataclass
class PartialStatistics:
    """How a player came to its answers since it was made, besides `clock.Statistics`.

    Attributes:
      safe_resolves: subgames of the tree that were solved where the match is.
      frontier_resolves: public states at which a tree ended that were solved from
        there, by what was promised there.
      unsafe_restarts: decisions for which a new tree was made from what the player
        thought possible.
      reused: decisions that an earlier solve, of the match or before it, answered.
      fallback: decisions that should have been solved and could not be: answered by
        what an older solve said, if only that all actions are alike.
      blueprint: decisions that were not solved and were answered by the blueprint.
      uniform: decisions where the player knew nothing and played all actions alike.
      shrunk: times that a tree had to be made smaller to fit a program's shapes.
      most_histories: of any tree.
    """

    safe_resolves: int = 0
    frontier_resolves: int = 0
    unsafe_restarts: int = 0
    reused: int = 0
    fallback: int = 0
    blueprint: int = 0
    uniform: int = 0
    shrunk: int = 0
    most_histories: int = 0


class PartialAgent(abc.ABC):
    """Decides for one player of a game that cannot be compiled whole.

    It plays one match at a time: a new one forgets the labels of infosets that were met
    in those before, unless solutions are kept that need them.

    Attributes:
      player: 0 or 1.
      settings: how partial trees are made.
      counts: how it came to its answers.
      solved: the tree of the match, and what was solved of it.
      blueprint: what is played where nothing is solved, if the leaf values have one.
    """

    solved: SolvedTree
    blueprint: Blueprint | None = None

    def __init__(
        self,
        player: int,
        settings: PartialConfig,
        clock: Clock,
        random: np.random.Generator,
        programs: Callable[[], int],
    ) -> None:
        """Subclasses make and solve the first tree, see `_start_from`.

        Args:
          player: 0 or 1.
          settings: how partial trees are made.
          clock: for moves and solves.
          random: consumed; what it draws at a decision depends on this and on what
            the player has seen by then, whatever else was asked before.
          programs: says how many JAX programs were compiled.
        """
        self.player, self.settings = player, settings
        self.counts = PartialStatistics()
        self._clock, self._programs = clock, programs
        self._draws = int(random.integers(2**63))
        # To follow histories from a decision to the next one.
        self._following = Cost()

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self._clock.statistics

    @property
    def _plays_blueprint(self) -> bool:
        """Whether nothing that was solved was played yet, whatever the start says."""
        return self.settings.until_end and self.solved is self._start

    @abc.abstractmethod
    def _solve_decision(self, stages: Sequence[Stage], number: int) -> None:
        """Solves what a decision of the match needs.

        Args:
          stages: what the player saw and did.
          number: the decision; all before it were solved.
        """

    def _first_tree(self, game: pyspiel.Game) -> PartialTree:
        """The start of the game, not expanded."""
        most = self.settings.max_histories
        leaf = self._leaf = self.settings.read_leaf()
        if isinstance(leaf, Continuations):
            leaf.policy(functools.partial(load_blueprint, game=game))
        self._draw_from([])
        tree = PartialTree.start(game, most, leaf=leaf, player=self.player)
        if isinstance(leaf, Continuations):
            self.blueprint = Blueprint(leaf.policy(), tree.simulator)
        return tree

    def _start_from(self, start: SolvedTree) -> None:
        """Every match begins with a tree."""
        self._start = start
        self._label_counts = [len(known) for known in start.partial.simulator.labels]
        self.counts.most_histories = len(start.partial)
        self._reset()

    def _reset(self) -> None:
        """A new match; forgets what was counted so far, but not the largest tree."""
        self._clock.restart_statistics()
        self.counts = PartialStatistics(most_histories=self.counts.most_histories)
        self.restart()

    def restart(self) -> None:
        """A new match."""
        self._forget()
        self.solved = self._start
        # What was seen and done at decisions that were solved, and what was possible at
        # the last of them, if a new tree was made there or had to be.
        self._stages: list[Stage] = []
        self._knowledge: Knowledge | None = None

    def _forget(self) -> None:
        """Forgets the labels of infosets that were met after the start."""
        labels = self._start.partial.simulator.labels
        for known, count in zip(labels, self._label_counts, strict=True):
            known.forget(count)

    def _draw_from(self, stages: Sequence[Stage]) -> None:
        """Begins random numbers for a decision, from what the player has seen by it.

        Args:
          stages: as of `strategy`; none: for the start of the game.
        """
        number = self._number(*[each for stage in stages for each in stage][:-1])
        self._random = np.random.default_rng(number)
        self._draw_leaves(number)

    def _draw_leaves(self, number: int) -> None:
        """Begins the random numbers of leaf values."""
        self._leaf.draw_from(number)

    def _number(self, *what: object) -> int:
        """64 bits that depend on the seed and on something that can be written."""
        text = repr((self._draws, what)).encode(errors="surrogatepass")
        digest = hashlib.blake2b(text, digest_size=8).digest()
        return int.from_bytes(digest, "little")

    def strategy(self, stages: Sequence[Stage]) -> tuple[list[int], np.ndarray] | None:
        """The player's action probabilities at its decision.

        Args:
          stages: what the player saw and did, see `observations`; the last one is to be
            answered. If they do not continue those of the last call, a new match
            begins.

        Returns:
          Actions and float64 [A]; None: nothing is known of the decision, or nothing
          that was solved for it, and there is a blueprint.
        """
        programs, fallback = self._programs(), self.counts.fallback
        with self._clock.move():
            if not continues(self._stages, stages):
                self.restart()
            for number in range(len(self._stages), len(stages)):
                self._draw_from(stages[: number + 1])
                self._solve_decision(stages, number)
            self._stages = list(stages)
            infoset = self.solved.find(stages[-1].seen[-1])
            answer = None
            unsolved = infoset < 0 or self.counts.fallback > fallback
            unsolved |= self._plays_blueprint
            if unsolved and self.blueprint is not None:
                self.counts.blueprint += 1
            elif infoset >= 0:
                answer = self.solved.strategy(infoset)
            else:
                self.counts.uniform += 1
        self.statistics.programs_compiled += self._programs() - programs
        return answer

    def _make_solved(
        self,
        tree: PartialTree,
        before: SolvedTree | None = None,
        cut: np.ndarray | None = None,
    ) -> SolvedTree | None:
        """A tree with what is known of its strategies; None: it cannot be resolved.

        What has been found of the game since may show that it has no layers. A tree
        that begins with a chance move to some histories need not be a game with perfect
        recall: players may have moved between two of them.

        Raises:
          ImperfectRecallError: of a tree that begins as the game does: the game itself
            has no perfect recall.
        """
        self.counts.most_histories = max(self.counts.most_histories, len(tree))
        try:
            return SolvedTree.of(tree, self.player, before or self.solved, cut)
        except HiddenTurnsError:
            return None
        except ImperfectRecallError:
            if tree.has_chance_root:
                return None
            raise

    def _restarted_tree(
        self, knowledge: Knowledge, max_histories: int, until: float | None = None
    ) -> PartialTree:
        """A tree that begins with what the players consider possible.

        It leads to the player's decision. Where there is no room, or time, for what
        lies between, it begins there, and at what the opponent cannot tell from that.

        Args:
          knowledge: what they consider possible.
          max_histories: for all that the tree will have.
          until: for leading there, by `time.perf_counter`; None: no clock.
        """
        partial = self.solved.partial
        most = most_roots(max_histories)
        target = knowledge.belief.nodes.label[0]
        tree = partial.rooted_at(*knowledge.draw_roots(most, self._random))
        capacity = int(_LEADING_SHARE * max_histories)
        if tree.grow_to(int(target), capacity, until):
            return tree
        roots = knowledge.at_decision.draw_roots(most, self._random)
        tree = partial.rooted_at(*roots)
        # Else the decision would be at the frontier if no time is left for growing.
        tree.grow_to(int(target), max_histories)
        return tree

    def _tree_to_the_end(
        self, knowledge: Knowledge, max_histories: int, until: float | None = None
    ) -> PartialTree | None:
        """A tree of all that may come, from as many histories as have capacity.

        What comes after the fewest says how many of them have capacity.

        Args:
          knowledge: of the decision.
          max_histories: that the tree may have.
          until: by `time.perf_counter`: nothing is begun after it. None: no clock.

        Returns:
          None: there is no capacity, or no time, for enough of them.
        """
        begun = time.perf_counter()
        known = len(knowledge.roots.weights) + len(knowledge.opponent_roots.weights)
        most = min(known, MOST_PARTICLES, max_histories // 4)
        few = min(known, _LEAST_ROOTS_TO_THE_END)
        if few > most:
            return None
        least = self._grown_whole(knowledge, few, max_histories, until)
        if least is None:
            return None
        capacity, now = max_histories, time.perf_counter()
        if until is not None:
            capacity = min(capacity, int(len(least) * (until - now) / (now - begun)))
        more = min(most, int(_FILLED * few * capacity / len(least)))
        while more > few and not is_late(until):
            tree = self._grown_whole(knowledge, more, max_histories, until)
            if tree is not None:
                return tree
            more //= 2
        return least

    def _grown_whole(
        self, knowledge: Knowledge, roots: int, most: int, until: float | None
    ) -> PartialTree | None:
        """A tree of all that may come after some of the roots; None: it has no room."""
        drawn = knowledge.draw_roots(roots, self._random)
        tree = self.solved.partial.rooted_at(*drawn)
        tree.grow(most, deadline=until)
        return None if tree.can_grow else tree

    def _can_restart(self, knowledge: Knowledge, max_histories: int) -> bool:
        """Whether a new tree is better than a blueprint: it has room for all roots."""
        if self.blueprint is None:
            return True
        most = most_roots(max_histories)
        roots = len(knowledge.roots.weights) + len(knowledge.opponent_roots.weights)
        return roots <= most

    def _knowledge_at(self, infoset: int) -> Knowledge:
        """What is possible at an infoset of the tree."""
        return opponent_knowledge.at_infoset(self.solved, infoset, UNIFORM_SHARE)

    def _follow(
        self, stages: Sequence[Stage], number: int, deadline: float | None = None
    ) -> Knowledge | None:
        """What is possible at a decision that the tree does not have.

        Args:
          stages: what the player saw and did.
          number: the decision.
          deadline: for all that the decision needs; with little time, few histories
            are followed. None: no clock.

        Returns:
          None: none of the histories that were followed leads there, or there was no
          time to follow them.
        """
        solved, knowledge = self.solved, self._knowledge
        if knowledge is None and number and not self._plays_blueprint:
            before = solved.find(stages[number - 1].seen[-1])
            if before >= 0:
                knowledge = self._knowledge_at(before)
        known: list[Strategy] = [
            functools.partial(self._believed, player=p) for p in range(2)
        ]
        simple = known.copy()
        simple[1 - self.player] = uniform_strategy
        # From the start, with a simpler opponent for what was thought impossible.
        tries = [(0, known), (0, simple)]
        if knowledge is not None:
            tries.insert(0, (number, known))
        until = None
        if deadline is not None:
            now = time.perf_counter()
            until = now + _FOLLOWING_SHARE * (deadline - now)
        for tried, (first, strategies) in enumerate(tries):
            if tried and until is not None and time.perf_counter() > until:
                return None
            particles = ParticleFilter(
                *(solved.partial.simulator, self.player),
                strategies=(strategies[0], strategies[1]),
                most=self._particles(number + 1 - first, until),
                random=self._random,
            )
            start = knowledge if first else opponent_knowledge.at_start(particles)
            found = self._follow_stages(particles, start, stages, first, number, until)
            if found is not None:
                return found
        return None

    def _believed(self, nodes: Nodes, *, player: int) -> np.ndarray:
        """How a player is believed to play at histories, see `Strategy`."""
        odds = uniform = uniform_strategy(nodes)
        mix = UNIFORM_SHARE
        if self.blueprint is not None:
            odds = mix * uniform + (1 - mix) * self.blueprint.play(nodes, player)
        if self._plays_blueprint:
            return odds
        return self.solved.play(
            *(nodes.label, nodes.num_actions, odds), player=player, mix=mix
        )

    def _follow_stages(
        self,
        particles: ParticleFilter,
        found: Knowledge | None,
        stages: Sequence[Stage],
        first: int,
        last: int,
        until: float | None,
    ) -> Knowledge | None:
        """From one decision to a later one, as `_follow`; no stage begins too late."""
        for stage in range(first, last + 1):
            begun = time.perf_counter()
            if found is None or (until is not None and stage > first and begun > until):
                return None
            before = found.size
            found = opponent_knowledge.follow(
                particles,
                found,
                action=stages[stage - 1].action if stage else None,
                key=stages[stage].seen[-1],
            )
            size = max(before, 0 if found is None else found.size)
            self._following.add(size, time.perf_counter() - begun)
        return found

    def _particles(self, steps: int, until: float | None) -> int:
        """How many histories may be followed over some decisions."""
        if until is None:
            return MOST_PARTICLES
        fixed, each = self._following.line
        left = (until - time.perf_counter()) / steps - fixed
        # As many again are alternatives, with the same observations and with others.
        each *= 3
        fits = int(max(0.0, left) / each) if each else MOST_PARTICLES
        return min(max(_LEAST_PARTICLES, fits), MOST_PARTICLES)


def most_roots(max_histories: int) -> int:
    """How many histories a tree may begin with, of how many it may have."""
    few = max(_LEAST_ROOTS, min(MOST_PARTICLES, max_histories // _HISTORIES_PER_ROOT))
    # The chance move to them takes room, too.
    return max(1, min(few, max_histories - 1))
