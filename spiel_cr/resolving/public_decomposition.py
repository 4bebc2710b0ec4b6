"""Layers and subgames of a public-tree game.

The counterpart of `decomposition.py` for games with public actions and dealt private
information (`games/public_tree/game.py`). All turns are public there, so the
definitions are simpler: the root of a subgame is a public node at which the re-solving
player i acts, and its layer is the number of i's decisions down to it. An augmented
infoset of the opponent o (Burch, Johanson & Bowling 2014) consists of the node and o's
private state.

There are as many subgames at a public node as *boards*: private states of different
boards never face each other, so their subgames are independent.
"""

import dataclasses

import numpy as np
from scipy import sparse

from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix
from spiel_cr.games.sequence_form.decisions import Decisions


@dataclasses.dataclass(frozen=True)
class PublicDecomposition:
    """Layers and augmented infosets of a public-tree game for one re-solving player.

    Attributes:
      game: The public-tree game.
      player: The re-solving player, i.
      player_layer: Layer of each of i's infosets, from 1, int32 [I of i].
      layer: Layer of each public node, 0 above i's first decision, int32 [P].
      roots: Public nodes of i, ascending, int32 [R]: the roots of all layers.
      first_infoset: First of i's infosets at each root, and their number, int32 [R +
        1].
      first_augmented: First of o's augmented infosets at each root, and their number,
        int32 [R + 1].
      augmented_layer: Layer of each augmented infoset, int32 [G].
      boards: Labels of each player's private states, int32 [H0] and [H1], for each
        round. Private states with different labels never face each other, not even in a
        later round.
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
        """Decision points of i in the complete game."""
        return self.game.decisions[self.player]

    @property
    def num_layers(self) -> int:
        return int(self.layer[self.roots].max(initial=0))

    def roots_of(self, layer: int) -> np.ndarray:
        """Return the indices in `roots` of the roots of a layer, int32."""
        return np.flatnonzero(self.layer[self.roots] == layer).astype(np.int32)


def decompose_public(game: PublicTreeGame, player: int) -> PublicDecomposition:
    """Cut a public-tree game at every decision of a player.

    Args:
      game: The public-tree game.
      player: The re-solving player, i.
    """
    betting = game.betting
    acts = betting.player == player
    layer = acts.astype(np.int32)
    for level in betting.levels()[1:]:
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
    """Return the labels of both players by round, see `PublicDecomposition`."""
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
                # Hands are linked to their board, because pairs would be too many.
                for hands, private_states in zip(
                    matrix.hands, (first, second), strict=True
                ):
                    links.append(
                        np.stack(
                            [private_states[hands.private_state], size + hands.board]
                        )
                    )
                size += 1 + max(int(h.board.max(initial=-1)) for h in matrix.hands)
            else:
                pairs = matrix.coordinates()
                links.append(np.stack([first[pairs.rows], second[pairs.columns]]))
        left, right = np.concatenate(links, axis=1)
        graph = sparse.coo_matrix(
            (np.ones(len(left), bool), (left, right)), shape=(size, size)
        )
        from scipy.sparse import csgraph  # Slow to import.

        _, label = csgraph.connected_components(graph, directed=False)
        result.append((label[: counts[0]], label[counts[0] : sum(counts)]))
    return tuple(result)


def betting_kinds(game: PublicTreeGame) -> np.ndarray:
    """Return kinds of public nodes, int32 [P].

    Nodes have the same kind if the trees below them differ only in the stakes.
    """
    betting, terms = game.betting, game.terms
    paid: list[list[int]] = [[] for _ in range(len(betting))]
    for leaf, matrix in zip(terms.leaf.tolist(), terms.matrix.tolist(), strict=True):
        paid[leaf].append(matrix)
    below: list[list[int]] = [[] for _ in range(len(betting))]
    kind_of: dict[object, int] = {}
    kinds = np.zeros(len(betting), np.int32)
    parents, rounds = betting.parent.tolist(), betting.round.tolist()
    players = betting.player.tolist()
    # In descending order, children come before their parents.
    for node in range(len(betting) - 1, -1, -1):
        key = (players[node], rounds[node], *paid[node], *below[node])
        kinds[node] = kind_of.setdefault(key, len(kind_of))
        if node:
            below[parents[node]].append(int(kinds[node]))
    return kinds


def _starts(counts: np.ndarray) -> np.ndarray:
    """Return the start of each of several runs, and the end, int32 [n + 1]."""
    return np.append(0, np.cumsum(counts)).astype(np.int32)
