"""What the values at the end of a lookahead are, to solvers.

In iteration t of a solver a public state has a range per player: the player's own
reach, by its current strategy, of all that it may know there. Its counterfactual values
follow from both ranges (Moravčík et al. 2017, "DeepStack"; Kovařík et al. 2023, "Value
functions for depth-limited solving in zero-sum imperfect-information games").
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Protocol

import jax

from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.resolving.leaves.public_states import PublicStates

# Each player's own reach of its infosets at the public states, float [J0] and [J1].
Ranges = tuple[jax.Array, jax.Array]


class RangeValues(Protocol):
    """Values of some public states, as a registered dataclass of arrays."""

    def values(self, player: int, ranges: Ranges) -> jax.Array:
        """Counterfactual values at the players' ranges. Runs within jitted programs.

        Args:
          player: whose values.
          ranges: by player float [J0], float [J1], the product of the player's own
            action probabilities on the way to each of its infosets; not normalised,
            and 0 where it never goes.

        Returns:
          float [J of player]: the player's own expected utility weighted by the
          probability of chance and by the other player's range, over 2^exponent of
          `rescaled`. It does not depend on the scale of the player's own range.
        """

    def largest(self) -> float:
        """A bound of the values' size at ranges of ones; of numpy arrays."""

    def rescaled(self, exponent: int) -> "RangeValues":
        """The same with values over 2^exponent; numpy arrays."""


class ValueFunction(abc.ABC):
    """Values of any public states of a game, by both players' ranges."""

    def check(self, tree: CompiledGame) -> None:
        """Refuses a game before anything is cut.

        Raises:
          ValueError: it knows nothing of this game.
        """
        return

    @abc.abstractmethod
    def lay_out(self, tree: CompiledGame, states: PublicStates) -> RangeValues:
        """Prepares what does not depend on ranges.

        Args:
          tree: the compiled game.
          states: its public states, of one player's decomposition.

        Returns:
          The values of these states, of numpy arrays.

        Raises:
          ValueError: it knows nothing of this game.
        """

    def lay_out_alike(
        self,
        tree: CompiledGame,
        states: PublicStates,
        selections: Sequence[PublicStates],
    ) -> Sequence[RangeValues] | None:
        """The values of each of several sets of public states, of equal shapes.

        Args:
          tree: the compiled game.
          states: all of them, for what can be prepared at once.
          selections: the sets, selected from these.

        Returns:
          For each selection its values. Ranges are as long as the longest of any
          selection: first come its own infosets, then zeros. What `values` says of the
          latter means nothing, but is finite. None: it cannot pad what it lays out.
        """
        return None

    def peak_bytes(self, tree: CompiledGame, states: PublicStates) -> float:
        """What values at some public states take beside a solver, at the peak.

        Args:
          tree: the compiled game.
          states: where a lookahead ends.
        """
        return 0.0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Cut:
    """Where one player's tree is cut off; see `treeplex.Beyond`.

    Attributes:
      below: values of the public states at the cut.
      own: int32 [J of the player], where its reach of its infosets there stands.
      other: int32 [J of the other], the same of the other player.
      own_weight: float [J of the player], what its reach there is to be multiplied by:
        its reach of the root of the subgame, which a gadget game has in its payoffs.
      other_weight: float [J of the other], likewise.
      player: 0 or 1.
    """

    below: RangeValues
    own: jax.Array
    other: jax.Array
    own_weight: jax.Array
    other_weight: jax.Array
    player: int = dataclasses.field(metadata={"static": True})

    def leaf_values(self, own_reach: jax.Array, other_reach: jax.Array) -> jax.Array:
        """float [J of the player], its values in the units of the gadget game."""
        own = own_reach[self.own] * self.own_weight
        other = other_reach[self.other] * self.other_weight
        ranges = (own, other) if self.player == 0 else (other, own)
        values = self.below.values(self.player, ranges)
        return values.astype(own.dtype) * self.own_weight

    def largest(self) -> float:
        """A bound of the values' size."""
        return self.below.largest()

    def rescaled(self, exponent: int) -> "Cut":
        """The same with values over 2^exponent."""
        return dataclasses.replace(self, below=self.below.rescaled(exponent))
