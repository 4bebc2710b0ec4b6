"""Promises that a player can keep, and solutions that keep them.

A player with a blueprint has a *plan* for the whole game: what its last lookaheads
found, and beyond them the blueprint. Before it looks ahead again, the opponent is
promised what its best response to the plan gets at each augmented infoset, so the
plan itself keeps every promise (Burch, Johanson & Bowling 2014, Moravčík et al. 2016,
Brown & Sandholm 2017 all need values against a strategy that is still available). A
subgame's solution becomes the plan there only if the opponent's best response to it
gets more at none of the subgame's augmented infosets; otherwise the plan is kept.

Where best responses are those of the whole game, the player is therefore at most as
exploitable as its blueprint: what a best response gets in the game is the larger, the
more it gets at augmented infosets, and there it never gets more than before.
"""

import numpy as np

from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.decomposition import Decomposition

# Values may rise by this share of the largest payoff: rounding.
_ROUNDING = 1e-12


class Responses:
    """What the opponent's best responses get at augmented infosets of a game."""

    def __init__(self, decomposition: Decomposition) -> None:
        """Augmented infosets become points with one action, see `Decomposition`."""
        d = self._d = decomposition
        histories, o = d.tree.histories, 1 - d.player
        own = d.tree.infosets[o].decisions
        count = self._count = len(d.augmented_layer)
        self._points = Decisions(
            np.append(d.other_parent, d.augmented_parent),
            np.append(own.num_actions, np.ones(count, np.int32)),
        )
        ends = d.terminals
        utility = histories.utility[ends] * (1 if o == 0 else -1)
        self._gain = histories.chance[ends] * utility
        self._own, self._other = histories.sequence[d.player][ends], d.extended[ends]
        self._rounding = _ROUNDING * float(np.abs(utility).max(initial=0.0))

    def values(self, behaviour: np.ndarray) -> np.ndarray:
        """o's values against a strategy of i, weighted by the reach of i and chance.

        Args:
          behaviour: float64 [S of i], action probabilities.

        Returns:
          float64 [G + 1], at each augmented infoset, and last in the whole game.
        """
        reach = reach_from_behaviour(self._d.decisions, behaviour)
        total = np.bincount(
            self._other,
            self._gain * reach[self._own],
            minlength=self._points.num_sequences,
        )
        values = best_values(self._points, total)
        return np.append(values[len(values) - self._count :], total[0])

    def rises(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """bool [n], where values are larger than before, by more than rounding."""
        return after > before + self._rounding


def best_values(decisions: Decisions, total: np.ndarray) -> np.ndarray:
    """float64 [I], a player's values at its infosets if it responds best below them.

    Args:
      decisions: the player's.
      total: float64 [S], what it gets where each sequence is its last; what it gets
        below is added.
    """
    values, levels = np.zeros(len(decisions)), decisions.levels()
    owner = decisions.owner
    for level in range(int(levels.max(initial=-1)), -1, -1):
        infosets = np.flatnonzero(levels == level)
        mine = 1 + np.flatnonzero(levels[owner[1:]] == level)
        begin = np.flatnonzero(np.diff(owner[mine], prepend=-1))
        values[infosets] = np.maximum.reduceat(total[mine], begin)
        np.add.at(total, decisions.parent[infosets], values[infosets])
    return values
