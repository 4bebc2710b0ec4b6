"""A compiled game sorted by public nodes and deals; refused where that cannot be."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spiel_cr.games.histories import CHANCE
from spiel_cr.games.signals.game import Betting
from spiel_cr.games.tree.tree import CompiledGame

# How closely odds of deals agree, in units of their own.
_TOLERANCE = 1e-12


class Paths(NamedTuple):
    """Histories by the moves of some movers only.

    Attributes:
      node: int32 [N], the node of each history: equal for equal lists of these moves.
      parent, action, depth: int32 [n], of each node; ordered by depth, then parent,
        then action. -1, -1 and 0 at node 0.
    """

    node: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    depth: np.ndarray


class Round(NamedTuple):
    """What lies between two deals.

    Attributes:
      nodes: int32 [n], its public nodes, ascending.
      deals: int32 [D], what can be dealt by then, nodes of `Table.deals`, ascending.
      history: int32 [n, D], the history of each node and deal.
      chance: float64 [D], the probability of each deal.
    """

    nodes: np.ndarray
    deals: np.ndarray
    history: np.ndarray
    chance: np.ndarray


@dataclasses.dataclass(frozen=True)
class Table:
    """A game by public nodes and deals.

    Attributes:
      tree: the compiled game.
      public: by the players' moves.
      deals: by chance moves.
      player: int8 [P], who acts at each public node.
      rounds: top to bottom.
    """

    tree: CompiledGame
    public: Paths
    deals: Paths
    player: np.ndarray
    rounds: tuple[Round, ...]

    def refusal(self, why: str, *nodes: int) -> ValueError:
        """The error to raise.

        Args:
          why: with a {} for each node.
          nodes: public nodes.
        """
        named = []
        for node in nodes:
            moves = self.moves_to(int(node))
            named.append(f"the players' actions {moves}" if moves else "no action")
        return ValueError(
            f"{self.tree.game} is no signal game: {why.format(*named)}; solve it in "
            f"its compiled form"
        )

    def moves_to(self, node: int) -> list[int]:
        """The players' actions to a public node."""
        moves: list[int] = []
        while node:
            moves.insert(0, int(self.public.action[node]))
            node = int(self.public.parent[node])
        return moves


def _paths(tree: CompiledGame, counts: Callable[[np.ndarray], np.ndarray]) -> Paths:
    """Histories by some of the moves.

    Args:
      tree: the game.
      counts: whether the moves of these movers (integers [n]) are among them.
    """
    histories = tree.histories
    size = len(histories)
    # The last history on the way that such a move led to, and how many there were.
    last, depth = np.zeros(size, np.int32), np.zeros(size, np.int32)
    for level in histories.by_depth[1:]:
        above = histories.parent[level]
        chosen = counts(histories.player[above])
        index = np.arange(level.start, level.stop, dtype=np.int32)
        last[level] = np.where(chosen, index, last[above])
        depth[level] = depth[above] + chosen
    ends = np.flatnonzero(last == np.arange(size))[1:]
    node_of = np.zeros(size, np.int32)
    lowest = int(histories.action.min())
    width = int(histories.action.max()) - lowest + 1
    parents, actions, depths = [np.array([-1])], [np.array([-1])], [np.array([0])]
    begin = 1
    by_depth = ends[np.argsort(depth[ends], kind="stable")]
    changes = np.flatnonzero(np.diff(depth[by_depth])) + 1
    for rows in np.split(by_depth, changes) if len(ends) else ():
        above = node_of[last[histories.parent[rows]]].astype(np.int64)
        keys, number = np.unique(
            above * width + (histories.action[rows].astype(np.int64) - lowest),
            return_inverse=True,
        )
        node_of[rows] = begin + number
        parents.append(keys // width)
        actions.append(keys % width + lowest)
        depths.append(np.full(len(keys), len(depths)))
        begin += len(keys)
    parent, action, moves = (
        np.concatenate(part).astype(np.int32) for part in (parents, actions, depths)
    )
    return Paths(node_of[last], parent, action, moves)


def make_table(tree: CompiledGame) -> Table:
    """Sorts the histories of a whole game.

    Raises:
      ValueError: its actions are not public, or deals depend on them.
    """
    histories = tree.histories
    public = _paths(tree, lambda player: player >= 0)
    deals = _paths(tree, lambda player: player == CHANCE)
    table = Table(tree, public, deals, np.zeros(0, np.int8), ())
    for player, own in enumerate(tree.infosets):
        at = np.flatnonzero(histories.player == player)
        node = np.full(len(own), -1, np.int32)
        node[histories.infoset[at]] = public.node[at]
        odd = np.flatnonzero(node[histories.infoset[at]] != public.node[at])
        if len(odd):
            one, other = node[histories.infoset[at[odd[0]]]], public.node[at[odd[0]]]
            raise table.refusal(
                f"player {player} does not see every action of the other player; it "
                f"cannot tell {{}} from {{}}",
                *sorted((one, other)),
            )
    places = np.flatnonzero(histories.player != CHANCE)
    order = places[np.lexsort((deals.node[places], public.node[places]))]
    at = public.node[order]
    count = np.bincount(at, minlength=len(public.parent))
    start = np.cumsum(count) - count
    player = histories.player[order[start]]
    dealt = deals.depth[deals.node[order[start]]]
    one = np.flatnonzero(histories.player[order] != player[at])
    if len(one):
        raise table.refusal("who acts after {} depends on the deal", at[one[0]])
    one = np.flatnonzero(deals.depth[deals.node[order]] != dealt[at])
    if len(one):
        raise table.refusal("how much is dealt after {} depends on it", at[one[0]])
    table = dataclasses.replace(table, player=player)
    _check_actions(table, order, start)
    rounds = []
    for moves in np.unique(dealt):
        nodes = np.flatnonzero(dealt == moves).astype(np.int32)
        size = int(count[nodes[0]])
        odd = np.flatnonzero(count[nodes] != size)
        if not len(odd):
            history = order[start[nodes][:, None] + np.arange(size)].astype(np.int32)
            dealt_at, chance = deals.node[history], histories.chance[history]
            off = np.abs(chance - chance[0]) > _TOLERANCE * chance[0]
            odd = np.flatnonzero(((dealt_at != dealt_at[0]) | off).any(axis=1))
        if len(odd):
            raise table.refusal(
                "what chance deals depends on the players' actions: it is not the same "
                "after {} and after {}",
                nodes[0],
                nodes[odd[0]],
            )
        rounds.append(Round(nodes, dealt_at[0], history, chance[0]))
    return dataclasses.replace(table, rounds=tuple(rounds))


def _check_actions(table: Table, order: np.ndarray, start: np.ndarray) -> None:
    """Refuses games whose legal actions are no public knowledge.

    Args:
      table: without rounds.
      order: integers [n], histories that are no chance nodes, by public node.
      start: integers [P], where those of each node begin.
    """
    public, tree = table.public, table.tree
    children = np.bincount(public.parent[1:], minlength=len(public.parent))
    for player, own in enumerate(tree.infosets):
        node = public.node[own.history]
        actions = own.decisions.num_actions
        odd = np.flatnonzero(actions != children[node])
        if len(odd):
            raise table.refusal(
                f"what player {player} may do after {{}} depends on its cards",
                node[odd[0]],
            )
        first = np.searchsorted(public.parent[1:], node)
        before = np.cumsum(actions) - actions
        rank = np.arange(len(own.actions)) - np.repeat(before, actions)
        odd = np.flatnonzero(
            public.action[1 + np.repeat(first, actions) + rank] != own.actions
        )
        if len(odd):
            raise table.refusal(
                f"the actions of player {player} after {{}} are not in ascending order",
                np.repeat(node, actions)[odd[0]],
            )


def betting_of(table: Table) -> Betting:
    """The public tree, node by node as in the table."""
    rounds = np.zeros(len(table.player), np.int8)
    for number, part in enumerate(table.rounds):
        rounds[part.nodes] = number
    public = table.public
    return Betting(table.player, public.parent, public.action, rounds)
