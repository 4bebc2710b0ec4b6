"""Public tree with its boards as flat arrays, in which trajectories are sampled.

A *place* is a public node with a board, or a deal of the next public cards. Places are
numbered so that the children of a place are contiguous and come after it.

Legend for shapes: X places, Y decisions among them, A actions, h hands on a board, M
boards of all rounds, U pairs of a board and an earlier round.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.solvers.mccfr.public.boards import Boards

# Kinds of places besides the decisions of players 0 and 1.
DEAL, LEAF = 2, 3


class PlaceArrays(NamedTuple):
    """Arrays of the places; numpy arrays until a solver puts them on a device.

    Attributes:
      kind: Player who decides, 0 or 1, or DEAL or LEAF, int32 [X].
      first: First child, int32 [X]; 0 at leaves.
      children: Number of children, int32 [X].
      row: Row of the decision in tables, int32 [X]; Y at other places.
      board: Board in `mass`, int32 [X].
      probability: Probability that a trajectory moves from a deal to the place, float
        [X].
      map: Row of `up` at places below deals, int32 [X]; 0 at other places.
      term: First term of a leaf and the number after the last, int32 [X, 2].
      term_matrix: Block of each term in `payoff_matrices`, int32 [T].
      term_stake: Stake of each term, float [T].
      up: Hand before the deal from which each hand comes, int32 [U, h] for each player.
      has_hand: Mask of existing hands, float [M, h] for each player.
      start: Reach of both players at place 0, float [2, h].
      mass, payoff_matrices: Payoffs of hands as in `Boards`.
      legal: Mask of legal actions, float [Y + 1, A]; the last row belongs to no
        decision.
      parent: Entry of each infoset's parent sequence in a vector [Y · A · h + 2], int32
        [Y, h]; the vector's last two entries are the empty sequences.
    """

    kind: jax.Array
    first: jax.Array
    children: jax.Array
    row: jax.Array
    board: jax.Array
    probability: jax.Array
    map: jax.Array
    term: jax.Array
    term_matrix: jax.Array
    term_stake: jax.Array
    up: tuple[jax.Array, jax.Array]
    has_hand: tuple[jax.Array, jax.Array]
    start: jax.Array
    mass: jax.Array
    payoff_matrices: jax.Array
    legal: jax.Array
    parent: jax.Array


@dataclasses.dataclass(frozen=True)
class NumberedPlaces:
    """Places of a game, and their relation to its logical sequences.

    Attributes:
      places: Places as numpy arrays.
      entries: Entry of each logical sequence of the public-tree form in a vector [Y · A
        · h + 2], int64 [S] for each player; -1 at infosets that no deal reaches.
      levels: Rows of the decisions that follow equally many decisions of their player,
        for each number of decisions.
    """

    places: PlaceArrays
    entries: tuple[np.ndarray, np.ndarray]
    levels: tuple[np.ndarray, ...]


class _Builder:
    """Builder that numbers places in groups: the children of all places of a node."""

    def __init__(self, game: PublicTreeGame, boards: Boards) -> None:
        self.game, self.boards = game, boards
        # Columns of the places of each group, in the order of `add`.
        self.groups: list[Sequence[np.ndarray]] = []
        self.size = 0
        # Places of each public node by boards, int [B] each.
        self.at: list[np.ndarray] = [np.zeros(0, int)] * len(game.betting)
        self.maps: dict[tuple[int, int], int] = {}
        self.ups: list[np.ndarray] = []
        self.num_maps = 0

    def add(self, above: np.ndarray, *columns: np.ndarray | float) -> np.ndarray:
        """Add places and return their numbers.

        Args:
          above: Place above each of them, int [n].
          columns: Their kinds, public nodes, boards, probabilities and rows of `up`,
            each [n] or a scalar.
        """
        self.groups.append(np.broadcast_arrays(above, *columns))
        self.size += len(above)
        return np.arange(self.size - len(above), self.size)

    def first_map(self, before: int, later: int) -> int:
        """Return the first row of `up` for deals between two rounds.

        If the rows do not exist, they are added.
        """
        if (before, later) not in self.maps:
            part, hands = self.boards.rounds[later], self.boards.hands
            table = np.zeros((2, part.size, hands), np.int32)
            for p in range(2) if before >= 0 else ():
                private_states = part.private_states[p]
                up = self.game.ancestors(p, later, before)[
                    np.maximum(private_states, 0)
                ]
                slot = self.boards.rounds[before].slot[p][up]
                table[p, :, : private_states.shape[1]] = np.where(
                    private_states < 0, 0, slot
                )
            self.maps[before, later] = self.num_maps
            self.ups.append(table)
            self.num_maps += part.size
        return self.maps[before, later]

    def board_above(self, later: int, before: int) -> np.ndarray:
        """Return the board of an earlier round above each board, int [B].

        Before the first round there is one board, 0.
        """
        board = np.arange(self.boards.rounds[later].size)
        for number in range(later, max(before, 0), -1):
            board = self.boards.rounds[number].above[board]
        return board if before >= 0 else np.zeros_like(board)

    def deal(self, node: int, places: np.ndarray, before: int) -> None:
        """Add the places of a public node below deals.

        Args:
          node: Public node.
          places: Places of the deals, by boards of the previous round.
          before: Previous round; -1 before the first round.
        """
        later = int(self.game.betting.round[node])
        board = self.board_above(later, before)
        probability = self.boards.rounds[later].probability
        share = probability / np.bincount(board, weights=probability)[board]
        first = self.first_map(before, later)
        # Boards below one board are contiguous, so the children of a deal are as well.
        self.at[node] = self.add(
            places[board],
            self.kind_of(node),
            node,
            self.boards.first[later] + np.arange(len(board)),
            share,
            first + np.arange(len(board)),
        )

    def kind_of(self, node: int) -> int:
        player = int(self.game.betting.player[node])
        return LEAF if player == TERMINAL else player


def build(game: PublicTreeGame, boards: Boards) -> NumberedPlaces:
    """Build the places of a game's public tree with its boards.

    Args:
      game: Game in public-tree form.
      boards: Result of `boards.find`.
    """
    betting, builder = game.betting, _Builder(game, boards)
    first = boards.first
    if boards.rounds[0].size == 1:
        builder.at[0] = builder.add(np.array([-1]), builder.kind_of(0), 0, 0, 1.0, 0)
    else:
        builder.deal(0, builder.add(np.array([-1]), DEAL, 0, 0, 1.0, 0), -1)
    for node in range(len(betting)):
        children = game.betting.children(node)
        if not len(children):
            continue
        positions = builder.at[node]
        before = int(betting.round[node])
        later = betting.round[children] > before
        kinds = np.array([builder.kind_of(int(child)) for child in children])
        placed = builder.add(
            np.repeat(positions, len(children)),
            np.tile(np.where(later, DEAL, kinds), len(positions)),
            np.tile(children, len(positions)),
            np.repeat(first[before] + np.arange(len(positions)), len(children)),
            1.0,
            0,
        ).reshape(len(positions), -1)
        for column, child in enumerate(children.tolist()):
            if later[column]:
                builder.deal(child, placed[:, column], before)
            else:
                builder.at[child] = placed[:, column]
    return _finish(builder)


def _finish(builder: _Builder) -> NumberedPlaces:
    game, boards = builder.game, builder.boards
    groups = zip(*builder.groups, strict=True)
    above, kind, node, board, probability, maps = map(np.concatenate, groups)
    size, hands = builder.size, boards.hands
    count = np.bincount(above[1:], minlength=size)
    begin = np.zeros(size, np.int64)
    inner = np.flatnonzero(count)
    # Children are contiguous, so the first child is where the parent first appears.
    begin[inner] = 1 + np.unique(above[1:], return_index=True)[1]
    decides = np.flatnonzero(kind < DEAL)
    row = np.full(size, len(decides))
    row[decides] = np.arange(len(decides))
    width = int(count[decides].max(initial=1))
    legal = np.zeros((len(decides) + 1, width))
    legal[:-1] = np.arange(width) < count[decides][:, None]
    legal[-1, 0] = 1
    terms = game.terms
    order = np.argsort(terms.leaf, kind="stable")
    # Each term of a leaf is repeated for every board.
    leaf = np.flatnonzero(kind == LEAF)
    low = np.searchsorted(terms.leaf[order], node[leaf])
    many = np.searchsorted(terms.leaf[order], node[leaf], side="right") - low
    number = order[ranges(low, many)]
    within = board[leaf] - boards.first[game.betting.round[node[leaf]]]
    ends = np.cumsum(many)
    term = np.zeros((size, 2), np.int64)
    term[leaf] = np.stack([ends - many, ends], 1)
    has_hand = np.zeros((2, len(boards.mass), hands))
    for start, part in zip(boards.first, boards.rounds, strict=True):
        for p in range(2):
            table = part.private_states[p]
            has_hand[p, start : start + part.size, : table.shape[1]] = table >= 0
    ups = np.concatenate(builder.ups or [np.zeros((2, 1, hands), np.int32)], 1)
    parent, levels = _parent_entries(builder, row, width)
    columns: Any = (
        kind,
        begin,
        count,
        row,
        board,
        probability,
        maps,
        term,
        boards.matrix_first[terms.matrix[number]] + np.repeat(within, many),
        terms.stake[number],
        (ups[0], ups[1]),
        (has_hand[0], has_hand[1]),
        has_hand[:, board[0]],
        boards.mass,
        boards.payoff_matrices,
        legal,
        parent,
    )
    places = PlaceArrays(*jax.tree.map(_wide, columns))
    return NumberedPlaces(places, _entries(builder, row, width), levels)


def _wide(array: np.ndarray) -> np.ndarray:
    """Return an array as float64 or int32."""
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int32)


def _parent_entries(
    builder: _Builder, row: np.ndarray, width: int
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return `PlaceArrays.parent` and `NumberedPlaces.levels`."""
    game, boards = builder.game, builder.boards
    betting, hands = game.betting, boards.hands
    rows = int(row.max())
    parent = np.zeros((rows, hands), np.int64)
    level = np.zeros(rows, np.int64)
    depth = np.zeros(len(betting), np.int64)
    for node in np.flatnonzero(betting.player >= 0).tolist():
        player, number = int(betting.player[node]), int(betting.round[node])
        below, up = node, int(betting.parent[node])
        while up >= 0 and betting.player[up] != player:
            below, up = up, int(betting.parent[up])
        rows_of_node = row[builder.at[node]]
        if up < 0:
            parent[rows_of_node] = rows * width * hands + player
            continue
        depth[node] = depth[up] + 1
        level[rows_of_node] = depth[node]
        earlier = int(betting.round[up])
        private_states = boards.rounds[number].private_states[player]
        before = game.ancestors(player, number, earlier)[np.maximum(private_states, 0)]
        slot = boards.rounds[earlier].slot[player][before]
        at = builder.at[up][boards.rounds[earlier].board[player][before]]
        entry = (row[at] * width + int(betting.index[below])) * hands + slot
        empty_sequence = rows * width * hands + player
        parent[rows_of_node, : private_states.shape[1]] = np.where(
            private_states < 0, empty_sequence, entry
        )
        parent[rows_of_node, private_states.shape[1] :] = empty_sequence
    by_level = tuple(
        np.flatnonzero(level == number) for number in range(int(level.max()) + 1)
    )
    return parent, by_level


def _entries(
    builder: _Builder, row: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return `NumberedPlaces.entries`."""
    game, boards = builder.game, builder.boards
    betting, hands = game.betting, boards.hands
    rows = int(row.max())
    entries = []
    for player in range(2):
        parts = [np.array([rows * width * hands + player])]
        for node in np.flatnonzero(betting.player == player).tolist():
            part = boards.rounds[int(betting.round[node])]
            board, slot = part.board[player], part.slot[player]
            at = row[builder.at[node][np.maximum(board, 0)]]
            entry = (at * width)[:, None] + np.arange(betting.num_actions[node])
            entry = entry * hands + slot[:, None]
            parts.append(np.where(board[:, None] < 0, -1, entry).ravel())
        entries.append(np.concatenate(parts))
    return entries[0], entries[1]


def most_visits(places: PlaceArrays, player: int, follow: str) -> int:
    """Return the maximum number of places that one trajectory can visit.

    Args:
      places: Places as numpy arrays or device arrays.
      player: Player whose values are estimated.
      follow: Actions that a trajectory follows, as in `public_walk.SamplingRates`.
    """
    kind, count = np.asarray(places.kind), np.asarray(places.children)
    above = np.full(len(kind), -1)
    above[ranges(np.asarray(places.first), count)] = np.repeat(
        np.arange(len(kind)), count
    )
    branches = {
        "outcome": np.zeros(len(kind), bool),
        "external": kind == player,
        "all": np.ones(len(kind), bool),
    }[follow]
    depth = Decisions(above + 1, np.ones(len(above), np.int32)).levels()
    size = np.ones(len(kind), np.int64)
    most = np.zeros(len(kind), np.int64)
    total = np.zeros(len(kind), np.int64)
    order = np.argsort(-depth, kind="stable")
    ends = np.cumsum(np.bincount(depth)[::-1])
    for level in np.split(order, ends[:-1])[:-1]:
        size[level] += np.where(branches[level], total[level], most[level])
        np.maximum.at(most, above[level], size[level])
        np.add.at(total, above[level], size[level])
    return int(1 + (total if branches[0] else most)[0])
