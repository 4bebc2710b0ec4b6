"""Third stage: a continually resolving player's mind, one subgame after the other.

Between two of its decisions the player keeps what DeepStack keeps (Moravčík et al.
2017): its own average strategy so far, and the opponent's counterfactual values at the
gates of where it may be next. Everything it does follows from its own information and
these; it never sees the hidden part of a state.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from spiel_cr.cfr import cfr
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.cfr import solver as driver
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.mccfr import mccfr
from spiel_cr.policies import best_responses
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.policies.leaf_values import parse_leaf
from spiel_cr.resolving import clock, gadget, sampled_gadget, subgame_games
from spiel_cr.resolving import decomposition as subgame
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.resolving.lookahead import look_ahead

# Moves under a clock run shortly.
_SHORT_RUN = 1


class _Solution(NamedTuple):
    """What a solve of a subgame found, in the piece's logical numbers.

    Attributes:
      own: float64 [S of i], average action probabilities.
      other: float64 [S of o], the same.
      values: float64 [I of o], mean values under the iterates; None if not kept.
    """

    own: np.ndarray
    other: np.ndarray
    values: np.ndarray | None


@dataclasses.dataclass
class Match:
    """What a resolving player remembers in a match.

    Attributes:
      behaviour: float64 [S of i], action probabilities resolved so far, uniform below.
      gate_values: float64 [G], o's counterfactual values at gates met so far.
      gate_reach: float64 [G], o's average reach of them.
      solved: (layer, subgame, infoset aimed at or -1) of what was solved.
      open: the last of these with its solver, which a later turn in the same subgame
        goes on with.
    """

    behaviour: np.ndarray
    gate_values: np.ndarray
    gate_reach: np.ndarray
    solved: set[tuple[int, int, int]]
    open: (
        tuple[tuple[int, int, int], driver.Solver, subgame_games.GadgetGame] | None
    ) = None

    def copy(self) -> "Match":
        return Match(
            self.behaviour.copy(),
            self.gate_values.copy(),
            self.gate_reach.copy(),
            set(self.solved),
        )


class Resolver:
    """Resolves for one player of a game, with or without a clock.

    Attributes:
      tree: the compiled game.
      player: i.
      config: how it thinks.
      decomposition: layers and subgames for i.
    """

    def __init__(
        self,
        tree: CompiledGame,
        player: int,
        config: ResolvingConfig,
        *,
        seed: int = 0,
    ) -> None:
        """Cuts the game, compiles every program, and solves the whole game once.

        Args:
          tree: compiled with `observations=True` for `subgames="observations"`.
          player: 0 or 1.
          config: how it thinks.
          seed: of sampled solvers.

        Raises:
          ValueError: see `subgame.decompose`.
        """
        self.tree = tree
        self.player = player
        self.config = config
        self._clock = clock.Clock(config.move_ms, config.iterations)
        if config.subgames == "sequences":
            blind = dataclasses.replace(tree.histories, observations=None)
            tree = dataclasses.replace(tree, histories=blind)
        self.decomposition = subgame.decompose(tree, player)
        self._random = np.random.default_rng(seed)
        numbers = range(1, self.decomposition.num_layers + 1)
        self._layers = [
            subgame_games.cut_layer(
                self.decomposition, number, config.gadget, self._look_ahead(number)
            )
            for number in numbers
        ]
        self._sampled = []
        if config.sampled is not None:
            self._sampled = [
                sampled_gadget.SampledLayer.of(self.decomposition, number)
                for number in numbers
            ]
        self._start = self._blank()
        # Twice: programs are compiled the first time, and the second time tells what a
        # solve costs besides iterating.
        for _ in range(2):
            self._clock = clock.Clock(config.move_ms, config.iterations)
            for number, cut in enumerate(self._layers, 1):
                self._solve(self._blank(), number, cut.widest, None, 1)
        if self._layers:
            self._solve(self._start, 1, 0, self._clock.init_deadline(config.init_ms))
        self._clock.restart_statistics()

    @property
    def statistics(self) -> clock.Statistics:
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
            way = self._way_to(infoset)
            needed = [subgame for subgame in way if subgame not in match.solved]
            for k, (number, piece, at) in enumerate(needed):
                deadline = self._clock.deadline(len(needed) - k)
                self._solve(match, number, piece, deadline, at=at)
            later = not needed and not self.decomposition.opens[infoset]
            if later and self.config.move_ms is not None and match.open is not None:
                subgame, solver, game = match.open
                if subgame == way[-1]:
                    with self._clock.solve(solver, self._clock.deadline()):
                        self._remember(match, game, self._read(solver, game.piece))
        self.statistics.programs_compiled += _programs() - programs
        decisions = self.tree.infosets[self.player].decisions
        first = decisions.first_sequence[infoset]
        return match.behaviour[first : first + decisions.num_actions[infoset]].copy()

    def _look_ahead(self, number: int) -> gadget.Lookahead | None:
        depth, value = self.config.depth, parse_leaf(self.config.leaf)
        if depth is None:
            return None
        return look_ahead(self.decomposition, number, depth, value)

    def _blank(self) -> Match:
        uniform = policy_lib.uniform_behaviour(
            self.tree.infosets[self.player].decisions
        )
        gates = len(self.decomposition.gate_layer)
        return Match(uniform, np.zeros(gates), np.ones(gates), set())

    def _way_to(self, infoset: int) -> list[tuple[int, int, int]]:
        """(layer, subgame, i's first infoset there if that is aimed at, else -1)."""
        d = self.decomposition
        decisions = self.tree.infosets[self.player].decisions
        owner = decisions.owner
        way = []
        while infoset >= 0:
            if d.opens[infoset]:
                number = int(d.own_layer[infoset])
                piece = int(d.own_subgame[infoset]) if number > 1 else 0
                way.append((number, piece, infoset if self.config.target else -1))
            infoset = int(owner[decisions.parent[infoset]])
        return way[::-1]

    def _solve(
        self,
        match: Match,
        number: int,
        piece_number: int,
        deadline: float | None,
        most: int | None = None,
        at: int = -1,
    ) -> None:
        """Solves a subgame, and remembers what is needed of it."""
        cut = self._layers[number - 1]
        piece = cut.pieces[piece_number]
        decisions = self.tree.infosets[self.player].decisions
        reach = policy_lib.reach_from_behaviour(decisions, match.behaviour)
        own_reach = np.ones(len(piece.roots))
        if number > 1:
            own_reach = reach[decisions.parent[piece.roots]]
        gate_values = match.gate_values[piece.gates]
        game = cut.game(
            piece_number, own_reach, gate_values, match.gate_reach[piece.gates]
        )
        config = algorithm_lib.parse_any(self.config.solver)
        if isinstance(config, algorithm_lib.MCCFRConfig):
            aim = None
            if at >= 0:
                aim = piece.at[0][piece.own == at]
            solver = self._sampled[number - 1].solver(
                piece,
                own_reach,
                gate_values,
                config,
                infosets=aim,
                seed=int(self._random.integers(2**31)),
            )
        else:
            solver = cfr.make_solver(
                game.form,
                config=config,
                values=True,
                first=game.first,
                # The program must not depend on how many iterations a move gets.
                planned=self.config.iterations or _SHORT_RUN,
            )
        with self._clock.solve(solver, deadline, most):
            self._remember(match, game, self._read(solver, piece))
            match.solved.add((number, piece_number, at))
            match.open = (number, piece_number, at), solver, game

    def _read(self, solver: driver.Solver, piece: subgame_games.Piece) -> _Solution:
        """The solution in the piece's numbers."""
        players = (self.player, 1 - self.player)
        if self.config.sampled is None:
            own, other = (solver.average_behaviour(p) for p in players)
            return _Solution(own, other, solver.infoset_values(players[1]))
        found = []
        for p, numbers in zip(players, piece.at, strict=True):
            behaviour = solver.average_behaviour(p)
            decisions = solver.form.decisions[p]
            # The sampled whole game knows no gates of the next layer: one action each.
            kept = numbers[numbers < len(decisions)]
            first, counts = decisions.first_sequence[kept], decisions.num_actions[kept]
            step = np.arange(counts.sum()) - np.repeat(
                np.cumsum(counts) - counts, counts
            )
            mine = behaviour[np.repeat(first, counts) + step]
            gates = np.ones(len(numbers) - len(kept))
            found.append(np.concatenate([[1.0], mine, gates]))
        return _Solution(found[0], found[1], None)

    def _remember(
        self, match: Match, game: subgame_games.GadgetGame, solution: _Solution
    ) -> None:
        """The strategy of this layer, and values at the gates of the next."""
        piece, other = game.piece, 1 - self.player
        decisions = self.tree.infosets[self.player].decisions
        counts = decisions.num_actions[piece.own]
        mine = np.repeat(piece.here, counts)
        first = np.repeat(decisions.first_sequence[piece.own], counts)
        step = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        match.behaviour[(first + step)[mine]] = solution.own[1:][mine]
        count = len(piece.next_gates)
        if not count:
            return
        values = solution.values
        own, others = (game.form.decisions[p] for p in (self.player, other))
        if values is None or self.config.values in ("best_response", "average"):
            values = best_responses.infoset_values(
                game.form,
                other,
                policy_lib.reach_from_behaviour(own, solution.own),
                solution.other if self.config.values == "average" else None,
            )[:-1]
        match.gate_values[piece.next_gates] = values[len(values) - count :]
        if self.config.gadget == "unsafe":
            reach = policy_lib.reach_from_behaviour(others, solution.other)
            behind = np.append(match.gate_reach[piece.gates], 1.0)[piece.next_behind]
            match.gate_reach[piece.next_gates] = behind * reach[others.parent[-count:]]


def _programs() -> int:
    return cfr.programs() + mccfr.programs() + best_responses.programs()
