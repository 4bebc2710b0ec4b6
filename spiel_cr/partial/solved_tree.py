"""Third stage: a part of a game with what was solved of it."""

import dataclasses
import functools

import numpy as np

from spiel_cr.cfr import cfr
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.cfr import solver as driver
from spiel_cr.partial.particle_belief import Belief
from spiel_cr.partial.tree import Part, PartialTree
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.resolving import decomposition as subgame
from spiel_cr.resolving import gadget
from spiel_cr.sequence_form import layout
from spiel_cr.sequence_form.decisions import Payoffs


@dataclasses.dataclass
class SolvedTree:
    """Where a player of a growing game stands.

    Attributes:
      growing: the tree.
      part: it as a compiled game.
      decomposition: the part's layers.
      solved: the last layer that was solved; 0: none.
      behaviour: for each player float64 [S], average strategies of the last solves that
        met an infoset; uniform where there were none.
      gate_values: float64 [G], o's counterfactual values at gates met so far.
    """

    growing: PartialTree
    part: Part
    decomposition: subgame.Decomposition
    solved: int
    behaviour: tuple[np.ndarray, np.ndarray]
    gate_values: np.ndarray

    @classmethod
    def of(
        cls, growing: PartialTree, player: int, before: "SolvedTree | None" = None
    ) -> "SolvedTree":
        """Nothing is solved yet.

        Args:
          growing: the tree.
          player: i.
          before: take strategies over from there.

        Raises:
          ValueError: see `subgame.decompose`.
        """
        part = growing.compile()
        decomposition = subgame.decompose(part.tree, player)
        behaviour = []
        for p, infosets in enumerate(part.tree.infosets):
            mine = policy_lib.uniform_behaviour(infosets.decisions)
            if before is not None:
                _carry(part, before.part, p, before.behaviour[p], mine)
            behaviour.append(mine)
        gates = np.zeros(len(decomposition.gate_layer))
        return cls(growing, part, decomposition, 0, (behaviour[0], behaviour[1]), gates)

    @property
    def player(self) -> int:
        return self.decomposition.player

    @functools.cached_property
    def _keys(self) -> dict[str, int]:
        keys = self.part.tree.infosets[self.player].keys
        return {key: number for number, key in enumerate(keys)}

    def find(self, key: str) -> int:
        """The player's infoset by its information-state string; -1: not in the part."""
        return self._keys.get(key, -1)

    def strategy(self, infoset: int) -> tuple[list[int], np.ndarray]:
        """Actions at an infoset of the player, and its probabilities, float64 [A]."""
        infosets = self.part.tree.infosets[self.player]
        first = int(infosets.decisions.first_sequence[infoset])
        mine = slice(first, first + int(infosets.decisions.num_actions[infoset]))
        actions = infosets.actions[mine.start - 1 : mine.stop - 1]
        return actions.tolist(), self.behaviour[self.player][mine].copy()

    def layer(self, infoset: int) -> int:
        return int(self.decomposition.own_layer[infoset])

    def way_to(self, infoset: int) -> list[int]:
        """The player's infosets down to this one whose layers are not solved yet."""
        d = self.decomposition
        decisions = self.part.tree.infosets[self.player].decisions
        owner, way = decisions.owner, []
        while infoset >= 0 and self.layer(infoset) > self.solved:
            if d.opens[infoset]:
                way.append(infoset)
            infoset = int(owner[decisions.parent[infoset]])
        return way[::-1]

    def subgame_roots(self, infoset: int) -> np.ndarray:
        """int64, the histories at the top of the subgame that an infoset opens."""
        d = self.decomposition
        here = d.gate_subgame[d.root_gate] == d.own_subgame[infoset]
        return d.roots[here]

    def focus(self, roots: np.ndarray, *, bare: bool = False) -> PartialTree:
        """A tree with room for what comes after some histories."""
        return self.growing.focus(self.part.ids[roots], bare=bare)

    def focus_on(self, infoset: int) -> PartialTree:
        """A tree with room for what comes after the player's infoset.

        What is dropped is worth what both players' strategies make of it.
        """
        histories, ids = self.part.tree.histories, self.part.ids
        worth = np.empty(len(ids))
        worth[self.growing.rows(ids)] = policy_lib.history_values(
            self.part.tree, self.behaviour
        )
        here = (histories.player == self.player) & (histories.infoset == infoset)
        return self.growing.focus(ids[here], worth=worth)

    def enter(self, after: "SolvedTree", roots: np.ndarray) -> bool:
        """Hands o's values at a subgame's gates on to a tree that has grown below it.

        Args:
          after: made from `focus(roots)`; brought up to the layer before the subgame.
          roots: the subgame's.

        Returns:
          Whether the tree still has these roots; where more of the game shows that
          players know less than they seemed to, it may not.
        """
        d, new = self.decomposition, after.decomposition
        history = np.argsort(after.part.ids)
        at = history[np.searchsorted(after.part.ids[history], self.part.ids[roots])]
        place = np.full(len(after.part.ids), -1, np.int64)
        place[new.roots] = np.arange(len(new.roots))
        layer = new.layer[at]
        if (place[at] < 0).any() or (layer != layer[0]).any():
            return False
        if np.count_nonzero(new.layer[new.roots] == layer[0]) != len(at):
            return False
        old_place = np.full(len(self.part.ids), -1, np.int64)
        old_place[d.roots] = np.arange(len(d.roots))
        pairs = np.stack([d.root_gate[old_place[roots]], new.root_gate[place[at]]])
        old_gate, new_gate = np.unique(pairs, axis=1)
        np.add.at(after.gate_values, new_gate, self.gate_values[old_gate])
        after.solved = int(layer[0]) - 1
        return True

    def forest(self) -> gadget.Forest:
        """The gadget game of the next layer; the whole part if it is the first."""
        i = self.player
        decisions = self.part.tree.infosets[i].decisions
        reach = policy_lib.reach_from_behaviour(decisions, self.behaviour[i])
        forest = gadget.build_forest(
            self.decomposition, self.solved + 1, reach, self.gate_values
        )
        if len(forest.payoffs.values):
            return forest
        # Solvers need a payoff, where all that was found is worth nothing.
        nothing = np.zeros(1, np.int32)
        payoffs = Payoffs(nothing, nothing, np.zeros(1))
        return dataclasses.replace(forest, payoffs=payoffs)

    def make_solver(
        self,
        forest: gadget.Forest,
        room: layout.PaddedShapes,
        config: algorithm_lib.CFRConfig,
        planned: int,
    ) -> driver.Solver:
        form = layout.build(forest.decisions, forest.payoffs, capacity=room)
        return cfr.make_solver(
            form, config=config, values=True, first=self.player, planned=planned
        )

    def remember(self, forest: gadget.Forest, solver: driver.Solver) -> None:
        """Takes in what a solver has found so far of the next layer."""
        i, o = self.player, 1 - self.player
        own, other = (solver.average_behaviour(p) for p in (i, o))
        gates, next_gates = len(forest.gates), len(forest.next_gates)
        self._fill(i, forest.own, own[1:])
        self._fill(o, forest.other, other[1 + 2 * gates : len(other) - next_gates])
        if next_gates:
            values = solver.infoset_values(o)
            self.gate_values[forest.next_gates] = values[len(values) - next_gates :]

    def belief(self, infoset: int, mix: float) -> Belief:
        """What the player thinks possible at an infoset of the part."""
        histories, o = self.part.tree.histories, 1 - self.player
        here = np.flatnonzero(
            (histories.player == self.player) & (histories.infoset == infoset)
        )
        decisions = self.part.tree.infosets[o].decisions
        reach = policy_lib.reach_from_behaviour(decisions, self.mixed(o, mix))
        weights = histories.chance[here] * reach[histories.sequence[o, here]]
        if not weights.sum():
            weights = histories.chance[here]
        nodes = self.growing.nodes(self.part.ids[here])
        return Belief(nodes, weights / weights.sum())

    def mixed(self, player: int, mix: float) -> np.ndarray:
        """float64 [S], a player's strategy with a share of uniform play."""
        decisions = self.part.tree.infosets[player].decisions
        uniform = policy_lib.uniform_behaviour(decisions)
        return mix * uniform + (1 - mix) * self.behaviour[player]

    def play(
        self, labels: np.ndarray, counts: np.ndarray, *, player: int, mix: float
    ) -> np.ndarray:
        """Probabilities at infosets by label; uniform outside of the part."""
        found, at = _match(self.part.labels[player], labels)
        result = np.repeat(1 / counts, counts)
        decisions = self.part.tree.infosets[player].decisions
        source = _ranges(decisions.first_sequence[at[found]], counts[found])
        result[np.repeat(found, counts)] = self.mixed(player, mix)[source]
        return result

    def _fill(self, player: int, infosets: np.ndarray, values: np.ndarray) -> None:
        decisions = self.part.tree.infosets[player].decisions
        counts = decisions.num_actions[infosets]
        self.behaviour[player][_ranges(decisions.first_sequence[infosets], counts)] = (
            values
        )


def _carry(
    new: Part, old: Part, player: int, behaviour: np.ndarray, into: np.ndarray
) -> None:
    """Copies probabilities to the infosets that both parts have."""
    found, at = _match(old.labels[player], new.labels[player])
    here = new.tree.infosets[player].decisions
    there = old.tree.infosets[player].decisions
    counts = here.num_actions[found]
    source = _ranges(there.first_sequence[at[found]], counts)
    into[_ranges(here.first_sequence[found], counts)] = behaviour[source]


def _match(known: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bool [n], whether a label is known; int64 [n], where."""
    if not len(known):
        return np.zeros(len(asked), bool), np.zeros(len(asked), np.int64)
    order = np.argsort(known)
    at = order[np.minimum(np.searchsorted(known[order], asked), len(known) - 1)]
    return known[at] == asked, at


def _ranges(first: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """int64, first[k], first[k] + 1, ..., counts[k] numbers of each k."""
    ends = np.cumsum(counts, dtype=np.int64)
    return np.repeat(first - (ends - counts), counts) + np.arange(counts.sum())
