"""Second stage: all histories of a game, by its expansion."""

import numpy as np
import pyspiel

from spiel_cr.common import arrays
from spiel_cr.compilation import numbering, vectorised


def walk(
    game: pyspiel.Game,
    rules: vectorised.VectorisedGame,
    *,
    observations: bool = False,
    max_histories: int | None = None,
) -> numbering.Walked:
    """All histories of a game by its expansion; the same as `walk.walk` finds.

    Args:
      game: for messages.
      rules: its expansion.
      observations: also record what the player who does not act has observed.
      max_histories: refuse games with more histories than this.

    Raises:
      ValueError: the expansion gave something that is no game.
      TooManyHistoriesError: there are more than `max_histories` histories.
    """
    limit = min(max_histories or numbering.MAX_HISTORIES, numbering.MAX_HISTORIES)
    kept = _Kept(observations)
    for visit in vectorised.visits(game, rules, observations=observations):
        kept.add(visit)
        if sum(kept.sizes) > limit:
            raise numbering.too_many(game, limit)
    return kept.join()


class _Kept:
    """Visits as they come, as small as they can be kept, then all of them in one."""

    def __init__(self, observations: bool) -> None:
        self.sizes: list[int] = []  # of the levels
        self._observations = observations
        self._parts: tuple[list[np.ndarray], ...] = ([], [], [], [])
        self._chances: list[np.ndarray] = []
        self._some_chance = False
        self._information: tuple[list[np.ndarray], ...] = ([], [])
        self._others: tuple[list[np.ndarray], ...] = ([], [])

    def add(self, visit: vectorised.Visit) -> None:
        """Takes the next histories in."""
        if visit.depth == len(self.sizes):
            self.sizes.append(0)
        self.sizes[-1] += len(visit.parent)
        actions = numbering.smallest_dtype(int(visit.action.max()))
        columns = (
            visit.parent.astype(np.int32),
            visit.action.astype(actions),
            visit.player,
            visit.utility,
        )
        for part, column in zip(self._parts, columns, strict=True):
            part.append(column)
        self._some_chance |= visit.chance is not None
        ones = np.broadcast_to(1.0, len(visit.parent))
        self._chances.append(ones if visit.chance is None else visit.chance)
        for p in range(2):
            known, observed = visit.information[p], visit.observations[p]
            if known is not None:
                self._information[p].append(known)
            if observed is not None:
                self._others[p].append(observed)
            elif (visit.player == 1 - p).any():
                self._observations = False

    def join(self) -> numbering.Walked:
        """All histories; what was taken in is given up on the way."""
        parent, action, player, utility = map(_join, self._parts)
        return numbering.Walked(
            parent=parent,
            action=action,
            player=player,
            label=_labels(player, self._information, (0, 1)),
            observations=(
                _labels(player, self._others, (1, 0)) if self._observations else None
            ),
            chance=_join(self._chances) if self._some_chance else None,
            utility=utility,
            level_start=np.concatenate([[0], np.cumsum(self.sizes)]),
        )


def _join(parts: list[np.ndarray]) -> np.ndarray:
    """One array of many, which are given up."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _labels(
    player: np.ndarray, keys: tuple[list[np.ndarray], ...], actors: tuple[int, int]
) -> np.ndarray:
    """int32 [N], numbers of what each player knows where `actors[player]` acts."""
    labels = np.full(len(player), -1, np.int32)
    for mine, actor in zip(keys, actors, strict=True):
        if mine:
            labels[player == actor] = arrays.ranks(mine)
            mine.clear()
    return labels
