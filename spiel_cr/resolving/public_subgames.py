"""Subgames of a public-tree game, for the resolver of one player.

A subgame is a public node where the player acts, with a board (see
`public_decomposition.py`). The memory of a match is small, unlike a strategy of the
complete game: action probabilities at the public nodes that the player visited, and the
opponent's counterfactual values at possible next ones, private state by private state.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np
import pyspiel

from spiel_cr.abstraction.outcomes import deal_weights
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.matrix_operators import make_operator
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs, distribution_of
from spiel_cr.policies.best_responses import infoset_values
from spiel_cr.resolving.layer_subgames import or_ones
from spiel_cr.resolving.public_deals import BoardDeal, BoardDeals
from spiel_cr.resolving.public_decomposition import (
    PublicDecomposition,
    betting_kinds,
    decompose_public,
)
from spiel_cr.resolving.public_gadget import PublicSubgame, cut_public
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.subgames import Solve, full_width_solver
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.representation import PUBLIC_TREE


class PublicSubgameId(NamedTuple):
    """Identification of a subgame.

    Attributes:
      layer: Number of the layer, from 1.
      node: The public node; -1 in layer 1, which is the complete game.
      board: Label of the board; -1 in layer 1.
    """

    layer: int
    node: int
    board: int


_FULL_GAME = PublicSubgameId(1, -1, -1)


@dataclasses.dataclass
class PublicMemory:
    """Solutions of the current match.

    Attributes:
      strategy: Action probabilities by public node of the player, float64 [H, A];
        uniform at private states of other boards.
      opponent_values: The opponent's counterfactual values by public node of the
        player, float64 [H of the opponent]; 0 at private states of other boards.
    """

    strategy: dict[int, np.ndarray]
    opponent_values: dict[int, np.ndarray]

    def copy(self) -> "PublicMemory":
        """Return a copy that can change independently."""
        # A shallow copy suffices, because arrays are replaced and never modified.
        return PublicMemory(dict(self.strategy), dict(self.opponent_values))


# A public node at which the player acts, and the player's private state.
_Decision = tuple[int, int]


class PublicSubgames:
    """Subgames of a public-tree game: decisions are nodes and private states.

    Attributes:
      game: The game.
      player: The re-solving player, i.
      decomposition: Layers of i.
    """

    def __init__(
        self,
        game: PublicTreeGame,
        player: int,
        config: ResolvingConfig,
        *,
        seed: int = 0,
    ) -> None:
        """Cut the game into subgames; arguments as in `Resolver`, without a seed."""
        if refusal := config.public_tree_error:
            raise ValueError(refusal)
        self.game, self.player, self._config = game, player, config
        solver = config.algorithm(PUBLIC_TREE)
        assert isinstance(solver, CFRConfig)
        self._algorithm = solver
        self.decomposition = decompose_public(game, player)
        self._deals = BoardDeals(self.decomposition)

    def blank(self) -> PublicMemory:
        """See `Subgames`."""
        return PublicMemory({}, {})

    def warm_ups(self) -> list[tuple[str, list[PublicSubgameId]]]:
        """See `Subgames`.

        The compiled function of a subgame depends on the betting below its root and on
        the sizes of its board. Few combinations exist, and one of each is solved.
        """
        if not self.decomposition.num_layers:
            return [("whole game", [])]
        return [("whole game", [_FULL_GAME]), ("subgame", self._examples())]

    def decision(self, state: pyspiel.State) -> tuple[_Decision, list[int]]:
        """See `Subgames`."""
        node = self.game.betting.node_of(state)
        actions = self.game.betting.actions(node)
        if actions != state.legal_actions():
            raise ValueError(
                f"state: after the actions {state.history()} the legal actions are "
                f"{state.legal_actions()}, not those of {self.game.game}, {actions}; "
                f"the bot was made for another game"
            )
        return (node, self.game.reader.private_state(state, self.player)), actions

    def opens(self, decision: _Decision) -> bool:
        """See `Subgames`; every public node of the player is a root."""
        return True

    def strategy(self, memory: PublicMemory, decision: _Decision) -> np.ndarray:
        """See `Subgames`."""
        node, private_state = decision
        return self._strategy_at(memory, node)[private_state].copy()

    def subgames_to(self, decision: _Decision) -> list[PublicSubgameId]:
        """See `Subgames`."""
        node, private_state = decision
        d, betting = self.decomposition, self.game.betting
        round_ = int(betting.round[node])
        ids = []
        while d.layer[node] > 1:
            if betting.player[node] == self.player:
                above = int(betting.round[node])
                then = self.game.ancestors(self.player, round_, above)[private_state]
                board = int(d.boards[above][self.player][then])
                ids.append(PublicSubgameId(int(d.layer[node]), node, board))
            node = int(betting.parent[node])
        return [_FULL_GAME, *ids[::-1]]

    def _examples(self) -> list[PublicSubgameId]:
        """Return a subgame for each compiled function except the complete game's."""
        d, betting = self.decomposition, self.game.betting
        kinds = betting_kinds(self.game)
        examples: dict[object, PublicSubgameId] = {}
        sizes: dict[int, dict[object, int]] = {}
        for node in d.roots[d.layer[d.roots] > 1].tolist():
            round_ = int(betting.round[node])
            if round_ not in sizes:
                sizes[round_] = self._board_sizes(round_)
            for size, board in sizes[round_].items():
                subgame_id = PublicSubgameId(int(d.layer[node]), node, board)
                examples.setdefault((kinds[node], round_, size), subgame_id)
        # Upper layers come first, because the last solves predict the next costs best.
        return sorted(examples.values())

    def _board_sizes(self, round: int) -> dict[object, int]:
        """Return one board of a round for each size of its boards."""
        sizes: dict[object, int] = {}
        for board in np.unique(self.decomposition.boards[round][self.player]).tolist():
            deal = self._deals.of_board(round, board)
            shapes = [
                np.shape(leaf)
                for matrix in deal.payoff_matrices
                for player in range(2)
                for leaf in jax.tree.leaves(make_operator(matrix, player))
            ]
            counts = [
                len(s) for private_states in deal.private_states for s in private_states
            ]
            sizes.setdefault((*counts, *shapes), board)
        return sizes

    def _deal(self, subgame_id: PublicSubgameId) -> BoardDeal:
        if subgame_id == _FULL_GAME:
            return self._deals.whole
        return self._deals.of_board(
            int(self.game.betting.round[subgame_id.node]), subgame_id.board
        )

    def begin(self, memory: PublicMemory, subgame_id: PublicSubgameId) -> Solve:
        """See `Subgames`."""
        d, deal = self.decomposition, self._deal(subgame_id)
        roots = None
        player_reach = opponent_values = np.ones(0)
        if subgame_id != _FULL_GAME:
            roots = np.searchsorted(d.roots, [subgame_id.node])
            strategy_at = functools.partial(self._strategy_at, memory)
            reach = self.game.reach_at(self.player, subgame_id.node, strategy_at)
            player_reach = reach[deal.private_states[self.player][0]]
            values = self._values_at(memory, subgame_id.node)
            opponent_values = values[deal.private_states[1 - self.player][0]]
        subgame = cut_public(d, subgame_id.layer, roots, deal)
        form = subgame.form(player_reach, opponent_values)
        solver = full_width_solver(form, self._algorithm, self._config, self.player)
        return Solve(
            solver,
            functools.partial(self._remember, memory, subgame_id, subgame, solver),
            subgame,
        )

    def beliefs(
        self, memory: PublicMemory, decision: _Decision, solves: Sequence[Solve]
    ) -> BotBeliefs:
        """See `Subgames`."""
        (node, private_state), betting = decision, self.game.betting
        i, o, path = self.player, 1 - self.player, {node}
        while (above := int(betting.parent[min(path)])) >= 0:
            path.add(above)
        opponent: dict[int, np.ndarray] = {}
        for solver, _, subgame in solves:
            played = solver.average_behaviour(o)
            for at, private_states, block in self._blocks(subgame, o, played):
                if at in path:
                    opponent[at] = self._uniform(o, at)
                    opponent[at][private_states] = block
        strategy_at = functools.partial(self._strategy_at, memory)
        reach = self.game.reach_at(i, node, strategy_at)
        solver, _, subgame = solves[-1]
        gap, values = solver.nash_conv(), None
        if len(solves) > 1:
            values = self._values_at(memory, node)
            # The form leaves i's reach of its openings out of i's own values.
            weight = or_ones(reach[subgame.deal.private_states[i][0]])
            best = infoset_values(solver.form, i, solver.average(o))
            gap += float((weight - 1) @ best[: len(weight)])
        other_reach = self.game.reach_at(o, node, opponent.__getitem__)
        arguments = node, private_state, reach, other_reach, values, gap
        return _beliefs(self.decomposition, *arguments)

    def _strategy_at(self, memory: PublicMemory, node: int) -> np.ndarray:
        """Return the solution at a public node, or uniform, float64 [H, A]."""
        if node in memory.strategy:
            return memory.strategy[node]
        return self._uniform(self.player, node)

    def _uniform(self, player: int, node: int) -> np.ndarray:
        """Return equal probabilities at a public node of a player, float64 [H, A]."""
        count = self.game.num_private_states(player)[self.game.betting.round[node]]
        actions = int(self.game.betting.num_actions[node])
        return np.full((count, actions), 1 / actions)

    def _blocks(
        self, subgame: PublicSubgame, player: int, behaviour: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield the strategy of a subgame by public node of a player.

        Args:
          subgame: The subgame.
          player: The player.
          behaviour: Its action probabilities in the subgame, float64 [S].

        Yields:
          The node, private states there, int32 [H], and probabilities, float64 [H, A].
        """
        nodes, begin, deal = subgame.player_nodes, 1, subgame.deal
        if player != self.player:
            # The gadget has two actions at each augmented infoset.
            nodes, begin = subgame.other_nodes, 1 + 2 * len(subgame.augmented)
        for node in nodes.tolist():
            round_ = self.game.betting.round[node]
            private_states = deal.private_states[player][round_ - deal.first]
            actions = int(self.game.betting.num_actions[node])
            end = begin + len(private_states) * actions
            yield node, private_states, behaviour[begin:end].reshape(-1, actions)
            begin = end

    def _values_at(self, memory: PublicMemory, node: int) -> np.ndarray:
        """Return o's known values above a public node, float64 [H of o]."""
        if node in memory.opponent_values:
            return memory.opponent_values[node]
        round_ = self.game.betting.round[node]
        return np.zeros(self.game.num_private_states(1 - self.player)[round_])

    def _remember(
        self,
        memory: PublicMemory,
        subgame_id: PublicSubgameId,
        subgame: PublicSubgame,
        solver: Solver,
    ) -> None:
        """Store the solution of a subgame that later solves of the match need.

        Args:
          memory: Memory of the match, which is changed: i's strategy at the roots, and
            o's counterfactual values at the roots of the next layer.
          subgame_id: Identification of the subgame.
          subgame: The subgame.
          solver: Solver after the solve.
        """
        d, betting, deal = self.decomposition, self.game.betting, subgame.deal
        i, o = self.player, 1 - self.player
        behaviour = solver.average_behaviour(i)
        for node, private_states, block in self._blocks(subgame, i, behaviour):
            if d.layer[node] == subgame_id.layer:
                resolved = self._strategy_at(memory, node).copy()
                resolved[private_states] = block
                memory.strategy[node] = resolved
        values = solver.infoset_values(o)
        begin = len(values) - len(subgame.next_augmented)
        for node in subgame.next_roots.tolist():
            private_states = deal.private_states[o][betting.round[node] - deal.first]
            node_values = self._values_at(memory, node).copy()
            node_values[private_states] = values[begin : begin + len(private_states)]
            memory.opponent_values[node] = node_values
            begin += len(private_states)


def _beliefs(
    d: PublicDecomposition,
    node: int,
    private_state: int,
    reach: np.ndarray,
    other_reach: np.ndarray,
    opponent_values: np.ndarray | None,
    nash_conv: float,
) -> BotBeliefs:
    """Return the beliefs of i about a subgame: a public node and a board.

    Args:
      d: Layers of the game.
      node: The public node, at which i acts.
      private_state: Private state of i.
      reach: i's reach of the node by its private state, float64 [H of i].
      other_reach: o's reach by its private state, float64 [H of o].
      opponent_values: o's counterfactual values by private state, float64 [H of o].
        None: the subgame is the complete game.
      nash_conv: NashConv of the solution, weighted by the reach of chance and i.
    """
    game, i, o = d.game, d.player, 1 - d.player
    round_ = int(game.betting.round[node])
    labels = d.boards[round_]
    held = np.arange(len(reach)) == private_state
    kept, other_kept = (np.flatnonzero(labels[p] == labels[i][held]) for p in (i, o))
    names, other_names = (
        [game.reader.name(p, round_, k) for k in states.tolist()]
        for p, states in ((i, kept), (o, other_kept))
    )
    likely = deal_weights(game, o, round_, held.astype(float))[other_kept]
    if (likely * other_reach[other_kept]).any():
        likely = likely * other_reach[other_kept]
    everything = np.ones(len(other_reach))
    dealt = deal_weights(game, i, round_, everything)[kept]
    weight, values = dealt * or_ones(reach[kept]), None
    if opponent_values is not None:
        nash_conv /= float(weight.sum())
        divisor = deal_weights(game, o, round_, reach)[other_kept]
        reached, offset = divisor > 0, payoff_offset(game.game)
        if reached.any():
            numbers = offset - opponent_values[other_kept][reached] / divisor[reached]
            reached_names = np.array(other_names)[reached].tolist()
            values = dict(zip(reached_names, numbers.tolist(), strict=True))
    return BotBeliefs(
        i,
        distribution_of(other_names, likely),
        distribution_of(names, weight),
        values,
        nash_conv,
    )
