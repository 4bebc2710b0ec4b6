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
import functools
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyspiel
from scipy import sparse

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.common.short_repr import short_repr
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs

# Pairs of hands that are compared at once, but for those of one board.
_PAIRS = 1_000_000
# Private states of a player and round whose names enter a fingerprint, at most.
_NAMES = 256


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


class Kernel(Protocol):
    """How two signals of a round compare: a matrix [H0, H1] of player 0's utility.

    Entries are sums, over all deals that give these two signals, of the probability of
    the deal times player 0's utility per unit of stake.

    Attributes:
      round: whose signals it compares.
      shape: H0 and H1.
    """

    @property
    def round(self) -> int:
        """Whose signals it compares, from 0."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many signals of the round each player has, H0 and H1."""

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
        total: sparse.csr_array = sparse.csr_array(self.shape)
        for first, second in _some_boards(*self.hands):
            i, j = _pairs(first.board, second.board)
            apart = np.ones(len(i), bool)
            for mine, theirs in itertools.product(first.cards.T, second.cards.T):
                apart &= mine[i] != theirs[j]
            i, j = i[apart], j[apart]
            values = first.weight[i] * second.weight[j]
            if self.showdown:
                values = values * np.sign(first.strength[i] - second.strength[j])
            pairs = first.signal[i], second.signal[j]
            total = total + sparse.csr_array((values, pairs), shape=self.shape)
        return _entries(total)


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


@dataclasses.dataclass(frozen=True, repr=False)
class PublicTreeGame:
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

    __repr__ = short_repr

    game: pyspiel.Game
    betting: Betting
    parents: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    kernels: tuple[Kernel, ...]
    terms: Terms
    reader: Reader

    @property
    def num_rounds(self) -> int:
        """R, how many rounds there are."""
        return len(self.parents[0])

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash that tells signal games apart: betting, signals, kernels and payoffs.

        The reader is not in it: two games of equal hash have the same strategies.
        """
        digest = hashlib.sha256()
        for part in (self.betting, self.parents, self.kernels, self.terms):
            _feed(digest, part)
        return digest.hexdigest()

    @functools.cached_property
    def decisions_fingerprint(self) -> str:
        """A hash of public actions and private states, whatever they pay.

        Names of private states are part of it, of many only some, evenly spaced.
        """
        digest = hashlib.sha256()
        _feed(digest, self.betting)
        _feed(digest, self.parents)
        for player in range(2):
            for round, count in enumerate(self.num_private_states(player)):
                for signal in range(0, count, 1 + count // _NAMES):
                    name = self.reader.name(player, round, signal)
                    digest.update(f"{name}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def num_private_states(self, player: int) -> list[int]:
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
        return ancestors(self.parents[player], round, above)

    def check(self) -> None:
        """Raises InvalidGameError where the parts do not fit each other.

        What they say of the OpenSpiel game is not looked at.
        """
        for found in (self._public_problems, self._signal_problems):
            for problem, there in found():
                if there:
                    raise InvalidGameError(f"{self.game}: {problem} in its signal form")

    def _public_problems(self) -> Iterator[tuple[str, bool]]:
        """What may be wrong with the public tree, and whether it is."""
        betting, size = self.betting, len(self.betting)
        yield "there is no public node", size == 0
        above, action, nodes = betting.parent[1:], betting.action[1:], np.arange(size)
        root = betting.parent[0] == -1 and betting.round[0] == 0
        yield "node 0 is no root of round 0", not root
        yield "a node comes before its parent", _outside(above, nodes[1:])
        acts = np.isin(betting.player, (0, 1))
        known = acts | (betting.player == TERMINAL)
        yield "a public node's player is not 0, 1 or TERMINAL", not known.all()
        counts = np.bincount(above, minlength=size)
        yield "an action is taken after an end", bool((counts[~acts] > 0).any())
        yield "a decision has no actions", (counts[acts] == 0).any()
        order = np.argsort(above, kind="stable")
        same = above[order][1:] == above[order][:-1]
        rises = np.diff(action[order]) > 0
        yield "a node's actions do not ascend", not rises[same].all()
        rounds = betting.round
        yield "a round ends before it begins", (rounds[1:] < rounds[above]).any()
        yield "a node's round has no signals", _outside(rounds, self.num_rounds)

    def _signal_problems(self) -> Iterator[tuple[str, bool]]:
        """The same of signals, kernels and terms."""
        betting, terms = self.betting, self.terms
        for player in range(2):
            counts = [1, *self.num_private_states(player)]
            yield "players have different rounds", len(counts) - 1 != self.num_rounds
            for r, parent in enumerate(self.parents[player]):
                problem = f"a signal of player {player} in round {r} refines none"
                yield problem, _outside(parent, counts[r])
        for number, kernel in enumerate(self.kernels):
            name = f"kernel {number}"
            yield f"{name} has no round", not 0 <= kernel.round < self.num_rounds
            shape = tuple(len(own[kernel.round]) for own in self.parents)
            problem = f"{name} does not fit the signals of its round"
            yield problem, tuple(kernel.shape) != shape
            if isinstance(kernel, HandKernel):
                numbers = [own.signal for own in kernel.hands]
                values = [own.weight for own in kernel.hands]
            else:
                rows, columns, entries = kernel.coordinates()
                numbers, values = [rows, columns], [entries]
            for own, count in zip(numbers, shape, strict=True):
                yield f"{name} has entries of unknown signals", _outside(own, count)
            finite = all(np.isfinite(part).all() for part in values)
            yield f"{name} has entries that are not finite", not finite
        unknown = _outside(terms.leaf, len(betting))
        yield "a term's leaf is no public node", unknown
        unknown = _outside(terms.kernel, len(self.kernels))
        yield "a term's kernel is none", unknown
        ends = betting.player[terms.leaf] == TERMINAL
        yield "a payoff is at a decision", not ends.all()
        rounds = np.array([kernel.round for kernel in self.kernels], int)
        other = rounds[terms.kernel] != betting.round[terms.leaf]
        yield "a kernel is of another round than its leaf", other.any()
        yield "a stake is not finite", not np.isfinite(terms.stake).all()


def ancestors(parents: Sequence[np.ndarray], round: int, above: int) -> np.ndarray:
    """int32 [H], the signal of an earlier round (-1: none) behind each of a round."""
    signal = np.arange(len(parents[round]), dtype=np.int32)
    for r in range(round, above, -1):
        signal = parents[r][signal].astype(np.int32)
    return signal


def _feed(digest: Any, part: Any) -> None:
    """Feeds arrays, numbers, tuples and dataclasses of them to a hash."""
    if isinstance(part, np.ndarray):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).data)
    elif dataclasses.is_dataclass(part):
        digest.update(type(part).__name__.encode())
        for field in dataclasses.fields(part):
            _feed(digest, getattr(part, field.name))
    elif isinstance(part, tuple):
        digest.update(f"{type(part).__name__}{len(part)}".encode())
        for item in part:
            _feed(digest, item)
    else:
        digest.update(f"{part!r};".encode())


def compares(kernel: Kernel) -> bool:
    """Whether signals win as well as lose by it; else somebody has folded."""
    if isinstance(kernel, HandKernel):
        return kernel.showdown
    values = kernel.coordinates().values
    return bool((values > 0).any() and (values < 0).any())


def _outside(numbers: np.ndarray, counts: np.ndarray | int) -> bool:
    """Whether some number is not from 0 to below its count."""
    return bool(((numbers < 0) | (numbers >= counts)).any())


def _some_boards(*hands: Hands) -> Iterator[tuple[Hands, Hands]]:
    """Both players' hands on the first boards, on the next ones, and so on."""
    orders = [np.argsort(own.board, kind="stable") for own in hands]
    first, second = (
        Hands(*(field[order] for field in own))
        for own, order in zip(hands, orders, strict=True)
    )
    boards = np.intersect1d(first.board, second.board)
    ends = [np.searchsorted(own.board, boards, "right") for own in (first, second)]
    begins = [np.searchsorted(own.board, boards) for own in (first, second)]
    pairs = np.cumsum((ends[0] - begins[0]) * (ends[1] - begins[1]))
    parts = np.flatnonzero(np.diff(pairs // _PAIRS, prepend=-1))
    for start, stop in itertools.pairwise([*parts.tolist(), len(boards)]):
        yield (
            Hands(*(field[begins[0][start] : ends[0][stop - 1]] for field in first)),
            Hands(*(field[begins[1][start] : ends[1][stop - 1]] for field in second)),
        )


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
    return _entries(sparse.csr_array((values, (rows, columns)), shape=shape))


def _entries(total: sparse.csr_array) -> Payoffs:
    """The entries of a matrix but for zeros."""
    total.eliminate_zeros()
    return Payoffs(
        np.repeat(np.arange(total.shape[0], dtype=np.int32), np.diff(total.indptr)),
        total.indices.astype(np.int32),
        total.data,
    )
