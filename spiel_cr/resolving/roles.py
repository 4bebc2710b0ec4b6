"""Re-solving of one player's layers from the top down, in any form of the game.

Re-solving a layer uses two results of the layers above, see `LayerState`: the player's
average strategy, in sequence form, and the opponent's counterfactual value at every
augmented infoset, averaged over the *iterates* of the solve above. Counterfactual
values of the average strategy are not equivalent: they are wrong where the opponent's
own reach is zero (`tests/resolving/test_continual.py` has an example).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spiel_cr.common import memory
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.conversions import reach_from_behaviour, uniform_behaviour
from spiel_cr.policies.leaf_values import HistoryValues
from spiel_cr.resolving.constraints import OpponentResponses
from spiel_cr.resolving.decomposition import Decomposition, decompose
from spiel_cr.resolving.gadget import Forest, build_forest, top_infosets
from spiel_cr.resolving.gadget_infosets import Gadget
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.public_decomposition import (
    PublicDecomposition,
    decompose_public,
)
from spiel_cr.resolving.public_gadget import PublicForest, build_public_forest
from spiel_cr.resolving.truncation import (
    DepthLimit,
    truncate_layer,
    warn_if_never_truncated,
)
from spiel_cr.solvers import footprint
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.representation import PUBLIC_TREE, TREE

# Peak memory of both roles' layers and gadget games, in bytes per history.
_DECOMPOSITION_BYTES = 112
# Peak memory of a weight in a gadget game in public-tree form: the weight itself, its
# copy in the payoffs, and the copy on the device.
_WEIGHT_BYTES = 32

LayeredGame: TypeAlias = Decomposition | PublicDecomposition
LayerForest: TypeAlias = Forest | PublicForest
# Solves the forest of a layer, and keeps the counterfactual values of infosets.
SolverOf: TypeAlias = Callable[[LayeredGame, LayerForest], Solver]


class LayerState(NamedTuple):
    """The strategy and values that re-solving passes from a layer to the next one.

    Attributes:
      behaviour: Action probabilities of player i, float64 [S of i]. Below the layers
        solved so far, these are the incumbent strategy (`constraints.py`), or uniform
        without a blueprint.
      opponent_values: Counterfactual values of the opponent o at augmented infosets of
        the next layer, float64 [G]: o's utility, weighted by the reach of i and chance.
        0 at other augmented infosets.
    """

    behaviour: np.ndarray
    opponent_values: np.ndarray

    def copy(self) -> "LayerState":
        """Return a copy that shares no arrays."""
        return LayerState(self.behaviour.copy(), self.opponent_values.copy())


def initial_state(d: LayeredGame, leaf: HistoryValues | None = None) -> LayerState:
    """Return the state above the first layer: the blueprint of a leaf, or uniform."""
    values = np.zeros(len(d.augmented_layer))
    if isinstance(leaf, Continuations) and isinstance(d, Decomposition):
        return LayerState(leaf.behaviour(d.tree)[d.player], values)
    return LayerState(uniform_behaviour(d.decisions), values)


@dataclasses.dataclass(frozen=True)
class Role:
    """One player's layers, re-solved one after the other from 1 to `d.num_layers`.

    Attributes:
      d: The game in layers.
      limit: Depth limit of subgames, in tree form only. None: to the end of the game.
      gadget: Gadget above the subgames. Always "cfrd" in public-tree form.
    """

    d: LayeredGame
    limit: DepthLimit | None = None
    gadget: Gadget = "cfrd"

    def start(self) -> LayerState:
        """Return the state above the first layer."""
        return initial_state(self.d, self.limit and self.limit.value)

    def resolve(self, layer: int, state: LayerState, solver_of: SolverOf) -> LayerState:
        """Solve all subgames of a layer, and fix the player's strategy there.

        Args:
          layer: Number of the layer, 1 .. d.num_layers; layers above are solved.
          state: Result of the layer above.
          solver_of: Makes and runs a solver.
        """
        if self.limit is not None and isinstance(self.limit.value, Continuations):
            return self._resolve_with_constraints(layer, state.behaviour, solver_of)
        d, forest = self.d, self._forest(layer, state)
        solver = solver_of(d, forest)
        in_forest = np.isin(d.decisions.owner, forest.infosets)
        in_layer = in_forest & (d.player_layer[d.decisions.owner] == layer)
        behaviour = state.behaviour.copy()
        resolved = solver.average_behaviour(d.player)[1:]
        behaviour[in_layer] = resolved[in_layer[in_forest]]
        opponent_values = np.zeros_like(state.opponent_values)
        values = solver.infoset_values(1 - d.player)
        first_next = len(values) - len(forest.next_augmented)
        opponent_values[forest.next_augmented] = values[first_next:]
        return LayerState(behaviour, opponent_values)

    def _forest(self, layer: int, state: LayerState) -> LayerForest:
        d, limit, truncation = self.d, self.limit, None
        reach = reach_from_behaviour(d.decisions, state.behaviour)
        if isinstance(d, PublicDecomposition):
            return build_public_forest(d, layer, reach, state.opponent_values)
        if limit is not None:
            truncation = truncate_layer(d, layer, *limit)
        return build_forest(
            *(d, layer, reach, state.opponent_values, truncation), gadget=self.gadget
        )

    def _resolve_with_constraints(
        self, layer: int, incumbent: np.ndarray, solver_of: SolverOf
    ) -> LayerState:
        """Solve a layer; keep the incumbent strategy where a constraint is violated."""
        d: Any = self.d  # in tree form: public trees have no depth limit
        responses = OpponentResponses(d)
        constraints = responses.values(incumbent)
        forest = self._forest(layer, LayerState(incumbent, constraints[:-1]))
        solver = solver_of(d, forest)
        infosets = forest.infosets
        inside = np.isin(d.decisions.owner, infosets)
        behaviour = incumbent.copy()
        behaviour[inside] = solver.average_behaviour(d.player)[1:]
        exceeds = responses.exceeds(constraints, responses.values(behaviour))
        kept = np.full(len(infosets), exceeds[-1])
        if layer > 1:
            subgame = d.player_subgame[
                infosets[top_infosets(forest.form.decisions[d.player])]
            ]
            count = int(d.augmented_subgame.max()) + 1
            worse = exceeds[:-1] & (d.augmented_layer == layer)
            broken = np.bincount(d.augmented_subgame[worse], minlength=count) > 0
            # A subgame that the player never reaches cannot gain anything.
            reach = reach_from_behaviour(d.decisions, incumbent)
            reached = np.bincount(subgame, reach[d.decisions.parent[infosets]], count)
            kept = (broken | ~(reached > 0))[subgame]
        keeps = np.isin(d.decisions.owner, infosets[kept])
        return LayerState(np.where(keeps, incumbent, behaviour), constraints[:-1])


def make_roles(
    game: Any,
    limit: DepthLimit | None,
    gadget: Gadget,
    dtype: np.dtype,
    memory_limit: memory.Limit,
) -> Sequence[Role]:
    """Cut a game into both players' layers.

    Args:
      game: The game, in tree or public-tree form.
      limit: Depth limit of subgames, in tree form only.
      gadget: Gadget above the subgames.
      dtype: Arithmetic of the solvers.
      memory_limit: Limit for the memory of the process.

    Raises:
      GameTooLargeError: If re-solving would need more memory than the limit.
      UncountableTurnsError, ValueError: As `decompose`.
    """
    cut, layer_bytes = _LAYERS[game.kind]
    need = footprint.peak_bytes(game, dtype=dtype) + layer_bytes(game)
    remedy = "use a smaller game" if dtype == np.float32 else "use dtype float32"
    memory.check_need(f"resolving {game.game}", need, memory_limit, remedy)
    layered = [cut(game, player) for player in range(2)]
    if limit is not None:
        warn_if_never_truncated(layered, limit.depth, limit.unit)
    return [Role(d, limit, gadget) for d in layered]


def _layer_bytes(game: GameTree) -> int:
    """Return the memory for layers and gadget games of a game tree."""
    return _DECOMPOSITION_BYTES * len(game.histories)


def _gadget_bytes(game: PublicTreeGame) -> int:
    """Return the memory for the weights of each term's private states in gadgets."""
    rounds = np.array([matrix.round for matrix in game.payoff_matrices])[
        game.terms.matrix
    ]
    sizes = np.array([game.num_private_states(player) for player in range(2)])
    return _WEIGHT_BYTES * int(sizes.max(axis=0)[rounds].sum())


# For each form of games, how a player's layers are made, and the memory for both
# players' layers and gadget games.
_LAYERS: Mapping[str, tuple[Callable[..., Any], Callable[[Any], int]]] = {
    TREE: (decompose, _layer_bytes),
    PUBLIC_TREE: (decompose_public, _gadget_bytes),
}
