"""Values that keep one expected utility per infoset, whatever the ranges are.

The simplest thing that weighs utilities by the other player's range. It is not sound:
docs/leaves.md has figures. It serves as a baseline of networks, as "constant" does in
Kovařík et al. (2023). `exact.ConstantValues` computes the utilities.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.lookahead.values import Ranges


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
