"""Continual resolving in a game that is never compiled whole.

A decision is answered in one of three ways:

  - *safe resolve*: a subgame of the known tree begins at the decision, and its roots
    are few. What does not lead there is dropped, which makes room for what comes after,
    and the gadget game is solved with the values that the opponent had at the roots:
    continual resolving, with the tree's frontier for a depth limit.
  - *unsafe restart*: the tree ends before, or the subgame has too many roots. Then a
    new tree, solved as a game of its own, begins at the opponent's turn with what both
    players consider possible by chance and by how both were last found to play (see
    `opponent_knowledge.py`). A player who played otherwise before may gain by it.
  - *reuse*: an earlier solve has answered the decision, and has seen as much of what
    comes after as a new tree would.
"""

import time
from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cr.cfr import cfr
from spiel_cr.cfr.config import parse_algorithm
from spiel_cr.cfr.solver import Solver
from spiel_cr.common.checks import check_seed
from spiel_cr.compilation.game_checks import chance_outcomes
from spiel_cr.partial.capacity import Capacities
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.match import PartialAgent
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.partial.tree import PartialTree, no_capacity
from spiel_cr.policies.observations import Stage, observations
from spiel_cr.resolving.clock import Clock, Cost
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.resolving.gadget import Forest
from spiel_cr.sequence_form.layout import PaddedShapes, build, shapes_of

# A subgame that fits no program's shapes keeps this share of its histories and is tried
# again, at most this often.
_SHRINK = 0.7
_MOST_SHRINKS = 12
# A tree has at least this many histories, however little time is left, if N allows.
_LEAST = 100
# Programs are chosen as for moves under a clock: these run shortly.
_SHORT_RUN = 1


class PartialResolver(PartialAgent):
    """Resolves for one player of a game that cannot be compiled whole.

    Attributes:
      config: how subgames are solved.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        config: ResolvingConfig,
        settings: PartialConfig,
        *,
        seed: int = 0,
    ) -> None:
        """Solves the start of the game, learns shapes, compiles every program.

        Args:
          game: OpenSpiel game string or game.
          player: 0 or 1.
          config: how subgames are solved; `init_ms` is for solving the start.
          settings: how partial trees are made.
          seed: of all that it draws.

        Raises:
          ValueError: settings that do not go together, or a game without layers.
        """
        seed = check_seed(seed)
        settings.check(config)
        super().__init__(
            *(player, settings, Clock(config.move_ms, config.iterations)),
            random=np.random.default_rng(seed),
            programs=cfr.programs,
        )
        self.config, self._solver = config, parse_algorithm(config.solver)
        self._capacities = Capacities()
        # To expand histories, and then to lay them out for solving.
        self._expanding, self._laying = Cost(), Cost()
        tree = self._first_tree(game)
        self._grow(tree, None)
        begun = time.perf_counter()
        start = SolvedTree.of(tree, player)
        self._laying.add(len(tree), time.perf_counter() - begun)
        if not len(start.snapshot.tree.infosets[player]):
            raise no_capacity(tree, player)
        forest = start.forest()
        first = self._solver_for(forest)
        assert first is not None
        with self._clock.solve(first, self._clock.init_deadline(config.init_ms)):
            start.take_solution(forest, first)
        self._start_from(start)
        for number in range(settings.warmup_matches):
            self._play_warmup(tree.game, np.random.default_rng([seed, number]))
        if config.move_ms is not None:  # otherwise there is time to compile
            self._make_solver(forest, self._capacities.close())
        self._reset()

    def _solve_decision(self, stages: Sequence[Stage], number: int) -> None:
        deadline = self._clock.deadline(len(stages) - number)
        if number + 1 < len(stages) and self._has_no_time(deadline):
            # A decision of the past, in a match that the player joins late.
            self._knowledge = None
            return
        key = stages[number].seen[-1]
        infoset = self.solved.find(key)
        if infoset >= 0:
            self._knowledge = None
            if self.solved.unsolved_above(infoset):
                if self._resolve_safely(key, deadline):
                    return
                # Layers that were solved on the way have changed the tree.
                infoset = self.solved.find(key)
            elif self._saw_enough(infoset, deadline):
                self.counts.reused += 1
                return
        if infoset >= 0:
            self._knowledge = self._knowledge_at(infoset)
        else:
            self._knowledge = self._follow(stages, number, deadline)
        if self._knowledge is not None:
            tree = self._restarted_tree(self._knowledge, self._affordable(deadline))
            if self._solve_next_layer(tree, deadline, None):
                self.counts.unsafe_restarts += 1
                return
        self.counts.fallback += infoset >= 0

    def _saw_enough(self, infoset: int, deadline: float | None) -> bool:
        """Whether a solve saw as much of what comes after as a new tree would."""
        below = self.solved.focus_on(infoset)
        enough = self.settings.reuse_share * self._affordable(deadline)
        return not below.can_grow or len(below) >= enough

    def _resolve_safely(self, key: str, deadline: float | None) -> bool:
        """Resolves down to an infoset of the tree; False: that cannot be done."""
        while (infoset := self.solved.find(key)) >= 0:
            opening = self.solved.unsolved_above(infoset)
            if not opening:
                return True
            roots = self.solved.subgame_roots(opening[0])
            most = self._affordable(deadline)
            tree = self.solved.focus(roots)
            if len(tree) > most:
                tree = self.solved.focus(roots, collapse=True)
            if tree.can_grow and len(roots) > self.settings.max_root_share * most:
                return False
            if not self._solve_next_layer(tree, deadline, roots):
                return False
            self.counts.safe_resolves += 1
        return False

    def _solve_next_layer(
        self, tree: PartialTree, deadline: float | None, roots: np.ndarray | None
    ) -> bool:
        """Grows a tree and solves its next layer; False: that cannot be done.

        Args:
          tree: from `focus` or `rooted_at`.
          deadline: for all of it.
          roots: those of the subgame of the known tree that it is for; None: a new
            game.
        """
        self._grow(tree, deadline)
        for _ in range(_MOST_SHRINKS):
            begun, programs = time.perf_counter(), cfr.programs()
            after = self._make_solved(tree)
            if after is None:
                return False
            if roots is not None and not self.solved.hand_on(after, roots):
                return False
            forest = after.forest()
            solver = self._solver_for(forest)
            if solver is not None:
                if cfr.programs() == programs:
                    self._laying.add(len(tree), time.perf_counter() - begun)
                with self._clock.solve(solver, deadline):
                    after.take_solution(forest, solver)
                self.solved = after
                return True
            self.counts.shrunk += 1
            if deadline is not None and time.perf_counter() > deadline:
                return False
            tree.truncate(int(_SHRINK * len(tree)))
        return False

    def _cost(self) -> tuple[float, float]:
        """Seconds for a tree of n histories, a + b n, but for solving it."""
        (fixed, each), (more, more_each) = self._expanding.line, self._laying.line
        return fixed + more, each + more_each

    def _has_no_time(self, deadline: float | None) -> bool:
        """Whether not even the least tree would be ready in time."""
        fixed, each = self._cost()
        needed = fixed + each * min(_LEAST, self.settings.max_histories)
        return deadline is not None and time.perf_counter() + needed > deadline

    def _affordable(self, deadline: float | None) -> int:
        """How many histories there is time for, and room."""
        most = self.settings.max_histories
        if deadline is None:
            return most
        left = self.settings.expansion_share * (deadline - time.perf_counter())
        fixed, each = self._cost()
        fits = (left - fixed) / each if each else most
        return min(max(_LEAST, int(fits)), most)

    def _grow(self, tree: PartialTree, deadline: float | None) -> None:
        """Expands as much as there is time for."""
        begun, before = time.perf_counter(), len(tree)
        until = None
        if deadline is not None:
            until = begun + self.settings.expansion_share * (deadline - begun)
        tree.grow(max(self._affordable(deadline), before), deadline=until)
        seconds, grown = time.perf_counter() - begun, len(tree) - before
        if grown:
            self._expanding.add(grown, seconds)

    def _solver_for(self, forest: Forest) -> Solver | None:
        """A solver of learnt shapes; None: the game fits none."""
        capacity = self._capacities.learn(shapes_of(forest.decisions, forest.payoffs))
        return None if capacity is None else self._make_solver(forest, capacity)

    def _make_solver(self, forest: Forest, capacity: PaddedShapes) -> Solver:
        form = build(forest.decisions, forest.payoffs, capacity=capacity)
        return cfr.make_solver(
            form,
            config=self._solver,
            values=True,
            first=self.player,
            compile=cfr.compile_for(form, self.config.iterations or _SHORT_RUN),
        )

    def _play_warmup(self, game: pyspiel.Game, random: np.random.Generator) -> None:
        """Plays a warm-up match: half of its moves, and the opponent's, are random."""
        self.restart()
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, odds = zip(*chance_outcomes(state), strict=True)
                action = random.choice(actions, p=np.array(odds) / sum(odds))
            else:
                action = random.choice(state.legal_actions())
                if state.current_player() == self.player:
                    seen = observations(state, self.player, waiting=False)
                    answer = self.strategy(seen)
                    if answer is not None and random.random() < 0.5:
                        action = random.choice(answer[0], p=answer[1])
            state.apply_action(int(action))
