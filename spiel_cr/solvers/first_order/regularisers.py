"""Dilated regularisers of a treeplex, and the strategies that they make best.

A dilated regulariser is d(x) = Σ_j w_j · x_p(j) · d_j(x_j / x_p(j)) over a player's
infosets j: each has a function of its simplex, weighted by how far the player itself
reaches it (Hoda, Gilpin, Peña & Sandholm 2010, "Smoothing techniques for computing Nash
equilibria of sequential games", section 4). Here d_j is the entropy relative to a
centre, Σ_a b_a log(b_a / c_a).

Gradients and reach are vectors by position (see `games.sequence_form.layout`), in units
of the owner's utility over 2^exponent; strategies are blocks.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.sequence_form.treeplex import Blocks, Level, Treeplex

# Of each block, one factor [n] per infoset, or [1] for all.
Weights = tuple[tuple[jax.Array, ...], ...]


class Response(NamedTuple):
    """What is best against a gradient.

    Attributes:
      value: float scalar, the maximum of payoff less regulariser.
      strategy: where it is reached, a behaviour strategy.
    """

    value: jax.Array
    strategy: Blocks


def gradient(tree: Treeplex, other_reach: jax.Array) -> jax.Array:
    """The payoff coupling times the opponent's reach.

    Args:
      tree: the player's treeplex.
      other_reach: float [S'], the opponent's reach by position.

    Returns:
      float [S], what each of the player's positions is paid, the opponent's reach and
      chance included; 0 at padding.
    """
    leaves = treeplex.leaf_values(tree, other_reach)
    parts = [treeplex.root_value(tree, leaves)[None]]
    parts += [treeplex.leaves_of(level, leaves) for level in tree.levels]
    return jnp.concatenate(parts)


def respond(
    tree: Treeplex,
    weights: Weights,
    leaves: jax.Array,
    scale: jax.Array,
    centre: Blocks,
) -> Response:
    """Maximises ⟨slope, x⟩ − scale · d(x) over the treeplex, exactly.

    One pass up: an infoset's own problem is solved on its simplex, and its value is
    paid to the sequence before it (Hoda et al. 2010, theorem 4).

    Args:
      tree: the player's treeplex.
      weights: of its infosets.
      leaves: float [R + Z], the slope by `treeplex.leaf_values`; only one level at a
        time is laid out.
      scale: float scalar, above 0.
      centre: of the regulariser, one [A, n] or [A, 1] a block, whose rows need not sum
        to 1.
    """
    root = treeplex.root_value(tree, leaves)
    child: Level | None = None
    child_values: jax.Array | None = None
    strategy = []
    for number, level in reversed(list(enumerate(tree.levels))):
        if child_values is not None:
            # Or a compiler may lay out all levels before the first is needed.
            leaves, child_values = jax.lax.optimization_barrier((leaves, child_values))
        part = treeplex.leaves_of(level, leaves)
        gains = level.split(treeplex.with_children(part, child, child_values))
        found = [
            _entropy(gain, scale * factor, mid, uniform > 0)
            for gain, factor, mid, uniform in zip(
                gains, weights[number], centre[number], level.uniform, strict=True
            )
        ]
        strategy.append(tuple(played for _, played in found))
        child, child_values = level, treeplex.join([value for value, _ in found])
    if child_values is not None:
        root = root + child_values.sum()
    return Response(root, tuple(strategy[::-1]))


def _entropy(
    gains: jax.Array, scale: jax.Array, centre: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """max over b of b·gains − scale · Σ b log(b / centre): value [n], b [A, n]."""
    if gains.shape[0] == 1:
        # A centre that is no distribution would count here, too; none has one action.
        return gains[0], jnp.ones_like(gains)
    logs = jnp.log(jnp.maximum(centre, _TINY))
    exponents = jnp.where(legal, gains / scale[None] + logs, -jnp.inf)
    top = exponents.max(axis=0)
    top = jnp.where(jnp.isfinite(top), top, 0)
    powers = jnp.exp(exponents - top[None])
    total = treeplex.sum_rows(powers)
    total = jnp.where(total > 0, total, 1)
    return scale * (top + jnp.log(total)), powers / total[None]


# Probabilities below this are taken for it, so that a logarithm is finite and an action
# can come back; float32 has smaller ones.
_TINY = 1e-37


def make_weights(form: SequenceForm, player: int) -> Weights:
    """The weights w_j of a player's infosets; numpy arrays.

    w_j = 2 + 2 max_a Σ w_j' over the infosets j' that follow action a (Kroer, Waugh,
    Kılınç-Karzan & Sandholm 2020, "Faster algorithms for extensive-form game solving
    via improved smoothing functions", theorem 5.1), over the largest of all.

    Args:
      form: the game.
      player: whose.
    """
    tree, decisions = form.arrays[player], form.decisions[player]
    weight, owner = np.zeros(len(decisions)), decisions.owner
    below = np.zeros(decisions.num_sequences)
    for infosets, mine in decisions.upwards():
        np.maximum.at(weight, owner[mine], below[mine])
        weight[infosets] = 2 + 2 * weight[infosets]
        np.add.at(below, decisions.parent[infosets], weight[infosets])
    weight /= weight.max(initial=1)
    size = sum(level.num_infosets for level in tree.levels)
    by_position = np.ones(size)
    by_position[form.layouts[player].infosets] = weight
    found: list[tuple[jax.Array, ...]] = []
    begin = 0
    for level in tree.levels:
        blocks = []
        for _, n in level.shapes:
            blocks.append(typed(by_position[begin : begin + n]))
            begin += n
        found.append(tuple(blocks))
    return tuple(found)


def mix(share: jax.Array, old: jax.Array, new: jax.Array) -> jax.Array:
    """(1 − share) · old + share · new."""
    return old + share * (new - old)


def uniform_centre(tree: Treeplex) -> Blocks:
    """The uniform strategy as a centre; blocks [A, 1] where nothing is padded."""
    return tuple(level.uniform for level in tree.levels)
