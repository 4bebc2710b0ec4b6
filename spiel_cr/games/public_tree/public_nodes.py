"""Public trees: nodes, payoffs at leaves, and the numbers of a player's sequences.

Legend for shapes: P public nodes, J public decisions of one player, H its private
states at one of them, S its sequences, T terms.
"""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.common.arrays import ranges
from spiel_cr.games.histories import actions_to


@dataclasses.dataclass(frozen=True)
class Betting:
    """The public tree: decisions and leaves.

    Deals are not nodes; they separate rounds.

    Attributes:
      player: The acting player, 0 or 1, or TERMINAL, int8 [P].
      parent: The node above, which has a lower number, int32 [P]; -1 at node 0, the
        root.
      action: OpenSpiel's action that leads to the node, int32 [P]; -1 at the root. The
        children of a node are in ascending order of actions.
      round: Round of the node, from 0, which determines the private states, int8 [P].
        It is not lower than that of the parent.
    """

    player: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    round: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)

    @functools.cached_property
    def num_actions(self) -> np.ndarray:
        """Number of actions at each public node, int32 [P]; 0 at leaves."""
        return np.bincount(self.parent[1:], minlength=len(self)).astype(np.int32)

    @functools.cached_property
    def index(self) -> np.ndarray:
        """Place of each node among the children of its parent, int32 [P]."""
        index = np.zeros(len(self), np.int32)
        index[self._by_parent] = ranges(0, self.num_actions)
        return index

    @functools.cached_property
    def _by_parent(self) -> np.ndarray:
        """All nodes but the root, by parent and then by action, int32 [P - 1]."""
        return (1 + np.argsort(self.parent[1:], kind="stable")).astype(np.int32)

    @functools.cached_property
    def _first_child(self) -> np.ndarray:
        """Place of each node's first child in `_by_parent`, and the end, int32."""
        ends = np.cumsum(self.num_actions, dtype=np.int32)
        return np.concatenate([np.zeros(1, np.int32), ends])

    def children(self, node: int) -> np.ndarray:
        """Return the nodes after each action, by ascending action, int32 [A]."""
        return self._by_parent[self._first_child[node] : self._first_child[node + 1]]

    def actions(self, node: int) -> list[int]:
        """Return OpenSpiel's actions at a node, ascending; an empty list at a leaf."""
        actions: list[int] = self.action[self.children(node)].tolist()
        return actions

    def levels(self, tops: np.ndarray | None = None) -> list[np.ndarray]:
        """Return some nodes, the nodes one action below them, and so on, int32.

        Args:
          tops: The first nodes. If None, the root.
        """
        tops, levels = np.zeros(1, np.int32) if tops is None else tops, []
        while len(tops):
            levels.append(tops)
            places = ranges(self._first_child[tops], self.num_actions[tops])
            tops = self._by_parent[places]
        return levels

    def path(self, node: int) -> list[int]:
        """Return OpenSpiel's actions of players from the root to a node."""
        return actions_to(self.parent, self.action, node)

    def node_after(self, actions: Iterable[int]) -> int:
        """Return the node after OpenSpiel's actions of players from the root.

        Raises:
          ValueError: If the public tree does not contain the actions.
        """
        node, taken = 0, list[int]()
        for action in actions:
            legal = self.actions(node)
            if action not in legal:
                raise ValueError(
                    f"actions: {action} is not legal after the players' actions "
                    f"{taken} in the public tree; choose one of {legal}"
                )
            node = int(self.children(node)[legal.index(action)])
            taken.append(action)
        return node

    def node_of(self, state: pyspiel.State) -> int:
        """Return the node of a state, which may be a chance node.

        Raises:
          ValueError: If the state belongs to a different game.
        """
        return self.node_after(
            move.action for move in state.full_history() if move.player >= 0
        )


class LeafTerms(NamedTuple):
    """Payoffs at leaves: player 0 gets stake · matrix, summed over the terms of a leaf.

    Attributes:
      leaf: A public node that is TERMINAL, int32 [T].
      matrix: Number of the payoff matrix, which has the round of the leaf, int32 [T].
      stake: Stake in the game's units of utility, float64 [T].
    """

    leaf: np.ndarray
    matrix: np.ndarray
    stake: np.ndarray


class PrivateStateReader(Protocol):
    """Object that finds private states of OpenSpiel states, and names them."""

    def private_state(self, state: pyspiel.State, player: int) -> int:
        """Return the player's private state, in the round of the state.

        Args:
          state: A decision or a terminal state.
          player: Player whose private state is returned.
        """

    def name(self, player: int, round: int, private_state: int) -> str:
        """Return a name of a private state, such as "Kh | 5c 9d".

        Public cards follow the bar. If several deals belong to the private state, the
        name is that of one of them.
        """


class PublicDecisions(NamedTuple):
    """One player's public decisions, in the order of their nodes.

    An infoset is a decision and a private state. The sequences of a decision are
    consecutive: private state by private state, and action by action within each.

    Attributes:
      node: Public nodes, int32 [J].
      num_actions: int32 [J].
      num_private_states: int32 [J].
      first_infoset: First infoset of each decision, int64 [J + 1]; the last entry is
        the number of infosets.
      first_sequence: First sequence of each decision, int64 [J + 1]; the last entry is
        S.
    """

    node: np.ndarray
    num_actions: np.ndarray
    num_private_states: np.ndarray
    first_infoset: np.ndarray
    first_sequence: np.ndarray

    @property
    def num_infosets(self) -> int:
        """Number of infosets: private states at all decisions."""
        return int(self.first_infoset[-1])

    @property
    def num_sequences(self) -> int:
        """Number of sequences: the empty one, and one per action of each infoset."""
        return int(self.first_sequence[-1])

    def place(self, node: int) -> int:
        """Return the number of the decision at a public node where the player acts."""
        return int(np.searchsorted(self.node, node))

    def block(self, values: np.ndarray, node: int) -> np.ndarray:
        """Return the part of an array that belongs to one public node.

        Args:
          values: [S], by logical sequence.
          node: Public node where the player acts.

        Returns:
          A view [H, A], with one row for each private state.
        """
        j = self.place(node)
        begin, end = self.first_sequence[j : j + 2]
        return values[begin:end].reshape(-1, self.num_actions[j])


def parts(decisions: PublicDecisions, most: int) -> Sequence[slice]:
    """Divide the public decisions into parts of about `most` sequences each."""
    slices, begin = [], 0
    while begin < len(decisions.node):
        limit = decisions.first_sequence[begin] + most
        end = int(np.searchsorted(decisions.first_sequence, limit, side="right")) - 1
        end = max(begin + 1, end)
        slices.append(slice(begin, end))
        begin = end
    return slices


def ancestors(parents: Sequence[np.ndarray], round: int, above: int) -> np.ndarray:
    """Return the earlier private state behind each one of a round, int32 [H].

    An earlier round of -1 means before all rounds, where there is one private state.
    """
    private_state = np.arange(len(parents[round]), dtype=np.int32)
    for r in range(round, above, -1):
        private_state = parents[r][private_state].astype(np.int32)
    return private_state
