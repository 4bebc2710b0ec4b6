"""The resolver of one player: what it remembers in a match, and how it solves on.

Between two of its decisions the player keeps what DeepStack keeps (Moravčík et al.
2017): its own average strategy so far, and the opponent's counterfactual values at the
augmented infosets of where it may be next. Everything it does follows from its own
information and these; it never sees the hidden part of a state.
"""

import copy
import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.cfr import cfr
from spiel_cr.cfr.config import CFRConfig, parse_any
from spiel_cr.cfr.solver import Solver
from spiel_cr.common.announcing import announce
from spiel_cr.common.arrays import ranges
from spiel_cr.common.checks import check_seed
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.lookahead.leaves import check_leaf, parse_leaf
from spiel_cr.policies.conversions import reach_from_behaviour, uniform_behaviour
from spiel_cr.resolving import subgame_sampling
from spiel_cr.resolving.clock import Clock, Statistics
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.gadget import Lookahead
from spiel_cr.resolving.lookahead import look_ahead
from spiel_cr.resolving.sampled_subgames import SampledLayer, SampledSolve, lay_out
from spiel_cr.resolving.subgame_games import (
    GadgetGame,
    Layer,
    Subgame,
    best_response_values,
)

# The program must not depend on how many iterations a move gets: under a clock those of
# few iterations is taken.
_SHORT_RUN = 1


class _Place(NamedTuple):
    """What is solved at a time.

    Attributes:
      layer: from 1.
      subgame: its number; 0 in layer 1.
      aim: i's infoset that sampled solvers are aimed at; -1: none.
    """

    layer: int
    subgame: int
    aim: int = -1


class _Solve(NamedTuple):
    """A solve that may go on.

    Attributes:
      place: what is solved.
      solver: that does it.
      subgame: the same.
      own_reach: float64 [r], i's average reach of its roots.
      game: its gadget game, for full-width solvers; None for sampled ones.
      sampled: reads a sampled solver; None for full-width ones.
    """

    place: _Place
    solver: Solver
    subgame: Subgame
    own_reach: np.ndarray
    game: GadgetGame | None
    sampled: SampledSolve | None


@dataclasses.dataclass
class Match:
    """What a resolving player remembers in a match.

    Attributes:
      behaviour: float64 [S of i], action probabilities resolved so far, uniform below.
      opponent_values: float64 [G], o's counterfactual values at augmented infosets met
        so far.
      opponent_reach: float64 [G], o's average reach of them.
      solved: what was solved.
      last: the last of these, which a later turn in the same subgame goes on with.
    """

    behaviour: np.ndarray
    opponent_values: np.ndarray
    opponent_reach: np.ndarray
    solved: set[_Place]
    last: _Solve | None = None

    def copy(self) -> "Match":
        return copy.deepcopy(dataclasses.replace(self, last=None))


class Resolver:
    """Resolves for one player of a game, with or without a clock.

    Attributes:
      tree: the compiled game.
      player: i.
      config: how it resolves.
      decomposition: layers and subgames for i.
    """

    def __init__(
        self, tree: CompiledGame, player: int, config: ResolvingConfig, *, seed: int = 0
    ) -> None:
        """Cuts the game, compiles every program, and solves the whole game once.

        Args:
          tree: compiled with `observations=True` for `subgames="observations"`.
          player: 0 or 1.
          config: how it resolves.
          seed: of sampled solvers.

        Raises:
          ValueError: a bad seed, a leaf of another game, or see `decompose`.
        """
        seed = check_seed(seed)
        self.tree = tree
        self.player = player
        self.config = config
        self._solver = parse_any(config.solver)
        self._leaf = parse_leaf(config.leaf)
        if config.depth is not None:
            check_leaf(self._leaf, tree)
        self._by_best_response = config.by_best_response
        self._clock = Clock(config.move_ms, config.iterations)
        if config.subgames == "sequences":
            blind = dataclasses.replace(tree.histories, observations=None)
            tree = dataclasses.replace(tree, histories=blind)
        d = self.decomposition = decompose(tree, player)
        self._random = np.random.default_rng(seed)
        numbers = range(1, d.num_layers + 1)
        self._layers = [
            Layer(d, number, config.gadget, self._look_ahead(number))
            for number in numbers
        ]
        self._sampled: Sequence[SampledLayer] = ()
        if config.sampled is not None:
            self._sampled = lay_out(d, config.sampled, aimed=config.target)
        self._start = self._blank()
        # Twice: programs are compiled the first time, and the second time tells what a
        # solve costs besides iterating.
        for first in (True, False):
            self._clock = Clock(config.move_ms, config.iterations)
            for number, layer in enumerate(self._layers, 1):
                if first:
                    of = f"{number} of {d.num_layers}"
                    announce(f"player {player}: warming up layer {of}")
                self._solve(self._blank(), _Place(number, layer.widest), None, 1)
        if self._layers:
            deadline = self._clock.init_deadline(config.init_ms)
            self._solve(self._start, _Place(1, 0), deadline)
        self._clock.restart_statistics()

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self._clock.statistics

    def match(self) -> Match:
        """The beginning of a match: the whole game is solved, nothing else."""
        return self._start.copy()

    def strategy(self, match: Match, infoset: int) -> np.ndarray:
        """The player's action probabilities at one of its infosets.

        Solves what the match has not solved yet on the way there: in a match, the
        subgame of this decision at most. With a clock, a later turn in the same
        subgame goes on with its solve.

        Args:
          match: what was solved so far; is brought up to date.
          infoset: i's infoset.

        Returns:
          float64 [A], in the order of the infoset's actions.
        """
        programs = _programs()
        with self._clock.move():
            places = self._places_to(infoset)
            needed = [place for place in places if place not in match.solved]
            for k, place in enumerate(needed):
                self._solve(match, place, self._clock.deadline(len(needed) - k))
            later = not needed and not self.decomposition.opens[infoset]
            if later and self.config.move_ms is not None and match.last is not None:
                if match.last.place == places[-1]:
                    with self._clock.solve(match.last.solver, self._clock.deadline()):
                        self._remember(match, match.last)
        self.statistics.programs_compiled += _programs() - programs
        decisions = self.tree.infosets[self.player].decisions
        first = decisions.first_sequence[infoset]
        return match.behaviour[first : first + decisions.num_actions[infoset]].copy()

    def _look_ahead(self, number: int) -> Lookahead | None:
        depth, unit = self.config.depth, self.config.depth_unit
        if depth is None:
            return None
        return look_ahead(self.decomposition, number, depth, self._leaf, unit=unit)

    def _blank(self) -> Match:
        uniform = uniform_behaviour(self.tree.infosets[self.player].decisions)
        augmented = len(self.decomposition.augmented_layer)
        return Match(uniform, np.zeros(augmented), np.ones(augmented), set())

    def _places_to(self, infoset: int) -> list[_Place]:
        """What must be solved for an infoset, from the top."""
        d = self.decomposition
        decisions = self.tree.infosets[self.player].decisions
        places = []
        while infoset >= 0:
            if d.opens[infoset]:
                number = int(d.own_layer[infoset])
                subgame = int(d.own_subgame[infoset]) if number > 1 else 0
                aim = infoset if self.config.target else -1
                places.append(_Place(number, subgame, aim))
            infoset = int(decisions.owner[decisions.parent[infoset]])
        return places[::-1]

    def _solve(
        self,
        match: Match,
        place: _Place,
        deadline: float | None,
        most: int | None = None,
    ) -> None:
        """Solves a subgame, and remembers what is needed of it."""
        layer = self._layers[place.layer - 1]
        subgame = layer[place.subgame]
        decisions = self.tree.infosets[self.player].decisions
        own_reach = np.ones(len(subgame.roots))
        if place.layer > 1:
            reach = reach_from_behaviour(decisions, match.behaviour)
            own_reach = reach[decisions.parent[subgame.roots]]
        values = match.opponent_values[subgame.augmented]
        others_reach = match.opponent_reach[subgame.augmented]
        solve = self._begin(place, subgame, own_reach, values, others_reach)
        with self._clock.solve(solve.solver, deadline, most):
            match.last = solve
            match.solved.add(place)
            self._remember(match, solve)

    def _begin(
        self,
        place: _Place,
        subgame: Subgame,
        own_reach: np.ndarray,
        opponent_values: np.ndarray,
        opponent_reach: np.ndarray,
    ) -> _Solve:
        """A solver of a subgame, and its game as far as it is needed."""
        layer = self._layers[place.layer - 1]
        if self._sampled:
            sampled = self._sampled[place.layer - 1].solve(
                place.subgame,
                subgame,
                own_reach,
                opponent_values,
                aim=place.aim,
                seed=int(self._random.integers(2**31)),
            )
            return _Solve(place, sampled.solver, subgame, own_reach, None, sampled)
        assert isinstance(self._solver, CFRConfig)
        game = layer.game(place.subgame, own_reach, opponent_values, opponent_reach)
        iterations = self.config.iterations or _SHORT_RUN
        solver = cfr.make_solver(
            game.form,
            config=self._solver,
            values=True,
            first=game.first,
            compile=cfr.compile_for(game.form, iterations),
        )
        return _Solve(place, solver, subgame, own_reach, game, None)

    def _remember(self, match: Match, solve: _Solve) -> None:
        """i's strategy in this layer, o's values at the augmented infosets below."""
        i, o = self.player, 1 - self.player
        _, solver, subgame, own_reach, game, sampled = solve
        count = len(subgame.next_augmented)
        if sampled is None:
            own = solver.average_behaviour(i)[1:]
        else:
            own = sampled.own_behaviour()
        decisions = self.tree.infosets[i].decisions
        counts = decisions.num_actions[subgame.own]
        in_layer = np.repeat(subgame.in_layer, counts)
        sequences = ranges(decisions.first_sequence[subgame.own], counts)
        match.behaviour[sequences[in_layer]] = own[in_layer]
        if not count:
            return
        if self._by_best_response:
            behaviour = np.append(1.0, own)
            values = best_response_values(subgame, i, own_reach, behaviour)
        elif sampled is None:
            values = solver.infoset_values(o)[-count:]
        else:
            values = sampled.opponent_values()
        match.opponent_values[subgame.next_augmented] = values
        if self.config.gadget == "unsafe":
            assert game is not None
            form = game.form
            others = form.decisions[o]
            reach = reach_from_behaviour(others, solver.average_behaviour(o))
            above = np.append(match.opponent_reach[subgame.augmented], 1.0)
            match.opponent_reach[subgame.next_augmented] = (
                above[subgame.next_behind] * reach[others.parent[-count:]]
            )


def _programs() -> int:
    return cfr.programs() + subgame_sampling.programs()
