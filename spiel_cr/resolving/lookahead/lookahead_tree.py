"""Lookahead trees of at most N histories, for games that are too large to build.

Histories that are not expanded are the *frontier*: in the tree's snapshot they are
TERMINAL, with leaf values as utilities. `grow` expands more of them. `focus` drops all
histories that do not lead to given ones, so that the game below these fits.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cr.common.messages import short_repr
from spiel_cr.games.histories import string_at
from spiel_cr.games.opening.batched_rules import BrokenRulesError, of_game
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.simulation.labelled import LabelledSimulator, Nodes
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.state_source import StateSource
from spiel_cr.policies.leaf_values import HistoryValues, leaf_utilities
from spiel_cr.resolving.lookahead import growth
from spiel_cr.resolving.lookahead.blueprint import Blueprint
from spiel_cr.resolving.lookahead.frontier import TreeRows, breadth_first, with_choices
from spiel_cr.resolving.lookahead.node_table import Ids, NodeTable
from spiel_cr.resolving.lookahead.snapshot import TreeSnapshot, snapshot_of

# Multiplier of a hash function: 2^64 divided by the golden ratio, rounded to odd.
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LookaheadTree:
    """A part of a game tree, of at most `max_histories` histories.

    Histories have ids, which they keep while the tree grows, and in trees made from it
    by `focus`. After `grow` and `truncate`, all or none of an infoset's histories on
    one level are expanded.

    Attributes:
      simulator: Simulator of the game.
      leaf: Values of histories at the frontier.
      table: The histories.
      player: The re-solving player; the opponent chooses a continuation strategy at the
        frontier.
      blueprint: Strategy of both players, which guides growth; uniform if None.
      dropped: Labels of the opponent's infosets from which `focus` dropped histories,
        int32 [n], ascending.
    """

    __repr__ = short_repr

    simulator: LabelledSimulator
    leaf: HistoryValues
    table: NodeTable
    player: int
    blueprint: Blueprint | None = None
    dropped: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))

    @classmethod
    def start(
        cls,
        game: str | pyspiel.Game,
        max_histories: int,
        *,
        leaf: HistoryValues,
        player: int,
        batched_rules: bool = True,
    ) -> "LookaheadTree":
        """Return a tree of the start of the game, which is not expanded.

        Args:
          game: OpenSpiel game string or game, as for `build_tree`.
          max_histories: N, at least 2.
          leaf: Values of histories at the frontier, as states of the batched rules, or
            as OpenSpiel's states without such rules.
          player: The re-solving player.
          batched_rules: Whether to use the game's batched rules, if it has any.

        Raises:
          ValueError: If the game is invalid.
        """
        game = open_game(game).game
        rules = of_game(game) if batched_rules else None
        source = StateSource(game) if rules is None else RulesSource(game, rules)
        simulator = LabelledSimulator(source, observations=True)
        table = NodeTable(max_histories, Ids(), simulator.root())
        return cls(simulator, leaf, table, player=player)

    def __len__(self) -> int:
        return self.table.used

    @property
    def game(self) -> pyspiel.Game:
        """The sequential game."""
        return self.simulator.source.game

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """Return the rows of histories, int64 [n].

        Raises:
          KeyError: If a history is not in this tree.
        """
        row_ids = self.table.id[: self.table.used]
        rows = np.searchsorted(row_ids, ids)
        if not (row_ids[np.minimum(rows, len(row_ids) - 1)] == ids).all():
            raise KeyError("a history is not in this tree; it was dropped by focus")
        return rows

    def number_of(self, ids: np.ndarray) -> int:
        """Return a 64-bit number for some histories, by the actions that lead there."""
        table = self.table
        code = np.zeros(table.used, np.uint64)
        moves = (table.action[: table.used].astype(np.int64) + 2).astype(np.uint64)
        depth = table.depth[: table.used]
        for level in range(int(depth.min()) + 1, int(depth.max()) + 1):
            level_rows = np.flatnonzero(depth == level)
            mixed = (code[table.parent[level_rows]] ^ moves[level_rows]) * _MIX
            code[level_rows] = mixed ^ (mixed >> np.uint64(29))
        return int(code[self.rows(ids)].sum())

    def nodes(self, ids: np.ndarray) -> Nodes:
        """Return histories by id, as from the simulator; stubs are terminal."""
        return self.table.nodes(self.rows(ids))

    def is_expanded(self, ids: np.ndarray) -> bool:
        """Return whether all the histories with these ids are expanded."""
        return bool((self.table.first[self.rows(ids)] >= 0).all())

    def grow(self, most: int, *, deadline: float | None = None) -> None:
        """Expand public states in order of urgency, see `growth.py`.

        Args:
          most: Maximum number of histories, if less than `max_histories`.
          deadline: Deadline by `time.perf_counter`, after which no further expansion
            starts.
        """
        try:
            growth.grow(
                *(self.table, self.simulator, min(most, self.table.capacity)),
                blueprint=self.blueprint,
                deadline=deadline,
            )
        except BrokenRulesError as error:
            raise error.at(self.table.path_to(error.history)) from error

    def next_public_state(
        self,
        ids: np.ndarray,
        key: str,
        *,
        most: int,
        begins: bool = False,
        deadline: float | None = None,
    ) -> tuple["LookaheadTree", np.ndarray, list[str]] | None:
        """Find the public state of the player's next decision.

        Args:
          ids: The player's decisions in one public state, int64 [n], with nothing
            expanded below them.
          key: The player's information-state string at its next decision.
          most: Maximum number of histories on the way.
          begins: Whether the next decision may be one of `ids`, as at the start of the
            game.
          deadline: Deadline on the clock `time.perf_counter`, or None for no deadline.

        Returns:
          A tree of the histories that lead to the public state, the ids of its
          histories, int64, and the player's information-state strings there. None if
          there is not enough memory or time, or no history that leads there.
        """
        tree = self.focus(ids)
        table, rows = tree.table, tree.rows(ids)
        decisions = [rows[:0]]
        if begins:
            decisions, rows = tree._split(rows)
        while len(rows):
            full = table.used + int(table.num_actions[rows].sum()) > most
            if full or growth.has_passed(deadline):
                return None
            table.expand_rows(self.simulator, rows)
            more, rows = tree._split(table.children(rows))
            decisions += more
        ends = np.concatenate(decisions)
        labels, first = np.unique(table.label[ends], return_index=True)
        strings = tree._strings(ends[first])
        target = [
            label for label, text in zip(labels, strings, strict=True) if text == key
        ]
        if not target:
            return None
        group = growth.public_states(table, ends)
        chosen = group == group[table.label[ends] == target[0]][0]
        state_ids = table.id[ends[chosen]]
        in_state = np.isin(labels, table.label[ends[chosen]])
        return (
            tree.focus(state_ids),
            state_ids,
            list(itertools.compress(strings, in_state)),
        )

    def _strings(self, rows: np.ndarray) -> Sequence[str]:
        """Return information-state strings from batched rules or states."""
        table, source = self.table, self.simulator.source
        if source.has_strings:
            return source.strings(table.states[rows], self.player)
        paths = map(table.path_to, rows.tolist())
        return [string_at(self.game, path, self.player) for path in paths]

    def _split(self, rows: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the player's decisions among rows, and other rows with actions."""
        acts = self.table.player[rows] == self.player
        return [rows[acts]], rows[~acts & (self.table.num_actions[rows] > 0)]

    def truncate(self, most: int) -> None:
        """Undo the last expansions until at most `most` histories are left.

        Histories with which a tree made by `focus` began are kept.
        """
        self.table.truncate(most)

    def focus(self, ids: np.ndarray) -> "LookaheadTree":
        """Return a tree of the histories above and below given ones.

        Their ancestors are kept, with all their moves. The history after a dropped move
        becomes a stub: a terminal with utility 0. Infosets and sequences above are
        therefore unchanged, but values of strategies there are meaningless.

        Args:
          ids: Histories, int64 [n].

        Raises:
          KeyError: If a history is not in this tree.
        """
        parent = self.table.parent[: self.table.used]
        within, above = np.zeros((2, len(parent)), bool)
        within[self.rows(ids)] = True
        rows = self.table.rows()
        order, starts = breadth_first(rows.first, rows.num_children)
        levels = [order[a:b] for a, b in itertools.pairwise(starts[1:].tolist())]
        for level in levels:
            within[level] |= within[parent[level]]
        for level in reversed(levels):
            above[parent[level[within[level] | above[level]]]] = True
        above &= ~within
        siblings = np.append(False, above[parent[1:]])
        kept = np.flatnonzero(within | above | siblings)
        table = self.table.take(kept)
        # Terminal histories keep their utility, even after a dropped move.
        goes_on = table.num_actions[: len(kept)] > 0
        stubs = np.flatnonzero(~(within | above)[kept] & goes_on)
        table.stub[stubs] = True
        table.num_actions[stubs] = 0
        table.first[stubs] = -1
        table.utility[stubs] = 0.0
        lost = ~(within | above) & (self.table.player[: len(parent)] == 1 - self.player)
        dropped = np.union1d(self.dropped, self.table.label[: len(parent)][lost])
        return dataclasses.replace(self, table=table, dropped=dropped)

    def snapshot(self) -> TreeSnapshot:
        """Return the tree as a game in tree form, which ends at the frontier.

        If it is the complete game, the result is bitwise identical to that of
        `build_tree`.

        Raises:
          ImperfectRecallError: If a player seems to have imperfect recall in the tree.
        """
        return snapshot_of(self._rows(), self.table.states, self.simulator)

    def unvalued(self) -> np.ndarray:
        """Return rows of leaves without leaf values, int64."""
        leaves = self.table.frontier()
        return leaves[np.isnan(self.table.value[leaves]).any(axis=1)]

    def value_leaves(self) -> None:
        """Compute missing leaf values; `snapshot` does this automatically."""
        table, new = self.table, self.unvalued()
        if not len(new):
            return
        rules, states = self.simulator.source.rules, table.states[new]
        values = leaf_utilities(self.leaf, rules, states, self.player)
        if values.shape[1] > table.value.shape[1]:
            table.value = np.tile(table.value, (1, values.shape[1]))
        table.value[new] = values
        if self.leaf.k > 1:
            table.spread[new] = np.ptp(values, axis=1)

    def _rows(self) -> TreeRows:
        """Return the histories, with the opponent's choices at the frontier."""
        self.value_leaves()
        table, leaves = self.table, self.table.frontier()
        rows = table.rows()
        if table.value.shape[1] == 1:
            rows.utility[leaves] = table.value[leaves, 0]
            return rows
        chooser = 1 - self.player
        last_step = growth.last_step(table, leaves, np.full(len(leaves), chooser))
        knowledge = table.label[leaves], table.observation[leaves], last_step
        values, acting = table.value[leaves], table.player[leaves]
        return with_choices(rows, leaves, values, acting, knowledge, chooser)
