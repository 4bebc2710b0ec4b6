"""Third stage: what may have happened, as far as each player can tell, in a part.

A part that begins anew is a game of its own; where it begins, both players know how it
begins. So it must not begin with the histories that a player thinks possible at its
decision, or

  - what the opponent did last would be taken for granted, as the player believes it,
    and nothing would be lost by playing otherwise: so it begins where the opponent
    acted first since the player's last decision, its *turn*;
  - the opponent would know the player's infoset, all that the player hides: so there
    are *neighbours* among the roots, the other histories of the opponent's infosets.

Zhang and Sandholm 2021, "Subgame solving without common knowledge", limit subgames to
few steps of "who cannot tell what from what" in the same way. They keep the player's
strategy at such histories; here it is solved there, too, and then forgotten.
"""

import itertools
from typing import NamedTuple

import numpy as np

from spiel_cr.partial.particle_belief import Belief, join, keep_some
from spiel_cr.partial.simulator import Nodes
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.policies import conversions as policy_lib


class Possible(NamedTuple):
    """What may have happened when a player decides.

    Attributes:
      belief: the histories of its infoset.
      around: others, at decisions of the player with other infosets, none after
        another, of which the opponent may think the same as of the belief, now or
        later; weighted relative to the belief. None: none, or that is not known.
      roots: where a part begins for this decision: the opponent's turn, or the belief,
        if the opponent has not acted since the player's last decision.
      neighbours: other histories that the opponent cannot tell from the roots, weighted
        relative to those; None: as for `around`.
    """

    belief: Belief
    around: Belief | None
    roots: Belief
    neighbours: Belief | None


def share_room(
    possible: Possible, most: int, share: float, random: np.random.Generator
) -> tuple[Nodes, np.ndarray]:
    """The roots of a part that begins anew, and their weights.

    Args:
      possible: what may have happened.
      most: how many roots there may be.
      share: of them, for neighbours.
      random: consumed.
    """
    others = int(share * most)
    if possible.neighbours is None or not others:
        return keep_some(*possible.roots, most, random)
    mine = Belief(*keep_some(*possible.roots, most - others, random))
    return join(mine, Belief(*keep_some(*possible.neighbours, others, random)))


def at_infoset(
    here: SolvedTree, infoset: int, mix: float, *, neighbours: bool
) -> Possible:
    """What may have happened at a player's infoset of a part.

    Args:
      here: the part and how it is played.
      infoset: the player's.
      mix: share of uniform play in how both players are believed to play.
      neighbours: also look for them.
    """
    belief = here.belief(infoset, mix)
    look = _Look(here, infoset, mix)
    turn = look.turn()
    roots = look.own if turn is None else turn
    told = look.histories.observations is not None
    around = look.around() if neighbours and told else None
    near = None
    if neighbours and turn is not None:
        near = look.of_opponent(turn)
    elif around is not None:
        near = np.intersect1d(around, np.flatnonzero(look.alike))
    total = look.weights[roots].sum()
    if not total:
        return Possible(belief, None, belief, None)
    return Possible(
        belief,
        look.weighted(around, look.weights[look.own].sum()),
        Belief(here.growing.nodes(here.part.ids[roots]), look.weights[roots] / total),
        look.weighted(near, total),
    )


class _Look:
    """Histories of a part, seen from an infoset of the player."""

    def __init__(self, here: SolvedTree, infoset: int, mix: float) -> None:
        tree = here.part.tree
        self._here, self.histories = here, tree.histories
        self._mine = self.histories.player == here.player
        self.own = np.flatnonzero(self._mine & (self.histories.infoset == infoset))
        first, second = (
            policy_lib.reach_from_behaviour(
                tree.infosets[p].decisions, here.mixed(p, mix)
            )[self.histories.sequence[p]]
            for p in range(2)
        )
        self.weights = self.histories.chance * first * second
        # Where the opponent is told what it is told at the infoset.
        self.alike = np.zeros(len(self._mine), bool)
        if self.histories.observations is not None:
            told = np.unique(self.histories.observations[self.own])
            self.alike = self._mine & np.isin(self.histories.observations, told)

    def weighted(self, rows: np.ndarray | None, total: float) -> Belief | None:
        """Some of the histories."""
        if rows is None or not len(rows) or not total:
            return None
        nodes = self._here.growing.nodes(self._here.part.ids[rows])
        return Belief(nodes, self.weights[rows] / total)

    def turn(self) -> np.ndarray | None:
        """Where the opponent acted first since the player's last decision."""
        parent, player = self.histories.parent, self.histories.player
        first, at = np.full(len(self.own), -1), parent[self.own]
        while True:
            goes_on = (at >= 0) & ~self._mine[at]
            if not goes_on.any():
                break
            first = np.where(goes_on & (player[at] == 1 - self._here.player), at, first)
            at = np.where(goes_on, parent[at], -1)
        first = np.unique(first)
        return first if first[0] >= 0 else None

    def of_opponent(self, turn: np.ndarray) -> np.ndarray:
        """Other histories of the opponent's infosets at its turn."""
        acts = self.histories.player == 1 - self._here.player
        same = np.isin(self.histories.infoset, np.unique(self.histories.infoset[turn]))
        return np.setdiff1d(np.flatnonzero(acts & same), turn)

    def around(self) -> np.ndarray:
        """See `Possible`."""
        histories = self.histories
        own = np.zeros(len(self._mine), bool)
        own[self.own] = True
        above, at = own.copy(), self.own
        while len(at := np.unique(histories.parent[at])) and at[-1] >= 0:
            at = at[at >= 0]
            above[at] = True
        # From where the opponent was told no more than now, on to the player's next
        # decision.
        since, stays = self.alike & above, self._mine & ~above
        stops = own | (stays & self.alike)
        for low, high in itertools.pairwise(histories.level_start[1:].tolist()):
            parent, level = histories.parent[low:high], slice(low, high)
            stays[level] &= ~stops[parent] & (self.alike[level] | since[parent])
            stops[level] |= stops[parent] | stays[level]
            since[level] |= since[parent]
        return np.flatnonzero(stays)
