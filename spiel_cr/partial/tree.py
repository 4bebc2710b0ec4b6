"""Second stage, games too large to be compiled whole: a part of the tree that grows.

A `PartialTree` holds at most N histories. Those that were not expanded are its *edge*:
in the compiled part they are TERMINAL, with a leaf value for a utility. `grow` expands
more of them, `focus` gives up all that does not lead to some histories, so that the
room goes to what lies below these. The compiled part is an ordinary `CompiledGame`.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.compilation import infostate_strings, loading, numbering
from spiel_cr.compilation import tree as compiled
from spiel_cr.compilation import vectorised as expansion
from spiel_cr.partial import expand
from spiel_cr.partial.nodes import Ids, Rows
from spiel_cr.partial.simulator import ArraySource, EdgeValue, Nodes, Source, parse_edge
from spiel_cr.partial.state_simulator import StateSource


class Part(NamedTuple):
    """What `PartialTree.compile` gives.

    Attributes:
      tree: the part as a compiled game; `tree.frontier` tells where it ends before the
        game does.
      ids: int64 [N], the lasting number of each history; no other history has it, in
        any tree made of the same one.
      labels: for each player int32 [I], a number for each infoset that lasts as long as
        the growing tree and all that was made of it.
    """

    tree: compiled.CompiledGame
    ids: np.ndarray
    labels: tuple[np.ndarray, np.ndarray]


class PartialTree:
    """A part of a game tree, of at most `max_histories` histories.

    Histories have ids, which they keep while the tree grows, and in trees made of it by
    `focus`. Infosets are whole as far as their histories are there: of those of an
    infoset on one level `grow` and `truncate` leave all expanded, or none of them.

    Attributes:
      game: the sequential game.
      max_histories: N, the most histories that it ever holds.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        max_histories: int,
        *,
        edge: str | EdgeValue = "rollout",
        observations: bool = True,
        vectorised: bool = True,
    ) -> None:
        """The beginning of the game only.

        Args:
          game: OpenSpiel game string or game, as for `compile_game`.
          max_histories: N, at least 2.
          edge: what histories at the edge are worth: "rollout", "rollout(n=4,seed=0)",
            the mean of random rollouts, or a function from an array of states to
            float64 [n], player 0's utilities. The states are `pyspiel.State`s, or those
            of the game's expansion, if it has one and `vectorised` is true.
          observations: also record what the player who does not act is told.
          vectorised: play by the game's own rules on arrays, if it has them.

        Raises:
          ValueError: a bad game, limit or edge value.
        """
        if max_histories < 2:
            raise ValueError(f"max_histories={max_histories!r} must be at least 2")
        game = loading.load_game(game)
        rules = expansion.of_game(game) if vectorised else None
        value = parse_edge(edge)
        source: Source
        if rules is None:
            source = StateSource(game, value, observations=observations)
        else:
            source = ArraySource(game, rules, value, observations=observations)
        self.game = game
        self.max_histories = max_histories
        self.source = source
        self._rules = rules
        # Whether it begins with a move of chance that is not the game's own.
        self._rooted = False
        self._rows = Rows(max_histories, Ids())
        self._rows.append(source.root(), np.full(1, -1))
        self._rows.marks = [1]

    def _with(self, rows: Rows, *, rooted: bool) -> "PartialTree":
        """Another tree of the same game."""
        tree = object.__new__(PartialTree)
        vars(tree).update(vars(self))
        tree._rows, tree._rooted = rows, rooted
        return tree

    def __len__(self) -> int:
        return self._rows.used

    @property
    def is_whole(self) -> bool:
        """Whether all of the game is there: none is left to expand, or dropped."""
        return (
            not self._rooted
            and not len(self._rows.frontier())
            and not self._rows.stub[: self._rows.used].any()
        )

    @property
    def can_grow(self) -> bool:
        """Whether there is something left to expand."""
        return len(self._rows.frontier()) > 0

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """int64 [n], places of histories in `reach` and the like, by id.

        Raises:
          KeyError: a history that is not there (any more).
        """
        mine = self._rows.id[: self._rows.used]
        rows = np.searchsorted(mine, ids)
        if not (mine[np.minimum(rows, self._rows.used - 1)] == ids).all():
            raise KeyError("a history is not in this tree; it was dropped by focus")
        return rows

    def nodes(self, ids: np.ndarray) -> Nodes:
        """Histories by id, as the source gives them; terminal ones may be stubs."""
        rows = self.rows(ids)
        columns = (
            self._rows.action,
            self._rows.player,
            self._rows.label,
            self._rows.told,
        )
        action, player, label, told = (column[rows] for column in columns)
        ones = np.ones(len(rows))
        return Nodes(
            *(self._rows.states(rows), action, player, label, told),
            *(ones, self._rows.utility[rows], self._rows.legal[rows]),
        )

    def grow(
        self,
        most: int | None = None,
        *,
        best_first: bool = False,
        reach: np.ndarray | None = None,
        deadline: float | None = None,
    ) -> bool:
        """Expands histories, all those of an infoset on one level or none.

        With `best_first`, histories of an infoset that are found late are expanded at
        once where earlier ones were; what there is no room for in that way is left.

        Args:
          most: histories to have at most, at least 1; None: `max_histories`.
          best_first: always expand what is reached most; else whole levels as long as
            they fit, and of the next one what is reached most.
          reach: float64 [len(self)], priorities of the histories in the order of ids;
            those below share it like chance and uniform play. None: the probability
            that chance and uniform play lead there.
          deadline: by `time.perf_counter`; after it no more is expanded than the
            first few thousand histories.

        Returns:
          Whether there is nothing left to expand.

        Raises:
          ValueError: a bad number of histories.
        """
        if most is None:
            most = self.max_histories
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ValueError(f"most={most!r} must be a whole number from 1 up, or None")
        limit = min(most, self.max_histories)
        if reach is not None:
            self._rows.reach[: self._rows.used] = reach
        return expand.expand(
            *(self._rows, self.source, limit),
            best_first=best_first,
            deadline=deadline,
        )

    def focus(
        self, ids: np.ndarray, *, bare: bool = False, worth: np.ndarray | None = None
    ) -> "PartialTree":
        """A tree in which only what leads to some histories, or comes after, is left.

        Their ancestors stay, with all their moves; what a dropped move leads to is a
        terminal worth nothing (a stub). So infosets and sequences above stay as they
        are, but what strategies are worth there means nothing any more.

        Args:
          ids: int64 [n], histories.
          bare: also give up what comes after them, to be expanded anew; then none of
            them may come after another.
          worth: float64 [len(self)], player 0's utility of each history, in the order
            of ids, for what stubs are worth instead.

        Raises:
          KeyError: a history that is not in this tree.
          ValueError: with `bare`, one of them comes after another.
        """
        rows, used = self.rows(ids), self._rows.used
        parent, depth = self._rows.parent[:used], self._rows.depth[:used]
        inside, above = np.zeros(used, bool), np.zeros(used, bool)
        inside[rows] = True
        by_depth = np.argsort(depth, kind="stable")
        bounds = np.searchsorted(depth[by_depth], np.arange(depth.max() + 2))
        levels = [by_depth[a:b] for a, b in zip(bounds[1:-1], bounds[2:], strict=True)]
        for level in levels:
            if not bare:
                inside[level] |= inside[parent[level]]
        for level in reversed(levels):
            above[parent[level[inside[level] | above[level]]]] = True
        if bare and (above & inside).any():
            raise ValueError(
                "ids: with bare=True no history may come after another one, which "
                "gives up what comes after it; leave it out"
            )
        above &= ~inside
        siblings = np.append(False, above[parent[1:]])
        kept = np.flatnonzero(inside | above | siblings)
        taken = self._rows.take(kept)
        # Terminals stay what they are, whoever leads to them.
        legal = taken.legal[: len(kept)]
        dropped = np.flatnonzero(~(inside | above)[kept] & (legal > 0))
        taken.stub[dropped] = True
        taken.legal[dropped] = 0
        taken.first[dropped] = -1
        taken.utility[dropped] = 0.0 if worth is None else worth[kept[dropped]]
        return self._with(taken, rooted=self._rooted)

    def truncate(self, most: int) -> None:
        """Takes the last expansions back until at most so many histories are left.

        What a tree made by `focus` or `rooted` began with stays.
        """
        self._rows.truncate(most)

    def rooted(self, nodes: Nodes, weights: np.ndarray) -> "PartialTree":
        """A tree that begins with a move of chance to one of some histories.

        Args:
          nodes: n histories, fewer than `max_histories`.
          weights: float64 [n], their odds; need not sum to 1.

        Raises:
          ValueError: too many histories, or weights that are no odds.
        """
        count = len(nodes.player)
        if not 0 < count < self.max_histories:
            raise ValueError(
                f"nodes: {count} histories must be fewer than "
                f"max_histories={self.max_histories}, and at least one"
            )
        if weights.shape != (count,) or not (weights >= 0).all() or not weights.sum():
            raise ValueError("weights must be numbers from 0 up, one for each history")
        rows = Rows(self.max_histories, self._rows.ids)
        chance = nodes._replace(
            handles=nodes.handles[:1],
            action=np.full(1, -1, np.int32),
            player=np.full(1, numbering.CHANCE, np.int8),
            label=np.full(1, -1, np.int32),
            told=np.full(1, -1, np.int32),
            factor=np.ones(1),
            utility=np.zeros(1),
            legal=np.full(1, count, np.int32),
        )
        rows.append(chance, np.full(1, -1))
        rows.first[0] = 1
        actions = np.arange(count, dtype=np.int32)
        below = nodes._replace(action=actions, factor=weights / weights.sum())
        rows.append(below, np.zeros(count, np.int64))
        rows.marks = [rows.used]
        return self._with(rows, rooted=True)

    def compile(self) -> Part:
        """The part that is there as a compiled game.

        If that is the whole game, it is what `compile_game` gives, bit for bit.
        """
        order, level_start = self._rows.breadth_first()
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        edge, utility = self._edge()
        player = np.where(
            edge, np.int8(numbering.TERMINAL), self._rows.player[: self._rows.used]
        )
        player = player[order]
        parent = self._rows.parent[order]
        label = np.full(len(order), -1, np.int32)
        told = np.full(len(order), -1, np.int32)
        lasting = []
        for p in range(2):
            here = np.flatnonzero(player == p)
            known, label[here] = np.unique(
                self._rows.label[order[here]], return_inverse=True
            )
            _, told[here] = np.unique(self._rows.told[order[here]], return_inverse=True)
            lasting.append(known.astype(np.int32))
        walked = numbering.Walked(
            parent=np.where(parent >= 0, rank[parent], np.int32(-1)),
            action=self._rows.action[order],
            player=player,
            label=label,
            observations=told if self.source.tells else None,
            chance=self._rows.chance[order],
            utility=utility[order],
            level_start=level_start,
        )
        numbered = numbering.number(walked, self.game)
        histories = compiled.histories_of(walked, numbered)
        if self._rules is not None and not self._rooted:
            tree = compiled.assemble(
                self.game, histories, numbered.players, rules=self._rules
            )
        else:
            strings = [
                self._strings(order[numbers.history], p)
                for p, numbers in enumerate(numbered.players)
            ]
            tree = compiled.assemble(
                *(self.game, histories, numbered.players),
                strings=(strings[0], strings[1]),
            )
        if edge.any() or self._rooted:
            tree = dataclasses.replace(tree, frontier=edge[order], rooted=self._rooted)
        labels = [
            known[numbers.order]
            for known, numbers in zip(lasting, numbered.players, strict=True)
        ]
        return Part(tree, self._rows.id[order], (labels[0], labels[1]))

    def _edge(self) -> tuple[np.ndarray, np.ndarray]:
        """bool, which rows are the edge; float64, the utility of each row."""
        used = self._rows.used
        open_ = self._rows.frontier()
        new = open_[np.isnan(self._rows.value[open_])]
        if len(new):
            self._rows.value[new] = self.source.values(
                self._rows.states(new), self._rows.player[new]
            )
        utility = self._rows.utility[:used].copy()
        utility[open_] = self._rows.value[open_]
        edge = self._rows.stub[:used].copy()
        edge[open_] = True
        return edge, utility

    def _strings(self, rows: np.ndarray, player: int) -> infostate_strings.Strings:
        """Information-state strings at some rows, on demand."""
        handles, source = self._rows.states(rows), self.source
        return infostate_strings.Strings(
            len(rows),
            lambda number: source.strings(handles[number : number + 1], player)[0],
            lambda: source.strings(handles, player),
        )
