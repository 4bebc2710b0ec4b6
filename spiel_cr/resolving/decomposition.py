"""Which histories form a subgame: layers, gates and subgames of a game.

Resolving player i against opponent o, the game is cut at i's decisions. A *layer* holds
what lies between two consecutive cuts on the way down; histories at the top of layer l
are its roots. At a root the opponent has information (a *gate*): its last own sequence,
refined by what it is told there where the game says so; at least the augmented
information sets of Burch, Johanson & Bowling (2014, "Solving imperfect information
games using decomposition").
"""

import dataclasses

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from spiel_cr.common.errors import HiddenTurnsError
from spiel_cr.compilation.tree import CHANCE, TERMINAL, CompiledGame, Histories


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """Layers and gates of a game for one resolving player.

    Extended sequences of the opponent are its S own ones, then S + g for gate g: having
    passed g without having acted since.

    Attributes:
      tree: the game.
      player: i, the resolving player.
      own_layer: int32 [I of i], layer of each of i's infosets, from 1.
      opens: bool [I of i], whether an infoset's histories are roots of its layer.
      other_layer: int32 [I of o], layer of each of o's infosets; 0 above i's first
        decision.
      other_parent: int32 [I of o], extended parent sequence.
      augmented_layer: int32 [G], layer whose roots the gate belongs to.
      augmented_parent: int32 [G], extended parent sequence of each gate.
      augmented_subgame: int32 [G], subgame of the layer's roots that the gate leads to.
      own_subgame: int32 [I of i], subgame of each opening infoset, -1 elsewhere.
        Subgames are numbered through all layers.
      terminals: int64 [T], the terminal histories.
      layer: int32 [N], layer of each history, 0 above i's first decision.
      extended: int32 [N], o's extended sequence at each history.
      roots: int64 [R], the histories at the top of layers.
      root_augmented: int32 [R], the gate that each belongs to.
    """

    tree: CompiledGame
    player: int
    own_layer: np.ndarray
    opens: np.ndarray
    other_layer: np.ndarray
    other_parent: np.ndarray
    augmented_layer: np.ndarray
    augmented_parent: np.ndarray
    augmented_subgame: np.ndarray
    own_subgame: np.ndarray
    terminals: np.ndarray
    layer: np.ndarray
    extended: np.ndarray
    roots: np.ndarray
    root_augmented: np.ndarray

    @property
    def num_layers(self) -> int:
        return int(self.own_layer.max(initial=0))


def decompose(tree: CompiledGame, player: int) -> Decomposition:
    """Cuts the game at every decision of `player`, or at every turn.

    Where the opponent cannot tell how many decisions the player has made (it may try
    again after a hidden failure, say), only the first decision after one of the
    opponent's opens a layer.

    Raises:
      HiddenTurnsError: the opponent cannot even tell the player's turns apart.
    """
    acts = tree.histories.player == player
    previous = _last_decider(tree.histories)
    for opening in (acts, acts & (previous != player)):
        layer, anchor = _layers(tree.histories, opening)
        if _layers_are_known(tree, layer, opening):
            return _decompose(tree, player, opening, layer, anchor)
    raise HiddenTurnsError(
        f"{tree.game}: player {1 - player} cannot tell how many turns player {player} "
        f"has had, so the game has no layers to resolve; use solve instead"
    )


def _by_level(histories: Histories) -> list[slice]:
    bounds = histories.level_start
    return [slice(a, b) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def _last_decider(histories: Histories) -> np.ndarray:
    """int8 [N], who decided last before each history; CHANCE if nobody has."""
    last = np.full(len(histories), CHANCE, np.int8)
    for level in _by_level(histories)[1:]:
        parent = histories.parent[level]
        decider = histories.player[parent]
        last[level] = np.where(decider >= 0, decider, last[parent])
    return last


def _layers(histories: Histories, opening: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int32 [N]: openings at or above each history; int64 [N]: the last one, or -1."""
    layer = opening.astype(np.int32)
    anchor = np.where(opening, np.arange(len(histories)), -1)
    for level in _by_level(histories)[1:]:
        parent = histories.parent[level]
        layer[level] += layer[parent]
        anchor[level] = np.where(opening[level], anchor[level], anchor[parent])
    return layer, anchor


def _layers_are_known(
    tree: CompiledGame, layer: np.ndarray, opening: np.ndarray
) -> bool:
    """Whether both players know at each infoset which layer they are in."""
    histories = tree.histories
    for p, infosets in enumerate(tree.infosets):
        here = np.flatnonzero(histories.player == p)
        first = infosets.history[histories.infoset[here]]
        if (layer[here] != layer[first]).any():
            return False
        if (opening[here] != opening[first]).any():
            return False
    return True


def _decompose(
    tree: CompiledGame,
    player: int,
    opening: np.ndarray,
    layer: np.ndarray,
    anchor: np.ndarray,
) -> Decomposition:
    histories = tree.histories
    own, other = tree.infosets[player], tree.infosets[1 - player]
    roots = np.flatnonzero(opening)
    gate_of_root = _merge_gates(tree, player, roots, layer, anchor)
    gates = int(gate_of_root.max(initial=-1)) + 1
    gate_at = np.full(len(histories), -1, np.int32)
    gate_at[roots] = gate_of_root
    extended = _extended_sequence(tree, 1 - player, anchor, gate_at)
    above = np.where(histories.parent[roots] >= 0, anchor[histories.parent[roots]], -1)
    before = _extended(tree, 1 - player, roots, above, gate_at)
    augmented_layer = np.zeros(gates, np.int32)
    augmented_parent = np.zeros(gates, np.int32)
    augmented_layer[gate_of_root] = layer[roots]
    augmented_parent[gate_of_root] = before
    augmented_subgame, own_subgame = _subgames(
        gate_of_root, gates, histories.infoset[roots], len(own)
    )
    terminals = np.flatnonzero(histories.player == TERMINAL)
    return Decomposition(
        tree=tree,
        player=player,
        own_layer=layer[own.history],
        opens=opening[own.history],
        other_layer=layer[other.history],
        other_parent=extended[other.history],
        augmented_layer=augmented_layer,
        augmented_parent=augmented_parent,
        augmented_subgame=augmented_subgame,
        own_subgame=own_subgame,
        terminals=terminals,
        layer=layer,
        extended=extended,
        roots=roots,
        root_augmented=gate_of_root,
    )


def _extended(
    tree: CompiledGame,
    other: int,
    at: np.ndarray,
    anchor: np.ndarray,
    gate_at: np.ndarray,
) -> np.ndarray:
    """o's extended sequences at histories `at` whose last roots are `anchor`."""
    sequence = tree.histories.sequence[other]
    count = tree.infosets[other].decisions.num_sequences
    unmoved = (anchor >= 0) & (sequence[at] == sequence[anchor])
    return np.where(unmoved, count + gate_at[anchor], sequence[at]).astype(np.int32)


def _extended_sequence(
    tree: CompiledGame, other: int, anchor: np.ndarray, gate_at: np.ndarray
) -> np.ndarray:
    return _extended(tree, other, np.arange(len(tree.histories)), anchor, gate_at)


def _merge_gates(
    tree: CompiledGame,
    player: int,
    roots: np.ndarray,
    layer: np.ndarray,
    anchor: np.ndarray,
) -> np.ndarray:
    """int32 [roots], the gate of every root.

    Starts from (layer, o's sequence, what o is told), and joins what o cannot tell
    apart at its next own decision or at the next gate: some games tell a player who
    does not act more than it remembers later.
    """
    histories = tree.histories
    observed = histories.observations
    keys = [layer[roots], histories.sequence[1 - player][roots]]
    if observed is not None:
        keys.append(observed[roots])
    _, gate = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    gate = gate.reshape(-1).astype(np.int64)
    root_index = np.full(len(histories), -1, np.int64)
    root_index[roots] = np.arange(len(roots))
    sequence = histories.sequence[1 - player]
    decisions = np.flatnonzero(histories.player == 1 - player)
    above = np.where(histories.parent[roots] >= 0, anchor[histories.parent[roots]], -1)
    for at in range(int(layer.max(initial=0)), 0, -1):
        # What o meets next after a gate of this layer: own infosets, further gates.
        meets = decisions[(layer[decisions] == at)]
        meets = meets[sequence[meets] == sequence[anchor[meets]]]
        further = np.flatnonzero((layer[roots] == at + 1) & (above >= 0))
        further = further[sequence[roots[further]] == sequence[above[further]]]
        source = np.concatenate([anchor[meets], above[further]])
        target = np.concatenate(
            [histories.infoset[meets], len(decisions) + gate[further]]
        )
        gate = _join(gate, gate[root_index[source]], target)
    _, gate = np.unique(gate, return_inverse=True)
    return gate.reshape(-1).astype(np.int32)


def _join(labels: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Relabels so that labels `left` with a common `right` become one."""
    if not len(left):
        return labels
    _, right = np.unique(right, return_inverse=True)
    offset = int(labels.max()) + 1
    size = offset + int(right.max()) + 1
    graph = sparse.coo_matrix(
        (np.ones(len(left), bool), (left, offset + right)), shape=(size, size)
    )
    _, component = csgraph.connected_components(graph, directed=False)
    return component[labels].astype(np.int64)


def _subgames(
    gate: np.ndarray, gates: int, infoset: np.ndarray, infosets: int
) -> tuple[np.ndarray, np.ndarray]:
    """Connected components of roots that share i's or o's information.

    Args:
      gate: int32 [roots], o's gate of each root.
      gates: how many gates there are.
      infoset: int32 [roots], i's infoset of each root.
      infosets: how many infosets i has.

    Returns:
      Subgame of each gate, int32 [G], and of each infoset, int32 [I], -1 where its
      histories are no roots.
    """
    size = gates + infosets
    graph = sparse.coo_matrix(
        (np.ones(len(gate), bool), (gate, gates + infoset)), shape=(size, size)
    )
    _, component = csgraph.connected_components(graph, directed=False)
    _, label = np.unique(component[:gates], return_inverse=True)
    augmented_subgame = label.reshape(-1).astype(np.int32)
    own_subgame = np.full(infosets, -1, np.int32)
    own_subgame[infoset] = augmented_subgame[gate]
    return augmented_subgame, own_subgame
