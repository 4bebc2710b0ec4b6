"""Values that keep one expected utility per infoset, whatever the ranges are.

The simplest thing that weighs utilities by the other player's range. It is not sound:
docs/leaves.md has figures. It serves as a baseline of networks, as "constant" does in
Kovařík et al. (2023).
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.lookahead.exact import ExactValues
from spiel_cr.lookahead.public_states import PublicStates
from spiel_cr.lookahead.values import Ranges


class ConstantValues:
    """The expected utility of each infoset where all information is equally likely."""

    def __init__(self, iterations: int = 1000, algorithm: str = "cfr+") -> None:
        """Prepares.

        Args:
          iterations: of the one solve of what lies below.
          algorithm: of that solve.

        Raises:
          ValueError: a bad argument.
        """
        self._exact = ExactValues(iterations, algorithm)

    def lay_out(self, tree: CompiledGame, states: PublicStates) -> "ConstantTable":
        """Solves the game below at ranges of ones; see `ValueFunction`."""
        ones = tuple(np.ones(len(infosets)) for infosets in states.infosets)
        with jax.enable_x64(True):
            below = jax.device_put(self._exact.lay_out(tree, states))
            solved = jax.jit(lambda game, ranges: game.solve(ranges))(below, ones)
        utilities = []
        for player in range(2):
            reach = np.bincount(
                states.place[player], states.chance, len(states.infosets[player])
            )
            utilities.append(np.asarray(solved[player]) / np.maximum(reach, 1e-300))
        return ConstantTable(
            *(typed(states.place), typed(states.chance)),
            (typed(utilities[0]), typed(utilities[1])),
        )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ConstantTable:
    """A utility per infoset; see `RangeValues`.

    Attributes:
      place: int32 [2, R], as of `PublicStates`.
      chance: float [R], likewise.
      utilities: by player float [J0], float [J1], own expected utilities.
    """

    place: jax.Array
    chance: jax.Array
    utilities: tuple[jax.Array, jax.Array]

    def values(self, player: int, ranges: Ranges) -> jax.Array:
        """float [J of player]."""
        others = ranges[1 - player][self.place[1 - player]]
        own = self.utilities[player]
        return (
            jnp.zeros_like(own).at[self.place[player]].add(self.chance * others) * own
        )

    def largest(self) -> float:
        """The largest |utility| times all of chance."""
        largest = max(np.abs(own).max(initial=0) for own in self.utilities)
        return float(largest * self.chance.sum())

    def rescaled(self, exponent: int) -> "ConstantTable":
        """The same with utilities over 2^exponent."""
        first, second = (np.ldexp(np.asarray(u), -exponent) for u in self.utilities)
        return dataclasses.replace(self, utilities=(first, second))
