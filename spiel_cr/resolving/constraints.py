"""Constraints on the opponent's values, and which solutions satisfy them.

A player with a blueprint has an *incumbent strategy* for the complete game: its earlier
solutions, and the blueprint elsewhere. Before it re-solves a subgame, the opponent's
counterfactual value at each augmented infoset is constrained to the value of a best
response to the incumbent strategy, so the incumbent strategy itself satisfies all
constraints (Burch, Johanson & Bowling 2014, Moravčík et al. 2016 and Brown & Sandholm
2017 all need values against a strategy that is still available). The solution of a
subgame is accepted only if the opponent's best response to it exceeds no constraint of
the subgame. Otherwise the incumbent strategy is kept.

If best responses are those of the complete game, the player is therefore at most as
exploitable as its blueprint: the value of a best response in the game does not decrease
with its values at augmented infosets, and there it never exceeds the earlier value.
"""

from typing import NamedTuple

import numpy as np

from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.policies.best_responses import best_values
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.decomposition import Decomposition

# Share of the largest payoff by which values may rise because of rounding.
_ROUNDING = 1e-12


class BelowLookahead(NamedTuple):
    """The game below a lookahead tree's leaves, with the player's strategy fixed.

    The opponent's sequences here are numbered after its extended ones
    (`Decomposition`), in the order of these infosets.

    Attributes:
      parent: The opponent's last sequence before each of its infosets, int64 [J].
      num_actions: Number of actions at each infoset, int64 [J].
      player_last: The player's last sequence in the tree at each terminal, int64 [T].
      opponent_last: The opponent's last sequence at each terminal, int64 [T].
      payoff: The opponent's utility times the probabilities of chance, and of the
        player below the tree, float64 [T].
    """

    parent: np.ndarray
    num_actions: np.ndarray
    player_last: np.ndarray
    opponent_last: np.ndarray
    payoff: np.ndarray


class OpponentResponses:
    """Values of the opponent's best responses at augmented infosets of a game."""

    def __init__(
        self, decomposition: Decomposition, below: BelowLookahead | None = None
    ) -> None:
        """Treat augmented infosets as decisions with one action, see `Decomposition`.

        Args:
          decomposition: Layers of the game.
          below: The game below the leaves of its tree. None: leaf values are treated as
            utilities of terminal histories.
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
        self._payoff = histories.chance[ends] * utility
        self._player_last = histories.sequence[d.player][ends]
        self._opponent_last = d.extended[ends]
        if below is not None:
            self._payoff = np.append(self._payoff, below.payoff)
            self._player_last = np.append(self._player_last, below.player_last)
            self._opponent_last = np.append(self._opponent_last, below.opponent_last)
        self._rounding = _ROUNDING * float(np.abs(d.tree.histories.utility).max())

    def values(self, behaviour: np.ndarray) -> np.ndarray:
        """Compute o's counterfactual values against a strategy of i.

        Args:
          behaviour: Action probabilities of i, float64 [S of i].

        Returns:
          o's value at each augmented infoset, and last in the complete game, float64 [G
          + 1].
        """
        reach = reach_from_behaviour(self._d.decisions, behaviour)
        total = np.bincount(
            self._opponent_last,
            self._payoff * reach[self._player_last],
            minlength=self._points.num_sequences,
        )
        values = best_values(self._points, total)
        return np.append(values[self._augmented], total[0])

    def are_satisfied(
        self, constraints: np.ndarray, behaviour: np.ndarray, augmented: np.ndarray
    ) -> bool:
        """Return whether a strategy of i satisfies constraints.

        Args:
          constraints: Result of `values` for the incumbent strategy, float64 [G + 1].
          behaviour: Action probabilities of i, float64 [S of i].
          augmented: Augmented infosets whose constraints matter, int; if there are
            none, the value in the complete game does.
        """
        exceeds = self.exceeds(constraints, self.values(behaviour))
        return not exceeds[augmented if len(augmented) else -1].any()

    def exceeds(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return where values have risen by more than rounding, bool [n]."""
        return after > before + self._rounding
