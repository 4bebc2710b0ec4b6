"""Leaf values of public-tree games: products of matrices, and constant payoffs.

Each class is a part of a treeplex's coupling (see `treeplex.Coupling`).

Legend for shapes: T terms, L rows of leaf values, H private states.
"""

import dataclasses
from typing import cast

import jax

from spiel_cr.common.jax_utils import unfused
from spiel_cr.games.public_tree.matrix_operators import MatrixOperator
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.treeplex import Slices


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Product(treeplex.Coupling):
    """The terms of one payoff matrix for one player; see `treeplex.Coupling`.

    Attributes:
      matrix: Operator of the matrix for the player.
      reach: Positions of the opponent's reach at each term.
      payoffs: Stake of each term, float [T, 1], or [T, H'] if the opponent's reach is
        weighted.
      rows: Positions of the row of each term among the leaf values [L, H']; None if
        each term has a separate row.
      opponent_states: The opponent's earlier private state, if its last decision is of
        an earlier round, int32 [H of the matrix's round]; otherwise None.
      player_states: The player's earlier private state, int32 [H of the matrix's
        round]; None as above.
      zeros: Zeros, float [L · H']; None if `rows` is None.
      player_zeros: Zeros, float [L, H]; None if `player_states` is None.
    """

    matrix: MatrixOperator
    reach: Slices
    payoffs: jax.Array
    rows: Slices | None
    opponent_states: jax.Array | None
    player_states: jax.Array | None
    zeros: jax.Array | None
    player_zeros: jax.Array | None

    def leaf_values(self, other_reach: jax.Array) -> jax.Array:
        """Return leaf values, float [L · H]; see `Coupling`."""
        # Two separate steps: XLA computes the rows first, and then flattens them.
        rows = unfused(Product._leaf_rows, self, other_reach)
        return cast(jax.Array, unfused(_flat, rows))

    def _leaf_rows(self, other_reach: jax.Array) -> jax.Array:
        x = self.reach.take(other_reach).reshape(self.payoffs.shape[0], -1)
        x = x * self.payoffs
        if self.rows is not None and self.zeros is not None:
            width = x.shape[1]
            x = self.rows.add_to(self.zeros, x.reshape(-1)).reshape(-1, width)
        if self.opponent_states is not None:
            x = x[:, self.opponent_states]
        y = self.matrix.apply(x)
        if self.player_states is not None and self.player_zeros is not None:
            y = self.player_zeros.at[:, self.player_states].add(y)
        return y

    def largest(self) -> float:
        """Return the largest absolute payoff."""
        return super().largest() * self.matrix.largest()

    @property
    def num_payoffs(self) -> int:
        """Number of multiplications of an evaluation; see `treeplex.Coupling`."""
        return self.payoffs.shape[0] * self.matrix.nbytes // 8


def _flat(rows: jax.Array) -> jax.Array:
    return rows.reshape(-1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ConstantRows(treeplex.Coupling):
    """Leaf values that do not depend on the opponent.

    Attributes:
      payoffs: The player's utility, float [r].
    """

    payoffs: jax.Array

    def leaf_values(self, other_reach: jax.Array) -> jax.Array:
        """Return leaf values, float [r]; see `Coupling`."""
        # The reach of the opponent's empty sequence is 1.
        return self.payoffs * other_reach[0]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ConstantTotal(treeplex.Coupling):
    """A player's utility from the opponent's constants, at the empty sequence.

    Attributes:
      payoffs: The player's utility, float [r].
      sequences: Positions of the opponent's sequences, one for each payoff.
    """

    payoffs: jax.Array
    sequences: Slices

    def leaf_values(self, other_reach: jax.Array) -> jax.Array:
        """Return the value of the empty sequence, float [1]; see `Coupling`."""
        return (self.sequences.take(other_reach) * self.payoffs).sum()[None]
