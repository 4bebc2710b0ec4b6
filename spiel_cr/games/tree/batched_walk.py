"""Enumeration of a game through batched rules, level by level, which is fast."""

from collections.abc import Callable

import numpy as np
import pyspiel

from spiel_cr.common.arrays import ranks, smallest_dtype
from spiel_cr.common.errors import too_many_histories
from spiel_cr.games.histories import Histories
from spiel_cr.games.opening.batched_rules import BatchedRules, VisitedHistories, visits
from spiel_cr.games.tree.tree import MAX_HISTORIES


def walk(
    game: pyspiel.Game,
    rules: BatchedRules,
    *,
    observations: bool = False,
    max_histories: int = MAX_HISTORIES,
    watch: Callable[[int], None] | None = None,
) -> Histories:
    """Return all histories of a game by its batched rules, as `state_walk.walk` does.

    Args:
      game: OpenSpiel game, for messages.
      rules: Batched rules of the game.
      observations: Whether to record the observations of the player who does not act.
      max_histories: Largest number of histories.
      watch: Function that is called regularly with the number of histories so far.

    Raises:
      InvalidGameError: If the batched rules return invalid values. The message names
        the history.
      TooManyHistoriesError: If there are more than `max_histories` histories.
    """
    kept = _Kept(observations)
    for visit in visits(game, rules, observations=observations):
        kept.add(visit)
        if sum(kept.sizes) > max_histories:
            raise too_many_histories(game, max_histories)
        if watch is not None:
            watch(sum(kept.sizes))
    return kept.join()


class _Kept:
    """Visited histories, stored in small dtypes until they are joined."""

    def __init__(self, observations: bool) -> None:
        self.sizes: list[int] = []  # of the levels
        self._observations = observations
        # Parents, actions, players, utilities and chances.
        self._columns: tuple[list[np.ndarray], ...] = ([], [], [], [], [])
        self._some_chance = False
        self._information: tuple[list[np.ndarray], ...] = ([], [])
        self._others: tuple[list[np.ndarray], ...] = ([], [])
        self._dropped = [np.zeros(0, np.int64)]

    def add(self, visit: VisitedHistories) -> None:
        """Add the next histories."""
        if visit.depth == len(self.sizes):
            self.sizes.append(0)
        self.sizes[-1] += len(visit.parent)
        self._some_chance |= visit.chance is not None
        columns = (
            visit.parent.astype(np.int32),
            visit.action.astype(smallest_dtype(int(visit.action.max()))),
            visit.player,
            visit.utility,
            _ones(len(visit.parent)) if visit.chance is None else visit.chance,
        )
        for blocks, column in zip(self._columns, columns, strict=True):
            blocks.append(column)
        self._dropped.append(visit.dropped)
        for p in range(2):
            information, observed = visit.information[p], visit.observations[p]
            if information is not None:
                self._information[p].append(information)
            if observed is not None:
                self._others[p].append(observed)
            elif (visit.player == 1 - p).any():
                self._observations = False

    def join(self) -> Histories:
        """Return all histories, and release the parts."""
        parent, action, player, utility = map(_join, self._columns[:4])
        return Histories(
            parent=parent,
            action=action,
            player=player,
            infoset=_labels(player, self._information, (0, 1)),
            observations=(
                _labels(player, self._others, (1, 0)) if self._observations else None
            ),
            sequence=np.zeros((2, 0), np.int32),
            chance=_join(self._columns[4]) if self._some_chance else _ones(len(parent)),
            utility=utility,
            level_start=np.concatenate([[0], np.cumsum(self.sizes)]),
            dropped=_join(self._dropped).astype(np.int32),
        )


def _ones(count: int) -> np.ndarray:
    """Return a view of a single 1, float64 [count]."""
    return np.broadcast_to(1.0, count)


def _join(blocks: list[np.ndarray]) -> np.ndarray:
    """Concatenate arrays, and empty their list."""
    joined = np.concatenate(blocks)
    blocks.clear()
    return joined


def _labels(
    player: np.ndarray, keys: tuple[list[np.ndarray], ...], actors: tuple[int, int]
) -> np.ndarray:
    """Return numbers of players' information where `actors[player]` acts, int32 [N]."""
    labels = np.full(len(player), -1, np.int32)
    for player_keys, actor in zip(keys, actors, strict=True):
        if player_keys:
            labels[player == actor] = ranks(player_keys)
            player_keys.clear()
    return labels
