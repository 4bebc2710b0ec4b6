"""What continual resolving carries down the layers of a game, whatever its form.

The invariant between layers, `LayerState`: i's average strategy above, in sequence
form, and o's counterfactual value at every augmented infoset, averaged over the
*iterates* of the solve above. Values of the average strategy instead look right and are
wrong where o's own reach is zero (tests/resolving/test_continual.py shows it).
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.policies.leaf_values import HistoryValues
from spiel_cr.resolving.gadget_fronts import Gadget
from spiel_cr.resolving.leaves.leaf_strings import DepthUnit
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver


class LayerState(NamedTuple):
    """What resolving carries from one layer to the next, or a match so far.

    Attributes:
      behaviour: float64 [S of i], action probabilities resolved so far; below, those of
        its plan (`constraints.py`), or uniform ones without a blueprint.
      opponent_values: float64 [G], o's counterfactual values (its own utility, weighted
        by the reach of i and chance) at the augmented infosets of the next layer; 0
        elsewhere.
    """

    behaviour: np.ndarray
    opponent_values: np.ndarray

    def copy(self) -> "LayerState":
        """One that may change without this."""
        return LayerState(self.behaviour.copy(), self.opponent_values.copy())


class DepthLimit(NamedTuple):
    """Where a lookahead ends; see `truncate_layer`.

    Attributes:
      depth: moves or rounds.
      unit: see `truncate_layer`.
      value: what there is at the cut.
    """

    depth: int
    unit: DepthUnit
    value: HistoryValues


class SolveSettings(NamedTuple):
    """What is done on each layer's forest.

    Attributes:
      config, iterations, dtype: of every solve.
      limit: where the subgames are cut off, of a compiled game; None: nowhere.
      gadget: what stands in front of the subgames; in public terms "cfrd" only.
      memory_limit: of the whole process, as users give it.
    """

    config: CFRConfig
    iterations: int
    dtype: np.dtype
    limit: DepthLimit | None
    gadget: Gadget
    memory_limit: memory.Limit

    def check(self, game: pyspiel.Game, need: float) -> None:
        """Raises GameTooLargeError where resolving would take more than the limit."""
        remedy = "take a smaller game"
        if self.dtype != np.float32:
            remedy = "take dtype float32"
        memory.check_need(f"resolving {game}", need, self.memory_limit, remedy)


class LayerForest(Protocol):
    """The subgames of a layer; see `gadget.Forest`."""

    @property
    def form(self) -> SequenceForm:
        """The game that a solver solves."""

    @property
    def own(self) -> np.ndarray:
        """int32 [m], i's infosets, numbers of the whole game."""

    @property
    def next_augmented(self) -> np.ndarray:
        """int32 [n], augmented infosets of the next layer, o's last ones."""

    @property
    def other_first(self) -> bool:
        """Whether o is to update before i."""


class LayeredGame(Protocol):
    """A game cut into layers: `Decomposition` or `PublicDecomposition`."""

    @property
    def player(self) -> int:
        """i, the resolving player."""

    @property
    def player_layer(self) -> np.ndarray:
        """int32 [I of i], layer of each of i's infosets."""

    @property
    def augmented_layer(self) -> np.ndarray:
        """int32 [G], layer whose roots the augmented infoset belongs to."""

    @property
    def decisions(self) -> Decisions:
        """i's decision points."""

    @property
    def num_layers(self) -> int:
        """How many layers there are."""


# Solves a layer's forest; must keep infoset values.
SolverOf = Callable[[LayeredGame, LayerForest], Solver]


class Role(Protocol):
    """One player's layers, resolved one after the other from 1 to `d.num_layers`."""

    @property
    def d(self) -> LayeredGame:
        """The game in layers."""

    def start(self) -> LayerState:
        """Before the first layer nothing is fixed."""

    def resolve(self, layer: int, state: LayerState, solver_of: SolverOf) -> LayerState:
        """Solves all subgames of one layer and fixes i's strategy there.

        Args:
          layer: 1 .. d.num_layers, after the layers above.
          state: what the layer above left.
          solver_of: solves a forest.
        """


def blank(d: LayeredGame) -> LayerState:
    """No strategy, and no values."""
    return LayerState(uniform_behaviour(d.decisions), np.zeros(len(d.augmented_layer)))


def settled(
    d: LayeredGame, layer: int, state: LayerState, forest: LayerForest, solver: Solver
) -> LayerState:
    """What a layer leaves that was solved.

    Args:
      d: the game in layers.
      layer: that was solved.
      state: what the layer above left.
      forest: the layer's subgames.
      solver: of the forest, with its infoset values.
    """
    in_forest = np.isin(d.decisions.owner, forest.own)
    in_layer = in_forest & (d.player_layer[d.decisions.owner] == layer)
    behaviour = state.behaviour.copy()
    resolved = solver.average_behaviour(d.player)[1:]
    behaviour[in_layer] = resolved[in_layer[in_forest]]

    opponent_values = np.zeros_like(state.opponent_values)
    values = solver.infoset_values(1 - d.player)
    first_next = len(values) - len(forest.next_augmented)
    opponent_values[forest.next_augmented] = values[first_next:]
    return LayerState(behaviour, opponent_values)
