"""Histories of a game tree at which policies are queried."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.games.histories import states_at, states_in_order
from spiel_cr.games.query_batch import QueryBatch
from spiel_cr.games.tree.tree import GameTree

# States that exist at once.
_CHUNK = 1 << 10
# Infosets of a single history at which a policy is queried a second time.
_QUERIED_TWICE = 64


def queries(
    tree: GameTree,
    player: int,
    random: np.random.Generator | None = None,
    *,
    full: bool = False,
) -> Iterator[QueryBatch]:
    """Choose histories of all infosets of a player, in depth-first order.

    Args:
      tree: The game tree.
      player: The player whose infosets they are.
      random: Chooses histories for repeated queries, unless `full`: of each infoset
        that has several, one other than the first, and of a few other infosets the only
        one. If None, no query is repeated.
      full: Whether queries are repeated at all histories.

    Yields:
      Batches that contain each infoset once; then those that repeat infosets.
    """
    infosets, histories = tree.infosets[player], tree.histories
    numbers = np.arange(len(infosets))
    yield from _batches(tree, player, numbers, infosets.history, repeated=False)
    if random is None and not full:
        return
    own = np.flatnonzero(histories.player == player)
    others = own[infosets.history[histories.infoset[own]] != own]
    if full:
        numbers = histories.infoset[others].astype(np.int64)
        yield from _batches(tree, player, numbers, others, repeated=True)
        return
    assert random is not None
    others = random.permutation(others)
    several, place = np.unique(histories.infoset[others], return_index=True)
    single = np.setdiff1d(np.arange(len(infosets)), several)
    single = random.permutation(single)[:_QUERIED_TWICE]
    numbers = np.concatenate([several, single]).astype(np.int64)
    chosen = np.concatenate([others[place], infosets.history[single]])
    yield from _batches(tree, player, numbers, chosen, repeated=True)


def _batches(
    tree: GameTree,
    player: int,
    numbers: np.ndarray,
    chosen: np.ndarray,
    *,
    repeated: bool,
) -> Iterator[QueryBatch]:
    """Make batches of infosets.

    Args:
      tree: The game tree.
      player: The player whose infosets they are.
      numbers: Infosets, int64 [n].
      chosen: A history of each, int [n].
      repeated: Whether the first history of each infoset was queried before.
    """
    infosets, decisions = tree.infosets[player], tree.infosets[player].decisions
    remaining = states_at(tree.game, tree.histories, chosen)
    while chunk := list(itertools.islice(remaining, _CHUNK)):
        rows = numbers[[place for place, _ in chunk]]
        counts, first = decisions.num_actions[rows], decisions.first_sequence[rows]
        states = [state for _, state in chunk]
        batch = QueryBatch(
            player,
            counts,
            first,
            infosets.actions[ranges(first - 1, counts)],
            functools.partial(iter, states),
        )
        if repeated:
            at_first = functools.partial(
                states_in_order, tree.game, tree.histories, infosets.history[rows]
            )
            original = dataclasses.replace(batch, states=at_first)
            batch = dataclasses.replace(batch, original=original)
        yield batch
