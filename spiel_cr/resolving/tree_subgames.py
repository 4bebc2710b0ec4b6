"""Subgames of a game in tree form, for the resolver of one player."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs
from spiel_cr.policies.conversions import reach_from_behaviour, uniform_behaviour
from spiel_cr.resolving.constraints import OpponentResponses
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.layer_subgames import Layer, Subgame, best_response_values
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.roles import LayerState, initial_state
from spiel_cr.resolving.sampled_subgames import SampledLayer, sampled_layers
from spiel_cr.resolving.subgames import Solve, full_width_solver
from spiel_cr.resolving.tree_beliefs import opponent_range, subgame_beliefs
from spiel_cr.resolving.truncation import DepthLimit, truncate_layer
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.representation import TREE


def decision_of_bot(tree: GameTree, state: pyspiel.State) -> tuple[int, list[int]]:
    """Return the infoset of a state at which a bot acts, and OpenSpiel's actions there.

    Args:
      tree: The game that the bot was made for.
      state: A state at which a player acts.

    Raises:
      ValueError: If the state is of another game.
    """
    try:
        player, infoset = tree.infoset_of(state)
    except ValueError as error:
        raise ValueError(
            f"state: the actions {state.history()} do not lead to a decision of "
            f"{tree.game}; the bot was made for another game"
        ) from error
    return infoset, tree.actions(player, infoset).tolist()


class TreeSubgameId(NamedTuple):
    """Identification of a subgame.

    Attributes:
      layer: Number of the layer, from 1.
      subgame: Number of the subgame; 0 in layer 1.
      target: i's infoset at which sampling is targeted; -1: none.
    """

    layer: int
    subgame: int
    target: int = -1


class TreeSubgames:
    """Subgames of a game in tree form, see `Subgames`; decisions are infosets.

    Attributes:
      decomposition: Layers and subgames of i.
    """

    def __init__(
        self, tree: GameTree, player: int, config: ResolvingConfig, *, seed: int
    ) -> None:
        """Cut the game into subgames; arguments as in `Resolver`."""
        self._player, self._config = player, config
        self._algorithm = config.algorithm(TREE)
        self._by_best_response = config.by_best_response
        limit = DepthLimit.of(config)
        d = self.decomposition = decompose(tree, player)
        self._blank = initial_state(d, limit and limit.value)
        self._responses: OpponentResponses | None = None
        if limit is not None and isinstance(limit.value, Continuations):
            self._responses = OpponentResponses(d)
        self._decisions = d.decisions
        self._random = np.random.default_rng(seed)
        self._tree = tree
        if len(histories := tree.infosets[player].history):
            # The index of information states is built before the first match.
            tree.infoset_of(tree.state_at(int(histories[0])))
        self._layers = []
        for number in range(1, d.num_layers + 1):
            ahead = None if limit is None else truncate_layer(d, number, *limit)
            self._layers.append(Layer(d, number, config.gadget, ahead))
        self._sampled: Sequence[SampledLayer] = ()
        if config.sampled is not None:
            self._sampled = sampled_layers(d, config.sampled)

    def blank(self) -> LayerState:
        """See `Subgames`."""
        return self._blank.copy()

    def warm_ups(self) -> list[tuple[str, list[TreeSubgameId]]]:
        """See `Subgames`; one subgame of each layer, as they have one shape."""
        layers = enumerate(self._layers, 1)
        return [("layer", [TreeSubgameId(k, layer.largest) for k, layer in layers])]

    def decision(self, state: pyspiel.State) -> tuple[int, list[int]]:
        """See `Subgames`."""
        return decision_of_bot(self._tree, state)

    def subgames_to(self, infoset: int) -> list[TreeSubgameId]:
        """See `Subgames`."""
        d, decisions = self.decomposition, self._decisions
        ids = []
        while infoset >= 0:
            if d.opens[infoset]:
                number = int(d.player_layer[infoset])
                subgame = int(d.player_subgame[infoset]) if number > 1 else 0
                # The game is solved once, before a match, for all first infosets.
                target = infoset if self._config.target and number > 1 else -1
                ids.append(TreeSubgameId(number, subgame, target))
            infoset = int(decisions.owner[decisions.parent[infoset]])
        return ids[::-1]

    def opens(self, infoset: int) -> bool:
        """See `Subgames`."""
        return bool(self.decomposition.opens[infoset])

    def strategy(self, memory: LayerState, infoset: int) -> np.ndarray:
        """See `Subgames`."""
        first = self._decisions.first_sequence[infoset]
        count = self._decisions.num_actions[infoset]
        return memory.behaviour[first : first + count].copy()

    def begin(self, memory: LayerState, subgame_id: TreeSubgameId) -> Solve:
        """See `Subgames`."""
        layer = self._layers[subgame_id.layer - 1]
        subgame = layer[subgame_id.subgame]
        player_reach = np.ones(len(subgame.roots))
        if subgame_id.layer > 1:
            reach = reach_from_behaviour(self._decisions, memory.behaviour)
            player_reach = reach[self._decisions.parent[subgame.roots]]
        constraints = None
        if self._responses is not None:
            constraints = self._responses.values(memory.behaviour)
            memory.opponent_values[:] = constraints[:-1]
        values = memory.opponent_values[subgame.augmented]
        if self._sampled:
            solver: Solver = self._sampled[subgame_id.layer - 1].solve(
                subgame_id.subgame,
                subgame,
                player_reach,
                values,
                target=subgame_id.target if self._config.target else None,
                seed=int(self._random.integers(2**31)),
            )
        else:
            assert isinstance(self._algorithm, CFRConfig)
            form = layer.form(subgame_id.subgame, player_reach, values)
            solver = full_width_solver(form, self._algorithm, self._config, layer.first)
        solution = subgame, player_reach, solver
        remember = functools.partial(self._remember, memory, *solution)
        if constraints is not None and not self._sampled:
            before = memory, memory.behaviour.copy(), constraints
            remember = functools.partial(self._accept_if_safe, *before, *solution)
        return Solve(solver, remember, subgame)

    def beliefs(
        self, memory: LayerState, infoset: int, solves: Sequence[Solve]
    ) -> BotBeliefs:
        """See `Subgames`; sampled solves store no strategy of the opponent."""
        d, other, gap = self.decomposition, None, None
        if not self._sampled:
            decisions = self._tree.infosets[1 - self._player].decisions
            behaviour = uniform_behaviour(decisions)
            for solver, _, subgame in solves:
                rows = decisions.sequences_of(subgame.other)
                played = solver.average_behaviour(1 - self._player)
                behaviour[rows] = played[subgame.other_sequence :][: len(rows)]
            other = opponent_range(self._tree, self._player, infoset, behaviour)
            gap = solves[-1].solver.nash_conv()
        values = memory.opponent_values if d.player_layer[infoset] > 1 else None
        beliefs = subgame_beliefs(d, infoset, memory.behaviour, values, gap)
        return dataclasses.replace(beliefs, opponent_range=other)

    def _remember(
        self,
        memory: LayerState,
        subgame: Subgame,
        player_reach: np.ndarray,
        solver: Solver,
    ) -> None:
        """Store a solution.

        Args:
          memory: Memory of the match.
          subgame: The subgame.
          player_reach: Reach of i with which the subgame was solved, float64 [r].
          solver: The solver.
        """
        behaviour = solver.average_behaviour(self._player)[1:]
        in_layer = np.repeat(
            subgame.in_layer, self._decisions.num_actions[subgame.infosets]
        )
        sequences = self._decisions.sequences_of(subgame.infosets)
        memory.behaviour[sequences[in_layer]] = behaviour[in_layer]
        if not len(subgame.next_augmented):
            return
        if self._by_best_response:
            values = best_response_values(
                subgame, self._player, player_reach, np.append(1.0, behaviour)
            )
        else:
            values = solver.infoset_values(1 - self._player)
            values = values[-len(subgame.next_augmented) :]
        memory.opponent_values[subgame.next_augmented] = values

    def _accept_if_safe(
        self,
        memory: LayerState,
        incumbent: np.ndarray,
        constraints: np.ndarray,
        subgame: Subgame,
        player_reach: np.ndarray,
        solver: Solver,
    ) -> None:
        """Accept a solution if it satisfies all constraints, see `constraints.py`.

        Args:
          memory: Memory of the match.
          incumbent: Strategy of i before the solve, float64 [S of i].
          constraints: Values of o's best responses to it, float64 [G + 1].
          subgame: The subgame.
          player_reach: Reach of i with which the subgame was solved, float64 [r].
          solver: The solver.
        """
        assert self._responses is not None
        candidate = incumbent.copy()
        played = solver.average_behaviour(self._player)[1:]
        candidate[self._decisions.sequences_of(subgame.infosets)] = played
        accepted = player_reach.any() and self._responses.are_satisfied(
            constraints, candidate, subgame.augmented
        )
        memory.behaviour[:] = candidate if accepted else incumbent
