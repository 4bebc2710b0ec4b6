"""Dilated regularisers of a treeplex, and the strategies that they make best.

A dilated regulariser is d(x) = Σ_j w_j · x_p(j) · d_j(x_j / x_p(j)) over a player's
infosets j: each has a function of its simplex, weighted by how far the player itself
reaches it (Hoda, Gilpin, Peña & Sandholm 2010, "Smoothing techniques for computing Nash
equilibria of sequential games", section 4). d_j is either the entropy relative to a
centre, Σ_a b_a log(b_a / c_a), or half of the squared Euclidean distance from it. Both
are divergences: with the centre of a strategy, d is the Bregman divergence from it.

Gradients and reach are vectors by position (see `games.sequence_form.layout`), in units
of the owner's utility over 2^exponent; strategies are blocks.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.sequence_form.treeplex import Blocks, Level, Treeplex

Kind = Literal["entropy", "euclidean"]
Weighing = Literal["height", "balanced"]
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


class Leaves(NamedTuple):
    """Payoffs of a player's positions, before they are laid out.

    Attributes:
      values: float [R + Z], see `treeplex.leaf_values`.
    """

    values: jax.Array


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


def split(tree: Treeplex, vector: jax.Array) -> list[jax.Array]:
    """Cuts a vector by position into its levels, without the empty sequence."""
    parts, begin = [], 1
    for level in tree.levels:
        end = begin + level.num_sequences
        parts.append(vector[begin:end])
        begin = end
    return parts


def behaviour(tree: Treeplex, reach: jax.Array) -> Blocks:
    """The strategy of a sequence form; uniform where it does not come by."""
    levels = []
    for level, part in zip(tree.levels, split(tree, reach), strict=True):
        blocks = []
        for block, uniform in zip(level.split(part), level.uniform, strict=True):
            total = treeplex.sum_rows(block)[None]
            played = block / jnp.where(total > 0, total, 1)
            blocks.append(jnp.where(total > 0, played, uniform))
        levels.append(tuple(blocks))
    return tuple(levels)


def respond(
    tree: Treeplex,
    kind: Kind,
    weights: Weights,
    slope: jax.Array | Leaves,
    scale: jax.Array,
    centre: Blocks,
) -> Response:
    """Maximises ⟨slope, x⟩ − scale · d(x) over the treeplex, exactly.

    One pass up: an infoset's own problem is solved on its simplex, and its value is
    paid to the sequence before it (Hoda et al. 2010, theorem 4).

    Args:
      tree: the player's treeplex.
      kind: of regulariser.
      weights: of its infosets.
      slope: float [S], payoffs by position; or leaves, of which only one level at a
        time is then laid out.
      scale: float scalar, above 0.
      centre: of the regulariser, one [A, n] or [A, 1] a block; of an entropy its rows
        need not sum to 1.
    """
    local = _entropy if kind == "entropy" else _euclidean
    leaves = slope.values if isinstance(slope, Leaves) else None
    parts = [] if isinstance(slope, Leaves) else split(tree, slope)
    child: Level | None = None
    child_values: jax.Array | None = None
    strategy = []
    for number, level in reversed(list(enumerate(tree.levels))):
        if leaves is None:
            part = parts[number]
        else:
            if child_values is not None:
                # Or a compiler may lay out all levels before the first is needed.
                leaves, child_values = jax.lax.optimization_barrier(
                    (leaves, child_values)
                )
            part = treeplex.leaves_of(level, leaves)
        gains = level.split(treeplex.with_children(part, child, child_values))
        found = [
            local(gain, scale * factor, mid, uniform > 0)
            for gain, factor, mid, uniform in zip(
                gains, weights[number], centre[number], level.uniform, strict=True
            )
        ]
        strategy.append(tuple(played for _, played in found))
        child, child_values = level, treeplex.join([value for value, _ in found])
    value = (
        treeplex.root_value(tree, slope.values)
        if isinstance(slope, Leaves)
        else slope[0]
    )
    if child_values is not None:
        value = value + child_values.sum()
    return Response(value, tuple(strategy[::-1]))


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


def _euclidean(
    gains: jax.Array, scale: jax.Array, centre: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """max over b of b·gains − scale/2 · |b − centre|²: value [n], b [A, n]."""
    if gains.shape[0] == 1:
        return gains[0], jnp.ones_like(gains)
    # Relative to the best action: gains over a small scale are too large to sum up.
    top = jnp.where(legal, gains, -jnp.inf).max(axis=0)
    top = jnp.where(jnp.isfinite(top), top, 0)
    gains = jnp.where(legal, gains - top[None], 0)
    point = jnp.where(legal, centre + gains / scale[None], -jnp.inf)
    # The projection onto the simplex (Held, Wolfe & Crowder 1974): what is taken off
    # is the largest of the means of the k largest entries, less 1/k.
    descending = -jnp.sort(-point, axis=0)
    counts = jnp.arange(1, len(point) + 1, dtype=point.dtype)[:, None]
    off = ((jnp.cumsum(descending, axis=0) - 1) / counts).max(axis=0)
    off = jnp.where(jnp.isfinite(off), off, 0)
    played = jnp.where(legal, jnp.maximum(point - off[None], 0), 0)
    total = treeplex.sum_rows(played)
    played = played / jnp.where(total > 0, total, 1)[None]
    gain = top + treeplex.sum_rows(played * gains)
    distance = treeplex.sum_rows(jnp.where(legal, played - centre, 0) ** 2)
    return gain - scale * distance / 2, played


def make_weights(form: SequenceForm, player: int, weighing: Weighing) -> Weights:
    """The weights w_j of a player's infosets; numpy arrays.

    Args:
      form: the game.
      player: whose.
      weighing: "height": one more than the decisions that can follow at most.
        "balanced": w_j = 2 + 2 max_a Σ w_j' over the infosets j' that follow
        action a (Kroer, Waugh, Kılınç-Karzan & Sandholm 2020, "Faster algorithms for
        extensive-form game solving via improved smoothing functions", theorem 5.1),
        over the largest of all.
    """
    tree, decisions = form.arrays[player], form.decisions[player]
    weight = np.zeros(len(decisions))
    levels, owner = decisions.levels(), decisions.owner
    below = np.zeros(decisions.num_sequences)
    for depth in range(int(levels.max(initial=-1)), -1, -1):
        infosets = np.flatnonzero(levels == depth)
        mine = 1 + np.flatnonzero(levels[owner[1:]] == depth)
        np.maximum.at(weight, owner[mine], below[mine])
        if weighing == "height":
            weight[infosets] += 1
            np.maximum.at(below, decisions.parent[infosets], weight[infosets])
        else:
            weight[infosets] = 2 + 2 * weight[infosets]
            np.add.at(below, decisions.parent[infosets], weight[infosets])
    if weighing == "balanced":
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


def diameter(form: SequenceForm, player: int, kind: Kind, weights: Weights) -> float:
    """The largest value that a player's regulariser takes, its centre uniform.

    Args:
      form: the game.
      player: whose.
      kind: of regulariser.
      weights: from `make_weights`, numpy arrays.
    """
    decisions, layout = form.decisions[player], form.layouts[player]
    by_position = np.concatenate(
        [
            np.broadcast_to(np.asarray(factor), n)
            for level, factors in zip(form.arrays[player].levels, weights, strict=True)
            for (_, n), factor in zip(level.shapes, factors, strict=True)
        ]
        or [np.zeros(0)]
    )
    count = decisions.num_actions
    own = np.log(count) if kind == "entropy" else (1 - 1 / count) / 2
    total = by_position[layout.infosets] * own
    levels, owner = decisions.levels(), decisions.owner
    below = np.zeros(decisions.num_sequences)
    for depth in range(int(levels.max(initial=-1)), -1, -1):
        infosets = np.flatnonzero(levels == depth)
        mine = 1 + np.flatnonzero(levels[owner[1:]] == depth)
        most = np.zeros(len(decisions))
        np.maximum.at(most, owner[mine], below[mine])
        total[infosets] += most[infosets]
        np.add.at(below, decisions.parent[infosets], total[infosets])
    return float(below[0])


def mix(share: jax.Array, old: jax.Array, new: jax.Array) -> jax.Array:
    """(1 − share) · old + share · new."""
    return old + share * (new - old)


def uniform_centre(tree: Treeplex) -> Blocks:
    """The uniform strategy as a centre; blocks [A, 1] where nothing is padded."""
    return tuple(level.uniform for level in tree.levels)
