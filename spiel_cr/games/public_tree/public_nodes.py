"""Public trees: nodes, what is paid at leaves, and where a player's sequences are.

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
from spiel_cr.games.sequence_form.decisions import Decisions


@dataclasses.dataclass(frozen=True)
class Betting:
    """The public tree: decisions and leaves. Deals are no nodes: rounds count them.

    Attributes:
      player: int8 [P], who acts: 0, 1 or TERMINAL.
      parent: int32 [P], the node above, which comes before; -1 at node 0, the root.
      action: int32 [P], OpenSpiel's action that leads here; -1 at the root. The
        children of a node are in ascending order of actions.
      round: int8 [P], from 0: whose signals the players have at the node. No less than
        that of the parent.
    """

    player: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    round: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)

    @functools.cached_property
    def num_actions(self) -> np.ndarray:
        """int32 [P], the actions at each public node; 0 at ends."""
        return np.bincount(self.parent[1:], minlength=len(self)).astype(np.int32)

    @functools.cached_property
    def index(self) -> np.ndarray:
        """Place of each node among the children of its parent, int32 [P]."""
        index = np.zeros(len(self), np.int32)
        counts = self.num_actions[self.num_actions > 0]
        index[1 + np.argsort(self.parent[1:], kind="stable")] = ranges(0, counts)
        return index

    def path(self, node: int) -> list[int]:
        """OpenSpiel's actions of players from the root to a node."""
        actions = []
        while node:
            actions.append(int(self.action[node]))
            node = int(self.parent[node])
        return actions[::-1]

    def by_depth(self) -> list[np.ndarray]:
        """The nodes that equally many actions lead to, by how many; each ascending."""
        depth = Decisions(self.parent + 1, np.ones(len(self), np.int32)).levels()
        ends = np.cumsum(np.bincount(depth))[:-1]
        return np.split(np.argsort(depth, kind="stable"), ends)


class Terms(NamedTuple):
    """What is paid at leaves: player 0 gets stake · matrix; several terms add up.

    Attributes:
      leaf: int32 [T], a public node that is TERMINAL.
      matrix: int32 [T], number of the matrix; its round is that of the leaf.
      stake: float64 [T], in the game's units.
    """

    leaf: np.ndarray
    matrix: np.ndarray
    stake: np.ndarray


class Reader(Protocol):
    """Reads signals off OpenSpiel's states, and names them for people."""

    def signal(self, state: pyspiel.State, player: int) -> int:
        """The player's signal at a decision or an end, in the round of the state."""

    def name(self, player: int, round: int, signal: int) -> str:
        """What a signal stands for, such as "Kh | 5c 9d"; public cards after the bar.

        A signal of several deals is named after one of them.
        """


class PublicDecisions(NamedTuple):
    """One player's public decisions, in the order of their nodes.

    A decision and a signal are an infoset. Sequences of a decision are consecutive:
    signal by signal, and of one signal action by action.

    Attributes:
      node: int32 [J], public nodes.
      num_actions: int32 [J].
      num_private_states: int32 [J].
      first_infoset: int64 [J + 1], where each one's infosets begin; last, their number.
      first_sequence: int64 [J + 1], where each one's sequences begin; last, S.
    """

    node: np.ndarray
    num_actions: np.ndarray
    num_private_states: np.ndarray
    first_infoset: np.ndarray
    first_sequence: np.ndarray

    @property
    def num_sequences(self) -> int:
        """The empty sequence and one for each action of each infoset."""
        return int(self.first_sequence[-1])

    def place(self, node: int) -> int:
        """The number of the decision at a public node where the player acts."""
        return int(np.searchsorted(self.node, node))

    def block(self, values: np.ndarray, node: int) -> np.ndarray:
        """What an array holds for one public node.

        Args:
          values: [S], by logical sequence.
          node: where the player acts.

        Returns:
          A view [H, A]: a row for each signal.
        """
        j = self.place(node)
        begin, end = self.first_sequence[j : j + 2]
        return values[begin:end].reshape(-1, self.num_actions[j])


class Finder:
    """An index of public nodes by the actions that lead there.

    Attributes:
      betting: The public tree.
    """

    def __init__(self, game: pyspiel.Game, betting: Betting) -> None:
        """Sort the nodes by their parents; `game` is for messages."""
        self._game, self.betting = game, betting
        order = np.argsort(betting.parent[1:], kind="stable")
        self._children = (1 + order).astype(np.int32)
        ends = np.cumsum(betting.num_actions, dtype=np.int32)
        self._first = np.concatenate([np.zeros(1, np.int32), ends])

    def children(self, node: int) -> np.ndarray:
        """int32 [A], the nodes after each action, in ascending order of actions."""
        return self._children[self._first[node] : self._first[node + 1]]

    def levels(self, tops: np.ndarray) -> list[np.ndarray]:
        """Return some nodes, the nodes one action below them, and so on, int32."""
        levels = []
        while len(tops):
            levels.append(tops)
            counts = self.betting.num_actions[tops]
            tops = self._children[ranges(self._first[tops], counts)]
        return levels

    def actions(self, node: int) -> list[int]:
        """OpenSpiel's actions at a node, ascending; none at an end."""
        actions: list[int] = self.betting.action[self.children(node)].tolist()
        return actions

    def after(self, actions: Iterable[int]) -> int:
        """The node after some of OpenSpiel's actions of players, from the root.

        Raises:
          ValueError: the public tree has no such actions.
        """
        node = 0
        taken: list[int] = []
        for action in actions:
            legal = self.actions(node)
            if action not in legal:
                raise ValueError(
                    f"actions: after the players' actions {taken} there is no action "
                    f"{action} in the public tree of {self._game}, which has "
                    f"{legal} there"
                )
            node = int(self.children(node)[legal.index(action)])
            taken.append(action)
        return node

    def of_state(self, state: pyspiel.State) -> int:
        """The public node of a state, which need not be at a decision.

        Raises:
          ValueError: the state is of another game.
        """
        return self.after(
            move.action for move in state.full_history() if move.player >= 0
        )


def infoset_starts(decisions: PublicDecisions, part: slice) -> np.ndarray:
    """int64 [I'], where the infosets of some public decisions begin.

    Args:
      decisions: of one player.
      part: of the decisions, without gaps.

    Returns:
      First sequences, counted from the first one of the part.
    """
    counts = np.repeat(decisions.num_actions[part], decisions.num_private_states[part])
    ends = np.cumsum(counts, dtype=np.int64)
    return ends - counts


def parts(decisions: PublicDecisions, most: int) -> Sequence[slice]:
    """Cuts the public decisions into parts of about so many sequences each."""
    slices, begin = [], 0
    while begin < len(decisions.node):
        limit = decisions.first_sequence[begin] + most
        end = int(np.searchsorted(decisions.first_sequence, limit, side="right")) - 1
        end = max(begin + 1, end)
        slices.append(slice(begin, end))
        begin = end
    return slices


def ancestors(parents: Sequence[np.ndarray], round: int, above: int) -> np.ndarray:
    """int32 [H], the signal of an earlier round (-1: none) behind each of a round."""
    signal = np.arange(len(parents[round]), dtype=np.int32)
    for r in range(round, above, -1):
        signal = parents[r][signal].astype(np.int32)
    return signal
