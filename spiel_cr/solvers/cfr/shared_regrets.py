"""Shared regrets: the regrets of a bucket's infosets are summed before matching.

This is CFR on games with imperfect recall (Waugh et al. 2009, "A practical use of
imperfect recall"; Lanctot et al. 2012, "No-regret learning in extensive-form games with
imperfect recall").
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.games.sequence_form import layout as sequence_form
from spiel_cr.games.sequence_form import packing, treeplex
from spiel_cr.solvers.cfr import bucket_labels, regret_matching

# Cost of one more block of buckets, in array elements.
_BLOCK_OVERHEAD = 4000


class SharedRegrets(NamedTuple):
    """Places of one player's regrets in blocks of buckets.

    The actions of buckets have places in blocks [A, B], actions major, like those of
    infosets in a treeplex; P is the number of all places.

    Attributes:
      into: Place of each sequence, int32 [m] for each level of the treeplex; P at
        padding.
      uniform: Uniform strategy, float [A, B] for each block, 0 at padding.
      tolerance: Sum of the members' `treeplex.Level.tolerance`, float [A, B] for each
        block.
    """

    into: tuple[jax.Array, ...]
    uniform: tuple[jax.Array, ...]
    tolerance: tuple[jax.Array, ...]


def lay_out(
    form: sequence_form.SequenceForm,
    player: int,
    labels: np.ndarray | None,
    exponent: int = 0,
) -> SharedRegrets | None:
    """Choose blocks and places for one player's buckets, as numpy arrays.

    Args:
      form: The game in sequence form.
      player: Player whose infosets are in the buckets.
      labels: Bucket of each logical infoset, int32 [I]; with None, the result is None.
      exponent: Exponent by which the solver scales payoffs; tolerances are divided by
        2^exponent.
    """
    if labels is None:
        return None
    decisions, layout = form.decisions[player], form.layouts[player]
    actions = decisions.num_actions[bucket_labels.first_members(labels)]
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
    ends = 1 + np.cumsum([level.num_sequences for level in levels])
    tolerance = np.concatenate(
        [
            np.broadcast_to(np.asarray(block), shape).reshape(-1)
            for level in levels
            for block, shape in zip(level.tolerance, level.shapes, strict=True)
        ]
    )
    finite = np.where(np.isfinite(tolerance), tolerance, 0)
    total = np.bincount(into[1:], weights=finite, minlength=size + 1)
    mask = np.concatenate([block.reshape(-1) for block in legal])
    total = np.ldexp(total, -exponent)
    summed = _blocks(np.where(mask, total[:-1], np.inf), legal)
    uniform = [block / block.sum(axis=0) for block in legal]
    # These are numpy arrays; the types are those of the arrays on a device.
    fields: list[Any] = [np.split(into[1:], ends[:-1] - 1), uniform, summed]
    return SharedRegrets(*map(tuple, fields))


def _blocks(flat: Any, shapes: Sequence[Any]) -> list[Any]:
    """Split a vector into arrays with the shapes of other arrays."""
    blocks, begin = [], 0
    for like in shapes:
        blocks.append(flat[begin : begin + like.size].reshape(like.shape))
        begin += like.size
    return blocks


def update(
    rule: regret_matching.Rule,
    tree: treeplex.Treeplex,
    shared: SharedRegrets,
    regrets: treeplex.Blocks,
    instantaneous: Sequence[Sequence[jax.Array]],
    iteration: jax.Array,
) -> tuple[treeplex.Blocks, treeplex.Blocks]:
    """Sum regrets by bucket and match them.

    A bucket's regret of an action is the sum of the counterfactual regrets of its
    infosets (Lanctot et al. 2012, section 3, where the sum runs over histories).

    Args:
      rule: Regret rule.
      tree: Treeplex of the player; only its blocks are used.
      shared: Shared regrets of the player.
      regrets: Cumulative regrets, a tuple of one [A, B] per block of buckets.
      instantaneous: Regrets of this iteration, [A, n] per block of infosets, by level.
      iteration: Number of the iteration, from 1, float scalar.

    Returns:
      The new regrets, and the next strategy, which is the same at all infosets of a
      bucket.
    """
    size = sum(uniform.size for uniform in shared.uniform)
    gained = jnp.zeros(size + 1, shared.uniform[0].dtype)
    for into, blocks in reversed(list(zip(shared.into, instantaneous, strict=True))):
        flat = treeplex.join([block.reshape(-1) for block in blocks])
        gained = gained.at[into].add(flat)
    new_regrets, matched = regret_matching.update_blocks(
        rule,
        *(regrets[0], shared.uniform),
        _blocks(gained, shared.uniform),
        shared.uniform,
        shared.tolerance,
        iteration,
    )
    # The probability at padding of the treeplex is zero.
    played = [block.reshape(-1) for block in matched]
    table = jnp.concatenate([*played, jnp.zeros(1, gained.dtype)])
    next_strategy = tuple(
        tuple(level.split(table[into]))
        for level, into in zip(tree.levels, shared.into, strict=True)
    )
    return (new_regrets,), next_strategy
