"""Third stage: regrets of buckets, added up over their infosets, then matched.

This is CFR on games with imperfect recall (Waugh et al. 2009, "A practical use of
imperfect recall"; Lanctot et al. 2012, "No-regret learning in extensive-form games with
imperfect recall"). Full-width solvers take `sweep`, those that sample take `update`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.cfr import abstraction, regret_matching
from spiel_cr.sequence_form import layout as sequence_form
from spiel_cr.sequence_form import packing, treeplex

# What one more block of buckets costs, in array elements; as in `sequence_form`.
_BLOCK_OVERHEAD = 4000


class Sharing(NamedTuple):
    """Where one player's infosets keep their regrets.

    A bucket's actions have places in blocks [A, B], actions major, as infosets have in
    a treeplex; P is the number of all places.

    Attributes:
      into: for each level of the treeplex int32 [m], the place of each of its
        sequences; P at padding.
      uniform: one float [A, B] for each block: the uniform strategy, 0 at padding.
      tolerance: the same: sum of the members' `treeplex.Level.tolerance`.
    """

    into: tuple[jax.Array, ...]
    uniform: tuple[jax.Array, ...]
    tolerance: tuple[jax.Array, ...]


def lay_out(
    form: sequence_form.SequenceForm, player: int, labels: np.ndarray | None
) -> Sharing | None:
    """Chooses blocks and places for one player's buckets; numpy arrays.

    Args:
      form: the game.
      player: whose buckets.
      labels: int32 [I], the bucket of each logical infoset; None gives None.
    """
    if labels is None:
        return None
    decisions, layout = form.decisions[player], form.layouts[player]
    actions = decisions.num_actions[abstraction.first_members(labels)]
    ranked = np.argsort(-actions, kind="stable")
    first, stride = np.zeros(len(actions), np.int64), np.zeros(len(actions), np.int64)
    legal = []
    size = 0
    for places, high in packing.groups(actions[ranked], _BLOCK_OVERHEAD):
        members = ranked[places]
        first[members] = size + np.arange(len(members))
        stride[members] = len(members)
        legal.append(np.arange(high)[:, None] < actions[members])
        size += legal[-1].size
    owner = decisions.owner[1:]
    action = np.arange(1, decisions.num_sequences) - decisions.first_sequence[owner]
    into = np.full(layout.size, size, np.int32)
    into[layout.sequences[1:]] = first[labels[owner]] + action * stride[labels[owner]]
    levels = form.arrays[player].levels
    ends = 1 + np.cumsum([level.source.size for level in levels])
    tolerance = np.concatenate(
        [np.asarray(block).reshape(-1) for level in levels for block in level.tolerance]
    )
    total = np.bincount(
        into[1:],
        weights=np.where(np.isfinite(tolerance), tolerance, 0),
        minlength=size + 1,
    )
    mask = np.concatenate([block.reshape(-1) for block in legal])
    summed = _blocks(np.where(mask, total[:-1], np.inf), legal)
    uniform = [block / block.sum(axis=0) for block in legal]
    return Sharing(
        into=_host(np.split(into[1:], ends[:-1] - 1)),
        uniform=_host(uniform),
        tolerance=_host(summed),
    )


def _host(arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """Types numpy arrays as what they become on a device."""
    return tuple(arrays)


def _blocks(flat: Any, shapes: Sequence[Any]) -> list[Any]:
    """Cuts a vector into arrays of the shapes of others."""
    blocks, begin = [], 0
    for like in shapes:
        blocks.append(flat[begin : begin + like.size].reshape(like.shape))
        begin += like.size
    return blocks


def initial_regrets(sharing: Sharing) -> treeplex.Blocks:
    """Zero regrets, [A, B] a block of buckets."""
    namespace = sharing.into[0].__array_namespace__()
    return (tuple(namespace.zeros_like(uniform) for uniform in sharing.uniform),)


def sweep(
    rule: regret_matching.Rule,
    tree: treeplex.Treeplex,
    sharing: Sharing,
    strategy: treeplex.Blocks,
    regrets: treeplex.Blocks,
    leaves: jax.Array,
    iteration: jax.Array,
) -> tuple[list[jax.Array], treeplex.Blocks, treeplex.Blocks]:
    """One player's pass up the tree; regrets are added up by bucket, then matched.

    A bucket's regret of an action is the sum of the counterfactual regrets of its
    infosets (Lanctot et al. 2012, section 3, where the sum runs over histories). All of
    them are taken under the strategy before the update, so it does not matter that
    infosets of several levels may share a bucket.

    Args:
      rule: regret rule.
      tree: the player's treeplex.
      sharing: its buckets.
      strategy: behaviour strategy, [A, n] a block of infosets.
      regrets: cumulative regrets, one tuple of [A, B] a block of buckets.
      leaves: from `treeplex.leaf_values`.
      iteration: float scalar, from 1.

    Returns:
      Infoset values [n] of each level, the last level first; new regrets; the next
      strategy, the same at all infosets of a bucket.
    """
    child: treeplex.Level | None = None
    child_values: jax.Array | None = None
    actions, values = [], []
    for level, blocks in reversed(list(zip(tree.levels, strategy, strict=True))):
        actions.append(treeplex.values_below(level, leaves, child, child_values))
        means = _means(blocks, actions[-1])
        child, child_values = level, treeplex.join(means)
        values.append(child_values)
    return values, *update(
        rule, tree, sharing, strategy, regrets, actions[::-1], iteration
    )


def update(
    rule: regret_matching.Rule,
    tree: treeplex.Treeplex,
    sharing: Sharing,
    strategy: treeplex.Blocks,
    regrets: treeplex.Blocks,
    actions: Sequence[Sequence[jax.Array]],
    iteration: jax.Array,
) -> tuple[treeplex.Blocks, treeplex.Blocks]:
    """Adds up regrets by bucket and matches them.

    Args:
      rule, tree, sharing, strategy, regrets, iteration: as for `sweep`.
      actions: values of actions, or estimates of them, [A, n] a block of infosets.

    Returns:
      New regrets; the next strategy.
    """
    size = sum(uniform.size for uniform in sharing.uniform)
    gained = jnp.zeros(size + 1, sharing.uniform[0].dtype)
    for into, blocks, worth in reversed(
        list(zip(sharing.into, strategy, actions, strict=True))
    ):
        means = _means(blocks, worth)
        flat = [
            (a - mean[None]).reshape(-1) for a, mean in zip(worth, means, strict=True)
        ]
        gained = gained.at[into].add(treeplex.join(flat))
    new_regrets, matched = [], []
    for old, new, uniform, tolerance in zip(
        regrets[0],
        _blocks(gained, sharing.uniform),
        sharing.uniform,
        sharing.tolerance,
        strict=True,
    ):
        if uniform.shape[0] == 1:
            updated, played = old, uniform
        else:
            updated, played = regret_matching.update(
                rule, old, new, uniform, tolerance, iteration
            )
        new_regrets.append(updated)
        matched.append(played.reshape(-1))
    # Padding of the treeplex plays with probability zero.
    table = jnp.concatenate([*matched, jnp.zeros(1, gained.dtype)])
    next_strategy = tuple(
        tuple(_blocks(table[into], level.uniform))
        for level, into in zip(tree.levels, sharing.into, strict=True)
    )
    return (tuple(new_regrets),), next_strategy


def _means(
    strategy: Sequence[jax.Array], actions: Sequence[jax.Array]
) -> list[jax.Array]:
    """Values of infosets, [n] a block."""
    return [
        treeplex.sum_rows(probabilities * action)
        for probabilities, action in zip(strategy, actions, strict=True)
    ]
