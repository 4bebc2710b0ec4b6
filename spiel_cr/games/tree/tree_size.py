"""The size of a game, counted level by level without keeping the game."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.arrays import ranks
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.opening.vectorised import visits
from spiel_cr.games.tree import state_walk


class Sizes(NamedTuple):
    """How large a game is.

    Attributes:
      histories: int64 [D], of each depth.
      terminals: int64 [D], those of them where the game is over.
      infosets: each player's.
    """

    histories: np.ndarray
    terminals: np.ndarray
    infosets: tuple[int, int]

    @property
    def num_histories(self) -> int:
        """All N of them."""
        return int(self.histories.sum())

    @property
    def num_terminals(self) -> int:
        """All histories where the game is over."""
        return int(self.terminals.sum())


def count_levels(game: str | pyspiel.Game) -> Sizes:
    """Counts histories and infosets of a game, also of one too large to compile.

    Of a vectorised game only the states of two levels and the information of all
    decisions are held, about a tenth of what compiling takes. Other games are walked as
    `compile_game` does it. Perfect recall is not checked.

    Args:
      game: OpenSpiel game string or game, as for `compile_game`.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game is not two-player zero-sum.
    """
    opened = open_game(game)
    game, rules = opened.game, opened.rules
    if rules is None:
        walked, (strings0, strings1) = state_walk.walk(game)
        over = walked.player == TERMINAL
        return Sizes(
            np.diff(walked.level_start),
            np.add.reduceat(over, walked.level_start[:-1], dtype=np.int64),
            (len(strings0), len(strings1)),
        )
    histories, terminals = Counter[int](), Counter[int]()
    keys: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for visit in visits(game, rules):
        histories[visit.depth] += len(visit.player)
        terminals[visit.depth] += int(np.count_nonzero(visit.player == TERMINAL))
        for p, known in enumerate(visit.information):
            if known is not None:
                keys[p].append(known)
    distinct0, distinct1 = (int(ranks(k).max()) + 1 if k else 0 for k in keys)
    counted, over = (np.array([*c.values()]) for c in (histories, terminals))
    return Sizes(counted, over, (distinct0, distinct1))
