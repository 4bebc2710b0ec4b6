"""Continual re-solving with lookahead trees, for games too large to build.

The player has an *incumbent strategy* for the complete game: its last solution, below
that earlier solutions, and the blueprint everywhere else. A decision belongs to a
public state: the histories that some player cannot distinguish. These are the roots of
a subgame. A lookahead tree of at most N histories is grown below them, and its gadget
game is solved. `SolvedLookahead` describes the constraints and which solutions are
accepted into the incumbent strategy. If a public state does not fit, the player follows
the incumbent strategy, and continues from there to the next public state.
"""

import dataclasses
import functools
import hashlib
import time
from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_seed
from spiel_cr.common.messages import announce
from spiel_cr.games.opening.batched_rules import of_game
from spiel_cr.games.opening.game_checks import chance_outcomes
from spiel_cr.games.simulation.observations import Stage, continues, observations
from spiel_cr.policies.array_queries import answers_rows
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs
from spiel_cr.resolving import tree_beliefs
from spiel_cr.resolving.clock import Clock, Statistics
from spiel_cr.resolving.leaves.rollout_values import Rollouts
from spiel_cr.resolving.lookahead.blueprint import Blueprint, blueprint_of
from spiel_cr.resolving.lookahead.layer_solver import LayerSolver
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree
from spiel_cr.resolving.lookahead.solved_lookahead import SolvedLookahead
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.cfr import cfr

# Factor for the time per move during warm-up matches, and the longest such time in
# milliseconds. The player can thereby measure subgames that are too large at first.
_WARMUP_STRETCH, _WARMUP_MS = 4.0, 1000.0
# Maximum number of infoset labels after a match; if there are more, all are dropped.
_MOST_LABELS = 1 << 20
# Share of the time before the first match for sampling a blueprint.
_BLUEPRINT_SHARE = 0.5
# Default maximum number of continuation strategies at leaves, without the blueprint.
_MOST_BIASED = 16
# Default number of rollouts without a time limit, and with one.
_ROLLOUTS = 100, 10
# Maximum number of histories visited below a tree, per history that the tree may have,
# without a time limit and with one. Growing a tree and building its gadget game costs
# two to ten times as much per history.
_WALK = 10, 2
# Maximum number of histories (6 kB each) in all solutions that are kept from match to
# match and in the trees that lead to them.
_MOST_KEPT = 1 << 17


@dataclasses.dataclass
class LookaheadStatistics:
    """Counts of decisions by their strategy, in addition to `clock.Statistics`.

    Attributes:
      resolved: Number of decisions that played an accepted solution of their subgame.
      incumbent: Number of decisions that played an earlier accepted solution.
      blueprint: Number of decisions that played the blueprint.
      exact: Number of subgames whose best responses extended to the end of the game.
      truncations: Number of times that a tree was truncated to fit a compiled
        function's shapes.
      most_histories: Size of the largest tree.
    """

    resolved: int = 0
    incumbent: int = 0
    blueprint: int = 0
    exact: int = 0
    truncations: int = 0
    most_histories: int = 0


@dataclasses.dataclass(frozen=True)
class ReachedState:
    """A public state that a match has reached.

    Attributes:
      number: Number of the player's decision, from 0; -1: the start of the game.
      tree: Lookahead tree of the histories that lead to the public state.
      ids: Ids of the public state's histories, int64 [n].
      after: Known public states of the player's next decision, by the player's
        information-state strings there. None: too many histories lead there.
    """

    number: int
    tree: LookaheadTree
    ids: np.ndarray
    after: dict[str, "ReachedState | None"] = dataclasses.field(default_factory=dict)


class LookaheadResolver:
    """Re-solves for one player of a game that is too large to build.

    One match is played at a time. A new match removes the labels of infosets that
    earlier matches visited, unless kept solutions need them.

    Attributes:
      player: The player.
      config: Settings of the solves.
      settings: Settings of the lookahead trees.
      counts: Counts of decisions by their strategy.
      blueprint: The strategy wherever no accepted solution exists.
      solved: Tree of the current match, with the incumbent strategy.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        config: ResolvingConfig,
        settings: LookaheadConfig,
        *,
        seed: int = 0,
    ) -> None:
        """Make a blueprint, solve the start of the game, and compile all functions.

        Args:
          game: A sequential game.
          player: 0 or 1.
          config: Settings of the solves. `init_ms` includes the blueprint and the solve
            of the start.
          settings: Settings of the lookahead trees.
          seed: Seed for all random choices.

        Raises:
          ValueError: If settings are incompatible, or the game has no layers.
        """
        seed = check_seed(seed)
        settings.check(config)
        self.player, self.config, self.settings = player, config, settings
        self._clock = Clock(config.move_ms, config.iterations)
        self.counts = LookaheadStatistics()
        self._draws = int(np.random.default_rng(seed).integers(2**63))
        most = settings.max_histories
        self._layers = LayerSolver(player, config, most, self._clock)
        end, seconds = self._clock.init_deadline(config.init_ms), None
        if end is not None:
            seconds = _BLUEPRINT_SHARE * (end - time.perf_counter())
        announce(f"player {player}: the blueprint")
        policy = blueprint_of(
            *(game, settings.blueprint, settings.blueprint_iterations, seconds, seed)
        )
        k = settings.k or 1 + min(_MOST_BIASED, game.num_distinct_actions())
        rollouts = settings.rollouts or _ROLLOUTS[config.move_ms is not None]
        self._leaf = Rollouts(policy, k, rollouts, seed)
        tree = LookaheadTree.start(
            game,
            most,
            leaf=self._leaf,
            batched_rules=answers_rows(policy, of_game(game)),
            player=player,
        )
        self.blueprint = Blueprint(policy, tree.simulator.source.rules)
        tree = dataclasses.replace(tree, blueprint=self.blueprint)
        self._root = ReachedState(-1, tree, tree.table.id[:1].copy())
        # Number of histories in all kept solutions, and in the trees that lead to them.
        self._kept_histories = 0
        announce(f"player {player}: the start")
        self.solved = self._start = self._solve_start(end)
        self._label_counts = [len(labels) for labels in tree.simulator.labels]
        self.restart()
        if config.move_ms is not None:
            stretch = min(_WARMUP_STRETCH, _WARMUP_MS / config.move_ms)
            self._clock.stretch = max(1.0, stretch)
        for number in range(settings.warmup_matches):
            announce(f"player {player}: warm-up match {number + 1}")
            self._play_warmup(tree.game, np.random.default_rng([seed, number]))
        self._clock.stretch = 1.0
        if config.move_ms is not None:  # without a limit, functions may compile later
            self._layers.close()
        self._forget_all()
        self._clock.restart_statistics()
        self.counts = LookaheadStatistics()
        self.restart()

    @property
    def statistics(self) -> Statistics:
        """Counts and times since construction, without warm-up matches."""
        return self._clock.statistics

    def restart(self) -> None:
        """Begin a new match."""
        labels = sum(map(len, self._root.tree.simulator.labels))
        kept = 0 < self._kept_histories <= _MOST_KEPT
        if not kept or labels - sum(self._label_counts) > _MOST_LABELS:
            self._forget_all()
        self.solved, self._state = self._start, self._root
        # The player's information and actions at the decisions handled so far.
        self._stages: list[Stage] = []

    def strategy(self, stages: Sequence[Stage]) -> tuple[list[int], np.ndarray] | None:
        """Compute the player's action probabilities at its decision.

        Args:
          stages: Information and actions of the player, see `observations`; the last
            stage is the current decision. If they do not continue those of the last
            call, a new match begins.

        Returns:
          Actions and probabilities, float64 [A]. None: use the blueprint.
        """
        compilations = cfr.compilations()
        with self._clock.move():
            if not continues(self._stages, stages):
                self.restart()
            for number in range(len(self._stages), len(stages)):
                self._decide(stages, number)
            self._stages = list(stages)
            answer, solved = None, self.solved
            while (infoset := solved.find(stages[-1].seen[-1])) < 0:
                if not isinstance(solved.incumbent, SolvedLookahead):
                    self.counts.blueprint += 1
                    break
                solved = solved.incumbent
            else:
                answer = solved.strategy(infoset)
                resolved = solved.accepted and solved.is_solved(infoset)
                self.counts.resolved += resolved
                self.counts.incumbent += not resolved
        self.statistics.compilations += cfr.compilations() - compilations
        self.counts.truncations = self._layers.truncations
        self.counts.most_histories = self._layers.most_histories
        return answer

    def subgame_beliefs(self, stages: Sequence[Stage]) -> BotBeliefs:
        """Return all beliefs at the player's decision but the opponent's range.

        Args:
          stages: As for `strategy`, which is called if this is another decision.
        """
        if self._stages != list(stages):
            self.strategy(stages)
        solved = self.solved
        infoset = solved.find(stages[-1].seen[-1])
        if infoset < 0 or not solved.has_public_state(infoset):
            return BotBeliefs(self.player)
        assert solved.solver is not None  # its solution was accepted
        return tree_beliefs.subgame_beliefs(
            solved.decomposition,
            infoset,
            solved.behaviour,
            None if solved.full_game else solved.constraints[:-1],
            solved.solver.nash_conv(),
        )

    def _decide(self, stages: Sequence[Stage], number: int) -> None:
        """Solve what a decision of the match needs.

        With a time limit, only the last decision may be solved: earlier ones had their
        own time, and only their existing solutions are used.

        Args:
          stages: Information and actions of the player.
          number: Number of the decision; all earlier ones were handled.
        """
        infoset = self.solved.find(stages[number].seen[-1])
        if infoset >= 0 and self.solved.is_solved(infoset):
            return
        deadline, most = self._clock.deadline(), 0
        if deadline is None or number == len(stages) - 1:
            most = self._layers.affordable(deadline)
        while self._state.number < number:
            key = stages[self._state.number + 1].seen[-1]
            following = self._next(key, bool(most), deadline)
            if following is None:
                return
            self._state = following
        if self._state.number == number:
            self._resolve(most, deadline)

    def _next(
        self, key: str, look: bool, deadline: float | None
    ) -> ReachedState | None:
        """Return the public state of the next decision; search for it only once.

        Args:
          key: The player's information-state string there.
          look: Whether to search for a public state that is not known yet.
          deadline: Deadline on the clock `time.perf_counter`, or None for no deadline.
        """
        state = self._state
        if key in state.after or not look:
            return state.after.get(key)
        next_state = state.tree.next_public_state(
            state.ids,
            key,
            most=self._layers.expandable(deadline),
            begins=state.number < 0,
            deadline=deadline,
        )
        if next_state is None:
            if deadline is None:
                state.after[key] = None
            return None
        tree, ids, keys = next_state
        following = ReachedState(state.number + 1, tree, ids)
        if self._may_keep(len(tree)):
            state.after.update(dict.fromkeys(keys, following))
        return following

    def _resolve(self, most: int, deadline: float | None) -> None:
        """Solve the subgame of the current public state, or use its existing solution.

        With one incumbent strategy a subgame has one solution, whatever the player's
        own information is. Random numbers therefore depend on the roots, and the
        subgame is solved once, the first time that there is enough time.
        """
        state, after = self._state, self.solved.after
        number = state.tree.number_of(state.ids)
        if number in after or not most:
            self.solved = after.get(number) or self.solved
            return
        solved = self._solve(state, number, deadline)
        if solved is not None and solved.exact:
            self.solved = solved
            if self._may_keep(len(solved.lookahead)):
                after[number] = solved
        elif deadline is None:  # with a deadline, a later attempt may succeed
            after[number] = None

    def _may_keep(self, histories: int) -> bool:
        """Return whether a tree may be kept after the match."""
        self._kept_histories += histories
        return self._kept_histories <= _MOST_KEPT

    def _solve(
        self, state: ReachedState, number: int, deadline: float | None
    ) -> SolvedLookahead | None:
        tree = state.tree.focus(state.ids)
        # The histories that lead to the subgame exist already: they cost no expansion.
        if not (most := self._layers.affordable(deadline, len(tree))):
            return None
        self._leaf.draw_from(self._number(number))
        prepare = functools.partial(
            SolvedLookahead.of,
            player=self.player,
            incumbent=self.solved,
            roots=state.ids,
            walk=_WALK[self.config.move_ms is not None] * most,
        )
        return self._counted(
            self._layers.solve(tree, prepare, most, deadline, roots=state.ids)
        )

    def _counted(self, solved: SolvedLookahead | None) -> SolvedLookahead | None:
        """Count whether the game below a tree could be enumerated."""
        self.counts.exact += solved is not None and solved.exact
        return solved

    def _solve_start(self, end: float | None) -> SolvedLookahead:
        """Grow and solve the tree with which every match begins."""
        tree, most = self._root.tree.focus(self._root.ids), self.settings.max_histories
        self._leaf.draw_from(self._number("start"))
        prepare = functools.partial(
            SolvedLookahead.of,
            player=self.player,
            incumbent=self.blueprint,
            walk=_WALK[0] * most,
        )
        solved = self._counted(self._layers.solve(tree, prepare, most, end, start=True))
        if solved is None or not len(solved.decomposition.decisions):
            raise ValueError(
                f"max_histories={most}: the lookahead tree does not reach a decision "
                f"of player {self.player} in {tree.game}; raise max_histories, or, if "
                f"that player never decides anything, use another bot such as 'uniform'"
            )
        return solved

    def _forget_all(self) -> None:
        """Drop all solutions, and the labels of infosets that were visited for them."""
        self._start.reset()
        self._root.after.clear()
        self._kept_histories = 0
        labels = self._root.tree.simulator.labels
        for player_labels, count in zip(labels, self._label_counts, strict=True):
            player_labels.truncate(count)

    def _number(self, key: object) -> int:
        """Return 64 bits that depend on the seed and on a key."""
        text = repr((self._draws, key)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

    def _play_warmup(self, game: pyspiel.Game, random: np.random.Generator) -> None:
        """Play a warm-up match; half of the player's moves are random."""
        self.restart()
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, weights = zip(*chance_outcomes(state), strict=True)
                action = random.choice(actions, p=np.array(weights) / sum(weights))
            else:
                action = random.choice(state.legal_actions())
                if state.current_player() == self.player:
                    seen = observations(state, self.player, waiting=False)
                    answer = self.strategy(seen)
                    if answer is not None and random.random() < 0.5:
                        action = random.choice(answer[0], p=answer[1])
            state.apply_action(int(action))
