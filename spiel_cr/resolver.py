"""Third stage: a continually resolving player's mind, one subgame after the other.

Between two of its decisions the player keeps what DeepStack keeps (Moravčík et al.
2017): its own average strategy so far, and the opponent's counterfactual values at the
gates of where it may be next. Everything it does follows from its own information and
these; it never sees the hidden part of a state.
"""

import dataclasses
import time
from typing import Literal, get_args

import numpy as np

from spiel_cr import algorithm as algorithm_lib
from spiel_cr import best_response, cfr, clock, driver, layer, solving, subgame
from spiel_cr import policy as policy_lib
from spiel_cr import tree as tree_lib

__all__ = ["Match", "Resolver", "ResolvingConfig", "Subgames", "Values"]

Values = Literal["iterates", "best_response", "average"]
Subgames = Literal["observed", "sequences"]

# Moves under a clock run shortly.
_SHORT_RUN = 1


@dataclasses.dataclass(frozen=True)
class ResolvingConfig:
    """How a resolving player thinks.

    Attributes:
      solver: full-width algorithm of every solve, see `algorithm.parse_algorithm`.
      iterations: of every solve; at most, where there is a time budget too.
      move_ms: milliseconds for a move; None: no clock.
      init_ms: milliseconds for the solve of the whole game before the first move; None:
        as long as the iterations take, or ten moves' time.
      gadget: see `layer.py`.
      subgames: "observed" by what players are told, "sequences" by what they did
        themselves and knew when they did it (coarser; Burch et al. 2014).
      values: what the opponent's values at the next gates are: its mean values under
        the iterates, or (to show why not) those of its best response to the average
        strategy, or of its own average strategy.
    """

    solver: str = "cfr+"
    iterations: int | None = None
    move_ms: float | None = None
    init_ms: float | None = None
    gadget: layer.Gadget = "cfrd"
    subgames: Subgames = "observed"
    values: Values = "iterates"

    def __post_init__(self) -> None:
        algorithm_lib.parse_algorithm(self.solver)
        choices = {"gadget": layer.Gadget, "subgames": Subgames, "values": Values}
        for name, allowed in choices.items():
            if getattr(self, name) not in get_args(allowed):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} must be one of "
                    f"{', '.join(get_args(allowed))}"
                )
        if self.iterations is not None:
            solving.check_iterations(self.iterations)
        for name in ("move_ms", "init_ms"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value!r} milliseconds must be positive")
        if self.iterations is None and self.move_ms is None:
            raise ValueError(
                "a resolving player needs a budget: give iterations, move_ms, or both"
            )


@dataclasses.dataclass
class Match:
    """What a resolving player remembers in a match.

    Attributes:
      behaviour: float64 [S of i], action probabilities resolved so far, uniform below.
      gate_values: float64 [G], o's counterfactual values at gates met so far.
      gate_reach: float64 [G], o's average reach of them.
      solved: (layer, subgame) of what was solved.
    """

    behaviour: np.ndarray
    gate_values: np.ndarray
    gate_reach: np.ndarray
    solved: set[tuple[int, int]]

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
        self, tree: tree_lib.CompiledGame, player: int, config: ResolvingConfig
    ) -> None:
        """Cuts the game, compiles every program, and solves the whole game once.

        Args:
          tree: compiled with `observed=True` for `subgames="observed"`.
          player: 0 or 1.
          config: how it thinks.

        Raises:
          ValueError: see `subgame.decompose`.
        """
        self.tree = tree
        self.player = player
        self.config = config
        self._clock = clock.Clock(config.move_ms, config.iterations)
        if config.subgames == "sequences":
            blind = dataclasses.replace(tree.histories, observed=None)
            tree = dataclasses.replace(tree, histories=blind)
        self.decomposition = subgame.decompose(tree, player)
        self._algorithm = algorithm_lib.parse_algorithm(config.solver)
        self._layers = [
            layer.cut_layer(self.decomposition, number, config.gadget)
            for number in range(1, self.decomposition.num_layers + 1)
        ]
        self._start = self._blank()
        for number, cut in enumerate(self._layers, 1):
            # Twice: the second time tells what a solve costs besides iterating.
            for _ in range(2):
                self._solve(self._blank(), number, next(iter(cut.pieces)), None, 1)
        if self._layers:
            self._solve(self._start, 1, 0, self._init_deadline())
        self._programs = cfr.programs()
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
        subgame of this decision at most.

        Args:
          match: what was solved so far; is brought up to date.
          infoset: i's infoset.

        Returns:
          float64 [A], in the order of the infoset's actions.
        """
        with self._clock.move():
            needed = [s for s in self._way_to(infoset) if s not in match.solved]
            for k, (number, piece) in enumerate(needed):
                deadline = self._clock.deadline(len(needed) - k)
                self._solve(match, number, piece, deadline)
        self.statistics.programs_compiled = cfr.programs() - self._programs
        decisions = self.tree.infosets[self.player].decisions
        first = decisions.first_sequence[infoset]
        return match.behaviour[first : first + decisions.num_actions[infoset]]

    def _blank(self) -> Match:
        uniform = policy_lib.uniform_behaviour(
            self.tree.infosets[self.player].decisions
        )
        gates = len(self.decomposition.gate_layer)
        return Match(uniform, np.zeros(gates), np.ones(gates), set())

    def _way_to(self, infoset: int) -> list[tuple[int, int]]:
        """(layer, subgame) of everything from the first layer down to an infoset."""
        d = self.decomposition
        decisions = self.tree.infosets[self.player].decisions
        owner = decisions.owner
        way = []
        while infoset >= 0:
            if d.opens[infoset]:
                number = int(d.own_layer[infoset])
                piece = int(d.own_subgame[infoset]) if number > 1 else 0
                way.append((number, piece))
            infoset = int(owner[decisions.parent[infoset]])
        return way[::-1]

    def _init_deadline(self) -> float | None:
        milliseconds = self.config.init_ms
        if milliseconds is None and self.config.iterations is None:
            assert self.config.move_ms is not None
            milliseconds = 10 * self.config.move_ms
        if milliseconds is None:
            return None
        return time.perf_counter() + milliseconds / 1000

    def _solve(
        self,
        match: Match,
        number: int,
        piece_number: int,
        deadline: float | None,
        most: int | None = None,
    ) -> None:
        """Solves a subgame, and remembers what is needed of it."""
        cut = self._layers[number - 1]
        piece = cut.pieces[piece_number]
        decisions = self.tree.infosets[self.player].decisions
        reach = policy_lib.reach_from_behaviour(decisions, match.behaviour)
        own_reach = np.ones(len(piece.roots))
        if number > 1:
            own_reach = reach[decisions.parent[piece.roots]]
        game = cut.game(
            piece_number,
            own_reach,
            match.gate_values[piece.gates],
            match.gate_reach[piece.gates],
        )
        solver = cfr.make_solver(
            game.form,
            config=self._algorithm,
            values=True,
            first=self.player,
            # The program must not depend on how many iterations a move gets.
            planned=self.config.iterations or _SHORT_RUN,
        )
        with self._clock.solve(solver, deadline, most):
            self._remember(match, game, solver)
            match.solved.add((number, piece_number))

    def _remember(
        self, match: Match, game: layer.SubgameGame, solver: driver.Solver
    ) -> None:
        """The strategy of this layer, and values at the gates of the next."""
        piece, other = game.piece, 1 - self.player
        decisions = self.tree.infosets[self.player].decisions
        resolved = solver.average_behaviour(self.player)
        counts = decisions.num_actions[piece.own]
        mine = np.repeat(piece.here, counts)
        first = np.repeat(decisions.first_sequence[piece.own], counts)
        step = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        match.behaviour[(first + step)[mine]] = resolved[1:][mine]
        if not len(piece.next_gates):
            return
        if self.config.values == "iterates":
            values = solver.infoset_values(other)
        else:
            average = None
            if self.config.values == "average":
                average = solver.average_behaviour(other)
            values = best_response.infoset_values(
                game.form, other, solver.average(self.player), average
            )[:-1]
        last = values[len(values) - len(piece.next_gates) :]
        scale = np.append(game.scale, 1.0)[piece.next_behind]
        if self.config.gadget == "maxmargin":
            last = last / scale
        match.gate_values[piece.next_gates] = last
        if self.config.gadget == "unsafe":
            parents = game.form.decisions[other].parent[-len(piece.next_gates) :]
            behind = np.append(match.gate_reach[piece.gates], 1.0)[piece.next_behind]
            match.gate_reach[piece.next_gates] = behind * solver.average(other)[parents]
