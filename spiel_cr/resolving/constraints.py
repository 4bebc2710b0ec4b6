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

from typing import NamedTuple

import numpy as np

from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.policies.best_responses import best_values
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.decomposition import Decomposition

# Values may rise by this share of the largest payoff: rounding.
_ROUNDING = 1e-12


class BelowLookahead(NamedTuple):
    """What follows the ends of a tree that ends before its game, one player fixed.

    The opponent's sequences go on from its extended ones (`Decomposition`), in the
    order of these infosets.

    Attributes:
      parent: int64 [J], the opponent's last sequence before each of its infosets.
      num_actions: int64 [J], of each.
      player_last: int64 [T], the player's last sequence within the tree, at each
        end.
      opponent_last: int64 [T], the opponent's.
      gain: float64 [T], the opponent's utility, times probabilities of chance and of
        the player beyond the tree.
    """

    parent: np.ndarray
    num_actions: np.ndarray
    player_last: np.ndarray
    opponent_last: np.ndarray
    gain: np.ndarray


class OpponentResponses:
    """What the opponent's best responses get at augmented infosets of a game."""

    def __init__(
        self, decomposition: Decomposition, below: BelowLookahead | None = None
    ) -> None:
        """Augmented infosets become points with one action, see `Decomposition`.

        Args:
          decomposition: of the game.
          below: what follows where its tree ends too early; None: what it is worth
            there is taken for the end of the game.
        """
        d = self._d = decomposition
        histories, o = d.tree.histories, 1 - d.player
        opponent = d.tree.infosets[o].decisions
        count = len(d.augmented_layer)
        self._augmented = slice(len(opponent), len(opponent) + count)
        parents = [d.other_parent, d.augmented_parent]
        num_actions = [opponent.num_actions, np.ones(count, np.int32)]
        ends, frontier = d.terminals, d.tree.frontier
        if below is not None and frontier is not None:
            parents.append(below.parent)
            num_actions.append(below.num_actions)
            ends = ends[~frontier[ends]]
        self._points = Decisions(np.concatenate(parents), np.concatenate(num_actions))
        utility = histories.utility[ends] * (1 if o == 0 else -1)
        self._gain = histories.chance[ends] * utility
        self._player_last, self._opponent_last = (
            histories.sequence[d.player][ends],
            d.extended[ends],
        )
        if below is not None:
            self._gain = np.append(self._gain, below.gain)
            self._player_last = np.append(self._player_last, below.player_last)
            self._opponent_last = np.append(self._opponent_last, below.opponent_last)
        self._rounding = _ROUNDING * float(np.abs(d.tree.histories.utility).max())

    def values(self, behaviour: np.ndarray) -> np.ndarray:
        """o's values against a strategy of i, weighted by the reach of i and chance.

        Args:
          behaviour: float64 [S of i], action probabilities.

        Returns:
          float64 [G + 1], at each augmented infoset, and last in the whole game.
        """
        reach = reach_from_behaviour(self._d.decisions, behaviour)
        total = np.bincount(
            self._opponent_last,
            self._gain * reach[self._player_last],
            minlength=self._points.num_sequences,
        )
        values = best_values(self._points, total)
        return np.append(values[self._augmented], total[0])

    def exceeds(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """bool [n], where values are larger than before, by more than rounding."""
        return after > before + self._rounding
