"""A partial tree with the strategies and values that were solved for it."""

import dataclasses
import functools

import numpy as np

from spiel_cr.cfr.solver import Solver
from spiel_cr.common.arrays import ranges
from spiel_cr.partial.compiler import Snapshot
from spiel_cr.partial.knowledge_limited import (
    KnowledgeSet,
    LimitedGame,
    infosets_after,
    limited_game,
)
from spiel_cr.partial.tree import PartialTree
from spiel_cr.policies.conversions import (
    history_values,
    reach_from_behaviour,
    uniform_behaviour,
)
from spiel_cr.resolving.decomposition import Decomposition, decompose
from spiel_cr.resolving.gadget import Forest, build_forest, with_payoff


@dataclasses.dataclass
class SolvedTree:
    """What a player knows of the game: a partial tree, solved down to a layer.

    Attributes:
      partial: the tree.
      snapshot: it as a compiled game.
      decomposition: the layers of the compiled game.
      solved: the last layer that was solved; 0: none.
      behaviour: for each player float64 [S], average strategies of the last solves that
        met an infoset; uniform where there were none.
      opponent_values: float64 [G], o's counterfactual values at augmented infosets met
        so far.
    """

    partial: PartialTree
    snapshot: Snapshot
    decomposition: Decomposition
    solved: int
    behaviour: tuple[np.ndarray, np.ndarray]
    opponent_values: np.ndarray

    @classmethod
    def of(
        cls,
        partial: PartialTree,
        player: int,
        before: "SolvedTree | None" = None,
        cut: np.ndarray | None = None,
    ) -> "SolvedTree":
        """Nothing is solved yet.

        Args:
          partial: the tree.
          player: i.
          before: take strategies over from there, and what the opponent is known to
            forget: this tree may end before that shows.
          cut: int64, ids of histories of one public state, where `before` ended: a
            layer begins there.

        Raises:
          ImperfectRecallError, HiddenTurnsError: what is there of the game seems not
            fit to be resolved.
        """
        snapshot, alike = partial.compile(), None
        if before is not None:
            alike = before._augmented_of(snapshot.ids)
        also = None if cut is None else np.isin(snapshot.ids, cut)
        if len(snapshot.cut):
            also = np.zeros(len(snapshot.ids), bool) if also is None else also
            also[snapshot.cut] = True
        decomposition = decompose(snapshot.tree, player, alike=alike, also=also)
        first, second = (
            uniform_behaviour(infosets.decisions) for infosets in snapshot.tree.infosets
        )
        opponent_values = np.zeros(len(decomposition.augmented_layer))
        made = cls(
            partial, snapshot, decomposition, 0, (first, second), opponent_values
        )
        if before is not None:
            for p in range(2):
                known, old = find_numbers(before.snapshot.labels[p], snapshot.labels[p])
                source = before._sequences(p, old[known])
                made.behaviour[p][made._sequences(p, np.flatnonzero(known))] = (
                    before.behaviour[p][source]
                )
        return made

    @property
    def player(self) -> int:
        return self.decomposition.player

    @functools.cached_property
    def _keys(self) -> dict[str, int]:
        keys = self.snapshot.tree.infosets[self.player].keys
        return {key: number for number, key in enumerate(keys)}

    def find(self, key: str) -> int:
        """The player's infoset by its information-state string; -1: it is not there."""
        return self._keys.get(key, -1)

    def histories_of(self, infoset: int) -> np.ndarray:
        """int64, the histories of an infoset of the player."""
        histories = self.snapshot.tree.histories
        acts = histories.player == self.player
        return np.flatnonzero(acts & (histories.infoset == infoset))

    def strategy(self, infoset: int) -> tuple[list[int], np.ndarray]:
        """Actions at an infoset of the player, and its probabilities, float64 [A]."""
        sequences = self._sequences(self.player, np.array([infoset]))
        actions = self.snapshot.tree.infosets[self.player].actions[sequences - 1]
        return actions.tolist(), self.behaviour[self.player][sequences]

    def unsolved_above(self, infoset: int) -> list[int]:
        """The infosets of the player that open unsolved layers, down to this one."""
        d = self.decomposition
        decisions = self.snapshot.tree.infosets[self.player].decisions
        owner, opening = decisions.owner, []
        while infoset >= 0 and d.own_layer[infoset] > self.solved:
            if d.opens[infoset]:
                opening.append(infoset)
            infoset = int(owner[decisions.parent[infoset]])
        return opening[::-1]

    def subgame_roots(self, infoset: int) -> np.ndarray:
        """int64, the histories at the top of the subgame that an infoset opens."""
        d = self.decomposition
        return d.roots[d.augmented_subgame[d.root_augmented] == d.own_subgame[infoset]]

    def has_all_roots(self, infoset: int) -> bool:
        """Whether no roots are missing of the subgame that an infoset opens.

        The tree may end before some of them, at decisions of the opponent that look to
        the player like those on the way to the others. Then the opponent would seem to
        hold only what it holds at these.
        """
        table, i = self.partial.table, self.player
        frontier = table.frontier()
        ends = table.observation[frontier[table.player[frontier] == 1 - i]]
        ends = ends[ends >= 0]
        rows = self.partial.rows(self.snapshot.ids[self.subgame_roots(infoset)])
        rows = table.parent[rows]
        while len(rows := np.unique(rows[rows >= 0])):
            rows = rows[table.player[rows] != i]
            turns = rows[table.player[rows] == 1 - i]
            if np.isin(table.observation[turns], ends).any():
                return False
            rows = table.parent[rows]
        return True

    def focus(self, histories: np.ndarray, *, collapse: bool = False) -> PartialTree:
        """A tree with room for what comes after some histories."""
        return self.partial.focus(self.snapshot.ids[histories], collapse=collapse)

    def focus_on(self, infoset: int) -> PartialTree:
        """A tree with room for what comes after the player's infoset.

        What is dropped is worth what both players' strategies make of it.
        """
        ids = self.snapshot.ids
        values = np.empty(len(ids))
        values[self.partial.rows(ids)] = history_values(
            self.snapshot.tree, self.behaviour
        )
        return self.partial.focus(ids[self.histories_of(infoset)], stub_values=values)

    def hand_on(self, after: "SolvedTree", roots: np.ndarray) -> bool:
        """Hands o's values at a subgame's roots on to a tree that has grown below it.

        Args:
          after: made from `focus(roots)`; brought up to the layer before the subgame.
          roots: the subgame's.

        An augmented infoset is never split by that (see `of`). Some may be joined: what
        o has there is the sum of what it had, since counterfactual values are sums over
        histories.

        Returns:
          Whether the tree still has these roots. More of the game may show that players
          know less than they seemed to; then it does not.
        """
        d, new = self.decomposition, after.decomposition
        _, new_roots = find_numbers(after.snapshot.ids, self.snapshot.ids[roots])
        is_root, place = find_numbers(new.roots, new_roots)
        layer = new.layer[new_roots]
        if not is_root.all() or (layer != layer[0]).any():
            return False
        if np.count_nonzero(new.layer[new.roots] == layer[0]) != len(new_roots):
            return False
        _, old_place = find_numbers(d.roots, roots)
        pairs = np.stack([d.root_augmented[old_place], new.root_augmented[place]])
        old, matching = np.unique(pairs, axis=1)
        np.add.at(after.opponent_values, matching, self.opponent_values[old])
        after.solved = int(layer[0]) - 1
        return True

    def hand_on_ends(self, after: "SolvedTree", ids: np.ndarray) -> bool:
        """Hands on what o was promised where this tree ended.

        That is what o gets there against i's strategy, by what it knows, with the leaf
        values, and with the best of its continuations; at a cut what the solver above
        it found, mean over the iterates, if i has acted before it.

        Args:
          after: made with the cut `ids`; brought up to the layer before it.
          ids: int64 [n], histories of the frontier, all that o cannot tell apart.

        Returns:
          Whether the new tree can be resolved from there.
        """
        d, histories, i = after.decomposition, self.snapshot.tree.histories, self.player
        at_cut, _ = find_numbers(self.snapshot.ids[self.snapshot.cut], ids)
        if at_cut.any():
            # What it got in the last solve, as at the roots of a layer in the tree. No
            # solve says that where i has not acted.
            _, roots = find_numbers(self.snapshot.ids, ids)
            promised = at_cut.all() and (self.decomposition.layer[roots] > 1).all()
            return bool(promised) and self.hand_on(after, roots)
        _, rows = find_numbers(after.snapshot.ids, ids)
        is_root, place = find_numbers(d.roots, rows)
        layer = d.layer[rows]
        if not is_root.all() or (layer != layer[0]).any():
            return False
        if np.count_nonzero(d.layer[d.roots] == layer[0]) != len(rows):
            return False
        _, ends = find_numbers(self.snapshot.ids, ids)
        decisions = self.snapshot.tree.infosets[i].decisions
        reach = reach_from_behaviour(decisions, self.behaviour[i])
        weight = histories.chance[ends] * reach[histories.sequence[i][ends]]
        weight *= 1.0 if i == 1 else -1.0
        if histories.player[ends[0]] == 1 - i:  # chooses among continuations
            first = np.searchsorted(histories.parent, ends)
            count = int(np.searchsorted(histories.parent, ends[0], "right") - first[0])
            values = histories.utility[first[:, None] + np.arange(count)]
            known = histories.infoset[ends]
        else:
            values, known = histories.utility[ends][:, None], np.arange(len(ends))
        # Augmented infosets may be joined; o chooses by what it knew before.
        known, group = np.unique(
            np.stack([d.root_augmented[place], known]), axis=1, return_inverse=True
        )
        total = np.zeros((known.shape[1], values.shape[1]))
        np.add.at(total, group.reshape(-1), weight[:, None] * values)
        np.add.at(after.opponent_values, known[0], total.max(axis=1))
        after.solved = int(layer[0]) - 1
        return True

    def next_layer(self) -> LimitedGame:
        """The gadget game of the next layer, wherever it begins."""
        return self._gadget_game(np.ones(len(self.decomposition.own_layer), bool))

    def forest(self) -> Forest:
        """The gadget game of the next layer; the whole tree if it is the first."""
        decisions = self.snapshot.tree.infosets[self.player].decisions
        reach = reach_from_behaviour(decisions, self.behaviour[self.player])
        return build_forest(
            self.decomposition, self.solved + 1, reach, self.opponent_values
        )

    def limited(self, free: np.ndarray) -> LimitedGame:
        """The gadget game of the next layer where the player plays as before.

        At infosets that open the layer it plays as it did, but for some. After the
        others it chooses anew from its next layer on: it will have to when it comes
        there, and the strategies so far end where the smaller tree did.

        Args:
          free: int, labels of the opening infosets at which it chooses anew.
        """
        d, layer = self.decomposition, self.solved + 1
        opening = d.opens & (d.own_layer == layer)
        is_free = opening & np.isin(self.snapshot.labels[self.player], free)
        fixed = infosets_after(d, np.flatnonzero(opening & ~is_free))
        return self._gadget_game(~(fixed & (d.own_layer == layer)))

    def _gadget_game(self, chooses: np.ndarray) -> LimitedGame:
        """The gadget game of all of the next layer.

        Args:
          chooses: bool [I of i], where it chooses anew, of infosets from the layer on;
            elsewhere it plays as before.
        """
        d, layer = self.decomposition, self.solved + 1
        chooses = chooses & (d.own_layer >= layer)
        above = np.append(chooses, False)[d.decisions.owner[d.decisions.parent]]
        nothing = np.zeros(0, np.int32)
        known = KnowledgeSet(
            layer,
            free=np.flatnonzero(chooses & ~above),
            fixed=nothing,
            cut=nothing,
            roots=d.roots[d.layer[d.roots] == layer],
            augmented=np.flatnonzero(d.augmented_layer == layer),
        )
        game = limited_game(d, known, self.behaviour, self.opponent_values)
        return dataclasses.replace(game, payoffs=with_payoff(game.payoffs))

    def reach(self) -> np.ndarray:
        """float64 [2, N], each player's probability of playing to each history."""
        tree = self.snapshot.tree
        return np.stack(
            [
                reach_from_behaviour(own.decisions, behaviour)[sequence]
                for own, behaviour, sequence in zip(
                    tree.infosets, self.behaviour, tree.histories.sequence, strict=True
                )
            ]
        )

    def take_strategies(self, game: Forest | LimitedGame, solver: Solver) -> None:
        """Takes in how a solver found that both play in the next layer and below."""
        i, o = self.player, 1 - self.player
        own, other = (solver.average_behaviour(p) for p in (i, o))
        self.behaviour[i][self._sequences(i, game.own)] = own[1:]
        # Its last infosets are the augmented ones of the next layer, with one action.
        mine = self._sequences(o, game.other)
        end = len(other) - len(game.next_augmented)
        self.behaviour[o][mine] = other[end - len(mine) : end]

    def take_values(self, game: Forest | LimitedGame, solver: Solver) -> None:
        """Takes in what the opponent got in the layer after the next, now solved."""
        next_augmented = len(game.next_augmented)
        if next_augmented:
            values = solver.infoset_values(1 - self.player)
            self.opponent_values[game.next_augmented] = values[
                len(values) - next_augmented :
            ]
        self.solved += 1

    def mixed(self, player: int, uniform_share: float) -> np.ndarray:
        """float64 [S], a player's strategy with a share of uniform play."""
        decisions = self.snapshot.tree.infosets[player].decisions
        uniform = uniform_behaviour(decisions)
        return uniform_share * uniform + (1 - uniform_share) * self.behaviour[player]

    def play(
        self,
        labels: np.ndarray,
        counts: np.ndarray,
        elsewhere: np.ndarray,
        *,
        player: int,
        mix: float,
    ) -> np.ndarray:
        """Probabilities at infosets by label.

        Args:
          labels: int32 [n], of infosets.
          counts: int32 [n], how many actions they have.
          elsewhere: float64 [sum of counts], probabilities outside the tree.
          player: whose infosets.
          mix: share of uniform play.

        Returns:
          float64 [sum of counts].
        """
        known, infosets = find_numbers(self.snapshot.labels[player], labels)
        odds = elsewhere.copy()
        sequences = self._sequences(player, infosets[known])
        odds[np.repeat(known, counts)] = self.mixed(player, mix)[sequences]
        return odds

    def _augmented_of(self, ids: np.ndarray) -> np.ndarray:
        """int32 [n], the augmented infosets of histories by id; -1 where none is."""
        d = self.decomposition
        if not len(d.roots):
            return np.full(len(ids), -1, np.int32)
        is_root, place = find_numbers(self.snapshot.ids[d.roots], ids)
        return np.where(is_root, d.root_augmented[place], np.int32(-1))

    def _sequences(self, player: int, infosets: np.ndarray) -> np.ndarray:
        """int64, the sequences of some of a player's infosets."""
        decisions = self.snapshot.tree.infosets[player].decisions
        first, counts = decisions.first_sequence, decisions.num_actions
        return ranges(first[infosets], counts[infosets])


def find_numbers(known: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bool [n], whether each number is known; int64 [n], where."""
    if not len(known):
        return np.zeros(len(asked), bool), np.zeros(len(asked), np.int64)
    order = np.argsort(known)
    places = np.searchsorted(known[order], asked)
    found = order[np.minimum(places, len(known) - 1)]
    return known[found] == asked, found
