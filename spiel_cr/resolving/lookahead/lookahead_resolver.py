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

from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_seed
from spiel_cr.games.opening.game_checks import chance_outcomes
from spiel_cr.games.simulation.observations import Stage, continues, observations
from spiel_cr.resolving.clock import Clock, Statistics
from spiel_cr.resolving.leaves.rollout_values import Rollouts
from spiel_cr.resolving.lookahead.blueprint import (
    Blueprint,
    answers_arrays,
    blueprint_of,
)
from spiel_cr.resolving.lookahead.layer_solver import LayerSolver
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree
from spiel_cr.resolving.lookahead.solved_lookahead import SolvedLookahead
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.cfr import cfr

# So many times a move's time is there while a player warms up, up to so many
# milliseconds: it learns what subgames cost that there is no time for yet.
_WARMUP_STRETCH, _WARMUP_MS = 4.0, 1000.0
# Labels of infosets that are known after a match, at most; else all are forgotten.
_MOST_LABELS = 1 << 20
# Of the time before the first match, for a blueprint.
_BLUEPRINT_SHARE = 0.5
# Continuations at the ends of trees, besides the blueprint itself.
_MOST_BIASED = 16
# Rollouts without a clock, and under one.
_ROLLOUTS = 100, 10
# Histories that are walked beyond a tree for each one that it may have, without a clock
# and under one: to grow and lay out a tree costs two to ten times as much per history.
_WALK = 10, 2
# Histories in all solutions that are kept from match to match (6 kB each), and in the
# trees that lead to them.
_MOST_KEPT = 1 << 17


@dataclasses.dataclass
class LookaheadStatistics:
    """How a player came to its answers since it was made, besides `clock.Statistics`.

    Attributes:
      resolved: by a solution of the decision's subgame.
      incumbent: by what an earlier solution says of it.
      blueprint: by the blueprint.
      exact: subgames whose check went on to the end of the game.
      shrunk: times that a tree had to be made smaller to fit a program's shapes.
      most_histories: of any tree.
    """

    resolved: int = 0
    incumbent: int = 0
    blueprint: int = 0
    exact: int = 0
    shrunk: int = 0
    most_histories: int = 0


@dataclasses.dataclass(frozen=True)
class PublicState:
    """Where a match is, as both players know.

    Attributes:
      number: the player's decision, from 0; -1: the start of the game.
      tree: what leads to the histories of a public state.
      ids: int64 [n], these.
      after: the public states of the player's next decision that were met, by its
        information-state strings there; None: too many histories lead there.
    """

    number: int
    tree: LookaheadTree
    ids: np.ndarray
    after: dict[str, "PublicState | None"] = dataclasses.field(default_factory=dict)


class LookaheadResolver:
    """Resolves for one player of a game that cannot be compiled whole.

    It plays one match at a time: a new one forgets the labels of infosets that were met
    in those before, unless solutions are kept that need them.

    Attributes:
      player: whose decisions.
      config: how subgames are solved.
      settings: how lookahead trees are made.
      counts: how it came to its answers.
      blueprint: what is played where nothing is solved.
      solved: the tree of the match, and the plan there.
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
        """Makes a blueprint, solves the start of the game, compiles every program.

        Args:
          game: a sequential game.
          player: 0 or 1.
          config: how subgames are solved; `init_ms` is for the blueprint and for
            solving the start.
          settings: how lookahead trees are made.
          seed: of all that it draws.

        Raises:
          ValueError: settings that do not go together, or a game without layers.
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
            batched_rules=answers_arrays(policy, game),
            player=player,
        )
        self.blueprint = Blueprint(policy, tree.simulator)
        tree = dataclasses.replace(tree, blueprint=self.blueprint)
        self._root = PublicState(-1, tree, tree.table.id[:1].copy())
        # Of all solutions, and of the trees that lead to them.
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
        if config.move_ms is not None:  # otherwise there is time to compile
            self._layers.close()
        self._forget_all()
        self._clock.restart_statistics()
        self.counts = LookaheadStatistics()
        self.restart()

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self._clock.statistics

    def restart(self) -> None:
        """A new match."""
        labels = sum(map(len, self._root.tree.simulator.labels))
        kept = 0 < self._kept_histories <= _MOST_KEPT
        if not kept or labels - sum(self._label_counts) > _MOST_LABELS:
            self._forget_all()
        self.solved, self._place = self._start, self._root
        # What was seen and done at decisions that were solved.
        self._stages: list[Stage] = []

    def strategy(self, stages: Sequence[Stage]) -> tuple[list[int], np.ndarray] | None:
        """The player's action probabilities at its decision.

        Args:
          stages: what the player saw and did, see `observations`; the last one is to be
            answered. If they do not continue those of the last call, a new match
            begins.

        Returns:
          Actions and float64 [A]; None: the blueprint's.
        """
        programs = cfr.programs()
        with self._clock.move():
            if not continues(self._stages, stages):
                self.restart()
            for number in range(len(self._stages), len(stages)):
                self._decide(stages, number)
            self._stages = list(stages)
            answer, incumbent = None, self.solved
            while (infoset := incumbent.find(stages[-1].seen[-1])) < 0:
                if not isinstance(incumbent.incumbent, SolvedLookahead):
                    self.counts.blueprint += 1
                    break
                incumbent = incumbent.incumbent
            else:
                answer = incumbent.strategy(infoset)
                resolved = incumbent.accepted and incumbent.is_solved(infoset)
                self.counts.resolved += resolved
                self.counts.incumbent += not resolved
        self.statistics.programs_compiled += cfr.programs() - programs
        self.counts.shrunk = self._layers.shrunk
        self.counts.most_histories = self._layers.most_histories
        return answer

    def _decide(self, stages: Sequence[Stage], number: int) -> None:
        """Solves what a decision of the match needs.

        Under a clock there is time for the last one only: of those before it, which
        had theirs, only what was solved is taken.

        Args:
          stages: what the player saw and did.
          number: the decision; all before it were treated.
        """
        infoset = self.solved.find(stages[number].seen[-1])
        if infoset >= 0 and self.solved.is_solved(infoset):
            return
        deadline, most = self._clock.deadline(), 0
        if deadline is None or number == len(stages) - 1:
            most = self._layers.affordable(deadline)
        while self._place.number < number:
            key = stages[self._place.number + 1].seen[-1]
            following = self._following(key, bool(most), deadline)
            if following is None:
                return
            self._place = following
        if self._place.number == number:
            self._resolve(most, deadline)

    def _following(
        self, key: str, look: bool, deadline: float | None
    ) -> PublicState | None:
        """The public state of the next decision, which is found once.

        Args:
          key: the player's information-state string there.
          look: for it, if it is not known.
          deadline: by `time.perf_counter`; None: none.
        """
        place = self._place
        if key in place.after or not look:
            return place.after.get(key)
        next_state = place.tree.next_public_state(
            place.ids,
            key,
            most=self._layers.expandable(deadline),
            begins=place.number < 0,
            deadline=deadline,
        )
        if next_state is None:
            if deadline is None:
                place.after[key] = None
            return None
        tree, ids, keys = next_state
        following = PublicState(place.number + 1, tree, ids)
        if self._may_keep(len(tree)):
            place.after.update(dict.fromkeys(keys, following))
        return following

    def _resolve(self, most: int, deadline: float | None) -> None:
        """Solves the subgame of the place; takes its solution if that is known.

        On one plan a subgame has one solution, whatever the player holds in it: so
        draws depend on its roots, and it is solved once, the first time that there is
        time for it.
        """
        place, after = self._place, self.solved.after
        number = place.tree.number_of(place.ids)
        if number in after or not most:
            self.solved = after.get(number) or self.solved
            return
        solved = self._solve(place, number, deadline)
        if solved is not None and solved.exact:
            self.solved = solved
            if self._may_keep(len(solved.lookahead)):
                after[number] = solved
        elif deadline is None:  # under one a larger tree may be checked another time
            after[number] = None

    def _may_keep(self, histories: int) -> bool:
        """Whether a tree may be kept; if not, all are forgotten after the match."""
        self._kept_histories += histories
        return self._kept_histories <= _MOST_KEPT

    def _solve(
        self, place: PublicState, number: int, deadline: float | None
    ) -> SolvedLookahead | None:
        tree = place.tree.focus(place.ids)
        # What leads to the place is there: it has to be laid out only.
        if not (most := self._layers.affordable(deadline, len(tree))):
            return None
        self._leaf.draw_from(self._number(number))
        prepare = functools.partial(
            SolvedLookahead.of,
            player=self.player,
            incumbent=self.solved,
            roots=place.ids,
            walk=_WALK[self.config.move_ms is not None] * most,
        )
        return self._counted(
            self._layers.solve(tree, prepare, most, deadline, roots=place.ids)
        )

    def _counted(self, solved: SolvedLookahead | None) -> SolvedLookahead | None:
        """Notes whether what follows a tree could be walked."""
        self.counts.exact += solved is not None and solved.exact
        return solved

    def _solve_start(self, end: float | None) -> SolvedLookahead:
        """Grows and solves the tree that every match begins with."""
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
        """Forgets solutions, and the labels of infosets that were met for them."""
        self._start.forget()
        self._root.after.clear()
        self._kept_histories = 0
        labels = self._root.tree.simulator.labels
        for player_labels, count in zip(labels, self._label_counts, strict=True):
            player_labels.forget(count)

    def _number(self, key: object) -> int:
        """64 bits that depend on the seed and on something that can be written."""
        text = repr((self._draws, key)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

    def _play_warmup(self, game: pyspiel.Game, random: np.random.Generator) -> None:
        """Plays a warm-up match: half of its moves, and the opponent's, are random."""
        self.restart()
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, probabilities = zip(*chance_outcomes(state), strict=True)
                action = random.choice(
                    actions, p=np.array(probabilities) / sum(probabilities)
                )
            else:
                action = random.choice(state.legal_actions())
                if state.current_player() == self.player:
                    seen = observations(state, self.player, waiting=False)
                    answer = self.strategy(seen)
                    if answer is not None and random.random() < 0.5:
                        action = random.choice(answer[0], p=answer[1])
            state.apply_action(int(action))
