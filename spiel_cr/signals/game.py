"""What a signal game is: public actions, dealt private information, and their payoffs.

In many games every action is public and private information is only dealt. A player's
*signal* in a round is all that its cards have told it so far, public cards included. A
player's infoset is then a public node and a signal, and the payoff coupling factors
into A = sum over k of S_k ⊗ K_k: S_k says what is at stake at the public leaves, K_k,
a *kernel*, how two signals compare. A public card is only block structure of a kernel
(Johanson et al. 2011, "Accelerating best response calculation in large extensive
games"; Farina & Sandholm 2022, "Fast payoff matrix sparsification techniques").

Legend for shapes: P public nodes, R rounds, H signals of one player in one round, T
terms, K kernels.
"""

import dataclasses
from typing import NamedTuple, Protocol

import numpy as np
import pyspiel
from scipy import sparse

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.compilation.tree import TERMINAL
from spiel_cr.sequence_form.decisions import Payoffs


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


class Kernel(Protocol):
    """How two signals of a round compare: a matrix [H0, H1] of player 0's utility.

    Entries are sums, over all deals that give these two signals, of the probability of
    the deal times player 0's utility per unit of stake.

    Attributes:
      round: whose signals it compares.
      shape: H0 and H1.
    """

    @property
    def round(self) -> int: ...

    @property
    def shape(self) -> tuple[int, int]: ...

    def coordinates(self) -> Payoffs:
        """The entries: signals of player 0 and 1, values; each pair once."""


@dataclasses.dataclass(frozen=True)
class SparseKernel:
    """A kernel by its entries; see `Kernel`.

    Attributes:
      round: whose signals it compares.
      shape: H0 and H1.
      entries: signals of both players and values; each pair at most once.
    """

    round: int
    shape: tuple[int, int]
    entries: Payoffs

    def coordinates(self) -> Payoffs:
        """The entries."""
        return self.entries


class Hands(NamedTuple):
    """One player's hands, board by board, as a `HandKernel` compares them.

    Attributes:
      signal: int32 [n], the signal that each hand belongs to. Several hands may belong
        to one signal: a board that is yet to come, or suits that make no difference.
      board: int32 [n], what is on the table; hands meet hands of their own board only.
      cards: int8 [n, c], the private cards, by numbers that both players share.
      strength: int32 [n], the higher one wins.
      weight: float64 [n], see `HandKernel`.
    """

    signal: np.ndarray
    board: np.ndarray
    cards: np.ndarray
    strength: np.ndarray
    weight: np.ndarray


@dataclasses.dataclass(frozen=True)
class HandKernel:
    """A kernel of hands that share a deck; see `Kernel`.

    The entry of two signals is the sum, over the pairs of hands h of the first and g of
    the second that lie on the same board and have no card in common, of weight[h] ·
    weight[g], times the sign of strength[h] - strength[g] at a showdown.

    Attributes:
      round: whose signals it compares.
      shape: H0 and H1.
      hands: both players'.
      showdown: whether strengths count; else (somebody folded) only who can have what.
    """

    round: int
    shape: tuple[int, int]
    hands: tuple[Hands, Hands]
    showdown: bool

    def coordinates(self) -> Payoffs:
        """The entries; for games that are small enough to list them."""
        first, second = self.hands
        i, j = _pairs(first.board, second.board)
        shared = (first.cards[i][:, :, None] == second.cards[j][:, None, :]).any((1, 2))
        i, j = i[~shared], j[~shared]
        values = first.weight[i] * second.weight[j]
        if self.showdown:
            values = values * np.sign(first.strength[i] - second.strength[j])
        return sum_entries(first.signal[i], second.signal[j], values, self.shape)


class Terms(NamedTuple):
    """What is paid at leaves: player 0 gets stake · kernel; several terms add up.

    Attributes:
      leaf: int32 [T], a public node that is TERMINAL.
      kernel: int32 [T], number of the kernel; its round is that of the leaf.
      stake: float64 [T], in the game's units.
    """

    leaf: np.ndarray
    kernel: np.ndarray
    stake: np.ndarray


class Reader(Protocol):
    """Reads signals off OpenSpiel's states, and names them for people."""

    def signal(self, state: pyspiel.State, player: int) -> int:
        """The player's signal at a decision or an end, in the round of the state."""

    def name(self, player: int, round: int, signal: int) -> str:
        """What a signal stands for, such as "Kh | 5c 9d"; public cards after the bar.

        A signal of several deals is named after one of them.
        """


@dataclasses.dataclass(frozen=True)
class SignalGame:
    """A two-player zero-sum game with public actions and dealt private information.

    Attributes:
      game: the OpenSpiel game.
      betting: the public tree.
      parents: for each player and round int32 [H], the signal of the round before that
        each signal refines; zeros in round 0, before which there is a single one.
      kernels: how signals compare.
      terms: what is paid at the leaves.
      reader: finds the signals of states.
    """

    game: pyspiel.Game
    betting: Betting
    parents: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    kernels: tuple[Kernel, ...]
    terms: Terms
    reader: Reader

    @property
    def num_rounds(self) -> int:
        return len(self.parents[0])

    def num_signals(self, player: int) -> list[int]:
        """How many signals a player has, by round."""
        return [len(parent) for parent in self.parents[player]]

    def ancestors(self, player: int, round: int, above: int) -> np.ndarray:
        """The signal of an earlier round behind each signal of a round.

        Args:
          player: whose.
          round: the later round.
          above: the earlier one; -1: before all rounds, where there is a single signal.

        Returns:
          int32 [H].
        """
        signal = np.arange(len(self.parents[player][round]), dtype=np.int32)
        for r in range(round, above, -1):
            signal = self.parents[player][r][signal]
        return signal

    def check(self) -> None:
        """Raises InvalidGameError where the parts do not fit each other."""
        betting, terms = self.betting, self.terms
        nodes = np.arange(len(betting))
        above = betting.parent[1:]
        problems = {
            "the root is no node of round 0 without a parent": len(nodes) == 0
            or betting.parent[0] != -1
            or betting.round[0] != 0,
            "a node comes before its parent": (above < 0).any()
            or (above >= nodes[1:]).any(),
        }
        for problem, there in problems.items():
            if there:
                raise InvalidGameError(f"{self.game}: {problem} in its public tree")
        ends = betting.player[terms.leaf] == TERMINAL
        rounds = np.array([kernel.round for kernel in self.kernels], int)
        problems = {
            "an action is taken after an end": (
                betting.player[above] == TERMINAL
            ).any(),
            "a round ends before it begins": (
                betting.round[1:] < betting.round[above]
            ).any(),
            "a payoff is at a decision": not ends.all(),
            "a kernel is of another round than its leaf": (
                rounds[terms.kernel] != betting.round[terms.leaf]
            ).any(),
            "a stake is not finite": not np.isfinite(terms.stake).all(),
        }
        for player in range(2):
            counts = [1, *self.num_signals(player)]
            for r, parent in enumerate(self.parents[player]):
                name = f"a signal of player {player} in round {r} refines none"
                problems[name] = ((parent < 0) | (parent >= counts[r])).any()
            for number, kernel in enumerate(self.kernels):
                name = f"kernel {number} does not fit the signals of its round"
                problems[name] = problems.get(name, False) or (
                    kernel.shape[player] != counts[1 + kernel.round]
                )
        for problem, there in problems.items():
            if there:
                raise InvalidGameError(f"{self.game}: {problem} in its signal form")


def _pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All places i of the first and j of the second array that hold equal numbers."""
    order, others = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
    begins = np.searchsorted(second, first[order], "left", others)
    counts = np.searchsorted(second, first[order], "right", others) - begins
    skipped = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - np.repeat(skipped - begins, counts)
    return np.repeat(order, counts), others[within]


def sum_entries(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]
) -> Payoffs:
    """Adds up entries of equal pairs; those that cancel are left out."""
    total = sparse.csr_array((values, (rows, columns)), shape=shape)
    total.eliminate_zeros()
    return Payoffs(
        np.repeat(np.arange(shape[0], dtype=np.int32), np.diff(total.indptr)),
        total.indices.astype(np.int32),
        total.data,
    )
