"""Dilated prox functions of treeplexes, and smoothed best responses.

A dilated prox function is d(x) = Σ_j w_j · x_p(j) · d_j(x_j / x_p(j)) over a player's
infosets j: each infoset has a prox function of its simplex, weighted by w_j and by the
reach x_p(j) of its parent sequence (Hoda, Gilpin, Peña & Sandholm 2010, "Smoothing
techniques for computing Nash equilibria of sequential games", section 4). d_j is the
entropy relative to a centre c, Σ_a b_a log(b_a / c_a), or half of the squared Euclidean
distance from the centre. Both are Bregman divergences from the centre.

Gradients and reach are vectors by position (see `games.sequence_form.layout`), in the
owner's utility divided by 2^exponent; strategies are blocks.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.sequence_form.treeplex import Blocks, Level, Treeplex
from spiel_cr.solvers.first_order.primal_dual import gradient

# For each block of each level a factor [n], one per infoset.
Weights = tuple[tuple[jax.Array, ...], ...]
Pair = tuple[jax.Array, jax.Array]
# Least probability before a logarithm is taken; float32 represents smaller numbers.
_TINY = 1e-37


class SmoothedProblem(NamedTuple):
    """A game and the prox functions of both players.

    Attributes:
      trees: Treeplex of each player, payoffs divided by 2^exponent.
      weights: Weights w_j of each player.
      diameters: Largest values of the prox functions centred at the uniform
        strategies, float [2].
    """

    trees: tuple[Treeplex, Treeplex]
    weights: tuple[Weights, Weights]
    diameters: jax.Array


class Response(NamedTuple):
    """A smoothed best response.

    Attributes:
      value: Maximum of payoff minus prox function, float scalar.
      strategy: Behaviour strategy that attains it, blocks.
    """

    value: jax.Array
    strategy: Blocks


def gradients(problem: SmoothedProblem, reach: Pair) -> Pair:
    """Return each player's gradient at the other player's reach, float [S]."""
    first, second = problem.trees
    return gradient(first, reach[1]), gradient(second, reach[0])


def reach_of(problem: SmoothedProblem, strategies: tuple[Blocks, Blocks]) -> Pair:
    """Return both players' strategies in sequence form, float [S]."""
    first, second = map(treeplex.reach, problem.trees, strategies)
    return first, second


def behaviour(tree: Treeplex, reach: jax.Array) -> Blocks:
    """Return the behaviour strategy of a sequence form, uniform where it is 0."""
    levels = []
    parts = treeplex.by_level(tree.levels, reach)
    for level, part in zip(tree.levels, parts, strict=True):
        blocks = []
        for block, default in zip(level.split(part), level.uniform, strict=True):
            total = treeplex.sum_rows(block)[None]
            strategy = block / jnp.where(total > 0, total, 1)
            blocks.append(jnp.where(total > 0, strategy, default))
        levels.append(tuple(blocks))
    return tuple(levels)


def mix(share: jax.Array, old: jax.Array, new: jax.Array) -> jax.Array:
    """Return (1 − share) · old + share · new."""
    return old + share * (new - old)


def respond(
    tree: Treeplex,
    prox: str,
    weights: Weights,
    slope: jax.Array,
    scale: jax.Array,
    centre: Blocks | None = None,
) -> Response:
    """Maximise ⟨slope, x⟩ − scale · d(x) over the treeplex, exactly.

    From the last level to the first, each infoset solves its problem on its simplex,
    and its value is added to its parent sequence (Hoda et al. 2010, theorem 4).

    Args:
      tree: Treeplex of the player.
      prox: Prox function of the simplices, "euclidean" or "entropy", or "none" for the
        value of a best response.
      weights: Weights of the infosets.
      slope: Payoffs by position, float [S].
      scale: Factor of the prox function, float scalar above 0.
      centre: Centre of the prox function, [A, n] or [A, 1] for each block; None:
        uniform.
    """
    solve = {"entropy": _entropy, "euclidean": _euclidean, "none": _largest}[prox]
    centre = centre or tuple(level.uniform for level in tree.levels)
    child: Level | None = None
    child_values: jax.Array | None = None
    strategy = []
    parts = treeplex.by_level(tree.levels, slope)
    for number, level in reversed(list(enumerate(tree.levels))):
        gains = level.split(treeplex.with_children(parts[number], child, child_values))
        solved = [
            solve(gain, scale * factor, middle, legal > 0)
            for gain, factor, middle, legal in zip(
                gains, weights[number], centre[number], level.uniform, strict=True
            )
        ]
        strategy.append(tuple(block for _, block in solved))
        child, child_values = level, treeplex.join([value for value, _ in solved])
    value = slope[0] if child_values is None else slope[0] + child_values.sum()
    return Response(value, tuple(strategy[::-1]))


def respond_both(
    problem: SmoothedProblem,
    prox: str,
    slopes: Pair,
    scale: jax.Array,
    centres: tuple[Blocks | None, Blocks | None] = (None, None),
) -> tuple[Response, Response]:
    """Return the smoothed best responses of both players, see `respond`."""
    first, second = (
        respond(tree, prox, weights, slope, scale, centre)
        for tree, weights, slope, centre in zip(
            problem.trees, problem.weights, slopes, centres, strict=True
        )
    )
    return first, second


def _largest(
    gains: jax.Array, scale: jax.Array, centre: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the largest legal gains [n], 0 at padding, and the gains [A, n]."""
    top = jnp.where(legal, gains, -jnp.inf).max(axis=0)
    return jnp.where(jnp.isfinite(top), top, 0), gains


def _entropy(
    gains: jax.Array, scale: jax.Array, centre: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Maximise b·gains − scale · Σ b log(b / centre): values [n], strategies [A, n]."""
    if gains.shape[0] == 1:
        return gains[0], jnp.ones_like(gains)
    exponents = gains / scale[None] + jnp.log(jnp.maximum(centre, _TINY))
    top, _ = _largest(exponents, scale, centre, legal)
    powers = jnp.where(legal, jnp.exp(exponents - top[None]), 0)
    total = treeplex.sum_rows(powers)
    total = jnp.where(total > 0, total, 1)
    return scale * (top + jnp.log(total)), powers / total[None]


def _euclidean(
    gains: jax.Array, scale: jax.Array, centre: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Maximise b·gains − scale/2 · |b − centre|²: values [n], strategies [A, n].

    The maximum is a projection onto the simplex (Held, Wolfe & Crowder 1974): the
    subtracted number is the largest of the means of the k largest entries minus 1/k.
    """
    if gains.shape[0] == 1:
        return gains[0], jnp.ones_like(gains)
    # Gains are relative to the best action: divided by a small scale they are too
    # large to be added up.
    top, _ = _largest(gains, scale, centre, legal)
    gains = jnp.where(legal, gains - top[None], 0)
    point = jnp.where(legal, centre + gains / scale[None], -jnp.inf)
    descending = -jnp.sort(-point, axis=0)
    counts = jnp.arange(1, len(point) + 1, dtype=point.dtype)[:, None]
    shift = ((jnp.cumsum(descending, axis=0) - 1) / counts).max(axis=0)
    shift = jnp.where(jnp.isfinite(shift), shift, 0)
    strategy = jnp.where(legal, jnp.maximum(point - shift[None], 0), 0)
    total = treeplex.sum_rows(strategy)
    strategy = strategy / jnp.where(total > 0, total, 1)[None]
    gain = top + treeplex.sum_rows(strategy * gains)
    distance = treeplex.sum_rows(jnp.where(legal, strategy - centre, 0) ** 2)
    return gain - scale * distance / 2, strategy


def make_weights(
    form: SequenceForm, player: int, prox: str
) -> tuple[Weights, np.ndarray]:
    """Compute the weights w_j of a player's infosets.

    w_j = 2 + 2 max_a Σ w_j' over the infosets j' that follow action a (Kroer, Waugh,
    Kılınç-Karzan & Sandholm 2020, "Faster algorithms for extensive-form game solving
    via improved smoothing functions", theorem 5.1), divided by the largest of them. For
    the Euclidean distance their square roots are taken: on Leduc poker, where this was
    tried, both methods then need fewer gradients.

    Args:
      form: The game in sequence form.
      player: Player whose infosets get weights.
      prox: Prox function of the simplices, "euclidean" or "entropy".

    Returns:
      The weights by block, and float64 [I] by logical infoset.
    """
    tree, decisions = form.arrays[player], form.decisions[player]
    weight, owner = np.zeros(len(decisions)), decisions.owner
    below = np.zeros(decisions.num_sequences)
    for infosets, sequences in decisions.upwards():
        np.maximum.at(weight, owner[sequences], below[sequences])
        # Forced moves have no prox function.
        free = infosets[decisions.num_actions[infosets] > 1]
        weight[free] = 2 + 2 * weight[free]
        np.add.at(below, decisions.parent[infosets], weight[infosets])
    weight /= weight.max(initial=1)
    if prox == "euclidean":
        weight = np.sqrt(weight)
    by_sequence = np.append(1.0, np.repeat(weight, decisions.num_actions))
    by_position = form.layouts[player].by_position(by_sequence, padding=1.0)
    parts = treeplex.by_level(tree.levels, by_position)
    levels = tuple(
        tuple(typed(np.asarray(block)[0]) for block in level.split(part))
        for level, part in zip(tree.levels, parts, strict=True)
    )
    return levels, weight


def _diameter(form: SequenceForm, player: int, weight: np.ndarray, prox: str) -> float:
    """Return the largest value of a player's prox function, centred at uniform play."""
    decisions = form.decisions[player]
    count = decisions.num_actions
    largest = np.log(count) if prox == "entropy" else (1 - 1 / count) / 2
    total, owner = np.zeros(len(decisions)), decisions.owner
    below = np.zeros(decisions.num_sequences)
    for infosets, sequences in decisions.upwards():
        np.maximum.at(total, owner[sequences], below[sequences])
        total[infosets] += weight[infosets] * largest[infosets]
        np.add.at(below, decisions.parent[infosets], total[infosets])
    return float(below[0])


def smoothed_problem(
    form: SequenceForm, trees: tuple[Treeplex, Treeplex], prox: str
) -> SmoothedProblem:
    """Make the problem of methods with prox functions; arrays are numpy arrays.

    Args:
      form: The game in sequence form.
      trees: Treeplex of each player with payoffs divided by 2^exponent.
      prox: Prox function of the simplices, "euclidean" or "entropy".

    Raises:
      ValueError: If the tree is so deep that all infosets share one level.
    """
    if any(tree.ancestors for tree in trees):
        raise ValueError(
            "algorithm: methods with prox functions do not support such deep games; "
            "use pdhg or dcfr"
        )
    weights, diameters = [], []
    for player in range(2):
        by_block, by_infoset = make_weights(form, player, prox)
        weights.append(by_block)
        diameters.append(_diameter(form, player, by_infoset, prox))
    return SmoothedProblem(trees, (weights[0], weights[1]), typed(np.array(diameters)))
