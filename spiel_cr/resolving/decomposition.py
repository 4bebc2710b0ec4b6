"""Which histories form a subgame: layers, augmented infosets and subgames of a game.

Resolving player i against opponent o, the game is cut at i's decisions. A *layer* holds
what lies between two consecutive cuts on the way down; histories at the top of layer l
are its roots. At its roots the opponent has *augmented infosets* (Burch, Johanson &
Bowling 2014, "Solving imperfect information games using decomposition"): its last own
sequence, refined by what it observes there where the game says so.
"""

import dataclasses

import numpy as np

from spiel_cr.common.arrays import joint_components
from spiel_cr.common.errors import UncountableTurnsError
from spiel_cr.games.histories import CHANCE, TERMINAL, Histories
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import GameTree


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """Layers and augmented infosets of a game for one resolving player.

    Extended sequences of the opponent are its S own ones, then S + g for augmented
    infoset g: having passed g without having acted since.

    Attributes:
      tree: the game.
      player: i, the resolving player.
      player_layer: int32 [I of i], layer of each of i's infosets, from 1.
      opens: bool [I of i], whether an infoset's histories are roots of its layer.
      other_layer: int32 [I of o], layer of each of o's infosets; 0 above i's first
        decision.
      other_parent: int32 [I of o], extended parent sequence.
      augmented_layer: int32 [G], layer whose roots the augmented infoset belongs to.
      augmented_parent: int32 [G], extended parent sequence of each.
      augmented_subgame: int32 [G], subgame of the layer's roots that it leads to.
      player_subgame: int32 [I of i], subgame of each opening infoset, -1 elsewhere.
        Subgames are numbered through all layers.
      terminals: int64 [T], the terminal histories.
      layer: int32 [N], layer of each history, 0 above i's first decision.
      extended: int32 [N], o's extended sequence at each history.
      roots: int64 [R], the histories at the top of layers.
      root_augmented: int32 [R], the augmented infoset that each belongs to.
    """

    tree: GameTree
    player: int
    player_layer: np.ndarray
    opens: np.ndarray
    other_layer: np.ndarray
    other_parent: np.ndarray
    augmented_layer: np.ndarray
    augmented_parent: np.ndarray
    augmented_subgame: np.ndarray
    player_subgame: np.ndarray
    terminals: np.ndarray
    layer: np.ndarray
    extended: np.ndarray
    roots: np.ndarray
    root_augmented: np.ndarray

    @property
    def decisions(self) -> Decisions:
        """i's decision points."""
        return self.tree.infosets[self.player].decisions

    @property
    def num_layers(self) -> int:
        return int(self.player_layer.max(initial=0))


def decompose(tree: GameTree, player: int) -> Decomposition:
    """Cuts the game at every decision of `player`, or at every turn.

    Where the opponent cannot tell how many decisions the player has made (it may try
    again after a hidden failure, say), only the first decision after one of the
    opponent's opens a layer.

    Args:
      tree: the game.
      player: i, the resolving player.

    Raises:
      UncountableTurnsError: the opponent cannot even tell the player's turns apart.
    """
    acts = tree.histories.player == player
    previous = _last_decider(tree.histories)
    for opening in (acts, acts & (previous != player)):
        layer, anchor = _layers(tree.histories, opening)
        if _layers_are_observable(tree, layer, opening):
            return _decompose(tree, player, opening, layer, anchor)
    raise UncountableTurnsError(
        f"{tree.game}: player {1 - player} cannot tell how many turns player {player} "
        f"has had, so the game has no layers to resolve; use solve instead"
    )


def _last_decider(histories: Histories) -> np.ndarray:
    """int8 [N], who decided last before each history; CHANCE if nobody has."""
    last = np.full(len(histories), CHANCE, np.int8)
    for level in histories.by_depth[1:]:
        parent = histories.parent[level]
        decider = histories.player[parent]
        last[level] = np.where(decider >= 0, decider, last[parent])
    return last


def _layers(histories: Histories, opening: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int32 [N]: openings at or above each history; int64 [N]: the last one, or -1."""
    layer = opening.astype(np.int32)
    anchor = np.where(opening, np.arange(len(histories)), -1)
    for level in histories.by_depth[1:]:
        parent = histories.parent[level]
        layer[level] += layer[parent]
        anchor[level] = np.where(opening[level], anchor[level], anchor[parent])
    return layer, anchor


def _layers_are_observable(
    tree: GameTree, layer: np.ndarray, opening: np.ndarray
) -> bool:
    """Whether both players know at each infoset which layer they are in."""
    histories = tree.histories
    for p, infosets in enumerate(tree.infosets):
        decisions = np.flatnonzero(histories.player == p)
        first = infosets.history[histories.infoset[decisions]]
        if (layer[decisions] != layer[first]).any():
            return False
        if (opening[decisions] != opening[first]).any():
            return False
    return True


def _decompose(
    tree: GameTree,
    player: int,
    opening: np.ndarray,
    layer: np.ndarray,
    anchor: np.ndarray,
) -> Decomposition:
    histories, other = tree.histories, 1 - player
    infosets = tree.infosets[player]
    roots = np.flatnonzero(opening)
    above = np.where(histories.parent[roots] >= 0, anchor[histories.parent[roots]], -1)
    root_augmented = _augmented_infosets(tree, player, roots, above, layer, anchor)
    count = int(root_augmented.max(initial=-1)) + 1
    augmented_at = np.full(len(histories), -1, np.int32)
    augmented_at[roots] = root_augmented
    sequence = histories.sequence[other]
    num_opponent_sequences = tree.infosets[other].decisions.num_sequences

    def extend(at: np.ndarray, anchor: np.ndarray) -> np.ndarray:
        """o's extended sequences at histories `at` whose last roots are `anchor`."""
        unmoved = (anchor >= 0) & (sequence[at] == sequence[anchor])
        passed = num_opponent_sequences + augmented_at[anchor]
        return np.where(unmoved, passed, sequence[at]).astype(np.int32)

    extended = extend(np.arange(len(histories)), anchor)
    augmented_layer, augmented_parent = np.zeros((2, count), np.int32)
    augmented_layer[root_augmented] = layer[roots]
    augmented_parent[root_augmented] = extend(roots, above)
    # Subgames: roots that share i's or o's information belong together.
    infoset = histories.infoset[roots]
    subgame = _components(root_augmented, infoset, count)
    player_subgame = np.full(len(infosets), -1, np.int32)
    player_subgame[infoset] = subgame[root_augmented]
    return Decomposition(
        tree=tree,
        player=player,
        player_layer=layer[infosets.history],
        opens=opening[infosets.history],
        other_layer=layer[tree.infosets[other].history],
        other_parent=extended[tree.infosets[other].history],
        augmented_layer=augmented_layer,
        augmented_parent=augmented_parent,
        augmented_subgame=subgame,
        player_subgame=player_subgame,
        terminals=np.flatnonzero(histories.player == TERMINAL),
        layer=layer,
        extended=extended,
        roots=roots,
        root_augmented=root_augmented,
    )


def _augmented_infosets(
    tree: GameTree,
    player: int,
    roots: np.ndarray,
    above: np.ndarray,
    layer: np.ndarray,
    anchor: np.ndarray,
) -> np.ndarray:
    """int32 [roots], the augmented infoset of every root.

    Starts from (layer, o's sequence, o's observation), and joins what o cannot tell
    apart at its next own decision or at the next augmented infoset: some games tell a
    player who does not act more than it remembers later.
    """
    histories = tree.histories
    sequence = histories.sequence[1 - player]
    keys = [layer[roots], sequence[roots]]
    if histories.observations is not None:
        keys.append(histories.observations[roots])
    _, augmented = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    augmented = augmented.reshape(-1).astype(np.int32)
    root_index = np.full(len(histories), -1, np.int64)
    root_index[roots] = np.arange(len(roots))
    decisions = np.flatnonzero(histories.player == 1 - player)
    for number in range(int(layer.max(initial=0)), 0, -1):
        # What o meets next below a root of this layer: own infosets, further roots.
        meets = decisions[layer[decisions] == number]
        meets = meets[sequence[meets] == sequence[anchor[meets]]]
        further = np.flatnonzero((layer[roots] == number + 1) & (above >= 0))
        further = further[sequence[roots[further]] == sequence[above[further]]]
        source = root_index[np.concatenate([anchor[meets], above[further]])]
        target = np.concatenate(
            [histories.infoset[meets], len(decisions) + augmented[further]]
        )
        count = int(augmented.max(initial=-1)) + 1
        augmented = _components(augmented[source], target, count)[augmented]
    return augmented


def _components(left: np.ndarray, right: np.ndarray, count: int) -> np.ndarray:
    """int32 [count], numbers 0 .. count - 1, those with a common `right` made one.

    Args:
      left, right: int [n], pairs; left from 0 to count - 1.
      count: how many there are on the left.
    """
    _, right = np.unique(right, return_inverse=True)
    joined = joint_components(left, right, (count, int(right.max(initial=-1)) + 1)).rows
    _, numbers = np.unique(joined, return_inverse=True)
    return numbers.reshape(-1).astype(np.int32)
