"""Third stage: infosets that share one row of regrets, for abstraction and forgetting.

A map infoset → bucket makes all infosets of a bucket play one strategy. The game itself
stays as it is: reach, values and NashConv are those of the game with perfect recall;
only regrets are added up within a bucket before they are matched. This is CFR on games
with imperfect recall (Waugh et al. 2009, "A practical use of imperfect recall"; Lanctot
et al. 2012, "No-regret learning in extensive-form games with imperfect recall").
"""

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr import (
    expansion,
    information,
    packing,
    ranking,
    regret,
    replay,
    sequence_form,
    treeplex,
)
from spiel_cr import tree as tree_lib

__all__ = [
    "Buckets",
    "Labels",
    "Sharing",
    "counts",
    "digest",
    "initial_regrets",
    "labels_of",
    "lay_out",
    "pool",
    "sweep",
]

# What one player's infosets share: nothing, numbers int [I], or a name for each
# information-state string (strings that are left out keep buckets of their own).
OneMap: TypeAlias = Mapping[str, Hashable] | Sequence[int] | np.ndarray | None
Buckets: TypeAlias = tuple[OneMap, OneMap]

# For each player int32 [I], the bucket of each logical infoset, numbered from 0, all in
# use; None where every infoset is alone.
Labels: TypeAlias = tuple[np.ndarray | None, np.ndarray | None]

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


def labels_of(
    tree: tree_lib.CompiledGame,
    buckets: Buckets | None = None,
    *,
    imperfect_recall: bool = False,
) -> Labels:
    """Numbers the buckets that somebody asked for.

    Args:
      tree: the compiled game.
      buckets: for each player None, numbers [I] by logical infoset, or a mapping from
        information-state strings to anything hashable.
      imperfect_recall: let the game say what players forget, by a method
        `bucket_key(player)` of its states, or `bucket_key(states, player)` of its
        expansion, with integers [n] or [n, k].

    Raises:
      ValueError: both were given, the game has no `bucket_key`, a map does not fit the
        game, or infosets of one bucket have different legal actions.
    """
    if imperfect_recall and buckets is not None:
        raise ValueError(
            "imperfect_recall=True takes the game's own buckets; leave out buckets"
        )
    labels: list[np.ndarray | None] = [None, None]
    if buckets is not None and len(buckets) != 2:
        raise ValueError(
            f"buckets has {len(buckets)} entries; give one for each of the two players"
        )
    for player in range(2):
        if imperfect_recall:
            mine: np.ndarray | None = _of_game(tree, player)
        else:
            mine = _of_user(tree, None if buckets is None else buckets[player], player)
        if mine is not None and len(mine):
            _check_actions(tree, mine, player)
            labels[player] = mine
    return labels[0], labels[1]


def counts(tree: tree_lib.CompiledGame, labels: Labels) -> tuple[int, int]:
    """How many buckets each player has; infosets, where it has no map."""
    first, second = (
        len(infosets) if mine is None else int(mine.max()) + 1
        for infosets, mine in zip(tree.infosets, labels, strict=True)
    )
    return first, second


def digest(labels: Labels) -> str | None:
    """A hash that tells maps apart, for checkpoints; None where there are none."""
    if all(mine is None for mine in labels):
        return None
    parts = (b"" if mine is None else mine.tobytes() for mine in labels)
    return hashlib.sha256(b"|".join(parts)).hexdigest()


def _of_user(
    tree: tree_lib.CompiledGame, given: OneMap, player: int
) -> np.ndarray | None:
    """One player's labels from a mapping or from numbers."""
    infosets = tree.infosets[player]
    if given is None:
        return None
    if isinstance(given, Mapping):
        unknown = set(given) - set(infosets.keys)
        if unknown:
            raise ValueError(
                f"buckets[{player}] names {min(unknown)!r}, which is no information "
                f"state of player {player} in {tree.game}"
            )
        # Tuples, so that no bucket has the name of an infoset that is left out.
        keys = [(0, given[k]) if k in given else (1, k) for k in infosets.keys]
        return _number(keys)
    numbers = np.asarray(given)
    whole = numbers.dtype.kind in "iu" or not numbers.size
    if numbers.shape != (len(infosets),) or not whole:
        raise ValueError(
            f"buckets[{player}] is {numbers.dtype} {list(numbers.shape)}; give "
            f"integers [{len(infosets)}], one for each infoset of player {player}, or "
            f"a mapping from information-state strings"
        )
    return ranking.ranks([numbers]) if len(numbers) else np.zeros(0, np.int32)


def _of_game(tree: tree_lib.CompiledGame, player: int) -> np.ndarray:
    """One player's labels by the game's own `bucket_key`."""
    infosets, game = tree.infosets[player], tree.game
    if not len(infosets):
        return np.zeros(0, np.int32)
    paths = tree.histories.paths_to(infosets.history)
    rules = expansion.of_game(game)
    key = getattr(rules, "bucket_key", None)
    if rules is not None and callable(key):
        states = replay.states_along(rules, paths)
        return ranking.ranks([np.asarray(key(some, player)) for some in states])
    keys: list[Hashable] = [None] * len(paths)
    for number, state in information.states_along(game, paths):
        key = getattr(state, "bucket_key", None)
        if not callable(key):
            raise ValueError(
                f"{game} does not say what its players forget: its states have no "
                f"method bucket_key; give buckets instead of imperfect_recall=True"
            )
        keys[number] = key(player)
    return _number(keys)


def _number(keys: Iterable[Hashable]) -> np.ndarray:
    """int32 [I], equal numbers from 0 for equal keys."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], np.int32)


def _check_actions(
    tree: tree_lib.CompiledGame, labels: np.ndarray, player: int
) -> None:
    """Raises ValueError where a bucket holds different legal actions."""
    infosets = tree.infosets[player]
    decisions = infosets.decisions
    owner, first = decisions.owner[1:], decisions.first_sequence
    usual = _first_members(labels)[labels]
    other = decisions.num_actions != decisions.num_actions[usual]
    # The action at the same place, as far as there is one.
    place = np.arange(1, decisions.num_sequences) - first[owner]
    there = np.minimum(first[usual[owner]] + place, decisions.num_sequences - 1)
    differs = infosets.actions != infosets.actions[there - 1]
    other |= np.bincount(owner, weights=differs, minlength=len(infosets)) > 0
    if not other.any():
        return
    odd = int(np.flatnonzero(other)[0])
    pair = [
        f"{infosets.keys[i]!r} "
        f"{infosets.actions[first[i] - 1 :][: decisions.num_actions[i]].tolist()}"
        for i in (odd, int(usual[odd]))
    ]
    raise ValueError(
        f"{tree.game}: infosets of player {player} with different legal actions are in "
        f"one bucket: {pair[0]} and {pair[1]}; put them into buckets of their own"
    )


def _first_members(labels: np.ndarray) -> np.ndarray:
    """int64 [B], the first infoset of each bucket."""
    members = np.empty(int(labels.max()) + 1, np.int64)
    members[labels[::-1]] = np.arange(len(labels))[::-1]  # the first comes last, stays
    return members


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
    actions = decisions.num_actions[_first_members(labels)]
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
    rule: regret.Rule,
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
    size = sum(uniform.size for uniform in sharing.uniform)
    gained = jnp.zeros(size + 1, leaves.dtype)
    child: treeplex.Level | None = None
    child_values: jax.Array | None = None
    values = []
    for level, into, blocks in reversed(
        list(zip(tree.levels, sharing.into, strategy, strict=True))
    ):
        actions = treeplex.values_below(level, leaves, child, child_values)
        means = [
            treeplex.sum_rows(probabilities * action)
            for probabilities, action in zip(blocks, actions, strict=True)
        ]
        flat = [(a - mean).reshape(-1) for a, mean in zip(actions, means, strict=True)]
        gained = gained.at[into].add(treeplex.join(flat))
        child, child_values = level, treeplex.join(means)
        values.append(child_values)
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
            updated, played = regret.update(
                rule, old, new, uniform, tolerance, iteration
            )
        new_regrets.append(updated)
        matched.append(played.reshape(-1))
    # Padding of the treeplex plays with probability zero.
    table = jnp.concatenate([*matched, jnp.zeros(1, leaves.dtype)])
    next_strategy = tuple(
        tuple(_blocks(table[into], level.uniform))
        for level, into in zip(tree.levels, sharing.into, strict=True)
    )
    return values, (tuple(new_regrets),), next_strategy


def pool(
    decisions: sequence_form.Decisions, labels: np.ndarray, reach: np.ndarray
) -> np.ndarray:
    """Adds up reach of sequences over buckets; the average strategy is in proportion.

    A bucket's cumulative strategy is the sum, over iterations and over its infosets, of
    the infoset's own reach times the strategy. Summing the average sequence form over
    the infosets of a bucket gives the same. (Lanctot et al. 2012 add up histories, not
    infosets: there an infoset weighs the more, the more histories it has.)

    Args:
      decisions: of one player.
      labels: int32 [I], the bucket of each infoset.
      reach: float64 [S], the average strategy in sequence form.

    Returns:
      float64 [S]: for each sequence the sum over its bucket. Not a sequence form.
    """
    owner = decisions.owner[1:]
    action = np.arange(1, decisions.num_sequences) - decisions.first_sequence[owner]
    place = labels[owner].astype(np.int64) * int(decisions.num_actions.max()) + action
    total = np.bincount(place, weights=reach[1:])
    return np.concatenate([reach[:1], total[place]])
