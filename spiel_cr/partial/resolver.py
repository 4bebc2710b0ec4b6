"""Continual resolving in a game that is never compiled whole.

A decision opens a subgame of the tree that the player knows. What does not lead there
is dropped, which makes room for what comes after, and the gadget game is solved with
the values that the opponent was promised at the roots. Growth and solving take turns:
each solve says where both players go, and so what the next one should see.

Where a subgame has too many roots, a knowledge-limited one takes its place
(`knowledge_limited.py`). Where the tree ends before the decision, a new one begins at
what both players consider possible (`opponent_knowledge.py`).
"""

import time
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.cfr import cfr
from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_seed
from spiel_cr.compilation.game_checks import chance_outcomes
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.kept_solutions import KeptSolutions
from spiel_cr.partial.knowledge_limited import LimitedGame, knowledge_set
from spiel_cr.partial.layer_solver import LayerGame, LayerSolver, LayOut
from spiel_cr.partial.match import PartialAgent
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.partial.tree import PartialTree, no_capacity
from spiel_cr.policies.observations import Stage, observations
from spiel_cr.resolving.clock import Clock
from spiel_cr.resolving.config import ResolvingConfig

# With a blueprint, that at the start has as many.
_MEASURED = 3000
# Roots, and all that leads there, may take this share of the room. What the player knew
# below them before is kept if it all takes at most the second share.
_ROOT_SHARE, _KNOWN_SHARE = 0.5, 0.5
# Of knowledge-limited subgames where there is no room for a whole one, in this order.
_ORDERS = (2, 1)


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

        def lay_out(before: SolvedTree | None) -> tuple[SolvedTree, LayerGame]:
            start = SolvedTree.of(tree, self.player, before)
            if not len(start.snapshot.tree.infosets[self.player]):
                # No room for all decisions that the opponent cannot tell apart.
                tree.grow()
                start = SolvedTree.of(tree, self.player, before)
            if not len(start.snapshot.tree.infosets[self.player]):
                raise no_capacity(tree, self.player)
            return start, start.forest()

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
        if self.settings.until_end:
            self._solve_to_the_end(stages, number, deadline)
            return
        while not self._can_resolve(key):
            # The rest of the time is for resolving there.
            if not self._resolve_frontier(stages, number, _half(deadline)):
                break
        if self.solved.find(key) >= 0:
            self._knowledge = None
            self._resolve(key, deadline)
        else:
            self._knowledge = self._follow(stages, number, deadline)
            if self._knowledge is not None:
                most = self._layers.affordable(deadline)
                if self._can_restart(self._knowledge, most):
                    until = _half(deadline)
                    tree = self._restarted_tree(self._knowledge, most, until)
                    self.counts.unsafe_restarts += self._restart_from(tree, deadline)

    def _solve_to_the_end(
        self, stages: Sequence[Stage], number: int, deadline: float | None
    ) -> None:
        """Solves what a decision needs if that reaches the end of the game."""
        key, begun = stages[number].seen[-1], self.solved is not self._start
        if begun and self.solved.find(key) >= 0:
            self._knowledge = None
            self._resolve(key, deadline)
            return
        self._knowledge = self._follow(stages, number, deadline)
        if self._knowledge is None or self._layers.has_no_time(deadline):
            return
        most, until = self._layers.affordable(deadline), None
        if deadline is not None:
            until = self._layers.grown_by(deadline, most)
        tree = self._tree_to_the_end(self._knowledge, most, until)
        if tree is not None:
            self.counts.unsafe_restarts += self._restart_from(tree, deadline)

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
            if not self._resolve_layer(opening[0], deadline):
                # What older solves said of it is left.
                self.counts.fallback += 1
                return
            solved += 1

    def _resolve_layer(self, opening: int, deadline: float | None) -> bool:
        """Solves the subgame that an infoset of the next layer opens.

        Returns:
          False: that cannot be done.
        """
        most = self._layers.affordable(deadline)
        roots, free = self.solved.subgame_roots(opening), None
        before, ids = self.solved, self.solved.snapshot.ids[roots]
        if self._is_known(before, ids):
            self.counts.safe_resolves += 1
            return True
        tree, fits = self._focused(roots, most)
        for order in () if fits else _ORDERS:
            known = knowledge_set(self.solved.decomposition, opening, order)
            roots, free = known.roots, known.free
            tree, fits = self._focused(roots, most)
            if fits:
                break
        if not fits:
            return False
        labels = None
        if free is not None:
            labels = self.solved.snapshot.labels[self.player][free]
        if not self._solve_below(tree, roots, labels, most, deadline):
            return False
        if free is None:
            self._kept.keep(before, before.partial.number_of(ids), self.solved)
        self.counts.safe_resolves += free is None
        self.counts.limited_resolves += free is not None
        return True

    def _is_known(self, before: SolvedTree, ids: np.ndarray) -> bool:
        """Takes the solution of a subgame, if it is known; else its draws begin.

        A subgame has one solution, whatever the player holds in it: so draws depend on
        its roots, and without a clock it is solved once.

        Args:
          before: what was solved before.
          ids: int64, its roots.
        """
        number = before.partial.number_of(ids)
        known = self._kept.find(before, number)
        if known is None:
            self._draw_leaves(self._number(number))
            return False
        self.solved = known
        return True

    def _forget(self) -> None:
        labels = self._start.partial.simulator.labels
        self._kept.forget_if_full(sum(map(len, labels)) - sum(self._label_counts))
        if not len(self._kept):
            super()._forget()

    def _focused(self, roots: np.ndarray, most: int) -> tuple[PartialTree, bool]:
        """A tree for what comes after some roots; whether there is room for that."""
        tree = self.solved.focus(roots)
        if len(tree) <= _KNOWN_SHARE * most or not tree.can_grow and len(tree) <= most:
            return tree, True
        tree = self.solved.focus(roots, collapse=True)
        return tree, len(tree) <= _ROOT_SHARE * most

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
        if self._is_known(before, cut):
            self.counts.frontier_resolves += 1
            return True
        tree = before.partial.focus_below(cut)
        if len(tree) > _ROOT_SHARE * most or not tree.expand_whole(most, deadline):
            return False

        def lay_out(known: SolvedTree | None) -> tuple[SolvedTree, LimitedGame] | None:
            after = self._make_solved(tree, known, cut)
            if after is None or not before.hand_on_ends(after, cut):
                return None
            return after, after.next_layer()

        if not self._solve_laid(tree, lay_out, most, deadline):
            return False
        self._kept.keep(before, before.partial.number_of(cut), self.solved)
        self.counts.frontier_resolves += 1
        return True

    def _played(self, stages: Sequence[Stage], number: int) -> dict[int, int | None]:
        """What the player did before a decision, by the labels of infosets."""
        labels = self.solved.snapshot.labels[self.player]
        return {
            int(labels[infoset]): stages[k].action
            for k in range(number)
            if (infoset := self.solved.find(stages[k].seen[-1])) >= 0
        }

    def _solve_below(
        self,
        tree: PartialTree,
        roots: np.ndarray | None,
        free: np.ndarray | None,
        most: int,
        deadline: float | None,
    ) -> bool:
        """Grows a tree below roots of the known tree, and solves their layer.

        Args:
          tree: from `focus`.
          roots: those of a subgame, or of a part of it; None: the start of the game.
          free: labels of the player's opening infosets at which it chooses anew, all
            others play as before; None: all of them.
          most: histories to have at most.
          deadline: for all of it.

        Returns:
          False: that cannot be done.
        """

        def lay_out(before: SolvedTree | None) -> tuple[SolvedTree, LayerGame] | None:
            after = self._make_solved(tree, before)
            if after is None:
                return None
            if roots is not None and not self.solved.hand_on(after, roots):
                return None
            return after, after.forest() if free is None else after.limited(free)

        return self._solve_laid(tree, lay_out, most, deadline)

    def _solve_laid(
        self, tree: PartialTree, lay_out: LayOut, most: int, deadline: float | None
    ) -> bool:
        """As `_solve_below`, a tree with a gadget game of any kind."""

        def lay_out_whole(
            known: SolvedTree | None,
        ) -> tuple[SolvedTree, LayerGame] | None:
            # One that was made smaller, or that has not grown enough, has values at
            # its frontier.
            if self.settings.until_end and tree.can_grow:
                return None
            return lay_out(known)

        seconds = None
        if deadline is not None:
            left = deadline - time.perf_counter()
            seconds = (1 - self.settings.expansion_share) * left
        solved = self._grow_and_solve(tree, lay_out_whole, most, deadline, seconds)
        if solved is not None:
            self.solved = solved
        return solved is not None

    def _restart_from(self, tree: PartialTree, deadline: float | None) -> bool:
        """Solves a tree that begins in the middle of the game."""
        most = self._layers.affordable(deadline)
        return self._solve_below(tree, None, None, most, deadline)

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
