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
from spiel_cr.games.sequence_form.decisions import Decisions
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
      moduli: Lower bounds on the moduli of strong convexity of the prox functions,
        float [2]: for the entropy in the 1-norm, otherwise in the 2-norm.
    """

    trees: tuple[Treeplex, Treeplex]
    weights: tuple[Weights, Weights]
    diameters: jax.Array
    moduli: jax.Array


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


def make_weights(form: SequenceForm, player: int) -> np.ndarray:
    """Compute the weights w_j of a player's infosets, float64 [I] by logical infoset.

    w_j = 1 + max_a Σ w_j' over the infosets j' that follow action a (Farina, Kroer &
    Sandholm 2025, "Better regularization for sequential decision spaces", for the
    entropy). Forced moves have no prox function.
    """
    decisions = form.decisions[player]
    return _largest_totals(decisions, decisions.num_actions > 1)


def _largest_totals(decisions: Decisions, terms: np.ndarray) -> np.ndarray:
    """Return for each infoset its term plus the largest total after an action."""
    totals, below = np.zeros(len(decisions)), np.zeros(decisions.num_sequences)
    for infosets, sequences in decisions.upwards():
        np.maximum.at(totals, decisions.owner[sequences], below[sequences])
        totals[infosets] += terms[infosets]
        np.add.at(below, decisions.parent[infosets], totals[infosets])
    return totals


def _prox_function(
    form: SequenceForm, player: int, prox: str
) -> tuple[Weights, float, float]:
    """Return the weights by block, the diameter and the modulus of a prox function.

    For the entropy, the second derivative of d in a direction h is at least Σ_s h_s² /
    x_s over all sequences s, so that the modulus is 1 divided by the largest sum of
    reach, in the 1-norm. For the Euclidean distance, it is at least 1 divided by the
    number of levels in the 2-norm: by induction over the d lowest levels, the least
    second derivative for a given h of the parent sequence is −w_j h² / (1 / σ − d).
    Weights are divided by the largest one.
    """
    tree, decisions = form.arrays[player], form.decisions[player]
    weight, roots = make_weights(form, player), decisions.parent == 0
    count = decisions.num_actions
    extent = max(len(tree.levels), 1.0)
    local = (1 - 1 / count) / 2
    if prox == "entropy":
        extent, local = 1 + weight[roots].sum(), np.log(count)
    extent *= weight.max(initial=1)
    weight /= weight.max(initial=1)
    by_sequence = np.append(1.0, np.repeat(weight, count))
    by_position = form.layouts[player].by_position(by_sequence, padding=1.0)
    parts = treeplex.by_level(tree.levels, by_position)
    by_block = tuple(
        tuple(typed(np.asarray(block)[0]) for block in level.split(part))
        for level, part in zip(tree.levels, parts, strict=True)
    )
    diameter = _largest_totals(decisions, weight * local)[roots].sum()
    return by_block, float(diameter), 1 / extent


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
    (first, *first_sizes), (second, *second_sizes) = (
        _prox_function(form, player, prox) for player in range(2)
    )
    diameters, moduli = typed(np.array([first_sizes, second_sizes])).T
    return SmoothedProblem(trees, (first, second), diameters, moduli)
