"""Games of bets, hands and boards whose rules assign hands to buckets.

The acting player and the legal actions depend on the bets alone. Given a board for all
rounds, all hands can be processed together: as numbers float32 [places, hands], with
one place for each node of the tree of bets. The nodes below a group of similar
decisions are adjacent, ordered first by action, then by decision.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from spiel_cr.games.histories import TERMINAL


class BetNodes(Protocol):
    """Nodes of the tree of bets, P of them; children are in ascending order of actions.

    Attributes:
      player: The acting player, 0 or 1, or TERMINAL, int8 [P].
      parent: An earlier node, int32 [P]; -1 at the root, which is the first.
      action: Action of the game that leads to the node, int32 [P]; -1 at the root.
      round: Round of the node, from 0, int8 [P].
      stake: Player 0's utility at terminal nodes if it wins, or if a player has folded,
        float64 [P].
      showdown: Whether the hands are compared, bool [P].
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
      bets: All nodes of the tree of bets.
      counts: Number of buckets of each round, or an upper bound.
      sizes: Number of board cards in each round.
      held: Matrix with 1 if a hand has a card, otherwise 0, float32 [H, cards]; each
        hand has one or two cards.
    """

    bets: BetNodes
    counts: tuple[int, ...]
    sizes: tuple[int, ...]
    held: np.ndarray

    def draw_board(
        self, random: np.random.Generator, first: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the cards of a complete board, int64 [n], in the order of the deal.

        Args:
          random: Random generator.
          first: First cards of the board; all boards that begin with them have the same
            probability.
        """

    def buckets(self, board: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return int64 [H], buckets in a round, and bool [H], possible hands."""

    def beats(self, board: np.ndarray) -> np.ndarray:
        """Return the results of all pairs of hands on a complete board.

        Returns:
          float32 [H, H]: 1 if the first hand is stronger, -1 if it is weaker, 0 if they
          are equal, share a card, or have a card of the board.
        """


class Group(NamedTuple):
    """The n decisions at one depth with one player, round and number of actions A.

    Attributes:
      player, round: Common values of all decisions.
      nodes: Nodes of the decisions, int64 [n].
      below: Slice of the A n places of the nodes after them.
      table: Slice of their A n B entries in a table of B buckets.
      shape: The tuple (A, n, B).
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
      bets: Nodes of the tree.
      groups: Groups of all decisions, from the root down.
      place: Place of each node, int64 [P]; 0 for the root.
      own: The place after each player's last action before a node, int64 [2, P].
      folds, shown: Terminal nodes after a fold, and with a showdown, int64.
      children: Children of each node, by actions, int64.
    """

    def __init__(self, rules: BoardRules) -> None:
        """Build the groups and places."""
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
        """Yield the groups, and number the places."""
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
        """Compute counterfactual values at all terminal nodes.

        Args:
          player: Player whose values are computed.
          reach: The other player's reach, by place, float32 [P, h].
          held, beats: Cards and results of the h hands; see `BoardRules`.
          value: Values by place, of which those of terminal nodes are overwritten,
            float32 [P, h].
        """
        other, stake = self.own[1 - player], self.bets.stake[:, None].astype(np.float32)
        value[self.place[self.shown]] = (
            reach[other[self.shown]] @ beats.T * stake[self.shown]
        )
        folded = reach[other[self.folds]]
        # Sums over hands that share no card, by inclusion and exclusion.
        disjoint = folded.sum(axis=1, keepdims=True) - (folded @ held) @ held.T
        disjoint += (held[0].sum() - 1) * folded
        value[self.place[self.folds]] = (1 - 2 * player) * stake[self.folds] * disjoint
