"""Continual resolving in a game that is never compiled whole.

A decision opens a subgame of the tree that the player knows. What does not lead there
is dropped, which makes room for what comes after, and the gadget game is solved with
the values that the opponent was promised at the roots. Growth and solving take turns:
each solve says where both players go, and so what the next one should see.

Where the tree ends before the decision, a new one begins at what both players consider
possible (`opponent_knowledge.py`).
"""

import time
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_seed
from spiel_cr.games.opening.game_checks import chance_outcomes
from spiel_cr.games.stepping.observations import Stage, observations
from spiel_cr.resolving.clock import Clock
from spiel_cr.resolving.partial.kept_solutions import KeptSolutions
from spiel_cr.resolving.partial.layer_solver import EXPANSION_SHARE, LayerSolver, LayOut
from spiel_cr.resolving.partial.match import PartialAgent
from spiel_cr.resolving.partial.opponent_knowledge import Knowledge
from spiel_cr.resolving.partial.partial_config import PartialConfig
from spiel_cr.resolving.partial.partial_tree import PartialTree, no_capacity
from spiel_cr.resolving.partial.solved_tree import SolvedTree
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.cfr import cfr

# With a blueprint, that at the start has as many.
_MEASURED = 3000
# Roots, and all that leads there, may take this share of the room. What the player knew
# below them before is kept if it all takes at most the second share.
_ROOT_SHARE, _KNOWN_SHARE = 0.5, 0.5


class PartialResolver(PartialAgent):
    """Resolves for one player of a game that cannot be compiled whole.

    Attributes:
      config: how subgames are solved.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        config: ResolvingConfig,
        settings: PartialConfig,
        *,
        seed: int = 0,
    ) -> None:
        """Solves the start of the game, learns shapes, compiles every program.

        Args:
          game: a sequential game.
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
        self.config = config
        self._layers = LayerSolver(player, config, settings, self._clock)
        with self._steps("the start") as bar:
            tree = self._first_tree(game)
            start = self._solve_start(tree)
            # Nothing is kept of warm-up matches, and nothing under a clock.
            self._kept = KeptSolutions(start, 0)
            self._start_from(start)
            for number in range(settings.warmup_matches):
                self._step(bar, f"warm-up match {number + 1}")
                self._play_warmup(tree.game, np.random.default_rng([seed, number]))
            self._step(bar, "last programs")
            if config.move_ms is not None:  # otherwise there is time to compile
                self._layers.close()
            else:
                self._kept = KeptSolutions(start)
            self._step(bar, "ready")
        self._reset()

    def _steps(self, first: str) -> "tqdm[NoReturn]":
        """Progress of the construction, on terminals."""
        total = 2 + self.settings.warmup_matches
        described = f"player {self.player}: {first}"
        bar = tqdm(total=total, desc=described, disable=None, leave=False)
        if bar.disable:
            announce(described)
        return bar

    def _step(self, bar: "tqdm[NoReturn]", what: str) -> None:
        """Says what comes next, and what compiling took so far."""
        programs, seconds = self._layers.compiled
        if bar.disable:
            announce(f"player {self.player}: {what}")
        bar.set_description(f"player {self.player}: {what}", refresh=False)
        bar.set_postfix_str(f"{programs} programs compiled in {seconds:.1f} s", False)
        bar.update()

    def _solve_start(self, tree: PartialTree) -> SolvedTree:
        """Grows and solves the tree that every match begins with."""

        def lay_out(before: SolvedTree | None) -> SolvedTree:
            start = SolvedTree.of(tree, self.player, before)
            if not len(start.snapshot.tree.infosets[self.player]):
                # No room for all decisions that the opponent cannot tell apart.
                tree.grow()
                start = SolvedTree.of(tree, self.player, before)
            if not len(start.snapshot.tree.infosets[self.player]):
                raise no_capacity(tree, self.player)
            return start

        # All the room is used: no move waits for this. Where a blueprint is played, the
        # tree only tells what trees cost.
        most, end = self.settings.max_histories, None
        if self.settings.until_end:
            most = min(most, _MEASURED)
        if (until := self._clock.init_deadline(self.config.init_ms)) is not None:
            end = until - time.perf_counter()
        start = self._grow_and_solve(tree, lay_out, most, None, end)
        assert start is not None
        return start

    def _solve_decision(self, stages: Sequence[Stage], number: int) -> None:
        deadline = self._clock.deadline(len(stages) - number)
        if number + 1 < len(stages) and self._layers.has_no_time(deadline):
            # A decision of the past, in a match that the player joins late.
            self._knowledge = None
            return
        key = stages[number].seen[-1]
        if not self.settings.until_end:
            while not self._can_resolve(key):
                # The rest of the time is for resolving there.
                if not self._resolve_frontier(stages, number, _half(deadline)):
                    break
        if self.solved.find(key) >= 0 and not self._plays_blueprint:
            self._knowledge = None
            self._resolve(key, deadline)
            return
        self._knowledge = self._follow(stages, number, deadline)
        if self._knowledge is None:
            return
        tree = self._new_tree(self._knowledge, deadline)
        if tree is not None:
            most = self._layers.affordable(deadline)
            self.counts.unsafe_restarts += self._solve(tree, None, most, deadline)

    def _new_tree(
        self, knowledge: Knowledge, deadline: float | None
    ) -> PartialTree | None:
        """A tree that begins in the middle of the game; None: the blueprint is better.

        Args:
          knowledge: what the players consider possible.
          deadline: for all that the decision needs; None: none.
        """
        most = self._layers.affordable(deadline)
        if not self.settings.until_end:
            if not self._can_restart(knowledge, most):
                return None
            return self._restarted_tree(knowledge, most, _half(deadline))
        if self._layers.has_no_time(deadline):
            return None
        until = None
        if deadline is not None:
            until = self._layers.grown_by(deadline, most)
        return self._tree_to_the_end(knowledge, most, until)

    def _can_resolve(self, key: str) -> bool:
        """Whether the tree has a decision, and all roots of its subgame."""
        if (infoset := self.solved.find(key)) < 0:
            return False
        opening = self.solved.unsolved_above(infoset)
        return len(opening) != 1 or self.solved.has_all_roots(opening[0])

    def _resolve(self, key: str, deadline: float | None) -> None:
        """Resolves down to an infoset of the tree."""
        solved = 0
        while (infoset := self.solved.find(key)) >= 0:
            opening = self.solved.unsolved_above(infoset)
            if not opening:
                self.counts.reused += not solved
                return
            roots = self.solved.subgame_roots(opening[0])
            ids, most = (
                self.solved.snapshot.ids[roots],
                self._layers.affordable(deadline),
            )
            if not self._resolve_below(ids, most, deadline):
                # What older solves said of it is left.
                self.counts.fallback += 1
                return
            self.counts.safe_resolves += 1
            solved += 1

    def _resolve_below(
        self,
        ids: np.ndarray,
        most: int,
        deadline: float | None,
        *,
        at_frontier: bool = False,
    ) -> bool:
        """Solves the subgame of some roots; takes its solution if that is known.

        A subgame has one solution, whatever the player holds in it: so draws depend on
        its roots, and without a clock it is solved once.

        Args:
          ids: int64, the roots.
          most: histories to have at most.
          deadline: for all of it; None: none.
          at_frontier: the roots are a public state at which the tree ends.

        Returns:
          False: that cannot be done.
        """
        before, number = self.solved, self.solved.partial.number_of(ids)
        known = self._kept.find(before, number)
        if known is not None:
            self.solved = known
            return True
        self._draw_leaves(self._number(number))
        tree = before.partial.focus(ids)
        if at_frontier:
            fits = len(tree) <= _ROOT_SHARE * most and tree.expand_whole(most, deadline)
        else:
            whole = len(tree) <= most and not tree.can_grow
            fits = whole or len(tree) <= _KNOWN_SHARE * most
            if not fits:
                tree = before.partial.focus(ids, collapse=True)
                fits = len(tree) <= _ROOT_SHARE * most
        if not (fits and self._solve(tree, ids, most, deadline, cut=at_frontier)):
            return False
        self._kept.keep(before, number, self.solved)
        return True

    def _forget(self) -> None:
        labels = self._start.partial.simulator.labels
        self._kept.forget_if_full(sum(map(len, labels)) - sum(self._label_counts))
        if not len(self._kept):
            super()._forget()

    def _resolve_frontier(
        self, stages: Sequence[Stage], number: int, deadline: float | None
    ) -> bool:
        """Resolves the public state at the frontier beyond which a decision lies.

        The tree grows below its histories, whichever way the match went on from there,
        and the opponent keeps what it was promised at each. So what different matches
        lead to is resolved by one solution, or below one.

        Returns:
          False: that cannot be done.
        """
        before, key = self.solved, stages[number].seen[-1]
        if number:
            last = before.find(stages[number - 1].seen[-1])
            if last < 0 or before.decomposition.own_layer[last] > before.solved:
                return False
        most = self._layers.affordable(deadline)
        if self._layers.has_no_time(deadline):
            return False
        played = self._played(stages, number)
        cut = before.partial.frontier_before(played, key, most, deadline)
        if cut is None:
            return False
        resolved = self._resolve_below(cut, most, deadline, at_frontier=True)
        self.counts.frontier_resolves += resolved
        return resolved

    def _played(self, stages: Sequence[Stage], number: int) -> dict[int, int | None]:
        """What the player did before a decision, by the labels of infosets."""
        labels = self.solved.snapshot.labels[self.player]
        return {
            int(labels[infoset]): stages[k].action
            for k in range(number)
            if (infoset := self.solved.find(stages[k].seen[-1])) >= 0
        }

    def _solve(
        self,
        tree: PartialTree,
        ids: np.ndarray | None,
        most: int,
        deadline: float | None,
        *,
        cut: bool = False,
    ) -> bool:
        """Grows a tree, and solves the layer of its roots.

        Args:
          tree: what leads to the roots, and what comes after them so far.
          ids: int64, histories of the tree so far, which promises the opponent values
            there; None: the tree begins with its roots.
          most: histories to have at most.
          deadline: for all of it; None: none.
          cut: a layer begins at the roots, whoever acts there.

        Returns:
          False: that cannot be done.
        """
        before, seconds = self.solved, None

        def lay_out(smaller: SolvedTree | None) -> SolvedTree | None:
            # One that was made smaller, or that has not grown enough, has values at
            # its frontier.
            if self.settings.until_end and tree.can_grow:
                return None
            after = self._make_solved(tree, smaller, ids if cut else None)
            promised = after is not None and (ids is None or before.hand_on(after, ids))
            return after if promised else None

        if deadline is not None:
            left = deadline - time.perf_counter()
            seconds = (1 - EXPANSION_SHARE) * left
        solved = self._grow_and_solve(tree, lay_out, most, deadline, seconds)
        self.solved = solved or before
        return solved is not None

    def _grow_and_solve(
        self,
        tree: PartialTree,
        lay_out: LayOut,
        most: int,
        deadline: float | None,
        seconds: float | None,
    ) -> SolvedTree | None:
        """As `LayerSolver.grow_and_solve`, counted."""
        layers, shrunk = self._layers, self._layers.shrunk
        solved = layers.grow_and_solve(tree, lay_out, most, deadline, seconds)
        self.counts.shrunk += layers.shrunk - shrunk
        largest = max(self.counts.most_histories, layers.most_histories)
        self.counts.most_histories = largest
        return solved

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


def _half(deadline: float | None) -> float | None:
    """The time in the middle between now and a deadline."""
    return deadline and (time.perf_counter() + deadline) / 2
