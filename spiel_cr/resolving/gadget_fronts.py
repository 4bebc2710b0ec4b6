"""What gadgets put in front of subgames: the opponent's decisions, and its old values.

cfrd       at each augmented infoset (see `decomposition.py`) the opponent chooses to
           *terminate*, worth what it would have had, or to *follow* into the roots
           (Burch, Johanson & Bowling 2014, "Solving imperfect information games using
           decomposition").
maxmargin  at each subgame the opponent chooses among its augmented infosets, and is
           charged what it would have got there, so the player maximises the least
           margin (Moravčík et al. 2016, "Refining subgames in large imperfect
           information games"). Margins are differences of counterfactual values: what
           the opponent gains by coming that way, weighted by the player's and
           chance's reach.
"""

from typing import Literal, NamedTuple

import numpy as np

Gadget = Literal["cfrd", "maxmargin"]


class GadgetFront(NamedTuple):
    """A gadget in front of g augmented infosets, as the opponent o's first infosets.

    Attributes:
      num_actions: int32 [c], actions of each of these infosets, which hang under o's
        empty sequence.
      subgames: int32 [c], the subgame of each.
      entering: int32 [g], o's sequence that leads to the roots of each augmented
        infoset.
      paying: int32 [g], o's sequence at which its old value is paid.
      sign: 1 where o gets that value, -1 where it pays it.
      other_first: whether o updates first where updates alternate. The mean values of
        who does belong exactly to the average strategy of the other (`cfr.step`). In
        the max-margin gadget that is o, whose values the next layer needs: its NashConv
        after 2000 iterations is lower or the same on five of six games, by up to a
        factor of 100 (docs/measurements/players.md). Elsewhere it is the player, as
        good as o or better.
    """

    num_actions: np.ndarray
    subgames: np.ndarray
    entering: np.ndarray
    paying: np.ndarray
    sign: float
    other_first: bool

    @property
    def num_sequences(self) -> int:
        """How many sequences of o the gadget has, without the empty one."""
        return int(self.num_actions.sum())


def make_front(gadget: Gadget, subgames: np.ndarray) -> GadgetFront:
    """A gadget in front of augmented infosets.

    Args:
      gadget: which.
      subgames: int32 [g], the subgame of each augmented infoset; none: no gadget.
    """
    count = len(subgames)
    each = np.arange(count, dtype=np.int32)
    if gadget == "cfrd" or not count:
        num_actions = np.full(count, 2, np.int32)
        return GadgetFront(
            num_actions, subgames, 2 + 2 * each, 1 + 2 * each, 1.0, False
        )
    numbers, widths = np.unique(subgames, return_counts=True)
    choice = np.zeros(count, np.int32)
    choice[np.argsort(subgames, kind="stable")] = 1 + each
    return GadgetFront(widths.astype(np.int32), numbers, choice, choice, -1.0, True)
