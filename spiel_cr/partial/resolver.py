"""Continual resolving in a game that is never compiled whole.

A decision opens a subgame of the tree that the player knows. What does not lead there
is dropped, which makes room for what comes after, and the gadget game is solved with
the values that the opponent was promised at the roots. Growth and solving take turns:
each solve says where both players go, and so what the next one should see.

Where a subgame has too many roots, a knowledge-limited one takes its place
(`knowledge_limited.py`). Where the tree ends before the decision, a new one begins at
what both players consider possible (`opponent_knowledge.py`).
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.cfr import cfr
from spiel_cr.cfr.config import parse_algorithm
from spiel_cr.cfr.solver import Solver
from spiel_cr.common.checks import check_seed
from spiel_cr.compilation.game_checks import chance_outcomes
from spiel_cr.partial.capacity import Capacities
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.knowledge_limited import LimitedGame, knowledge_set, max_margin
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
# With a blueprint, that at the start has as many.
_MEASURED = 3000
# Programs are chosen as for moves under a clock: these run shortly.
_SHORT_RUN = 1
# Rounds of growth and solving: up to which share of the room a tree grows in each, and
# which share of the iterations, or of the time for them, is for solving it then. Under
# a clock as many rounds as leave most of the time for what is not paid per round.
_ROUNDS = ((0.25, 0.1), (0.5, 0.1), (0.75, 0.2), (1.0, 0.6))
_FEWER_ROUNDS = {
    1: ((1.0, 1.0),),
    2: ((0.5, 0.2), (1.0, 0.8)),
    3: ((0.25, 0.1), (0.5, 0.2), (1.0, 0.7)),
    4: _ROUNDS,
}
_ROUNDS_SHARE = 0.3
# Roots, and all that leads there, may take this share of the room. What the player knew
# below them before is kept if it all takes at most the second share.
_ROOT_SHARE, _KNOWN_SHARE = 0.5, 0.5
# Without a clock, solutions of subgames are kept for later matches as long as they have
# at most so many histories in all (6 kB each), and no more labels were met; then both
# are forgotten. That is besides the N histories of a tree.
_REMEMBERED = 1 << 16
# Of knowledge-limited subgames where there is no room for a whole one, in this order.
_ORDERS = (2, 1)


class _Laid(NamedTuple):
    """A tree that is ready to be solved."""

    after: SolvedTree
    game: "_Game"
    solver: Solver


# With a gadget, or the start of the game.
_Game: TypeAlias = Forest | LimitedGame
_LayOut: TypeAlias = Callable[[SolvedTree | None], tuple[SolvedTree, _Game] | None]


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
        # By who updates first: a program belongs to the order of the players, too.
        self._capacities = Capacities(), Capacities()
        # The last game that was laid out of each kind, until the first match.
        self._laid_out: dict[int, _Game] = {}
        # Solutions, by what was solved before and the number of their roots, with that.
        self._solutions: dict[tuple[int, int], tuple[SolvedTree, SolvedTree]] = {}
        self._kept: set[int] = set()
        self._remembered, self._is_full, self._warming_up = 0, False, True
        # To expand histories, and then to lay them out for solving.
        self._expanding, self._laying = Cost(), Cost()
        # Programs compiled before the first match, and seconds for that.
        self._compiled = 0, 0.0
        with self._steps("the start") as bar:
            tree = self._first_tree(game)
            start = self._solve_start(tree)
            self._start_from(start)
            for number in range(settings.warmup_matches):
                self._step(bar, f"warm-up match {number + 1}")
                self._play_warmup(tree.game, np.random.default_rng([seed, number]))
            self._step(bar, "last programs")
            if config.move_ms is not None:  # otherwise there is time to compile
                self._close_capacities()
            self._step(bar, "ready")
        self._laid_out.clear()
        self._warming_up = False
        self._reset()

    def _steps(self, first: str) -> "tqdm[NoReturn]":
        """Progress of the construction, on terminals."""
        total = 2 + self.settings.warmup_matches
        described = f"player {self.player}: {first}"
        return tqdm(total=total, desc=described, disable=None, leave=False)

    def _step(self, bar: "tqdm[NoReturn]", what: str) -> None:
        """Says what comes next, and what compiling took so far."""
        programs, seconds = self._compiled
        bar.set_description(f"player {self.player}: {what}", refresh=False)
        bar.set_postfix_str(f"{programs} programs compiled in {seconds:.1f} s", False)
        bar.update()

    def _close_capacities(self) -> None:
        """Compiles the last programs."""
        known = self._laid_out
        for first, capacities in enumerate(self._capacities):
            game = known.get(first) or known[1 - first]
            if not len(capacities):
                shapes = capacities.learn(shapes_of(game.decisions, game.payoffs))
                assert shapes is not None
                self._make_solver(game, shapes, first)
            self._make_solver(game, capacities.close(), first)

    def _solve_start(self, tree: PartialTree) -> SolvedTree:
        """Grows and solves the tree that every match begins with."""

        def lay_out(before: SolvedTree | None) -> tuple[SolvedTree, _Game]:
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
        laid = self._grow_and_solve(tree, lay_out, most, None, end)
        assert laid is not None
        return laid.after

    def _solve_decision(self, stages: Sequence[Stage], number: int) -> None:
        deadline = self._clock.deadline(len(stages) - number)
        if number + 1 < len(stages) and self._has_no_time(deadline):
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
                if number and self.blueprint is None:
                    self._grow_towards(stages, number, _half(deadline))
                break
        if self.solved.find(key) >= 0:
            self._knowledge = None
            self._resolve(key, deadline)
        else:
            self._knowledge = self._follow(stages, number, deadline)
            if self._knowledge is not None:
                most = self._affordable(deadline)
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
        if self._knowledge is None or self._has_no_time(deadline):
            return
        most, until = self._affordable(deadline), None
        if deadline is not None:
            now, (fixed, each) = time.perf_counter(), self._laying.line
            until = now + self.settings.expansion_share * (deadline - now)
            until -= fixed + each * most
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
        most = self._affordable(deadline)
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
            self._remember(before, ids)
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
        known = self._solutions.get((id(before), number))
        if known is None:
            self._draw_leaves(self._number(number))
            return False
        self.solved = known[1]
        return True

    def _remember(self, before: SolvedTree, ids: np.ndarray) -> None:
        """Keeps the solution of a subgame, for later matches."""
        if self.config.move_ms is not None or self._warming_up:
            return
        # Below what is not kept itself, nothing is found again.
        if before is not self._start and id(before) not in self._kept:
            return
        size = len(self.solved.partial)
        if self._remembered + size > _REMEMBERED:
            self._is_full = True
            return
        key = id(before), before.partial.number_of(ids)
        self._solutions[key] = before, self.solved
        self._kept.add(id(self.solved))
        self._remembered += size

    def _forget(self) -> None:
        labels = self._start.partial.simulator.labels
        met = sum(map(len, labels)) - sum(self._label_counts)
        if self._is_full or met > _REMEMBERED:
            self._solutions.clear()
            self._kept.clear()
            self._remembered, self._is_full = 0, False
        if not self._solutions:
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
        most = self._affordable(deadline)
        if self._has_no_time(deadline):
            return False
        played = self._played(stages, number)
        cut = before.partial.frontier_before(played, key, most, deadline)
        if cut is None:
            return False
        if self._is_known(before, cut):
            self.counts.frontier_resolves += 1
            return True
        tree = before.partial.focus(cut)
        if len(tree) > _ROOT_SHARE * most or not tree.expand_whole(most, deadline):
            return False

        def lay_out(known: SolvedTree | None) -> tuple[SolvedTree, LimitedGame] | None:
            after = self._make_solved(tree, known, cut)
            if after is None or not before.hand_on_ends(after, cut):
                return None
            return after, after.next_layer()

        if not self._solve_laid(tree, lay_out, most, deadline):
            return False
        self._remember(before, cut)
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

    def _grow_towards(
        self, stages: Sequence[Stage], number: int, deadline: float | None
    ) -> None:
        """Grows the tree towards a decision that it does not have, if there is room.

        The layer of the player's last decision is laid out anew, with its gadget. The
        player's own strategy in it stays: it has played by that.
        """
        before = self.solved
        last = before.find(stages[number - 1].seen[-1])
        if last < 0 or before.solved < 1:
            return
        d, opening = before.decomposition, before.opening_of(last)
        if d.own_layer[opening] != before.solved:
            return
        roots = before.subgame_roots(opening)
        path = self._played(stages, number)
        key = stages[number].seen[-1]
        labels = before.snapshot.labels[self.player][d.own_layer <= before.solved]
        for whole in (True, False):
            most = self._affordable(deadline)
            tree = before.focus(roots, collapse=True)
            if len(tree) > _ROOT_SHARE * most or self._has_no_time(deadline):
                return
            if tree.grow_along(
                *(path, labels, key, most), whole=whole, deadline=deadline
            ):
                break
        else:
            return
        nothing = np.zeros(0, np.int32)
        self.counts.grown_towards += self._solve_below(
            *(tree, roots, nothing, most, deadline)
        )

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

        def lay_out(before: SolvedTree | None) -> tuple[SolvedTree, _Game] | None:
            after = self._make_solved(tree, before)
            if after is None:
                return None
            if roots is not None and not self.solved.hand_on(after, roots):
                return None
            return after, after.forest() if free is None else after.limited(free)

        return self._solve_laid(tree, lay_out, most, deadline)

    def _solve_laid(
        self, tree: PartialTree, lay_out: _LayOut, most: int, deadline: float | None
    ) -> bool:
        """As `_solve_below`, a tree with a gadget game of any kind."""

        def lay_out_whole(known: SolvedTree | None) -> tuple[SolvedTree, _Game] | None:
            # One that was made smaller, or that has not grown enough, has values at
            # its frontier.
            if self.settings.until_end and tree.can_grow:
                return None
            return lay_out(known)

        seconds = None
        if deadline is not None:
            left = deadline - time.perf_counter()
            seconds = (1 - self.settings.expansion_share) * left
        laid = self._grow_and_solve(tree, lay_out_whole, most, deadline, seconds)
        if laid is not None:
            self.solved = laid.after
        return laid is not None

    def _restart_from(self, tree: PartialTree, deadline: float | None) -> bool:
        """Solves a tree that begins in the middle of the game."""
        most = self._affordable(deadline)
        return self._solve_below(tree, None, None, most, deadline)

    def _grow_and_solve(
        self,
        tree: PartialTree,
        lay_out: _LayOut,
        most: int,
        deadline: float | None,
        seconds: float | None,
    ) -> _Laid | None:
        """Takes turns at growing a tree and solving its next layer.

        Args:
          tree: grows.
          lay_out: the tree as it is with its gadget game, after a smaller one that was
            solved before; None: it cannot be resolved.
          most: histories to have at most.
          deadline: for all of it; None: none.
          seconds: for solving; None: there is no clock.

        Returns:
          The last tree, solved; None: there is none.
        """
        begun, least, left = time.perf_counter(), len(tree), 1.0
        until = None
        if deadline is not None:
            until = begun + self.settings.expansion_share * (deadline - begun)
        rounds = self._rounds(None if until is None else until - begun)
        if seconds is None:
            # If all of it fits, all iterations are for that.
            tree.grow(max(most, least), guided=True)
            if tree.can_grow:
                tree.truncate(least)
            else:
                rounds = ((1.0, 1.0),)
        done: _Laid | None = None
        for number, (size, share) in enumerate(rounds):
            self._grow(tree, least + int(size * max(0, most - least)), most, until)
            laid = self._lay_out(tree, lay_out, done and done.after, deadline)
            last = number + 1 == len(rounds) or not tree.can_grow or laid is None
            done = laid or done
            if done is None:
                return None
            if until is not None and time.perf_counter() > until:
                last = True
            now = left if last else share
            left -= now
            end = None if seconds is None else time.perf_counter() + now * seconds
            if last and deadline is not None:
                end = deadline
            iterations = self.config.iterations
            at_most = None if iterations is None else max(1, round(now * iterations))
            with self._clock.solve(done.solver, end, at_most):
                done.after.take_strategies(done.game, done.solver)
                if last:
                    done.after.take_values(done.game, done.solver)
                tree.set_reach(done.after.snapshot.ids, done.after.reach())
            if last:
                break
        return done

    def _lay_out(
        self,
        tree: PartialTree,
        lay_out: _LayOut,
        before: SolvedTree | None,
        deadline: float | None,
    ) -> _Laid | None:
        """A solver for a tree, made smaller until it fits a program's shapes."""
        for _ in range(_MOST_SHRINKS):
            begun, programs = time.perf_counter(), cfr.programs()
            found = lay_out(before)
            if found is None:
                return None
            solver = self._solver_for(self._with_gadget(found[1]))
            if solver is not None:
                if cfr.programs() == programs:
                    self._laying.add(len(tree), time.perf_counter() - begun)
                return _Laid(*found, solver)
            self.counts.shrunk += 1
            if deadline is not None and time.perf_counter() > deadline:
                return None
            tree.truncate(int(_SHRINK * len(tree)))
        return None

    def _rounds(self, seconds: float | None) -> tuple[tuple[float, float], ...]:
        """Rounds of growth and solving for some time; None: there is no clock."""
        if seconds is not None and self.settings.until_end:
            return _FEWER_ROUNDS[1]  # of a tree that reaches the end of the game
        fixed = self._expanding.line[0] + self._laying.line[0]
        if seconds is None or not fixed:
            return _ROUNDS
        return _FEWER_ROUNDS[int(np.clip(_ROUNDS_SHARE * seconds / fixed, 1, 4))]

    def _cost(self, seconds: float) -> tuple[float, float]:
        """Seconds for a tree of n histories, a + b n, but for solving it.

        Args:
          seconds: for all of that.
        """
        rounds = self._rounds(seconds)
        (fixed, each), (more, more_each) = self._expanding.line, self._laying.line
        laid = sum(size for size, _ in rounds)
        return len(rounds) * (fixed + more), each + laid * more_each

    def _has_no_time(self, deadline: float | None) -> bool:
        """Whether not even the least tree would be ready in time."""
        if deadline is None:
            return False
        left = deadline - time.perf_counter()
        fixed, each = self._cost(left)
        return left < fixed + each * min(_LEAST, self.settings.max_histories)

    def _affordable(self, deadline: float | None) -> int:
        """How many histories there is time for, and room."""
        most = self.settings.max_histories
        if deadline is None:
            return most
        left = self.settings.expansion_share * (deadline - time.perf_counter())
        fixed, each = self._cost(left)
        fits = (left - fixed) / each if each else most
        return min(max(_LEAST, int(fits)), most)

    def _grow(
        self, tree: PartialTree, size: int, most: int, until: float | None
    ) -> None:
        """Expands as much as there is time for."""
        begun, before = time.perf_counter(), len(tree)
        tree.grow(max(size, before), guided=True, capacity=most, deadline=until)
        self.counts.most_histories = max(self.counts.most_histories, len(tree))
        seconds, grown = time.perf_counter() - begun, len(tree) - before
        if grown:
            self._expanding.add(grown, seconds)

    def _with_gadget(self, game: _Game) -> _Game:
        """A gadget game of one subgame with the gadget that was asked for."""
        count = len(game.augmented)
        if not count or self.config.gadget == "cfrd":
            return game
        decisions, payoffs = max_margin(
            game.decisions, game.payoffs, count, 1 - self.player
        )
        return dataclasses.replace(game, decisions=decisions, payoffs=payoffs)

    def _solver_for(self, game: _Game) -> Solver | None:
        """A solver of learnt shapes; None: the game fits none."""
        # See `subgame_games.GadgetGame.first`.
        margin = self.config.gadget == "maxmargin" and len(game.augmented) > 0
        first = self.player ^ margin
        needed = shapes_of(game.decisions, game.payoffs)
        capacity = self._capacities[first].learn(needed)
        self._laid_out[first] = game
        return None if capacity is None else self._make_solver(game, capacity, first)

    def _make_solver(self, game: _Game, capacity: PaddedShapes, first: int) -> Solver:
        form = build(game.decisions, game.payoffs, capacity=capacity)
        before = cfr.programs()
        solver = cfr.make_solver(
            form,
            config=self._solver,
            values=True,
            first=first,
            compile=cfr.compile_for(form, self.config.iterations or _SHORT_RUN),
        )
        if new := cfr.programs() - before:
            programs, seconds = self._compiled
            self._compiled = programs + new, seconds + solver.compile_seconds
        return solver

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
