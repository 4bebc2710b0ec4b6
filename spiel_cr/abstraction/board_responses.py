"""Exact NashConv of strategies by buckets, board by board: nothing is laid out.

What happens in the last round on one board depends on no other board, given what the
opponent plays. So best responses there are found board by board (Johanson et al. 2011,
"Accelerating best response calculation in large extensive games"), and only sums by the
signals of the round before are kept.

Legend for shapes: P public nodes, H signals of a player in a round, n those on one
board, A actions, T terms of a kernel.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tqdm
from scipy import sparse

from spiel_cr.gameshrink.partition import Partition, class_sizes
from spiel_cr.signals import kernel_boards, public_nodes
from spiel_cr.signals.game import BoardKernel, Kernel, SignalGame


def by_boards(game: SignalGame) -> bool:
    """Whether a game's last round is compared board by board."""
    last = [kernel for kernel in game.kernels if kernel.round == game.num_rounds - 1]
    return bool(last) and all(isinstance(kernel, BoardKernel) for kernel in last)


def nash_conv(
    game: SignalGame,
    partition: Partition,
    behaviour: Sequence[np.ndarray],
    *,
    progress: bool = False,
) -> float:
    """What best responses that see all their cards gain in all, in the game's units.

    Args:
      game: whose last round is compared board by board (`by_boards`).
      partition: of its signals.
      behaviour: for each player float [S'], as `gameshrink.lift` takes it.
      progress: show boards on stderr.

    Raises:
      ValueError: the partition is none of this game's signals, or the behaviours do not
        fit the game of its classes.
    """
    partition.check(game)
    total = 0.0
    for player in range(2):
        policy = _Policy(game, partition, 1 - player, np.asarray(behaviour[1 - player]))
        total += _Response(game, player, policy).value(progress)
    return total


class _Policy:
    """How the opponent of a responder plays, by public node."""

    def __init__(
        self,
        game: SignalGame,
        partition: Partition,
        player: int,
        behaviour: np.ndarray,
    ) -> None:
        """Cuts a strategy of classes into its public decisions."""
        smaller = class_sizes(game, partition)
        decisions = public_nodes.public_decisions(smaller, player)
        if behaviour.shape != (decisions.num_sequences,):
            raise ValueError(
                f"behaviour of player {player} has the shape {behaviour.shape}; the "
                f"game of the partition's classes has {decisions.num_sequences} "
                "sequences"
            )
        values = behaviour.astype(np.float64)
        self._blocks = {
            int(node): decisions.block(values, int(node)) for node in decisions.node
        }
        self._labels = partition.labels[player]
        self._round = game.betting.round

    def at(self, node: int, signals: slice) -> np.ndarray:
        """float64 [n, A], what some signals do at a node."""
        return self._blocks[node][self._labels[self._round[node]][signals]]


class _Entry(NamedTuple):
    """Where the last round begins.

    Attributes:
      node: its first public node.
      reach: float64 [H of the opponent in the round before], the opponent's alone.
    """

    node: int
    reach: np.ndarray


class _Response:
    """A player's best response against a policy."""

    def __init__(self, game: SignalGame, player: int, policy: _Policy) -> None:
        """Sorts public nodes by rounds."""
        self._game, self._player, self._policy = game, player, policy
        self._finder = public_nodes.Finder(game)
        betting, last = game.betting, game.num_rounds - 1
        self._early = np.flatnonzero(betting.round < last).tolist()
        self._late = np.flatnonzero(betting.round == last).tolist()
        self._terms = {
            number: np.flatnonzero(game.terms.kernel == number)
            for number in range(len(game.kernels))
        }

    def value(self, progress: bool) -> float:
        """What the player gets, in its own utility."""
        game, player = self._game, self._player
        entries, values = self._down()
        boards = [k for k in game.kernels if isinstance(k, BoardKernel)]
        last = game.num_rounds - 1
        above = [game.ancestors(p, last, last - 1) for p in range(2)]
        count = len(boards[0].values)
        for board in tqdm.tqdm(
            range(count), "best responses", disable=not progress, leave=False
        ):
            mine, theirs = (boards[0].part(p, board) for p in (player, 1 - player))
            # Before the first round there is a single signal.
            behind = above[player][mine]
            reaches = [entry.reach[above[1 - player][theirs]] for entry in entries]
            found = self._on_board(board, mine, theirs, entries, reaches)
            for entry in entries:
                size = len(values[entry.node])
                values[entry.node] += np.bincount(behind, found[entry.node], size)
        return self._up(values)

    def _down(self) -> tuple[list[_Entry], dict[int, np.ndarray]]:
        """The opponent's reach in the early rounds; leaf values there."""
        game, player = self._game, self._player
        betting, other = game.betting, 1 - player
        sizes = [1, *game.num_signals(other)]
        own_sizes = [1, *game.num_signals(player)]
        reach: dict[int, np.ndarray] = {}
        entries: list[_Entry] = []
        values: dict[int, np.ndarray] = {}
        last = game.num_rounds - 1

        def reached(node: int) -> np.ndarray:
            """By the signals of the parent's round."""
            above = int(betting.parent[node])
            if above < 0:
                return np.ones(1)
            if betting.player[above] != other:
                return reach[above]
            taken = self._finder.children(above).tolist().index(node)
            everything = slice(0, sizes[1 + betting.round[above]])
            found: np.ndarray = (
                reach[above] * self._policy.at(above, everything)[:, taken]
            )
            return found

        for node in self._early:
            above = int(betting.parent[node])
            before = int(betting.round[above]) if above >= 0 else -1
            behind = game.ancestors(other, int(betting.round[node]), before)
            reach[node] = reached(node)[behind]
            values[node] = np.zeros(own_sizes[1 + betting.round[node]])
        for node in self._late:
            above = int(betting.parent[node])
            if above >= 0 and betting.round[above] == last:
                continue
            found = reached(node)
            before = int(betting.round[above]) if above >= 0 else -1
            behind = (
                game.ancestors(other, last - 1, before) if last else np.zeros(1, int)
            )
            entries.append(_Entry(node, found[behind]))
            values[node] = np.zeros(own_sizes[last])
        for number, kernel in enumerate(game.kernels):
            if kernel.round < last and len(self._terms[number]):
                self._pay(kernel, self._terms[number], reach, values)
        return entries, values

    def _pay(
        self,
        kernel: Kernel,
        terms: np.ndarray,
        reach: dict[int, np.ndarray],
        values: dict[int, np.ndarray],
    ) -> None:
        """Adds what the terms of one early kernel pay."""
        given = self._game.terms
        rows, columns, entries = kernel.coordinates()
        matrix = sparse.csr_array((entries, (rows, columns)), shape=kernel.shape)
        matrix = matrix if self._player == 0 else -matrix.T
        for term in terms:
            leaf = int(given.leaf[term])
            values[leaf] += matrix @ (reach[leaf] * given.stake[term])

    def _on_board(
        self,
        board: int,
        mine: slice,
        theirs: slice,
        entries: Sequence[_Entry],
        reaches: Sequence[np.ndarray],
    ) -> dict[int, np.ndarray]:
        """Values of the last round's nodes, float64 [n] each, on one board."""
        game, player = self._game, self._player
        betting, terms = game.betting, game.terms
        other = 1 - player
        reach = {e.node: own for e, own in zip(entries, reaches, strict=True)}
        for node in self._late:
            if betting.player[node] < 0:
                continue
            children = self._finder.children(node).tolist()
            if betting.player[node] != other:
                reach |= dict.fromkeys(children, reach[node])
                continue
            shares = self._policy.at(node, theirs).T
            for child, share in zip(children, shares, strict=True):
                reach[child] = reach[node] * share
        size = mine.stop - mine.start
        values: dict[int, np.ndarray] = {}
        for number, kernel in enumerate(game.kernels):
            if not isinstance(kernel, BoardKernel) or not len(self._terms[number]):
                continue
            own = self._terms[number]
            leaves = terms.leaf[own].tolist()
            weights = np.stack([reach[leaf] for leaf in leaves])
            weights *= terms.stake[own][:, None]
            paid = kernel_boards.times_on(kernel, player, board, weights)
            for leaf, value in zip(leaves, paid, strict=True):
                values[leaf] = values[leaf] + value if leaf in values else value
        for node in reversed(self._late):
            if betting.player[node] >= 0:
                children = self._finder.children(node).tolist()
                parts = np.stack([values[child] for child in children])
                acts = betting.player[node] == player
                values[node] = parts.max(axis=0) if acts else parts.sum(axis=0)
            elif node not in values:
                values[node] = np.zeros(size)
        return values

    def _up(self, values: dict[int, np.ndarray]) -> float:
        """The root's value, given those of leaves and of the last round's entries."""
        game, player = self._game, self._player
        betting, last = game.betting, game.num_rounds - 1
        for node in reversed(self._early):
            if betting.player[node] < 0:
                continue
            children = self._finder.children(node).tolist()
            r = int(betting.round[node])
            parts = []
            for child in children:
                # An entry's values are by the signals of the round before it.
                at = min(int(betting.round[child]), last - 1)
                behind = game.ancestors(player, at, r)
                count = len(game.parents[player][r])
                parts.append(np.bincount(behind, values[child], count))
            acts = betting.player[node] == player
            values[node] = np.max(parts, axis=0) if acts else np.sum(parts, axis=0)
        return float(values[0].sum())
