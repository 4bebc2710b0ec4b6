"""A partial tree with the strategies and values that were solved for it."""

import dataclasses
import functools

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.policies.conversions import reach_from_behaviour, uniform_behaviour
from spiel_cr.resolving.decomposition import Decomposition, decompose
from spiel_cr.resolving.gadget import Forest, build_forest
from spiel_cr.resolving.gadget_fronts import Gadget
from spiel_cr.resolving.partial.compiling import Snapshot
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.solvers.cfr.solver import Solver


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
      is_promised: whether these hold at the roots of the next layer, also of the first.
    """

    partial: PartialTree
    snapshot: Snapshot
    decomposition: Decomposition
    solved: int
    behaviour: tuple[np.ndarray, np.ndarray]
    opponent_values: np.ndarray
    is_promised: bool = False

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

    def hand_on(self, after: "SolvedTree", ids: np.ndarray) -> bool:
        """Hands on what o was promised at histories that a tree has grown below.

        An augmented infoset is never split by that (see `of`). Some may be joined: what
        o has there is the sum of what it had, since counterfactual values are sums over
        histories.

        Args:
          after: made from `PartialTree.focus(ids)`; brought up to the layer before the
            one of these histories.
          ids: int64 [n], the roots of a subgame, or histories of the frontier, all that
            o cannot tell apart.

        Returns:
          Whether the new tree can be resolved from there. More of the game may show
          that players know less than they seemed to; then it cannot.
        """
        d, new = self.decomposition, after.decomposition
        _, rows = find_numbers(after.snapshot.ids, ids)
        is_root, place = find_numbers(new.roots, rows)
        layer = new.layer[rows]
        if not is_root.all() or (layer != layer[0]).any():
            return False
        if np.count_nonzero(new.layer[new.roots] == layer[0]) != len(rows):
            return False
        _, histories = find_numbers(self.snapshot.ids, ids)
        was_root, old_place = find_numbers(d.roots, histories)
        augmented = new.root_augmented[place]
        if was_root.all():
            pairs = np.stack([d.root_augmented[old_place], augmented])
            old, augmented = np.unique(pairs, axis=1)
            values = self.opponent_values[old]
        else:
            augmented, values = self._promised_at(histories, augmented)
        np.add.at(after.opponent_values, augmented, values)
        after.solved, after.is_promised = int(layer[0]) - 1, True
        return True

    def _promised_at(
        self, ends: np.ndarray, augmented: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What o gets where the tree ends, against i's strategy, by what it knows.

        With the leaf values, and with the best of its continuations.

        Args:
          ends: int64 [n], histories of the frontier.
          augmented: int32 [n], the augmented infosets of a larger tree there.

        Returns:
          int32 [g], augmented infosets; float64 [g], parts of o's values there.
        """
        histories, i = self.snapshot.tree.histories, self.player
        reach = reach_from_behaviour(self.decomposition.decisions, self.behaviour[i])
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
        pairs, group = np.unique(
            np.stack([augmented, known]), axis=1, return_inverse=True
        )
        total = np.zeros((pairs.shape[1], values.shape[1]))
        np.add.at(total, group.reshape(-1), weight[:, None] * values)
        return pairs[0], total.max(axis=1)

    def forest(self, gadget: Gadget = "cfrd") -> Forest:
        """The gadget game of the next layer; the whole tree where nothing is known."""
        d = self.decomposition
        return build_forest(
            d,
            self.solved + 1,
            reach_from_behaviour(d.decisions, self.behaviour[self.player]),
            self.opponent_values,
            gadget=gadget,
            whole=not (self.solved or self.is_promised),
        )

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

    def take_strategies(self, game: Forest, solver: Solver) -> None:
        """Takes in how a solver found that both play in the next layer and below."""
        i, o = self.player, 1 - self.player
        own, other = (solver.average_behaviour(p) for p in (i, o))
        self.behaviour[i][self._sequences(i, game.own)] = own[1:]
        # Its last infosets are the augmented ones of the next layer, with one action.
        mine = self._sequences(o, game.other)
        end = len(other) - len(game.next_augmented)
        self.behaviour[o][mine] = other[end - len(mine) : end]

    def take_values(self, game: Forest, solver: Solver) -> None:
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
