"""Public nodes of a signal game: which one is meant, and where strategies lie there.

Legend for shapes: P public nodes, J public decisions of one player, H its signals at
one of them, S its sequences.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.games.public_tree.game import PublicTreeGame


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


def public_decisions(signals: PublicTreeGame, player: int) -> PublicDecisions:
    """Where a player's infosets and sequences lie."""
    betting = signals.betting
    node = np.flatnonzero(betting.player == player).astype(np.int32)
    num_actions = betting.num_actions[node]
    sizes = np.array(signals.num_private_states(player), np.int32)
    num_private_states = sizes[betting.round[node]]
    infosets = np.cumsum(num_private_states, dtype=np.int64)
    sequences = np.cumsum(num_private_states.astype(np.int64) * num_actions)
    return PublicDecisions(
        node=node,
        num_actions=num_actions,
        num_private_states=num_private_states,
        first_infoset=np.concatenate([[0], infosets]),
        first_sequence=np.concatenate([[1], 1 + sequences]),
    )


class Finder:
    """Finds public nodes by the actions that lead there.

    Attributes:
      signals: the game.
    """

    def __init__(self, signals: PublicTreeGame) -> None:
        """Sorts the nodes by their parents."""
        self.signals = signals
        betting = signals.betting
        order = np.argsort(betting.parent[1:], kind="stable")
        self._children = (1 + order).astype(np.int32)
        ends = np.cumsum(betting.num_actions, dtype=np.int32)
        self._first = np.concatenate([np.zeros(1, np.int32), ends])

    def children(self, node: int) -> np.ndarray:
        """int32 [A], the nodes after each action, in ascending order of actions."""
        return self._children[self._first[node] : self._first[node + 1]]

    def actions(self, node: int) -> list[int]:
        """OpenSpiel's actions at a node, ascending; none at an end."""
        found: list[int] = self.signals.betting.action[self.children(node)].tolist()
        return found

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
                    f"{action} in the public tree of {self.signals.game}, which has "
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
    found, begin = [], 0
    while begin < len(decisions.node):
        limit = decisions.first_sequence[begin] + most
        end = int(np.searchsorted(decisions.first_sequence, limit, side="right")) - 1
        end = max(begin + 1, end)
        found.append(slice(begin, end))
        begin = end
    return found
