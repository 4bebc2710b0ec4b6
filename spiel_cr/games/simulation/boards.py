"""Games of bets, hands and boards whose rules put hands into buckets.

Who acts and what may be done depends on the bets alone. Given a board for all rounds,
all hands can be looked at together: numbers float32 [places, hands], one place for each
node of the tree of bets. Those below a group of like decisions lie side by side, first
by action, then by decision.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from spiel_cr.games.histories import TERMINAL


class Bets(Protocol):
    """Nodes of the tree of bets, P of them; each one's children by actions, ascending.

    Attributes:
      player: int8 [P], who acts: 0, 1 or TERMINAL.
      parent: int32 [P], before the node; -1 at the root, which is the first.
      action: int32 [P], the action of the game that leads here; -1 at the root.
      round: int8 [P], from 0.
      stake: float64 [P], at ends what player 0 gets if it wins, or if somebody folded.
      showdown: bool [P].
    """

    player: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    round: np.ndarray
    stake: np.ndarray
    showdown: np.ndarray


class BoardRules(Protocol):
    """Batched rules with `information_state` [node, bucket], and H hands.

    Attributes:
      bets: all of them.
      counts: buckets of each round, or more.
      sizes: how many cards the board has in each round.
      held: float32 [H, cards], 1 where a hand has a card; each has one or two.
    """

    bets: Bets
    counts: tuple[int, ...]
    sizes: tuple[int, ...]
    held: np.ndarray

    def draw_board(
        self, random: np.random.Generator, first: np.ndarray | None = None
    ) -> np.ndarray:
        """Cards of a whole board, int64 [n], in the order in which they are dealt.

        Args:
          random: advanced.
          first: cards that it begins with; all boards with these are as likely.
        """

    def buckets(self, board: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """int64 [H], in round `number`; bool [H], whether the board leaves a hand."""

    def beats(self, board: np.ndarray) -> np.ndarray:
        """Which hands win on a whole board.

        Returns:
          float32 [H, H]: 1 where the first hand is stronger, -1 where it is weaker, 0
          where they are equal, share a card, or the board has one of theirs.
        """


class Group(NamedTuple):
    """The n decisions at one depth with one player, round and number of actions A.

    Attributes:
      player, round: of all.
      nodes: int64 [n].
      below: slice of the A n places of the nodes after them.
      table: slice of the A n B numbers that they have in a table of B buckets.
      shape: (A, n, B).
    """

    player: int
    round: int
    nodes: np.ndarray
    below: slice
    table: slice
    shape: tuple[int, int, int]


class BetTree:
    """The tree of bets, in groups.

    Attributes:
      bets: its nodes.
      groups: of all decisions, from the root on.
      place: int64 [P], of each node; 0 is the root's.
      own: int64 [2, P], the place after each player's last action before a node.
      folds, shown: int64, the ends of both kinds.
      children: int64 of each node, by actions.
    """

    def __init__(self, rules: BoardRules) -> None:
        """Lays it out."""
        self.bets = bets = rules.bets
        self.place = np.zeros(len(bets.player), np.int64)
        self.own = np.zeros((2, len(bets.player)), np.int64)
        order = np.argsort(bets.parent, kind="stable")[1:]
        ends_at = np.searchsorted(bets.parent[order], np.arange(1, len(bets.player)))
        self.children = np.split(order, ends_at)
        self.groups = list(self._grouped(rules.counts))
        ends = bets.player == TERMINAL
        self.folds = np.flatnonzero(ends & ~bets.showdown)
        self.shown = np.flatnonzero(ends & bets.showdown)

    def _grouped(self, counts: tuple[int, ...]) -> Iterator[Group]:
        """The groups; numbers places on the way."""
        player = self.bets.player
        actions = np.array([len(below) for below in self.children])
        level, place, entry = np.zeros(1, np.int64), 1, 0
        while len(level := level[player[level] != TERMINAL]):
            kinds = np.stack([player[level], self.bets.round[level], actions[level]])
            for actor, number, width in np.unique(kinds, axis=1).T.tolist():
                same = (kinds == [[actor], [number], [width]]).all(axis=0)
                nodes = level[same]
                below = np.stack([self.children[node] for node in nodes], 1).ravel()
                self.place[below] = np.arange(place, place + len(below))
                self.own[:, below] = self.own[:, np.tile(nodes, width)]
                self.own[actor, below] = self.place[below]
                shape = (width, len(nodes), counts[number])
                places = slice(place, place + len(below))
                table = slice(entry, entry + len(below) * counts[number])
                yield Group(actor, number, nodes, places, table, shape)
                place, entry = places.stop, table.stop
            level = np.concatenate([self.children[node] for node in level])

    def end_values(
        self,
        player: int,
        reach: np.ndarray,
        held: np.ndarray,
        beats: np.ndarray,
        value: np.ndarray,
    ) -> None:
        """Counterfactual values at all ends.

        Args:
          player: whose.
          reach: float32 [P, h], the other player's, by place.
          held, beats: of the h hands, see `BoardRules`.
          value: float32 [P, h], filled at the places of ends.
        """
        other, stake = self.own[1 - player], self.bets.stake[:, None].astype(np.float32)
        value[self.place[self.shown]] = (
            reach[other[self.shown]] @ beats.T * stake[self.shown]
        )
        folded = reach[other[self.folds]]
        # Of hands that share no card, by inclusion and exclusion.
        disjoint = folded.sum(axis=1, keepdims=True) - (folded @ held) @ held.T
        disjoint += (held[0].sum() - 1) * folded
        value[self.place[self.folds]] = (1 - 2 * player) * stake[self.folds] * disjoint
