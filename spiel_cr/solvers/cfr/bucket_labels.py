"""Buckets: sets of infosets that share a strategy.

Buckets are used for abstraction and imperfect recall. All infosets of a bucket have the
same strategy. The game itself does not change: reach, values and NashConv are those of
the game with perfect recall. Only regrets are summed within a bucket (see
`shared_regrets.py`).
"""

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from spiel_cr.common import arrays
from spiel_cr.games.game_form import GameForm
from spiel_cr.games.histories import states_at
from spiel_cr.games.opening import batched_rules
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.infostate_strings import batched_states_at
from spiel_cr.games.tree.tree import GameTree

# Buckets of one player: None, numbers int [I], or a name for each information state
# string (infosets that are left out do not share regrets).
OneMap: TypeAlias = Mapping[str, Hashable] | Sequence[int] | np.ndarray | None
Buckets: TypeAlias = tuple[OneMap, OneMap]

# For each player the bucket of each logical infoset, int32 [I], numbered from 0 without
# gaps; None: the player's infosets do not share regrets.
Labels: TypeAlias = tuple[np.ndarray | None, np.ndarray | None]


class BucketedForm(GameForm, Protocol):
    """A form whose infosets may share regrets."""

    def sequence_actions(self, player: int) -> np.ndarray:
        """Return OpenSpiel's action of each sequence but the empty one, [S - 1]."""


def labels_of(
    form: BucketedForm,
    buckets: Buckets | None = None,
    *,
    imperfect_recall: bool = False,
) -> Labels:
    """Number the buckets of both players.

    Args:
      form: A game tree or a public-tree game.
      buckets: Buckets of each player: None, numbers [I] by logical infoset, or, for a
        game tree, a mapping from information state strings to anything hashable.
      imperfect_recall: Whether the game itself defines the buckets, by a method
        `bucket_key(player)` of its states, or `bucket_key(states, player)` of its
        batched rules, which returns integers [n] or [n, k]. For game trees only.

    Raises:
      ValueError: If both are given, the game has no `bucket_key`, a map does not fit
        the game, or infosets of one bucket have different legal actions.
    """
    if imperfect_recall and buckets is not None:
        raise ValueError(
            "imperfect_recall=True uses the game's own buckets; leave out buckets"
        )
    maps = (None, None) if buckets is None else buckets
    if len(maps) != 2:
        raise ValueError(f"buckets: {len(maps)} entries; use one for each player")
    labels: list[np.ndarray | None] = [None, None]
    for player in range(2):
        tree: Any = form  # a tree, if labels depend on information state strings
        if imperfect_recall:
            player_labels = _of_game(tree, player)
        elif isinstance(maps[player], Mapping):
            player_labels = _of_mapping(tree, maps[player], player)
        elif maps[player] is not None:
            player_labels = _of_numbers(form, maps[player], player)
        else:
            continue
        if len(player_labels):
            _check_actions(form, player_labels, player)
            labels[player] = player_labels
    return labels[0], labels[1]


def digest(labels: Labels) -> str | None:
    """Return a hash of buckets, for checkpoints; None if there are no buckets."""
    if all(row is None for row in labels):
        return None
    parts = (b"" if row is None else row.tobytes() for row in labels)
    return hashlib.sha256(b"|".join(parts)).hexdigest()


def _of_mapping(tree: GameTree, buckets: Any, player: int) -> np.ndarray:
    """Return one player's labels by information state string, int32 [I]."""
    keys = tree.infosets[player].keys
    if unknown := set(buckets) - set(keys):
        raise ValueError(
            f"buckets[{player}]: {min(unknown)!r} is not an information state string "
            f"of player {player} in {tree.game}; use those of "
            f"`tree.infosets[{player}].keys`"
        )
    # Tuples, so that no bucket has the name of an infoset that is left out.
    return _number((0, buckets[key]) if key in buckets else (1, key) for key in keys)


def _of_numbers(form: GameForm, buckets: Any, player: int) -> np.ndarray:
    """Return labels by logical infoset, int32 [I]."""
    numbers, infosets = np.asarray(buckets), len(form.decisions[player])
    is_integer = numbers.dtype.kind in "iu" or not numbers.size
    if numbers.shape != (infosets,) or not is_integer:
        raise ValueError(
            f"buckets[{player}] is {numbers.dtype} {list(numbers.shape)}; use "
            f"integers [{infosets}], one for each infoset of player {player}, or, for "
            f"a game tree, a mapping from information-state strings"
        )
    return arrays.ranks([numbers]) if len(numbers) else np.zeros(0, np.int32)


def _of_game(tree: GameTree, player: int) -> np.ndarray:
    """Return one player's labels by the game's `bucket_key`, int32 [I]."""
    infosets, game = tree.infosets[player], tree.game
    if not len(infosets):
        return np.zeros(0, np.int32)
    rules = batched_rules.of_game(game)
    key = getattr(rules, "bucket_key", None)
    if rules is not None and callable(key):
        states = batched_states_at(rules, tree.histories, infosets.history)
        return arrays.ranks([np.asarray(key(some, player)) for some in states])
    keys: list[Hashable] = [None] * len(infosets)
    for number, state in states_at(game, tree.histories, infosets.history):
        key = getattr(state, "bucket_key", None)
        if not callable(key):
            raise ValueError(
                f"imperfect_recall=True: the states of {game} have no method "
                f"bucket_key; use buckets instead"
            )
        keys[number] = key(player)
    return _number(keys)


def _number(keys: Iterable[Hashable]) -> np.ndarray:
    """Return equal numbers from 0 for equal keys, int32 [I]."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], np.int32)


def _check_actions(form: BucketedForm, labels: np.ndarray, player: int) -> None:
    """Raise ValueError if a bucket contains infosets with different legal actions."""
    decisions, actions = form.decisions[player], form.sequence_actions(player)
    owner, first = decisions.owner[1:], decisions.first_sequence
    usual = first_members(labels)[labels]
    other = decisions.num_actions != decisions.num_actions[usual]
    # The action of the first member with the same number, or that member's last one.
    place = np.arange(1, decisions.num_sequences) - first[owner]
    sequence = np.minimum(first[usual[owner]] + place, decisions.num_sequences - 1)
    differs = actions != actions[sequence - 1]
    other |= np.bincount(owner, weights=differs, minlength=len(decisions)) > 0
    if not other.any():
        return
    odd = int(np.flatnonzero(other)[0])
    pair = [
        f"{form.label(player, i)!r} {form.actions(player, i).tolist()}"
        for i in (odd, int(usual[odd]))
    ]
    raise ValueError(
        f"{form.game}: infosets of player {player} with different legal actions are in "
        f"one bucket: {pair[0]} and {pair[1]}; put them into separate buckets"
    )


def first_members(labels: np.ndarray) -> np.ndarray:
    """Return the first infoset of each bucket, int64 [B]."""
    return np.unique(labels, return_index=True)[1]


def pool(decisions: Decisions, labels: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Sum reach of sequences over buckets; the average strategy is proportional to it.

    The cumulative strategy of a bucket is the sum, over iterations and over its
    infosets, of the infoset's own reach times the strategy. The sum of the average
    sequence form over the infosets of a bucket is the same. (Lanctot et al. 2012 sum
    over histories instead, so that an infoset with more histories has more weight.)

    Args:
      decisions: Decision points of one player.
      labels: Bucket of each infoset, int32 [I].
      reach: Average strategy in sequence form, float64 [S].

    Returns:
      For each sequence the sum over its bucket, float64 [S]. Not a sequence form.
    """
    owner = decisions.owner[1:]
    action = np.arange(1, decisions.num_sequences) - decisions.first_sequence[owner]
    place = labels[owner].astype(np.int64) * int(decisions.num_actions.max()) + action
    total = np.bincount(place, weights=reach[1:])
    return np.concatenate([reach[:1], total[place]])
