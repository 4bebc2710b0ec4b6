"""Which public nodes form a subgame: the layers of a signal game.

The counterpart of `decomposition.py` for games with public actions and dealt private
information (`games/public_tree/game.py`). There nothing about turns is hidden, so all
is simple: a subgame's root is a public node where the resolving player i acts, its
layer is the number of i's decisions down to it, and what the opponent o knows there,
its augmented infosets (Burch, Johanson & Bowling 2014), are the node and o's signal of
its round.

A public node stands for as many subgames as there are *boards* at it: signals that
never meet share nothing.
"""

import dataclasses

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix
from spiel_cr.games.sequence_form.decisions import Decisions


@dataclasses.dataclass(frozen=True)
class PublicDecomposition:
    """Layers and augmented infosets of a signal game for one resolving player.

    Attributes:
      game: the signal game.
      player: i, the resolving player.
      player_layer: int32 [I of i], layer of each of i's infosets, from 1.
      layer: int32 [P], layer of each public node, 0 above i's first decision.
      roots: int32 [R], i's public nodes, ascending: the roots of all layers.
      first_infoset: int32 [R + 1], where i's infosets at each root begin.
      first_augmented: int32 [R + 1], where o's augmented infosets at each root begin.
      augmented_layer: int32 [G], layer of each augmented infoset.
      boards: for each round the players' labels, int32 [H0] and [H1]: signals with
        different labels never meet, not even in a later round.
    """

    game: PublicTreeGame
    player: int
    player_layer: np.ndarray
    layer: np.ndarray
    roots: np.ndarray
    first_infoset: np.ndarray
    first_augmented: np.ndarray
    augmented_layer: np.ndarray
    boards: tuple[tuple[np.ndarray, np.ndarray], ...]

    @property
    def decisions(self) -> Decisions:
        """i's decision points in the complete game."""
        return self.game.decisions[self.player]

    @property
    def num_layers(self) -> int:
        return int(self.layer[self.roots].max(initial=0))

    def roots_of(self, layer: int) -> np.ndarray:
        """int32, which of `roots` are those of a layer."""
        return np.flatnonzero(self.layer[self.roots] == layer).astype(np.int32)


def decompose_public(game: PublicTreeGame, player: int) -> PublicDecomposition:
    """Cuts a signal game at every decision of `player`.

    Args:
      game: the game.
      player: i, the resolving player.
    """
    betting = game.betting
    acts = betting.player == player
    layer = acts.astype(np.int32)
    for level in betting.by_depth()[1:]:
        layer[level] += layer[betting.parent[level]]
    roots = np.flatnonzero(acts).astype(np.int32)
    num_states = np.array(game.num_private_states(player), np.int64)[
        betting.round[roots]
    ]
    num_opponent_states = np.array(game.num_private_states(1 - player), np.int64)[
        betting.round[roots]
    ]
    return PublicDecomposition(
        game=game,
        player=player,
        player_layer=np.repeat(layer[roots], num_states),
        layer=layer,
        roots=roots,
        first_infoset=_starts(num_states),
        first_augmented=_starts(num_opponent_states),
        augmented_layer=np.repeat(layer[roots], num_opponent_states),
        boards=boards(game),
    )


def boards(game: PublicTreeGame) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """For each round the players' labels; see `PublicDecomposition`."""
    result = []
    for number in range(game.num_rounds):
        counts = [game.num_private_states(player)[number] for player in range(2)]
        size = sum(counts)
        links = [np.zeros((2, 0), np.int64)]
        for matrix in game.payoff_matrices:
            if matrix.round < number:
                continue
            first, second = (
                game.ancestors(player, matrix.round, number) for player in range(2)
            )
            second = counts[0] + second
            if isinstance(matrix, HandMatrix):
                # Hands are linked to the table: as many links as hands, not as pairs.
                for hands, signals in zip(matrix.hands, (first, second), strict=True):
                    links.append(np.stack([signals[hands.signal], size + hands.board]))
                size += 1 + max(int(h.board.max(initial=-1)) for h in matrix.hands)
            else:
                pairs = matrix.coordinates()
                links.append(np.stack([first[pairs.rows], second[pairs.columns]]))
        left, right = np.concatenate(links, axis=1)
        graph = sparse.coo_matrix(
            (np.ones(len(left), bool), (left, right)), shape=(size, size)
        )
        _, label = csgraph.connected_components(graph, directed=False)
        result.append((label[: counts[0]], label[counts[0] : sum(counts)]))
    return tuple(result)


def betting_kinds(game: PublicTreeGame) -> np.ndarray:
    """int32 [P], equal where all below a public node is alike, but for the stakes."""
    betting, terms = game.betting, game.terms
    paid: list[list[int]] = [[] for _ in range(len(betting))]
    for leaf, matrix in zip(terms.leaf.tolist(), terms.matrix.tolist(), strict=True):
        paid[leaf].append(matrix)
    below: list[list[int]] = [[] for _ in range(len(betting))]
    kind_of: dict[object, int] = {}
    kinds = np.zeros(len(betting), np.int32)
    parents, rounds = betting.parent.tolist(), betting.round.tolist()
    players = betting.player.tolist()
    # Children come after their parents; so here they come before, the last one first.
    for node in range(len(betting) - 1, -1, -1):
        key = (players[node], rounds[node], *paid[node], *below[node])
        kinds[node] = kind_of.setdefault(key, len(kind_of))
        if node:
            below[parents[node]].append(int(kinds[node]))
    return kinds


def _starts(counts: np.ndarray) -> np.ndarray:
    """int32 [n + 1], where each of several runs begins, and the end."""
    return np.append(0, np.cumsum(counts)).astype(np.int32)
