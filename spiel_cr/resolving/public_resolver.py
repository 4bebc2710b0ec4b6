"""The resolver of one player of a signal game: what it remembers, how it solves on.

The counterpart of `resolver.py` in public terms. A subgame is a public node where the
player acts and a board there (see `public_layers.py`). What the player keeps in a match
is small, as its strategy in the whole game is not: action probabilities at the public
nodes that it came by, and the opponent's counterfactual values at those in front of
which it may be next, signal by signal.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np

from spiel_cr.cfr import cfr
from spiel_cr.cfr.config import CFRConfig, parse_any
from spiel_cr.cfr.solver import Solver
from spiel_cr.common.announcing import announce
from spiel_cr.resolving.clock import Clock, Statistics
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.resolving.public_deals import Deal, Deals
from spiel_cr.resolving.public_gadget import PublicSubgame, cut_public
from spiel_cr.resolving.public_layers import betting_kinds, decompose_public
from spiel_cr.sequence_form.layout import SequenceForm
from spiel_cr.signals.game import SignalGame
from spiel_cr.signals.kernels import lay_out

# The program must not depend on how many iterations a move gets: under a clock those of
# few iterations is taken.
_SHORT_RUN = 1


class _Place(NamedTuple):
    """What is solved at a time.

    Attributes:
      layer: from 1.
      node: the public node; -1 in layer 1, which is the whole game.
      board: label of the board; -1 in layer 1.
    """

    layer: int
    node: int
    board: int


_WHOLE = _Place(1, -1, -1)


@dataclasses.dataclass
class PublicMatch:
    """What a resolving player remembers in a match.

    Attributes:
      strategy: for each public node of the player float64 [H, A], action probabilities
        resolved so far, uniform at the signals of other boards.
      opponent_values: for each public node of the player float64 [H of the opponent],
        its counterfactual values there; 0 at the signals of other boards.
      solved: what was solved.
    """

    strategy: dict[int, np.ndarray]
    opponent_values: dict[int, np.ndarray]
    solved: set[_Place]

    def copy(self) -> "PublicMatch":
        # Arrays are replaced when another board is solved, never changed.
        return PublicMatch(
            dict(self.strategy), dict(self.opponent_values), set(self.solved)
        )


def _blank() -> PublicMatch:
    """A match in which nothing is solved."""
    return PublicMatch({}, {}, set())


class PublicResolver:
    """Resolves for one player of a signal game, with or without a clock.

    Attributes:
      game: the signal game.
      player: i.
      config: how it resolves.
      decomposition: layers for i.
    """

    def __init__(self, game: SignalGame, player: int, config: ResolvingConfig) -> None:
        """Compiles every program, and solves the whole game once.

        A subgame's program depends on the betting below its root and on the sizes of
        its board. There are few of either; one of each is solved for one iteration.

        Args:
          game: the signal game.
          player: 0 or 1.
          config: how it resolves.

        Raises:
          ValueError: settings that only compiled games know.
        """
        check_public(config)
        self.game, self.player, self.config = game, player, config
        solver = parse_any(config.solver, "solver")
        assert isinstance(solver, CFRConfig)
        self._solver = solver
        d = self.decomposition = decompose_public(game, player)
        self._deals = Deals(d)
        self._clock = Clock(config.move_ms, config.iterations)
        self._start = _blank()
        if d.num_layers:
            announce(f"player {player}: solving the whole game")
            # Twice: the program is compiled the first time.
            self._solve(_blank(), _WHOLE, None, 1)
            deadline = self._clock.init_deadline(config.init_ms)
            self._solve(self._start, _WHOLE, deadline)
        examples = self._examples()
        for first in (True, False):
            # The second time tells what a solve costs besides iterating. What the whole
            # game cost says nothing of subgames.
            self._clock = Clock(config.move_ms, config.iterations)
            for number, place in enumerate(examples, 1):
                if first:
                    of = f"{number} of {len(examples)}"
                    announce(f"player {player}: warming up subgame {of}")
                self._solve(_blank(), place, None, 1)
        self._clock.restart_statistics()

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self._clock.statistics

    def match(self) -> PublicMatch:
        """The beginning of a match: the whole game is solved, nothing else."""
        return self._start.copy()

    def strategy(self, match: PublicMatch, node: int, signal: int) -> np.ndarray:
        """The player's action probabilities at a public node with a signal.

        Solves what the match has not solved yet on the way there: in a match, the
        subgame of this decision at most.

        Args:
          match: what was solved so far; is brought up to date.
          node: a public node where the player acts.
          signal: its signal there.

        Returns:
          float64 [A], in ascending order of actions.
        """
        programs = cfr.programs()
        with self._clock.move():
            places = self._places_to(node, signal)
            needed = [place for place in places if place not in match.solved]
            for k, place in enumerate(needed):
                self._solve(match, place, self._clock.deadline(len(needed) - k))
        self.statistics.programs_compiled += cfr.programs() - programs
        return match.strategy[node][signal].copy()

    def _places_to(self, node: int, signal: int) -> list[_Place]:
        """What must be solved for a decision, from the top."""
        d, betting = self.decomposition, self.game.betting
        round_ = int(betting.round[node])
        places = []
        while node >= 0:
            layer, above = int(d.layer[node]), int(betting.round[node])
            if layer == 1:
                places.append(_WHOLE)
                break
            then = self.game.ancestors(self.player, round_, above)[signal]
            board = int(d.boards[above][self.player][then])
            places.append(_Place(layer, node, board))
            node = self._own_above(node)
        return places[::-1]

    def _own_above(self, node: int) -> int:
        """The player's last public node above one of them; -1 without."""
        betting = self.game.betting
        node = int(betting.parent[node])
        while node >= 0 and betting.player[node] != self.player:
            node = int(betting.parent[node])
        return node

    def _examples(self) -> list[_Place]:
        """A place for each program but that of the whole game."""
        d, betting = self.decomposition, self.game.betting
        kinds = betting_kinds(self.game)
        found: dict[object, _Place] = {}
        sizes: dict[int, dict[object, int]] = {}
        for node in d.roots[d.layer[d.roots] > 1].tolist():
            round_ = int(betting.round[node])
            if round_ not in sizes:
                sizes[round_] = self._board_sizes(round_)
            for size, board in sizes[round_].items():
                place = _Place(int(d.layer[node]), node, board)
                found.setdefault((kinds[node], round_, size), place)
        # Upper layers first: the last solves say most about what the next ones cost.
        return sorted(found.values())

    def _board_sizes(self, round: int) -> dict[object, int]:
        """A board of a round for each of the sizes that its boards have."""
        found: dict[object, int] = {}
        for board in np.unique(self.decomposition.boards[round][self.player]).tolist():
            deal = self._deals.of_board(round, board)
            shapes = [
                np.shape(leaf)
                for kernel in deal.kernels
                for player in range(2)
                for leaf in jax.tree.leaves(lay_out(kernel, player))
            ]
            counts = [len(s) for signals in deal.signals for s in signals]
            found.setdefault((*counts, *shapes), board)
        return found

    def _deal(self, place: _Place) -> Deal:
        if place == _WHOLE:
            return self._deals.whole
        return self._deals.of_board(
            int(self.game.betting.round[place.node]), place.board
        )

    def _solve(
        self,
        match: PublicMatch,
        place: _Place,
        deadline: float | None,
        most: int | None = None,
    ) -> None:
        """Solves a subgame, and remembers what is needed of it."""
        d, deal = self.decomposition, self._deal(place)
        roots = None
        own_reach = opponent_values = np.ones(0)
        if place != _WHOLE:
            roots = np.searchsorted(d.roots, [place.node])
            own_reach = self._reach(match, place.node)[deal.signals[self.player][0]]
            known = self._known_values(match, place.node)
            opponent_values = known[deal.signals[1 - self.player][0]]
        subgame = cut_public(d, place.layer, roots, deal)
        solver = self._solver_of(subgame.form(own_reach, opponent_values))
        with self._clock.solve(solver, deadline, most):
            match.solved.add(place)
            self._remember(match, place, deal, subgame, solver)

    def _solver_of(self, form: SequenceForm) -> Solver:
        return cfr.make_solver(
            form,
            config=self._solver,
            values=True,
            first=self.player,
            compile=cfr.compile_for(form, self.config.iterations or _SHORT_RUN),
        )

    def _reach(self, match: PublicMatch, node: int) -> np.ndarray:
        """float64 [H], the player's average reach of one of its public nodes."""
        betting, d = self.game.betting, self.decomposition
        round_ = int(betting.round[node])
        reach = np.ones(self.game.num_signals(self.player)[round_])
        below, above = node, int(betting.parent[node])
        while above >= 0:
            if betting.player[above] == self.player:
                then = self.game.ancestors(
                    self.player, round_, int(betting.round[above])
                )
                reach *= self._known_strategy(match, above)[then, d.index[below]]
            below, above = above, int(betting.parent[above])
        return reach

    def _known_strategy(self, match: PublicMatch, node: int) -> np.ndarray:
        """float64 [H, A], what is resolved at a public node, else uniform."""
        if node in match.strategy:
            return match.strategy[node]
        count = self.game.num_signals(self.player)[self.game.betting.round[node]]
        actions = int(self.decomposition.num_actions[node])
        return np.full((count, actions), 1 / actions)

    def _known_values(self, match: PublicMatch, node: int) -> np.ndarray:
        """float64 [H of o], o's values in front of a public node, as far as known."""
        if node in match.opponent_values:
            return match.opponent_values[node]
        round_ = self.game.betting.round[node]
        return np.zeros(self.game.num_signals(1 - self.player)[round_])

    def _remember(
        self,
        match: PublicMatch,
        place: _Place,
        deal: Deal,
        subgame: PublicSubgame,
        solver: Solver,
    ) -> None:
        """i's strategy at the roots, o's values in front of the roots below."""
        d, betting, i, o = (
            self.decomposition,
            self.game.betting,
            self.player,
            1 - self.player,
        )
        behaviour = solver.average_behaviour(i)
        begin = 1
        for node in subgame.own_nodes.tolist():
            signals = deal.signals[i][betting.round[node] - deal.first]
            actions = int(d.num_actions[node])
            end = begin + len(signals) * actions
            if d.layer[node] == place.layer:
                resolved = self._known_strategy(match, node).copy()
                resolved[signals] = behaviour[begin:end].reshape(-1, actions)
                match.strategy[node] = resolved
            begin = end
        values = solver.infoset_values(o)
        begin = len(values) - len(subgame.next_augmented)
        for node in subgame.next_roots.tolist():
            signals = deal.signals[o][betting.round[node] - deal.first]
            known = self._known_values(match, node).copy()
            known[signals] = values[begin : begin + len(signals)]
            match.opponent_values[node] = known
            begin += len(signals)


def check_public(config: ResolvingConfig) -> None:
    """Raises ValueError for settings that only players of compiled games know."""
    wrong = {
        "solver": config.sampled is not None,
        "gadget": config.gadget != "cfrd",
        "subgames": config.subgames != "observations",
        "depth": config.depth is not None,
        "values": config.by_best_response,
    }
    for name, given in wrong.items():
        if given:
            raise ValueError(
                f"{name}={getattr(config, name)!r}: signal games are resolved by "
                f"full-width solvers with the gadget cfrd, to the end of the game, and "
                f"with values of the iterates; leave {name} out"
            )
