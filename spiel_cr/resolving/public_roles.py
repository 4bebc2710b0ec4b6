"""Both roles of a signal game, resolved layer by layer; see `layers.Role`."""

import dataclasses

import numpy as np

from spiel_cr.games.public_tree import public_tree_footprint
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.policies.result import Held
from spiel_cr.resolving import layers
from spiel_cr.resolving.layers import LayerState, SolverOf, SolveSettings
from spiel_cr.resolving.public_gadget import build_public_forest
from spiel_cr.resolving.public_layers import PublicDecomposition, decompose_public

# Bytes for each weight of a signal game's gadgets: itself, laid out, on the device.
_WEIGHING = 32


def public_roles(
    game: PublicTreeGame, work: SolveSettings
) -> tuple[list["PublicRole"], Held]:
    """Both players' layers in public terms, and the game as results hold it.

    Args:
      game: the game.
      work: what is to be done.

    Raises:
      GameTooLargeError: it takes more than the limit.
    """
    need = public_tree_footprint.peak_bytes(game, work.dtype) + _gadget_bytes(game)
    work.check(game.game, need)
    held = Held(game, game.sequence_form, work.dtype)
    return [PublicRole(decompose_public(game, player)) for player in range(2)], held


@dataclasses.dataclass(frozen=True)
class PublicRole:
    """See `layers.Role`.

    Attributes:
      d: the game in layers.
    """

    d: PublicDecomposition

    def start(self) -> LayerState:
        """See `layers.Role`."""
        return layers.blank(self.d)

    def resolve(self, layer: int, state: LayerState, solver_of: SolverOf) -> LayerState:
        """See `layers.Role`."""
        d = self.d
        reach = reach_from_behaviour(d.decisions, state.behaviour)
        forest = build_public_forest(d, layer, reach, state.opponent_values)
        return layers.settled(d, layer, state, forest, solver_of(d, forest))


def _gadget_bytes(game: PublicTreeGame) -> int:
    """What gadgets take besides: weights of each term's signals, and copies of them."""
    rounds = np.array([kernel.round for kernel in game.kernels])[game.terms.kernel]
    signals = np.array([game.num_private_states(player) for player in range(2)]).max(
        axis=0
    )
    return _WEIGHING * int(signals[rounds].sum())
