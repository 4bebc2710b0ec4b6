"""Both roles of a compiled game, resolved layer by layer; see `layers.Role`."""

import dataclasses

import numpy as np

from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.policies.leaf_values import HistoryValues
from spiel_cr.policies.result import Held
from spiel_cr.resolving import layers
from spiel_cr.resolving.constraints import OpponentResponses
from spiel_cr.resolving.decomposition import Decomposition, decompose
from spiel_cr.resolving.gadget import build_forest, top_infosets
from spiel_cr.resolving.gadget_fronts import Gadget
from spiel_cr.resolving.layers import DepthLimit, LayerState, SolverOf, SolveSettings
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.truncation import truncate_layer, warn_if_never_truncated
from spiel_cr.solvers import footprint

# Bytes that both roles' layers and gadget games take for each history, at the peak.
_DECOMPOSING = 112


def tree_roles(tree: GameTree, work: SolveSettings) -> tuple[list["TreeRole"], Held]:
    """Both players' layers, and the game as results hold it.

    Args:
      tree: the game.
      work: what is to be done.

    Raises:
      GameTooLargeError: it takes more than the limit.
      HiddenTurnsError, ValueError: as `decompose`.
    """
    limit = work.limit
    need = footprint.peak_bytes(tree, dtype=work.dtype)
    need += _DECOMPOSING * len(tree.histories)
    work.check(tree.game, need)
    roles = [decompose(tree, player) for player in range(2)]
    if limit is not None:
        warn_if_never_truncated(roles, limit.depth, limit.unit)
    return [TreeRole(d, limit, work.gadget) for d in roles], Held(
        tree, tree.sequence_form
    )


def start(d: Decomposition, leaf: HistoryValues | None = None) -> LayerState:
    """Before the first layer nothing is fixed; i's plan is the leaf's blueprint."""
    state = layers.blank(d)
    if isinstance(leaf, Continuations):
        return state._replace(behaviour=leaf.behaviour(d.tree)[d.player])
    return state


@dataclasses.dataclass(frozen=True)
class TreeRole:
    """See `layers.Role`.

    Attributes:
      d: the game in layers.
      limit, gadget: as of `layers.SolveSettings`.
    """

    d: Decomposition
    limit: DepthLimit | None = None
    gadget: Gadget = "cfrd"

    def start(self) -> LayerState:
        """See `layers.Role`."""
        return start(self.d, self.limit and self.limit.value)

    def resolve(self, layer: int, state: LayerState, solver_of: SolverOf) -> LayerState:
        """See `layers.Role`."""
        d, limit = self.d, self.limit
        if limit is not None and isinstance(limit.value, Continuations):
            return self._accept_if_safe(layer, state, solver_of, limit)
        ahead = None
        if limit is not None:
            ahead = truncate_layer(d, layer, limit.depth, limit.value, unit=limit.unit)
        reach = reach_from_behaviour(d.decisions, state.behaviour)
        forest = build_forest(
            *(d, layer, reach, state.opponent_values, ahead), gadget=self.gadget
        )
        return layers.settled(d, layer, state, forest, solver_of(d, forest))

    def _accept_if_safe(
        self, layer: int, state: LayerState, solver_of: SolverOf, limit: DepthLimit
    ) -> LayerState:
        """As `resolve`, by promises that the plan keeps; see `constraints.py`."""
        d = self.d
        responses, incumbent = OpponentResponses(d), state.behaviour
        constraints = responses.values(incumbent)
        reach = reach_from_behaviour(d.decisions, incumbent)
        ahead = truncate_layer(d, layer, limit.depth, limit.value, unit=limit.unit)
        forest = build_forest(
            d, layer, reach, constraints[:-1], ahead, gadget=self.gadget
        )
        solver = solver_of(d, forest)
        inside = np.isin(d.decisions.owner, forest.own)
        found = incumbent.copy()
        found[inside] = solver.average_behaviour(d.player)[1:]
        exceeds = responses.exceeds(constraints, responses.values(found))
        kept = np.full(len(forest.own), exceeds[-1])
        if layer > 1:
            subgame = d.player_subgame[
                forest.own[top_infosets(forest.decisions[d.player])]
            ]
            count = int(d.augmented_subgame.max()) + 1
            worse = exceeds[:-1] & (d.augmented_layer == layer)
            broken = np.bincount(d.augmented_subgame[worse], minlength=count) > 0
            # Where the player never comes nothing can be gained.
            reached = (
                np.bincount(subgame, reach[d.decisions.parent[forest.own]], count) > 0
            )
            kept = (broken | ~reached)[subgame]
        found = np.where(np.isin(d.decisions.owner, forest.own[kept]), incumbent, found)
        return LayerState(found, constraints[:-1])
